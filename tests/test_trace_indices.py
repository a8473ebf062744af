"""Indexing with arrays of integers and with integers known at run time: as numpy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfuse
from tests.trace_checking import assert_same, check, replay, trace_call
from tinyfuse.errors import IndexingError

X = np.arange(24.0).reshape(2, 3, 4) - 9
I = np.array([1, -1, 0])  # noqa: E741
J = np.array([2, 0, -3])
V = np.arange(3.0) + 100
TABLE = np.arange(10) * 2

READS: list[Callable[..., Any]] = [
    lambda x, i, j: x[i],
    lambda x, i, j: x[:, i],
    lambda x, i, j: x[0, :, j],
    lambda x, i, j: x[:, i, j],
    lambda x, i, j: x[i, :, j],
    lambda x, i, j: x[None, i, None, j],
    lambda x, i, j: x[i[0], ..., j[:, None]],
    lambda x, i, j: x[0, ..., j[:, None]],
    lambda x, i, j: x[i[:, None], j],
    lambda x, i, j: x[1:, ::-1, j],
    lambda x, i, j: x[i, 1:],
    lambda x, i, j: x[i[0]],
    lambda x, i, j: x[i[0], i[2], j[0]],
    lambda x, i, j: x[..., i[0]],
    lambda x, i, j: x[0, 0, i[0], ...],
    lambda x, i, j: x[i.astype(np.int8)],
    lambda x, i, j: x[i.astype(np.uint8) & 1],
    lambda x, i, j: x[(i & 1).astype(np.uint64)],
    lambda x, i, j: x[[i[0], 1]],
    lambda x, i, j: x[np.argmax(x[:, 0, 0])],
    lambda x, i, j: TABLE[i] + TABLE[j],
    lambda x, i, j: (x * 2)[i][:, i],
    # known while tracing
    lambda x, i, j: x[[0, 1]],
    lambda x, i, j: x[:, [0, 2]],
    lambda x, i, j: x[:, [2, 0], [1, -1]],
    lambda x, i, j: x[(0, 1), (1, 2)],
    lambda x, i, j: x[[]],
    lambda x, i, j: x[range(2)],
    lambda x, i, j: x[np.ix_([0, 1], [0, 2])],
    lambda x, i, j: x[np.array(1)],
    lambda x, i, j: x[1, np.array(2), 3],
    lambda x, i, j: x[1, np.array(2), 3, ...],
    lambda x, i, j: x[np.array(1), ..., 0, 0],
    lambda x, i, j: x[np.array([True, False])],
    lambda x, i, j: x[:, [True, False, True]],
    lambda x, i, j: x[np.ones((2, 3), bool)],
    lambda x, i, j: x[True],
    lambda x, i, j: x[False],
    lambda x, i, j: x[:, True, i],
    lambda x, i, j: x[:, np.arange(3), i],
    lambda x, i, j: x[:, np.arange(3) - 1, np.arange(3)],
]


@pytest.mark.parametrize("read", READS)
def test_reading(read: Any) -> None:
    check(read, X, I, J)
    check(read, X.astype(np.int32), I.astype(np.int16), J)


def written(key: Callable[..., Any], value: Callable[..., Any]) -> Callable[..., Any]:
    def write(x: Any, i: Any, j: Any, v: Any) -> Any:
        y = x * 1
        y[key(i, j)] = value(x, v)
        return y

    return write


def views_written(x: Any, i: Any, j: Any, v: Any) -> Any:
    y = x * 1
    z = y[0]
    z[i] = v[:, None]
    z.T[j, 0] += v.astype(x.dtype)
    y.reshape(-1)[i] *= 2
    return y, z


def rows_at_run_time(x: Any, i: Any, j: Any, v: Any) -> Any:
    y = x * 1
    row, column = y[i[0]], y[:, i[1]]
    row[0] = 9
    row += 1
    part = row[1:]
    column *= 2
    y[0] = 5
    y[i[0], i[1]] += 3
    y[i[0], :, i[2]] -= 1
    part[0] = 8
    element = y[i[0], i[1], i[2]]
    element += 5
    y[i[0], i[1], i[2]] *= 7
    y[i[0] - 1] = y[i[0]]
    return y, row, column, part, element


def indices_without_axes_copy(x: Any, i: Any, j: Any, v: Any) -> Any:
    y = x * 1
    copied, view = y[np.array(1)], y[np.int64(1)]
    copied[...] = 3
    view[0] = 2
    return y, copied


WRITES: list[Callable[..., Any]] = [
    written(lambda i, j: i, lambda x, v: 7),
    written(lambda i, j: i, lambda x, v: v[0]),
    written(lambda i, j: (slice(None), i), lambda x, v: x),
    written(lambda i, j: (0, slice(None), j), lambda x, v: v),
    written(lambda i, j: (i, slice(None), j), lambda x, v: v[:, None]),
    written(lambda i, j: (i, j), lambda x, v: v[:, None]),
    written(lambda i, j: i[0], lambda x, v: v[0]),
    written(lambda i, j: (i[0], i[1], i[2]), lambda x, v: v[1]),
    written(lambda i, j: (0, i[0]), lambda x, v: x[1, 1] * 2),
    written(lambda i, j: [0, 1], lambda x, v: 5),
    written(lambda i, j: (slice(None), [0, 2]), lambda x, v: 1.5),
    written(lambda i, j: (slice(None, None, -1), slice(1, 3), j), lambda x, v: v),
    written(lambda i, j: (None, i, Ellipsis), lambda x, v: v[:, None, None]),
    written(lambda i, j: np.array([True, False]), lambda x, v: 1),
    written(lambda i, j: (i[:, None], j), lambda x, v: 9),
    written(lambda i, j: [], lambda x, v: 1),
    written(lambda i, j: False, lambda x, v: 1),
    written(lambda i, j: True, lambda x, v: 1),
    written(lambda i, j: i & 1, lambda x, v: [[[1, 2, 3, 4]]]),
    written(lambda i, j: (0, 0, 0, ...), lambda x, v: v[:1]),
    written(lambda i, j: (0, 0, np.array(0), ...), lambda x, v: v[None, :1]),
    written(lambda i, j: (0, i[0], 0, ...), lambda x, v: v[:1]),
    views_written,
    rows_at_run_time,
    indices_without_axes_copy,
]


@pytest.mark.parametrize("write", WRITES)
def test_writing(write: Any) -> None:
    check(write, X, I, J, V)
    check(write, X.astype(np.int16), I, J, V)


@pytest.mark.parametrize("fuse", [True, False])
def test_compiled(fuse: bool) -> None:
    def reading(x: Any, i: Any, j: Any) -> Any:
        return [read(x, i, j) for read in READS]

    def writing(x: Any, i: Any, j: Any, v: Any) -> Any:
        return [write(x, i, j, v) for write in WRITES]

    assert_same(tinyfuse.jit(reading, fuse=fuse)(X, I, J), reading(X, I, J))
    assert_same(tinyfuse.jit(writing, fuse=fuse)(X, I, J, V), writing(X, I, J, V))


# -- what is refused


def failing(write: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, i: Any, j: Any) -> Any:
        y = x * 1
        write(y, i, j)
        return y

    return run


FAILURES: list[Callable[..., Any]] = [
    lambda x, i, j: x[i + 3],
    lambda x, i, j: x[:, i * 7],
    lambda x, i, j: x[i, i * 2 + 1, i + 9],
    lambda x, i, j: x[i[1] - 5],
    lambda x, i, j: x[:0][i],
    lambda x, i, j: TABLE[i - 30],
    lambda x, i, j: x[[4]],
    lambda x, i, j: x[[0, 1], [0, 1, 2]],
    lambda x, i, j: x[i, j[:2]],
    lambda x, i, j: x[[True, False, True]],
    lambda x, i, j: x[:, [True, False]],
    lambda x, i, j: x[[1.5]],
    lambda x, i, j: x[i * 1.0],
    lambda x, i, j: x[x[0, 0, 0]],
    lambda x, i, j: x["a"],
    lambda x, i, j: x[[0, None]],
    lambda x, i, j: x[i, i, i, i],
    lambda x, i, j: x[..., ..., i],
    failing(lambda y, i, j: y.__setitem__(i + 3, 1)),
    failing(lambda y, i, j: y.__setitem__(i, y[:, 0])),
    failing(lambda y, i, j: y.__setitem__([0, 1], y[:, :2])),
    failing(lambda y, i, j: y.__setitem__([0, 1], np.ones((3, 1, 1, 1, 1)))),
    failing(lambda y, i, j: y.__setitem__((0, 0, 0), y[0, 0, :1])),
    failing(lambda y, i, j: y.__setitem__((0, 0, np.array(1)), y[0, 0, :1])),
    failing(lambda y, i, j: y[0, 0, 0, ...].__setitem__((), y[0, 0, :1])),
    failing(lambda y, i, j: y[0, 0, 0, ...].__setitem__(..., y[0, 0])),
]


@pytest.mark.parametrize("function", FAILURES)
def test_errors_have_numpys_words(function: Any) -> None:
    with pytest.raises((IndexError, ValueError)) as numpys:
        function(X, I, J)
    words = str(numpys.value).strip()
    for call in (
        lambda: replay(trace_call(function, X, I, J), X, I, J),
        lambda: tinyfuse.jit(function)(X, I, J),
    ):
        with pytest.raises(numpys.type) as ours:
            call()
        lines = str(ours.value).split("\n")
        assert lines[0] == words
        assert lines[1].startswith("  at test_trace_indices.py:")


def test_an_index_out_of_range_writes_nothing() -> None:
    @tinyfuse.jit
    def put(x: Any, i: Any) -> None:
        x[0] = 7
        x[i] = 5

    x = np.zeros(4)
    with pytest.raises(IndexingError, match="index 4 is out of bounds for axis 0 with size 4"):
        put(x, np.array([1, 4]))
    assert x.tolist() == [0, 0, 0, 0]
    put(x, np.array([1, 3]))
    assert x.tolist() == [7, 5, 0, 5]


def test_narrow_indices_along_a_long_axis() -> None:
    def counted(x: Any) -> Any:
        known = np.arange(3).astype(np.int8)
        bytes_ = np.full(300, 253, np.uint8)
        np.add.at(x, known, 1)
        np.add.at(x, bytes_, 1)
        x[known - 3] *= 2
        return x[known], x[bytes_[:2]], x[-known]

    check(counted, np.arange(300.0))
    check(lambda x, i: (x[i], x[-i]), np.arange(300.0), np.array([1, 127], np.int8))


def test_what_stays_an_expression() -> None:
    def kinds(function: Any) -> list[str]:
        eqns = trace_call(function, X, I).graph.eqns
        return [eqn.primitive.name for eqn in eqns]

    assert kinds(lambda x, i: x[np.arange(2)]) == ["iota", "gather"]
    assert kinds(lambda x, i: x[i]).count("gather") == 1
    assert "reduce" in kinds(lambda x, i: x[i])  # whether some index is out of range
    assert [v.shape for v in trace_call(lambda x, i: x[:, [2, 0]], X, I).graph.inputs][2:] == [(2,)]


# -- any index


def _extents() -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@st.composite
def _programs(draw: Any) -> tuple[tuple[int, ...], list[Any], list[np.ndarray]]:
    """(shape, items, arrays): an item is a basic index, or the number of an array."""
    shape = draw(_extents())
    items: list[Any] = []
    arrays: list[np.ndarray] = []
    broadcast = draw(st.sampled_from([(2,), (1,), (2, 1), (3, 2), (), (0,)]))
    for extent in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "array", "slice", "int", "none", "mask", "ellipsis"]))
        if kind == "array":
            values = draw(st.lists(st.integers(-extent, extent), min_size=6, max_size=6))
            own = draw(st.sampled_from([broadcast, broadcast, broadcast[-1:], (1,)]))
            count = int(np.prod(own))
            arrays.append(np.array(values[:count], np.int64).reshape(own))
            items.append(("array", len(arrays) - 1, draw(st.booleans())))
        elif kind == "slice":
            step = draw(st.sampled_from([None, 1, 2, -1]))
            items.append(slice(draw(st.sampled_from([None, 0, 1, -1])), None, step))
        elif kind == "int":
            items.append(draw(st.integers(-extent, extent)))
        elif kind == "mask":
            items.append(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)))
        else:
            items.append(None if kind == "none" or Ellipsis in items else Ellipsis)
    return shape, items, arrays


@settings(max_examples=150, deadline=None)
@given(_programs())
def test_any_index(program: tuple[tuple[int, ...], list[Any], list[np.ndarray]]) -> None:
    shape, items, arrays = program

    def key(given: Any) -> Any:
        found = []
        for item in items:
            if type(item) is tuple:
                _, number, traced = item
                found.append(given[number] if traced else arrays[number])
            else:
                found.append(np.array(item, bool) if type(item) is list else item)
        return tuple(found)

    def read(x: Any, *given: Any) -> Any:
        return x[key(given)]

    def write(x: Any, *given: Any) -> Any:
        y = x * 1
        y[key(given)] = -1.5
        return y

    x = np.arange(float(np.prod(shape))).reshape(shape)
    for function in (read, write):
        try:
            expected = function(x, *arrays)
        except IndexError as error:
            numpys = str(error).strip()
        else:
            assert_same(replay(trace_call(function, x, *arrays), x, *arrays), expected)
            continue
        with pytest.raises(IndexError) as ours:
            replay(trace_call(function, x, *arrays), x, *arrays)
        words = str(ours.value).split("\n")[0]
        # which of several faults is told: those known while tracing come first
        assert words == numpys or "out of bounds for" in words or 0 in shape
