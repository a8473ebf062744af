"""Which arrays share memory, and which lie in it alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyfuse.memory import (
    layout,
    near_pairs,
    overlaps_itself,
    same_memory,
    share_elements,
    small_model,
)

A = np.zeros((6, 8))


def test_the_same_memory() -> None:
    assert same_memory(A, A)
    assert same_memory(A, A[:])
    assert not same_memory(A, A.copy())
    assert not same_memory(A, A.T)
    assert not same_memory(A[:3], A[3:])
    assert not same_memory(A, A.view(np.int64))
    assert not same_memory(A[:0], A[:0].copy())


def test_elements_in_common() -> None:
    assert share_elements(A[:4], A[3:])
    assert not share_elements(A[:, ::2], A[:, 1::2])
    assert not share_elements(A[:3], A[3:])


def test_elements_in_one_place() -> None:
    assert overlaps_itself(np.broadcast_to(np.zeros(3), (2, 3)))
    assert overlaps_itself(np.lib.stride_tricks.as_strided(A, (3, 3), (8, 8)))
    for array in (A, A.T, A[::-2, ::3], A[:, :1], A[:0], np.zeros(()), A[None, :, None]):
        assert not overlaps_itself(array)


@pytest.mark.parametrize("few", [True, False])
def test_near_pairs(few: bool) -> None:
    arrays = [A[:2], A[1:3], np.zeros(3), A[3:], A[:0], A]
    if not few:
        arrays += [np.zeros(1) for _ in range(10)]
    assert near_pairs(arrays, range(len(arrays))) == [(0, 1), (0, 5), (1, 5), (3, 5)]
    assert near_pairs(arrays, {3}) == [(3, 5)]
    assert near_pairs(arrays, ()) == []


def test_layouts() -> None:
    alike = [A, np.zeros((3, 5)), np.ones((2, 9))]
    assert len({layout(a.shape, a.strides, a.itemsize) for a in alike}) == 1
    different = [A, A.T, A[:, ::2], A[::-1], A[:, ::-1], A[::2], np.broadcast_to(A[0], (6, 8))]
    assert len({layout(a.shape, a.strides, a.itemsize) for a in different}) == len(different)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    array = np.arange(np.prod(shape) * 16.0)[: np.prod(shape)].reshape(shape)
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    steps = st.sampled_from([1, 2, -1, -2])
    return array[tuple([slice(None, None, draw(steps)) for _ in shape])]


@settings(max_examples=300, deadline=None)
@given(arrays())
def test_small_models_are_in_the_order_of_the_array(array: np.ndarray) -> None:
    model = small_model(array.shape, array.strides, array.itemsize)
    assert model.shape == tuple([min(extent, 2) for extent in array.shape])
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS"):
        assert model.flags[flag] == array.flags[flag]
    copied, other = array.copy(order="K"), model.copy(order="K")
    long = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    assert np.argsort([copied.strides[axis] for axis in long]).tolist() == (
        np.argsort([other.strides[axis] for axis in long]).tolist()
    )
    model[...] = np.zeros((), model.dtype)  # all of it is in memory
