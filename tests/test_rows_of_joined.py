"""Rows that a kernel only joins with others are stored where they are joined."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.loops.ir import Alloc, Buffer, For, LoopKind, Scope, Statement, Store
from tinyfuse.lower.rows_of_joined import with_rows_in_joined
from tinyfuse.machine import REFERENCE
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Axis, affine


def buffer(name: str, size: int, scope: Scope = Scope.STACK) -> Buffer:
    return Buffer(name, np.dtype(np.float64), size, scope)


GIVEN, ROW, WHOLE = buffer("given", 8, Scope.ARGUMENT), buffer("row", 4), buffer("whole", 8)


def copied(source: Buffer, to: Buffer, place: int = 0) -> Statement:
    i = Axis("i", 4)
    store = Store(to, affine(i) + place, Load(source, (affine(i),)))
    return For(i, LoopKind.VECTOR, (store,))


def test_a_row_is_stored_in_what_it_is_a_part_of() -> None:
    computed = with_rows_in_joined(
        (Alloc(WHOLE), Alloc(ROW), copied(GIVEN, ROW), copied(ROW, WHOLE, 4))
    )
    _, loop = computed
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert (store.buffer, store.position) == (WHOLE, loop.variable + 4)


def test_not_where_there_is_no_memory_yet() -> None:
    block = (Alloc(ROW), copied(GIVEN, ROW), Alloc(WHOLE), copied(ROW, WHOLE))
    assert with_rows_in_joined(block) == block


def test_not_where_the_same_elements_are_stored_in_between() -> None:
    first = (Alloc(WHOLE), Alloc(ROW), copied(GIVEN, ROW))
    block = (*first, copied(GIVEN, WHOLE, 2), copied(ROW, WHOLE, 4))
    assert with_rows_in_joined(block) == block
    beside = (*first, copied(GIVEN, WHOLE), copied(ROW, WHOLE, 4))
    assert len(with_rows_in_joined(beside)) == 3


def test_not_where_it_is_read_otherwise() -> None:
    block = (Alloc(WHOLE), Alloc(ROW), copied(GIVEN, ROW), copied(ROW, WHOLE), copied(ROW, GIVEN))
    assert with_rows_in_joined(block) == block


def test_the_results_of_a_pass_lie_beside_each_other() -> None:
    """Of the pass that the next one reads nothing is kept apart."""
    traced = tinyfuse.jit(lambda z: np.fft.fft(z)).trace(np.ones((40, 32), complex))
    text = Lowered(traced, traced.options, REFERENCE).as_text("loops")
    kept = [line.split()[1] for line in text.splitlines() if "float64[32] on the stack" in line]
    assert kept == ["concat:", "concat_1:"]


def test_not_in_what_lies_in_vector_registers() -> None:
    """Where halves change places, and then all elements, what is changed lies in registers."""

    def function(x: Any) -> Any:
        small, large = np.minimum(x[:, :8], x[:, 8:]), np.maximum(x[:, :8], x[:, 8:])
        y = np.concatenate([small, large], axis=1)
        y = np.concatenate([y[:, 8:], y[:, :8]], axis=1)
        return y[:, (np.arange(16) * 3 + 3) % 16]

    x = np.random.default_rng(1).integers(0, 50, (13, 16))
    np.testing.assert_array_equal(tinyfuse.jit(function)(x), function(x))
    registers = Alloc(buffer("whole", 8, Scope.VECTORS))
    block = (registers, Alloc(ROW), copied(GIVEN, ROW), copied(ROW, registers.buffer, 4))
    assert with_rows_in_joined(block) == block
