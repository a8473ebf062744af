"""Stages as text."""

from __future__ import annotations

import numpy as np
import pytest

from tinyfuse.dtypes import BOOL, FLOAT32, INT64
from tinyfuse.stage.expr import Accumulator, Cast, Const, Expr, Index, IndexTest, Op, select
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.printer import expression_lines, stage_lines, stages_text

ROW = Axis("i", 8)
A, B, C = [Stage(name, (ROW,), FLOAT32)[(ROW,)] for name in "abc"]
SCALAR = Stage("alpha", (), FLOAT32)[()]


def op(name: str, *operands: Expr, dtype: np.dtype = FLOAT32) -> Op:
    return Op(name, operands, dtype)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (SCALAR, "alpha"),
        (op("add", op("add", A, B), C), "a[i] + b[i] + c[i]"),
        (op("add", A, op("add", B, C)), "a[i] + (b[i] + c[i])"),
        (op("multiply", op("add", A, B), C), "(a[i] + b[i]) * c[i]"),
        (op("subtract", A, op("multiply", B, C)), "a[i] - b[i] * c[i]"),
        (op("power", op("negative", A), B), "(-a[i]) ** b[i]"),
        (op("negative", op("power", A, B)), "-a[i] ** b[i]"),
        (op("power", op("power", A, B), C), "(a[i] ** b[i]) ** c[i]"),
        (op("less", op("less", A, B, dtype=BOOL), C, dtype=BOOL), "(a[i] < b[i]) < c[i]"),
        (op("logical_not", op("equal", A, B, dtype=BOOL), dtype=BOOL), "not a[i] == b[i]"),
        (op("logical_and", op("logical_or", A, B), C), "(a[i] or b[i]) and c[i]"),
        (op("maximum", A, op("exp", B)), "maximum(a[i], exp(b[i]))"),
        (op("subtract", A, Const(np.float32(-0.5))), "a[i] - -0.5"),
        (op("power", Const(np.float32(-2)), A), "(-2.0) ** a[i]"),
        (op("multiply", Index(ROW * 2 + 1), Index(affine(ROW)), dtype=INT64), "(2 * i + 1) * i"),
        (Const(np.bool_(True)), "True"),
        (Const(np.float32("inf")), "inf"),
        (Cast(op("add", A, B), INT64), "int64(a[i] + b[i])"),
        (IndexTest(ROW + 1, 0, 4), "0 <= i + 1 < 4"),
        (IndexTest(affine(ROW), 3, None), "3 <= i"),
        (Op("select", (IndexTest(affine(ROW), None, 3), A, B), FLOAT32), "a[i] if i < 3 else b[i]"),
        (
            op("add", A, select(op("less", A, B, dtype=BOOL), B, C)),
            "a[i] + (b[i] if a[i] < b[i] else c[i])",
        ),
        (op("fma", A, B, Accumulator(FLOAT32)), "fma(a[i], b[i], so_far)"),
    ],
)
def test_expressions(expression, text):
    assert expression_lines(expression) == ([], text)


def test_shared_parts_have_lines_of_their_own():
    shared = op("exp", A)
    square = op("multiply", shared, shared)
    assert expression_lines(op("add", square, square), {"t0"}) == (
        ["t1 = exp(a[i])", "t2 = t1 * t1"],
        "t2 + t2",
    )


def test_deep_and_widely_shared_expressions_stay_short():
    value: Expr = A
    for _ in range(5000):
        value = op("add", value, B)
    lines, _ = expression_lines(value)
    assert max(map(len, lines)) < 500
    for _ in range(100):
        value = op("multiply", value, value)
    assert len(expression_lines(value)[0]) < 300


def stage(body: Expr, **rest) -> Stage:
    return Stage("y", (), FLOAT32, body, reduce_axes=(ROW,), init=np.float32(0), **rest)


def test_reductions_of_each_form():
    so_far = Accumulator(FLOAT32)
    inside = IndexTest(affine(ROW), None, 5)
    forms = [
        op("add", so_far, op("subtract", A, B)),
        op("fma", A, B, so_far),
        op("fma", op("subtract", A, B), C, so_far),
        select(inside, op("maximum", so_far, A), so_far),
        select(inside, op("maximum", so_far, A), B),
        op("add", A, so_far),
        op("add", so_far, op("multiply", so_far, A)),
    ]
    assert [stage_lines(stage(form)) for form in forms] == [
        ["y: float32 = serial add over i < 8 of a[i] - b[i], from 0.0"],
        ["y: float32 = serial fma over i < 8 of a[i] * b[i], from 0.0"],
        ["y: float32 = serial fma over i < 8 of (a[i] - b[i]) * c[i], from 0.0"],
        ["y: float32 = serial maximum over i < 8 of a[i] where i < 5, from 0.0"],
        ["y: float32 = serial over i < 8 of maximum(so_far, a[i]) if i < 5 else b[i], from 0.0"],
        ["y: float32 = serial over i < 8 of a[i] + so_far, from 0.0"],
        ["y: float32 = serial over i < 8 of so_far + so_far * a[i], from 0.0"],
    ]


def test_parts_of_a_stage_stand_below_it():
    shared = op("exp", A)
    y = Stage("y", (ROW,), FLOAT32, op("multiply", shared, shared))
    x = Stage("x", (Axis("i", 8), Axis("j", 2)), FLOAT32)
    assert (
        stages_text(Stages("f", (x,), (y,), (y, y)))
        == """\
stages f(x: float32[8, 2])
  y[i < 8]: float32 = t0 * t0
    t0 = exp(a[i])
  return y, y"""
    )


def test_a_program_without_inputs_and_outputs():
    assert stages_text(Stages("f", (), (), ())) == "stages f()\n  return"
