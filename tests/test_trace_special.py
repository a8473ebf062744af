"""Functions of scipy.special in traced programs, and without scipy."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same, replay, trace_call
from tinyfuse.dtypes import FLOATING, SUPPORTED
from tinyfuse.errors import UnlistedFunctionError
from tinyfuse.graph.scalar_ops import SCALAR_OPS

special = pytest.importorskip("scipy.special", reason="needs scipy (extra: testing)")
NAMES = ("erf", "erfc", "expit", "gamma", "gammaln")
by_name = pytest.mark.parametrize("name", NAMES)
X = np.array([-2.5, -1, -0.0, 0, 0.5, 3, 40, np.inf, -np.inf, np.nan])


@by_name
def test_graphs_hold_what_scipy_computes(name: str) -> None:
    function: Callable[..., Any] = getattr(special, name)
    for dtype in SUPPORTED:
        with np.errstate(invalid="ignore"):
            x = X.astype(dtype)
        traced = trace_call(lambda x: function(x), x)
        assert traced.graph.eqns[-1].params["op"] == name
        assert_same(replay(traced, x), function(x))


def test_gelu() -> None:
    @tinyfuse.jit
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + special.erf(x / math.sqrt(2)))

    x = np.linspace(-4, 4, 100, dtype=np.float32)
    exact = 0.5 * x.astype(np.float64) * special.erfc(-x.astype(np.float64) / np.sqrt(2))
    assert np.abs(gelu(x) - exact).max() < 1e-6
    assert "tf_erf_float(" in gelu.lower(x).as_text("c")


def test_results_go_where_they_are_told_to() -> None:
    def in_place(x: Any) -> Any:
        special.expit(x, out=x)
        return x + special.expit(0.5)

    x = np.array([0.0, 1.0])
    assert_same(replay(trace_call(in_place, x.copy()), x.copy()), in_place(x.copy()))


def test_other_functions_of_scipy_are_named_as_such() -> None:
    with pytest.raises(
        UnlistedFunctionError, match=r"^scipy\.special\.jv is not among the functio"
    ):
        trace_call(lambda x: special.jv(1, x), X)


def test_a_stranger_of_the_same_name_is_not_taken_for_it() -> None:
    erf = np.frompyfunc(lambda x: x, 1, 1)
    with pytest.raises(UnlistedFunctionError):
        trace_call(lambda x: erf(x), X)


@by_name
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_without_scipy_python_computes(
    name: str, dtype: np.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.concatenate([X, np.linspace(-40, 40, 1001), [170.5, -170.5, 1e306, 1e-200]])
    with np.errstate(over="ignore"):
        x = x.astype(dtype).reshape(-1, 1)
    expected = getattr(special, name)(x)
    monkeypatch.delitem(sys.modules, "scipy.special")
    with np.errstate(over="ignore"):
        got = SCALAR_OPS[name].evaluate(x)
    assert (got.dtype, got.shape) == (dtype, x.shape)
    tolerance = 2e-6 if dtype == np.float32 else 2e-12
    near_zero = tolerance if name == "gammaln" else 1e-307  # where scipy's erfc is 0
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=near_zero)
    assert isinstance(SCALAR_OPS[name].evaluate(dtype.type(0.5)), np.floating)


def test_importing_tinyfuse_does_not_import_scipy() -> None:
    code = "import sys, tinyfuse; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
