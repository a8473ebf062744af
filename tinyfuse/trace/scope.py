"""What traced functions see in place of what they mention from outside.

A trace runs copies of the user's functions. Their global variables, closures and defaults show
traced values where the originals have arrays, so that whatever numpy does with those is part of the
graph. Everything that is seen leaves a guard, so that a program is used only while it is the same.

Methods, functions that C code holds, and objects with data outside their attributes are no copies:
arrays that they can reach by name are compared at every call if they are small, else a warning says
that their elements are used as they are.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Collection, Mapping
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tinyfuse.dtypes import describe, is_supported
from tinyfuse.errors import SideEffectError
from tinyfuse.fixed import Constant
from tinyfuse.graph.ir import Var
from tinyfuse.trace import conditions, turns
from tinyfuse.trace.branching import If
from tinyfuse.trace.builder import GraphBuilder, state
from tinyfuse.trace.captured import (
    COMPARED_BYTES,
    Place,
    Same,
    SameElements,
    attribute_place,
    cell_place,
    global_place,
    is_constant,
    item_place,
)
from tinyfuse.trace.containers import Containers, warn_frozen
from tinyfuse.trace.jumps import UNSET
from tinyfuse.trace.loop_items import items_of
from tinyfuse.trace.loop_statements import Loop, While
from tinyfuse.trace.operations import fixed
from tinyfuse.trace.random_states import Undrawn, draws
from tinyfuse.trace.reachable import find_hidden, is_users, mentioned_names
from tinyfuse.trace.rewriting import IF, ITEMS, LOOP, WHILE, rewritten
from tinyfuse.trace.stand_ins import NUMPY, original_of, stand_in_for
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex
from tinyfuse.tree import Leaf

_FILLING = frozenset(("eval", "exec", "globals"))  # read a dict from C


class Scope:
    """The copies and stand-ins of one trace.

    frozen: paths of the places whose arrays are seen as they are.
    """

    def __init__(self, builder: GraphBuilder, frozen: Collection[tuple[Any, ...]] = ()) -> None:
        self.frozen = builder.frozen = frozen
        self.guards = builder.guards
        self.containers = Containers(self)
        self._builder = builder
        self._tracers: dict[int, tuple[Tracer, Var]] = {}
        self._fixed: dict[int, tuple[Constant, Tracer]] = {}
        self._copies: dict[int, tuple[FunctionType, FunctionType]] = {}  # original, copy
        self._originals: dict[int, FunctionType] = {}
        self._globals: dict[int, Globals] = {}
        self._modules: dict[int, ModuleType] = {}
        self._cells: dict[int, tuple[CellType, CellType]] = {}
        self._filled: dict[int, tuple[CellType, str, Any]] = {}
        self._attributes: list[tuple[FunctionType, dict[str, Any]]] = []
        self._names: dict[str, None] = {}
        self._uncopied: list[Any] = []
        self._opaque: list[Place] = []
        self._elements: list[tuple[Place, np.ndarray, SameElements]] = []

    # -- values

    def see(self, value: Any, place: Place) -> Any:
        """What a traced function sees in place of a value that was found there."""
        stand_in = stand_in_for(value)
        if stand_in is not value:
            self.guards.append(Same(place, value))
            return stand_in
        if draws(value):
            self.guards.append(Same(place, value))
            return Undrawn(value, place.name)
        see = _SEEN.get(type(value), Scope._other)
        return see(self, value, place)

    def see_root(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The copy of a function that is called from outside: itself known to be the same."""
        if isinstance(function, FunctionType):
            return self.function(function)
        name = getattr(function, "__name__", "function")
        seen = self.see(function, Place(name, ("root", id(function)), lambda: function, function))
        call = getattr(type(function), "__call__", None)  # noqa: B004
        if isinstance(call, FunctionType) and is_users(type(function).__module__, ""):
            return functools.partial(self.function(call), seen)
        return seen

    def array(self, array: np.ndarray, place: Place) -> Any:
        if place.path in self.frozen or not _can_be_traced(array):
            self._freeze(array, place)
            if not _can_be_traced(array):
                return array
        var = self._builder.capture_at(array, place)
        if id(array) not in self._tracers:
            tracer = Tracer(self._builder, var)
            tracer._born = 0  # it was there before whatever part of the function shows it first
            self._tracers[id(array)] = tracer, var
        return self._tracers[id(array)][0]

    def fixed(self, value: Constant, place: Place) -> Tracer:
        self.guards.append(Same(place, value))
        return self.fixed_array(value, place.name)

    def fixed_array(self, value: Constant, name: str | None) -> Tracer:
        """The one tracer that stands for a constant."""
        if id(value) not in self._fixed:
            self._fixed[id(value)] = value, fixed(self._builder, value, name)
        return self._fixed[id(value)][1]

    def captured(self) -> list[tuple[Tracer, Var]]:
        """The tracers that stand for captured arrays, and their variables in the graph."""
        return list(self._tracers.values())

    def _freeze(self, array: np.ndarray, place: Place) -> None:
        """Let tracing use the elements of an array, which are compared at every call."""
        if _can_be_traced(array):
            self._builder.capture_at(array, place)
        if array.nbytes <= COMPARED_BYTES:
            guard = SameElements(place, array)
            self.guards.append(guard)
            self._elements.append((place, array, guard))
        else:
            kind = describe(array.shape, array.dtype)
            warn_frozen(place.name, f"({kind}) cannot be traced")

    def constant(self, value: Any, place: Place) -> Any:
        self.guards.append(Same(place, value))
        return value

    def _other(self, value: Any, place: Place) -> Any:
        if isinstance(value, np.ndarray):
            return self.array(value, place)
        if isinstance(value, Leaf) and hasattr(value, "__self__"):  # a bound jitted function
            return self._method(value, place)
        if not isinstance(value, type) and not is_constant(value):
            seen = self.containers.see(value, place)
            if seen is not NotImplemented:
                return seen
            if not isinstance(value, Leaf):
                self._opaque.append(place)
        self._note_uncopied(value)
        return self.constant(value, place)

    def _note_uncopied(self, value: Any) -> None:
        """Remember what runs code of the user's that is not copied."""
        cls = value if isinstance(value, type) else type(value)
        if is_users(cls.__module__, ""):
            self._uncopied.append(cls)
        if not isinstance(value, (type, Leaf)) and callable(value):
            self._uncopied.append(value)

    def note_class(self, cls: type) -> None:
        if is_users(cls.__module__, ""):
            self._uncopied.append(cls)

    # -- functions

    def function(self, original: FunctionType) -> FunctionType:
        """A copy of a function of the user's; another function as it is."""
        known = self._copies.get(id(original))
        if known is not None:
            return known[1]
        code = rewritten(original.__code__, self._builder.rolling.branches)
        if not is_users(original.__module__ or "", code.co_filename):
            if original.__closure__:
                self._uncopied.append(original)
            return original
        cells = [self._cell(cell) for cell in original.__closure__ or ()]
        variables = self.globals(original.__globals__)
        copy = FunctionType(code, variables, original.__name__, None, tuple(cells))
        self._copies[id(original)] = original, copy
        self._originals[id(copy)] = original
        self._names.update(mentioned_names(code))
        variables.prepare(code)
        self._fill(original, copy)
        self._dress(original, copy)
        return copy

    def original(self, value: Any) -> Any:
        """What a value is a copy of or stands for; other values as they are."""
        if value is NUMPY:
            return np
        return self._originals.get(id(value), original_of(value))

    def _see_function(self, function: FunctionType, place: Place) -> FunctionType:
        self.guards.append(Same(place, function))
        return self.function(function)

    def _cell(self, cell: CellType) -> CellType:
        known = self._cells.get(id(cell))
        if known is None:
            try:
                _ = cell.cell_contents
            except ValueError:  # the variable has no value yet
                return cell
            known = self._cells[id(cell)] = cell, CellType()
        return known[1]

    def _fill(self, original: FunctionType, copy: FunctionType) -> None:
        pairs = zip(original.__closure__ or (), copy.__closure__ or (), strict=True)
        for name, (cell, new) in zip(original.__code__.co_freevars, pairs, strict=True):
            if new is not cell and id(new) not in self._filled:
                self._filled[id(new)] = new, name, None
                value = self.see(cell.cell_contents, cell_place(cell, name))
                new.cell_contents = value
                self._filled[id(new)] = new, name, value

    def _dress(self, original: FunctionType, copy: FunctionType) -> None:
        """Defaults and attributes."""
        place = Place(original.__name__, ("function", id(original)), lambda: original, original)
        if original.__defaults__:
            copy.__defaults__ = self._see_items(original, "__defaults__", place)
        if original.__kwdefaults__:
            keyword = attribute_place(place, "__kwdefaults__")
            copy.__kwdefaults__ = {
                name: self.see(value, item_place(keyword, name))
                for name, value in original.__kwdefaults__.items()
            }
        for name, value in vars(original).items():
            copy.__dict__[name] = self.see(value, attribute_place(place, name))
        self._attributes.append((copy, dict(copy.__dict__)))
        copy.__qualname__, copy.__module__ = original.__qualname__, original.__module__
        copy.__annotations__ = original.__annotations__

    def _see_items(self, owner: Any, attribute: str, place: Place) -> tuple[Any, ...]:
        items = attribute_place(place, attribute)
        values = getattr(owner, attribute)
        return tuple([self.see(value, item_place(items, at)) for at, value in enumerate(values)])

    def _partial(self, value: functools.partial, place: Place) -> Any:
        function = self.see(value.func, attribute_place(place, "func"))
        args = self._see_items(value, "args", place)
        keywords = attribute_place(place, "keywords")
        kwargs = {
            name: self.see(part, item_place(keywords, name))
            for name, part in value.keywords.items()
        }
        return functools.partial(function, *args, **kwargs)

    def _method(self, value: Any, place: Place) -> Any:
        instance = self.see(value.__self__, attribute_place(place, "__self__"))
        function = value.__func__
        if isinstance(function, FunctionType):
            function = self.function(function)
        return type(value)(function, instance)

    # -- variables of modules

    def globals(self, variables: dict[str, Any]) -> Globals:
        if isinstance(variables, Globals):  # of a function that was made while tracing
            variables = variables._live
        known = self._globals.get(id(variables))
        if known is None:
            known = self._globals[id(variables)] = Globals(self, variables)
        return known

    def module(self, module: ModuleType, place: Place | None = None) -> ModuleType:
        """A stand-in for numpy, or for a module of the user's."""
        if module is np or module is np.linalg:
            return NUMPY if module is np else NUMPY.linalg
        if not is_users(module.__name__, getattr(module, "__file__", None) or ""):
            return module
        known = self._modules.get(id(module))
        if known is None:
            known = self._modules[id(module)] = Module(self, module)
        return known

    # -- the end of a trace

    def finish(self) -> None:
        """Raises SideEffectError where the function wrote something outside of it."""
        for variables in self._globals.values():
            variables.require_unwritten()
        for cell, name, value in self._filled.values():
            if cell.cell_contents is not value:
                raise _written(f"assigns the variable {name} of an enclosing function")
        for copy, attributes in self._attributes:
            if not _same_items(vars(copy), attributes):
                raise _written(f"sets an attribute of the function {copy.__name__}")
        for place, array, guard in self._elements:
            if guard.difference(array) is not None:
                array[...] = guard.copy  # as if the function had not been called
                raise _written(f"writes the captured array {place.name}")
        self.containers.finish()
        self._guard_hidden()

    def _guard_hidden(self) -> None:
        """Arrays that code reads which was not copied: their elements may have been used."""
        if not self._uncopied and not self._opaque:
            return
        for place in find_hidden(self._uncopied, self._opaque, self._copies, self._names):
            array = place.look()
            if array.nbytes <= COMPARED_BYTES:
                self.guards.append(SameElements(place, array))
            else:
                warn_frozen(place.name, "is used by code that tinyfuse does not trace (a method)")


class Globals(dict):
    """The variables of a module, as traced functions see them.

    Python looks them up here in C and calls `__missing__` for the first time only.
    """

    def __init__(self, scope: Scope, live: dict[str, Any]) -> None:
        super().__init__({name: live[name] for name in live if name.startswith("__")})
        theirs = live.get("__builtins__", builtins)
        self._builtins: Mapping[str, Any] = theirs if isinstance(theirs, dict) else vars(theirs)
        self["__builtins__"] = {
            **self._builtins,
            "__import__": _importing(scope),
            LOOP: Loop,
            ITEMS: items_of,
            WHILE: While,
            IF: If,
            UNSET: turns.UNSET,
            **conditions.FUNCTIONS,
        }
        self._scope = scope
        self._live = live
        self._seen: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        if name in self._live:
            value = self._scope.see(self._live[name], global_place(self._live, name))
        else:
            value = self._builtins[name]
        self[name] = self._seen[name] = value
        return value

    def prepare(self, code: CodeType) -> None:
        """Look up at once what Python would read without asking: in bodies of classes, by eval."""
        if not _FILLING.isdisjoint(code.co_names):
            names = tuple(self._live)
        else:
            names = tuple(_names_in_classes(code))
        for name in names:
            if name in self._live and name not in self:
                self[name]

    def require_unwritten(self) -> None:
        """Raises SideEffectError if a `global` statement was used to write."""
        now = {name: value for name, value in self.items() if not name.startswith("__")}
        for name in {**now, **self._seen}:
            if not (name in now and name in self._seen and now[name] is self._seen[name]):
                raise _written(f"assigns the global variable {name}")


def _same_items(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)


def _names_in_classes(code: CodeType) -> dict[str, None]:
    names: dict[str, None] = {}
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if not const.co_flags & 0x1:  # CO_OPTIMIZED: a function
                names.update(dict.fromkeys(const.co_names))
            names.update(_names_in_classes(const))
    return names


def _importing(scope: Scope) -> Callable[..., Any]:
    def find(*args: Any, **kwargs: Any) -> Any:
        module = builtins.__import__(*args, **kwargs)
        return scope.module(module) if type(module) is ModuleType else module

    return find


_MODULE_NAMES = ("__file__", "__loader__", "__package__", "__path__", "__spec__")


class Module(ModuleType):
    """A module of the user's, as traced functions see it."""

    def __init__(self, scope: Scope, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        own = vars(self)
        own.update({name: vars(module)[name] for name in _MODULE_NAMES if name in vars(module)})
        own["__tinyfuse__"] = scope, module

    def __getattr__(self, name: str) -> Any:
        scope, module = vars(self)["__tinyfuse__"]
        if name in vars(module):
            return scope.globals(vars(module))[name]
        place = Place(module.__name__, ("module", id(module)), lambda: module, module)
        return scope.see(getattr(module, name), attribute_place(place, name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise _written(f"assigns {self.__name__}.{name}")

    def __dir__(self) -> list[str]:
        return dir(vars(self)["__tinyfuse__"][1])


def as_traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as the trace that this thread is in runs it."""
    scope: Scope | None = state.scope
    return function if scope is None else scope.see_root(function)


def _can_be_traced(array: np.ndarray) -> bool:
    return type(array) in (np.ndarray, np.memmap) and is_supported(array.dtype)


def _written(what: str) -> SideEffectError:
    return SideEffectError(
        f"the traced function {what}, which would happen while tracing only: return the new value "
        "instead"
    )


_SEEN: dict[type, Callable[[Scope, Any, Place], Any]] = {
    np.ndarray: Scope.array,
    np.memmap: Scope.array,
    Constant: Scope.fixed,
    FunctionType: Scope._see_function,
    ModuleType: Scope.module,
    functools.partial: Scope._partial,
    MethodType: Scope._method,
    **dict.fromkeys(
        (Tracer, TracedFloat, TracedInt, TracedComplex), lambda scope, value, place: value
    ),
    **dict.fromkeys((bool, int, float, str, bytes, type(None)), Scope.constant),
}
