"""Calls that can be made without looking closely: what such a call takes and gives.

It takes plain arrays, numbers and known values, from the caller or from variables outside, writes
none of them, and makes its result of new arrays. Everything else goes by way of `Executable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, IntEnum
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from tinyfuse.dtypes import COMPLEX128, FLOAT64, INT64
from tinyfuse.executable import Executable, as_float, as_scalar
from tinyfuse.graph.ir import Var
from tinyfuse.parameters import Form, Given, Plan
from tinyfuse.runtime.library import Entry
from tinyfuse.signature import BY_VALUE, LEAF_KEYS, Static
from tinyfuse.trace import ArgumentSpec, Captured, Place
from tinyfuse.trace.captured import Guard, Same, SameParts, SameType, is_constant
from tinyfuse.tree import LEAF, TreeDef, parts_of, slots

# These, and the members of the classes below, are as in runtime_c/dispatch.h.
MOST_ARGUMENTS = 512
MOST_OUTPUTS = 32

# From here on other threads may run Python while a program computes; letting them and getting back
# takes a fraction of a microsecond, and much longer where others wait for their turn.
RELEASED_MICROSECONDS = 4.0


class Source(IntEnum):
    """Where an argument comes from; `holder` is the object itself, a dictionary or a cell."""

    GIVEN = 0
    HELD = 1
    GLOBAL = 2
    CELL = 3


class Kind(IntEnum):
    """What an argument has to be: a number of a type, or what `value` says."""

    ARRAY = 0
    SCALAR = 1
    FLOAT = 2
    INTEGER = 3  # that int64 holds
    EQUAL = 4
    IDENTICAL = 5
    OF_TYPE = 6
    WITH_KEYS = 7  # a dictionary with these, a list or tuple with as many items


class Origin(NamedTuple):
    """Where an argument is found.

    steps: what leads on from a variable: (whether to an attribute, its name or the key of an item).
    """

    source: Source
    position: int = 0
    holder: Any = None
    name: str | None = None
    steps: tuple[tuple[bool, Any], ...] = ()


class Argument(NamedTuple):
    """Something that a call looks at: an argument, a container of some, or something from outside.

    value: of an array its dtype, of a numpy scalar its class.
    """

    origin: Origin
    kind: Kind
    value: Any
    shape: tuple[int, ...] = ()


class OutputKind(IntEnum):
    """What becomes of an output; where a check is true, the call fails."""

    ARRAY = 0
    SCALAR = 1
    FLOAT = 2
    INTEGER = 3
    CHECK = 4


class Output(NamedTuple):
    kind: OutputKind
    dtype: np.dtype
    shape: tuple[int, ...]


class ResultKind(IntEnum):
    OUTPUT = 0
    ARGUMENT = 1
    CONSTANT = 2


class Result(NamedTuple):
    """A leaf of the result."""

    kind: ResultKind
    position: int
    constant: Any


class Direct(NamedTuple):
    """A call of a program.

    arguments: numbered; the leaves of what is given, arrays from outside, and what has to be as it
        was. operands: which arguments the entry is given, before its outputs.
    build: makes the result of a list of its leaves; None: the only leaf is the result.
    threads: as an entry takes it. releases: whether other threads may run Python meanwhile.
    """

    entry: Entry
    form: Form
    arguments: tuple[Argument, ...]
    operands: tuple[int, ...]
    outputs: tuple[Output, ...]
    results: tuple[Result, ...]
    build: Any
    scratch_bytes: int
    threads: int | None
    releases: bool


class _IndirectError(Exception):
    """Something about a call has to be looked at closely."""


def direct(executable: Executable, form: Form, plan: Plan, given: Sequence[Any]) -> Direct | None:
    """How to call a program directly with a call of this form; None where that cannot be.

    given: the arguments of one call that the program serves, in the order of the plan.
    """
    if not _is_simple(executable):
        return None
    try:
        arguments = _arguments(executable, plan, given)
        outputs, results = _outputs(executable, arguments)
    except _IndirectError:
        return None
    operands = tuple([place for place, _ in executable.operands])
    if max(len(arguments), len(operands)) > MOST_ARGUMENTS or len(outputs) > MOST_OUTPUTS:
        return None
    return Direct(
        executable.entry,  # type: ignore[arg-type]
        form,
        arguments,
        operands,
        outputs,
        results,
        _builder(executable.out_tree),
        executable.scratch_bytes,
        executable.threads,
        executable.microseconds >= RELEASED_MICROSECONDS,
    )


def _is_simple(executable: Executable) -> bool:
    required = executable.requirements
    others = (executable.writes, executable.copies, executable.steps, executable.check)
    met = required is None or required.met_in_c_order
    return met and executable.entry is not None and not executable.swapped and not any(others)


# -- arguments


def _arguments(executable: Executable, plan: Plan, given: Sequence[Any]) -> tuple[Argument, ...]:
    sources = [*plan.positional, *plan.keyword.values()]
    checks: list[Argument] = []
    leaves = [
        leaf
        for source, value in zip(sources, given, strict=True)
        for leaf in _leaves(_origin_of(source), value, checks)
    ]
    specs = iter(executable.signature.specs)
    arguments = [
        _argument(origin, value, None if value is None else next(specs)) for origin, value in leaves
    ]
    captured = [_captured(found, var) for found, var in executable.captured]
    guarded = [each for guard in executable.guards for each in _guarded(guard)]
    return (*arguments, *captured, *checks, *guarded)


def _origin_of(source: Any) -> Origin:
    given = type(source) is Given
    return Origin(Source.GIVEN, source.position) if given else Origin(Source.HELD, 0, source)


def _leaves(origin: Origin, value: Any, checks: list[Argument]) -> Iterator[tuple[Origin, Any]]:
    """(origin, value) of all that is no container, in the order in which calls are taken apart."""
    parts = None if type(value) in LEAF_KEYS else parts_of(value)
    if parts is None:
        yield origin, value
        return
    kind, _, keys, items = parts
    checks += _parts_checked(origin, type(value), keys)
    for at, (key, item) in enumerate(zip(keys, items, strict=True)):
        step = (True, key) if kind == "object" else (False, at if kind == "namedtuple" else key)
        yield from _leaves(origin._replace(steps=(*origin.steps, step)), item, checks)


def _parts_checked(origin: Origin, cls: Any, keys: tuple[Any, ...]) -> Iterator[Argument]:
    """That a container is of this class and has these keys."""
    yield Argument(origin, Kind.OF_TYPE, cls)
    if cls in (dict, list) or issubclass(cls, tuple):
        yield Argument(origin, Kind.WITH_KEYS, keys)
    elif cls.__dictoffset__ and not issubclass(cls, (dict, list)) and not slots(cls):
        attributes = origin._replace(steps=(*origin.steps, (True, "__dict__")))
        yield Argument(attributes, Kind.WITH_KEYS, keys)
    else:
        raise _IndirectError


def _argument(origin: Origin, value: Any, spec: ArgumentSpec | None) -> Argument:
    if spec is None or spec.kind == "static":
        return Argument(origin, *_known(value))
    if spec.kind == "array" and type(value) is np.ndarray:
        return Argument(origin, Kind.ARRAY, spec.dtype, spec.shape)
    if spec.kind == "scalar":
        return Argument(origin, Kind.SCALAR, type(value))
    if spec.kind in _NUMBERS and spec.dtype != COMPLEX128:
        return Argument(origin, _NUMBERS[spec.kind], None)
    raise _IndirectError


_NUMBERS = {"weak": Kind.FLOAT, "integer": Kind.INTEGER}
_EQUAL = (int, float, str, bytes)  # whose equality means the same to the extension
_LASTING = (type, np.ufunc, BuiltinFunctionType, Enum)


def _known(value: Any) -> tuple[Kind, Any]:
    """How to tell that a value means the same as this one; an equal one may go the long way."""
    if isinstance(value, Static):
        value = value.value
    if type(value) in _EQUAL:
        return Kind.EQUAL, value
    if type(value) in BY_VALUE or is_constant(value) or isinstance(value, _LASTING):
        return Kind.IDENTICAL, value
    raise _IndirectError


def _captured(found: Captured, var: Var) -> Argument:
    if type(found.array) is not np.ndarray:
        raise _IndirectError
    if found.place is None:
        return Argument(Origin(Source.HELD, 0, found.array), Kind.ARRAY, var.dtype, var.shape)
    return Argument(_origin(found.place), Kind.ARRAY, var.dtype, var.shape)


def _guarded(guard: Guard) -> Iterator[Argument]:
    """What has to be the same, or of the same type, for the program to be the right one."""
    origin = _origin(guard.place)
    if isinstance(guard, Same):
        kind = Kind.EQUAL if type(guard.value) in _EQUAL else Kind.IDENTICAL
        yield Argument(origin, kind, guard.value)
    elif isinstance(guard, SameType) and type(guard.array) is np.ndarray:
        yield Argument(origin, Kind.ARRAY, guard.array.dtype, guard.array.shape)
    elif isinstance(guard, SameParts):
        yield from _parts_checked(origin, guard.type, guard.keys)
    else:
        raise _IndirectError


# By the first word of a path: what it begins in, and after how many words the steps do.
_ROOTS: dict[str, tuple[Source | None, int]] = {
    "global": (Source.GLOBAL, 3),
    "cell": (Source.CELL, 2),
    **dict.fromkeys(("function", "root", "class", "module"), (Source.HELD, 2)),
}


def _origin(place: Place) -> Origin:
    path: tuple[Any, ...] = place.path
    source, words = _ROOTS.get(path[0], (None, 0))
    if source is None or (source is Source.GLOBAL and type(place.holder) is not dict):
        raise _IndirectError
    kinds, keys = path[words::2], path[words + 1 :: 2]
    steps = [(kind == "attribute", key) for kind, key in zip(kinds, keys, strict=True)]
    name = path[2] if source is Source.GLOBAL else None
    return Origin(source, 0, place.holder, name, tuple(steps))


# -- results


def _outputs(
    executable: Executable, arguments: Sequence[Argument]
) -> tuple[tuple[Output, ...], tuple[Result, ...]]:
    kinds: list[OutputKind | None] = [None] * len(executable.results)
    for kind, position in _uses(executable):
        if kinds[position] not in (None, kind):
            raise _IndirectError
        kinds[position] = kind
    outputs = [
        Output(kind or OutputKind.ARRAY, dtype, shape)
        for kind, (shape, dtype) in zip(kinds, executable.results, strict=True)
    ]
    return tuple(outputs), tuple(_results(executable, arguments))


# By the last step of a leaf.
_FINISHED: dict[Any, OutputKind] = {
    None: OutputKind.ARRAY,
    as_scalar: OutputKind.SCALAR,
}
# What Python's numbers become, by the dtypes that they are computed in.
_OF_PYTHON = {FLOAT64: OutputKind.FLOAT, INT64: OutputKind.INTEGER}


def _uses(executable: Executable) -> Iterator[tuple[OutputKind, int]]:
    """(kind, position) of every use of an output."""
    computed = len(executable.results)
    for position, _ in executable.checks:
        if position >= computed:
            raise _IndirectError
        yield OutputKind.CHECK, position
    for place, _, finish in executable.leaves:
        if place is not None and place < computed:
            dtype = executable.results[place][1]
            yield _OF_PYTHON[dtype] if finish is as_float else _FINISHED[finish], place


def _results(executable: Executable, arguments: Sequence[Argument]) -> Iterator[Result]:
    computed = len(executable.results)
    for place, constant, finish in executable.leaves:
        if place is None:
            if finish not in _FINISHED:  # a new array for each call
                raise _IndirectError
            yield Result(ResultKind.CONSTANT, 0, constant if finish is None else finish(constant))
        elif place < computed:
            yield Result(ResultKind.OUTPUT, place, None)
        else:
            argument = executable.roots[place - computed][1]
            if finish is not _PASSED.get(arguments[argument].kind, as_scalar):
                raise _IndirectError
            yield Result(ResultKind.ARGUMENT, argument, None)


# By the kind of an argument the last step that leaves it as it is.
_PASSED = {Kind.ARRAY: None, Kind.SCALAR: as_scalar, Kind.FLOAT: as_float, Kind.INTEGER: as_float}


def _builder(tree: TreeDef) -> Any:
    if tree == LEAF:
        return None
    flat = all(child == LEAF for child in tree.children)
    if flat and tree.kind in ("tuple", "list"):
        return tuple if tree.kind == "tuple" else list
    return tree.unflatten
