"""Products by tensor cores: asked for by name, of rounded operands, the same bits when emulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import array
from tests.test_device import flat
from tinyfuse.compilation import Lowered
from tinyfuse.dtypes import FLOAT32
from tinyfuse.emit.cuda import cuda_kernel_texts
from tinyfuse.graph.scalar_ops import NEAREST, SCALAR_OPS
from tinyfuse.loops.ir import TENSOR_STEPS, For, walk_statements
from tinyfuse.machine import SM_90
from tinyfuse.runtime.emulated_program import run_program

KINDS = ("tf32", "bfloat16", "float16")
# Relative to the largest sum: half a unit in the last place of both operands, and then some.
ERROR = {"tf32": 1e-3, "bfloat16": 8e-3, "float16": 1e-3}


def product(x: Any, y: Any) -> Any:
    return x @ y


def with_rows(x: Any, y: Any) -> Any:
    return x @ y.T


def with_columns(x: Any, y: Any) -> Any:
    return x.T @ y


def gated(x: Any, a: Any, b: Any) -> Any:
    return np.maximum(x @ a, 0) * (x @ b)


def biased(x: Any, y: Any, bias: Any) -> Any:
    return np.maximum(x @ y + bias, 0)


CASES: list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = [
    (product, (array(128, 32), array(32, 128))),
    (product, (array(150, 43), array(43, 70))),
    (with_rows, (array(64, 48), array(64, 48, seed=1))),
    (with_columns, (array(48, 64), array(48, 64, seed=1))),
    (gated, (array(64, 32), array(32, 64, seed=1), array(32, 64, seed=2))),
    (biased, (array(40, 24), array(24, 33, seed=1), array(33))),
    (product, (array(64, 32, dtype=np.float16), array(32, 64, dtype=np.float16))),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("function", "arrays"), CASES)
def test_the_bits_of_c(function: Callable[..., Any], arrays: tuple[np.ndarray, ...], kind: str):
    rewrites = [f"{kind}_products"]
    expected = tinyfuse.jit(function, rewrites=rewrites)(*arrays)
    unfused = tinyfuse.jit(function, rewrites=rewrites, fuse=False)(*arrays)
    emulated = tinyfuse.jit(function, rewrites=rewrites, target="cuda-emulated")
    assert "    tf_mma_" in emulated.lower(*arrays).as_text("cuda")
    np.testing.assert_array_equal(emulated(*arrays), expected)
    np.testing.assert_array_equal(unfused, expected)
    exact = function(*[each.astype(np.float64) for each in arrays])
    assert np.abs(expected - exact).max() <= ERROR[kind] * np.abs(exact).max()


def test_nobody_is_given_what_was_not_asked_for():
    x = array(64, 32, dtype=np.float16)
    for arrays in ((array(64, 32), array(64, 32)), (x, x)):
        lowered = tinyfuse.jit(with_rows).lower(*arrays)
        assert "tf_mma_" not in lowered.as_text("cuda")


def lowered_for_gpu(kind: str) -> Lowered:
    jitted = tinyfuse.jit(with_rows, target="cuda", rewrites=[f"{kind}_products"])
    traced = jitted.trace(array(128, 32), array(128, 32))
    return Lowered(traced, traced.options, SM_90)


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_and_banks(kind: str):
    """A step of 16 of a tile of 128 by 128 is 4 by 4 instructions of each warp, or 2 times as many.

    Numbers of 16 bits lie in shared memory as float32, of which a thread loads two by two: lanes
    that load the first meet others two by two in a bank. So do rows of 16 steps that are stored.
    """
    lowered = lowered_for_gpu(kind)
    loops = [e for k in lowered.kernels for e in walk_statements(k.body) if isinstance(e, For)]
    assert [each.variable.extent for each in loops if each.kind.value == kind] == [
        TENSOR_STEPS[each.kind] for each in loops if each.kind.value == kind
    ]
    report = run_program(lowered.cuda[0], flat([array(128, 32), array(128, 32)]))
    assert report.error is None
    shared = [each for each in report.launches[0].accesses if each.shared]
    worst = {each.kind: max(e.worst for e in shared if e.kind == each.kind) for each in shared}
    assert worst == {"write": 2, "read": 1 if kind == "tf32" else 2}


def test_the_text_of_a_tile(golden: Callable[[str, str], None]):
    golden("tensor_tile.cu", cuda_kernel_texts(lowered_for_gpu("bfloat16").loops)[0] + "\n")


# --- rounding -------------------------------------------------------------------------------------

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 65519.0, 65520.0, 3.4028235e38, 1 / 3],
    dtype=np.float32,
)
VALUES = {
    "nearest_tf32": (1 + 2**-11, 1.0, 1 + 3 * 2**-11, 1 + 2**-9),
    "nearest_bfloat16": (1 + 2**-8, 1.0, 1 + 3 * 2**-8, 1 + 2**-6),
    "nearest_float16": (1 + 2**-11, 1.0, 1 + 3 * 2**-11, 1 + 2**-9),
}


@pytest.mark.parametrize("name", NEAREST)
def test_rounding_is_to_nearest_even(name: str):
    low, down, high, up = VALUES[name]
    evaluate = SCALAR_OPS[name].evaluate
    np.testing.assert_array_equal(evaluate(np.array([low, high], FLOAT32)), [down, up])


@pytest.mark.parametrize("name", NEAREST)
def test_rounding_in_c_is_numpys(name: str):
    """A product with one sum of one term is the rounded number itself."""
    kind = name.removeprefix("nearest_")
    values = np.concatenate([SPECIAL, array(20000) * 1e-3, array(1000) * 1e30])
    jitted = tinyfuse.jit(
        lambda x, one: np.multiply.outer(x, one) @ one, rewrites=[f"{kind}_products"]
    )
    expected = SCALAR_OPS[name].evaluate(values)
    with np.errstate(over="ignore"):
        found = jitted(values, np.ones(1, np.float32))
    np.testing.assert_array_equal(found, expected)
