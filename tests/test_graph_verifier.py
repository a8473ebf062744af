"""What the verifier of graphs refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graphs import GraphBuilder, float32
from tinyfuse.dtypes import FLOAT32, INT64
from tinyfuse.errors import VerificationError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.verifier import verify_graph

X = Var((2, 3), FLOAT32, "x")


def refusal(graph: Graph) -> str:
    with pytest.raises(VerificationError) as caught:
        verify_graph(graph)
    return str(caught.value)


def equation(
    primitive: Primitive = p.elementwise, inputs: Any = (X,), output: Any = None, **params: Any
) -> Graph:
    output = output or Var((2, 3), FLOAT32, "y")
    return Graph("f", (X,), (Eqn(primitive, inputs, params, output),), (output,))


def test_what_is_right() -> None:
    build = GraphBuilder()
    x = build.input("x", 2, 3)
    total = build.reduce("sum", build.op("add", x, float32(1)), 0, 1)
    verify_graph(build.graph(total, total, x, Literal(np.bool_(True))))
    verify_graph(Graph("f", (), (), ()))


def test_uses_before_definitions() -> None:
    stranger = Var((), INT64)
    assert refusal(Graph("f", (), (), (X,))) == (
        "graph f, an output: x: float32[2, 3] is not defined before"
    )
    assert refusal(equation(inputs=(stranger,), op="exp")) == (
        "graph f, equation 0 (elementwise): a variable: int64[] is not defined before"
    )
    loop = Var((2, 3), FLOAT32, "loop")
    assert "loop: float32[2, 3] is not defined before" in refusal(
        equation(inputs=(loop,), output=loop, op="exp")
    )


def test_second_definitions() -> None:
    assert refusal(Graph("f", (X, X), (), ())) == (
        "graph f, an input: x: float32[2, 3] is defined twice"
    )
    assert refusal(equation(output=X, op="exp")) == (
        "graph f, equation 0 (elementwise): x: float32[2, 3] is defined twice"
    )


def test_wrong_types() -> None:
    assert refusal(equation(output=Var((3, 2), FLOAT32, "y"), op="exp")) == (
        "graph f, equation 0 (elementwise): defines y: float32[3, 2], but computes float32[2, 3]"
    )
    assert refusal(equation(output=Var((2, 3), INT64), op="exp")) == (
        "graph f, equation 0 (elementwise): defines a variable: int64[2, 3],"
        " but computes float32[2, 3]"
    )
    assert refusal(equation(inputs=(X, float32(1)), op="exp")) == (
        "graph f, equation 0 (elementwise): exp: takes 1 operands, got 2"
    )


def test_unsupported_dtypes() -> None:
    pair = Var((), np.dtype("complex256"), "pair")
    assert refusal(Graph("f", (pair,), (), ())) == "graph f, an input: complex256 is not supported"
    assert refusal(Graph("f", (), (), (Literal(np.clongdouble(1)),))) == (
        "graph f, an output: the literal np.clongdouble('1+0j') is no supported numpy scalar"
    )
    assert "the literal 1.0 is no" in refusal(equation(inputs=(X, Literal(1.0)), op="add"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: equation(), "elementwise): has parameters [], not ['op']"),
        (lambda: equation(op="exp", x=1), "has parameters ['op', 'x'], not ['op']"),
        (lambda: equation(op=1), "parameter op is 1, not of type str"),
        (lambda: equation(p.cast, dtype="int64"), "parameter dtype is 'int64', not of type dtype"),
        (
            lambda: equation(p.transpose, axes=[1, 0]),
            "(transpose): parameter axes is [1, 0], not of type ints",
        ),
        (
            lambda: equation(p.reshape, shape=(np.int64(6),)),
            "parameter shape is (np.int64(6),), not of type ints",
        ),
        (lambda: equation(p.concat, axis=True), "parameter axis is True, not of type int"),
        (lambda: equation(Primitive("median")), "equation 0 (median): there is no such primitive"),
    ],
)
def test_wrong_parameters(make: Callable[[], Graph], message: str) -> None:
    assert message in refusal(make())
