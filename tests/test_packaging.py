"""Wheel, sdist and editable install: each in a fresh environment, in a path with spaces."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

setuptools = pytest.importorskip("setuptools", reason="setuptools is not installed (extra: dev)")
if int(setuptools.__version__.partition(".")[0]) < 77:
    pytest.skip("setuptools is too old (extra: dev)", allow_module_level=True)

ROOT = Path(__file__).parent.parent
BUILT = shutil.ignore_patterns("build", "dist", "*.so", "*.egg-info", "__pycache__")
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
print(tinyfuse.dispatch.extension is not None)
"""

EXTENSION = "tinyfuse/_dispatch" + sysconfig.get_config_var("EXT_SUFFIX")
HAS_COMPILER = shutil.which(shlex.split(sysconfig.get_config_var("CC") or "cc")[0]) is not None
HAS_HEADERS = Path(sysconfig.get_path("include"), "Python.h").exists()

BUILD = """
from setuptools import build_meta
print(build_meta.build_sdist("dist"), build_meta.build_wheel("dist"))
"""


def run(*command: str | Path, at: Path, **settings: str) -> str:
    hidden = ("PYTHONPATH", "PYTHONHOME", "PIP_REQUIRE_VIRTUALENV", "TINYFUSE_EXTENSION", "CC")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment.update(settings)
    outcome = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project without what git ignores."""
    copy = tmp_path_factory.mktemp("packaging") / "my tiny project"
    copy.mkdir()
    for name in CARRIED:
        shutil.copytree(ROOT / name, copy / name, ignore=BUILT)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    return copy


@pytest.fixture(scope="module")
def dist(project: Path) -> Path:
    run(sys.executable, "-c", BUILD, at=project)
    return project / "dist"


@pytest.fixture(scope="module")
def dist_without_compiler(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("packaging") / "without a compiler"
    shutil.copytree(project, copy, ignore=BUILT)
    run(sys.executable, "-c", BUILD, at=copy, CC="no-such-compiler")
    return copy / "dist"


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


def install(python: Path, *what: str | Path, **settings: str) -> None:
    quiet = ("--disable-pip-version-check", "--root-user-action=ignore")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", *quiet)
    alone = ("--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(*pip, *alone, *what, at=python.parent, **settings)


def installed(python: Path) -> tuple[Path, Path, bool]:
    """Runs the program elsewhere; where it found the package and its C, and if the extension."""
    elsewhere = python.parent.parent.parent / "else where"
    elsewhere.mkdir()
    package, c, has_extension = run(python, "-c", PROGRAM, at=elsewhere).splitlines()
    return Path(package), Path(c), has_extension == "True"


def test_the_wheel_works(dist: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    install(python, next(dist.glob("*.whl")))
    package, c, has_extension = installed(python)
    assert package.is_relative_to(tmp_path)
    assert c == package.parent / "runtime_c"
    assert has_extension == (HAS_COMPILER and HAS_HEADERS)


def test_the_wheel_works_without_the_extension(dist_without_compiler: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    wheel = next(dist_without_compiler.glob("*.whl"))
    assert EXTENSION not in zipfile.ZipFile(wheel).namelist()
    install(python, wheel)
    package, _, has_extension = installed(python)
    assert package.is_relative_to(tmp_path)
    assert not has_extension


def test_the_sdist_works(dist: Path, tmp_path: Path):
    python = environment(tmp_path / "an environment")
    install(python, next(dist.glob("*.tar.gz")))
    package, c, has_extension = installed(python)
    assert package.is_relative_to(tmp_path)
    assert c == package.parent / "runtime_c"
    assert has_extension == (HAS_COMPILER and HAS_HEADERS)


@pytest.mark.parametrize("compiler", ["the usual one", "no-such-compiler"])
def test_the_editable_install_works(project: Path, compiler: str, tmp_path: Path):
    copy = tmp_path / "a check out"
    shutil.copytree(project, copy, ignore=BUILT)
    python = environment(tmp_path / "an environment")
    usual = compiler == "the usual one"
    install(python, "--editable", copy, **({} if usual else {"CC": compiler}))
    expected = (copy / "tinyfuse" / "__init__.py", copy / "runtime_c")
    assert installed(python) == (*expected, usual and HAS_COMPILER and HAS_HEADERS)


def test_the_wheel_has_modules_c_and_what_describes_them_and_nothing_else(dist: Path):
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    modules = {str(path.relative_to(ROOT)) for path in ROOT.glob("tinyfuse/**/*.py")}
    c = {f"tinyfuse/runtime_c/{path.name}" for path in (ROOT / "runtime_c").iterdir()}
    about = {name for name in names if name.startswith("tinyfuse-0.1.0.dist-info/")}
    compiled = {EXTENSION} if HAS_COMPILER and HAS_HEADERS else set()
    others = {"tinyfuse/py.typed", "tinyfuse/trace/COVERAGE.md"}
    assert set(names) - about == modules | c | others | compiled
    assert "tinyfuse-0.1.0.dist-info/licenses/LICENSE" in about


def test_the_sdist_has_what_it_takes_to_test_it(dist: Path):
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    carried = [path for name in CARRIED for path in (ROOT / name).rglob("*") if path.is_file()]
    assert {
        str(path.relative_to(ROOT))
        for path in carried
        if "__pycache__" not in path.parts and path.suffix != ".so"
    } <= names
    wanted = {"Makefile", "LICENSE", "pyproject.toml", ".clang-format", ".ci/run", ".ci/setup"}
    wanted |= {"README.md", "setup.py"}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / "runtime_c").iterdir()}
    assert wanted <= names
    assert "tests/test_packaging.py" in names
