"""A function to be compiled: its parameters and how the arguments of a call meet them."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse.graph.rewrite_names import DEFAULT_REWRITES

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Schedule
    from tinyfuse.stage.ir import Stages

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Form = tuple[int, tuple[str, ...]]  # how many positional arguments a call has, and its keywords

KEPT_PLANS = 1024  # forms of calls; only keywords of a `**` parameter can be so many


class Given(NamedTuple):
    """A place in a call: among the positional arguments, or after them among the keywords'."""

    position: int


class Plan(NamedTuple):
    """Where each argument of the one form comes from: a place in the call, or a default.

    defaults: what has to be added to the positional arguments, if that is all.
    """

    positional: tuple[Any, ...]
    keyword: dict[str, Any]
    defaults: tuple[Any, ...] | None


class Parameters:
    """Brings calls to one form: defaults filled in, keywords turned to positions where they can be.

    fewest, most: a call without keywords and with so many arguments has that form already.
    static: names of the parameters whose values are part of the signature. dynamic: of those whose
    integers are not.
    """

    __slots__ = (
        "_plans",
        "_positional",
        "_signature",
        "_starred",
        "dynamic",
        "fewest",
        "most",
        "name",
        "static",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        static: Sequence[str],
        dynamic: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.dynamic = frozenset(dynamic)
        self.static = frozenset(static)
        self._signature = _signature(function)
        self._plans: dict[Form, Plan] = {}
        by_kind: dict[Any, list[str]] = {}
        for parameter in self._signature.parameters.values():
            by_kind.setdefault(parameter.kind, []).append(parameter.name)
        kind = inspect.Parameter
        self._positional = [
            *by_kind.get(kind.POSITIONAL_ONLY, ()),
            *by_kind.get(kind.POSITIONAL_OR_KEYWORD, ()),
        ]
        self._starred = by_kind.get(kind.VAR_POSITIONAL, [None])[0]
        self.fewest = len(self._positional)
        self.most = math.inf if self._starred else float(self.fewest)
        if kind.KEYWORD_ONLY in by_kind:
            self.most = -1.0
        if kind.VAR_KEYWORD not in by_kind:
            self._check_names("static_argnames", self.static)
            self._check_names("dynamic", self.dynamic)
        for name in sorted(self.static & self.dynamic):
            raise ValueError(f"{self.name}: {name!r} is in static_argnames and in dynamic")

    def _check_names(self, option: str, names: frozenset[str]) -> None:
        known = self._signature.parameters
        for name in sorted(names):
            if name not in known:
                parameters = ", ".join(known) or "none"
                raise ValueError(
                    f"{option}: {self.name} has no parameter {name!r}, only: {parameters}"
                )

    def position_name(self, index: int) -> str:
        """The parameter that a positional argument belongs to; `args[1]` for starred ones."""
        after = index - len(self._positional)
        return self._positional[index] if after < 0 else f"{self._starred}[{after}]"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """(args, kwargs) in the one form. Raises TypeError, as the call itself would."""
        plan = self.plan((len(args), tuple(kwargs)))
        if plan.defaults is not None:
            return args + plan.defaults, {}
        values = (*args, *kwargs.values())
        return (
            tuple([_fill(place, values) for place in plan.positional]),
            {name: _fill(place, values) for name, place in plan.keyword.items()},
        )

    def plan(self, form: Form) -> Plan:
        """Where each argument of such a call comes from. Raises TypeError, as the call would."""
        return self._plans.get(form) or self._new_plan(form)

    def _new_plan(self, form: Form) -> Plan:
        count, names = form
        places = [Given(at) for at in range(count + len(names))]
        keywords = dict(zip(names, places[count:], strict=True))
        try:
            bound = self._signature.bind(*places[:count], **keywords)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        if len(self._plans) >= KEPT_PLANS:
            self._plans.clear()
        added = None if names or bound.kwargs else bound.args[count:]
        plan = self._plans[form] = Plan(bound.args, bound.kwargs, added)
        return plan


def _fill(place: Any, values: Sequence[Any]) -> Any:
    return values[place.position] if type(place) is Given else place


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The function's own if it is written in Python; for others, as numpy's, that of any function.

    For their defaults are not always values that one may pass.
    """
    if _is_python(function):
        return inspect.signature(function)
    kinds = inspect.Parameter
    return inspect.Signature(
        [kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)]
    )


def _is_python(function: Any) -> bool:
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type | FunctionType | MethodType):
        return True
    return isinstance(type(function).__call__, FunctionType)  # an object of a user's class


class Options(NamedTuple):
    """How `jit` compiles: see there."""

    fuse: bool = True
    threads: int | None = None
    schedule: Callable[[Stages], Schedule] | None = None
    check: str | None = None
    rewrites: tuple[str, ...] = DEFAULT_REWRITES
    target: str = "c"


class Function(NamedTuple):
    """A Python function with all that decides what becomes of it."""

    function: Callable[..., Any]
    name: str
    parameters: Parameters
    options: Options
