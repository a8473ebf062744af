"""Graphs as a person reads them."""

from __future__ import annotations

import numpy as np

from tests.graphs import GraphBuilder, float32
from tinyfuse.graph.ir import Literal, Var
from tinyfuse.graph.printer import computed_name, graph_text


def softmax() -> GraphBuilder:
    build = GraphBuilder("softmax")
    x = build.input("x", 64, 1024)
    highest = build.reshape(build.reduce("max", x, 1), 64, 1)
    e = build.op("exp", build.op("subtract", x, build.broadcast(highest, 64, 1024)), name="e")
    total = build.broadcast(build.reshape(build.reduce("sum", e, 1, name="total"), 64, 1), 64, 1024)
    build.op("divide", e, total, name="out")
    return build


def test_softmax() -> None:
    build = softmax()
    assert (
        graph_text(build.graph(build.eqns[-1].output))
        == """\
softmax(x: float32[64, 1024]) {
  max: float32[64] = reduce[op=max axes=(1,)] x
  reshape: float32[64, 1] = reshape max
  broadcast: float32[64, 1024] = broadcast reshape
  subtract: float32[64, 1024] = subtract x broadcast
  e: float32[64, 1024] = exp subtract
  total: float32[64] = reduce[op=sum axes=(1,)] e
  reshape_1: float32[64, 1] = reshape total
  broadcast_1: float32[64, 1024] = broadcast reshape_1
  out: float32[64, 1024] = divide e broadcast_1
  return out
}"""
    )


def test_every_primitive_with_its_parameters() -> None:
    build = GraphBuilder("everything")
    x, y = build.input("x", 6), build.input("y", 3, 2)
    build.windows(build.slice(x, [slice(None, None, -2)]), (2,), (0,))
    t = build.pad(build.transpose(y, 1, 0), float32(-0.0), (0, 1), (2, 0))
    t = build.concat(t, t, axis=1)
    t = build.contract("ij,kj->ik", build.broadcast(x, 5, 6), build.slice(t, [slice(4), slice(6)]))
    t = build.cast(t, "int8")
    mask = build.op("greater", t, Literal(np.int8(3)), name="mask")
    build.op("select", mask, t, Literal(np.int8(-1)))
    index = build.reduce("argmax", t, 1)
    assert (
        graph_text(build.graph(index, mask, Literal(np.float64("nan"))))
        == """\
everything(x: float32[6], y: float32[3, 2]) {
  slice: float32[3] = slice[starts=(5,) steps=(-2,)] x
  windows: float32[2, 2] = windows[window_shape=(2,) axes=(0,)] slice
  transpose: float32[2, 3] = transpose[axes=(1, 0)] y
  pad: float32[4, 4] = pad[before=(0, 1) after=(2, 0)] transpose -0.0:float32
  concat: float32[4, 8] = concat[axis=1] pad pad
  broadcast: float32[5, 6] = broadcast x
  slice_1: float32[4, 6] = slice[starts=(0, 0) steps=(1, 1)] concat
  einsum: float32[5, 4] = contract[ab,cb->ac via=einsum] broadcast slice_1
  cast: int8[5, 4] = cast einsum
  mask: bool[5, 4] = greater cast 3:int8
  select: int8[5, 4] = select mask cast -1:int8
  argmax: int64[5] = reduce[op=argmax axes=(1,)] cast
  return argmax, mask, nan:float64
}"""
    )


def test_names_are_unique() -> None:
    build = GraphBuilder()
    x = build.input("t", 3)
    for name in ("t", "t_1", "t", None, "exp", "exp"):
        x = build.op("exp", x, name=name)
    names = [line.split(":")[0].strip() for line in graph_text(build.graph(x)).splitlines()[1:-2]]
    assert names == ["t_1", "t_1_1", "t_2", "exp", "exp_1", "exp_2"]


def test_graph_of_nothing() -> None:
    assert graph_text(GraphBuilder("nothing").graph()) == "nothing() {\n  return\n}"


def test_unnamed_inputs() -> None:
    build = GraphBuilder()
    build.inputs += [Var((), np.dtype(bool)), Var((2,), np.dtype(np.int8))]
    text = "f(input: bool[], input_1: int8[2]) {\n  return input_1\n}"
    assert graph_text(build.graph(build.inputs[1])) == text


def test_computed_names() -> None:
    build = GraphBuilder()
    x = build.input("x", 2, 2)
    build.contract("ij,jk->ik", build.op("exp", x), build.reshape(x, 2, 2), via="matmul")
    build.reduce("sum", x, 0)
    names = [computed_name(eqn) for eqn in build.eqns]
    assert names == ["exp", "reshape", "matmul", "sum"]


def test_many_values_of_one_name() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    for _ in range(5000):
        x = build.op("exp", x, name="x")
    assert graph_text(build.graph(x)).splitlines()[-3:-1] == [
        "  x_5000: float32[3] = exp x_4999",
        "  return x_5000",
    ]
