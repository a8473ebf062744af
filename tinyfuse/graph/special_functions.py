"""Functions of scipy.special, by Python's own means where scipy is not there."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)


def _gamma(x: float) -> float:
    if abs(x) < 1e-300:
        return 1 / x if x else math.copysign(math.inf, x)
    return math.nan if _is_pole(x) else math.gamma(x)


def _gammaln(x: float) -> float:
    if x == -math.inf:
        return x
    return math.inf if x == 0 or _is_pole(x) else math.lgamma(x)


def _is_pole(x: float) -> bool:
    return x < 0 and (x == -math.inf or x.is_integer())


SPECIAL_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "erf": math.erf,
    "erfc": math.erfc,
    "expit": _expit,
    "gamma": _gamma,
    "gammaln": _gammaln,
}


def special_function(name: str, x: Any) -> Any:
    """By scipy where the program has imported that, else number by number."""
    function = getattr(sys.modules.get("scipy.special"), name, None)
    return _by_number(name, x) if function is None else function(x)


def _by_number(name: str, x: Any) -> Any:
    values = [_number(name, value) for value in np.ravel(x).tolist()]
    return np.reshape(np.array(values, x.dtype), np.shape(x))[()]


def _number(name: str, x: float) -> float:
    try:
        return SPECIAL_FUNCTIONS[name](x)
    except OverflowError:
        return math.inf
