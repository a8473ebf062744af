"""The meaning of hand-written stages, element by element."""

from __future__ import annotations

import numpy as np

from tests.graphs import PlainNumerics
from tinyfuse.dtypes import FLOAT32, INT64
from tinyfuse.stage.expr import Accumulator, Const, Expr, Index, IndexTest, Op, select
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Order, Stage, Stages

SO_FAR = Accumulator(FLOAT32)


def run(inputs: list[Stage], stages: list[Stage], *arrays: np.ndarray) -> np.ndarray:
    program = Stages("f", tuple(inputs), tuple(stages), tuple(stages[-1:]))
    (result,) = interpret_stages(program, arrays, PlainNumerics())
    return result


def array(name: str, *shape: int, dtype: np.dtype = FLOAT32) -> Stage:
    return Stage(name, tuple([Axis(f"{name}{at}", n) for at, n in enumerate(shape)]), dtype)


def subtracting(x: Stage, order: Order) -> list[Stage]:
    """Stages that combine x by subtraction, which shows the order."""
    (n,) = x.shape
    row, along = Axis("i", n), Axis("k", n)
    copy = Stage("copy", (row,), FLOAT32, x[(row,)])
    body = Op("subtract", (SO_FAR, copy[(along,)]), FLOAT32)
    start = np.float32(0) if order is Order.SERIAL else None
    return [copy, Stage("y", (), FLOAT32, body, (along,), start, order)]


def test_serial_is_a_chain_from_its_start():
    x = array("x", 4)
    result = run([x], subtracting(x, Order.SERIAL), np.array([1, 10, 100, 1000], np.float32))
    assert result == 0 - 1 - 10 - 100 - 1000
    assert result.shape == ()


def test_halving_combines_halves():
    x = array("x", 4)
    result = run([x], subtracting(x, Order.HALVING), np.array([1, 10, 100, 1000], np.float32))
    assert result == (1 - 100) - (10 - 1000)


def test_pairwise_combines_neighbours_and_an_odd_one_waits():
    x = array("x", 5)
    values = np.array([1, 10, 100, 1000, 10000], np.float32)
    result = run([x], subtracting(x, Order.PAIRWISE), values)
    assert result == ((1 - 10) - (100 - 1000)) - 10000


def test_the_last_of_several_reduce_axes_is_fastest():
    x = array("x", 2, 3)
    r, c = Axis("r", 2), Axis("c", 3)
    ten = Const(np.float32(10))
    body: Expr = Op("add", (Op("multiply", (SO_FAR, ten), FLOAT32), x[(r, c)]), FLOAT32)
    digits = Stage("digits", (), FLOAT32, body, (r, c), np.float32(0))
    assert run([x], [digits], np.array([[1, 2, 3], [4, 5, 6]], np.float32)) == 123456


def test_what_a_select_does_not_choose_may_lie_outside():
    x = array("x", 3)
    row = Axis("i", 5)
    shifted = select(IndexTest(row - 1, 0, 3), x[(row - 1,)], Const(np.float32(7)))
    result = run([x], [Stage("y", (row,), FLOAT32, shifted)], np.array([1, 2, 3], np.float32))
    assert result.tolist() == [7, 1, 2, 3, 7]


def test_quotients_and_remainders_of_indices():
    x = array("x", 2, 3)
    row = Axis("i", 6)
    flat = Stage("y", (row,), FLOAT32, x[(row // 3, row % 3)])
    values = np.arange(6, dtype=np.float32)
    assert run([x], [flat], values.reshape(2, 3)).tolist() == values.tolist()
    assert run([], [Stage("y", (row,), INT64, Index(row * 2 - 1))]).tolist() == [-1, 1, 3, 5, 7, 9]


def test_arrays_without_elements():
    x = array("x", 0)
    nothing, row = Axis("k", 0), Axis("i", 2)
    total = Op("add", (SO_FAR, x[(nothing,)]), FLOAT32)
    empty = np.zeros(0, np.float32)
    assert run([x], [Stage("y", (), FLOAT32, total, (nothing,), np.float32(3))], empty) == 3
    assert run([x], [Stage("y", (nothing,), FLOAT32, x[(nothing,)])], empty).shape == (0,)
    padded = select(IndexTest(affine(row), 5, None), x[(row,)], Const(np.float32(1)))
    assert run([x], [Stage("y", (row,), FLOAT32, padded)], empty).tolist() == [1, 1]
    guarded = Op("select", (IndexTest(row * 1, 1, 1), x[(row,)], Const(np.float32(2))), FLOAT32)
    assert run([x], [Stage("y", (row,), FLOAT32, guarded)], empty).tolist() == [2, 2]


def test_shared_parts_are_computed_once():
    calls = []

    class Counting(PlainNumerics):
        def scalar(self, op_name, operands, dtype):
            calls.append(op_name)
            return super().scalar(op_name, operands, dtype)

    x = array("x", 3)
    row = Axis("i", 3)
    value: Expr = x[(row,)]
    for _ in range(40):
        value = Op("add", (value, value), FLOAT32)
    stages = Stages("f", (x,), (Stage("y", (row,), FLOAT32, value),), ())
    interpret_stages(stages, [np.ones(3, np.float32)], Counting())
    assert calls == ["add"] * 40
