"""What numpy refuses is refused, with an error of the same kind; what it takes is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import check, replay, trace_call
from tinyfuse.errors import IndexingError, NegativePowerError, TinyfuseError

X = np.arange(12.0).reshape(3, 4) - 5
ZERO = np.array(2.0)
N = np.array([1, 2, 0])
B = np.array([True, False, True])
ARGS = X, ZERO, N, B

REFUSED = """
np.broadcast_to(x, (-3, 4))
np.tile(n, -1)
np.tile(x, (2, -1))
np.pad(zero, -1)
np.pad(x, -1)
np.take(n, np.zeros(0))
np.take(zero, 0, axis=-2)
np.put(x, n.astype(np.uint64), 1)
np.choose(n.astype(np.uint64), [n, n, n])
np.put(n[:0], n, 1)
np.putmask(n, b, x[0, :3])
np.place(n, b, x[0])
np.copyto(n[:0], 1, where=b)
np.copyto(n, 1, where=b[:2])
np.squeeze(zero, axis=1)
np.squeeze(zero, axis=(0, -2))
np.min(n.astype(np.uint8), initial=-1)
np.maximum.reduce(n.astype(np.int8), initial=300)
np.matvec(n, n)
np.vecmat(n, n)
np.vander(n, -1)
np.linalg.norm(zero, axis=-1)
np.linalg.norm(x, "fro", axis=0)
np.linalg.norm(x[None], 1)
np.linalg.norm(x, axis=(0, 0))
np.trapezoid(n, x[:, :1])
np.subtract.at(x, 1, x)
np.add.at(x, n, x[None])
n.__setitem__(n[0], n[:1])
n.__setitem__(n.argmax(), n[:1])
n[:1].__setitem__(0, n[:1])
np.power.at(n, [0, 0], -2)
np.fill_diagonal(n, 1)
np.fill_diagonal(x[None], 1)
np.insert(x, 9, 1, axis=0)
np.insert(x, 1, n, axis=1)[:, :, 0]
np.delete(x, 4, axis=1)
np.block([[x], x])
np.cross(x, x)
np.gradient(x[:1], axis=0)
np.gradient(x, 1, 2, 3)
np.gradient(x, n[:2], axis=0)
np.average(x, weights=n)
np.average(x, axis=0, weights=n[:2])
np.interp(x, n, n[:2])
np.interp(x, n[:0], n[:0])
np.apply_along_axis(np.sum, 0, x[:, :0])
np.resize(x, (-1, 2))
np.nansum(x, axis=2)
np.isclose(x, n)
""".strip().splitlines()

TAKEN = """
np.take(n, []), np.take(x, [], axis=1), np.take(zero, 0, axis=-1), np.take(n, b)
np.take(x, n, axis=1, out=np.zeros((3, 3), np.float32))
np.inner(zero, x), np.inner(x, zero), np.dot(-zero, x * 0), np.dot(zero, -zero * 0)
np.dot(x[None] * 0, -zero)
np.unstack(n), np.unstack(x, axis=1), np.tile(n[:0], -1), np.tile(n, (2, 0))
np.squeeze(zero, axis=0), np.squeeze(zero, axis=-1), np.squeeze(x[:1], axis=(0,))
np.clip(n[:1], 0, 1, out=np.zeros(3, int)), np.clip(n, 0, 1, out=np.zeros((2, 3), int))
np.trapezoid(x[:, :3], x[None, :, :3], axis=-2), np.trapezoid(x, n, axis=-2)
np.ravel_multi_index((n[:0], n[0] + 9), (3, 4)), np.choose(n[:0] + 7, [n[0], n[1]])
b.__setitem__(0, n[:1]), b.__setitem__(1, x[:1, :1]), b.__setitem__(n[0], n[2:]), b.fill(n[:1]), b
np.putmask(x, x > 0, n), np.putmask(n, b, 2.5), np.putmask(n, b, [7.5]), np.place(n, b, 1.5), n
np.putmask(x, x < 0, np.float32(3)), np.put(n, 0, 2.5), n, x
np.fill_diagonal(x[None, None, :1, :1], 5), np.fill_diagonal(x[:3, :3], n), x
np.max(n, initial=2.7), np.min(n.astype(np.uint8), initial=1), np.max(x, initial=-9, where=x < 0)
np.select([b, ~b], [n.astype(np.uint8), n.astype(np.uint8)], -1), np.select([b], [n], -2)
np.subtract.at(x, 1, x[0]), np.add.at(x, (n, slice(1, 2)), 1), x
n[n.astype(np.uint64)], n[(n - 1).astype(np.uint64)], n[n[0].astype(np.uint64)]
x.__setitem__((1, n[0] > 0), 7), x.__setitem__((n[2] > 0, 2), 5), x
n.__setitem__((1, n[0] > 5), 9), n.__setitem__((n[0] > 0, 0), 8), n
""".strip().splitlines()


def function_of(expression: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    lines = [
        "def f(x, zero, n, b):",
        "    x, zero, n, b = x.copy(), zero.copy(), n.copy(), b.copy()",
    ]
    exec("\n".join([*lines, f"    return {expression}", ""]), space)
    function: Callable[..., Any] = space["f"]
    return function


@pytest.mark.parametrize("expression", REFUSED)
def test_what_numpy_refuses(expression: str) -> None:
    function = function_of(expression)
    with pytest.raises((ValueError, TypeError, IndexError, OverflowError)) as numpys:
        function(*ARGS)
    kinds = ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError
    kind = next(each for each in kinds if isinstance(numpys.value, each))
    with pytest.raises(kind) as ours:
        replay(trace_call(function, *ARGS), *ARGS)
    assert isinstance(ours.value, TinyfuseError)


def test_what_is_found_out_after_the_call() -> None:
    with pytest.raises(NegativePowerError, match="Integers to negative integer powers are not"):
        tinyfuse.jit(lambda n, i: np.power.at(n, i, -n))(N.copy(), N)
    with pytest.raises(IndexingError, match="index 18446744073709551612 is out of bounds for axis"):
        tinyfuse.jit(lambda n: n[np.argmax(n).astype(np.uint64) - np.uint64(5)])(N)


@pytest.mark.parametrize("expression", TAKEN)
def test_what_numpy_takes(expression: str) -> None:
    check(function_of(expression), *ARGS)
