"""What is asked for in the turns of a long loop: what is transposed next, and what is stored."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinyfuse
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.testing import difference


def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) * 0.125
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


def arguments(heads: int, length: int, width: int = 64) -> list[Any]:
    random = np.random.default_rng(length)
    shape = (heads, length, width)
    return [random.standard_normal(shape).astype(np.float32) for _ in range(3)]


def lines(heads: int, length: int, width: int = 64) -> list[str]:
    """Of the loops in which memory is asked for, from that over blocks of keys on."""
    stages = tinyfuse.jit(attention).lower(*arguments(heads, length, width)).stages
    text = loops_text(lower(default_schedule(stages, REFERENCE)[0], REFERENCE))
    found = [line.strip() for line in text.splitlines()]
    first = next(n for n, line in enumerate(found) if line.startswith("for b <"))
    last = next(n for n, line in enumerate(found) if n > first and line.startswith("alloc"))
    return found[first:last]


def test_each_turn_asks_for_some_rows() -> None:
    assert lines(8, 1024) == [
        "for b < 16",
        "for r < 4",
        "prefetch 64 elements of out[65536 * i + 4096 * j_outer + 256 * b + 64 * r…]",
        "for r < 4",
        "prefetch 64 elements of query[65536 * i + 4096 * j_outer + 256 * b + 64 * r + 4096…]",
    ]


def test_turns_that_are_more_than_rows_ask_for_nothing_more() -> None:
    assert lines(1, 64 * 70)[:5] == [
        "for b < 70",
        "if b < 64",
        "prefetch 64 elements of out[4096 * j_outer + 64 * b…]",
        "if b < 64",
        "prefetch 64 elements of query[4096 * j_outer + 64 * b + 4096…]",
    ]


def test_what_a_cache_holds_is_not_asked_for() -> None:
    assert lines(2, 1024) == ["for b < 16"]  # half of the second cache
    assert lines(8, 1024, 256) == ["for b < 16"]  # more than half of the first one


def test_what_is_asked_for_changes_nothing() -> None:
    given = arguments(5, 1000)
    lowered = tinyfuse.jit(attention).lower(*given)
    assert "tf_prefetch(query + " in lowered.as_text("c")
    found, expected = lowered.compile()(*given), lowered.unfused().compile()(*given)
    assert difference(found, expected) is None
