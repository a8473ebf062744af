"""Wheel, sdist and editable install: each in a fresh environment, in a path with spaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed (extra: dev)")

ROOT = Path(__file__).parent.parent
CARRIED = ("tinyfuse", "runtime_c", "tests", "examples", ".ci")

# Compiles a kernel and the pool, both from C that was installed.
PROGRAM = """
import numpy as np
import tinyfuse
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.runtime.pool import pool

@tinyfuse.jit
def curve(x):
    return np.exp(-x * x)

x = np.linspace(-1, 1, 5, dtype=np.float32)
np.testing.assert_allclose(curve(x), np.exp(-x * x), rtol=1e-6)
assert pool(2)
print(tinyfuse.__file__)
print(runtime_c())
"""


def run(*command: str | Path, at: Path) -> str:
    hidden = ("PYTHONPATH", "PYTHONHOME", "PIP_REQUIRE_VIRTUALENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    outcome = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project without what git ignores."""
    copy = tmp_path_factory.mktemp("packaging") / "my tiny project"
    copy.mkdir()
    for name in CARRIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    return copy


@pytest.fixture(scope="module")
def dist(project: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-d", "dist", at=project)
    return project / "dist"


def environment(path: Path) -> Path:
    """The Python of a fresh environment that borrows dependencies, but no tinyfuse, from this one.

    Files that would add further directories, as that of an editable install, are not followed.
    """
    run(sys.executable, "-m", "venv", "--without-pip", path, at=path.parent)
    python = path / "bin" / "python"
    packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = Path(run(python, "-c", packages, at=path).strip())
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (folder / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    return python


def install(python: Path, *what: str | Path) -> None:
    quiet = ("--disable-pip-version-check", "--root-user-action=ignore")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", *quiet)
    alone = ("--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(*pip, *alone, *what, at=python.parent)


def installed(python: Path) -> list[Path]:
    """Runs the program elsewhere; where it found the package and its C."""
    elsewhere = python.parent.parent.parent / "else where"
    elsewhere.mkdir()
    return [Path(line) for line in run(python, "-c", PROGRAM, at=elsewhere).splitlines()]


def test_the_wheel_works(dist: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    install(python, next(dist.glob("*.whl")))
    package, c = installed(python)
    assert package.is_relative_to(tmp_path)
    assert c == package.parent / "runtime_c"


def test_the_sdist_works(dist: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    install(python, next(dist.glob("*.tar.gz")))
    package, c = installed(python)
    assert package.is_relative_to(tmp_path)
    assert c == package.parent / "runtime_c"


def test_the_editable_install_works(project: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    install(python, "--editable", project)
    assert installed(python) == [project / "tinyfuse" / "__init__.py", project / "runtime_c"]


def test_the_wheel_has_all_modules_and_all_c_and_nothing_else(dist: Path):
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    modules = {str(path.relative_to(ROOT)) for path in ROOT.glob("tinyfuse/**/*.py")}
    c = {f"tinyfuse/runtime_c/{path.name}" for path in (ROOT / "runtime_c").iterdir()}
    about = {name for name in names if name.startswith("tinyfuse-0.1.0.dist-info/")}
    assert set(names) - about == modules | c | {"tinyfuse/py.typed"}
    assert "tinyfuse-0.1.0.dist-info/licenses/LICENSE" in about


def test_the_sdist_has_what_it_takes_to_test_it(dist: Path):
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "LICENSE", "pyproject.toml", ".clang-format", ".ci/run", ".ci/setup"}
    wanted |= {"README.md"}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / "runtime_c").iterdir()}
    assert wanted <= names
    assert "tests/test_packaging.py" in names
