"""NVIDIA's compiler: how it is found, what it says of kernels, what those of the tests take."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

import pytest

from tests.cuda_kernels import LAUNCHES, source
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import CompilationError, CudaCompilerNotFoundError
from tinyfuse.runtime import nvcc
from tinyfuse.runtime.nvcc import Cubin, Resources, compile_cubin, find_nvcc, parse_resources

WORDS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'wide' for 'sm_90'
ptxas info    : Function properties for wide
    944 bytes stack frame, 940 bytes spill stores, 944 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 944 bytes cumulative stack size
ptxas info    : Compile time = 31.119 ms
ptxas info    : Compiling entry function 'softmax' for 'sm_90'
ptxas info    : Function properties for softmax
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, used 1 barriers, 32 bytes smem
ptxas info    : Compile time = 5.203 ms
"""


def test_what_ptxas_says_is_understood():
    assert parse_resources(WORDS) == {
        "wide": Resources(registers=255, spilled=1884, stack=944, shared=0, barriers=0),
        "softmax": Resources(registers=31, spilled=0, stack=0, shared=32, barriers=1),
    }


VERSION = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88"


@pytest.fixture
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("NVCC", raising=False)
    monkeypatch.setattr(nvcc, "PLACES", ())
    nvcc._find.cache_clear()
    return tmp_path


def stand_in(path: Path, *, version: str = VERSION, does: str = "") -> Path:
    """A program that says that it is nvcc, and writes what ptxas would say."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!/bin/sh\ncase $* in *--version) echo {shlex.quote(version)}; exit;; esac\n"
        f"echo run >> {path}.runs\n{does}\necho cubin > kernel.so\necho {shlex.quote(WORDS)} >&2\n"
    )
    path.chmod(0o755)
    return path


def test_no_nvcc(own_place: Path):
    with pytest.raises(CudaCompilerNotFoundError) as caught:
        find_nvcc()
    assert str(caught.value) == (
        "compiling for a GPU needs nvcc, and there is none on PATH, in CUDA_HOME or in "
        "/usr/local/cuda: install NVIDIA's CUDA toolkit or its package nvidia-cuda-nvrtc, or name "
        'nvcc in the environment variable NVCC; target="cuda-emulated" runs the same kernels on '
        "the CPU"
    )


def test_nvcc_is_the_one_of_nvcc_then_of_path_then_of_cuda_home(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
):
    home = stand_in(own_place / "home" / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(own_place / "home"))
    assert find_nvcc()[0] == (str(home),)
    on_path = stand_in(own_place / "bin" / "nvcc")
    monkeypatch.setenv("PATH", f"{own_place}/bin:/usr/bin:/bin")
    assert find_nvcc()[0] == (str(on_path),)
    named = stand_in(own_place / "other")
    monkeypatch.setenv("NVCC", f"{named} -ccbin gcc")
    assert find_nvcc()[0] == (str(named), "-ccbin", "gcc")


def test_a_program_that_is_not_nvcc(own_place: Path, monkeypatch: pytest.MonkeyPatch):
    named = stand_in(own_place / "other", version="gcc 12")
    monkeypatch.setenv("NVCC", str(named))
    with pytest.raises(CudaCompilerNotFoundError, match="does not say that it is NVIDIA's"):
        find_nvcc()
    monkeypatch.setenv("NVCC", "nvcc-42")
    with pytest.raises(CudaCompilerNotFoundError, match="there is no program 'nvcc-42'"):
        find_nvcc()


def test_a_text_is_compiled_once_for_each_architecture(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
):
    program = stand_in(own_place / "nvcc")
    monkeypatch.setenv("NVCC", str(program))
    first = compile_cubin("// one\nkernel", "one", "sm_90")
    again = compile_cubin("kernel // the same", "two", "sm_90")
    other = compile_cubin("kernel", "two", "sm_80")
    assert first.path == again.path != other.path
    assert first.path.read_bytes() == b"cubin\n"
    assert first.resources == again.resources == parse_resources(WORDS)
    assert Path(f"{program}.runs").read_text() == "run\nrun\n"


def test_a_text_that_is_refused(own_place: Path, monkeypatch: pytest.MonkeyPatch):
    complaint = "echo 'kernel.cu(2): error: identifier \"x\" is undefined' >&2; exit 2"
    program = stand_in(own_place / "nvcc", does=complaint)
    monkeypatch.setenv("NVCC", str(program))
    with pytest.raises(CompilationError) as caught:
        compile_cubin("one\ntwo\n", "softmax", "sm_90")
    kept = next((own_place / "cache" / "failed").glob("softmax-*.c"))
    assert str(caught.value).splitlines()[:4] == [
        f"{program} failed on the C of softmax (exit status 2).",
        "The compiler's words:",
        '    kernel.cu(2): error: identifier "x" is undefined',
        f"The C was kept in {kept}",
    ]


# -- the real one

# Registers on sm_80 and sm_90, bytes of shared memory, as nvcc 13.0 has them; nothing is spilled.
TAKEN = {
    "atomic_sum": (12, 13, 32),
    "attention": (128, 127, 20736),
    "column_sums": (17, 18, 2048),
    "convolution": (32, 32, 0),
    "elementwise": (24, 32, 0),
    "gather": (24, 24, 0),
    "gemm": (64, 71, 8448),
    "histogram": (8, 12, 1024),
    "layernorm": (59, 63, 0),
    "partial_sums": (14, 14, 32),
    "scan": (10, 11, 4096),
    "softmax": (31, 31, 32),
    "sort": (19, 19, 1024),
    "stencil": (28, 30, 3056),
    "tensor_cores": (48, 60, 10240),
    "transpose": (28, 29, 4224),
    "transpose_naive": (12, 12, 0),
    "votes": (16, 18, 0),
    "warp_exchange": (14, 14, 512),
}
RELEASE = "release 13.0, V13.0.88"


@cache
def corpus(architecture: str) -> Cubin:
    """All kernels of the tests in one text, since nvcc takes a second for each."""
    text = "\n".join(source(file) for file in dict.fromkeys(launch().file for launch in LAUNCHES))
    head = (runtime_c() / "cuda_on_gpu.h").read_text()
    return compile_cubin(text, "the kernels of the tests", architecture, head=head)


def has_nvcc() -> bool:
    try:
        return bool(find_nvcc())
    except CudaCompilerNotFoundError:
        return False


needs_nvcc = pytest.mark.skipif(not has_nvcc(), reason="nvcc is not installed")


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_no_kernel_spills_or_takes_more_than_128_registers(architecture: str):
    resources = corpus(architecture).resources
    assert len(resources) == len(LAUNCHES)
    assert {name: r.spilled for name, r in resources.items() if r.spilled} == {}
    assert {name: r.registers for name, r in resources.items() if r.registers > 128} == {}


@needs_nvcc
@pytest.mark.skipif(
    has_nvcc() and RELEASE not in find_nvcc()[1], reason=f"another nvcc than {RELEASE}"
)
def test_what_kernels_take():
    before, after = corpus("sm_80").resources, corpus("sm_90").resources
    assert {
        name: (before[name].registers, after[name].registers, after[name].shared) for name in after
    } == TAKEN
