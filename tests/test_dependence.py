"""Which loop nests may store in the array that they read from."""

from __future__ import annotations

import numpy as np
import pytest

from tinyfuse.loops.dependence import is_read_first
from tinyfuse.loops.ir import Block, Buffer, For, If, LoopKind, Scope, Statement, Store, While
from tinyfuse.stage.expr import Const, Expr, Index, IndexTest, Load, Op
from tinyfuse.stage.index import Affine, Axis, IndexLike, affine

FLOAT = np.dtype(np.float64)
OLD = Buffer("old", FLOAT, 100, Scope.SCRATCH)
NEW = Buffer("new", FLOAT, 100, Scope.SCRATCH)
ELSEWHERE = Buffer("other", FLOAT, 100, Scope.SCRATCH)
ROW, COLUMN, THIRD = Axis("i", 8, 1), Axis("j", 8, 1), Axis("k", 8, 1)

ZERO = Const(np.float64(0))


def load(buffer: Buffer, place: IndexLike, *data: Expr) -> Load:
    return Load(buffer, (affine(place),), data)


def copy(to: IndexLike, source: IndexLike) -> Store:
    return Store(NEW, affine(to), load(OLD, source))


def loop(axis: Axis, *body: Statement, kind: LoopKind = LoopKind.SERIAL) -> For:
    return For(axis, kind, body)


PARALLEL, VECTOR = LoopKind.PARALLEL, LoopKind.VECTOR
READ_FIRST = [
    loop(ROW, copy(ROW, ROW + 1)),  # upwards, from what comes later
    loop(ROW, copy(ROW, ROW), kind=PARALLEL),
    loop(ROW, loop(COLUMN, copy(10 * ROW + COLUMN, 10 * ROW + COLUMN + 1)), kind=PARALLEL),
    loop(ROW, loop(COLUMN, copy(10 * ROW + COLUMN, 10 * ROW + COLUMN + 10))),
    loop(ROW, loop(COLUMN, copy(10 * COLUMN + ROW, 10 * COLUMN + ROW + 1))),  # by columns
    loop(ROW, loop(COLUMN, copy(10 * COLUMN + ROW, 10 * COLUMN + 9)), kind=PARALLEL),
    loop(ROW, loop(COLUMN, Store(ELSEWHERE, affine(COLUMN), load(OLD, 10 * ROW + COLUMN + 1))),
         loop(THIRD, Store(NEW, 10 * ROW + THIRD, load(ELSEWHERE, THIRD))), kind=PARALLEL),
    loop(ROW, If(IndexTest(affine(ROW), None, 4),
                 (copy(ROW, ROW + 4),), (Block((copy(ROW + 9, ROW),)),)), kind=PARALLEL),
    loop(ROW, copy(2 * ROW, 2 * ROW + 3), kind=PARALLEL),  # even ones, from odd ones
    loop(ROW, copy(ROW // 2 + 50, ROW)),
]  # fmt: skip
OVERTAKEN = [
    loop(ROW, copy(ROW, ROW - 1)),
    loop(ROW, copy(ROW, ROW + 1), kind=PARALLEL),
    loop(ROW, copy(ROW, ROW + 1), kind=VECTOR),
    loop(ROW, loop(COLUMN, copy(10 * ROW + COLUMN, 10 * ROW + COLUMN - 1)), kind=PARALLEL),
    loop(ROW, loop(COLUMN, copy(10 * ROW + COLUMN, 10 * ROW + COLUMN - 9))),
    loop(ROW, loop(COLUMN, Store(NEW, 10 * ROW + COLUMN, ZERO)),
         loop(THIRD, Store(ELSEWHERE, affine(THIRD), load(OLD, 10 * ROW + THIRD)))),
    loop(ROW, Store(NEW, affine(ROW), ZERO), Store(ELSEWHERE, affine(ROW), load(OLD, ROW))),
    loop(ROW, copy(2 * ROW, ROW)),
    loop(ROW, Store(NEW, affine(ROW), load(OLD, 0, Index(affine(COLUMN))))),  # anywhere
    loop(ROW, Store(NEW, affine(0), load(OLD, ROW), Index(affine(ROW)))),
    loop(ROW, copy(ROW, ROW // 2)),
    While(IndexTest(Affine(), 0, None), (copy(1, 1), copy(2, 2))),
]  # fmt: skip


@pytest.mark.parametrize("statement", READ_FIRST)
def test_all_is_read_before_its_place_is_stored(statement: Statement):
    assert is_read_first([statement], OLD, NEW)


@pytest.mark.parametrize("statement", OVERTAKEN)
def test_something_may_be_stored_before_it_is_read(statement: Statement):
    assert not is_read_first([statement], OLD, NEW)


def test_answers_are_those_of_running_the_loops():
    """For random places: nothing that is said to be read first is stored before."""
    generator = np.random.default_rng(0)
    told = 0
    for _ in range(3000):
        stored, read = [
            Affine(((ROW, int(a)), (COLUMN, int(b))), 40 + int(c))
            for a, b, c in generator.integers(-4, 5, (2, 3))
        ]
        assert isinstance(stored, Affine)
        negative = Op("negative", (load(OLD, read),), FLOAT)
        inner = loop(COLUMN, Store(NEW, stored, negative))
        if is_read_first([loop(ROW, inner)], OLD, NEW):
            told += 1
            assert _keeps_order(stored, read)
    assert told > 300


def _keeps_order(stored: Affine, read: Affine) -> bool:
    written: set[int] = set()
    for i in range(1, 9):
        for j in range(1, 9):
            values = {ROW: affine(i), COLUMN: affine(j)}
            if read.substitute(values).constant in written:
                return False
            written.add(stored.substitute(values).constant)
    return True
