"""NVIDIA's driver as tinyfuse calls it: streams, events, memory, launches and what can go wrong."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import cffi
import numpy as np
import pytest

from tests.cuda_kernels import normal, source
from tinyfuse.errors import CudaError, DeviceMemoryError, NoGpuError
from tinyfuse.runtime import driver_declarations, emulator_declarations, nvrtc_declarations
from tinyfuse.runtime.device_array import copied, empty
from tinyfuse.runtime.driver import Device, Driver, Event, Memory, Module, Stream, launch
from tinyfuse.testing.fake_gpu import FakeDriver, FakeState

F32 = np.dtype(np.float32)
NOTHING = FakeState(0, 0, 0, 0, 0, 0)


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    made = FakeDriver()
    yield made
    gc.collect()


@pytest.fixture
def stream(driver: FakeDriver) -> Stream:
    return Stream(Device(driver))


def transposing(stream: Stream, driver: FakeDriver) -> object:
    module = Module(stream.device, driver.image_of(source("transpose")))
    return module.function("transpose")


def put_transpose(function: object, stream: Stream, x, y) -> None:
    numbers = [np.uint64(x.address), np.uint64(y.address), *map(np.int32, x.shape)]
    launch(function, stream, (2, 2, 1), (32, 8, 1), numbers)


@pytest.mark.parametrize("module", [driver_declarations, emulator_declarations, nvrtc_declarations])
def test_declarations_are_what_cffi_generates(module, tmp_path: Path):
    text = Path(module.__file__).read_text()
    declared = [line for line in text.splitlines() if line.startswith("    ") and line[-1] == ";"]
    ffi = cffi.FFI()
    ffi.cdef("\n".join(declared))
    ffi.set_source(module.__name__, None)
    generated = tmp_path / "declarations.py"
    ffi.emit_python_code(str(generated))
    assert text.endswith(generated.read_text().partition("import _cffi_backend\n\n")[2])


# -- devices


def test_a_machine_without_a_driver():
    with pytest.raises(NoGpuError) as caught:
        Driver("libcuda-that-is-missing.so.1")
    message = str(caught.value)
    assert message.startswith("there is no GPU to run on: ")
    assert message.endswith(
        'install NVIDIA\'s driver, or run the same kernels on the CPU with target="cuda-emulated"'
    )


def test_a_machine_without_a_gpu():
    with pytest.raises(NoGpuError) as caught:
        FakeDriver(devices=0)
    assert str(caught.value) == (
        "there is no GPU to run on: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected); "
        'run the same kernels on the CPU with target="cuda-emulated"'
    )


def test_a_gpu_that_there_is_not(driver: FakeDriver):
    with pytest.raises(NoGpuError, match=r"^there is no GPU 1: there are 1; run the same kernels"):
        Device(driver, 1)


def test_what_a_device_is(driver: FakeDriver):
    device = Device(driver)
    assert repr(device) == "<GPU 0: emulated GPU 0>"
    assert (device.architecture, device.multiprocessors, device.most_shared) == (
        *("sm_90", 4),
        232448,
    )


# -- streams and memory


def test_what_is_put_into_a_stream_is_done_in_order(driver: FakeDriver, stream: Stream):
    x = normal(40, 50)
    there, back = copied(x, stream), empty((50, 40), F32, stream)
    put_transpose(transposing(stream, driver), stream, there, back)
    assert driver.state.launches == 0  # nothing has been waited for
    np.testing.assert_array_equal(back.numpy(), x.T)
    assert driver.state == FakeState(16000, 2, 1, 0, 0, 1)


def test_all_is_given_back(driver: FakeDriver):
    stream = Stream(Device(driver))
    memories = [copied(normal(10), stream) for _ in range(3)]
    events = [Event(stream.device) for _ in range(2)]
    assert driver.state == FakeState(120, 3, 1, 2, 0, 0)
    del stream, memories, events
    gc.collect()
    assert driver.state == NOTHING


def test_a_stream_waits_for_another(driver: FakeDriver, stream: Stream):
    x, other = normal(40, 50), Stream(stream.device)
    there, back = copied(x, stream), empty((50, 40), F32, other)
    other.after(stream)
    put_transpose(transposing(stream, driver), other, there, back)
    back.stream = other
    np.testing.assert_array_equal(back.numpy(), x.T)


def test_a_stream_that_does_not_wait_reads_memory_without_a_value(
    driver: FakeDriver, stream: Stream
):
    other = Stream(stream.device)
    there, back = copied(normal(40, 50), stream), empty((50, 40), F32, other)
    put_transpose(transposing(stream, driver), other, there, back)
    with pytest.raises(CudaError) as caught:
        other.wait()
    assert str(caught.value) == (
        "waiting for a stream failed: CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"
    )
    assert driver.message == (
        "kernel transpose, block (0,0,0), thread (0,0,0), line 6: it reads x[0], which has no "
        "value yet"
    )


def test_after_a_kernel_went_wrong_the_device_takes_no_more(driver: FakeDriver, stream: Stream):
    there, back = empty((40, 50), F32, stream), empty((50, 40), F32, stream)
    put_transpose(transposing(stream, driver), stream, there, back)
    with pytest.raises(CudaError):
        stream.wait()
    with pytest.raises(CudaError, match=r"^making an event failed: CUDA_ERROR_LAUNCH_FAILED"):
        Event(stream.device)


def test_time_between_events(stream: Stream):
    first, last = Event(stream.device), Event(stream.device)
    first.record(stream)
    last.record(stream)
    last.wait()
    assert last.seconds_since(first) == pytest.approx(1e-3)


def test_more_memory_than_there_is():
    stream = Stream(Device(FakeDriver(nbytes=1000)))
    kept = Memory(stream, 600)
    with pytest.raises(DeviceMemoryError) as caught:
        Memory(stream, 401)
    assert str(caught.value) == (
        "allocating 401 bytes on emulated GPU 0 failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
    )
    assert isinstance(caught.value, MemoryError)
    assert Memory(stream, 400).address != kept.address


# -- kernels


def test_a_kernel_that_the_image_lacks(driver: FakeDriver, stream: Stream):
    module = Module(stream.device, driver.image_of(source("transpose")))
    with pytest.raises(CudaError) as caught:
        module.function("softmax")
    assert str(caught.value) == (
        "finding kernel softmax failed: CUDA_ERROR_NOT_FOUND (named symbol not found)"
    )


def test_an_image_that_is_none(stream: Stream):
    with pytest.raises(CudaError, match=r"^loading kernels failed: CUDA_ERROR_INVALID_IMAGE"):
        Module(stream.device, b"an image of something else")


def test_a_launch_that_is_too_large(driver: FakeDriver, stream: Stream):
    x = copied(normal(40, 50), stream)
    numbers = [np.uint64(x.address), np.uint64(x.address), np.int32(40), np.int32(50)]
    with pytest.raises(CudaError, match=r"^launching a kernel failed: CUDA_ERROR_LAUNCH_OUT_OF"):
        launch(transposing(stream, driver), stream, (2, 2, 1), (32, 9, 1), numbers)


def test_a_graph_does_the_same_again(driver: FakeDriver, stream: Stream):
    x, function = normal(40, 50), transposing(stream, driver)
    there, back = copied(x, stream), empty((50, 40), F32, stream)
    with stream.capture() as graph:
        put_transpose(function, stream, there, back)
    assert driver.state.launches == 0
    for _ in range(3):
        graph.launch(stream)
    np.testing.assert_array_equal(back.numpy(), x.T)
    assert (driver.state.launches, driver.state.graphs) == (3, 1)
    del graph
    gc.collect()
    assert driver.state.graphs == 0


CALLS = {
    "cuMemAllocAsync": "allocating 8 bytes on emulated GPU 0",
    "cuMemcpyHtoDAsync_v2": "copying 8 bytes to emulated GPU 0",
    "cuMemcpyDtoHAsync_v2": "copying 8 bytes from emulated GPU 0",
    "cuStreamSynchronize": "waiting for a stream",
}


@pytest.mark.parametrize("function", CALLS)
def test_every_call_says_what_was_attempted(driver: FakeDriver, stream: Stream, function: str):
    assert stream.device.name == "emulated GPU 0"
    driver.fail(function, 400)
    with pytest.raises(CudaError) as caught:
        copied(normal(2), stream).numpy()
    assert str(caught.value) == (
        f"{CALLS[function]} failed: CUDA_ERROR_INVALID_HANDLE (invalid resource handle)"
    )


def test_an_error_that_the_driver_does_not_know(driver: FakeDriver, stream: Stream):
    driver.fail("cuStreamSynchronize", 12345)
    with pytest.raises(CudaError, match=r"^waiting for a stream failed: error 12345$"):
        stream.wait()
