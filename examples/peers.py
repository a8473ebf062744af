"""Other compilers of array functions, as far as they are installed, on the same numpy functions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import numpy as np
from timing import Call


def jax_call(function: FunctionType, arrays: Sequence[np.ndarray]) -> Call:
    """jax.jit, on arrays of jax's own."""
    import jax

    given = [jax.device_put(array) for array in arrays]
    compiled = jax.jit(_with_numpy(function, jax.numpy))
    return lambda: jax.block_until_ready(compiled(*given))


def torch_call(function: FunctionType, arrays: Sequence[np.ndarray]) -> Call:
    """torch.compile, which takes numpy functions and arrays."""
    import torch

    compiled = torch.compile(function, dynamic=False)
    return lambda: compiled(*arrays)


def numba_call(function: FunctionType, arrays: Sequence[np.ndarray]) -> Call:
    """numba.njit(parallel=True); it has no `keepdims`."""
    import numba

    compiled = numba.njit(parallel=True)(function)
    return lambda: compiled(*arrays)


def _with_numpy(function: FunctionType, numpy: Any) -> FunctionType:
    """The function, with another module in the place of numpy."""
    return FunctionType(function.__code__, {**function.__globals__, "np": numpy})


PEERS = {"jax": jax_call, "torch": torch_call, "numba": numba_call}


def installed() -> list[str]:
    return [name for name in PEERS if find_spec(name)]


def peer_call(
    name: str, function: FunctionType, arrays: Sequence[np.ndarray], expected: np.ndarray
) -> Call | None:
    """A call that computes the function with this peer; none where it can't, or not rightly."""
    try:
        with warnings.catch_warnings(action="ignore"):
            call = PEERS[name](function, arrays)
            result = np.asarray(call())
    except Exception:  # each has its own errors for what it does not know
        return None
    close = np.allclose(result, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    return call if close else None
