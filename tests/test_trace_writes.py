"""Writes in place: into views, through several names, into arguments; as numpy does them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same, check, trace_call, twin
from tinyfuse import errors
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.simplify import simplify

X = np.arange(12.0).reshape(3, 4) - 5
SQUARE = np.arange(16.0).reshape(4, 4) / 7
LINE = np.arange(12.0) / 7 + 0.1


def both(function: Callable[..., Any], *args: Any) -> Any:
    """What numpy returns, after comparing it, and what is written, with the compiled function's."""
    expected_in, found_in = twin(list(args)), twin(list(args))
    with np.errstate(all="ignore"):
        expected = function(*expected_in)
        found = tinyfuse.jit(function)(*found_in)
    assert_same(found, expected)
    assert_same(found_in, expected_in)
    return expected


# -- one write


STATEMENTS = """\
x[0] = 1
x[-1, 2] = 0.5
x[1:] = x[:-1]
x[:] = x[::-1]
x[...] = y
x[0] = y[1]
x[:, 1:3] = 7
x[::2, ::-1] = y[::2]
x[None, 1] = y[:1]
x[1, ...] = True
x[:2] = [[1, 2, 3, 4]]
x[0] = (5, 6, 7, 8)
x[:, 0] = x[:, 1]
x[3:] = 9
x += 1
x -= y
x *= 2.5
x /= y + 20
x //= 3
x %= 3
x **= 2
x **= 3
x **= 0.5
x @= np.eye(4)
x += x[::-1]
x[1] += x[0]
x[:, 1:] -= x[:, :-1]
x[0, 0] += 5
x[...] *= 2
x[:] += y
x[1:, 1] **= 2
x[::-1] += x
x += np.int8(3)
x.fill(3)
x[1].fill(np.float32(0.1))
np.copyto(x, y)
np.copyto(x[1], 2)
np.copyto(x, y, where=y > 0)
np.copyto(x[0], y[2], where=[True, False, True, False])
np.add(x, y, out=x)
np.add(x, 1, x)
np.negative(y, out=x[::-1])
np.exp(x[0], out=x[0])
np.add(x, y, out=x, where=y > 0)
np.divmod(x, 3, out=(x, y))
np.sum(x, axis=0, out=y[0])
x.sum(axis=1, out=y[:, 0])
np.add.reduce(x, axis=0, out=y[1])
x.max(0, out=y[1])
x.any(0, out=y[0])
np.clip(x, -1, 1, out=y)
x.clip(0, 1, out=x)
np.matmul(x, y.T, out=np.zeros((3, 3)))
np.dot(x[:3, :3], y[:3, :3], out=np.ones((3, 3)))
np.concatenate([x[:1], y[:2]], out=x)
np.stack([x[0], y[1], x[2]], out=y)
np.mean(x, axis=0, out=y[0])
x.std(0, out=y[1].astype(x.dtype))
np.round(x, out=x)
np.multiply(x[:1], y, out=x)
np.add(x[0], 1, out=x)
x.T[:] = y.T
x.T[0] += 1
x.reshape(-1)[::5] = 0
x.ravel()[3:5] = 1
x[1:].T[0] *= 3
x[::2].reshape(-1)[0] = 1
x.T.reshape(-1)[0] = 1
np.swapaxes(x, 0, 1)[1] = 8
np.flip(x)[0] = 1
np.split(x, 2, axis=1)[1][...] = 4
x[:0] = 3
x[1:1] += 1
x[..., 0][...] = 2
x[1][2] = 3
x[1][1:][::-1][0] += 5
"""


@pytest.mark.parametrize("statement", STATEMENTS.splitlines())
def test_a_statement(statement: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x, y):\n    {statement}\n    return x, y", space)
    for x in (X, X.astype(np.float32), np.asfortranarray(X), X[::-1, ::-1]):
        check(space["f"], x, X + 0.5)
    both(space["f"], X, X + 0.5)


CONVERSIONS = """\
int32: x[0] = 2.7
int32: x[0] = -2.7
int8: x[...] = y
int8: x += 1
uint8: x[:2] = y[:2]
uint8: x -= 200
bool: x[0] = 2
bool: x |= x[::-1]
float32: x[...] = y * 1e30
float32: x += y
float32: x += 0.1
int64: x <<= 1
int64: x //= 2
int64: x %= 3
int64: x **= 2
uint8: x *= x
int16: x += np.int8(-3)
int64: x ^= 5
int64: x[0] = True
int32: np.add(x, x, out=x, dtype=np.int64, casting='unsafe')
int8: np.sum(x, out=x[0, ...])
int32: np.sum(y, axis=0, out=x)
int32: np.copyto(x, y, casting='unsafe')
int8: x[0] = y[0]
uint8: x[0] = y[0]
"""


@pytest.mark.parametrize("case", CONVERSIONS.splitlines())
def test_conversions(case: str) -> None:
    dtype, statement = case.split(": ", 1)
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x, y):\n    {statement}\n    return x", space)
    y = X[0] if "axis" not in statement else X
    check(space["f"], np.arange(4).astype(dtype), y)
    both(space["f"], np.arange(4).astype(dtype), y)


# -- several names


def swapped_buffers(a: Any) -> Any:
    b, c = a.copy(), np.zeros_like(a)
    for _ in range(5):
        c[1:-1] = b[:-2] + b[2:]
        b, c = c, b
    return b, c


def swapped_arguments(a: Any, b: Any) -> Any:
    for _ in range(3):
        b[1:-1] = a[:-2] + 0.5 * a[2:]
        a, b = b, a
    return a


def rebound_and_written(a: Any) -> Any:
    y = a
    for _ in range(3):
        a = a * 0.5 + y
    a += y
    return a, y


def written_through_another_name(a: Any) -> Any:
    y = a
    for _ in range(3):
        a += y * 0.1
    return a + y


def rotated(a: Any) -> Any:
    p, q, r = a + 1, a + 2, a + 3
    for _ in range(4):
        p, q, r = q, r, p
        p *= 1.5
    return p, q, r


def view_kept(a: Any) -> Any:
    for i in range(6):
        row = a[i : i + 3]
        row += 1
    row *= 10
    return a, row


def scalars_are_copies(a: Any) -> Any:
    v, w, z = a[0], a[0:1], a[0, ...]
    a[0] = 9
    v += 1
    z *= 2
    return v, w, z, a


def reshape_of_a_transpose(a: Any) -> Any:
    m = a.reshape(3, 4).T
    c = m.reshape(-1)
    c += 100
    v = a.reshape(3, 4).reshape(-1)
    v += 1000
    return c, a, v, m


def copy_seen_before_a_write(a: Any) -> Any:
    m = a.reshape(3, 4)
    copied, viewed = m.T.ravel(), m.ravel()
    m[0] = 7
    part = copied[2:4]
    copied[:] += 1
    return copied, viewed, part


def rows(a: Any) -> Any:
    m = a.reshape(4, 3)
    for row in m:
        row -= row.mean()
    return m


def elimination(a: Any) -> Any:
    m = np.outer(a, a) + 5 * np.eye(len(a))
    for i in range(3):
        for j in range(i + 1, 4):
            m[j, i] /= m[i, i]
            m[j, i + 1 :] -= m[j, i] * m[i, i + 1 :]
    return m


def broadcast_follows(a: Any) -> Any:
    wide = np.broadcast_to(a, (2, 12))
    a[3] = -1
    return wide + 0, np.diagonal(a.reshape(3, 4)) + 0


def list_of_arrays(a: Any) -> Any:
    parts = [a * 1, a * 2]
    for i in range(3):
        parts[0] = parts[1] * 0.5 + i
        parts[1] += parts[0]
    return parts


@dataclasses.dataclass
class State:
    u: Any
    v: Any


def helper(v: Any, i: int) -> Any:
    v[i] *= 3
    return v


def through_helpers(a: Any) -> Any:
    state = State(a, a[2:])
    for i in range(3):
        helper(state.v, i)
        helper(v=state.u, i=i)
    return state.u


def stored_in_a_container(a: Any) -> Any:
    kept = {"a": a[1:], "b": [a]}
    kept["a"][0] = 4
    kept["b"][0] += 1
    kept["b"][0][2] += kept["a"][0]
    return kept


def zero_dimensional(a: Any) -> Any:
    total = np.max(a, keepdims=True).reshape(())
    total += 1
    total[...] *= 2
    total[()] -= 3
    total.fill(total + 1)
    return total, np.add(total, 1, out=total) is total


FUNCTIONS = [
    *(swapped_buffers, rebound_and_written, written_through_another_name, rotated, view_kept),
    *(scalars_are_copies, reshape_of_a_transpose, copy_seen_before_a_write, rows, elimination),
    *(broadcast_follows, list_of_arrays, through_helpers, stored_in_a_container, zero_dimensional),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: Callable[..., Any]) -> None:
    check(function, LINE)
    check(function, np.repeat(LINE, 2)[::2])
    both(function, LINE)


def test_a_mask_is_read_before_anything_is_written() -> None:
    """numpy reads a mask while it writes, so that it sees what it has written."""

    def shifted(m: Any, v: Any) -> Any:
        np.copyto(m[1:], v, where=m[:-1])
        return m

    mask, values = np.array([True, True, False, True, False]), np.array([False, True, True, False])
    expected = np.array([True, False, True, True, False])
    found = mask.copy()
    np.copyto(found[1:], values, where=mask[:-1])
    assert found.tolist() == expected.tolist()
    assert tinyfuse.jit(shifted)(mask.copy(), values).tolist() == expected.tolist()
    check(lambda m, v: np.copyto(m, v, where=m), mask[1:], values)

    def turned(m: Any, v: Any) -> Any:
        m[m[::-1]] = v
        return m

    found = mask.copy()
    found[mask[::-1]] = False
    assert tinyfuse.jit(turned)(mask.copy(), False).tolist() == found.tolist()


def test_a_copy_of_what_is_read_only_can_be_written() -> None:
    def copied(x: Any) -> Any:
        stretched = np.broadcast_to(x, (3, *x.shape))
        flat = stretched.reshape(2, -1, 3)
        view, other = flat[None], flat[0]
        x[...] = 7
        total = other.sum()
        view[0, 1, total.astype(int) % 2] += 1
        return flat, view, total

    check(copied, np.arange(8.0).reshape(4, 2))


def test_extremes_that_numpy_converts_on_the_way_are_refused() -> None:
    """numpy puts the first element alone through the dtype of `out`."""
    x = np.array([[-3, 2], [258, 5]])
    message = (
        r"np\.minimum\.reduce\(\.\.\., out=\) of uint8, where numpy compares int64 and converts "
        "elements on the way, is not supported: pass an array of int64"
    )
    with pytest.raises(errors.UnsupportedArgumentError, match=message):
        tinyfuse.jit(lambda x, low: np.min(x, axis=0, out=low))(x, np.zeros(2, np.uint8))
    check(lambda x, low: np.min(x, axis=0, out=low), x, np.zeros(2))


def test_swapped_arguments() -> None:
    check(swapped_arguments, LINE, LINE * 3)
    both(swapped_arguments, LINE, LINE * 3)


def test_run_time_floats_are_not_changed_in_place() -> None:
    def scaled(x: Any, a: float) -> Any:
        b = a
        a += 1
        x *= a
        x[0] = b
        return x, a, b

    both(scaled, X, 0.5)


# -- what is recorded


def test_writes_are_equations() -> None:
    def stencil(u: Any) -> Any:
        u[1:-1] += u[2:]
        return u[0]

    traced = trace_call(stencil, np.arange(5.0))
    assert graph_text(simplify(traced.graph)) == (
        "stencil(u: float64[5]) {\n"
        "  slice: float64[3] = slice[starts=(1,) steps=(1,)] u\n"
        "  slice_1: float64[3] = slice[starts=(2,) steps=(1,)] u\n"
        "  add: float64[3] = add slice slice_1\n"
        "  u_1: float64[5] = update[starts=(1,) steps=(1,)] u add\n"
        "  slice_2: float64[1] = slice[starts=(0,) steps=(1,)] u\n"
        "  reshape: float64[] = reshape slice_2\n"
        "  return reshape, u_1\n"
        "}"
    )
    assert [written.input.name for written in traced.written] == ["u"]


def test_what_is_read_where_it_was_put_needs_no_update() -> None:
    def product(x: Any) -> Any:
        out = np.empty_like(x)
        out[0] = x[0]
        for i in range(1, 3):
            out[i] = out[i - 1] * x[i]
        return out[2]

    graph = simplify(check(product, X).graph)
    assert "update" not in [eqn.primitive.name for eqn in graph.eqns]


def test_views_of_what_was_not_written_are_read_once() -> None:
    def reading(x: Any, y: Any) -> Any:
        row = x[0]
        y[0] = 1
        return row + row, y

    eqns = trace_call(reading, X, X.copy()).graph.eqns
    assert [eqn.primitive.name for eqn in eqns].count("slice") == 1


def test_many_writes_and_views() -> None:
    def chain(x: Any) -> Any:
        view = x
        for _ in range(1500):
            view = view[::-1]
        for _ in range(3):
            view += 1
        for i in range(400):
            x[i % 4] += 1
        return view

    check(chain, np.arange(4.0))


# -- arguments


def shifted(x: Any, y: Any) -> Any:
    x[1:] = x[:-1]
    x += y
    y[0] = 5
    return x, x[1:], y.T, x[0].sum(), x + 1


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "c": lambda x: x.copy(),
    "fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "misaligned": lambda x: _misaligned(x),
    "transposed part": lambda x: np.pad(x.T, 1)[1:-1, 1:-1].T,
}


def _misaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    moved: np.ndarray = np.ndarray(x.shape, x.dtype, memory, 1)
    moved[...] = x
    return moved


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_arguments_of_any_layout(layout: str, dtype: str) -> None:
    jitted = tinyfuse.jit(shifted)
    make = LAYOUTS[layout]
    x, y = make(SQUARE.astype(dtype)), make((SQUARE * 3).astype(dtype))
    expected_in = [SQUARE.astype(dtype), (SQUARE * 3).astype(dtype)]
    expected = shifted(*expected_in)
    found = jitted(x, y)
    np.testing.assert_array_equal(x, expected_in[0])
    np.testing.assert_array_equal(y, expected_in[1])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0] is x
    assert np.shares_memory(found[1], x)
    assert np.shares_memory(found[2], y)
    found[1][...] = -1
    assert (x[1:] == -1).all()


@pytest.mark.parametrize("step", [1, 4, 8, -4, -8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
def test_a_strided_array_is_negated_in_place(dtype: str, step: int) -> None:
    # numpy 2.4 itself takes wrong elements at steps of 16 bytes, or of 64 where items have 8
    x = np.arange(33 * abs(step)).astype(dtype)[::step]
    expected = -x.copy()
    tinyfuse.jit(lambda x: np.negative(x, out=x))(x)
    np.testing.assert_array_equal(x, expected)


def test_one_program_serves_all_layouts_where_none_decides() -> None:
    jitted = tinyfuse.jit(shifted)
    for make in (LAYOUTS["c"], LAYOUTS["fortran"], LAYOUTS["reversed"], LAYOUTS["every second"]):
        jitted(make(SQUARE), SQUARE.copy())
    assert jitted.cache_info().misses == 1


def test_layouts_that_decide_between_view_and_copy() -> None:
    def flattened(x: Any) -> Any:
        flat = x.reshape(-1)
        flat += 1
        return flat

    jitted = tinyfuse.jit(flattened)
    for _ in range(2):
        for make in (LAYOUTS["c"], LAYOUTS["fortran"], LAYOUTS["every second"]):
            x, y = make(SQUARE), make(SQUARE)
            np.testing.assert_array_equal(jitted(x), flattened(y))
            np.testing.assert_array_equal(x, y)
    assert jitted.cache_info().misses == 3
    jitted(SQUARE.repeat(3, 0).repeat(3, 1)[::3, ::3])  # copied as every second element is
    assert jitted.cache_info().misses == 3


def test_containers_of_arrays() -> None:
    def train(model: Any, batch: Any) -> Any:
        for layer, part in zip(model["layers"], batch, strict=True):
            layer -= 0.1 * part
        model["state"].u[0] = batch[0][0]
        model["state"].v += 1
        return model["layers"][0]

    def arguments() -> Any:
        state = State(np.zeros((2, 4)), np.ones(3))
        return {"layers": [X.copy(), X * 2], "state": state}, (X + 1, X + 2)

    one, other = arguments(), arguments()
    expected = train(*one)
    found = tinyfuse.jit(train)(*other)
    assert found is other[0]["layers"][0]
    assert_same(found, expected)
    assert_same(other, one)


# -- the same memory twice


def crossing(x: Any, y: Any) -> Any:
    x[0] = 10
    y[1] = x[0] + y[0]
    x += y
    return x, y, x is y


def test_the_same_array_twice() -> None:
    jitted = tinyfuse.jit(crossing)
    for _ in range(2):
        one, other = LINE.copy(), LINE.copy()
        expected, found = crossing(one, one), jitted(other, other)
        assert_same(found, expected)
        assert found[0] is other
        assert found[1] is other
        np.testing.assert_array_equal(other, one)
        assert_same(jitted(LINE.copy(), LINE.copy()), crossing(LINE.copy(), LINE.copy()))
    assert jitted.cache_info().misses == 2
    check(crossing, LINE, LINE)


def test_two_arrays_in_one_place() -> None:
    one, other = LINE.copy(), LINE.copy()
    expected, found = crossing(one, one[:]), tinyfuse.jit(crossing)(other, other[:])
    assert_same(found, expected)
    np.testing.assert_array_equal(other, one)


def test_the_same_array_twice_in_a_function_that_writes_nothing() -> None:
    jitted = tinyfuse.jit(lambda x, y: x + y)
    np.testing.assert_array_equal(jitted(X, X), X + X)
    np.testing.assert_array_equal(jitted(X, -X), np.zeros_like(X))
    assert jitted.cache_info().misses == 1


def test_parts_that_overlap() -> None:
    jitted = tinyfuse.jit(crossing)
    a = LINE.copy()
    with pytest.raises(errors.OverlapError) as caught:
        jitted(a[1:], a[:-1])
    assert str(caught.value).split("\n")[0] == (
        "crossing(): x, which the function writes, shares a part of its memory with y: pass a copy "
        "of one of them, as in y.copy()"
    )
    np.testing.assert_array_equal(a, LINE)
    pairs = np.stack([LINE, LINE * 2], axis=1)
    expected = crossing(LINE.copy(), LINE * 2)
    assert_same(jitted(pairs[:, 0], pairs[:, 1]), expected)
    with pytest.raises(errors.OverlapError, match="several elements in one place of memory"):
        jitted(np.lib.stride_tricks.as_strided(a, (5,), (0,)), LINE[:5].copy())


def test_parts_that_overlap_and_are_only_read() -> None:
    def reading(x: Any, y: Any, z: Any) -> Any:
        z += x * y
        return z

    a = LINE.copy()
    np.testing.assert_array_equal(
        tinyfuse.jit(reading)(a[1:], a[:-1], np.ones(11)), 1 + LINE[1:] * LINE[:-1]
    )


# -- what can't be written, and errors on the way


def test_read_only_arguments() -> None:
    def element(x: Any) -> Any:
        x[0] = 1

    def whole(x: Any) -> Any:
        x += 1

    x = LINE.copy()
    x.flags.writeable = False
    for function, words in ((element, "assignment destination"), (whole, "output array")):
        with pytest.raises(ValueError, match=f"{words} is read-only") as caught:
            tinyfuse.jit(function)(x)
        line = function.__code__.co_firstlineno + 1
        assert f"test_trace_writes.py:{line}, in {function.__name__}" in str(caught.value)
    tinyfuse.jit(lambda x: np.copy(x).fill(1))(x)
    np.testing.assert_array_equal(x, LINE)


def test_an_error_leaves_all_arguments_as_they_were() -> None:
    def halfway(x: Any, n: Any) -> Any:
        x[0] = 99
        n += 1
        x *= n**n
        return x

    x, n = np.arange(3), np.array([1, -3, 2])
    with pytest.raises(ValueError, match="negative integer powers"):
        tinyfuse.jit(halfway)(x, n)
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(n, [1, -3, 2])
    with pytest.raises(errors.ShapeError):
        tinyfuse.jit(lambda x: (x.fill(7), x + np.ones(4)))(x)
    np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        *(("int8", np.float64(300), OverflowError), ("int8", np.float32("nan"), ValueError)),
        *(("int64", np.float64(1e30), OverflowError), ("int32", np.float64("-inf"), OverflowError)),
        *(("int8", np.int64(-129), OverflowError), ("int64", np.uint64(2**63), OverflowError)),
        *(("int8", np.float64(127.9), None), ("int8", np.float64(-128.9), None)),
        *(("uint8", np.float64(300), None), ("int64", np.float64(-(2.0**63)), None)),
        *(
            ("int16", np.int64(7), None),
            ("uint8", np.int64(-1), None),
            ("int64", np.uint64(5), None),
        ),
        *(
            ("int32", np.float32(2147483648), OverflowError),
            ("int32", np.float32(-2147483648), None),
        ),
    ],
)
def test_scalars_of_a_wider_dtype(dtype: str, value: Any, error: type[Exception] | None) -> None:
    def put(x: Any, value: Any) -> Any:
        x[0] = value
        return x

    x = np.zeros(3, dtype)
    if error is None:
        both(put, x, value)
        return
    with pytest.raises(error) as expected:
        put(x.copy(), value)
    with pytest.raises(error) as found:
        tinyfuse.jit(put)(x, value)
    assert str(found.value).split("\n")[0] == str(expected.value)
    np.testing.assert_array_equal(x, np.zeros(3))


def test_a_float_that_becomes_an_integer() -> None:
    def put(x: Any, a: float) -> Any:
        x[0] = a
        return x

    jitted = tinyfuse.jit(put)
    assert jitted(np.zeros(3, np.int64), 2.7)[0] == 2
    assert jitted(np.zeros(3, np.int64), -3.7)[0] == -3
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        jitted(np.zeros(3, np.int64), float("nan"))
    assert jitted(np.zeros(3), 2.7)[0] == 2.7


def test_elements_of_containers_are_not_replaced() -> None:
    def replacing(state: Any) -> Any:
        state["x"] = state["x"] + 1

    with pytest.raises(errors.SideEffectError, match="assigns a new value"):
        tinyfuse.jit(replacing)({"x": X})


def test_a_function_without_writes_needs_no_requirements() -> None:
    compiled = tinyfuse.jit(lambda x: x.reshape(-1) + 1).lower(X).compile()
    compiled(X)
    (executable,) = compiled._executables.values()
    assert executable.requirements is None


class ArrayLike:
    """Shows its elements to numpy, in their place or as a copy."""

    def __init__(self, elements: np.ndarray, copied: bool) -> None:
        self.elements, self._copied = elements, copied

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.elements.copy() if self._copied else self.elements


def test_arguments_that_are_like_arrays() -> None:
    jitted = tinyfuse.jit(lambda x: x.fill(7))
    shared, copied = ArrayLike(np.zeros(3), False), ArrayLike(np.zeros(3), True)
    jitted(shared)
    assert (shared.elements == 7).all()
    with pytest.raises(ValueError, match="read-only"):
        jitted(copied)
    assert (tinyfuse.jit(lambda x: x + 1)(copied) == 1).all()


def test_memory_maps(tmp_path: Any) -> None:
    path = tmp_path / "array"
    LINE.tofile(path)
    mapped = np.memmap(path, np.float64, "r+")
    assert tinyfuse.jit(lambda x: np.add(x, 1, out=x))(mapped) is mapped
    np.testing.assert_array_equal(mapped, LINE + 1)
    with pytest.raises(ValueError, match="output array is read-only"):
        tinyfuse.jit(lambda x: np.add(x, 1, out=x))(np.memmap(path, np.float64, "r"))
