"""One property for each kind of fault that array compilers are known for, through `tinyfuse.jit`.

Each test takes the whole kind: all dtypes, all layouts, all slices of a small array, special values
in all pairs. Results, and the caller's arrays afterwards, are numpy's to the bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tinyfuse import jit
from tinyfuse.dtypes import FLOATING, SUPPORTED
from tinyfuse.testing import LAYOUTS, Case, difference, special_values
from tinyfuse.testing.memory import fresh
from tinyfuse.testing.program import quietly
from tinyfuse.tree import flatten

INTEGERS = [dtype for dtype in SUPPORTED if dtype.kind in "iu"]
NUMBERS = [dtype for dtype in SUPPORTED if dtype.kind != "b"]


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """Results, arguments afterwards and memory shared with them: as without jit."""
    case = Case(function, arguments, function.__name__)
    found = case.jitted()
    for want, have in zip([*case.expected, case.shared], found, strict=True):
        assert difference(want, have) is None


def check_calls(function: Callable[..., Any], calls: Iterator[tuple[Any, ...]]) -> int:
    """The same for several calls of one jitted function; how many programs they needed."""
    compiled = jit(function)
    for arguments in calls:
        plain, given = fresh(arguments), fresh(arguments)
        want = flatten((quietly(function, *plain), plain))[0]
        have = flatten((quietly(compiled, *given), given))[0]
        assert [difference(a, b) for a, b in zip(want, have, strict=True)] == [None] * len(want)
    return compiled.cache_info().misses


def some(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 9, shape)
    return (values % 2 == 0) if np.dtype(dtype).kind == "b" else values.astype(dtype)


def slices(extent: int) -> list[slice]:
    """With all starts and ends around the array, and several steps."""
    ends = (None, *range(-extent - 2, extent + 3))
    return [slice(a, b, c) for a in ends for b in ends for c in (None, 2, -1, -2)]


# --- layouts of what comes in ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.bool_])
def test_layout_changes_no_value(dtype):
    def function(a, b):
        return a | b if a.dtype.kind == "b" else a * 2 + b, np.maximum(a, b.max()), a[:, ::-1]

    pairs = itertools.product(LAYOUTS.values(), repeat=2)
    calls = ((one(some((3, 4), dtype)), other(some((3, 4), dtype, 1))) for one, other in pairs)
    assert check_calls(function, calls) == 1  # and costs no compilation


@pytest.mark.parametrize(
    "layout", [name for name in LAYOUTS if name not in ("read-only", "broadcast", "overlapping")]
)
def test_layout_changes_no_write(layout: str):
    def function(x):
        x[1:, ::2] += 1
        x.T[0] = 7
        x.reshape(-1)[1] = 9  # a view in some layouts, in others a copy
        return x.sum()

    check(function, LAYOUTS[layout](some((3, 4), np.int64)))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_fields_of_records(dtype: np.dtype):
    records = np.zeros(5, [("flag", "i1"), ("value", dtype), ("rest", "i2")])
    records["value"] = some((5,), dtype)

    def function(field):
        return field * 2, field[::-1] - field

    check_calls(function, iter([(records["value"],), (records["value"][::2].repeat(2)[:5],)]))


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d.itemsize > 1], ids=str)
def test_foreign_byte_order(dtype: np.dtype):
    swapped = some((4,), dtype).astype(dtype.newbyteorder())
    result = jit(lambda x, y: x * 3 + y)(swapped, some((4,), dtype, 1))
    assert difference(some((4,), dtype) * 3 + some((4,), dtype, 1), result) is None


def test_read_only_arrays():
    x = LAYOUTS["read-only"](some((4,)))
    check(lambda x: (x, x[1:], x + 1), x)

    def assigned(x):
        x[1:] = 3

    def added(x):
        x += 1

    for function in (assigned, added):
        with pytest.raises(ValueError, match="read-only"):
            jit(function)(x)
    assert x.tolist() == some((4,)).tolist()


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 2), (0, 0)])
def test_empty_arrays_in_reductions(shape: tuple[int, ...]):
    def function(x, other):
        sums = [x.sum(axis=k) for k in range(x.ndim)], x.prod(), x.any(), x.all(), x.mean(axis=0)
        most = [x.max(axis=k) for k in range(x.ndim) if x.shape[k]]
        return sums, most, x @ other, np.dot(x, other)

    check(function, np.zeros(shape), np.ones((shape[-1], 2)))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 1), ((2, 0), None)]
)
def test_extrema_of_nothing_raise(name: str, shape: tuple[int, ...], axis: int | None):
    def function(x):
        return getattr(x, name)(axis=axis)

    with pytest.raises(ValueError, match=r"empty|zero-size"):
        function(np.zeros(shape))
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        jit(function)(np.zeros(shape))


@pytest.mark.parametrize("extent", [0, 1, 4])
def test_slices_are_clipped(extent: int):
    chosen = slices(extent)[::5]

    def function(x):
        return (
            [x[s] + 1 for s in chosen],
            [x[s].sum() for s in chosen],
            [x[s].shape for s in chosen],
        )

    check(function, some((extent,), np.int64))


@pytest.mark.parametrize("extent", [0, 1, 4])
def test_assigned_slices_are_clipped(extent: int):
    chosen = slices(extent)[::11]

    def function(x):
        results = []
        for number, s in enumerate(chosen):
            y = x.copy()
            y[s] = number
            y[s] += 1
            results.append(y)
        return results

    check(function, some((extent,), np.int64))


def test_axes_of_size_one_repeat():
    shapes = [shape for rank in range(4) for shape in itertools.product((1, 3), repeat=rank)]
    pairs = list(itertools.product(shapes, repeat=2))[::4]

    def function(arrays):
        return [arrays[a] * arrays[b] for a, b in pairs], [
            (arrays[a] - arrays[b]).sum() for a, b in pairs
        ]

    check(function, {shape: some(shape, np.int64, len(shape)) for shape in shapes})


def test_slices_of_broadcast_values():
    chosen = [slice(1, 3), slice(None, None, -2), slice(-1, None), slice(4, 1, -1)]

    def function(a, b):
        p, q = a * b, np.broadcast_to(a, (5, 5))
        return [(p[s], p[:, s], p[s, s].sum(axis=0), q[s, s] + 1) for s in chosen]

    check(function, some((5, 1), np.int64), some((1, 5), np.int64, 1))


def test_reductions_without_axes():
    names = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax")

    def function(*values):
        return [getattr(np, name)(value) for name in names for value in values]

    values = [np.array(3.5), np.array(-2), np.array(True), np.float32(1.5), np.int8(-3)]
    check(function, *values)


# --- integers and booleans ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_wrap_before_they_widen(dtype: np.dtype):
    """Also where the wrapped value is not stored: C promotes small integers to int."""

    def function(x, y):
        values = [x + y, x - y, x * y, -x, ~x, x << (y & 7), abs(x), x**2, np.square(y), x & y]
        wide = [(v.astype(np.int64), v.astype(np.float64), v > 3, v == v // 1) for v in values]
        return wide, (x + y) // 2, (x * y) >> 1, (x + y) % 7

    special = special_values(dtype)
    check(function, np.repeat(special, special.size), np.tile(special, special.size))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_of_integers(dtype: np.dtype):
    """Signs, zero, the least integer by -1; shifts beyond the width."""

    def function(x, y):
        shifts = [x << y, x >> y]
        return x // y, x % y, divmod(x, y), np.fmod(x, y), x % 3, x // 3, 7 // x, 7 % x, *shifts

    special = special_values(dtype)
    check(function, np.repeat(special, special.size), np.tile(special, special.size))


def test_arithmetic_of_booleans():
    def function(p, q, x):
        sums = p.sum(), (p & q).sum(axis=-1), p.mean(), p.max()
        return p + q, p * q, p ^ q, ~p, (x > 3) * (x < 7), (x > 5) * 2.5, p + 1, x * q, sums

    check(function, *(some((2, 5), bool, seed) for seed in (0, 1)), some((2, 5), np.int64))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64], ids=str)
def test_integer_powers(dtype):
    def function(x, n):
        return x**n, x**0, x**2, x**3, x**2.0, x**0.5

    bases, exponents = np.meshgrid(some((9,), dtype), np.array([0, 1, 2, 5, 31, 64], dtype))
    check(function, bases, exponents)


# --- floats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_nan_passes_wherever_it_is(dtype: np.dtype):
    """Through extrema and sums of all lengths at which an order changes, from each position."""
    lengths = (1, 3, 64, 65, 130)

    def function(rows):
        return [
            (
                x.max(axis=1),
                x.min(axis=1),
                np.isnan(x.sum(axis=1)),
                x.argmax(axis=1),
                x.argmin(axis=1),
            )
            for x in rows
        ], [(np.clip(x[0], -1, 1), np.maximum(x[0], 0), np.fmax(x[0], 0)) for x in rows]

    rows = []
    for length in lengths:
        x = np.tile(np.arange(length, dtype=dtype) % 5, (length, 1))
        np.fill_diagonal(x, np.nan)
        rows.append(x)
    check(function, rows)


def test_the_first_of_equals_wins():
    def function(x):
        return x.argmax(axis=1), x.argmin(axis=1), x.argmax(axis=0), np.argmax(x), np.argmin(x)

    check(function, some((20, 70), np.int8) % 3)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_no_algebra_and_no_finite_math(dtype: np.dtype):
    def function(x, y):
        same = x - x, x / x, x * 0, x * 1, x + 0, x - 0, 0 - x, -x, x + -0.0, x / 1, x * -1
        tests = np.isnan(x), np.isinf(x), np.isfinite(x), x == x, x != x, ~(x < y), x >= y
        return same, tests, (x + y) - y, (x * y) / y, np.where(x != x, y, x), x * y + y

    special = special_values(dtype)
    check(function, np.repeat(special, special.size), np.tile(special, special.size))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_signs_of_zeros_and_rounding_of_halves(dtype: np.dtype):
    def function(x, y):
        remainders = x % y, x // y, np.fmod(x, y), np.copysign(1, np.where(y == 0, 1, x % y))
        return *remainders, np.rint(x), np.round(x), np.floor(x), np.trunc(x), np.round(x, 1), x % 2

    halves = np.concatenate([np.arange(-6, 7) / 2, [-0.0, 0.5 - 2.0**-25, 2.0**23 + 0.5]]).astype(
        dtype
    )
    check(function, np.repeat(halves, halves.size), np.tile(halves, halves.size))


def test_long_sums_of_float32_stay_accurate():
    """One running sum of so many would be off by percents."""
    x = np.full(1 << 22, 0.1, np.float32)
    total, mean, rows = jit(lambda x: (x.sum(), x.mean(), x.reshape(-1, 2).sum(axis=0)))(x)
    exact = float(np.float32(0.1)) * x.size
    assert abs(total - exact) < 1e-6 * exact
    assert abs(mean - np.float32(0.1)) < 1e-7
    assert np.abs(rows - exact / 2).max() < 1e-6 * exact


# --- fusion and writes ----------------------------------------------------------------------------


def test_overlapping_ranges_of_one_array():
    ranges = [(a, b) for a in range(5) for b in range(a + 1, 6)]

    def function(t):
        pairs = itertools.product(ranges[::2], ranges[::3])
        return [t[a:b].max() - t[c:d].min() + t[a:d].sum() for (a, b), (c, d) in pairs]

    check(function, some((6,), np.int64))


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 2), (3, 3)])
def test_a_padded_buffer_is_filled_before_it_is_read(before: int, after: int):
    def function(image):
        height, width = image.shape
        p = np.zeros((height + before + after, width + before + after), np.int32)
        p[before : before + height, before : before + width] = image
        total = np.zeros(image.shape, np.float32)
        for i in range(before + after + 1):
            total = total + p[i : i + height, i : i + width]
        return total

    check(function, some((5, 6), np.uint8))


def test_overlapping_source_and_destination():
    """As if the source were read first: all pairs of slices of equal length."""
    n = 6
    chosen = [s for s in slices(n)[::4] if len(range(*s.indices(n))) > 1]
    pairs = [
        (to, of)
        for to, of in itertools.product(chosen, repeat=2)
        if len(range(*to.indices(n))) == len(range(*of.indices(n)))
    ][::7]

    def function(x):
        results = []
        for to, of in pairs[:40]:
            y, z = x.copy(), x.copy()
            y[to] = y[of]
            z[to] += z[of]
            results += [y, z]
        return results

    check(function, some((n,), np.int64))


def test_an_array_combined_with_views_of_itself():
    views = [
        lambda x: x.T, lambda x: x[0], lambda x: x[::-1], lambda x: x[:, :1], lambda x: x[-1:],
        lambda x: x.T[::-1, ::-1], lambda x: x.reshape(-1)[: x.shape[0]], lambda x: x,
    ]  # fmt: skip

    def function(x):
        results = []
        for view in views:
            a, b, c = x + 0, x + 0, x + 0
            a += view(a)
            b *= view(b) - 1
            np.subtract(view(c), c, out=c)
            results += [a, b, c]
        return results

    check(function, some((4, 4), np.int64))


def test_two_names_of_one_array():
    def function(x, y):
        x[1:] = 7
        y *= 2
        x[0] = y[-1] + 1
        return x + y, y

    array = some((4,), np.int64)
    check(function, array, array)
    check(function, array, array.copy())
    assert (
        check_calls(function, iter([(array, array), (array, array[:]), (array, array.copy())])) > 1
    )


def test_errors_leave_the_arguments_alone():
    """What is found out at run time is raised before anything is written."""

    def function(x, ids, y):
        x += 1
        y[...] = 0
        return x[ids]

    x, y, ids = some((4,)), some((3,)), np.array([0, 4])
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        jit(function)(x, ids, y)
    assert (x.tolist(), y.tolist()) == (some((4,)).tolist(), some((3,)).tolist())


# --- names and numbers ----------------------------------------------------------------------------

WORDS_OF_C = (
    "auto", "case", "char", "const", "default", "do", "double", "enum", "extern", "float", "goto",
    "inline", "int", "long", "register", "restrict", "return_", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "_Bool",
    "NULL", "exp", "sin", "pow", "max", "min", "fma", "malloc", "memcpy", "main", "arrays",
    "scratch", "pool", "tf_pool", "t0", "out0", "i", "j", "k", "n", "x0", "true", "false", "errno",
    "stdin", "int32_t", "size_t", "bool", "complex", "I", "_Atomic", "asm", "typeof", "function",
)  # fmt: skip


def test_users_names_that_mean_something_in_c():
    names = WORDS_OF_C
    lines = [f"    {a} = {b} + {a} * 2" for a, b in itertools.pairwise(names)]
    source = "\n".join(
        [f"def function({', '.join(names)}):", *lines, f"    return {names[0]}, {names[-2]}"]
    )
    variables: dict[str, Any] = {}
    exec(source, variables)
    check(variables["function"], *(some((3,), np.int64, seed) for seed in range(len(names))))


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_numbers_on_the_left(dtype: np.dtype):
    """numpy's scalars are strong, Python's weak; both hand over to the traced array."""
    strong = [d.type(1) for d in SUPPORTED]

    def function(x):
        sums = [number + x for number in (*strong, 1, 2.0, True)] + [
            x * number for number in strong
        ]
        return sums, [number < x for number in strong], [np.maximum(number, x) for number in strong]

    check(function, some((3,), dtype))


def test_deep_chains_and_many_arrays():
    def function(*arrays):
        y = arrays[0]
        for _ in range(500):
            y = y * 0.5 + 1.0
        total = arrays[0] * 0
        for x in arrays:
            total += x
            x += 1
        return y, total

    check(function, *(some((4,), np.float64, seed) for seed in range(60)))
