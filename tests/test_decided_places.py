"""Places that conditions decide: gcc 12 makes vectors that load at -1 where they hold, not at 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.testing import Ladder, Variant
from tinyfuse.testing.case import Case
from tinyfuse.testing.variants import fused

Function = Callable[[np.ndarray, np.ndarray], Any]


def whole(mask: np.ndarray) -> np.ndarray:
    return mask.astype(np.int64)


def pairs(x: np.ndarray) -> np.ndarray:
    """[n] → [n, 2]"""
    return np.stack([x, x[::-1]], axis=1)


def stored(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mask = x > 0
    return mask, t[whole(mask), 1]


def put_together(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(x), bool)
    mask[1:] = x[1:] > 0
    return t[whole(mask), 0]


# x: any numbers [n]; t: [6, 4]
DECIDED: dict[str, Function] = {
    "greater": lambda x, t: t[whole(x > 0), 0],
    "through int8": lambda x, t: t[(x > 0).astype(np.int8), 0],
    "not": lambda x, t: t[whole(~(x > 0)), 0],
    "reversed": lambda x, t: t[whole(x[::-1] == 1), 0],
    "and": lambda x, t: t[whole((x > 0) & (x < 3)), 0],
    "from one": lambda x, t: t[1 - whole(x > 0), 0],
    "opposite": lambda x, t: t[-whole(x > 0), 0],
    "twice": lambda x, t: t[whole(x > 0) * 2 + 1, 0],
    "chosen": lambda x, t: t[np.where(x > 0, 0, 1), 0],
    "chosen otherwise": lambda x, t: t[np.where(x > 0, 5, 4), 0],
    "truth": lambda x, t: t[whole(x.astype(bool)), 0],
    "sign": lambda x, t: t[whole(np.sign(x)), 0],
    "at most 1": lambda x, t: t[whole(np.minimum(x, 1)), 0],
    "one of two": lambda x, t: t[:2, 0][whole(x > 0)],
    "rows": lambda x, t: t[whole(x > 0)],
    "columns": lambda x, t: t[:, whole(x > 0)],
    "both": lambda x, t: t[whole(x > 0), whole(x > 1)],
    "in a fixed row": lambda x, t: t[whole(x[0]) % 3, whole(x > 0)],
    "in each row": lambda x, t: t[whole(x[:3, None]) % 3, whole(x > 0)],
    "from a place on": lambda x, t: t[whole(x[0]) % 3 + (x > 0), 0],
    "two of them": lambda x, t: t[whole(x > 0) + (x[0] > 0), 0],
    "clipped": lambda x, t: t[:, 0].take(whole(x > 0), mode="clip"),
    "wrapped": lambda x, t: t[:, 0].take(whole(x > 0), mode="wrap"),
    "of a place": lambda x, t: t[whole(t[whole(x > 0), 0] > 2), 1],
    "of any": lambda x, t: t[whole((pairs(x) > 0).any(axis=1)), 0],
    "counted": lambda x, t: t[(x[:, None] > 0).sum(axis=1), 0],
    "searched": lambda x, t: t[np.searchsorted(t[:1, 0], x), 0],
    "largest of two": lambda x, t: t[pairs(x).argmax(axis=1), 0],
    "among each other": lambda x, t: t[whole(x[:, None] > x[:4]), 0],
    "summed": lambda x, t: t[whole(x > 0), 0].sum(),
    "used twice": lambda x, t: t[whole(x > 0), 0] * whole(x > 0),
    "behind a condition": lambda x, t: np.where(x > 1, t[whole(x > 2), 0], 0),
    "stored": stored,
    "put together": put_together,
}


def case(name: str, x: np.ndarray, t: np.ndarray) -> Case:
    def function(x, t):
        return DECIDED[name](x, t)

    function.__name__ = f"case_{[*DECIDED].index(name)}_{len(x)}"
    return Case(function, (x, t), name)


@pytest.mark.parametrize("elements", ["uint8", "float32", "int64"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_loads_are_where_numpy_has_them(dtype: str, elements: str) -> None:
    """As optimized as calls are."""
    random, cases = np.random.default_rng(1), []
    for length in (4, 37):
        x, t = random.integers(0, 5, length).astype(dtype), np.arange(24).reshape(6, 4)
        cases += [case(name, x, t.astype(elements)) for name in DECIDED]
    as_called = Variant("C as calls have it", fused, flags=())
    assert Ladder([as_called], lambda case: False).climb(cases).failures == []


def places_in(function: Callable[..., Any], *arguments: np.ndarray) -> int:
    """How many places a program hides."""
    text = tinyfuse.jit(function).lower(*arguments).as_text("c")
    return text.count("tf_place(") - text.count("int64_t tf_place(")


def test_a_row_is_found_once_and_what_takes_many_places_stays_in_sight() -> None:
    x, t = np.arange(50.0) - 9, np.arange(1000.0)
    assert places_in(lambda x, t: t[whole(x > 0)], x, t.reshape(10, 100)) == 1
    assert places_in(lambda x, t: t[(whole(x) - (x < 0)) & 255], x, t) == 0
    assert places_in(lambda x, t: t[np.where(x < 0, 0, whole(x))], x, t) == 0
    assert places_in(lambda x, t: np.searchsorted(t, x), x, t) == 0
    assert places_in(lambda x, t: t[x.argsort()], x, t) == 0


def test_a_bool_chooses_between_two_elements_that_are_loaded_once() -> None:
    x, t = np.arange(50, dtype=np.float32) - 9, np.arange(6, dtype=np.float32)
    text = tinyfuse.jit(lambda x, t: x * t[whole(x > 0)]).lower(x, t).as_text("c")
    assert (
        "  const float t_1 = t[1];\n"
        "  const float t_2 = t[0];\n"
        "  for (long i = 0; i < 50; i++)\n"
        "    out[i] = x[i] * (x[i] > 0.0f ? t_1 : t_2);\n"
    ) in text


def test_a_row_that_a_name_decides_is_found_once() -> None:
    def rows(x, t):
        positive = x > 0
        return t[whole(positive)]

    text = tinyfuse.jit(rows).lower(np.arange(50.0) - 9, np.ones((3, 100))).as_text("c")
    assert (
        "    const int64_t cast = tf_place((int64_t)positive);\n"
        "    for (long j = 0; j < 100; j++)\n"
        "      out[100 * i + j] = t[cast * 100 + j];\n"
    ) in text
