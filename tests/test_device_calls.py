"""Functions of jit(target="cuda") called with arrays that are on a GPU already."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tinyfuse
from tests import device_programs as programs
from tests.cuda_kernels import normal
from tests.device_arrays import LIBRARIES, Cupy, Jax, Numba, Tensor, run_on, with_torch
from tinyfuse.errors import (
    ArgumentError,
    DeviceArrayError,
    InvalidArgumentError,
    NonFiniteError,
    OverlapError,
    SignatureMismatchError,
    UnsupportedArgumentError,
)
from tinyfuse.runtime.device_array import DeviceArray, as_device_array, copied
from tinyfuse.runtime.driver import Device, Stream, copy_to_device, copy_to_host
from tinyfuse.testing.fake_gpu import FakeDriver

X = normal(5, 100)


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def device(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    made = run_on(driver, monkeypatch)
    yield made
    made.stream.wait()
    made.hold(made.stream, ())  # lets go of what has been held


@pytest.fixture
def stream(device: Device, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """That which other libraries work in."""
    made = Stream(device)
    with_torch(made, monkeypatch)
    return made


def on_gpu(function: Callable[..., Any], **options: Any) -> Any:
    return tinyfuse.jit(function, target="cuda", **options)


def equal(made: DeviceArray, expected: Any) -> None:
    assert type(made) is DeviceArray
    found, expected = made.numpy(), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_every_library(driver: FakeDriver, stream: Stream, library: Any):
    """The bits of C; nothing is waited for; the second call finds its program."""
    function, expected = on_gpu(programs.softmax), tinyfuse.jit(programs.softmax)(X)
    for _ in range(2):
        launches = driver.state.launches
        made = function(library(copied(X, stream)))
        assert driver.state.launches == launches
        equal(made, expected)
    assert function.cache_info()[:2] == (1, 1)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float64", "complex64", "complex128"]
)
def test_dtypes(stream: Stream, dtype: str):
    x = (np.arange(12).reshape(3, 4) - 5).astype(dtype)
    for library in LIBRARIES:
        equal(on_gpu(lambda x: (x, x * x)[1])(library(copied(x, stream))), x * x)


def test_bfloat16_comes_through_dlpack(stream: Stream):
    x = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    for library in (Cupy, Jax, Tensor, lambda array: array):
        equal(on_gpu(lambda x: x + x)(library(copied(x, stream))), x + x)


def test_device_put():
    with pytest.raises(DeviceArrayError, match=r"^float128\[2\]: tinyfuse does not compute with"):
        tinyfuse.device_put(np.zeros(2, np.longdouble))


def test_chains_need_no_other_library(device: Device):
    function = on_gpu(lambda x: x * 2 + 1)
    made = tinyfuse.device_put(X)
    for _ in range(3):
        made = function(made)
    equal(made, ((X * 2 + 1) * 2 + 1) * 2 + 1)


def test_results_have_the_structure_of_numpys(stream: Stream):
    x = Numba(copied(X, stream))
    made = on_gpu(lambda p, k: {"a": [p["x"] + k, p["x"]], "b": (3, "name", p["x"].sum())})(
        {"x": x}, np.float32(2)
    )
    equal(made["a"][0], X + 2)
    assert made["a"][1] is x  # as it was given
    assert made["b"][:2] == (3, "name")
    equal(made["b"][2], tinyfuse.jit(np.sum)(X))  # a number is an array without axes
    assert made["b"][2].shape == ()


def test_floats_are_run_time_values(stream: Stream):
    function = on_gpu(lambda x, k: (x * k, k * 0.5))
    for k in (2.0, 0.25, -1.0):
        made, half = function(copied(X, stream), k)
        equal(made, X * np.float32(k))
        equal(half, np.float64(k * 0.5))
    assert function.cache_info().misses == 1


def test_integers_that_are_dynamic(stream: Stream):
    def smoothed(x: Any, turns: int) -> Any:
        y = x.copy()
        for _ in range(turns):
            y[1:-1] = (y[:-2] + y[2:]) * np.float32(0.5)
        return y

    function, array = on_gpu(smoothed, dynamic="turns"), copied(X, stream)
    for turns in (0, 1, 6):
        equal(function(array, turns), smoothed(X, turns))
    assert function.cache_info().misses == 1


def test_results_that_are_constants(stream: Stream):
    made = on_gpu(lambda x: (np.zeros(3), x.sum() * 0 + 1))(copied(X, stream))
    equal(made[0], np.zeros(3))


def test_numpys_arrays_are_copied_and_said_so(stream: Stream, caplog: pytest.LogCaptureFixture):
    w = normal(100)
    with caplog.at_level(logging.WARNING, "tinyfuse"):
        for _ in range(2):
            equal(on_gpu(scaled)(copied(X, stream), w), X * w)
    function = on_gpu(scaled)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "tinyfuse"):
        for _ in range(2):
            equal(function(copied(X, stream), w), X * w)
    assert caplog.messages == [
        "scaled: w lies in the memory of the CPU, and not on the GPU as other arguments, so that "
        "each call copies it"
    ]


def scaled(x: Any, w: Any) -> Any:
    return x * w


def test_captured_arrays_are_read_at_every_call(stream: Stream):
    weights = normal(100)
    function = on_gpu(lambda x: x * weights)
    for _ in range(2):
        equal(function(copied(X, stream)), X * weights)
        weights *= 2


def test_constants_are_copied_once(driver: FakeDriver, stream: Stream):
    w = normal(100, 16)
    constant = tinyfuse.constant(w)
    function = on_gpu(lambda x: np.maximum(x @ constant, 0))
    expected = tinyfuse.jit(lambda x: np.maximum(x @ constant, 0))(X)
    x = copied(X, stream)
    for _ in range(3):
        equal(function(x), expected)
        gc.collect()
        stream.device.stream.wait()
        assert driver.state.memories == 2  # x, and the constant as it is read


# -- views


VIEWS: dict[str, Callable[[Any], Any]] = {
    "part": lambda x: x[1:4, ::-3],
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(10, 50),
    "reshaped part": lambda x: x[:, ::2].reshape(5, 1, 50),
    "broadcast": lambda x: np.broadcast_to(x[0], (3, 100)),
    "imaginary": lambda x: x.imag,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_arguments_are_views(stream: Stream, name: str):
    x = (X + 1j * X[::-1]) if name == "imaginary" else X
    array = copied(x, stream)
    made, doubled = on_gpu(lambda x: (VIEWS[name](x), x * 2))(array)
    expected = VIEWS[name](x)
    equal(made, expected)
    equal(doubled, x * 2)
    assert array.address <= made.address < array.address + array.nbytes
    assert made.strides == expected.strides
    if expected.flags.writeable:  # else DLPack refuses
        assert made.__dlpack__() is not None
    assert made.is_contiguous == (name == "reshaped")
    if not made.is_contiguous:
        with pytest.raises(DeviceArrayError, match="its elements do not lie in C order"):
            as_device_array(made, stream)


def test_views_of_results(device: Device):
    doubled, last = on_gpu(lambda x: ((y := x * 2), y[-1]))(tinyfuse.device_put(X))
    equal(doubled, X * 2)
    equal(last, X[-1] * 2)


# -- arrays of the caller's that are written


def test_outputs_of_the_callers_are_written_where_they_are(driver: FakeDriver, stream: Stream):
    def into(x: Any, out: Any) -> None:
        out[:] = programs.softmax(x)

    function, x, out = on_gpu(into), copied(X, stream), copied(np.zeros_like(X), stream)
    for library in (Numba, Cupy, Tensor, lambda array: array):
        assert function(library(x), library(out)) is None
        before = driver.state.memories
        function(library(x), library(out))
        assert driver.state.memories == before  # there is no other memory for the result
        equal(out, tinyfuse.jit(programs.softmax)(X))
        copy_to_device(out.address, np.zeros_like(X).view(np.uint8), stream)


def test_arrays_that_are_read_and_written(stream: Stream):
    def step(x: Any, y: Any) -> Any:
        y[1:] += x[:-1]
        x[0] = 7
        return y

    x, y = X.copy(), normal(5, 100)
    a, b = copied(x, stream), copied(y, stream)
    function = on_gpu(step)
    for _ in range(2):
        assert function(a, b) is b
        step(x, y)
    equal(a, x)
    equal(b, y)


def test_the_same_array_twice(stream: Stream):
    def step(x: Any, y: Any) -> None:
        x[1:] = y[:-1] * 2

    x, y = X.copy(), normal(5, 100)
    a, b = copied(x, stream), copied(y, stream)
    function = on_gpu(step)
    for _ in range(2):
        function(a, b)
        step(x, y)
        equal(a, x)
        function(a, a)
        step(x, x)
        equal(a, x)


def test_numpys_arrays_are_written_too(stream: Stream):
    def into(x: Any, out: Any) -> None:
        out[:] = x * 2

    out = np.zeros_like(X)
    on_gpu(into)(copied(X, stream), out)
    np.testing.assert_array_equal(out, X * 2)


def test_constants_are_written(stream: Stream):
    def cleared(x: Any) -> None:
        x[...] = 3

    x = copied(X, stream)
    on_gpu(cleared)(x)
    equal(x, np.full_like(X, 3))


def into_second(x: Any, out: Any) -> None:
    out[:] = x + 1


@pytest.mark.parametrize(
    "wrap", [lambda array: Cupy(array, data=(array.address, True)), Jax], ids=["CuPy", "JAX"]
)
def test_what_may_not_be_written(stream: Stream, wrap: Any):
    out = copied(np.zeros_like(X), stream)
    with pytest.raises(InvalidArgumentError, match="read-only"):
        on_gpu(into_second)(copied(X, stream), wrap(out))
    equal(out, np.zeros_like(X))


def test_overlaps_are_refused(stream: Stream):
    whole = copied(normal(6, 100), stream)
    part = [whole.view(whole.place[rows]) for rows in (slice(0, 5), slice(1, 6))]
    with pytest.raises(
        OverlapError, match=r"into_second\(\): out, which the function writes, shar"
    ):
        on_gpu(into_second)(*part)


# -- streams


def test_the_owners_later_work_comes_after(stream: Stream):
    """PyTorch may write an array again as soon as the call is back."""
    array = copied(X, stream)
    made = on_gpu(lambda x: x * 2)(Tensor(array))
    copy_to_device(array.address, np.zeros_like(X).reshape(-1).view(np.uint8), stream)
    stream.wait()
    equal(made, X * 2)


@pytest.mark.parametrize("library", LIBRARIES)
def test_arguments_may_be_dropped(stream: Stream, library: Any):
    """Their memory is given back when the kernels have run."""
    made = on_gpu(lambda x: x * 2)(library(copied(X, stream)))
    gc.collect()
    stream.wait()
    equal(made, X * 2)


def test_consumers_may_drop_results(driver: FakeDriver, stream: Stream):
    """One that was handed over is given back when the consumer's stream has got there."""
    made = on_gpu(lambda x: x * 2)(tinyfuse.device_put(X))
    capsule = made.__dlpack__(stream=stream.number)
    seen = np.empty_like(X)
    copy_to_host(seen.reshape(-1).view(np.uint8), made.address, stream)
    del made, capsule
    gc.collect()
    stream.device.stream.wait()
    stream.wait()
    np.testing.assert_array_equal(seen, X * 2)


def stream_objects(number: int) -> list[Any]:
    return [
        SimpleNamespace(cuda_stream=number),
        SimpleNamespace(ptr=number),
        SimpleNamespace(handle=SimpleNamespace(value=number)),
        SimpleNamespace(__cuda_stream__=(0, number)),
        SimpleNamespace(__cuda_stream__=lambda: (0, number), ptr=3),
        number,
    ]


def test_streams_of_the_users(driver: FakeDriver, stream: Stream):
    function, array = on_gpu(lambda x: x * 2), copied(X, stream)
    function(array)
    for each in stream_objects(stream.number):
        with tinyfuse.cuda_stream(each):
            events = driver.state.events
            made = function(Tensor(array))
            assert driver.state.events == events  # nothing has to be waited for
            assert made.stream.number == stream.number
        equal(made, X * 2)
    with tinyfuse.cuda_stream(0):
        made = function(array)
        assert made.__cuda_array_interface__["stream"] == 1
    equal(made, X * 2)
    assert function(array).stream.number == stream.device.stream.number


@pytest.mark.parametrize("value", [-1, "0", None, 1.0])
def test_what_is_no_stream(device: Device, value: Any):
    with pytest.raises(DeviceArrayError) as caught, tinyfuse.cuda_stream(value):
        pass
    assert str(caught.value) == (
        f"{value!r} is no stream of CUDA: pass one of CuPy or PyTorch, or its number"
    )


# -- what can go wrong


def with_gradients(array: DeviceArray) -> Tensor:
    tensor = Tensor(array)
    tensor.requires_grad = True
    return tensor


REFUSED: dict[str, tuple[Callable[[DeviceArray], Any], str]] = {
    "another order": (
        lambda array: array.view(array.place.T),
        "float32[100, 5]: its elements do not lie in C order (steps (1, 100)): make a contiguous "
        "copy",
    ),
    "gaps": (
        lambda array: array.view(array.place[:, ::2]),
        "float32[5, 50]: its elements do not lie in C order (steps (100, 2)): make a contiguous "
        "copy",
    ),
    "a dtype": (
        lambda array: Numba(array, typestr="<f16", shape=(5, 10)),
        "float128[5, 10]: tinyfuse does not compute with float128",
    ),
    "the other order of bytes": (
        lambda array: Numba(array, typestr=">f4"),
        "float32[5, 100]: tinyfuse does not compute with >f4",
    ),
    "memory of the CPU": (
        lambda array: Numba(array, data=(X.ctypes.data, False)),
        "float32[5, 100] lies in no memory of a GPU, and not on <GPU 0: emulated GPU 0>",
    ),
    "gradients": (
        with_gradients,
        "a Tensor is not handed over: Can't get __cuda_array_interface__ on Variable that requires "
        "grad.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(stream: Stream, name: str):
    make, message = REFUSED[name]
    with pytest.raises(DeviceArrayError) as caught:
        on_gpu(scaled)(copied(X, stream), make(copied(X, stream)))
    first, _, place = str(caught.value).partition("\n")
    assert first == f"scaled(): argument w: {message}"
    assert "on_gpu(scaled)(copied(X, stream)" in place


@pytest.mark.parametrize("library", [*LIBRARIES[:4], lambda array: array])
def test_arrays_of_another_gpu(monkeypatch: pytest.MonkeyPatch, library: Any):
    driver = FakeDriver(devices=2)
    run_on(driver, monkeypatch)
    with (second := Device(driver, 1)).current():
        other = Stream(second)
        with_torch(other, monkeypatch)
        array = library(copied(X, other))
    words = {
        Jax: "the array lies on device (2, 1) of DLPack, and not on <GPU 0: emulated GPU 0>, (2, 0)"
    }
    with pytest.raises(DeviceArrayError) as caught:
        on_gpu(np.sum)(array)
    assert words.get(library, "float32[5, 100] lies on GPU 1, and not on <GPU 0: emul") in str(
        caught.value
    )


def test_the_gpu_that_others_use_stays_current(monkeypatch: pytest.MonkeyPatch):
    """Whoever works on GPU 1, as PyTorch may, finds it current after every call of ours."""
    driver = FakeDriver(devices=2)
    first = run_on(driver, monkeypatch)
    second = Device(driver, 1)
    second.use()

    def current() -> object:
        return driver.made("void *", "asking", driver.functions.cuCtxGetCurrent)

    x = tinyfuse.device_put(X)
    assert current() == second.context
    result = on_gpu(scaled)(x, x)
    assert (type(result), current()) == (DeviceArray, second.context)
    np.testing.assert_array_equal(result.numpy(), tinyfuse.jit(scaled)(X, X))
    assert current() == second.context
    on_gpu(scaled)(X, X)
    assert current() == second.context
    del x, result
    assert current() == second.context
    with second.current():
        elsewhere = copied(X, Stream(second))
    with pytest.raises(DeviceArrayError, match="lies on GPU 1, and not on <GPU 0"):
        on_gpu(scaled)(elsewhere, X)
    assert current() == second.context
    with first.current():
        assert current() == first.context
    assert current() == second.context


@pytest.mark.parametrize("library", LIBRARIES)
def test_captured_arrays_are_numpys(stream: Stream, library: Any):
    weights = library(copied(X, stream))
    for function in (lambda x: x * weights, lambda x: np.dot(x.T, weights)):
        with pytest.raises(UnsupportedArgumentError) as caught:
            on_gpu(function)(X)
        assert str(caught.value).partition("\n")[0] == (
            f"a {type(weights).__name__} on a GPU is no argument of the function, and only those "
            "are read there: pass it as one"
        )


def test_numpy_copies_nothing_unasked(stream: Stream):
    for function in (np.asarray, np.sin, lambda array: array + X, lambda array: X + array):
        with pytest.raises(TypeError):
            function(copied(X, stream))
    with pytest.raises(TypeError, match=r"^numpy does not copy arrays from a GPU unasked: write x"):
        np.asarray(copied(X, stream))


@pytest.mark.parametrize("target", ["c", "cuda-emulated"])
def test_programs_for_the_cpu(stream: Stream, target: Any):
    function = tinyfuse.jit(scaled, target=target)
    np.testing.assert_array_equal(function(X, X), X * X)
    message = (
        f"scaled(): argument w: it lies on a GPU, and the program is for the CPU (target={target!r}"
        "): pass a copy in numpy's memory, or compile the function with target='cuda'"
    )
    for call in (function, function.lower(X, X).compile()):
        with pytest.raises(ArgumentError) as caught:
            call(X, copied(X, stream))
        assert str(caught.value).partition("\n")[0] == message


def test_compiled_programs_take_them(stream: Stream):
    compiled = on_gpu(scaled).lower(X, X).compile()
    np.testing.assert_array_equal(compiled(X, X), X * X)
    equal(compiled(Cupy(copied(X, stream)), X), X * X)
    with pytest.raises(SignatureMismatchError, match=r"not for \(float32\[4, 100\], float32"):
        compiled(copied(X[1:], stream), X)


def test_lowering_needs_no_elements(stream: Stream):
    array = copied(X, stream)
    text = on_gpu(scaled).lower(array, array).as_text("cuda")
    assert text == on_gpu(scaled).lower(X, X.copy()).as_text("cuda")


def test_checks_of_programs(stream: Stream):
    function = on_gpu(lambda x, at: x[at])
    equal(function(copied(X, stream), copied(np.array([1, -1]), stream)), X[[1, -1]])
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5"):
        function(copied(X, stream), copied(np.array([1, 9]), stream))


def test_checks_for_nan(stream: Stream):
    function = on_gpu(np.log, check="nan")
    equal(function(copied(X * X + 1, stream)), tinyfuse.jit(np.log)(X * X + 1))
    with pytest.raises(NonFiniteError):
        function(copied(-X * X, stream))


def test_nothing_is_left(driver: FakeDriver, stream: Stream):
    function = on_gpu(programs.softmax)
    for library in LIBRARIES:
        function(library(copied(X, stream)))
    del function
    gc.collect()
    own = stream.device.stream
    on_gpu(np.negative)(copied(np.zeros(3), own))  # by then what was held is let go
    gc.collect()
    own.wait()
    stream.wait()
    on_gpu(np.negative)(copied(np.zeros(3), own))
    gc.collect()
    own.wait()
    stream.wait()
    assert driver.state.memories == 0
