"""What a graph must be, checked: what every pass over graphs relies on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinyfuse.dtypes import describe, is_supported
from tinyfuse.errors import VerificationError
from tinyfuse.graph.control import CONTROL, bodies, check_control
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.primitives import PARAMETERS
from tinyfuse.graph.shapes import infer


def verify_graph(graph: Graph) -> None:
    """Checks a graph; raises VerificationError with the first thing that is wrong.

    Every variable is defined once, before its uses; dtypes are supported; each equation has
    its primitive's parameters, and the output type that `infer` gives. So do those of the graphs
    in its loops and choices.
    """
    defined: set[Var] = set()
    for var in graph.inputs:
        _define(graph, var, defined, "an input")
    for number, eqn in enumerate(graph.eqns):
        place = f"equation {number} ({eqn.primitive.name})"
        _check_defined(graph, eqn.inputs, defined, place)
        _check_parameters(graph, eqn, place)
        _check_type(graph, eqn, place)
        for inner in bodies(eqn).values():
            verify_graph(inner)
        for output in eqn.outputs:
            _define(graph, output, defined, place)
    _check_defined(graph, graph.outputs, defined, "an output")


def _fail(graph: Graph, place: str, message: str) -> None:
    raise VerificationError(f"graph {graph.name}, {place}: {message}")


def _define(graph: Graph, var: Var, defined: set[Var], place: str) -> None:
    if var in defined:
        _fail(graph, place, f"{_text(var)} is defined twice")
    if not is_supported(var.dtype):
        _fail(graph, place, f"{var.dtype} is not supported")
    defined.add(var)


def _check_defined(graph: Graph, atoms: Iterable[Atom], defined: set[Var], place: str) -> None:
    for atom in atoms:
        if isinstance(atom, Literal):
            if not (isinstance(atom.value, np.generic) and is_supported(atom.dtype)):
                _fail(graph, place, f"the literal {atom.value!r} is no supported numpy scalar")
        elif atom not in defined:
            _fail(graph, place, f"{_text(atom)} is not defined before")


def _check_parameters(graph: Graph, eqn: Eqn, place: str) -> None:
    expected = PARAMETERS.get(eqn.primitive)
    if expected is None:
        return _fail(graph, place, "there is no such primitive")
    if eqn.params.keys() != expected.keys():
        _fail(graph, place, f"has parameters {list(eqn.params)}, not {list(expected)}")
    for key, kind in expected.items():
        if not _is_of(kind, eqn.params[key]):
            _fail(graph, place, f"parameter {key} is {eqn.params[key]!r}, not of type {kind}")
    return None


def _is_of(kind: str, value: Any) -> bool:
    if kind == "graphs":
        return type(value) is tuple and all(isinstance(item, Graph) for item in value)
    if kind == "ints":
        return type(value) is tuple and all(type(item) is int for item in value)
    return type(value).__name__ == kind or (kind == "dtype" and isinstance(value, np.dtype))


def _check_type(graph: Graph, eqn: Eqn, place: str) -> None:
    try:
        if eqn.primitive in CONTROL:
            return check_control(eqn)
        shape, dtype = infer(eqn.primitive, eqn.inputs, eqn.params)
    except ValueError as error:
        return _fail(graph, place, str(error))
    if eqn.others:
        return _fail(graph, place, f"has {len(eqn.outputs)} outputs")
    output = eqn.output
    if output.shape != shape or output.dtype != dtype:
        _fail(graph, place, f"defines {_text(output)}, but computes {describe(shape, dtype)}")
    return None


def _text(var: Var) -> str:
    return f"{var.name or 'a variable'}: {describe(var.shape, var.dtype)}"
