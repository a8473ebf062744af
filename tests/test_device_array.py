"""Arrays on a GPU handed over to other libraries, and taken from them."""

from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.cuda_kernels import normal
from tinyfuse.errors import DeviceArrayError
from tinyfuse.memory import is_on_device
from tinyfuse.runtime import exchange
from tinyfuse.runtime.device_array import (
    DeviceArray,
    as_device_array,
    copied,
    empty,
)
from tinyfuse.runtime.driver import Device, Stream
from tinyfuse.testing.fake_gpu import FakeDriver

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16),
]


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def stream(driver: FakeDriver) -> Stream:
    return Stream(Device(driver))


class Interface:
    """An array of a library that has `__cuda_array_interface__`."""

    def __init__(self, array: DeviceArray, **changes: Any) -> None:
        self.keeps = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


class Capsule:
    """An array of a library that has DLPack only. asked: the streams that consumers named."""

    def __init__(self, array: DeviceArray, device: tuple[int, int] = (2, 0)) -> None:
        self.array, self.device = array, device
        self.asked: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream)


def test_a_copy_there_and_back(stream: Stream):
    x = normal(6, 8)[:, ::2]
    made = copied(x, stream)
    np.testing.assert_array_equal(made.numpy(), x)
    assert repr(made) == "<float32[6, 4] on emulated GPU 0>"
    assert (made.shape, made.size, made.nbytes) == ((6, 4), 24, 96)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
@pytest.mark.parametrize("wrap", [Interface, Capsule, lambda array: array])
def test_small_arrays(stream: Stream, shape: tuple[int, ...], wrap: Any):
    x = np.full(shape, 2.5)
    taken = as_device_array(wrap(copied(x, stream)), stream)
    np.testing.assert_array_equal(taken.numpy(), x)


def test_the_interface(stream: Stream):
    made = copied(normal(3, 4), stream)
    assert made.__cuda_array_interface__ == {
        "version": 3,
        "shape": (3, 4),
        "typestr": "<f4",
        "data": (made.address, False),
        "strides": None,
        "stream": stream.number,
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dlpack_of_every_dtype(stream: Stream, dtype: Any):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    made = copied(x, stream)
    taken = as_device_array(Capsule(made), stream)
    assert (taken.address, taken.shape, taken.dtype) == (made.address, (3, 4), x.dtype)
    np.testing.assert_array_equal(taken.numpy(), x)


def test_consumers_keep_the_memory(driver: FakeDriver, stream: Stream):
    before = driver.state.memories
    taken = [
        as_device_array(wrap(copied(normal(5), stream)), stream) for wrap in (Interface, Capsule)
    ]
    gc.collect()
    assert driver.state.memories == before + 2
    assert len(exchange._exported) == 1
    del taken
    gc.collect()
    stream.wait()
    assert driver.state.memories == before
    assert exchange._exported == {}


def test_a_capsule_that_nobody_takes(driver: FakeDriver, stream: Stream):
    capsule = copied(normal(5), stream).__dlpack__()
    assert len(exchange._exported) == 1
    del capsule
    gc.collect()
    stream.wait()
    assert (driver.state.memories, exchange._exported) == (0, {})


def test_a_capsule_is_taken_once(stream: Stream):
    capsule = copied(normal(5), stream).__dlpack__()
    exchange.imported(capsule)
    with pytest.raises(DeviceArrayError, match="holds no array of DLPack, or one that was taken"):
        exchange.imported(capsule)


@pytest.mark.parametrize("wrap", [Interface, Capsule, lambda array: array])
def test_the_consumers_stream_waits_for_the_producers(
    driver: FakeDriver, stream: Stream, wrap: Any
):
    """Else it would read memory that has no value yet: nothing was waited for."""
    x, other = normal(5), Stream(stream.device)
    taken = as_device_array(wrap(copied(x, stream)), other)
    np.testing.assert_array_equal(taken.numpy(), x)


def test_dlpack_is_told_the_stream(stream: Stream):
    capsule = Capsule(copied(normal(5), stream))
    as_device_array(capsule, stream)
    as_device_array(capsule, Stream(stream.device, 0))
    assert capsule.asked == [stream.number, 1]


def test_what_is_on_a_device(stream: Stream):
    made = copied(normal(5), stream)
    objects = (made, Interface(made), Capsule(made), Capsule(made, (1, 0)), normal(5), 3)
    assert [is_on_device(value) for value in objects] == [True, True, True, False, False, False]


REFUSED: dict[str, tuple[Any, str]] = {
    "no array": (
        lambda array: 3,
        "an object of type int is no array on a GPU: it has neither __cuda_array_interface__ nor "
        "__dlpack__",
    ),
    "steps": (
        lambda array: Interface(array, strides=(4, 12)),
        "float32[3, 4]: its elements do not lie in C order (steps (1, 3)): make a contiguous copy",
    ),
    "a mask": (
        lambda array: Interface(array, mask=array),
        "float32[3, 4]: arrays with a mask are not taken",
    ),
    "a dtype": (
        lambda array: Interface(array, typestr="<f16"),
        "float128[3, 4]: tinyfuse does not compute with float128",
    ),
    "a stream": (
        lambda array: Interface(array, stream=0),
        "stream 0 is ambiguous: name 1 (legacy) or 2 (of each thread)",
    ),
    "another device": (
        lambda array: Capsule(array, (2, 1)),
        "the array lies on device (2, 1) of DLPack, and not on <GPU 0: emulated GPU 0>, (2, 0)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(stream: Stream, name: str):
    make, message = REFUSED[name]
    with pytest.raises(DeviceArrayError) as caught:
        as_device_array(make(copied(normal(3, 4), stream)), stream)
    assert str(caught.value) == message


def test_strides_in_c_order_are_taken(stream: Stream):
    x = normal(3, 1, 4)
    taken = as_device_array(Interface(copied(x, stream), strides=(16, 999, 4)), stream)
    np.testing.assert_array_equal(taken.numpy(), x)


def test_what_dlpack_cannot_say(stream: Stream):
    made = empty((3,), np.dtype(np.float32), stream)
    with pytest.raises(BufferError, match=r"^an array on a GPU is handed over as it is, where it"):
        made.__dlpack__(copy=True)
    with pytest.raises(BufferError, match=r"^an array on a GPU is handed over as it is, where it"):
        made.__dlpack__(dl_device=(1, 0))
    made.read_only = True
    with pytest.raises(BufferError, match=r"^this array can only be read, which DLPack cannot say"):
        made.__dlpack__()
