"""The graph under construction: equations, hidden inputs and checks, in the order they are met."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from tinyfuse.dtypes import SUPPORTED_TEXT, is_half, is_supported
from tinyfuse.errors import LeakedTracerError, SideEffectError, UnsupportedDtypeError
from tinyfuse.fixed import Constant
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Primitive, Var
from tinyfuse.graph.shapes import infer
from tinyfuse.source import UNKNOWN, Source, here, location
from tinyfuse.trace.captured import Captured, Guard, Place, SameAs, SameType
from tinyfuse.trace.complex_equations import LOOKED_AT, look_at_complex
from tinyfuse.trace.halves import define_in_float32, is_computed_in_float32
from tinyfuse.trace.known import Known
from tinyfuse.trace.layouts import Layouts
from tinyfuse.trace.reachable import find_places
from tinyfuse.trace.specs import Check, Rolling


class GraphBuilder:
    """Records one run of a function. Belongs to the thread that runs it."""

    __slots__ = (
        "_captured",
        "_constants",
        "_function",
        "_places",
        "_snapshots",
        "_turned",
        "bounds",
        "cells",
        "changed",
        "checks",
        "eqns",
        "frozen",
        "guards",
        "inputs",
        "known",
        "layouts",
        "memory",
        "rolling",
        "source",
        "strides",
        "writes",
    )

    def __init__(self, function: Callable[..., Any]):
        self.eqns: list[Eqn] = []
        self.inputs: list[Var] = []
        self.checks: list[Check] = []
        self.guards: list[Guard] = []
        self.source: Source | None = None  # of the operation that is running
        self.writes = 0  # how often memory was written
        self.cells = 0  # how many were made
        # Cells as they were before a part of the function that is recorded apart; see `recording`.
        self.changed: dict[int, tuple[Any, tuple[Any, ...]]] | None = None
        self.bounds: dict[
            Var, tuple[int | None, int | None]
        ] = {}  # the least and greatest value of an integer
        self.strides: dict[Var, tuple[int, ...]] = {}  # of the arguments
        self.layouts: dict[Var, None] = {}  # inputs whose strides have decided something
        self.memory = Layouts(self)
        self.known = Known(self)
        self.rolling = Rolling()
        self.frozen: Collection[tuple[Any, ...]] = ()  # places whose elements tracing sees
        self._constants: dict[Any, Var] = {}
        self._turned: dict[Atom, Eqn] = {}  # the transposes of 16-bit floats
        self._function = function
        self._captured: dict[int, tuple[Captured, Var]] = {}
        self._places: dict[int, Place] | None = None
        self._snapshots: list[tuple[np.ndarray, np.ndarray, Source]] = []

    def define(
        self,
        primitive: Primitive,
        atoms: tuple[Atom, ...],
        params: Mapping[str, Any],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> Var:
        """Append an equation whose output has this type; more than one for 16-bit floats."""
        if is_computed_in_float32(primitive, atoms, params, dtype):
            return define_in_float32(self.define, primitive, atoms, params, shape, dtype)
        if primitive is p.cast and atoms[0] in self._turned:
            return self._turned_later(self._turned[atoms[0]], params, shape, dtype)
        if primitive in LOOKED_AT:
            look_at_complex(primitive, atoms, params, dtype, self.source)
        output = Var(shape, dtype)
        self.eqns.append(Eqn(primitive, atoms, params, output, self.source))
        if primitive is p.transpose and is_half(dtype):
            self._turned[output] = self.eqns[-1]
        return output

    def _turned_later(
        self, turn: Eqn, params: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype
    ) -> Var:
        """A conversion of a transposed array, as the transpose of a conversion: so products sum in
        the order that they have for arrays which need none."""
        (array,) = turn.inputs
        wide = self.define(p.cast, (array,), params, array.shape, dtype)
        return self.define(p.transpose, (wide,), turn.params, shape, dtype)

    def emit(self, primitive: Primitive, *atoms: Atom, **params: Any) -> Var:
        """Append an equation; the primitive's shape rule gives the type of its output."""
        shape, dtype = infer(primitive, atoms, params)
        return self.define(primitive, atoms, params, shape, dtype)

    def cut(self, start: int) -> list[Eqn]:
        """Take away the equations from this one on."""
        self.memory.forget_after(start)
        eqns = self.eqns[start:]
        del self.eqns[start:]
        self.known.forget_after(start)
        return eqns

    def check(
        self,
        output: Var,
        error: type[Exception],
        message: str,
        operand: Var | None = None,
        words: Callable[[np.ndarray], str] | None = None,
    ) -> None:
        """After the call raise `error(message)` where `output` is true.

        operand, words: a value of the graph, and what is said of it in place of the message.
        """
        place = self.place()
        self.checks.append(Check(output, error, message + place, operand, words, place))

    def place(self) -> str:
        return place_text(self.source or UNKNOWN)

    def capture(self, array: np.ndarray) -> Var:
        """The hidden input that stands for an array from outside, wherever it was found."""
        known = self._captured.get(id(array))
        if known is None:
            require_plain(array)
            if self._places is None:
                self._places = find_places(self._function)
            place = self._places.get(id(array))
            if place is None:
                self._snapshots.append((array, array.copy(), self.source or here()))
            known = self._add(array, place)
        return known[1]

    def constant(self, array: np.ndarray) -> Var:
        """The hidden input for an array that tracing has made, and that nobody else writes."""
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            kept = np.array(array, order="C")
            kept.flags.writeable = False
            self._constants[key] = self._add(kept, None)[1]
        return self._constants[key]

    def fixed(self, value: Constant, name: str | None) -> Var:
        """The hidden input for a constant; its name is that of the first place it is found at."""
        array = np.asarray(value)
        known = self._captured.get(id(array))
        if known is None:
            var = Var(array.shape, array.dtype, name, constant=True)
            known = self._captured[id(array)] = Captured(array, None), var
        return known[1]

    def capture_at(self, array: np.ndarray, place: Place) -> Var:
        """The hidden input for an array that was found at this place."""
        known = self._captured.get(id(array))
        if known is None or known[0].place is None:
            known = self._add(array, place, known and known[1])
        elif known[0].place.path != place.path:
            self.guards.append(SameAs(place, known[0].place))
        return known[1]

    def _add(
        self, array: np.ndarray, place: Place | None, var: Var | None = None
    ) -> tuple[Captured, Var]:
        var = var or Var(array.shape, array.dtype, place.name if place else None)
        known = self._captured[id(array)] = (Captured(array, place), var)
        return known

    def captured(self, outputs: Iterable[Any] = ()) -> list[tuple[Captured, Var]]:
        """The hidden inputs that something is computed from, or that are among the outputs.

        In the order of their first use. Of the others only the type counts.
        """
        known = {found[1]: found for found in self._captured.values()}
        used = [atom for eqn in self.eqns for atom in eqn.inputs]
        used += [*outputs, *[check.output for check in self.checks]]
        return [known[atom] for atom in dict.fromkeys(filter(_is_var, used)) if atom in known]

    def type_guards(self, used: Iterable[tuple[Captured, Var]]) -> list[Guard]:
        """For the arrays that were seen and not computed with."""
        taken = {var for _, var in used}
        return [
            SameType(captured.place, captured.array)
            for captured, var in self._captured.values()
            if var not in taken and captured.place is not None
        ]

    def input_strides(self, var: Var) -> tuple[int, ...]:
        """The strides of an input, which are part of what the trace depends on from now on."""
        self.layouts[var] = None
        captured = self.captured_by_var().get(var)
        return self.strides[var] if captured is None else captured.array.strides

    def captured_by_var(self) -> dict[Var, Captured]:
        return {var: captured for captured, var in self._captured.values()}

    def fixed_inputs(self) -> dict[Var, np.ndarray]:
        """The hidden inputs with the elements that tracing sees at each call."""
        return {
            var: captured.array
            for captured, var in self._captured.values()
            if captured.place is None or captured.place.path in self.frozen
        }

    def verify_unchanged(self) -> None:
        """Raises SideEffectError if an array made while tracing was written after its use."""
        for array, snapshot, source in self._snapshots:
            if array.tobytes() != snapshot.tobytes():
                raise SideEffectError(
                    "an array that a traced operation uses was written afterwards; write all its "
                    "elements before the first traced operation that uses it, or use a new array"
                    + place_text(source)
                )


def called(atom: Atom, name: str) -> Atom:
    """What has no name yet, and nobody has seen, with one."""
    if type(atom) is Var and atom.name is None:
        object.__setattr__(atom, "name", name)
    return atom


def _is_var(value: Any) -> bool:
    return type(value) is Var


def require_plain(array: np.ndarray) -> None:
    """Raises UnsupportedDtypeError for arrays that a graph can't take."""
    if not is_supported(array.dtype):
        remedy = "a supported dtype" if array.dtype.isnative else "native byte order"
        raise UnsupportedDtypeError(
            f"an array of dtype {array.dtype} meets a traced array; tinyfuse computes with "
            f"{SUPPORTED_TEXT}: convert it to {remedy} with astype"
        )
    if type(array) not in (np.ndarray, np.memmap):
        raise UnsupportedDtypeError(
            f"a {type(array).__name__} meets a traced array; only plain numpy arrays are "
            "supported: convert it with np.asarray outside the traced function"
        )


def place_text(source: Source) -> str:
    """The end of every message: the user's file, line and text."""
    if source is UNKNOWN:
        return ""
    text = " ".join(line.strip() for line in source.statement.split("\n"))
    if len(text) > 100:
        text = text[:97] + "..."
    return f"\n  at {location(source)}" + (f": {text}" if text else "")


class _State(threading.local):
    """What a thread traces, and what the functions that it traces see (a Scope)."""

    builder: GraphBuilder | None = None
    scope: Any = None


state = _State()


def active() -> GraphBuilder:
    """The builder of the trace that this thread is in. Raises LeakedTracerError outside of one."""
    builder = state.builder
    if builder is None:
        raise leaked()
    return builder


def leaked() -> LeakedTracerError:
    ended = state.builder is None
    return LeakedTracerError(
        "a traced array was used "
        + ("after its trace had ended" if ended else "inside the trace of another function")
        + "; it stands for an array only while its function is traced: return the value from the "
        "function instead of keeping it"
    )
