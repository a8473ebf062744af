"""Captured arrays whose elements Python needs while tracing.

What depends on small captured arrays only can be known while tracing: the function is traced again
with these arrays as they are, and their elements are compared at every call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyfuse import errors
from tinyfuse.dtypes import describe
from tinyfuse.graph.ir import Var
from tinyfuse.trace.builder import state
from tinyfuse.trace.captured import COMPARED_BYTES, Captured
from tinyfuse.trace.specs import NeedsElements

# What a traced array refuses and a real one does.
REFUSALS = (
    errors.ArrayConversionError,
    errors.BoolConversionError,
    errors.DataDependentShapeError,
    errors.InPlaceWriteError,
    errors.NumberConversionError,
    errors.UnlistedAttributeError,
    errors.UnlistedFunctionError,
    errors.UnsupportedArgumentError,
    errors.UnsupportedDtypeError,
)


def without_tracing(error: Exception, operands: Any) -> Exception:
    """The error to be raised where traced arrays refuse an operation.

    Raises NeedsElements instead where the operands come from small captured arrays only, so that
    the operation can be done while tracing.
    """
    if not isinstance(error, REFUSALS) or error.located:
        return error
    captured = _origins(operands)
    if isinstance(error, errors.InPlaceWriteError) and _is_captured(operands):
        return error
    frozen = state.scope.frozen if state.scope else ()
    if all(each.place is not None and each.place.path in frozen for each in captured):
        return error
    large = [each for each in captured if each.array.nbytes > COMPARED_BYTES]
    if large:
        return type(error)(f"{error}; {_words(large[0])}")
    places = tuple([each.place for each in captured if each.place is not None])
    raise NeedsElements(places, type(error).__name__)


def _words(large: Captured) -> str:
    name = large.place.name if large.place else "an array"
    return (
        f"{name} is a captured {describe(large.array.shape, large.array.dtype)}, and tracing can "
        f"use the elements only of arrays of up to {COMPARED_BYTES} bytes: do this outside the "
        "traced function, and capture the result or pass it as an argument"
    )


def _is_captured(operand: Any) -> bool:
    return state.builder is not None and any(
        var in state.builder.captured_by_var() for var in _atoms(operand)
    )


def _origins(operands: Any) -> list[Captured]:
    """The captured arrays that all traced operands come from; none if some comes from elsewhere."""
    builder = state.builder
    waiting = list(_atoms(operands))
    if builder is None or not waiting:
        return []
    known = builder.captured_by_var()
    producers = {eqn.output: eqn for eqn in builder.eqns}
    found: dict[Var, None] = {}
    seen = set(waiting)
    while waiting:
        var = waiting.pop()
        if var in known:
            found[var] = None
        elif var in producers:
            new = [atom for atom in producers[var].inputs if type(atom) is Var and atom not in seen]
            seen.update(new)
            waiting.extend(new)
        else:
            return []  # an argument
    return [known[var] for var in known if var in found and known[var].place is not None]


def _atoms(operands: Any) -> Iterator[Var]:
    waiting = [operands]
    while waiting:
        part = waiting.pop()
        atom = getattr(type(part), "_atom", None) and part._atom
        if type(atom) is Var:
            yield atom
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
        elif type(part) is dict:
            waiting.extend(part.values())
