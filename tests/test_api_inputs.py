"""Arguments as they come: any layout, and whatever numpy sees an array in."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same
from tinyfuse.errors import ArgumentError, UnsupportedDtypeError

RECORDS = np.array([(2, 2.5, 3), (4, -1.5, 5)] * 6, [("a", "<i2"), ("b", "<f8"), ("c", "i1")])
BASE = np.arange(48.0).reshape(6, 8) - 20


def computed(x: Any) -> Any:
    y = np.asarray(x) * 2
    return y + 1, y.sum(), np.sqrt(abs(y)).T, x


def read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def misaligned() -> np.ndarray:
    return np.frombuffer(bytearray(97), np.uint8)[1:].view(np.float64)


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "C order": lambda: BASE[:3, :4].copy(),
    "Fortran order": lambda: np.asfortranarray(BASE[:3, :4]),
    "transposed": lambda: BASE[:4, :3].T,
    "a part": lambda: BASE[1:4, 2:6],
    "every second": lambda: BASE[::2, ::2],
    "backwards": lambda: BASE[2::-1, 3::-1],
    "repeated rows": lambda: np.broadcast_to(BASE[0, :4], (3, 4)),
    "repeated": lambda: np.broadcast_to(np.float64(0.7), (3, 4)),
    "misaligned": lambda: misaligned().reshape(3, 4),
    "read only": lambda: read_only(BASE[:3, :4].copy()),
    "a field of records": lambda: RECORDS["b"].reshape(3, 4),
}


def test_no_layout_changes_a_value() -> None:
    jitted = tinyfuse.jit(computed)
    for name, make in LAYOUTS.items():
        x = make()
        assert x.shape == (3, 4), name
        found = jitted(x)
        assert_same(found, computed(x))
        assert found[3] is x
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i2", ">u8", "<i4"])
def test_byte_orders(dtype: str) -> None:
    x = (np.arange(12).reshape(3, 4) * 3).astype(dtype)

    def doubled(x: Any) -> Any:
        return x * 2, x.sum(), np.zeros_like(x) + x

    found = tinyfuse.jit(doubled)(x)
    for ours, numpys in zip(found, doubled(x), strict=True):
        np.testing.assert_array_equal(ours, numpys)
        assert ours.dtype == numpys.dtype.newbyteorder("=")
        assert ours.dtype.isnative


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1), (0, 0)])
def test_shapes_at_the_ends(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return x + 1, x.sum(), np.stack([x, x]), x.reshape(-1)[:0], x.prod(), x.T

    x = np.full(shape, 2.5, np.float32)
    assert_same(tinyfuse.jit(function)(x), function(x))


@pytest.mark.parametrize("field", ["a", "b", "c"])
def test_fields_of_records(field: str) -> None:
    def function(x: Any) -> Any:
        return x * 3, x == x[0], x[::-1]

    x = RECORDS[field]
    assert_same(tinyfuse.jit(function)(x), function(x))


def test_records_themselves_are_refused() -> None:
    with pytest.raises(UnsupportedDtypeError, match=r"argument x: .* is not supported; tinyfuse"):
        tinyfuse.jit(computed)(RECORDS)


def test_memory_maps(tmp_path: Path) -> None:
    x = np.memmap(tmp_path / "elements", np.float64, "w+", shape=(3, 4))
    x[:] = BASE[:3, :4]
    plain = np.asarray(x)
    first, total, *_ = tinyfuse.jit(computed)(x)
    assert_same((first, total), computed(plain)[:2])

    def written(x: Any) -> None:
        x[0] = 7

    tinyfuse.jit(written)(x)
    x.flush()
    assert np.fromfile(tmp_path / "elements")[:4].tolist() == [7, 7, 7, 7]


# -- what is no array, and has one in it


class ArrayLike:
    def __init__(self, elements: Any) -> None:
        self.elements = elements

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.elements, dtype)


class Interface:
    def __init__(self, elements: np.ndarray) -> None:
        self.elements = elements

    @property
    def __array_interface__(self) -> Any:
        return self.elements.__array_interface__


class DLPack:
    def __init__(self, elements: np.ndarray) -> None:
        self.elements = elements

    def __dlpack__(self, **options: Any) -> Any:
        return self.elements.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.elements.__dlpack_device__()


X = BASE[:3, :4].copy()
SEEN_AS_ARRAYS: dict[str, Callable[[], Any]] = {
    "array-like": lambda: ArrayLike(X.tolist()),
    "array interface": lambda: Interface(X),
    "DLPack": lambda: DLPack(X),
    "memoryview": lambda: memoryview(X),
    "read-only memoryview": lambda: memoryview(X).toreadonly(),
    "array.array": lambda: array.array("d", X.ravel()),
}


@pytest.mark.parametrize("make", SEEN_AS_ARRAYS.values(), ids=list(SEEN_AS_ARRAYS))
def test_what_numpy_sees_an_array_in(make: Any) -> None:
    def function(x: Any) -> Any:
        return np.sqrt(abs(x)) + x, x.shape, isinstance(x, np.ndarray)

    seen = np.from_dlpack(make()) if hasattr(make(), "__dlpack__") else np.asarray(make())
    jitted = tinyfuse.jit(function)
    for _ in range(2):
        assert_same(jitted(make()), function(seen))
    assert jitted.cache_info().misses == 1
    assert_same(jitted(seen.copy()), function(seen))
    assert jitted.cache_info().misses == 1


def test_inside_of_containers() -> None:
    def function(state: Any) -> Any:
        return state["a"] + state["b"][0]

    x = {"a": DLPack(X), "b": [memoryview(X)]}
    np.testing.assert_array_equal(tinyfuse.jit(function)(x), X + X)


def test_buffers_are_written() -> None:
    def function(x: Any) -> None:
        x[1:] += 2

    elements = array.array("d", [1.0, 2.0, 3.0])
    tinyfuse.jit(function)(memoryview(elements))
    assert elements.tolist() == [1.0, 4.0, 5.0]
    tinyfuse.jit(function)(elements)
    assert elements.tolist() == [1.0, 6.0, 7.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_what_has_a_meaning_of_its_own_is_refused(tmp_path: Path) -> None:
    for value, words in [
        (np.ma.array(X, mask=X > 1), "a MaskedArray has a meaning of its own, which would be lost"),
        (np.matrix(X), "a matrix has a meaning of its own, which would be lost"),
        (bytearray(4), "a bytearray is neither an array nor hashable"),
        ({1, 2}, "a set is neither an array nor hashable"),
    ]:
        with pytest.raises(ArgumentError, match=f"argument x: {words}"):
            tinyfuse.jit(computed)(value)
    with mmap.mmap(-1, 16) as memory:
        x = np.frombuffer(memory, np.float64)
        assert_same(tinyfuse.jit(computed)(x), computed(x))
        del x
