"""Places that depend on data: gather, scatter, updates of slices, positions as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graphs import GraphBuilder, PlainNumerics
from tests.test_lower import lowered
from tinyfuse.dtypes import FLOAT32
from tinyfuse.emit.c import emit_c
from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Graph, Literal, Var
from tinyfuse.graph.orders import reduction_steps
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.verifier import verify_stages

ADDED: dict[str, Any] = {"op": "add", "dtype": FLOAT32}


def wrapped(build: GraphBuilder, index: Var, extent: int) -> Var:
    return build.op("wrap_index", index, Literal(np.int64(extent)))


def table_lookup(build: GraphBuilder) -> Graph:
    table, ids = build.input("table", 5, 3), build.input("ids", 4, dtype=np.int64)
    rows = build.apply(p.gather, table, wrapped(build, ids, 5), name="rows")
    return build.graph(build.op("add", rows, rows))


def pairs(build: GraphBuilder) -> Graph:
    x, ids = build.input("x", 5, 5), build.input("ids", 2, 3, dtype=np.int64)
    rows = wrapped(build, ids, 5)
    columns = build.op("subtract", Literal(np.int64(4)), rows)
    turned = build.transpose(x, 1, 0)
    return build.graph(build.apply(p.gather, turned, rows, columns))


def histogram(build: GraphBuilder) -> Graph:
    x, ids = build.input("x", 9), build.input("ids", 9, dtype=np.int64)
    zeros = build.broadcast(Literal(np.float32(0)), 5)
    counts = build.apply(p.scatter, zeros, x, wrapped(build, ids, 5), name="counts", **ADDED)
    return build.graph(counts, build.reduce("sum", counts, 0))


def put_rows(build: GraphBuilder) -> Graph:
    x, v = build.input("x", 5, 3), build.input("v", 4, 3)
    ids = build.input("ids", 4, dtype=np.int64)
    doubled = build.op("add", x, x)
    put = build.apply(p.scatter, doubled, v, wrapped(build, ids, 5), op="set", dtype=FLOAT32)
    return build.graph(build.op("multiply", put, put))


def put_one(build: GraphBuilder) -> Graph:
    x, at = build.input("x", 5, 3), build.input("ids", dtype=np.int64)
    value = build.input("v", 3)
    return build.graph(
        build.apply(p.scatter, x, value, wrapped(build, at, 5), op="maximum", dtype=FLOAT32)
    )


def written_slices(build: GraphBuilder) -> Graph:
    x, v = build.input("x", 9, 8), build.input("v", 3, 4)
    y = build.apply(p.update, x, v, starts=(2, 7), steps=(3, -2))
    z = build.apply(
        p.update, y, build.slice(y, (slice(0, 4), slice(None))), starts=(1, 0), steps=(1, 1)
    )
    return build.graph(z)


def whole_and_nothing(build: GraphBuilder) -> Graph:
    x, v = build.input("x", 4, 3), build.input("v", 4, 3)
    nothing = build.slice(v, (slice(0, 0), slice(None)))
    every = build.apply(p.update, x, build.op("add", v, v), starts=(3, 0), steps=(-1, 1))
    return build.graph(every, build.apply(p.update, x, nothing, starts=(0, 0), steps=(1, 1)))


def causal_mask(build: GraphBuilder) -> Graph:
    x, count = build.input("x", 6, 6), build.apply(p.iota, extent=6)
    rows = build.broadcast(build.reshape(count, 6, 1), 6, 6)
    allowed = build.op("less_equal", build.broadcast(count, 6, 6), rows)
    return build.graph(build.op("select", allowed, x, Literal(np.float32(-np.inf))))


PROGRAMS: list[Callable[[GraphBuilder], Graph]] = [
    *(table_lookup, pairs, histogram, put_rows, put_one),
    *(written_slices, whole_and_nothing, causal_mask),
]


def arrays_for(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [
        rng.integers(-5, 5, var.shape)
        if var.dtype == np.int64
        else rng.standard_normal(var.shape).astype(var.dtype)
        for var in graph.inputs
    ]


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_level_means_the_same(program: Any, fuse: bool) -> None:
    graph = program(GraphBuilder(program.__name__))
    verify_graph(graph)
    arrays = arrays_for(graph)
    expected = interpret(graph, arrays, NumpyNumerics())
    stages = build_stages(graph)
    verify_stages(stages)
    loops = lowered(stages, fuse)
    verify_loops(loops)
    for results in (
        interpret(graph, arrays, PlainNumerics()),
        interpret_stages(stages, arrays, PlainNumerics()),
        interpret_loops(loops, arrays, PlainNumerics()),
    ):
        for result, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result.reshape(want.shape), want)
    emit_c(loops)


def test_rows_are_found_once_for_each_of_them() -> None:
    loops = lowered(build_stages(table_lookup(GraphBuilder("lookup"))))
    text = emit_c(loops).text
    assert text[text.index("static void lookup_out") : text.index("\n\n// arrays")] == (
        "static void lookup_out("
        "const int64_t *restrict ids, const float *restrict table, float *restrict out) {\n"
        "  for (long i = 0; i < 4; i++) {\n"
        "    const int64_t wrap_index = tf_wrap_index_int64(ids[i], 5);\n"
        "    for (long j = 0; j < 3; j++) {\n"
        "      const float rows = table[wrap_index * 3 + j];\n"
        "      out[3 * i + j] = rows + rows;\n"
        "    }\n"
        "  }\n"
        "}"
    )


def test_sums_of_gathered_rows_are_added_in_the_order_of_any_leaf() -> None:
    build = GraphBuilder("total")
    table, ids = build.input("table", 50, 70), build.input("ids", 4, dtype=np.int64)
    rows = build.apply(p.gather, table, wrapped(build, ids, 50))
    plain = build.reduce("sum", build.input("x", 4, 70), 1)
    graph = build.graph(build.reduce("sum", rows, 1), plain)
    gathered, other = reduction_steps(graph).values()
    assert gathered == other


def test_a_returned_view_of_a_scatter_is_a_copy_in_its_layout() -> None:
    build = GraphBuilder("turned")
    x, v = build.input("x", 5, 3), build.input("v", 4, 3)
    ids = wrapped(build, build.input("ids", 4, dtype=np.int64), 5)
    put = build.apply(p.scatter, x, v, ids, **ADDED)
    graph = build.graph(build.transpose(put, 1, 0))
    arrays = arrays_for(graph)
    (result,) = interpret_loops(lowered(build_stages(graph)), arrays, PlainNumerics())
    (expected,) = interpret(graph, arrays, NumpyNumerics())
    np.testing.assert_array_equal(result.reshape(3, 5), expected)
