"""Loops over short rows that data gives: how their kernels read, and what is put together there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.dtypes import FLOAT64, INT64
from tinyfuse.loops.ir import Alloc, Block, Buffer, For, If, Let, Local, LoopKind, Scope, Store
from tinyfuse.lower.tidying import tidied
from tinyfuse.stage.expr import Const, Expr, Index, Load, Op
from tinyfuse.stage.index import Affine, Axis, affine

GENERATOR = np.random.default_rng(0)


def matvec(val: Any, col: Any, row: Any, x: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for r in range(row.shape[0] - 1):
        y[r] = val[row[r] : row[r + 1]] @ x[col[row[r] : row[r + 1]]]
    return y


def largest(val: Any, row: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for r in range(row.shape[0] - 1):
        y[r] = val[row[r] : row[r + 1]].max()
    return y


def one_by_one(val: Any, col: Any, row: Any, x: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for r in range(row.shape[0] - 1):
        for k in range(row[r], row[r + 1]):
            y[r] += val[k] * x[col[k]]
    return y


def sparse(rows: int, length: int, columns: int) -> tuple[Any, ...]:
    row = np.arange(0, (rows + 1) * length, length)
    col = GENERATOR.integers(-columns, columns, rows * length)
    return GENERATOR.standard_normal(rows * length), col, row, GENERATOR.standard_normal(columns)


GIVEN = sparse(200, 10, 70)


def kernel(function: Any, *args: Any) -> list[str]:
    """The lines of the one kernel that loops, without its comment."""
    lines = tinyfuse.jit(function).lower(*args).as_text("c").split("\n")
    begin = next(at for at, line in enumerate(lines) if f" {function.__name__}_loop(" in line)
    return lines[begin : lines.index("}", begin) + 1]


def test_a_product_of_rows_reads_as_it_was_written():
    lines = kernel(matvec, *GIVEN)
    assert len(lines) == 109
    text = "\n".join(lines)
    assert text.count("outside[0]") == 2
    begin = lines.index("  for (long r = 0; r < 200; r++) {")
    assert lines[begin : begin + 15] == [
        "  for (long r = 0; r < 200; r++) {",
        "    int64_t start = tf_slice_end_int64(row[r], 2000);",
        "    const int64_t stop = tf_slice_end_int64(row[r + 1], 2000);",
        "    int64_t length = tf_maximum_int64(stop - start, 0);",
        "    bool8_t outside_1;",
        "    double total;",
        "    if (__builtin_expect(length < 32, 1)) {",
        "      total = 0.0;",
        "      outside_1 = 0;",
        "      for (long k = 0; k < length; k++) {",
        "        int64_t add_14 = k + start;",
        "        int64_t gather_20 = col[add_14];",
        "        total = __builtin_fma(val[add_14], "
        "x[tf_wrap_seldom_int64(gather_20, 70)], total);",
        "        outside_1 = outside_1 | tf_is_outside_int64(gather_20, 70);",
        "      }",
    ]


def test_an_extreme_of_rows_is_that_of_ranks():
    assert kernel(largest, GIVEN[0], GIVEN[2])[1:] == [
        "  bool8_t failed_now = failed[0];",
        "  for (long r = 0; r < 200; r++) {",
        "    int64_t start = tf_slice_end_int64(row[r], 2000);",
        "    const int64_t stop = tf_slice_end_int64(row[r + 1], 2000);",
        "    int64_t length = tf_maximum_int64(stop - start, 0);",
        "    uint64_t carried = 0u;",
        "    for (long k = 0; k < length; k++)",
        "      carried = tf_maximum_uint64(carried, tf_rank_nan_last_double(val[k + start]));",
        "    y[r] = tf_of_rank_nan_last_double(carried);",
        "    failed_now = failed_now | (length == 0);",
        "  }",
        "  failed[0] = failed_now;",
        "}",
    ]


@pytest.mark.parametrize("function", [matvec, one_by_one])
@pytest.mark.parametrize("length", [10, 40, 70])
def test_columns_from_both_ends_and_beyond(function: Any, length: int):
    val, col, row, x = sparse(3, length, 70)
    col[:4] = 69, -70, 0, -1
    jitted = tinyfuse.jit(function)
    np.testing.assert_allclose(
        jitted(val, col, row, x), matvec(val, col, row, x), rtol=1e-13, atol=1e-13
    )
    for at in (0, length - 1, 3 * length - 1):
        for outside in (70, -71, 2**62, -(2**62)):
            wrong = col.copy()
            wrong[at] = outside
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 70"):
                jitted(val, wrong, row, x)


def test_ends_of_rows_are_those_of_slices():
    val, col, _, x = sparse(3, 40, 70)
    row = np.array([0, 7, -50, 80, 500, -500, 5, 119, -1, 2**62, -(2**62)])
    found = tinyfuse.jit(matvec)(val, col, row, x)
    np.testing.assert_allclose(found, matvec(val, col, row, x), rtol=1e-13, atol=1e-13)


# -- statements that are put together

X = Buffer("x", FLOAT64, 8, Scope.ARGUMENT)
Y = Buffer("y", FLOAT64, 8, Scope.ARGUMENT)
A, B = (Buffer(name, FLOAT64, 1, Scope.REGISTER) for name in "ab")
ONE, FIRST = Const(np.float64(1)), Affine()


def load(buffer: Buffer) -> Load:
    return Load(buffer, (FIRST,))


def add(one: Expr, other: Expr) -> Op:
    return Op("add", (one, other), FLOAT64)


def shape(statements: Any) -> list[Any]:
    """The kinds of statements, with what they store to, as nested lists."""
    found: list[Any] = []
    for each in statements:
        if isinstance(each, For):
            found.append(shape(each.body))
        elif isinstance(each, If):
            found.append([shape(each.then), shape(each.otherwise)])
        elif isinstance(each, Store):
            found.append(f"{each.buffer.name} =")
        elif isinstance(each, Alloc):
            found.append(f"declare {each.buffer.name}")
        else:
            found.append(type(each).__name__)
    return found


def test_a_scalar_that_is_read_once_is_what_it_was_given():
    body = (Alloc(A), Store(A, FIRST, load(X)), Store(Y, FIRST, add(load(A), ONE)))
    (store,) = tidied(body)
    assert isinstance(store, Store)
    assert isinstance(store.value, Op)
    assert store.value.operands[0] is body[1].value


@pytest.mark.parametrize(
    ("between", "value"),
    [
        (Store(X, FIRST, ONE), load(A)),  # what it was given is another value by then
        (Store(Y, affine(1), load(A)), load(A)),  # it is read twice
        (Store(Y, affine(1), ONE), add(load(A), load(A))),
    ],
)
def test_scalars_that_stay(between: Store, value: Expr):
    body = (Alloc(A), Store(A, FIRST, load(X)), between, Store(Y, FIRST, value))
    assert shape(tidied(body)) == ["declare a", "a =", f"{between.buffer.name} =", "y ="]


def test_what_a_turn_leaves_for_the_next_is_declared_before_the_loop():
    turns = Axis("turn", 8)
    carried = Store(A, FIRST, add(load(A), load(X)))
    own = (Store(B, FIRST, load(X)), Store(Y, affine(turns), add(load(B), load(B))))
    loop = For(turns, LoopKind.SERIAL, (carried, *own))
    body = (Alloc(A), Alloc(B), Store(A, FIRST, ONE), loop, Store(Y, FIRST, load(A)))
    inside = ["a =", "declare b", "b =", "y ="]
    assert shape(tidied(body)) == ["declare a", "a =", inside, "y ="]


def test_what_one_branch_alone_gives_is_declared_before_both():
    test = Op("less", (load(X), ONE), np.dtype(bool))
    given, read = Store(A, FIRST, ONE), Store(Y, FIRST, add(load(A), load(A)))
    turns = Axis("turn", 8)
    for branches, expected in (
        (((given, read), ()), [["declare a", "a =", "y ="], []]),
        (((given,), (read,)), None),
    ):
        loop = For(turns, LoopKind.SERIAL, (If(test, *branches),))
        found = shape(tidied((Alloc(A), loop)))
        assert found == ([[expected]] if expected else ["declare a", [[["a ="], ["y ="]]]])


def test_places_and_blocks():
    turns, place = Axis("turn", 8), Local("place", INT64)
    inner = Block((Let(place, Index(affine(turns))), Store(Y, FIRST, ONE, place)))
    (loop,) = tidied((For(turns, LoopKind.SERIAL, (inner,)),))
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert (store.position, store.offset) == (affine(turns), None)
    far = Block((Let(place, Index(affine(turns) + 1)), Store(Y, FIRST, ONE, place)))
    (loop,) = tidied((For(turns, LoopKind.SERIAL, (far,)),))
    assert loop.body[0].offset is not None  # it may lie outside, as far as indices say
