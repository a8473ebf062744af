"""Which results are views of an array and which are copies: as numpy decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import check, twin

BASE = np.arange(64.0).reshape(8, 8)
LAYOUTS = {
    "c": BASE[:4, :4].copy(),
    "part": BASE[:4, :4],
    "transposed": BASE[:4, :4].T,
    "turned": BASE[3::-1, ::-2],
    "slim": BASE[:4, :1],
    "row": BASE[:1, :4],
    "line": BASE[0],
    "every second": BASE[0, ::2],
    "cube": np.arange(32.0).reshape(2, 4, 4),
}
EXPRESSIONS = """\
x
x.T
x[...]
x[:]
x[1:]
x[::-1]
x[::2]
x[None]
x[..., None]
x[-1]
x[0]
x[()]
x[1:1]
x.real
x.view()
x.copy()
x + 0
-x
x.reshape(-1)
x.reshape(x.shape)
x.reshape(2, -1)
x.reshape(-1, 2)
x.ravel()
x.reshape(-1, order='F')
x.ravel('F')
x.reshape(*x.shape, 1)
x.flatten()
x.reshape(x.shape[::-1])
x.T.reshape(-1)
x.T.reshape(x.shape)
x.T.ravel('F')
x.T.copy().reshape(-1)
x.copy('K').reshape(-1)
x.T.copy('K').reshape(-1)
(x + 1).reshape(-1)
(x.T + 1).reshape(-1)
x[::2].reshape(-1)
x[::-1].reshape(-1)
x.swapaxes(0, -1)
np.moveaxis(x, 0, -1)
np.rollaxis(x, -1)
np.transpose(x)
np.squeeze(x)
np.expand_dims(x, 0)
np.atleast_1d(x)
np.atleast_2d(x)
np.atleast_3d(x)
np.flip(x)
np.flipud(x)
np.rot90(np.atleast_2d(x))
np.rot90(np.atleast_2d(x), 0)
np.split(x, 1)[0]
np.array_split(x, 3)[0]
np.real(x)
x.conj()
np.conj(x)
x.astype(x.dtype)
x.astype(x.dtype, copy=False)
np.repeat(x, 1)
np.repeat(x, 1, axis=0)
np.repeat(x, 2, axis=0)
np.tile(x, 1)
np.tile(x, (1, 1, 1))
np.tile(x, (2, 1))
np.roll(x, 0)
np.roll(x, 0, axis=0)
np.roll(x, (), axis=())
np.concatenate([x])
np.stack([x])
np.pad(x, 0)
np.pad(x, 0, mode='edge')
np.diff(x, n=0)
np.where(True, x, x)
np.clip(x, 0, 99)
x.sum(axis=())
x.max(axis=())
x.sum(axis=0)
np.round(x)
np.broadcast_to(x, x.shape)
np.broadcast_to(x, (3, *x.shape))
np.broadcast_arrays(x, x[:1])[0]
np.zeros_like(x)
np.full_like(x, 2)
np.einsum('...->...', x)
np.einsum('ij->ji', np.atleast_2d(x))
np.diagonal(np.atleast_2d(x))
np.append(x, [])
np.copy(x)
x[0:1, ...]
x[0, ...]
np.array(x)
np.asarray(x)
np.ascontiguousarray(x)
np.array(x, copy=None)
np.vstack([x])
np.hstack([x])
np.column_stack([x])
np.dot(x, 1.0)
x @ x.T
np.lib.stride_tricks.sliding_window_view(x, 1, axis=0)
x[::2][1:]
x[1:].T[::-1]
np.mean(x, keepdims=True)
np.outer(x, x)
x.max(axis=0, keepdims=True)
np.ptp(x, 0)
""".splitlines()


def compiled(expression: str, then: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    r = {expression}\n    {then}\n    return x, r\n", space)
    function: Callable[..., Any] = space["f"]
    return function


def result(expression: str, x: np.ndarray) -> Any:
    """None for what numpy refuses."""
    try:
        return compiled(expression, "pass")(x)[1]
    except (ValueError, IndexError, TypeError):
        return None


CASES = [
    pytest.param(expression, x, id=f"{expression}, {layout}")
    for expression in EXPRESSIONS
    for layout, x in LAYOUTS.items()
    if isinstance(result(expression, x), np.ndarray)
]


@pytest.mark.parametrize(("expression", "x"), CASES)
def test_a_write_into_a_result(expression: str, x: np.ndarray) -> None:
    if result(expression, x).flags.writeable and "broadcast_arrays" not in expression:
        check(compiled(expression, "r[...] = 7"), x)


@pytest.mark.parametrize(("expression", "x"), CASES)
def test_a_write_into_the_array_that_it_comes_from(expression: str, x: np.ndarray) -> None:
    check(compiled(expression, "x *= -1"), x)


@pytest.mark.parametrize("expression", EXPRESSIONS[::4])
def test_results_of_compiled_functions_share_memory_as_numpys_do(expression: str) -> None:
    for then in ("pass", "x += 1"):
        function = compiled(expression, then)
        x, y = twin([LAYOUTS["c"], LAYOUTS["c"]])
        expected, found = function(x), tinyfuse.jit(function)(y)
        assert found[0] is y
        assert np.shares_memory(*found) == np.shares_memory(*expected)
        assert found[1].flags.writeable == expected[1].flags.writeable
