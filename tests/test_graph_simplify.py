"""Each simplification as text, before and after; and that none changes a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import GraphBuilder, PlainNumerics, float32
from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Eqn, Graph, Literal, Var
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.simplify import simplify
from tinyfuse.graph.verifier import verify_graph


def simplified(build: GraphBuilder, *outputs: Any) -> str:
    """The lines between the first and the last of the simplified graph."""
    graph = simplify(build.graph(*outputs))
    verify_graph(graph)
    return "\n".join(line.strip() for line in graph_text(graph).splitlines()[1:-1])


Make = Callable[[GraphBuilder, Var], Any]


def updated(build: GraphBuilder, x: Var, values: Var, *index: slice) -> Var:
    """`x[index] = values`, of which only as many are taken as there is room for."""
    whole = (*index, *[slice(None)] * (len(x.shape) - len(index)))
    ranges = [range(*s.indices(n)) for s, n in zip(whole, x.shape, strict=True)]
    part = build.slice(values, [slice(len(each)) for each in ranges])
    starts, steps = tuple(r.start for r in ranges), tuple(r.step for r in ranges)
    return build.apply(p.update, x, part, starts=starts, steps=steps)


def place(build: GraphBuilder, name: str, *shape: int) -> Var:
    """Indices of the rows of an array with four of them."""
    index = build.input(name, *shape, dtype=np.int64)
    return build.op("wrap_index", index, Literal(np.int64(4)))


def scattered(build: GraphBuilder, x: Var, rows: Var, at: Var, op: str = "set") -> Var:
    return build.apply(p.scatter, x, rows, at, op=op, dtype=x.dtype)


def row(build: GraphBuilder, x: Var, at: int) -> Var:
    return build.slice(x, [slice(at, at + 1), slice(None), slice(None)])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(
            lambda b, x: b.transpose(b.transpose(x, 2, 0, 1), 0, 2, 1),
            "transpose: float32[4, 3, 2] = transpose[axes=(2, 1, 0)] x\nreturn transpose",
            id="transposes",
        ),
        pytest.param(
            lambda b, x: b.transpose(b.transpose(x, 2, 0, 1), 1, 2, 0),
            "return x",
            id="transposes that cancel",
        ),
        pytest.param(
            lambda b, x: b.reshape(b.reshape(x, 24), 4, 6),
            "reshape: float32[4, 6] = reshape x\nreturn reshape",
            id="reshapes",
        ),
        pytest.param(
            lambda b, x: b.reshape(b.reshape(b.reshape(x, 24), 1, 24), 2, 3, 4),
            "return x",
            id="reshapes that cancel",
        ),
        pytest.param(
            lambda b, x: b.slice(
                b.slice(x, [slice(1, None), slice(None, None, -1), slice(None)]),
                [slice(1), slice(1, 3), slice(None, None, -2)],
            ),
            "slice: float32[1, 2, 2] = slice[starts=(1, 1, 3) steps=(1, -1, -2)] x\nreturn slice",
            id="slices",
        ),
        pytest.param(
            lambda b, x: b.slice(
                b.slice(x, [slice(None), slice(None), slice(None, None, -1)]),
                [slice(None), slice(None), slice(None, None, -1)],
            ),
            "return x",
            id="slices that cancel",
        ),
        pytest.param(
            lambda b, x: b.slice(b.slice(x, [slice(2), slice(2, 2), slice(4)]), [slice(2)] * 3),
            "slice: float32[2, 0, 2] = slice[starts=(0, 0, 0) steps=(1, 1, 1)] x\nreturn slice",
            id="empty slices",
        ),
        pytest.param(
            lambda b, x: b.broadcast(b.broadcast(x, 5, 2, 3, 4), 6, 5, 2, 3, 4),
            "broadcast: float32[6, 5, 2, 3, 4] = broadcast x\nreturn broadcast",
            id="broadcasts",
        ),
        pytest.param(
            lambda b, x: b.broadcast(b.reshape(x, 1, 1, 2, 3, 4), 6, 5, 2, 3, 4),
            "broadcast: float32[6, 5, 2, 3, 4] = broadcast x\nreturn broadcast",
            id="broadcast of prepended axes",
        ),
        pytest.param(
            lambda b, x: b.broadcast(b.reshape(x, 2, 3, 4, 1), 2, 3, 4, 5),
            "reshape: float32[2, 3, 4, 1] = reshape x\n"
            "broadcast: float32[2, 3, 4, 5] = broadcast reshape\nreturn broadcast",
            id="broadcast of appended axes stays",
        ),
        pytest.param(
            lambda b, x: updated(b, x, b.op("exp", x), slice(None), slice(None), slice(None)),
            "exp: float32[2, 3, 4] = exp x\nreturn exp",
            id="update of everything",
        ),
        pytest.param(
            lambda b, x: updated(b, x, x, slice(None, None, -1), slice(None), slice(None)),
            "slice: float32[2, 3, 4] = slice[starts=(1, 0, 0) steps=(-1, 1, 1)] x\nreturn slice",
            id="update of everything in another order",
        ),
        pytest.param(
            lambda b, x: updated(b, x, x, slice(2, 2), slice(None), slice(None)),
            "return x",
            id="update of nothing",
        ),
        pytest.param(
            lambda b, x: row(b, updated(b, x, b.op("exp", row(b, x, 0)), slice(1)), 0),
            "slice: float32[1, 3, 4] = slice[starts=(0, 0, 0) steps=(1, 1, 1)] x\n"
            "exp: float32[1, 3, 4] = exp slice\nreturn exp",
            id="slice of what was put in",
        ),
        pytest.param(
            lambda b, x: row(b, updated(b, x, b.op("exp", row(b, x, 0)), slice(1)), 1),
            "slice: float32[1, 3, 4] = slice[starts=(1, 0, 0) steps=(1, 1, 1)] x\nreturn slice",
            id="slice of what was left",
        ),
        pytest.param(
            lambda b, x: updated(b, updated(b, x, x, slice(1)), row(b, x, 1), slice(1)),
            "slice: float32[1, 3, 4] = slice[starts=(1, 0, 0) steps=(1, 1, 1)] x\n"
            "update: float32[2, 3, 4] = update[starts=(0, 0, 0) steps=(1, 1, 1)] x slice\n"
            "return update",
            id="updates of the same elements",
        ),
        pytest.param(lambda b, x: b.broadcast(x, 2, 3, 4), "return x", id="broadcast to itself"),
        pytest.param(lambda b, x: b.cast(x, "float32"), "return x", id="cast to itself"),
        pytest.param(lambda b, x: b.concat(x, axis=1), "return x", id="concat of one"),
        pytest.param(lambda b, x: b.windows(x, (), ()), "return x", id="windows over no axis"),
        pytest.param(
            lambda b, x: b.pad(x, float32(0), (0, 0, 0), (0, 0, 0)), "return x", id="pad by nothing"
        ),
        pytest.param(
            lambda b, x: b.cast(b.cast(x, "float64"), "float32"),
            "cast: float64[2, 3, 4] = cast x\ncast_1: float32[2, 3, 4] = cast cast\nreturn cast_1",
            id="casts there and back stay",
        ),
        pytest.param(
            lambda b, x: b.op(
                "add", x, b.broadcast(b.cast(Literal(np.int8(3)), "float32"), 2, 3, 4)
            ),
            "add: float32[2, 3, 4] = add x 3.0:float32\nreturn add",
            id="stretched literal",
        ),
        pytest.param(
            lambda b, x: b.op("exp", b.broadcast(float32(1), 2)),
            "broadcast: float32[2] = broadcast 1.0:float32\n"
            "exp: float32[2] = exp broadcast\nreturn exp",
            id="stretched literal that gives the shape",
        ),
        pytest.param(
            lambda b, x: b.op("add", b.broadcast(float32(1), 2), b.broadcast(float32(2), 2)),
            "broadcast: float32[2] = broadcast 1.0:float32\n"
            "broadcast_1: float32[2] = broadcast 2.0:float32\n"
            "add: float32[2] = add broadcast broadcast_1\nreturn add",
            id="two stretched literals",
        ),
        pytest.param(
            lambda b, x: b.reshape(
                b.slice(b.transpose(b.broadcast(b.input("s"), 3, 4), 1, 0), [slice(2), slice(3)]), 6
            ),
            "broadcast: float32[6] = broadcast s\nreturn broadcast",
            id="views of a stretched scalar",
        ),
        pytest.param(
            lambda b, x: b.windows(b.broadcast(b.input("s"), 5), (2,), (0,)),
            "broadcast: float32[4, 2] = broadcast s\nreturn broadcast",
            id="windows of a stretched scalar",
        ),
        pytest.param(
            lambda b, x: b.cast(Literal(np.float64(0.1)), "float32"),
            "return 0.1:float32",
            id="cast of a literal",
        ),
        pytest.param(
            lambda b, x: b.cast(float32(1e30), "int8"),
            "cast: int8[] = cast 1e+30:float32\nreturn cast",
            id="casts of float literals to integers stay",
        ),
    ],
)
def test_views_and_casts(make: Make, expected: str) -> None:
    build = GraphBuilder()
    assert simplified(build, make(build, build.input("x", 2, 3, 4))) == expected


def scatters(build: GraphBuilder, *outputs: Any) -> list[str]:
    """What is left of the scatters and gathers."""
    lines = simplified(build, *outputs).splitlines()
    return [line for line in lines if "scatter" in line or "gather" in line or "return" in line]


def test_what_is_put_at_one_place_is_there() -> None:
    build = GraphBuilder()
    x, v, at = build.input("x", 4, 3), build.input("v", 3), place(build, "i")
    once = scattered(build, x, v, at)
    assert scatters(build, scattered(build, once, v, at)) == [
        "set: float32[4, 3] = scatter[op=set] x v wrap_index",
        "return set",
    ]
    rows = build.apply(p.gather, once, at)
    assert scatters(build, scattered(build, once, rows, at), rows) == [
        "set: float32[4, 3] = scatter[op=set] x v wrap_index",
        "return set, v",
    ]
    doubled = build.op("add", rows, rows)
    assert scatters(build, scattered(build, once, doubled, at)) == [
        "set: float32[4, 3] = scatter[op=set] x add wrap_index",
        "return set",
    ]


def test_what_is_put_at_several_places_may_be_overwritten() -> None:
    build = GraphBuilder()
    x, v, at = build.input("x", 4, 3), build.input("v", 3, 3), place(build, "i", 3)
    once = scattered(build, x, v, at)
    rows = build.apply(p.gather, once, at)
    assert scatters(build, rows)[-1] == "return gather"
    assert scatters(build, scattered(build, once, rows, at))[-1] == "return set"
    assert scatters(build, scattered(build, x, build.apply(p.gather, x, at), at)) == ["return x"]


def test_equal_equations_are_one() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    a = build.op("add", build.op("exp", x), float32(1))
    b = build.op("add", build.op("exp", x), float32(1))
    assert simplified(build, build.op("multiply", a, b)) == (
        "exp: float32[3] = exp x\n"
        "add: float32[3] = add exp 1.0:float32\n"
        "multiply: float32[3] = multiply add add\n"
        "return multiply"
    )


def test_literals_are_equal_by_dtype_and_bytes() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    nan = [build.op("add", x, float32(np.nan)) for _ in range(2)]
    zeros = [build.op("copysign", x, float32(zero)) for zero in (0.0, -0.0)]
    graph = simplify(build.graph(*nan, *zeros))
    assert [eqn.params["op"] for eqn in graph.eqns] == ["add", "copysign", "copysign"]
    assert graph.outputs[0] is graph.outputs[1]
    n = build.input("n", dtype=np.int64)
    values = [build.broadcast(Literal(kind(1)), 4) for kind in (np.int64, np.uint64)]
    assert len(simplify(build.graph(*values, n)).eqns) == 2


def test_operands_do_not_commute() -> None:
    build = GraphBuilder()
    x, y = build.input("x"), build.input("y")
    graph = simplify(build.graph(build.op("add", x, y), build.op("add", y, x)))
    assert len(graph.eqns) == 2


def test_parameters_tell_equations_apart() -> None:
    build = GraphBuilder()
    x = build.input("x", 3, 3)
    graph = build.graph(*[build.reduce(op, x, axis) for op in ("sum", "max") for axis in (0, 1)])
    assert len(simplify(graph).eqns) == 4


def test_unused_equations_are_gone_and_inputs_stay() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    build.input("unused", 5)
    build.op("exp", build.op("log", x))
    graph = simplify(build.graph(build.op("sin", x), x, float32(1)))
    assert graph_text(graph) == (
        "f(x: float32[3], unused: float32[5]) {\n  sin: float32[3] = sin x\n"
        "  return sin, x, 1.0:float32\n}"
    )


@dataclass(frozen=True)
class Place:
    """In place of a Source."""

    line: int


def test_names_of_the_user_survive_merging() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    build.op("exp", x)
    first = build.eqns.pop()
    build.eqns.append(Eqn(first.primitive, first.inputs, first.params, first.output, Place(1)))
    build.op("negative", first.output)
    named = Eqn(p.elementwise, (x,), {"op": "exp"}, Var((3,), x.dtype, "e"), Place(2))
    build.eqns.append(named)
    graph = simplify(build.graph(build.eqns[1].output, build.op("sin", named.output), named.output))
    verify_graph(graph)
    assert graph_text(graph) == (
        "f(x: float32[3]) {\n"
        "  e: float32[3] = exp x\n"
        "  negative: float32[3] = negative e\n"
        "  sin: float32[3] = sin e\n"
        "  return negative, sin, e\n}"
    )
    assert graph.eqns[0].source == Place(2)


def test_the_first_name_wins() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    build.op("exp", x, name="first")
    assert simplified(build, build.op("exp", x, name="second")) == (
        "first: float32[3] = exp x\nreturn first"
    )


def test_a_view_that_vanishes_leaves_its_name() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    y = build.reshape(build.op("exp", x), 3, name="y")
    assert simplified(build, y, build.reshape(x, 3, name="z")) == (
        "y: float32[3] = exp x\nreturn y, x"
    )


@pytest.mark.parametrize(
    ("axes", "labels", "expected"),
    [
        ((1, 0), "ik,kj->ij", "x, y: ik,jk->ij"),
        ((0, 1), "ik,kj->ij", "x, y: ik,kj->ij"),
    ],
)
def test_contractions_take_operands_as_they_lie(
    axes: tuple[int, int], labels: str, expected: str
) -> None:
    build = GraphBuilder()
    x, y = build.input("x", 5, 4), build.input("y", 4, 4)
    result = build.contract(labels, x, build.transpose(y, *axes))
    assert operands_of(simplify(build.graph(result))) == expected


def test_contractions_keep_the_order_of_what_they_sum() -> None:
    build = GraphBuilder()
    x, y = build.input("x", 5, 4, 3), build.input("y", 3, 4, 5)
    swapped = build.transpose(x, 0, 2, 1)
    kept = build.contract("ilk,lkj->ij", swapped, y)
    assert operands_of(simplify(build.graph(kept))) == "transpose, y: ilk,lkj->ij"
    moved = build.contract("kli,lkj->ij", build.transpose(x, 1, 2, 0), y)
    assert operands_of(simplify(build.graph(moved))) == "x, y: ikl,lkj->ij"


def operands_of(graph: Graph) -> str:
    """The operands of the last equation, a contraction, and its labels."""
    eqn = graph.eqns[-1]
    lhs, rhs, out = ("".join(map(chr, eqn.params[side])) for side in ("lhs", "rhs", "out"))
    names = [atom.name or "transpose" for atom in eqn.inputs if isinstance(atom, Var)]
    return f"{', '.join(names)}: {lhs},{rhs}->{out}"


def test_what_is_simple_stays_the_same_object() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    graph = build.graph(build.op("exp", build.op("add", x, x)))
    again = simplify(graph)
    assert again.eqns == graph.eqns
    assert again.outputs == graph.outputs


def test_deep_graphs() -> None:
    build = GraphBuilder()
    x = build.input("x", 2, 3)
    y: Any = x
    for _ in range(2500):
        y = build.transpose(build.op("exp", y), 1, 0)
    assert len(simplify(build.graph(y)).eqns) == 5000
    for _ in range(5000):
        x = build.transpose(x, 1, 0)
    assert simplified(build, x) == "return x"


@st.composite
def graphs(draw: Any) -> Graph:
    """Graphs with many views, repetitions and literals; all arrays have 24 elements or one."""
    build = GraphBuilder()
    arrays: list[Any] = [build.input("x", 2, 3, 4), build.input("y", 24), build.input("s")]
    for _ in range(draw(st.integers(1, 12))):
        arrays.append(_grown(draw, build, draw(st.sampled_from(arrays)), arrays))
    outputs = draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=4))
    return build.graph(*outputs)


SHAPES = [(24,), (2, 3, 4), (1, 24), (4, 6), (1, 1, 24), (3, 2, 4)]


def _grown(draw: Any, build: GraphBuilder, x: Var, arrays: list[Any]) -> Var:
    kind = draw(st.integers(0, 6))
    if kind == 0 and x.shape:
        return build.transpose(x, *draw(st.permutations(range(len(x.shape)))))
    if kind == 1 and x.shape:
        return build.reshape(x, *draw(st.sampled_from(SHAPES)))
    if kind == 2:
        return build.slice(x, [slice(None, None, draw(st.sampled_from([1, -1]))) for _ in x.shape])
    if kind == 3:
        scalar = draw(st.sampled_from([float32(2), float32(-0.0), arrays[2]]))
        return build.op("add", x, build.broadcast(scalar, *x.shape))
    if kind == 4:
        return build.op(
            "multiply", x, draw(st.sampled_from([a for a in arrays if a.shape == x.shape]))
        )
    if kind == 5:
        shape = draw(
            st.sampled_from([shape for shape in SHAPES if shape[-1] == x.shape[-1:]] or [x.shape])
        )
        return build.broadcast(x, *shape)
    return build.cast(build.cast(x, draw(st.sampled_from(["float32", "float64"]))), "float32")


@st.composite
def written_graphs(draw: Any) -> Graph:
    """Graphs of slices and updates of arrays with one and with two axes."""
    build = GraphBuilder()
    arrays = [build.input("x", 4, 5), build.broadcast(float32(2), 4, 5)]
    outputs = []
    for _ in range(draw(st.integers(1, 12))):
        x, values = [draw(st.sampled_from(arrays)) for _ in range(2)]
        index = [draw(st.builds(slice, *[_ENDS] * 2, _STEPS)) for _ in range(2)]
        outputs.append(build.slice(x, index))
        arrays.append(updated(build, x, values, *index))
    return build.graph(*outputs, arrays[-1])


@st.composite
def scattered_graphs(draw: Any) -> Graph:
    """Graphs of gathers and scatters at one place and at several."""
    build = GraphBuilder()
    arrays = [build.input("x", 4, 3), build.input("y", 4, 3)]
    places = [place(build, "i"), place(build, "j"), place(build, "k", 3)]
    taken: list[Var] = []
    for _ in range(draw(st.integers(1, 12))):
        x, at = draw(st.sampled_from(arrays)), draw(st.sampled_from(places))
        fitting = [rows for rows in taken if rows.shape == (*at.shape, 3)]
        if not fitting or draw(st.booleans()):
            rows = build.apply(p.gather, x, at)
            taken += [rows, build.op("multiply", rows, rows)]
        else:
            op = draw(st.sampled_from(["set", "set", "set", "add"]))
            arrays.append(scattered(build, x, draw(st.sampled_from(fitting)), at, op))
    return build.graph(*taken, *arrays)


_ENDS = st.sampled_from([None, 0, 1, 2, 3, -1, -2])
_STEPS = st.sampled_from([None, 1, 2, 3, -1, -2])


@settings(max_examples=300, deadline=None)
@given(graphs() | written_graphs() | scattered_graphs(), st.integers(0, 100))
def test_values_stay(graph: Graph, seed: int) -> None:
    random = np.random.default_rng(seed)
    arrays = [random.standard_normal(var.shape).astype(var.dtype) for var in graph.inputs]
    simple = simplify(graph)
    verify_graph(simple)
    assert len(simple.eqns) <= len(graph.eqns)
    for numerics in (NumpyNumerics(), PlainNumerics()):
        before, after = (interpret(each, arrays, numerics) for each in (graph, simple))
        for old, new in zip(before, after, strict=True):
            assert old.shape == new.shape
            assert old.tobytes() == new.tobytes()
    again = simplify(simple)
    assert graph_text(again) == graph_text(simple)


@pytest.mark.parametrize(
    ("axes", "shape", "expected"),
    [
        ((1,), (4, 1), "exp_nonpositive"),
        ((0,), (4,), "exp_nonpositive"),
        ((0,), (1, 4), "exp_nonpositive"),
        ((0, 1), (), "exp_nonpositive"),
        ((1,), (4,), "exp"),  # those of other rows
        ((0,), (4, 1), "exp"),
    ],
)
def test_the_exponential_of_what_is_not_above_0(
    axes: tuple[int, ...], shape: tuple[int, ...], expected: str
) -> None:
    def of(largest: Callable[[GraphBuilder, Var], Var]) -> str:
        build = GraphBuilder()
        x = build.input("x", 4, 4)
        whole = build.broadcast(build.reshape(largest(build, x), *shape), 4, 4)
        graph = simplify(build.graph(build.op("exp", build.op("subtract", x, whole))))
        return str(graph.eqns[-1].params["op"])

    assert of(lambda build, x: build.reduce("max", x, *axes)) == expected
    assert of(lambda build, x: build.reduce("min", x, *axes)) == "exp"
    assert of(lambda build, x: build.reduce("max", build.op("negative", x), *axes)) == "exp"


def _halved(build: GraphBuilder, x: Var) -> Var:
    return build.op("multiply", build.op("multiply", Literal(np.float32(-0.5)), x), x)


def _over_a_width(build: GraphBuilder, x: Var) -> Var:
    return build.op("divide", build.op("negative", build.op("square", x)), Literal(np.float32(3.0)))


def _minus_the_size(build: GraphBuilder, x: Var) -> Var:
    return build.op("negative", build.op("absolute", x))


def _minus_a_halved_square(build: GraphBuilder, x: Var) -> Var:
    return build.op(
        "negative", build.op("multiply", build.op("divide", x, Literal(np.float32(2.0))), x)
    )


def _a_square(build: GraphBuilder, x: Var) -> Var:
    return build.op(
        "negative", build.op("multiply", Literal(np.float32(-0.5)), build.op("square", x))
    )


def _a_cube(build: GraphBuilder, x: Var) -> Var:
    return build.op("negative", build.op("multiply", build.op("square", x), x))


def _over_itself(build: GraphBuilder, x: Var) -> Var:
    return build.op("divide", Literal(np.float32(-0.5)), build.op("square", x))


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (_halved, "exp_nonpositive"),
        (_over_a_width, "exp_nonpositive"),
        (_minus_the_size, "exp_nonpositive"),
        (_minus_a_halved_square, "exp_nonpositive"),
        (_a_square, "exp"),
        (_a_cube, "exp"),
        (_over_itself, "exp"),
    ],
)
def test_the_exponential_of_minus_a_square(
    exponent: Callable[[GraphBuilder, Var], Var], expected: str
) -> None:
    build = GraphBuilder()
    x = build.input("x", 4)
    graph = simplify(build.graph(build.op("exp", exponent(build, x))))
    assert graph.eqns[-1].params["op"] == expected
    values = [np.array([0.0, -0.0, 1e30, -np.inf], np.float32)]
    (found,) = interpret(graph, values, PlainNumerics())
    (plain,) = interpret(build.graph(build.op("exp", exponent(build, x))), values, PlainNumerics())
    assert found.tobytes() == plain.tobytes()
