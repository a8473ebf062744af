"""NVIDIA's compiler as a library: it takes the same text as nvcc, and says the same of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tinyfuse
from tests.device_programs import PROGRAMS
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import CompilationError
from tinyfuse.runtime import nvrtc
from tinyfuse.runtime.nvcc import Cubin, compile_cubin
from tinyfuse.runtime.nvrtc import built_cubin, find_nvrtc, require_compiler

GOLDEN = Path(__file__).parent / "golden"

needs_nvrtc = pytest.mark.skipif(
    find_nvrtc() is None, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc"
)


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NVCC", raising=False)
    return tmp_path


def installed(place: Path, package: str, library: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that has files of these names, in place of all others."""
    folder = place / package.replace(".", "/") / "lib"
    folder.mkdir(parents=True)
    for name in (library, "libnvrtc.alt.so.12", "libnvrtc-builtins.so.12.9"):
        (folder / name).write_bytes(b"")
    monkeypatch.setattr(sys, "path", [str(place)])
    for name in [name for name in sys.modules if name.partition(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    nvrtc._find.cache_clear()
    return folder / library


@pytest.mark.parametrize(
    ("package", "library"),
    [("nvidia.cu13", "libnvrtc.so.13"), ("nvidia.cuda_nvrtc", "libnvrtc.so.12")],
)
def test_the_library_of_the_package(
    own_place: Path, monkeypatch: pytest.MonkeyPatch, package: str, library: str
):
    expected = installed(own_place, package, library, monkeypatch)
    try:
        assert find_nvrtc() == expected
        require_compiler()
        monkeypatch.setenv("NVCC", "nvcc")  # whoever names nvcc wants that
        assert find_nvrtc() is None
    finally:
        nvrtc._find.cache_clear()


def test_without_the_package_it_is_nvcc(monkeypatch: pytest.MonkeyPatch):
    made = Cubin(Path("some.so"), "sm_90", {})
    monkeypatch.setattr(nvrtc, "find_nvrtc", lambda: None)
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *given: (made, given))
    assert built_cubin("text", "name", "sm_90") == (made, ("text", "name", "sm_90"))


def test_names_of_gccs_are_defined():
    """Those in the CUDA of goldens and programs that NVRTC does not have, but nvcc does."""
    head = (runtime_c() / "cuda_nvrtc.h").read_text() + (runtime_c() / "cuda_prelude.h").read_text()
    defined = set(re.findall(r"#define (\w+)", head))
    texts = [path.read_text() for path in GOLDEN.rglob("*.cu")]
    for function, arguments, _ in PROGRAMS.values():
        texts.append(tinyfuse.jit(function).lower(*arguments).as_text("cuda"))
    used = {name for text in texts for name in re.findall(r"__builtin_\w+|__\w+_TYPE__", text)}
    assert len(used) > 10
    assert used - defined == set()


@needs_nvrtc
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(own_place: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """Every kernel is there; the second time it is in the cache."""
    function, arguments = PROGRAMS[name].function, PROGRAMS[name].arguments
    lowered = tinyfuse.jit(function, target="cuda").lower(*arguments)
    cuda = lowered.cuda[0]
    made = built_cubin(cuda.text, name, "sm_90")
    assert made.path.read_bytes()[:4] == b"\x7fELF"
    assert made.resources.keys() == {each.function.name for each in lowered.loops.kernels}
    assert all(0 < each.registers <= 255 for each in made.resources.values())
    assert built_cubin(cuda.text, name, "sm_80").path != made.path
    monkeypatch.setattr(nvrtc, "_compile", None)
    assert built_cubin(f"// the same\n{cuda.text}", name, "sm_90") == made


@needs_nvrtc
def test_what_is_refused(own_place: Path):
    with pytest.raises(CompilationError) as caught:
        built_cubin("int x;\nkernel\n", "softmax", "sm_90")
    assert str(caught.value).startswith("NVRTC failed on the C of softmax (exit status 6).\n")
    assert "kernel.cu(1): error: A namespace scope variable" in str(caught.value)


@needs_nvrtc
def test_cubins_of_both_are_apart(own_place: Path, monkeypatch: pytest.MonkeyPatch):
    try:
        other = compile_cubin('extern "C" __global__ void kernel() {}', "one", "sm_90")
    except tinyfuse.errors.CudaCompilerNotFoundError:
        pytest.skip("nvcc is not installed")
    made = built_cubin('extern "C" __global__ void kernel() {}', "one", "sm_90")
    assert made.path != other.path
    assert made.resources.keys() == other.resources.keys() == {"kernel"}
