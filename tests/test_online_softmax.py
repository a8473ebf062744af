"""Attention as one equation, in blocks of keys: what becomes one, with what result, how it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import ScheduleError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.ir import Var
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.graph.shapes import infer
from tinyfuse.graph.softmax_blocks import forms_of_groups, live_groups, within_limits
from tinyfuse.loops.ir import Alloc, If, Scope, walk_statements
from tinyfuse.lower.bounds import Range
from tinyfuse.lower.guards import Guards
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2
from tinyfuse.records import replace
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import IndexTest
from tinyfuse.stage.index import Axis, affine
from tinyfuse.testing import Case, check_equivalence
from tinyfuse.testing.compare import difference

INFINITY = np.float32(np.inf)
CAUSAL = "limits=(0, 1, -1, 0)"


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def scaled(q, k):
    return q @ np.swapaxes(k, -1, -2) * np.float32(0.25)


def attention(q, k, v):
    return softmax(scaled(q, k)) @ v


def scale_before(q, k, v):
    return softmax((q / np.sqrt(np.float32(q.shape[-1]))) @ np.swapaxes(k, -1, -2)) @ v


def divided_late(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e @ v) / e.sum(-1, keepdims=True)


def by_where(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(i >= j, scaled(q, k), -np.inf)) @ v


def by_tril(q, k, v):
    mask = np.tril(np.ones((q.shape[-2], k.shape[-2]), bool))
    return softmax(np.where(mask, scaled(q, k), -np.inf)) @ v


def by_triu(q, k, v):
    mask = np.triu(np.full((q.shape[-2], k.shape[-2]), -np.inf, np.float32), 1)
    return softmax(scaled(q, k) + mask) @ v


def by_not(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(~(j > i), scaled(q, k), -np.inf)) @ v


def after_cache(q, k, v):
    rows, keys = q.shape[-2], k.shape[-2]
    i, j = np.arange(rows)[:, None] + (keys - rows), np.arange(keys)
    return softmax(np.where(j <= i, scaled(q, k), -np.inf)) @ v


def sliding_window(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where((j <= i) & (j > i - 20), scaled(q, k), -np.inf)) @ v


def large_negative(q, k, v):
    mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    return softmax(np.where(mask, scaled(q, k), np.float32(-1e9))) @ v


def padded(q, k, v, lengths):
    mask = np.arange(k.shape[-2]) < lengths[:, None, None]
    return softmax(np.where(mask, scaled(q, k), -np.inf)) @ v


def biased(q, k, v, bias):
    return softmax(scaled(q, k) + bias) @ v


def softcapped(q, k, v):
    return softmax(np.tanh(scaled(q, k) / 5) * 5) @ v


def heads_inside(q, k, v):
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * 0.25
    return np.einsum("bhqk,bkhd->bqhd", softmax(s), v)


def heads_moved(q, k, v):
    q, k, v = (np.transpose(x, (1, 0, 2)) for x in (q, k, v))
    return np.transpose(by_where(q, k, v), (1, 0, 2))


def grouped_by_repeat(q, k, v):
    return attention(q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0))


def grouped_by_broadcast(q, k, v):
    groups = q.reshape(k.shape[0], -1, *q.shape[1:])
    return attention(groups, k[:, None], v[:, None])


def values_across(q, k, v):
    return softmax(scaled(q, k)) @ np.swapaxes(v, -1, -2)


def one_query(q, k, v):
    return softmax(k @ q) @ v


def decode(q, k, v):
    s = np.einsum("hd,hnd->hn", q, k)
    return np.einsum("hn,hnd->hd", softmax(s), v)


ROWS, KEYS = normal(2, 20, 4), normal(2, 67, 4)
SQUARE = (normal(1, 67, 4), normal(1, 67, 4, seed=1), normal(1, 67, 3))
CROSS = (ROWS, KEYS, normal(2, 67, 5))
# What attention is written as, with arguments, and what the equation says.
MATCHES: dict[Callable[..., Any], tuple[tuple[np.ndarray, ...], str]] = {
    attention: (CROSS, "[abc,acd->abd block=64]"),
    scale_before: (CROSS, "[abc,acd->abd block=64]"),
    divided_late: (CROSS, "[abc,acd->abd block=64]"),
    by_where: (SQUARE, CAUSAL),
    by_tril: (SQUARE, CAUSAL),
    by_triu: (SQUARE, CAUSAL),
    by_not: (SQUARE, CAUSAL),
    after_cache: (CROSS, "limits=(0, 1, -1, 47)"),
    sliding_window: (SQUARE, "limits=(0, 1, -1, 0) (0, -1, 1, 19)"),
    large_negative: (SQUARE, "block=64]"),
    padded: ((*CROSS, np.array([67, 30])), "block=64]"),
    biased: ((*CROSS, normal(20, 67)), "block=64]"),
    softcapped: (CROSS, "block=64]"),
    heads_inside: ((normal(1, 67, 2, 4),) * 3, "[abcd,adbe->acbe block=64]"),
    heads_moved: ((normal(67, 2, 4),) * 3, CAUSAL),
    grouped_by_repeat: ((normal(4, 20, 4), *CROSS[1:]), "block=64]"),
    grouped_by_broadcast: ((normal(4, 20, 4), *CROSS[1:]), "block=64]"),
    values_across: ((ROWS, KEYS, normal(2, 5, 67)), "[abc,adc->abd block=64]"),
    one_query: ((normal(4), KEYS[0], normal(67, 5)), "[a,ab->b block=64]"),
    decode: ((normal(2, 4), *CROSS[1:]), "[ab,abc->ac block=64]"),
}


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> tinyfuse.Lowered:
    return tinyfuse.jit(function, **options).lower(*arguments)


def stack_bytes(lowered: tinyfuse.Lowered) -> int:
    """What all that a kernel keeps on the stack takes."""
    (kernel,) = lowered.kernels
    made = [s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)]
    return sum(buffer.nbytes for buffer in made if buffer.scope is Scope.STACK)


# --- what becomes one equation --------------------------------------------------------------------


@pytest.mark.parametrize("function", MATCHES)
def test_attention_is_one_equation_and_one_kernel(function: Callable[..., Any]) -> None:
    arguments, text = MATCHES[function]
    found = lowered(function, *arguments)
    assert text in found.as_text("graph")
    assert len(found.kernels) == 1
    assert found.scratch_bytes == 0
    assert any("online softmax" in decision.reason for decision in found.decisions)


def also_returned(q, k, v):
    weights = softmax(scaled(q, k))
    return weights @ v, weights


def without_maximum(q, k, v):
    e = np.exp(scaled(q, k))
    return e / e.sum(-1, keepdims=True) @ v


def along_rows(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.max(-2, keepdims=True))
    return e / e.sum(-2, keepdims=True) @ v


def of_another_sum(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / s.sum(-1, keepdims=True) @ v


def of_given_scores(q, k, v):
    return softmax(k[0] * 2) @ v[0, :4]


@pytest.mark.parametrize(
    "function", [also_returned, without_maximum, along_rows, of_another_sum, of_given_scores]
)
def test_what_is_no_attention_stays_as_it_is(function: Callable[..., Any]) -> None:
    assert "softmax_contract" not in lowered(function, *CROSS).as_text("graph")


def test_one_block_of_keys_stays_as_it_is() -> None:
    assert "softmax_contract" not in lowered(attention, *(normal(2, 64, 4),) * 3).as_text("graph")


def test_rewrites_are_chosen() -> None:
    assert "softmax_contract" not in lowered(attention, *CROSS, rewrites=()).as_text("graph")
    chosen = lowered(attention, *CROSS, rewrites="online_softmax")
    assert chosen.as_text("graph") == lowered(attention, *CROSS).as_text("graph")
    with pytest.raises(ValueError, match=r"there is no 'offline', only: fold_batch_norm, online"):
        tinyfuse.jit(attention, rewrites=("offline",))


# --- the same bits --------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [attention, by_where, after_cache, decode])
def test_the_bits_are_the_same_however_it_runs(function: Callable[..., Any]) -> None:
    arguments, _ = MATCHES[function]
    check_equivalence(function, *arguments, schedules=1, exact=False)


@pytest.mark.parametrize(
    ("function", "machine"),
    [
        *[(function, REFERENCE) for function in MATCHES],
        *[(function, REFERENCE_AVX2) for function in (by_where, after_cache, decode)],
    ],
)
def test_fused_loops_keep_the_bits(function: Callable[..., Any], machine: Any) -> None:
    arguments, _ = MATCHES[function]
    spoilt = tuple(np.array(each) for each in arguments)
    spoilt[1].flat[3], spoilt[2].flat[5] = np.inf, np.nan
    for given in (arguments, spoilt):
        traced = tinyfuse.jit(function).trace(*given)
        fused = tinyfuse.Lowered(traced, traced.options, machine)
        expected = fused.unfused().compile()(*given)
        assert difference(expected, fused.compile()(*given)) is None


def test_float64_and_many_rows_keep_the_bits() -> None:
    arguments = tuple(normal(3, 150, 20, seed=seed).astype(np.float64) for seed in range(3))
    found = lowered(by_where, *arguments)
    assert difference(found.unfused().compile()(*arguments), found.compile()(*arguments)) is None
    for threads in (1, 2, 3):
        again = tinyfuse.jit(by_where, threads=threads)(*arguments)
        assert difference(found.compile()(*arguments), again) is None


# --- how exact ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [attention, by_where])
@pytest.mark.parametrize("factor", [0.1, 1, 30])
def test_no_less_exact_than_two_passes(function: Callable[..., Any], factor: float) -> None:
    q, k, v = (normal(4, 300, 32, seed=seed) for seed in range(3))
    q *= np.float32(factor)
    exact = function(*(x.astype(np.float64) for x in (q, k, v)))
    of_numpy = np.abs(function(q, k, v) - exact).max()
    found = np.abs(tinyfuse.jit(function)(q, k, v) - exact).max()
    assert found <= 1.5 * of_numpy + np.finfo(np.float32).eps


def test_numpys_numerics_are_two_passes() -> None:
    arguments, _ = MATCHES[by_where]
    graph = lowered(by_where, *arguments).graph
    (found,) = interpret(graph, arguments, NumpyNumerics())
    np.testing.assert_allclose(found, by_where(*arguments), rtol=2e-6, atol=2e-6)


# --- masks ----------------------------------------------------------------------------------------


def test_wholly_masked_rows_are_nan_and_masked_blocks_are_not() -> None:
    q, k, v = CROSS
    mask = np.ones((2, 20, 67), bool)
    mask[0, 3] = False  # a row
    mask[1, :, :64] = False  # the first block of keys
    mask[0, 5, 64:] = False  # the last one

    def masked(q, k, v, mask):
        return softmax(np.where(mask, scaled(q, k), -np.inf)) @ v

    with np.errstate(invalid="ignore"):
        expected = masked(q, k, v, mask)
    found = tinyfuse.jit(masked)(q, k, v, mask)
    assert np.isnan(found[0, 3]).all()
    assert np.isnan(found).sum() == np.isnan(expected).sum() == found.shape[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_keys_that_a_mask_of_positions_takes_out_count_for_nothing(bad: float) -> None:
    q, k, v = (x.copy() for x in SQUARE)
    k[:, 66] = bad
    found = tinyfuse.jit(by_where)(q, k, v)
    added = tinyfuse.jit(by_triu)(q, k, v)
    expected = by_where(*SQUARE)
    np.testing.assert_allclose(found[:, :66], expected[:, :66], rtol=1e-5, atol=1e-6)
    assert difference(found, added) is None  # where numpy adds -inf to NaN


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_count_where_their_block_does(bad: float) -> None:
    """A weight of 0 times inf is NaN, as in numpy; but not in blocks that a mask takes out, and not
    in eight keys that it takes out for eight rows."""
    q, k, v = (x.copy() for x in SQUARE)
    v[:, 2], v[:, 65] = bad, bad
    found = tinyfuse.jit(by_where)(q, k, v)
    assert np.isnan(found[:, :2]).all()
    assert not np.isfinite(found[:, 2:]).any()
    v = SQUARE[2].copy()
    v[:, 65] = bad
    found = tinyfuse.jit(by_where)(q, k, v)
    np.testing.assert_allclose(found[:, :64], by_where(*SQUARE)[:, :64], rtol=1e-5, atol=1e-6)
    assert np.isnan(found[:, 64]).all()
    v = SQUARE[2].copy()
    v[:, 45] = bad
    found = tinyfuse.jit(by_where)(q, k, v)
    np.testing.assert_allclose(found[:, :40], by_where(*SQUARE)[:, :40], rtol=1e-5, atol=1e-6)
    assert np.isnan(found[:, 40:45]).all()
    assert not np.isfinite(found[:, 45:]).any()


def large_negative_added(q, k, v):
    mask = np.tri(q.shape[-2], k.shape[-2], dtype=np.float32)
    return softmax(scaled(q, k) + (1 - mask) * np.float32(-1e9)) @ v


@pytest.mark.parametrize("function", [large_negative, large_negative_added])
def test_large_negative_scores_are_scores(function: Callable[..., Any]) -> None:
    """Their blocks are visited, and their weights are 0 where a row has others: as in numpy, an
    infinite value counts there, and rows that have nothing else are no NaN."""
    found = lowered(function, *SQUARE)
    assert "softmax_contract[abc,acd->abd block=64]" in found.as_text("graph")
    assert (len(found.kernels), found.scratch_bytes) == (1, 0)
    q, k, v = (x.copy() for x in SQUARE)
    expected, computed = function(q, k, v), tinyfuse.jit(function)(q, k, v)
    np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(computed, tinyfuse.jit(by_where)(q, k, v), rtol=1e-5, atol=1e-6)
    v[:, 66] = np.inf
    with np.errstate(invalid="ignore"):
        expected = function(q, k, v)
    assert np.isnan(expected[:, :66]).all()
    assert (np.isnan(tinyfuse.jit(function)(q, k, v)) == np.isnan(expected)).all()


def test_rows_whose_scores_are_all_large_negative_are_averages() -> None:
    def masked(q, k, v, mask):
        return softmax(np.where(mask, scaled(q, k), np.float32(-1e9))) @ v

    q, k, v = CROSS
    mask = np.zeros((2, 20, 67), bool)
    mask[1, :, 65:] = True  # after a block that is all masked
    found = tinyfuse.jit(masked)(q, k, v, mask)
    averages = np.broadcast_to(v[0].mean(0), found[0].shape)
    np.testing.assert_allclose(found[0], averages, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found, masked(q, k, v, mask), rtol=1e-4, atol=1e-6)


def test_infinite_scores_are_nan_as_in_numpy() -> None:
    q, k, v = (np.abs(x) + 1 for x in CROSS)
    k[0, 66] = np.inf
    with np.errstate(invalid="ignore"):
        expected = attention(q, k, v)
    found = tinyfuse.jit(attention)(q, k, v)
    assert (np.isnan(found) == np.isnan(expected)).all()
    assert np.isnan(found[0]).all()


# --- loops ----------------------------------------------------------------------------------------


def large(function: Callable[..., Any], machine: Any = REFERENCE) -> tinyfuse.Lowered:
    traced = tinyfuse.jit(function).trace(*(normal(8, 1024, 64),) * 3)
    return tinyfuse.Lowered(traced, traced.options, machine)


@pytest.mark.parametrize("function", [attention, by_where, by_triu, softcapped, large_negative])
@pytest.mark.parametrize("machine", [REFERENCE, REFERENCE_AVX2])
def test_a_thread_keeps_less_than_64_kib(function: Callable[..., Any], machine: Any) -> None:
    found = large(function, machine)
    assert found.scratch_bytes == 0
    assert stack_bytes(found) < 64 * 1024


def test_products_are_in_vector_registers() -> None:
    (kernel,) = large(by_where).kernels
    made = [s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)]
    tiles = {buffer.name for buffer in made if buffer.scope is Scope.VECTORS}
    assert {"out_products", "out_sums"} < tiles
    assert any(name.startswith("matmul") for name in tiles)


def test_masked_blocks_are_skipped_and_masks_tested_where_they_matter() -> None:
    (kernel,) = large(by_where).kernels
    tests = [s for s in walk_statements(kernel.body) if isinstance(s, If)]
    skipping = [s for s in tests if not s.otherwise]
    assert len(skipping) == 3
    text = large(by_where).as_text("loops")
    assert "if 0 <= j_outer - b\n" in text
    assert "if 0 <= 8 * j_outer + 4 * j_outer_1 - 8 * b - l_outer + 3\n" in text  # tiles of scores
    assert "if 0 <= 8 * j_outer + j_outer_1 - 8 * b - g\n" in text  # keys of sums of values
    assert text.count("if 0 <= j_outer - b - 1\n") == len(tests) - 3 == 2
    assert not [s for s in walk_statements(large(attention).kernels[0].body) if isinstance(s, If)]


def band(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None] + 13, np.arange(k.shape[-2])
    return softmax(np.where((j <= i) & (j > i - 100), scaled(q, k), -np.inf)) @ v


def unscaled_band(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None] + 13, np.arange(k.shape[-2])
    return softmax(np.where(j <= i, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


BELOW = "0 <= 8 * j_outer + 4 * j_outer_1 - 8 * b - l_outer + 5"
ABOVE = "0 <= -8 * j_outer - 4 * j_outer_1 + 8 * b + l_outer + 11"


@pytest.mark.parametrize(
    ("function", "test"), [(band, f"{BELOW} and {ABOVE}"), (unscaled_band, BELOW)]
)
def test_tiles_of_scores_that_nothing_reads_are_left_out(
    function: Callable[..., Any], test: str
) -> None:
    """Where the edges of a mask are anywhere in a tile too."""
    arguments = normal(2, 200, 32), *(normal(2, 330, 32, seed=seed) for seed in (1, 2))
    found = lowered(function, *arguments)
    assert f"                if {test}\n" in found.as_text("loops")
    expected = found.unfused().compile()(*arguments)
    assert difference(expected, found.compile()(*arguments)) is None


def test_masks_that_do_not_meet_tiles_keep_products_in_registers() -> None:
    found = lowered(after_cache, normal(2, 256, 64), *(normal(2, 1000, 64),) * 2)
    made = [s.buffer for s in walk_statements(found.kernels[0].body) if isinstance(s, Alloc)]
    products = [b for b in made if b.name.startswith("out_products")]
    assert {buffer.scope for buffer in products} == {Scope.VECTORS}


@pytest.mark.parametrize("queries", [130, 133, 204])
@pytest.mark.parametrize("function", [by_where, after_cache, band])
def test_tiles_of_rows_that_meet_no_groups_keep_the_bits(
    function: Callable[..., Any], queries: int
) -> None:
    """Where the last tile of rows begins in the midst of eight of them."""
    arguments = normal(2, queries, 16), *(normal(2, 213, 16, seed=seed) for seed in (1, 2))
    arguments[2][:, 77] = np.inf
    found = lowered(function, *arguments)
    expected = found.unfused().compile()(*arguments)
    assert difference(expected, found.compile()(*arguments)) is None


@pytest.mark.parametrize("form", [(1, -1, 0), (1, -1, 13), (-1, 1, 5), (1, -2, 3), (-1, 3, -1)])
def test_groups_count_where_one_of_their_scores_does(form: tuple[int, ...]) -> None:
    q, k, v = normal(40, 8), normal(80, 8), normal(80, 8)
    (eqn,) = [e for e in lowered(by_where, q, k, v).graph.eqns if "limits" in e.params]
    eqn = replace(eqn, params={**eqn.params, "limits": form})
    of_eight_rows = within_limits(eqn, (40, 80)).reshape(5, 8, 10, 8).any((1, 3))
    assert (live_groups(eqn, (40, 80)) == np.repeat(of_eight_rows, 8, 0)).all()


def test_limits_that_tell_rows_apart_otherwise_exclude_no_groups() -> None:
    q, k, v = normal(40, 8), normal(80, 8), normal(80, 8)
    (eqn,) = [e for e in lowered(by_where, q, k, v).graph.eqns if "limits" in e.params]
    for changes in ({"limits": (3, -1, 0)}, {"block": 60}):
        assert forms_of_groups(replace(eqn, params={**eqn.params, **changes})) == []


def test_what_lies_across_lanes_is_copied_block_by_block() -> None:
    arguments = (*(normal(2, 128, 64),) * 2, normal(2, 128, 128))
    found = lowered(lambda q, k, bias: biased(q, k, k, bias), *arguments)
    assert "bias_copy: compute_at(out_weighted, b)" in str(found.schedule)
    found = lowered(values_across, *(normal(2, 128, 64),) * 2, normal(2, 64, 128))
    assert "v_copy: compute_at(out_weighted, b)" in str(found.schedule)
    assert len(found.kernels) == 1


def every_second_key(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None] + 13, np.arange(k.shape[-2])
    return softmax(np.where(2 * j <= i, scaled(q, k), -np.inf)) @ v


def test_what_is_computed_beside_something_else_stays_there() -> None:
    """Twice the keys' numbers, with the rows' numbers in the same kernel."""
    arguments = normal(2, 33, 16), *(normal(2, 128, 16, seed=seed) for seed in (1, 2))
    found = lowered(every_second_key, *arguments)
    assert "  i: compute_at(multiply); store_at(root);" in str(found.schedule)
    assert [kernel.stages[-1] for kernel in found.kernels] == ["multiply", "out"]
    expected = found.unfused().compile()(*arguments)
    assert difference(expected, found.compile()(*arguments)) is None


def before_all_keys(q, k, v):
    i, j = np.arange(q.shape[-2])[:, None] - q.shape[-2], np.arange(k.shape[-2])
    return softmax(np.where(j <= i, scaled(q, k), -np.inf)) @ v


def test_scores_that_nothing_reads_have_no_place() -> None:
    arguments = normal(2, 3, 3), normal(2, 65, 3), normal(2, 65, 64)
    found = lowered(before_all_keys, *arguments)
    assert np.isnan(found.compile()(*arguments)).all()
    assert np.isnan(found.unfused().compile()(*arguments)).all()


def multi_query(q, k, v):
    return tinyfuse.nn.attention(q, k, v)


@pytest.mark.parametrize(
    ("function", "shapes", "rows"),
    [
        (attention, ((2, 3, 16), (2, 130, 16), (2, 130, 40)), "j by 3"),
        (by_where, ((2, 12, 16), (2, 130, 16), (2, 130, 40)), "j by 8"),
        (multi_query, ((2, 6, 1, 16), (2, 1, 130, 16), (2, 1, 130, 40)), "i2 by 6"),
        (multi_query, ((2, 6, 3, 16), (2, 1, 130, 16), (2, 1, 130, 40)), "i2 by 6"),
    ],
)
def test_few_rows_meet_tiles_of_keys_and_of_columns(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], rows: str
) -> None:
    arguments = tuple([normal(*shape, seed=seed) for seed, shape in enumerate(shapes)])
    found = lowered(function, *arguments)
    (kernel,) = found.kernels
    made = [s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)]
    tiles = {buffer.name.split("_1")[0] for buffer in made if buffer.scope is Scope.VECTORS}
    assert "out_products" in tiles
    assert any(name.startswith("matmul") for name in tiles)
    assert f"out_products: compute_at(out_weighted, {rows});" in str(found.schedule)
    assert "k_copy: compute_at(out_weighted, b)" in str(found.schedule)
    expected = found.unfused().compile()(*arguments)
    assert difference(expected, found.compile()(*arguments)) is None


def test_the_schedule_is_saved_and_loaded(tmp_path: Path) -> None:
    found = lowered(by_where, *SQUARE)
    found.schedule.save(tmp_path / "schedule")
    loaded = Schedule.load(tmp_path / "schedule", found.stages)
    assert str(loaded) == str(found.schedule)
    assert found.with_schedule(loaded).as_text("c") == found.as_text("c")


# --- scans that are carried on --------------------------------------------------------------------


def rises(x):
    """How far each element of a column is above the largest one before it, summed."""
    before = np.maximum.accumulate(np.concatenate([np.zeros((1, x.shape[1]), np.float32), x[:-1]]))
    return (x - before).sum(axis=0)


def carried(schedule: Schedule) -> Schedule:
    schedule = Schedule(schedule.stages)
    before, out = schedule.stage("before"), schedule.stage("out")
    for stage in schedule.stages.stages:
        if stage not in (before, out):
            schedule = schedule.inline(stage)
    schedule = schedule.reorder(out, *out.reduce_axes, *out.axes)
    schedule = schedule.compute_with(before, out, out.reduce_axes[0], store_at=(out, None))
    return schedule.fold(before, before.axes[0], 1)


def test_a_scan_moves_on_with_the_steps_of_a_reduction() -> None:
    x = normal(50, 7)
    schedule = carried(Schedule(Case(rises, (x,), "rises").stages))
    (kernel,) = lower(schedule, REFERENCE).kernels
    made = {s.buffer.name: s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)}
    assert made["before"].size == 7
    found = lowered(rises, x)
    again = found.with_schedule(carried(found.schedule)).compile()(x)
    assert difference(found.unfused().compile()(x), again) is None


def inclusive(x):
    before = np.maximum.accumulate(x)
    return (x - before).sum(axis=0)


def two_steps(x):
    start = np.zeros((1, x.shape[1]), np.float32)
    before = np.maximum.accumulate(np.concatenate([start, x[:-1]]))
    earlier = np.concatenate([start, before[:-1]])
    return (before - earlier).sum(axis=0)


def test_a_scan_that_other_steps_read_is_not_carried() -> None:
    schedule = carried(Schedule(Case(two_steps, (normal(50, 7),), "two").stages))
    with pytest.raises(ScheduleError, match="it is read where another step of the loop is"):
        lower(schedule, REFERENCE)


def test_a_scan_that_reads_something_before_the_first_step_is_not_carried() -> None:
    with pytest.raises(ScheduleError, match="its first position reads something"):
        carried(lowered(inclusive, normal(50, 7)).schedule)


def test_a_scan_that_goes_along_with_no_reduction_is_not_carried() -> None:
    schedule = lowered(rises, normal(50, 7)).schedule
    before, out = schedule.stage("before"), schedule.stage("out")
    schedule = schedule.compute_at(before, out, None)
    with pytest.raises(ScheduleError, match="it is not kept inside a stage"):
        schedule.fold(before, before.axes[0], 1)


def test_a_scan_is_kept_at_one_position_only() -> None:
    schedule = carried(lowered(rises, normal(50, 7)).schedule)
    before = schedule.stage("before")
    with pytest.raises(ScheduleError, match="goes along with no reduction whose steps move it on"):
        schedule.fold(before, before.axes[0], 2)


def test_nothing_is_computed_inside_a_scan_that_is_carried() -> None:
    schedule = carried(lowered(rises, normal(50, 7)).schedule)
    before = schedule.stage("before")
    schedule = schedule.cache_read(before, schedule.stages.inputs[0])
    copy = schedule.stage("x_copy")
    with pytest.raises(ScheduleError, match="is computed inside it, where nothing moves on"):
        schedule.compute_at(copy, before, schedule[before].loops[0])


# --- parts ----------------------------------------------------------------------------------------


def test_what_follows_from_where_a_statement_stands() -> None:
    i, b, j = Axis("i", 16), Axis("b", 16), Axis("j", 64)
    of_row, of_key = (
        IndexTest(64 * i + j - 64 * b, 0, None),
        IndexTest(64 * i - 64 * b - j, 0, None),
    )
    guards = Guards()
    assert guards.decided(of_row) is None
    tile = {j: Range(affine(0), 64)}
    with guards.step(guards.some([of_row], tile)):
        assert guards.facts == [64 * i - 64 * b]
        assert guards.decided(of_row) is True
        assert guards.decided(of_key) is None
        assert guards.decided(IndexTest(64 * i + j - 64 * b, None, 64)) is None
        assert guards.all([of_key], tile) == [64 * i - 64 * b - 64]
    assert guards.decided(of_row) is None
    assert guards.some([IndexTest(affine(j), 0, None)], tile) == []


PRODUCT = {"lhs": (0, 1), "rhs": (1, 2), "out": (0, 2), "block": 64, "limits": ()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rhs": (0, 2), "out": (0, 1, 2)}, "has not one label of keys"),
        ({"limits": (0, 1)}, r"block 64, limits \(0, 1\)"),
        ({"block": 0}, "block 0"),
        ({"rhs": (3, 2)}, "sums over a label of one operand"),
    ],
)
def test_equations_that_are_none_are_refused(changes: dict[str, Any], message: str) -> None:
    operands = (Var((3, 100), np.dtype(np.float32)), Var((100, 5), np.dtype(np.float32)))
    assert infer(p.softmax_contract, operands, PRODUCT) == ((3, 5), np.dtype(np.float32))
    if "out" in changes:
        operands = (operands[0], Var((3, 5), np.dtype(np.float32)))
    with pytest.raises(ValueError, match=message):
        infer(p.softmax_contract, operands, {**PRODUCT, **changes})
