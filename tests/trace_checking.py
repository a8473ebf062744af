"""Compares the graph of a function, evaluated by numpy, with the function itself: bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import tree
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.signature import with_aliases
from tinyfuse.testing.compare import difference
from tinyfuse.trace import ArgumentSpec, NeedsValue, Trace, trace


def spec_of(value: Any) -> ArgumentSpec:
    if isinstance(value, np.ndarray):
        return ArgumentSpec(value.shape, value.dtype, strides=value.strides)
    if isinstance(value, np.generic):
        return ArgumentSpec((), value.dtype, "scalar")
    if isinstance(value, float):
        return ArgumentSpec(kind="weak")
    return ArgumentSpec(kind="static", value=value)


def trace_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Trace for these arguments; floats whose value Python needs become static."""
    leaves, in_tree = tree.flatten((args, kwargs))
    specs = list(with_aliases([spec_of(leaf) for leaf in leaves], leaves))
    while True:
        try:
            return trace(function, in_tree, specs, function.__name__)
        except NeedsValue as needed:
            specs[needed.index] = ArgumentSpec(kind="static", value=leaves[needed.index])


def replay(traced: Trace, *args: Any, **kwargs: Any) -> Any:
    """What a compiled call would return and write, computed by numpy equation by equation."""
    leaves, _ = tree.flatten((args, kwargs))
    pairs = zip(leaves, traced.specs, strict=True)
    arrays = [np.asarray(leaf) for leaf, spec in pairs if spec.kind != "static"]
    arrays += [captured.current() for captured in traced.captured]
    values = iter([value.copy() for value in interpret(traced.graph, arrays, NumpyNumerics())])
    results = [output.atom if output.is_static else next(values) for output in traced.outputs]
    for check in traced.checks:
        if next(values):
            raise check.failure(traced.graph, arrays)
    for written, value in zip(traced.written, values, strict=True):
        np.copyto(arrays[traced.graph.inputs.index(written.input)], value)
    wrapped = [
        value[()] if output.is_scalar else float(value) if output.weak else value
        for output, value in zip(traced.outputs, results, strict=True)
    ]
    return traced.out_tree.unflatten(wrapped)


def twin(value: Any) -> Any:
    """A copy whose arrays lie in memory alike and share it as the originals do."""
    leaves, structure = tree.flatten(value)
    owners: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    copies: dict[int, Any] = {}
    for leaf in leaves:
        copies[id(leaf)] = _twin(leaf, owners) if isinstance(leaf, np.ndarray) else leaf
    return structure.unflatten([copies[id(leaf)] for leaf in leaves])


def _twin(array: np.ndarray, owners: dict[int, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    copied = owners.setdefault(id(owner), (owner, owner.copy(order="K")))[1]
    memory = copied.ravel(order="K").view(np.uint8)
    offset = _address(array) - _address(owner)
    made: np.ndarray = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    made.flags.writeable = array.flags.writeable
    return made


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def assert_same(actual: Any, expected: Any) -> None:
    """Types, dtypes, shapes and bits; the payload and sign of NaNs apart."""
    actual_leaves, actual_tree = tree.flatten(actual)
    expected_leaves, expected_tree = tree.flatten(expected)
    assert actual_tree == expected_tree
    for a, b in zip(actual_leaves, expected_leaves, strict=True):
        assert difference(b, a) is None


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Trace, replay and compare results and what is written. Returns the trace."""
    given, expected_in, actual_in = [twin((args, kwargs)) for _ in range(3)]
    with np.errstate(all="ignore"):
        expected = function(*expected_in[0], **expected_in[1])
        traced = trace_call(function, *given[0], **given[1])
        assert_same(replay(traced, *actual_in[0], **actual_in[1]), expected)
    assert_same(actual_in, expected_in)
    assert_same(given, (args, kwargs))
    return traced
