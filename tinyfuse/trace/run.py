"""Tracing: one run of a numpy function on stand-ins for its arrays."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tinyfuse import errors, tree
from tinyfuse.config import compile_log as log
from tinyfuse.dispatch import paused
from tinyfuse.dtypes import COMPLEX128, FLOAT64, SUPPORTED_TEXT, describe, is_supported
from tinyfuse.errors import SideEffectError, UnsupportedDtypeError
from tinyfuse.fixed import Constant
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Graph, Literal, Var
from tinyfuse.source import Source
from tinyfuse.trace.builder import GraphBuilder, leaked, place_text, state
from tinyfuse.trace.effects import Effects
from tinyfuse.trace.elements import without_tracing
from tinyfuse.trace.layouts import contiguous
from tinyfuse.trace.masks import REMEDY, Masked
from tinyfuse.trace.operations import is_traced
from tinyfuse.trace.python_numbers import number_place
from tinyfuse.trace.random_states import Undrawn, draws
from tinyfuse.trace.recording import unknown_number
from tinyfuse.trace.run_time_parts import RunTimePart
from tinyfuse.trace.scope import Scope
from tinyfuse.trace.specs import (
    ArgumentSpec,
    LoopPlace,
    NeedsElements,
    NeedsValue,
    OutputSpec,
    Roll,
    Rolling,
    Trace,
    Unroll,
)
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex
from tinyfuse.tree import TreeDef


def trace(
    function: Callable[..., Any], in_tree: TreeDef, specs: Sequence[ArgumentSpec], name: str
) -> Trace:
    """Run a function on tracers and return what it computes.

    `in_tree` unflattens to (args, kwargs), with one leaf for each of `specs`.
    Raises NeedsValue where Python needs the value of a `weak` argument, the errors of
    `tinyfuse.errors` for what can't be traced, and whatever the function itself raises.
    """
    frozen: set[tuple[Any, ...]] = set()
    unrolled: dict[LoopPlace, str] = {}
    wanted: set[LoopPlace] = set()
    branches = False
    while True:
        rolling = Rolling(unrolled, wanted, branches=branches)
        try:
            return _trace(function, in_tree, specs, name, frozen, rolling)
        except Unroll as unroll:
            _write_out(unrolled, [unroll.place], unroll.reason, name)
        except Roll as roll:
            wanted.add(roll.place)
        except Exception as error:
            places = rolling.failed[:1] or (rolling.rolled if _needs_value(error) else [])
            asked = isinstance(error, (errors.BoolConversionError, errors.ArrayConversionError))
            if not branches and (asked or (_needs_value(error) and not places)):
                branches = True  # also for the range of a loop with jumps
                continue
            if not places:
                _tell_reasons(error, unrolled)
                raise
            reason = str(error).partition("\n")[0] or type(error).__name__
            _write_out(unrolled, places, reason, name)
        except NeedsElements as needed:
            frozen.update([place.path for place in needed.places])
            log.info(
                "retrace %s: tracing needs the elements of the captured %s (%s): they are compared "
                "at each call",
                *(name, ", ".join([place.name for place in needed.places]), needed.reason),
            )


def _needs_value(error: Exception) -> bool:
    """Whether Python needs a value that may be known where all turns of loops are written out."""
    return isinstance(error, (errors.BoolConversionError, errors.NumberConversionError))


def _tell_reasons(error: Exception, unrolled: Mapping[LoopPlace, str]) -> None:
    """Let an error say why loops are written out, if it is for that that a value is needed."""
    message = str(error)
    if _needs_value(error):
        for (file, line), reason in unrolled.items():
            if reason not in message:
                message += (
                    f"\n  the loop at {os.path.basename(file)}:{line} is written out: {reason}"
                )
        error.args = (message,)


def _write_out(
    unrolled: dict[LoopPlace, str], places: Sequence[LoopPlace], reason: str, name: str
) -> None:
    for place in places:
        if place not in unrolled:
            unrolled[place] = reason
            log.info("retrace %s: the loop at %s:%d is written out (%s)", name, *place, reason)


def _trace(
    function: Callable[..., Any],
    in_tree: TreeDef,
    specs: Sequence[ArgumentSpec],
    name: str,
    frozen: Collection[tuple[Any, ...]],
    rolling: Rolling,
) -> Trace:
    builder = GraphBuilder(function)
    builder.rolling = rolling
    scope = Scope(builder, frozen)
    names = argument_names(function, in_tree)
    leaves: list[Any] = []
    for at, (spec, leaf_name) in enumerate(zip(specs, names, strict=True)):
        leaf = _stand_in(builder, scope, spec, at, leaf_name)
        if spec.alias is not None:
            leaf = _same_array(leaf, leaves[spec.alias], spec.identical)
        leaves.append(leaf)
    arguments: list[Any] = [(leaf, leaf._value) for leaf in leaves if type(leaf) is Tracer]
    args, kwargs = in_tree.unflatten(leaves)
    for cls in _classes(in_tree):
        scope.note_class(cls)
    outer = state.builder, state.scope
    state.builder, state.scope = builder, scope
    try:
        with paused():
            returned = _returned(scope.see_root(function), args, kwargs)
        if rolling.failed:
            raise Unroll(rolling.failed[0], "an exception that the function handles leaves it")
        results, out_tree = tree.flatten(returned)
        effects = Effects([*arguments, *scope.captured()])
        numbers = [leaf for leaf in leaves if is_traced(leaf) and isinstance(leaf, _NUMBERS)]
        outputs = [_output(builder, effects, scope.original(value), numbers) for value in results]
    finally:
        state.builder, state.scope = outer
    _require_defined(builder, outputs, effects)
    _require_unchanged(function, (args, kwargs), leaves, in_tree, names)
    builder.verify_unchanged()
    try:
        scope.finish()
    except SideEffectError as error:
        raise SideEffectError(f"{error}{_definition(function)}") from None
    return _finished(builder, name, tuple(specs), tuple(outputs), out_tree, effects)


def _returned(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except NeedsValue as needed:
        if needed.index is None:
            raise unknown_number(needed) from None
        raise


def _require_defined(
    builder: GraphBuilder, outputs: Sequence[OutputSpec], effects: Effects
) -> None:
    """Raises Unroll where something outlives the turn of a loop that has computed it."""
    if not builder.rolling.rolled:
        return
    defined = {var for eqn in builder.eqns for var in eqn.outputs}
    defined.update([*builder.inputs, *builder.captured_by_var()])
    used = [atom for eqn in builder.eqns for atom in eqn.inputs]
    used += [output.atom for output in outputs] + [each.value for each in effects.arrays]
    if any(isinstance(atom, Var) and atom not in defined for atom in used):
        raise Unroll(builder.rolling.rolled[0], "what a turn computes is kept outside of it")


def _classes(in_tree: TreeDef) -> list[type]:
    """The classes of objects among the arguments."""
    found: dict[type, None] = {}
    waiting = [in_tree]
    for structure in waiting:
        if structure.kind in ("object", "namedtuple"):
            found[structure.static] = None
        waiting.extend(structure.children)
    return list(found)


def _stand_in(
    builder: GraphBuilder, scope: Scope, spec: ArgumentSpec, at: int, name: str | None
) -> Any:
    if spec.kind == "static" and draws(spec.value):
        return Undrawn(spec.value, name or "it")
    if spec.kind == "static":
        if type(spec.value) is Constant:
            return scope.fixed_array(spec.value, name)
        callables = (FunctionType, MethodType, functools.partial)
        return scope.see_root(spec.value) if isinstance(spec.value, callables) else spec.value
    dtype = FLOAT64 if spec.kind == "weak" and spec.dtype is None else spec.dtype
    if dtype is None or not is_supported(dtype):
        raise UnsupportedDtypeError(
            f"the argument {name} has the dtype {dtype}, which tinyfuse does not support: it "
            f"computes with {SUPPORTED_TEXT} in native byte order (x.astype(...))"
        )
    var = Var(spec.shape, dtype, name)
    builder.inputs.append(var)
    builder.strides[var] = contiguous(var) if spec.strides is None else spec.strides
    if spec.kind == "weak" and spec.dtype == COMPLEX128:
        return TracedComplex(builder, var, at)
    if spec.kind == "weak":
        return TracedFloat(builder, var, at)
    if spec.kind == "integer":
        return TracedInt(builder, var)
    return Tracer(builder, var, spec.kind == "scalar")


def _same_array(leaf: Tracer, first: Tracer, identical: bool) -> Tracer:
    """For an array that is given twice: the stand-in of the first, or a view of that."""
    if identical:
        return first
    leaf._become_view(first, None)
    return leaf


def argument_names(function: Callable[..., Any], in_tree: TreeDef) -> list[str]:
    """For each leaf of the arguments the parameter it belongs to, with the keys that lead to it."""
    return ["_".join(map(str, path)) for path in _named_paths(function, in_tree)]


def _named_paths(function: Callable[..., Any], in_tree: TreeDef) -> list[tuple[Any, ...]]:
    positional = _positional_names(function)
    paths = []
    for where, key, *rest in in_tree.paths():
        if where == 1:
            paths.append((key, *rest))
        elif key < len(positional):
            paths.append((positional[key], *rest))
        else:
            paths.append((*_variadic(function), key - len(positional), *rest))
    return paths


def _positional_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _variadic(function: Callable[..., Any]) -> tuple[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ("x",)
    starred = [q.name for q in parameters if q.kind is inspect.Parameter.VAR_POSITIONAL]
    return (starred[0] if starred else "x",)


_NUMBERS = (float, np.generic)


def _output(
    builder: GraphBuilder, effects: Effects, value: Any, numbers: Sequence[Any]
) -> OutputSpec:
    """numbers: the arguments that the caller gives as numbers, which are no arrays."""
    if type(value) is Masked:
        words = f"the function returns x[mask]: {REMEDY}{value._place}"
        refused = errors.DataDependentShapeError(words)
        raise without_tracing(refused, value)
    if isinstance(value, RunTimePart):
        words = f"the function returns a slice of a length that data decides{value._place}"
        raise without_tracing(errors.DataDependentShapeError(words), value)
    if is_traced(value):
        if value._builder is not builder:
            raise leaked()
        if type(value) is not Tracer:
            return OutputSpec(value._atom, weak=True)
        place = number_place(value._atom, builder.rolling.numbers, builder.eqns)
        if value._scalar and place:
            raise Unroll(place, "what it gives is a Python number if there are no turns")
        shared = effects.shared(value)
        atom = _itself(value)._atom
        if any(atom is each._atom and not _is_given(value, each) for each in numbers):
            atom = builder.emit(p.cast, atom, dtype=atom.dtype)
        return OutputSpec(atom, is_scalar=value._scalar, shared=shared)
    if isinstance(value, np.ndarray):
        return OutputSpec(builder.capture(value))
    return OutputSpec(value)


def _is_given(value: Tracer, number: Tracer | TracedFloat) -> bool:
    """Whether the caller's number itself can be returned for a value that is equal to it."""
    return value._scalar and type(number) is Tracer


def _itself(value: Tracer) -> Tracer:
    """The array that a result is, if it is all of another one."""
    while value._base is not None and value._step is None:
        value = value._base
    return value


def _require_unchanged(
    function: Callable[..., Any],
    arguments: Any,
    leaves: list[Any],
    in_tree: TreeDef,
    names: list[str],
) -> None:
    """Raises SideEffectError where the function changed a container among its arguments."""
    after, after_tree = tree.flatten(arguments, kept=leaves)
    if after_tree != in_tree:
        raise SideEffectError(
            "the traced function adds to or removes from a list, dict or object among its "
            "arguments, which would happen while tracing only: return the new value instead"
            + _definition(function)
        )
    for name, old, new in zip(names, leaves, after, strict=True):
        if new is not old:
            kind = describe(new.shape, new.dtype) if type(new) is Tracer else type(new).__name__
            raise SideEffectError(
                f"the traced function assigns a new value ({kind}) to {name}, inside an argument, "
                "which would happen while tracing only: return the new value instead"
                + _definition(function)
            )


def _definition(function: Callable[..., Any]) -> str:
    """The end of a message about a function as a whole."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return place_text(Source(code.co_filename, code.co_firstlineno, code.co_name)) if code else ""


def _finished(
    builder: GraphBuilder,
    name: str,
    specs: tuple[ArgumentSpec, ...],
    outputs: tuple[OutputSpec, ...],
    out_tree: TreeDef,
    effects: Effects,
) -> Trace:
    written = effects.arrays
    captured = builder.captured([*[each.atom for each in outputs], *[w.input for w in written]])
    checks = tuple(builder.checks)
    graph = Graph(
        name,
        (*builder.inputs, *[var for _, var in captured]),
        tuple(builder.eqns),
        (
            *[output.atom for output in outputs if isinstance(output.atom, (Var, Literal))],
            *[check.output for check in checks],
            *[each.value for each in written],
        ),
    )
    guards = (*builder.guards, *builder.type_guards(captured))
    found = tuple([each for each, _ in captured])
    return Trace(
        *(graph, specs, found, outputs, out_tree, checks, guards, written),
        *(tuple(effects.views), effects.roots, tuple(builder.layouts)),
    )
