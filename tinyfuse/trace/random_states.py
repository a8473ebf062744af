"""What traced functions see in place of numpy's random numbers: an error that says what to do.

They would be drawn once, while tracing, and be the same in every call.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tinyfuse.errors import SideEffectError
from tinyfuse.trace.operation import operate

_MODULE = "numpy.random"


def draws(value: Any) -> bool:
    """Whether it is np.random, a function of it, a generator, or a method of one."""
    if type(value) is ModuleType:
        return value.__name__ == _MODULE
    owner = getattr(value, "__self__", value)
    return not isinstance(value, type) and (
        type(owner).__module__.startswith(_MODULE)
        or str(getattr(value, "__module__", "")).startswith(_MODULE)
    )


class Undrawn:
    """Stands for what draws random numbers. Its classes are numpy's; whatever is called raises."""

    def __init__(self, original: Any, name: str) -> None:
        self.__wrapped__ = original
        self._name = name

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        cls = type(self.__wrapped__)
        return cls if cls.__module__.startswith(_MODULE) else Undrawn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__wrapped__, name)
        return found if isinstance(found, type) else Undrawn(found, f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operate(_refuse, self._name)


def _refuse(name: str) -> None:
    last = name.rpartition(".")[2]
    ours = last if last in _OURS else "normal"
    raise SideEffectError(
        f"{name} draws while the function is traced, so that every call would have the same "
        f"numbers: pass a key, and write tinyfuse.random.{ours}(key, ...), or draw outside of the "
        "traced function and pass the array"
    )


_OURS = {
    *("uniform", "normal", "permutation", "choice", "exponential", "gamma", "beta", "dirichlet"),
    *("chisquare", "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal", "pareto"),
    *("randint", "rayleigh", "triangular", "geometric"),
}
