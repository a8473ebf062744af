"""What `.ci/setup`, which each make command begins with, does and says on various machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ("sh", "cat", "cksum", "cp", "dirname", "mkdir", "rm")

# Stands for Python: says a version, makes an environment of itself, notes what pip is asked for.
PYTHON = """\
#!/bin/sh
case "$*" in
*"import ensurepip"*) exit {without_venv} ;;
*"import pip"*) exit 0 ;;
*"< (3, 11)"*) exit {too_old} ;;
*version_info*) echo {version} ;;
*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*"-m pip"*) for word; do :; done; echo "$word" >>pip.log ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout in a path with spaces, beside a folder with all programs there are."""
    checkout = tmp_path / "a check out"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "setup", checkout / ".ci")
    (checkout / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    return checkout


def add_program(project: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    path = project.parent / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def add_python(
    project: Path, version: str = "3.12", *, old: bool = False, venv: bool = True
) -> None:
    text = PYTHON.format(version=version, too_old=int(old), without_venv=int(not venv))
    add_program(project, "python3", text)


def setup(project: Path, extras: str = "demo", **settings: str) -> tuple[int, str]:
    outcome = subprocess.run(
        [project / ".ci" / "setup", extras],
        env={"PATH": str(project.parent / "bin"), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return outcome.returncode, outcome.stdout


def installed(project: Path) -> list[str]:
    return (project / "pip.log").read_text().splitlines()


def test_it_makes_an_environment_and_installs_once(project: Path):
    add_python(project)
    add_program(project, "gcc")
    said = "Making .venv with Python 3.12\nInstalling tinyfuse and its extras (demo) into .venv\n"
    assert setup(project) == (0, said)
    assert setup(project) == (0, "")
    assert installed(project) == [".[demo]"]


def test_it_installs_again_when_something_changed(project: Path):
    add_python(project)
    add_program(project, "gcc")
    setup(project)
    again = "Installing tinyfuse and its extras (demo) into .venv\n"
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert setup(project) == (0, again)
    moved = project.rename(project.parent / "moved")
    assert setup(moved) == (0, again)
    assert setup(moved, "dev") == (0, again.replace("demo", "dev"))
    assert setup(moved) == (0, "")


def test_without_a_compiler_it_installs_zig_and_says_so(project: Path):
    add_python(project)
    assert setup(project)[1].startswith(
        "There is no C compiler (gcc, clang, cc): installing the one in the ziglang wheel.\n"
    )
    assert setup(project, "zig,dev")[0] == 0
    assert installed(project) == [".[demo,zig]", ".[zig,dev]"]


def test_a_compiler_in_cc_will_do(project: Path):
    add_python(project)
    setup(project, CC="tools/gcc -m64")
    assert installed(project) == [".[demo]"]


def test_another_python_can_be_named(project: Path):
    add_program(project, "gcc")
    text = PYTHON.format(version="3.13", too_old=0, without_venv=0)
    add_program(project, "my python", text)
    assert setup(project, PYTHON="my python")[1].startswith("Making .venv with Python 3.13\n")


def test_no_python(project: Path):
    assert setup(project) == (
        1,
        "There is no 'python3'. tinyfuse needs Python 3.11 or newer: apt install python3 "
        "python3-venv,\nor name one: make demo PYTHON=/path/to/python3\n",
    )


def test_an_old_python(project: Path):
    add_python(project, "3.9", old=True)
    assert setup(project) == (
        1,
        "tinyfuse needs Python 3.11 or newer, 'python3' is Python 3.9.\n"
        "Name a newer one: make demo PYTHON=/path/to/python3\n",
    )


def test_a_python_without_venv(project: Path):
    add_python(project, venv=False)
    add_program(project, "gcc")
    assert setup(project) == (
        1,
        "'python3' (Python 3.12) cannot make virtual environments: its venv module is not "
        "installed.\nInstall it: apt install python3-venv (elsewhere it comes with Python),\n"
        "or name a Python that has it: make demo PYTHON=/path/to/python3\n",
    )
    assert not (project / ".venv").exists()
