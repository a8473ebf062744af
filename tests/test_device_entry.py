"""Whole programs through the driver: the same bits as C, one call, nothing left on the device."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests import device_programs as programs
from tests.cuda_kernels import normal
from tests.device_arrays import run_on
from tinyfuse.emit.launch import (
    ChoiceLaunches,
    CudaBuffer,
    CudaProgram,
    Launch,
    LaunchStep,
    LaunchSteps,
    RepeatLaunches,
    WhileLaunches,
)
from tinyfuse.errors import CudaError, DeviceArrayError, DeviceMemoryError, NoGpuError
from tinyfuse.runtime import device_entry
from tinyfuse.runtime.device_array import DeviceArray, copied
from tinyfuse.runtime.device_entry import DeviceEntry
from tinyfuse.runtime.driver import Device, Driver, Stream
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.testing.fake_gpu import FakeDriver

IDS = np.arange(50) ** 2 % 16

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "elementwise": (programs.elementwise, (normal(70), normal(70))),
    "softmax": (programs.softmax, (normal(5, 100),)),
    "layernorm": (programs.layernorm, (normal(5, 100), normal(100), normal(100))),
    "bias_relu": (programs.bias_relu, (normal(20, 30), normal(30, 24), normal(24))),
    "total": (programs.total, (normal(3000),)),
    "columns": (programs.columns, (normal(30, 40),)),
    "smoothed": (programs.smoothed, (normal(100),)),  # a loop of launches
    "halved": (programs.halved, (normal(100),)),  # until a test of the device's says so
    "sorted_rows": (programs.sorted_rows, (normal(4, 33),)),
}


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


def lowered(name: str) -> Any:
    function, arguments = PROGRAMS[name]
    return tinyfuse.jit(function).lower(*arguments)


def program(name: str) -> CudaProgram:
    return lowered(name).on("cuda").cuda[0]


def results(name: str) -> list[np.ndarray]:
    function, arguments = PROGRAMS[name]
    made = tinyfuse.jit(function)(*arguments)
    return [np.asarray(part) for part in (made if isinstance(made, tuple) else (made,))]


def called(entry: DeviceEntry, name: str) -> list[np.ndarray]:
    """What the entry gives for numpy arrays."""
    expected = results(name)
    arrays = [np.zeros(buffer.size, buffer.dtype) for buffer in entry.buffers("output")]
    assert entry([*PROGRAMS[name][1], *arrays]) == 0
    return [made.reshape(part.shape) for made, part in zip(arrays, expected, strict=True)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_bits_of_c(driver: FakeDriver, name: str):
    entry = DeviceEntry(program(name), Device(driver), driver.image)
    for _ in range(2):
        for made, expected in zip(called(entry, name), results(name), strict=True):
            assert made.tobytes() == expected.tobytes()
    del entry
    gc.collect()
    assert (driver.state.memories, driver.state.streams) == (0, 0)


STEPS = """
extern "C" __global__ void add(TF_IN(int64_t) x, TF_IN(int64_t) turn, TF_OUT(int64_t) y) {
  y[threadIdx.x] = x[threadIdx.x] + turn[0];
}
extern "C" __global__ void below(TF_IN(int64_t) x, TF_OUT(bool) test) {
  test[0] = x[0] < 40;
}
"""


def steps_program(*steps: LaunchStep) -> CudaProgram:
    """x, a choice, the result, the number of a turn, another array, a test."""
    names = ("x", "choice", "y", "turn", "z", "test")
    roles = ("input", "input", "output", "scratch", "scratch", "scratch")
    sizes, offsets = (4, 1, 4, 1, 4, 1), (0, 0, 0, 0, 256, 512)
    buffers = [
        CudaBuffer(name, np.dtype(np.bool_ if name == "test" else np.int64), size, role, offset)
        for name, size, role, offset in zip(names, sizes, roles, offsets, strict=True)
    ]
    return CudaProgram("steps", STEPS, tuple(buffers), LaunchSteps(steps), 768)


def added(x: int, turn: int, y: int) -> Launch:
    return Launch("add", (1, 1, 1), (4, 1, 1), 0, (x, turn, y))


X, CHOICE, Y, TURN, Z, TEST = range(6)
TESTED = Launch("below", (1, 1, 1), (1, 1, 1), 0, (Y, TEST))
LOOP = RepeatLaunches(5, LaunchSteps((added(Z, TURN, Y),), ((Y, Z), (Z, Y))), TURN)

STEPS_GIVEN = {
    "turns": ((added(X, CHOICE, Z), LOOP), lambda x, c: x + c + 0 + 1 + 2 + 3 + 4),
    "counted turns": (
        (
            added(X, CHOICE, Y),
            RepeatLaunches(1 << 62, LaunchSteps((added(Y, TURN, Y),)), TURN, CHOICE),
        ),
        lambda x, c: x + c + sum(range(c)),
    ),
    "while": (
        (
            added(X, CHOICE, Y),
            TESTED,
            WhileLaunches(TEST, LaunchSteps((added(Y, CHOICE, Y), TESTED))),
        ),
        lambda x, c: x + c * (1 + max(0, -(-(40 - (x[0] + c)) // c))),
    ),
    "choice": (
        (
            ChoiceLaunches(
                CHOICE,
                (
                    LaunchSteps((added(X, CHOICE, Y),)),
                    LaunchSteps((added(X, CHOICE, Z), added(Z, CHOICE, Y))),
                    LaunchSteps((added(X, X, Y),)),
                ),
            ),
        ),
        lambda x, c: [x + c, x + 2 * c, x + x[0]][min(c, 2)],
    ),
}


@pytest.mark.parametrize("choice", [1, 2, 7])
@pytest.mark.parametrize("name", STEPS_GIVEN)
def test_steps_around_launches(driver: FakeDriver, name: str, choice: int):
    steps, expected = STEPS_GIVEN[name]
    made = steps_program(*steps)
    x, y = np.arange(3, 7), np.zeros(4, np.int64)
    DeviceEntry(made, Device(driver), driver.image)([x, np.array([choice]), y])
    np.testing.assert_array_equal(y, expected(x, choice))
    report = run_program(made, [x, np.array([choice])])
    assert report.error is None
    np.testing.assert_array_equal(report.outputs[0], y)


def on_device(entry: DeviceEntry, name: str, stream: Stream) -> tuple[list[DeviceArray], ...]:
    inputs = [copied(array, stream) for array in PROGRAMS[name][1]]
    return inputs, entry.put(stream, inputs)


def test_nothing_waits_where_nothing_has_to(driver: FakeDriver):
    """All launches are put into the stream by one call, which comes back before they are done."""
    entry = DeviceEntry(program("smoothed"), Device(driver), driver.image)
    stream = Stream(entry.device)
    _, (made,) = on_device(entry, "smoothed", stream)
    assert driver.state.launches == 0
    assert made.numpy().tobytes() == results("smoothed")[0].tobytes()


def test_outputs_of_the_callers(driver: FakeDriver):
    entry = DeviceEntry(program("softmax"), Device(driver), driver.image)
    stream = Stream(entry.device)
    x, y = copied(PROGRAMS["softmax"][1][0], stream), copied(np.zeros(500, np.float32), stream)
    assert entry.put(stream, [x], [y]) == [y]
    np.testing.assert_array_equal(y.numpy().reshape(5, 100), results("softmax")[0])


def test_a_graph_of_a_program(driver: FakeDriver):
    entry = DeviceEntry(program("smoothed"), Device(driver), driver.image)
    stream = Stream(entry.device)
    inputs, (made,) = on_device(entry, "smoothed", stream)
    stream.wait()
    before = driver.state.launches
    graph = entry.graph(stream, inputs, [made])
    assert driver.state.launches == before
    graph.launch(stream)
    assert made.numpy().tobytes() == results("smoothed")[0].tobytes()
    assert driver.state.launches == 2 * before


@pytest.mark.parametrize("name", ["counted turns", "while", "choice"])
def test_what_can_be_no_graph(driver: FakeDriver, name: str):
    steps, _ = STEPS_GIVEN[name]
    entry = DeviceEntry(steps_program(*steps), Device(driver), driver.image)
    stream = Stream(entry.device)
    inputs = [copied(np.arange(4), stream), copied(np.arange(1), stream)]
    with pytest.raises(CudaError) as caught:
        entry.graph(stream, inputs, [copied(np.arange(4), stream)])
    assert str(caught.value) == (
        "steps can be no graph: what it launches depends on numbers that it computes; "
        "call it instead"
    )


def test_a_launch_that_is_refused_is_named(driver: FakeDriver):
    made = program("softmax")
    entry = DeviceEntry(made, Device(driver), driver.image)
    driver.fail("cuLaunchKernel", 701)
    with pytest.raises(CudaError) as caught:
        called(entry, "softmax")
    assert str(caught.value) == (
        f"launching kernel {made.steps.body[0].kernel} failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES "
        "(too many resources requested for launch)"
    )
    gc.collect()
    called(entry, "softmax")  # the next call is not affected


def test_memory_that_does_not_suffice():
    driver = FakeDriver(nbytes=1000)
    entry = DeviceEntry(program("columns"), Device(driver), driver.image)
    with pytest.raises(DeviceMemoryError, match=r"^allocating 4800 bytes on emulated GPU 0 failed"):
        called(entry, "columns")
    del entry
    gc.collect()
    assert driver.state.memories == 0


def part(array: DeviceArray) -> DeviceArray:
    """All of it but the first element."""
    place = array.address + array.dtype.itemsize
    return DeviceArray(place, (array.size - 1,), array.dtype, array.stream, array)


def test_inputs_that_are_not_aligned_are_copied(driver: FakeDriver):
    entry = DeviceEntry(program("elementwise"), Device(driver), driver.image)
    stream = Stream(entry.device)
    x, y = PROGRAMS["elementwise"][1]
    inputs = [part(copied(np.append(np.float32(0), array), stream)) for array in (x, y)]
    (made,) = entry.put(stream, inputs)
    assert made.numpy().tobytes() == results("elementwise")[0].tobytes()


def test_outputs_that_are_not_aligned_are_refused(driver: FakeDriver):
    entry = DeviceEntry(program("elementwise"), Device(driver), driver.image)
    stream = Stream(entry.device)
    inputs = [copied(array, stream) for array in PROGRAMS["elementwise"][1]]
    with pytest.raises(DeviceArrayError) as caught:
        entry.put(stream, inputs, [part(copied(np.zeros(71, np.float32), stream))])
    assert str(caught.value) == (
        "<float32[70] on emulated GPU 0> begins 4 bytes after a multiple of 16, where kernels "
        "cannot write it: pass an array that is no part of another one, or a copy"
    )


# -- jit(target="cuda")


def test_a_jitted_function_runs_on_the_gpu(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    run_on(driver, monkeypatch)
    function, arguments = PROGRAMS["layernorm"]
    made = tinyfuse.jit(function, target="cuda")(*arguments)
    assert made.tobytes() == results("layernorm")[0].tobytes()
    assert driver.state.launches == 1


def test_only_what_runs_on_the_cpu_is_profiled(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    run_on(driver, monkeypatch)
    function, arguments = PROGRAMS["softmax"]
    for target, words in (
        (
            "cuda",
            "softmax runs on a GPU, whose kernels are not timed one by one: profile the function "
            "with target='c', or the process with NVIDIA's Nsight Systems",
        ),
        (
            "cuda-emulated",
            "softmax runs on an emulated device, whose times say nothing of a GPU's: profile the "
            "function with target='c'",
        ),
    ):
        compiled = tinyfuse.jit(function, target=target).lower(*arguments).compile()
        with pytest.raises(ValueError) as raised:
            compiled.profile(*arguments)
        assert str(raised.value) == words


def test_a_jitted_function_without_a_gpu(monkeypatch: pytest.MonkeyPatch):
    def none() -> Device:
        return Device(Driver("libcuda-that-is-missing.so.1"))

    monkeypatch.setattr(device_entry, "default_device", none)
    function, arguments = PROGRAMS["softmax"]
    with pytest.raises(NoGpuError, match=r'with target="cuda-emulated"$'):
        tinyfuse.jit(function, target="cuda")(*arguments)
