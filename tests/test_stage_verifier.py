"""What verify_stages refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from tinyfuse.errors import VerificationError
from tinyfuse.records import replace
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Accumulator, Cast, Const, Expr, Index, IndexTest, Op, select
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Order, Stage, Stages
from tinyfuse.stage.verifier import verify_stages

X = Stage("x", (Axis("i", 8),), FLOAT32)
ROW, K = Axis("i", 8), Axis("k", 8)
ZERO = np.float32(0)
SO_FAR = Accumulator(FLOAT32)


def stage(body: Expr, axes=(ROW,), name="y", dtype=FLOAT32, **rest) -> Stage:
    return Stage(name, axes, dtype, body, **rest)


def program(*stages: Stage, outputs=None) -> Stages:
    return Stages("f", (X,), stages, stages[-1:] if outputs is None else outputs)


def add(a: Expr, b: Expr) -> Op:
    return Op("add", (a, b), FLOAT32)


def chain(body: Expr, **rest) -> Stage:
    return stage(body, **{"axes": (), "reduce_axes": (K,), "init": ZERO, **rest})


def tree(partial: Stage, order=Order.HALVING, **rest) -> Stage:
    fields = {"reduce_axes": (K,), "order": order, "axes": (), "name": "total", **rest}
    return stage(add(SO_FAR, partial[(K,)]), **fields)


PLAIN = stage(X[(ROW,)])
HALVES = stage(X[(ROW,)], name="parts")


@pytest.mark.parametrize(
    "stages",
    [
        program(PLAIN),
        program(chain(add(SO_FAR, X[(K,)]))),
        program(HALVES, tree(HALVES)),
        program(HALVES, tree(HALVES, Order.PAIRWISE)),
        program(stage(select(IndexTest(ROW - 1, 0, 8), X[(ROW - 1,)], Const(ZERO)))),
        program(stage(select(IndexTest(affine(ROW), None, 3), Const(ZERO), X[(ROW - 3,)]))),
        program(stage(Cast(Index(affine(ROW)), FLOAT32))),
        program(stage(X[(ROW + 100,)], axes=(ROW, Axis("j", 0)))),
    ],
)
def test_well_formed_stages_pass(stages):
    verify_stages(stages)


J = Axis("j", 8)
S6 = Axis("k", 6)
SIX = Stage("six", (S6,), FLOAT32, X[(S6,)])

FAULTS = [
    (
        "its name is no identifier that C leaves free",
        program(stage(X[(ROW,)], name="exp")),
    ),
    (
        "its name is used twice",
        program(PLAIN, PLAIN),
    ),
    (
        "two axes are one, or called alike: i, i",
        program(stage(X[(ROW,)], axes=(ROW, Axis("i", 2)))),
    ),
    (
        "two axes are one, or called alike: i, i",
        program(stage(X[(ROW,)], axes=(ROW, ROW))),
    ),
    (
        "an axis does not start at 0, or has a negative extent",
        program(stage(Const(ZERO), axes=(Axis("i", 3, start=1),))),
    ),
    (
        "only inputs have no body",
        program(Stage("y", (ROW,), FLOAT32)),
    ),
    (
        "it reads y, which is not computed before",
        program(stage(PLAIN[(ROW,)], name="z"), PLAIN),
    ),
    (
        "it reads x of 1 axes at 2 indices",
        program(stage(X[(ROW, ROW)])),
    ),
    (
        "it reads x at axes that it does not have",
        program(stage(X[(J,)])),
    ),
    (
        "it reads x at i + 1, 1 … 8: beyond 8",
        program(stage(X[(ROW + 1,)])),
    ),
    (
        "it reads x at i - 1, -1 … 4: beyond 8",
        program(stage(select(IndexTest(ROW - 1, None, 5), X[(ROW - 1,)], Const(ZERO)))),
    ),
    (
        "it reads x at 2 * i, 6 … 14: beyond 8",
        program(stage(select(IndexTest(affine(ROW), None, 3), Const(ZERO), X[(ROW * 2,)]))),
    ),
    (
        "it is float64, but computes float32",
        program(stage(X[(ROW,)], dtype=FLOAT64)),
    ),
    (
        "complex64 is not supported",
        program(stage(Cast(X[(ROW,)], np.dtype("complex64")), dtype=np.dtype("complex64"))),
    ),
    (
        "add: computes in float64, float64, not in float32, float64",
        program(stage(Op("add", (X[(ROW,)], Const(np.float64(1))), FLOAT64), dtype=FLOAT64)),
    ),
    (
        "less gives bool, not float32",
        program(stage(Op("less", (X[(ROW,)], X[(ROW,)]), FLOAT32))),
    ),
    (
        "there is no scalar operation plus",
        program(stage(Op("plus", (X[(ROW,)],), FLOAT32))),
    ),
    (
        "fma of float32, float32, float64, not of three of one dtype",
        program(stage(Op("fma", (X[(ROW,)], X[(ROW,)], Const(np.float64(0))), FLOAT32))),
    ),
    (
        "it accumulates without reduce axes",
        program(stage(add(SO_FAR, X[(ROW,)]))),
    ),
    (
        "it accumulates int64 in float32",
        program(chain(Cast(Accumulator(INT64), FLOAT32))),
    ),
    (
        "it has a start value, or reduces: not both",
        program(stage(X[(ROW,)], init=ZERO)),
    ),
    (
        "it has a start value, or reduces: not both",
        program(chain(add(SO_FAR, X[(K,)]), init=None)),
    ),
    (
        "it is float32, but starts from bool",
        program(chain(add(SO_FAR, X[(K,)]), init=np.bool_(0))),
    ),
    (
        "a halving reduction has one reduce axis",
        program(HALVES, tree(HALVES, reduce_axes=(K, Axis("l", 1)))),
    ),
    (
        "a pairwise reduction has no start value",
        program(HALVES, tree(HALVES, Order.PAIRWISE, init=ZERO)),
    ),
    (
        "it does not combine the value so far with an element",
        program(HALVES, replace(tree(HALVES), body=add(HALVES[(K,)], SO_FAR))),
    ),
    (
        "other stages read parts too",
        program(HALVES, tree(HALVES), stage(HALVES[(ROW,)], name="again")),
    ),
    (
        "x is not its own",
        program(tree(X)),
    ),
    (
        "parts is not its own",
        program(HALVES, tree(HALVES), outputs=(HALVES,)),
    ),
    (
        "it does not read all of parts",
        program(HALVES, replace(tree(HALVES), body=add(SO_FAR, HALVES[(7 - K,)]))),
    ),
    (
        "6 elements are not halved to one",
        program(SIX, replace(tree(SIX), body=add(SO_FAR, SIX[(S6,)]), reduce_axes=(S6,))),
    ),
    (
        "it is an output, but not computed",
        program(PLAIN, outputs=(X,)),
    ),
    (
        "it is an output twice",
        program(PLAIN, outputs=(PLAIN, PLAIN)),
    ),
]


@pytest.mark.parametrize(("message", "stages"), FAULTS)
def test_malformed_stages_are_refused(message, stages):
    with pytest.raises(VerificationError, match=re.escape(message) + "$"):
        verify_stages(stages)


def test_the_message_names_the_program_and_the_stage():
    with pytest.raises(VerificationError) as caught:
        verify_stages(program(stage(X[(ROW + 1,)])))
    assert str(caught.value) == "stages f, y: it reads x at i + 1, 1 … 8: beyond 8"


def test_a_condition_may_read_what_its_branches_may_not():
    condition = Op("less", (X[(ROW - 1,)], Const(ZERO)), BOOL)
    with pytest.raises(VerificationError, match="it reads x at i - 1"):
        verify_stages(program(stage(select(condition, Const(ZERO), Const(ZERO)))))


def test_indices_that_intervals_say_nothing_about_are_looked_at():
    g = GraphBuilder("total")
    x = g.input("x", 70, 4)
    whole = g.reduce("sum", g.reshape(x, 5, 7, 8), 0, 1, 2)
    verify_stages(build_stages(g.graph(whole)))
