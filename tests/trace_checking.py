"""Compares the graph of a function, evaluated by numpy, with the function itself: bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import tree
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.testing.compare import difference
from tinyfuse.trace import ArgumentSpec, NeedsValue, Trace, trace


def spec_of(value: Any) -> ArgumentSpec:
    if isinstance(value, np.ndarray):
        return ArgumentSpec(value.shape, value.dtype)
    if isinstance(value, np.generic):
        return ArgumentSpec((), value.dtype, "scalar")
    if isinstance(value, float):
        return ArgumentSpec(kind="weak")
    return ArgumentSpec(kind="static", value=value)


def trace_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Trace for these arguments; floats whose value Python needs become static."""
    leaves, in_tree = tree.flatten((args, kwargs))
    specs = [spec_of(leaf) for leaf in leaves]
    while True:
        try:
            return trace(function, in_tree, specs, function.__name__)
        except NeedsValue as needed:
            specs[needed.index] = ArgumentSpec(kind="static", value=leaves[needed.index])


def replay(traced: Trace, *args: Any, **kwargs: Any) -> Any:
    """What a compiled call would return, computed by numpy equation by equation."""
    leaves, _ = tree.flatten((args, kwargs))
    arrays = [
        np.asarray(leaf)
        for leaf, spec in zip(leaves, traced.specs, strict=True)
        if spec.kind != "static"
    ]
    arrays += [captured.current() for captured in traced.captured]
    values = iter(interpret(traced.graph, arrays, NumpyNumerics()))
    results = [output.atom if output.is_static else next(values) for output in traced.outputs]
    for check, failed in zip(traced.checks, values, strict=True):
        if failed:
            raise check.error(check.message)
    wrapped = [
        value[()] if output.is_scalar else float(value) if output.weak else value
        for output, value in zip(traced.outputs, results, strict=True)
    ]
    return traced.out_tree.unflatten(wrapped)


def assert_same(actual: Any, expected: Any) -> None:
    """Types, dtypes, shapes and bits; the payload and sign of NaNs apart."""
    actual_leaves, actual_tree = tree.flatten(actual)
    expected_leaves, expected_tree = tree.flatten(expected)
    assert actual_tree == expected_tree
    for a, b in zip(actual_leaves, expected_leaves, strict=True):
        assert difference(b, a) is None


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Trace, replay and compare. Returns the trace."""
    with np.errstate(all="ignore"):
        expected = function(*args, **kwargs)
        traced = trace_call(function, *args, **kwargs)
        assert_same(replay(traced, *args, **kwargs), expected)
    return traced
