"""Products that are subtracted beside others that are added: no instruction rounds both once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.runtime.build import _ALTERNATING, run_compiler
from tinyfuse.runtime.toolchain import environment, find_compiler


def rotated(xy: Any, c: Any, s: Any) -> Any:
    out = np.empty_like(xy)
    out[:, 0] = c[0] * xy[:, 0] - s[0] * xy[:, 1]
    out[:, 1] = s[0] * xy[:, 0] + c[0] * xy[:, 1]
    return out


def squared_twice(xy: Any, c: Any, s: Any) -> Any:
    x, y = xy[:, 0], xy[:, 1]
    even, odd = x * x - y * y, x * y + y * x
    out = np.empty_like(xy)
    out[:, 0] = x * even - y * odd
    out[:, 1] = x * odd + y * even
    return out


def halves(xy: Any, c: Any, s: Any) -> Any:
    return np.stack([xy[:, 0] / 2 - xy[:, 1], xy[:, 0] / 2 + xy[:, 1]], -1)


def negated(xy: Any, c: Any, s: Any) -> Any:
    product = xy[:, 0] * c[0]
    return np.stack([product + -xy[:, 1], product + xy[:, 1]], -1)


def between_bounds(xy: Any, c: Any, s: Any) -> Any:
    return np.stack([xy[:, 0] * xy[:, 1] - 1.5, xy[:, 0] * xy[:, 1] + 1.5], -1)


def below_zero(xy: Any, c: Any, s: Any) -> Any:
    product = xy[:, 0] * xy[:, 1]
    return np.stack([-2.5 + product, product - -2.5], -1)


def with_zeros(xy: Any, c: Any, s: Any) -> Any:
    product = xy[:, 0] * 0.0
    sums = [
        product + -0.0,
        product - 0.0,
        product + 0.0,
        product + 1,
        0.0 - product,
        -0.0 - product,
    ]
    return np.stack(sums, -1)


def few(xy: Any, c: Any, s: Any) -> Any:
    a, b, x = c[0], s[0], xy[:2].reshape(-1)
    return np.array([x[0] * a - b, x[0] * a + b, x[1] * a - b, x[1] * a + b])


PROGRAMS = (rotated, squared_twice, halves, negated, between_bounds, below_zero, with_zeros, few)


def arguments(dtype: type) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    return tuple([random.standard_normal(shape).astype(dtype) for shape in ((48, 2), 2, 2)])


def text_of(function: Callable[..., Any], dtype: type) -> str:
    return tinyfuse.jit(function).lower(*arguments(dtype)).as_text("c")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", PROGRAMS)
def test_the_text_is_compiled_to_no_alternating_instructions(
    tmp_path: Path, function: Callable[..., Any], dtype: type
):
    """With the flags that any text is compiled with, for a processor that has them."""
    (tmp_path / "kernel.c").write_text(text_of(function, dtype))
    compiler = find_compiler()
    flags = compiler.arguments(("-march=haswell", "-S"), libc=False)
    command = compiler.call("kernel.c", "kernel.s", flags)
    status, words = run_compiler(command, tmp_path, environment(tmp_path))
    assert status == 0, words
    assert not _ALTERNATING.search((tmp_path / "kernel.s").read_bytes())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", PROGRAMS)
def test_each_product_is_rounded(function: Callable[..., Any], dtype: type):
    expected = function(*arguments(dtype))
    assert tinyfuse.jit(function)(*arguments(dtype)).tobytes() == expected.tobytes()


def test_differences_are_written_as_sums_only_beside_sums():
    assert "c[0] * xy[2 * i] + tf_negative_double(s[0] * xy[2 * i + 1])" in text_of(
        rotated, np.float64
    )
    for function in (
        lambda xy, c, s: xy[:, 0] * c[0] - xy[:, 1],
        lambda xy, c, s: (xy[:, 0] - xy[:, 1] * c[0]) * s[0] + xy[:, 1],  # one of the other
        lambda xy, c, s: (xy[:, 0] * c[0] - 1, xy[:, 1] + s[0]),  # no product is added
    ):
        assert "negative" not in text_of(function, np.float64)
