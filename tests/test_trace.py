"""Tracing: graphs, names, captured arrays, run-time floats, checks."""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from tests.trace_checking import assert_same, check, replay, spec_of, trace_call
from tinyfuse.errors import NegativePowerError, UnsupportedDtypeError
from tinyfuse.graph.ir import Literal, Var
from tinyfuse.trace import ArgumentSpec, NeedsValue, Tracer, trace
from tinyfuse.tree import flatten

X = np.arange(12, dtype=np.float32).reshape(3, 4)
TABLE = np.arange(4.0)
WEIGHTS = {"w": np.ones(4, np.float32)}
SCALE = 3
Pair = namedtuple("Pair", "low high")


def steps(function: Any, *args: Any) -> list[tuple[str | None, str]]:
    """(name, primitive or operation) of each equation."""
    eqns = trace_call(function, *args).graph.eqns
    return [(eqn.output.name, eqn.params.get("op", eqn.primitive.name)) for eqn in eqns]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_a_function_becomes_a_graph() -> None:
    traced = check(softmax, X)
    assert traced.graph.name == "softmax"
    assert [var.name for var in traced.graph.inputs] == ["x"]
    assert steps(softmax, X) == [
        (None, "max"),
        (None, "reshape"),
        (None, "broadcast"),
        (None, "subtract"),
        ("e", "exp"),
        (None, "sum"),
        (None, "reshape"),
        (None, "broadcast"),
        (None, "divide"),
    ]


def test_a_composed_function_names_its_result_only() -> None:
    def centred(x: Any) -> Any:
        m = np.mean(x, axis=0)
        q, r = np.divmod(x, m)
        return q + r

    assert steps(centred, X) == [
        (None, "sum"),
        ("m", "divide"),
        (None, "broadcast"),
        ("q", "floor_divide"),
        ("r", "remainder"),
        (None, "add"),
    ]


def test_names_of_arguments_and_their_parts() -> None:
    def function(first: Any, pair: Any, *rest: Any, key: Any) -> Any:
        return first + pair.low + pair.high + rest[0] + key["a"][1]

    a = np.ones(2)
    traced = check(function, a, Pair(a, a), a, key={"a": [a, a]})
    names = [var.name for var in traced.graph.inputs]
    assert names == ["first", "pair_low", "pair_high", "rest_0", "key_a_0", "key_a_1"]


def test_casts_and_broadcasts_are_equations() -> None:
    traced = check(lambda x, y: x + y, X, np.arange(4))
    cast_x, cast_y, stretch, add = traced.graph.eqns
    assert [eqn.primitive.name for eqn in traced.graph.eqns] == [
        "cast",
        "cast",
        "broadcast",
        "elementwise",
    ]
    assert add.inputs == (cast_x.output, stretch.output)
    assert (cast_y.output.shape, stretch.output.shape) == ((4,), (3, 4))
    assert add.output.dtype == np.float64


def test_numbers_become_literals_of_the_dtype_of_the_loop() -> None:
    literals = [
        atom.value
        for eqn in check(lambda x: np.maximum(x * 2, 0.1) - np.int8(SCALE), X).graph.eqns
        for atom in eqn.inputs
        if isinstance(atom, Literal)
    ]
    assert literals == [np.float32(2), np.float32(0.1), np.float32(3)]
    assert {literal.dtype for literal in literals} == {np.dtype(np.float32)}


# -- captured arrays


def scaled_by_table(x: Any) -> Any:
    return x * TABLE


def test_captured_arrays_are_inputs_that_follow_their_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shift = np.full(4, 2.0)

    def function(x: Any) -> Any:
        return scaled_by_table(x) + shift - WEIGHTS["w"] + TABLE

    traced = check(function, X)
    assert [var.name for var in traced.graph.inputs] == ["x", "TABLE", "shift", "WEIGHTS_w"]
    monkeypatch.setitem(globals(), "TABLE", np.full(4, 5.0))
    monkeypatch.setitem(WEIGHTS, "w", np.full(4, 6, np.float32))
    shift = np.zeros(4)
    assert_same(replay(traced, X), function(X))


class Model:
    def __init__(self, weight: Any):
        self.weight = weight


MODEL = Model(np.ones(4))


def test_arrays_in_attributes_are_found() -> None:
    traced = check(lambda x: x * MODEL.weight, X)
    assert traced.captured[0].place is not None
    assert traced.captured[0].place.name == "weight"
    assert traced.captured[0].current() is MODEL.weight


def test_arrays_that_no_variable_holds_are_kept() -> None:
    traced = check(lambda x: x * [0, 1, 2, 3] + [1, 2, 3, 4], X)
    assert [captured.place for captured in traced.captured] == [None, None]
    assert traced.captured[0].current().tolist() == [0, 1, 2, 3]


def test_a_captured_array_can_be_returned() -> None:
    traced = check(lambda x: (x, TABLE), X)
    assert traced.outputs[1].atom is traced.graph.inputs[1]


# -- results


def test_results_of_every_kind() -> None:
    def results(x: Any) -> Any:
        return {"array": x, "scalar": x.sum(), "number": 3, "text": "a", "nested": (x[0], None)}

    traced = check(results, X)
    assert [output.is_static for output in traced.outputs] == [False, False, True, True, False]
    assert [output.is_scalar for output in traced.outputs] == [False, True, False, False, False]
    assert traced.outputs[0].atom is traced.graph.inputs[0]
    assert len(traced.graph.outputs) == 3


# -- run-time floats


def test_python_floats_stay_weak_among_themselves() -> None:
    def function(x: Any, a: float, b: float) -> Any:
        return x * (a * b + 1), a - 2, -a, abs(b), np.sin(a), np.add(a, b), np.float32(2) * a

    traced = check(function, X, 2.5, -1.5)
    assert [spec.kind for spec in traced.specs] == ["array", "weak", "weak"]
    assert traced.outputs[0].atom.dtype == np.float32
    assert [output.weak for output in traced.outputs] == [False, True, True, True] + [False] * 3
    assert_same(replay(traced, X, 7.0, 0.1), function(X, 7.0, 0.1))


def test_division_of_python_floats_by_zero_is_checked_after_the_call() -> None:
    def function(x: Any, a: float, b: float) -> Any:
        return x * (a / b), a // b, a % b, divmod(a, b)

    traced = check(function, X, 2.5, -1.5)
    assert len(traced.checks) == 5
    with pytest.raises(ZeroDivisionError, match=r"^float division by zero\n  at test_trace.py:"):
        replay(traced, X, 1.0, 0.0)
    assert trace_call(lambda a: a / 2.0, 1.0).checks == ()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: x if a > 1 else -x,
        lambda x, a: x**a,
        lambda x, a: x * a**2,
        lambda x, a: x * math.sqrt(a),
        lambda x, a: x[: int(a)],
        lambda x, a: {a: x},
        lambda x, a: x * f"{a}".__len__(),
        lambda x, a: x * a.is_integer(),
        lambda x, a: x if a == 2.0 else -x,
        lambda x, a: x if a else -x,
    ],
)
def test_what_needs_the_value_of_a_float(function: Any) -> None:
    _, in_tree = flatten(((X, 2.0), {}))
    specs = [spec_of(X), spec_of(2.0)]
    with pytest.raises(NeedsValue) as needed:
        trace(function, in_tree, specs, "f")
    assert needed.value.index == 1
    traced = check(function, X, 2.0)
    assert [spec.kind for spec in traced.specs] == ["array", "static"]


def test_a_float_is_a_float_to_isinstance() -> None:
    def function(x: Any, a: float) -> Any:
        return (x if isinstance(a, float) else -x), isinstance(x, np.ndarray)

    check(function, X, 2.0)


# -- checks


def test_negative_exponents_at_run_time() -> None:
    def function(x: Any, n: Any) -> Any:
        return x.astype(int) ** n

    traced = check(function, X, np.arange(4))
    (negative,) = traced.checks
    assert (negative.output.shape, negative.output.dtype) == ((), np.bool_)
    assert traced.graph.outputs == (traced.outputs[0].atom, negative.output)
    assert negative.error is NegativePowerError
    line = function.__code__.co_firstlineno + 1
    assert negative.message == (
        "Integers to negative integer powers are not allowed.\n"
        f"  at test_trace.py:{line}, in function: return x.astype(int) ** n"
    )
    assert trace_call(function, X, np.arange(4, dtype=np.uint8)).checks == ()


# -- arguments


def test_arguments_of_other_dtypes_are_refused() -> None:
    _, in_tree = flatten(((X,), {}))
    specs = [ArgumentSpec((3,), np.dtype(np.clongdouble))]
    with pytest.raises(UnsupportedDtypeError, match=r"^the argument x has the dtype complex256, "):
        trace(lambda x: x, in_tree, specs, "f")


def test_static_arguments_are_what_they_are() -> None:
    def function(x: Any, axis: int, mode: str) -> Any:
        return x.sum(axis) if mode == "sum" else x

    assert [spec.kind for spec in check(function, X, 1, "sum").specs] == [
        "array",
        "static",
        "static",
    ]


def test_a_thousand_operations_in_one_expression() -> None:
    def deep(x: Any) -> Any:
        for _ in itertools.repeat(None, 5000):
            x = x * 2 - x
        return x

    assert len(check(deep, X).graph.eqns) == 10_000


def test_a_tracer_prints_its_type() -> None:
    seen: list[str] = []

    def function(x: Any) -> Any:
        assert type(x) is Tracer
        seen.append(f"{x}")
        return x

    trace_call(function, X)
    assert seen == ["Tracer(float32[3, 4])"]


def test_the_trace_is_the_same_each_time() -> None:
    first, second = (trace_call(softmax, X).graph for _ in range(2))
    for a, b in zip(first.eqns, second.eqns, strict=True):
        assert (a.primitive, dict(a.params), a.source) == (b.primitive, dict(b.params), b.source)
        assert [type(atom) for atom in a.inputs] == [type(atom) for atom in b.inputs]
        assert all(isinstance(atom, (Var, Literal)) for atom in a.inputs)


def test_methods_closures_and_objects_among_the_arguments() -> None:
    def closure() -> Any:
        table = np.arange(4.0)
        return lambda x: x * table

    inner = closure()

    def through_a_closure(x: Any) -> Any:
        return inner(x)

    traced = check(through_a_closure, X)
    assert [captured.place.name for captured in traced.captured if captured.place] == ["table"]
    check(lambda model, x: x * model.weight, Model(np.ones(4)), X)


def test_numpy_scalars_are_immutable() -> None:
    def total(x: Any) -> Any:
        s = x.sum()
        s += 1
        s *= 2
        return s, sum(x), sum(row.sum() for row in x)

    check(total, X)


def test_run_time_floats_where_numpy_takes_a_value() -> None:
    def function(a: float, x: Any) -> Any:
        padded = np.pad(x, 1, constant_values=a)
        return np.full_like(x, a), padded, np.where(x > a, a, 0), np.clip(x, -a, a), x.mean() * a

    assert [spec.kind for spec in check(function, 2.5, X).specs] == ["weak", "array"]


def test_empty_arrays() -> None:
    def function(x: Any) -> Any:
        nothing = x[:0]
        joined = np.concatenate([nothing, x])
        return nothing.sum(), nothing + 1, joined, nothing.any(), nothing @ x.T, x[:, :0] @ x[:0]

    check(function, X)
