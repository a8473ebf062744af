"""The examples of CUDA: on the emulator, and on a GPU that is none with a library that is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tests.device_arrays import Tensor, run_on, with_torch
from tests.test_examples import EXAMPLES
from tinyfuse.runtime.device_array import DeviceArray, as_device_array, copied
from tinyfuse.runtime.driver import Stream
from tinyfuse.testing.fake_gpu import FakeDriver

sys.path.insert(0, str(EXAMPLES))

import interop
import on_gpu


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stream]:
    device = run_on(FakeDriver(), monkeypatch)
    made = Stream(device)
    with_torch(made, monkeypatch)
    yield made
    for function in (interop.normalized, interop.descend):
        function.clear_cache()  # of a GPU that is no more


@pytest.mark.parametrize("example", on_gpu.EXAMPLES, ids=lambda each: each.function.__name__)
def test_cuda_gives_the_bits_of_c_and_is_one_kernel(example: on_gpu.Example):
    arguments = on_gpu.numbers(example.small)
    np.testing.assert_allclose(
        on_gpu.tinyfuse.jit(example.function)(*arguments),
        example.function(*arguments),
        rtol=1e-4,
        atol=1e-5,
    )
    assert on_gpu.verdict(example, "cuda-emulated") == "the bits of C"


def test_kernels_are_printed(capsys: pytest.CaptureFixture[str]):
    on_gpu.show(on_gpu.EXAMPLES[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["== softmax", "", "def softmax(x):"]
    assert lines[6].startswith("1 kernel; registers: ")
    assert lines[8] == "// e = np.exp(x - x.max(axis=-1, keepdims=True))"
    assert lines[12] == (
        'extern "C" __global__ void __launch_bounds__(256) softmax_out(TF_IN(float) x, '
        "TF_OUT(float) out) {"
    )
    assert lines[-2] == "}"


def test_without_a_gpu_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert on_gpu.main(["softmax"]) == 0
    emulated, on_a_gpu = capsys.readouterr().out.splitlines()[-2:]
    assert emulated == "softmax, emulated: the bits of C"
    assert on_a_gpu.startswith("softmax, on a GPU: ")
    monkeypatch.setattr(interop, "imported", lambda name: None)
    assert interop.main() == 0
    assert capsys.readouterr().out == (
        "neither PyTorch nor CuPy is here with a GPU: there is nothing to show\n"
    )


def library(stream: Stream) -> interop.Library:
    return interop.Library(
        "PyTorch 0",
        lambda array: Tensor(copied(array, stream)),
        lambda array: Tensor(as_device_array(array, stream)),
        lambda tensor: tensor.array.numpy(),
        lambda: stream.number,
    )


def test_interop(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(interop, "pytorch", lambda: library(stream))
    monkeypatch.setattr(interop, "cupy", lambda: None)
    assert interop.main() == 0
    assert capsys.readouterr().out == "PyTorch 0, layers: as numpy\nPyTorch 0, steps: as numpy\n"
    monkeypatch.setattr(interop, "close", lambda found, expected: False)
    assert interop.main() == 1
    assert "steps: WRONG" in capsys.readouterr().out
    assert type(interop.normalized(*[copied(np.ones(4, np.float32), stream)] * 3)) is DeviceArray
