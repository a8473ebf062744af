"""np.take, np.put, choices, diagonals, `ufunc.at`: as numpy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same, check, replay, trace_call
from tinyfuse.errors import DataDependentShapeError, InPlaceWriteError

X = np.arange(24.0).reshape(4, 6) * 1.5
I = np.array([2, 0, -1, 2])  # noqa: E741
M = X % 2 > 1
V = np.arange(4.0) + 1
S = np.sort(np.array([3.0, 1, 2, 9, 7]))
GENERATOR = np.random.default_rng(0)


def on_copy(write: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, i: Any, m: Any, v: Any, s: Any) -> Any:
        y = x * 1
        write(y, i, m, v.astype(x.dtype), s)
        return y

    return run


FUNCTIONS: list[Callable[..., Any]] = [
    lambda x, i, m, v, s: np.take(x, i),
    lambda x, i, m, v, s: x.take(i, axis=1),
    lambda x, i, m, v, s: np.take(x, i * 5, mode="wrap"),
    lambda x, i, m, v, s: np.take(x, i * 5, axis=0, mode="clip"),
    lambda x, i, m, v, s: (np.take(x, 3), np.take(x, [1, 2], axis=-1), x.take(1, axis=0)),
    lambda x, i, m, v, s: (np.take(x, i[0]), np.take(x, [[0, 1], [2, 3]])),
    lambda x, i, m, v, s: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1),
    lambda x, i, m, v, s: np.take_along_axis(x, np.argmax(x, axis=0)[None], axis=0),
    lambda x, i, m, v, s: np.take_along_axis(x, i, axis=None),
    lambda x, i, m, v, s: np.choose(i % 3, [v, v * 2, 7.0]),
    lambda x, i, m, v, s: np.choose((x % 2).astype(int), [x, -x]),
    lambda x, i, m, v, s: np.choose(i + 3, [v, 1], mode="clip"),
    lambda x, i, m, v, s: (i % 2).choose([v, v * 2]),
    lambda x, i, m, v, s: np.select([x < 3, x < 9], [x, x * 10], -1),
    lambda x, i, m, v, s: np.select([m, x > 3], [0, x**2]),
    lambda x, i, m, v, s: np.select([m], [1], 2),
    lambda x, i, m, v, s: np.compress([True, False, True], x, axis=0),
    lambda x, i, m, v, s: np.extract([1, 0, 1, 1], v),
    lambda x, i, m, v, s: np.unravel_index(np.argmax(x), x.shape),
    lambda x, i, m, v, s: np.unravel_index(i % 4, (2, 2), order="F"),
    lambda x, i, m, v, s: np.ravel_multi_index((i % 2, i % 3), (2, 3)),
    lambda x, i, m, v, s: np.ravel_multi_index((i, i + 9), (2, 3), mode=("wrap", "clip")),
    lambda x, i, m, v, s: x[np.ix_(i, [1, 3])],
    lambda x, i, m, v, s: x[np.ix_(np.array([True, False, True, True]), i)],
    lambda x, i, m, v, s: (np.searchsorted(s, v), np.searchsorted(s, 3.0, side="right")),
    lambda x, i, m, v, s: (s.searchsorted(x), np.searchsorted(np.array([1, 2, 3]), v, "right")),
    lambda x, i, m, v, s: np.searchsorted(s, np.array([np.nan, 7.0, -0.0])),
    lambda x, i, m, v, s: (np.diag(x), np.diag(x, 2), np.diag(x, -3), np.diag(x, 9)),
    lambda x, i, m, v, s: (np.diag(v), np.diag(v, 1), np.diag(v, -2), np.diagflat(x, 1)),
    lambda x, i, m, v, s: (x.diagonal(1), np.trace(x), x.trace(-1, dtype=np.int64)),
    lambda x, i, m, v, s: np.diagonal(x.reshape(2, 2, 6), 0, 0, 2),
    lambda x, i, m, v, s: (np.tril(x), np.triu(x, 1), np.tril(x, -2), np.triu(v)),
    lambda x, i, m, v, s: np.tril(x.reshape(2, 2, 6)),
    lambda x, i, m, v, s: (x[np.triu_indices(4)], x[np.diag_indices(4)]),
    lambda x, i, m, v, s: x[np.unravel_index(3, (4, 6))],
    on_copy(lambda y, i, m, v, s: np.put(y, i, v)),
    on_copy(lambda y, i, m, v, s: y.put([0, 3, 5], [7, 8])),
    on_copy(lambda y, i, m, v, s: np.put(y, i * 20, v[0], mode="wrap")),
    on_copy(lambda y, i, m, v, s: np.put(y, i * 20, v, mode="clip")),
    on_copy(lambda y, i, m, v, s: np.put(y.T, i, v[:3])),
    on_copy(
        lambda y, i, m, v, s: np.put_along_axis(y, np.argmin(y, axis=1)[:, None], v[:, None], 1)
    ),
    on_copy(lambda y, i, m, v, s: np.put_along_axis(y, i, 5, axis=None)),
    on_copy(lambda y, i, m, v, s: np.putmask(y, m, v)),
    on_copy(lambda y, i, m, v, s: np.putmask(y, y > 5, 0)),
    on_copy(lambda y, i, m, v, s: np.place(y, m, [4])),
    on_copy(lambda y, i, m, v, s: np.place(y, np.arange(24).reshape(4, 6) % 2 > 0, [4, 5, 6])),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y, 0)),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y, v)),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y, v[:3])),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y, v[:0])),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y, v, wrap=True)),
    on_copy(lambda y, i, m, v, s: np.fill_diagonal(y[:, 1:], v[0])),
    on_copy(lambda y, i, m, v, s: np.add.at(y, i, 1)),
    on_copy(lambda y, i, m, v, s: np.add.at(y, (i, i), v)),
    on_copy(lambda y, i, m, v, s: np.add.at(y[1], i, 1)),
    on_copy(lambda y, i, m, v, s: np.add.at(y, m, 5)),
    on_copy(lambda y, i, m, v, s: np.add.at(y, [0, 0], 3)),
    on_copy(lambda y, i, m, v, s: np.add.at(y, slice(1, 3), v[:2, None])),
    on_copy(lambda y, i, m, v, s: np.subtract.at(y, (slice(None), i), v)),
    on_copy(lambda y, i, m, v, s: np.maximum.at(y, (i, 0), v * 9)),
    on_copy(lambda y, i, m, v, s: np.minimum.at(y, (0, i), v)),
    on_copy(lambda y, i, m, v, s: np.multiply.at(y, (i % 2, i), v)),
    on_copy(lambda y, i, m, v, s: np.negative.at(y, [0, 2])),
    on_copy(lambda y, i, m, v, s: np.maximum.at(y, (i, i), x_of(y)[0, :4])),
]


def x_of(y: Any) -> Any:
    return y * 3 - 2


def counted(x: Any, i: Any, m: Any, v: Any, s: Any) -> Any:
    counts, sums, small, floats = np.zeros(4, int), np.zeros(4), np.zeros(4, np.uint8), None
    np.add.at(counts, i, 1)
    np.add.at(sums, i, v)
    np.add.at(small, i, 300)
    floats = np.ones(4, np.float32)
    np.add.at(floats, i, 0.5)
    np.divide.at(floats, i, np.float32(3))
    return counts, sums, small, floats


@pytest.mark.parametrize("function", [*FUNCTIONS, counted])
def test_same_as_numpy(function: Any) -> None:
    check(function, X, I, M, V, S)
    check(function, X.astype(np.int16), I, M, V, S)


def test_compiled() -> None:
    def everything(*args: Any) -> Any:
        return [function(*args) for function in FUNCTIONS], counted(*args)

    args = (X, I, M, V, S)
    assert_same(tinyfuse.jit(everything)(*args), everything(*args))


def test_values_stretched_over_several_axes_of_places() -> None:
    """numpy reads behind the end of values that it should stretch, if these have one axis."""
    y, i, v = np.zeros(3), np.array([[0, 1, 2], [2, 1, 0]]), np.array([1.0, 10.0, 100.0])

    def added(y: Any, i: Any, v: Any) -> Any:
        np.add.at(y, i, v)
        return y

    expected = np.array([101.0, 20.0, 101.0])
    assert added(y.copy(), i, np.broadcast_to(v, i.shape).copy()).tolist() == expected.tolist()
    assert tinyfuse.jit(added)(y.copy(), i, v).tolist() == expected.tolist()
    itself = tinyfuse.jit(lambda y, i: added(y, i, y))(v.copy(), i)
    assert itself.tolist() == [102.0, 30.0, 201.0]


def test_arguments_are_written() -> None:
    @tinyfuse.jit
    def histogram(counts: Any, i: Any) -> None:
        np.add.at(counts, i, 1)
        np.put(counts, [0], 7)

    counts = np.zeros(4, int)
    histogram(counts, I)
    assert counts.tolist() == [7, 0, 2, 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, m, v, s: np.take(x, i + 30),
        lambda x, i, m, v, s: np.take(x, i, mode="x"),
        lambda x, i, m, v, s: np.choose(i, [v, v]),
        lambda x, i, m, v, s: np.select([x], [x]),
        lambda x, i, m, v, s: np.select([m], [x, x]),
        lambda x, i, m, v, s: np.ravel_multi_index((i, i), (2, 3)),
        lambda x, i, m, v, s: np.unravel_index(i, (2, 3)),
        lambda x, i, m, v, s: np.take_along_axis(x, i, 0),
        lambda x, i, m, v, s: np.put(x * 1, i + 99, 1),
        lambda x, i, m, v, s: np.add.at(x * 1, i + 7, 1),
        lambda x, i, m, v, s: np.diag(x[0, 0]),
        lambda x, i, m, v, s: np.ix_(x),
        lambda x, i, m, v, s: np.searchsorted(x, v),
    ],
)
def test_errors_have_numpys_words(function: Any) -> None:
    args = (X, I, M, V, S)
    with pytest.raises((IndexError, ValueError, TypeError)) as numpys:
        function(*args)
    with pytest.raises(numpys.type) as ours:
        replay(trace_call(function, *args), *args)
    assert str(ours.value).split("\n")[0] == str(numpys.value).strip()


class Outside:
    """Whose methods are not traced, and see numpy itself."""

    def halves(self) -> Any:
        return np.full(4, 0.5)


def test_refusals() -> None:
    with pytest.raises(DataDependentShapeError, match="as data decide: pass minlength="):
        tinyfuse.jit(lambda x: np.bincount(x))(I)
    real = GENERATOR.random(4)
    with pytest.raises(
        InPlaceWriteError, match=r"np\.put writes a traced value into an array that"
    ):
        tinyfuse.jit(lambda v: np.put(Outside().halves(), [0], v[:1]))(real)


def test_copies_of_read_only_views_are_written() -> None:
    def function(x: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, 2)
        copied = windows.reshape(-1)
        copied[0] = 5
        np.add.at(copied, [1, 1], 2)
        return copied

    check(function, V)
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        tinyfuse.jit(lambda x: np.add.at(np.diagonal(x), [0], 1))(X)


NARROW = [np.arange(2, dtype=dtype) for dtype in ("i1", "u1", "i4", "f4", "?")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("x", NARROW, ids=lambda x: x.dtype.name)
def test_numbers_among_choices_are_weak(x: Any) -> None:
    numbers = (300, -1, 2**40, 2**63, True, 3.7, 1e300, np.nan, -0.0)
    arrays = (np.int16(300), np.array(300), np.float64(2), [1, 300], [300])

    def choices(x: Any, i: Any, y: float) -> Any:
        of_scalars = [np.choose(i, [x[0], number]) for number in (300, 2.5, y)]
        of_numbers = np.choose(i, [1, 2.5]), np.choose(i, [1, True]), np.choose(i, [y, 3])
        wrapped = (
            i.choose([x, y]),
            np.choose(i + 5, [300, x], mode="wrap"),
            np.choose(i[1], [x, 300]),
        )
        each = [np.choose(i, [x, other]) for other in (*numbers, *arrays, [y, 1.0], np.asarray(y))]
        return (
            each,
            [np.choose(i, [other, x, y]) for other in numbers],
            of_scalars,
            of_numbers,
            wrapped,
        )

    traced = check(choices, x, np.array([0, 1]), 1e300)
    assert traced.specs[2].kind == "weak"
    assert tinyfuse.jit(lambda x: np.choose([0, 1], [x, 300]))(NARROW[0]).tolist() == [0, 44]


# -- positions that are known to be within range are not looked at for it

TABLE = np.arange(256.0)
WITHIN: dict[str, Callable[..., Any]] = {
    "clipped": lambda table, i: table[np.clip(i, 0, 255)],
    "clipped by take": lambda table, i: np.take(table, i, mode="clip"),
    "wrapped": lambda table, i: np.take(table, i, mode="wrap"),
    "remainders": lambda table, i: table[i % 7 + 200],
    "below zero": lambda table, i: table[i % 7 - 256],
    "bytes": lambda table, i: table[i.astype(np.uint8)],
    "signed bytes": lambda table, i: table[i.astype(np.int8)],
    "of bytes": lambda table, i: table[table[i.astype(np.uint8)].astype(np.uint8)],
    "comparisons": lambda table, i: table[(i > 4).astype(int) + (i > 6)],
    "choices": lambda table, i: table[np.where(i > 4, i % 5, 255)],
    "reshaped": lambda table, i: table[(i % 256).reshape(2, -1).T[1:]],
}
OUTSIDE: dict[str, Callable[..., Any]] = {
    "too many bytes": lambda table, i: table[:255][i.astype(np.uint8)],
    "one past": lambda table, i: table[np.clip(i, 0, 256)],
    "below": lambda table, i: table[i % 7 - 257],
    "narrowed": lambda table, i: table[np.clip(i, 0, 2**33).astype(np.int32)],
    "one more": lambda table, i: table[np.minimum(np.maximum(i, 0) + 1, 255)],
    "wrapped around": lambda table, i: table[np.minimum(i % 7 * 2**62, 255)],
    "one choice": lambda table, i: table[np.where(i > 4, 5, i)],
}


@pytest.mark.parametrize("name", [*WITHIN, *OUTSIDE])
def test_places_known_to_be_within_range_are_not_checked(name: str) -> None:
    function = (WITHIN | OUTSIDE)[name]
    i = np.random.default_rng(0).integers(-300, 300, 1000)
    checks = tinyfuse.jit(function).lower(TABLE, i).as_text("c").count("logical_or")
    assert bool(checks) == (name in OUTSIDE)
    if name in WITHIN:
        check(function, TABLE, i)


@pytest.mark.parametrize(
    ("place", "k"),
    [
        (lambda k: np.maximum(np.minimum(k, 5) - 2**62, 0), -(2**62) - 2**40 - 2),
        (lambda k: np.minimum(np.maximum(k, 0) + 5, 9), 2**63 - 1),
    ],
)
def test_a_number_that_wraps_around_is_checked(place: Callable[..., Any], k: int) -> None:
    def put(table: Any, k: Any) -> Any:
        table[place(k)] = 1
        return table

    with np.errstate(over="ignore"):
        for function in (put, tinyfuse.jit(put)):
            with pytest.raises(IndexError):
                function(np.zeros(10), np.int64(k))
