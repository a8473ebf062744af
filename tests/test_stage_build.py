"""Stages of hand-built graphs: their text, and their bits against the graph's own interpreter."""

from __future__ import annotations

import numpy as np

from tests.graphs import GraphBuilder, float32
from tests.stage_checks import checked_stages
from tinyfuse.graph.ir import Graph, Literal
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import walk
from tinyfuse.stage.printer import stages_text


def softmax(rows: int, columns: int) -> Graph:
    g = GraphBuilder("softmax")
    x = g.input("x", rows, columns)
    largest = g.reshape(g.reduce("max", x, 1), rows, 1, name="largest")
    e = g.op("exp", g.op("subtract", x, g.broadcast(largest, rows, columns)), name="e")
    total = g.reshape(g.reduce("sum", e, 1), rows, 1)
    return g.graph(g.op("divide", e, g.broadcast(total, rows, columns)))


def text(graph: Graph) -> str:
    return stages_text(checked_stages(graph))


def test_softmax_of_short_rows():
    assert (
        text(softmax(4, 20))
        == """\
stages softmax(x: float32[4, 20])
  largest_rank[i < 4]: uint32 = serial maximum over k < 20 of rank_nan_last(x[i, k]), from 0
  largest[i < 4]: float32 = of_rank_nan_last(largest_rank[i])
  subtract[i < 4, j < 20]: float32 = x[i, j] - largest[i]
  e[i < 4, j < 20]: float32 = exp(subtract[i, j])
  sum[i < 4]: float32 = serial add over k < 20 of e[i, k], from 0.0
  out[i < 4, j < 20]: float32 = e[i, j] / sum[i]
  return out"""
    )


def test_softmax_of_rows_that_fill_their_lanes():
    assert text(softmax(4, 640)).splitlines()[5:7] == [
        "  sum_lanes[i < 4, l < 64]: float32 = serial add over s < 10 "
        "of e[i, 64 * s + l], from 0.0",
        "  sum[i < 4]: float32 = halving add over l < 64 of sum_lanes[i, l]",
    ]


def test_softmax_of_long_rows_with_a_tail():
    lines = text(softmax(2, 2500)).splitlines()
    assert lines[1:5] == [
        "  largest_blocks[b < 3, i < 2]: uint32 = serial maximum over element < 1024",
        "    of rank_nan_last(x[i, 1024 * b + element]) where 1024 * b + element < 2500, from 0",
        "  largest_rank[i < 2]: uint32 = serial maximum over b < 3 of largest_blocks[b, i], from 0",
        "  largest[i < 2]: float32 = of_rank_nan_last(largest_rank[i])",
    ]
    assert lines[7:11] == [
        "  sum_lanes[i < 2, b < 3, l < 64]: float32 = serial add over s < 16",
        "    of e[i, 1024 * b + 64 * s + l] where 1024 * b + 64 * s + l < 2500, from 0.0",
        "  sum_blocks[i < 2, b < 3]: float32 = halving add over l < 64 of sum_lanes[i, b, l]",
        "  sum[i < 2]: float32 = pairwise add over b < 3 of sum_blocks[i, b]",
    ]


def test_sums_of_integers_are_plain_chains():
    g = GraphBuilder("count")
    x = g.input("x", 3000, dtype="int8")
    assert (
        text(g.graph(g.reduce("sum", x, 0, dtype="int64")))
        == """\
stages count(x: int8[3000])
  out_blocks[b < 3]: int64 = serial add over e < 1024
    of int64(x[1024 * b + e]) where 1024 * b + e < 3000, from 0
  out: int64 = serial add over b < 3 of out_blocks[b], from 0
  return out"""
    )


def test_sums_over_rows_are_blocks_of_rows():
    g = GraphBuilder("columns")
    assert (
        text(g.graph(g.reduce("sum", g.input("x", 300, 5), 0)))
        == """\
stages columns(x: float32[300, 5])
  out_blocks[b < 3, i < 5]: float32 = serial add over r < 128
    of x[128 * b + r, i] where 128 * b + r < 300, from 0.0
  out[i < 5]: float32 = pairwise add over b < 3 of out_blocks[b, i]
  return out"""
    )


def test_runs_of_axes_are_reduced_one_after_the_other():
    g = GraphBuilder("outer")
    assert (
        text(g.graph(g.reduce("sum", g.input("x", 3, 4, 5), 0, 2, name="total")))
        == """\
stages outer(x: float32[3, 4, 5])
  total_part[i < 3, j < 4]: float32 = serial add over k < 5 of x[i, j, k], from 0.0
  total[i < 4]: float32 = serial add over k < 3 of total_part[k, i], from 0.0
  return total"""
    )


def test_sums_over_all_axes_are_flat():
    g = GraphBuilder("total")
    assert text(g.graph(g.reduce("sum", g.input("x", 10, 128), 0, 1))).splitlines()[1:3] == [
        "  out_lanes[b < 2, l < 64]: float32 = serial add over s < 16",
        "    of x[8 * b + s / 2, 64 * (s % 2) + l] where 1024 * b + 64 * s + l < 1280, from 0.0",
    ]


def test_matrix_products_are_chains_of_fused_multiply_adds():
    g = GraphBuilder("product")
    a, b = g.input("a", 3, 4), g.input("b", 4, 5)
    assert (
        text(g.graph(g.contract("ij,jk->ik", a, b, via="matmul")))
        == """\
stages product(a: float32[3, 4], b: float32[4, 5])
  out[i < 3, j < 5]: float32 = serial fma over k < 4 of a[i, k] * b[k, j], from 0.0
  return out"""
    )


def test_long_contractions_are_chains_of_4096():
    g = GraphBuilder("chains")
    a, b = g.input("a", 2, 5000), g.input("b", 5000, 3)
    assert (
        text(g.graph(g.contract("ij,jk->ik", a, b, via="matmul")))
        == """\
stages chains(a: float32[2, 5000], b: float32[5000, 3])
  out_blocks[block < 2, i < 2, j < 3]: float32 = serial fma over r < 4096
    of a[i, 4096 * block + r] * b[4096 * block + r, j] where 4096 * block + r < 5000, from 0.0
  out[i < 2, j < 3]: float32 = pairwise add over block < 2 of out_blocks[block, i, j]
  return out"""
    )


def test_dot_products_have_lanes():
    g = GraphBuilder("dot")
    a, b = g.input("x", 90), g.input("y", 90)
    assert (
        text(g.graph(g.contract("i,i->", a, b, via="dot")))
        == """\
stages dot(x: float32[90], y: float32[90])
  out_lanes[l < 64]: float32 = serial fma over s < 2
    of x[64 * s + l] * y[64 * s + l] where 64 * s + l < 90, from 0.0
  out: float32 = halving add over l < 64 of out_lanes[l]
  return out"""
    )


def test_argmax_is_the_maximum_and_the_first_index_that_has_it():
    g = GraphBuilder("best")
    assert (
        text(g.graph(g.reduce("argmax", g.input("x", 3, 7), 1, name="winner")))
        == """\
stages best(x: float32[3, 7])
  winner_max_rank[i < 3]: uint32 = serial maximum over k < 7 of rank_nan_last(x[i, k]), from 0
  winner_max[i < 3]: float32 = of_rank_nan_last(winner_max_rank[i])
  winner[i < 3]: int64 = serial minimum over k < 7
    of k if x[i, k] == winner_max[i] or x[i, k] != x[i, k] else 7, from 7
  return winner"""
    )


def test_long_argmin_looks_into_one_block():
    g = GraphBuilder("best")
    assert (
        text(g.graph(g.reduce("argmin", g.input("x", 600, dtype="int32"), 0, name="winner")))
        == """\
stages best(x: int32[600])
  winner_min_blocks[b < 5]: int32 = serial minimum over e < 128
    of x[128 * b + e] where 128 * b + e < 600, from 2147483647
  winner_min: int32 = serial minimum over b < 5 of winner_min_blocks[b], from 2147483647
  winner_first: int64 = serial minimum over b < 5
    of b if winner_min_blocks[b] == winner_min else 5, from 5
  winner_blocks[b < 5]: int64 = serial over e < 128
    of (minimum(so_far, 128 * b + e if x[128 * b + e] == winner_min else 600) \
if 128 * b + e < 600 else so_far) if b == winner_first else so_far, from 600
  winner: int64 = serial minimum over b < 5 of winner_blocks[b], from 600
  return winner"""
    )


def test_views_vanish_into_indices():
    g = GraphBuilder("views")
    x = g.input("x", 4, 6)
    turned = g.transpose(g.slice(x, (slice(None, None, -1), slice(1, None, 2))), 1, 0)
    flat = g.reshape(turned, 12)
    windows = g.windows(g.reshape(x, 24), (3,), (0,))
    assert (
        text(g.graph(g.op("negative", flat), g.op("exp", windows)))
        == """\
stages views(x: float32[4, 6])
  out[i < 12]: float32 = -x[-(i % 4) + 3, 2 * (i / 4) + 1]
  out_1[i < 22, j < 3]: float32 = exp(x[(i + j) / 6, (i + j) % 6])
  return out, out_1"""
    )


def test_padding_and_joining_choose_by_index():
    g = GraphBuilder("edges")
    x, y = g.input("x", 3), g.input("y", 2)
    padded = g.pad(x, float32(1.5), (1,), (2,))
    assert (
        text(g.graph(padded, g.concat(x, y, x, axis=0)))
        == """\
stages edges(x: float32[3], y: float32[2])
  out[i < 6]: float32 = x[i - 1] if 1 <= i < 4 else 1.5
  out_1[i < 8]: float32 = x[i] if i < 3 else y[i - 3] if i < 5 else x[i - 5]
  return out, out_1"""
    )


def test_axes_of_one_element_are_kept_and_read_at_0():
    g = GraphBuilder("ones")
    x = g.input("x", 1, 4)
    assert (
        text(g.graph(g.op("negative", g.broadcast(g.op("exp", x), 3, 4))))
        == """\
stages ones(x: float32[1, 4])
  exp_1[i < 1, j < 4]: float32 = exp(x[0, j])
  out[i < 3, j < 4]: float32 = -exp_1[0, j]
  return out"""
    )


def test_a_returned_view_of_a_value_is_computed_in_its_layout():
    g = GraphBuilder("kept")
    x = g.input("x", 3, 4)
    total = g.reshape(g.reduce("sum", x, 1), 3, 1, name="total")
    assert (
        text(g.graph(total, g.transpose(g.op("exp", x), 1, 0, name="turned")))
        == """\
stages kept(x: float32[3, 4])
  total[i < 3, j < 1]: float32 = serial add over k < 4 of x[i, k], from 0.0
  turned[j < 4, i < 3]: float32 = exp(x[i, j])
  return total, turned"""
    )


def test_a_value_with_its_own_layout_is_still_read_by_others():
    g = GraphBuilder("both")
    x = g.input("x", 3, 4)
    e = g.op("exp", x, name="e")
    assert (
        text(g.graph(g.transpose(e, 1, 0), g.op("negative", e)))
        == """\
stages both(x: float32[3, 4])
  e[j < 4, i < 3]: float32 = exp(x[i, j])
  out[i < 3, j < 4]: float32 = -e[j, i]
  return e, out"""
    )


def test_other_outputs_that_are_no_stage_of_their_own_are_copied():
    g = GraphBuilder("copies")
    x = g.input("x", 4)
    y = g.op("exp", x, name="y")
    reversed_ = g.slice(y, (slice(None, None, -1),), name="reversed")
    assert (
        text(g.graph(x, y, y, reversed_, Literal(np.int8(3))))
        == """\
stages copies(x: float32[4])
  y[i < 4]: float32 = exp(x[i])
  out[i < 4]: float32 = x[i]
  out_1[i < 4]: float32 = y[i]
  reversed[i < 4]: float32 = y[-i + 3]
  out_2: int8 = 3
  return out, y, out_1, reversed, out_2"""
    )


def test_names_of_users_never_meet_names_of_c_or_of_axes():
    g = GraphBuilder("i")
    i, k, b = g.input("i", 70, 3), g.input("k", 70), g.input("double", 3)
    s = g.reduce("sum", g.op("exp", i, name="exp"), 1, name="σ")
    total = g.reduce("sum", g.op("multiply", s, k, name="l"), 0, name="b")
    assert (
        text(g.graph(total, g.op("add", b, b, name="exp")))
        == """\
stages i(i_1: float32[70, 3], k: float32[70], double_1: float32[3])
  exp_1[j < 70, m < 3]: float32 = exp(i_1[j, m])
  sigma[j < 70]: float32 = serial add over m < 3 of exp_1[j, m], from 0.0
  l[j < 70]: float32 = sigma[j] * k[j]
  b_lanes[lane < 64]: float32 = serial add over s < 2
    of l[64 * s + lane] where 64 * s + lane < 70, from 0.0
  b: float32 = halving add over lane < 64 of b_lanes[lane]
  exp_2[j < 3]: float32 = double_1[j] + double_1[j]
  return b, exp_2"""
    )


def test_sources_and_names_are_kept():
    g = GraphBuilder("f")
    graph = g.graph(g.reduce("sum", g.op("exp", g.input("x", 100)), 0, name="total"))
    source = object()
    eqns = tuple(
        [type(eqn)(eqn.primitive, eqn.inputs, eqn.params, eqn.output, source) for eqn in graph.eqns]
    )
    stages = build_stages(Graph("f", graph.inputs, eqns, graph.outputs))
    assert [(stage.name, stage.named) for stage in stages.stages] == [
        ("exp_1", False),
        ("total_lanes", False),
        ("total", True),
    ]
    assert all(stage.sources == (source,) for stage in stages.stages)
    assert [stage.named for stage in stages.inputs] == [True]


def test_many_joined_arrays_make_no_deep_expression():
    g = GraphBuilder("joined")
    parts = [g.input(f"x{at}", 1 + at % 3) for at in range(100)]
    stage = checked_stages(g.graph(g.concat(*parts, axis=0))).stages[-1]
    depths: dict[int, int] = {}
    for node in walk(stage.body):
        depths[id(node)] = 1 + max([depths[id(part)] for part in node.parts], default=0)
    assert depths[id(stage.body)] == 8  # 7 tests, and the element
