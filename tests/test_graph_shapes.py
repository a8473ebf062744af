"""The shape rule of each primitive against numpy, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tests.graphs import GraphBuilder, float32
from tinyfuse.dtypes import BOOL, FLOAT32, INT64, SUPPORTED
from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Literal, Primitive, Var
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.shapes import infer, resolve, result_dtype

X = Var((2, 3), FLOAT32)
V = Var((3,), FLOAT32)
S = Var((), FLOAT32)
M = Var((2, 3), BOOL)
I = Var((2, 3), INT64)  # noqa: E741


@pytest.mark.parametrize("op", SCALAR_OPS.values(), ids=lambda op: op.name)
def test_dtypes_of_scalar_operations_are_numpys(op: Any) -> None:
    found = 0
    for dtypes in _operand_dtypes(op):
        with np.errstate(divide="ignore"):
            result = op.evaluate(*[np.ones(1, dtype) for dtype in dtypes])
        assert result_dtype(op.name, dtypes) == result.dtype
        found += 1
    assert found


def _operand_dtypes(op: Any) -> list[tuple[np.dtype, ...]]:
    """All dtypes that the operation computes in."""
    if op.name == "select":
        return [(BOOL, dtype, dtype) for dtype in SUPPORTED]
    if op.ufunc is None:
        return list(op.loops)
    found = {}
    for first in SUPPORTED:
        for second in SUPPORTED if op.arity == 2 else (None,):
            try:
                dtypes, results = resolve(op.ufunc, (first, second)[: op.arity])
            except ValueError:
                continue
            if {*dtypes, *results} <= set(SUPPORTED):
                found[dtypes] = None
    return list(found)


def test_weak_operands_resolve_as_numpys() -> None:
    assert resolve(np.add, (FLOAT32, float)) == ((FLOAT32, FLOAT32), (FLOAT32,))
    assert resolve(np.add, (np.dtype(np.int8), int))[1] == (np.dtype(np.int8),)
    with pytest.raises(ValueError, match="bitwise_and"):
        resolve(np.bitwise_and, (FLOAT32, FLOAT32))


@pytest.mark.parametrize(
    ("primitive", "atoms", "params", "expected"),
    [
        (p.elementwise, (X, float32(2)), {"op": "add"}, ((2, 3), FLOAT32)),
        (p.elementwise, (float32(1), float32(2)), {"op": "less"}, ((), BOOL)),
        (p.elementwise, (M, X, float32(0)), {"op": "select"}, ((2, 3), FLOAT32)),
        (p.elementwise, (X,), {"op": "frexp_exponent"}, ((2, 3), np.dtype(np.int32))),
        (p.cast, (X,), {"dtype": INT64}, ((2, 3), INT64)),
        (p.broadcast, (V,), {"shape": (4, 3)}, ((4, 3), FLOAT32)),
        (p.broadcast, (S,), {"shape": (0, 3)}, ((0, 3), FLOAT32)),
        (p.reshape, (X,), {"shape": (6, 1)}, ((6, 1), FLOAT32)),
        (p.reshape, (S,), {"shape": (1,)}, ((1,), FLOAT32)),
        (p.transpose, (X,), {"axes": (1, 0)}, ((3, 2), FLOAT32)),
        (p.windows, (X,), {"window_shape": (2, 3), "axes": (0, 1)}, ((1, 1, 2, 3), FLOAT32)),
        (p.windows, (V,), {"window_shape": (2, 2), "axes": (0, 0)}, ((1, 2, 2), FLOAT32)),
        (p.pad, (X, S), {"before": (0, 1), "after": (2, 0)}, ((4, 4), FLOAT32)),
        (p.concat, (X, X, X), {"axis": 1}, ((2, 9), FLOAT32)),
        (p.reduce, (X,), {"op": "sum", "axes": (0,), "dtype": FLOAT32}, ((3,), FLOAT32)),
        (p.reduce, (M,), {"op": "sum", "axes": (0, 1), "dtype": INT64}, ((), INT64)),
        (p.reduce, (X,), {"op": "argmin", "axes": (1,), "dtype": INT64}, ((2,), INT64)),
    ],
)
def test_types(primitive: Primitive, atoms: tuple, params: dict, expected: tuple) -> None:
    assert infer(primitive, atoms, params) == expected


EMPTY = Var((2, 0), FLOAT32)


@pytest.mark.parametrize(
    ("primitive", "atoms", "params", "message"),
    [
        (Primitive("median"), (X,), {}, "there is no primitive median"),
        (p.elementwise, (X,), {"op": "relu"}, "there is no scalar operation relu"),
        (p.elementwise, (X,), {"op": "add"}, "add: takes 2 operands, got 1"),
        (
            p.elementwise,
            (X, I),
            {"op": "add"},
            "add: computes in float64, float64, not in float32, int64",
        ),
        (
            p.elementwise,
            (X, V),
            {"op": "add"},
            "elementwise add: shapes differ: float32[2, 3], float32[3]",
        ),
        (p.elementwise, (X, X, X), {"op": "select"}, "select: the condition is float32, not bool"),
        (p.elementwise, (M, X, I), {"op": "select"}, "select: the branches are float32 and int64"),
        (p.cast, (X, X), {"dtype": INT64}, "cast: takes one array, got 2"),
        (p.cast, (X,), {"dtype": np.dtype("complex256")}, "cast: complex256 is not supported"),
        (
            p.broadcast,
            (X,),
            {"shape": (3, 3)},
            "broadcast: float32[2, 3] does not broadcast to (3, 3)",
        ),
        (p.broadcast, (X,), {"shape": (3,)}, "broadcast: float32[2, 3] does not broadcast to (3,)"),
        (
            p.reshape,
            (X,),
            {"shape": (4,)},
            "reshape: float32[2, 3] does not have the size of (4,)",
        ),
        (
            p.transpose,
            (X,),
            {"axes": (0, 0)},
            "transpose: (0, 0) is no permutation of the axes of float32[2, 3]",
        ),
        (
            p.slice_,
            (V,),
            {"starts": (0,), "steps": (1,), "shape": (4,)},
            "slice: 0..3 leaves axis 0 of float32[3]",
        ),
        (
            p.slice_,
            (V,),
            {"starts": (1,), "steps": (-1,), "shape": (3,)},
            "slice: 1..-1 leaves axis 0 of float32[3]",
        ),
        (
            p.slice_,
            (V,),
            {"starts": (0,), "steps": (0,), "shape": (3,)},
            "slice: a step is 0: (0,)",
        ),
        (
            p.slice_,
            (V,),
            {"starts": (0,), "steps": (1,), "shape": (-1,)},
            "slice: a negative extent: (-1,)",
        ),
        (
            p.slice_,
            (X,),
            {"starts": (0,), "steps": (1,), "shape": (3,)},
            "slice: one start, step and extent per axis of float32[2, 3]",
        ),
        (
            p.windows,
            (V,),
            {"window_shape": (5,), "axes": (0,)},
            "windows: (5,) does not fit into float32[3]",
        ),
        (
            p.windows,
            (V,),
            {"window_shape": (2,), "axes": (1,)},
            "windows: window (2,) over axes (1,) of float32[3]",
        ),
        (p.pad, (V,), {"before": (1,), "after": (1,)}, "pad: takes an array and a fill value"),
        (p.pad, (V, V), {"before": (1,), "after": (1,)}, "pad: fills with float32[3]"),
        (p.pad, (V, S), {"before": (1,), "after": (-1,)}, "pad: (1,) and (-1,) around float32[3]"),
        (p.concat, (), {"axis": 0}, "concat: takes at least one array"),
        (p.concat, (S, S), {"axis": 0}, "concat: axis 0 of float32[]"),
        (p.concat, (X, V), {"axis": 0}, "concat: float32[2, 3] and float32[3]"),
        (p.concat, (X, I), {"axis": 0}, "concat: float32[2, 3] and int64[2, 3]"),
        (
            p.reduce,
            (X,),
            {"op": "median", "axes": (0,), "dtype": FLOAT32},
            "reduce: there is no reduction median",
        ),
        (
            p.reduce,
            (X,),
            {"op": "sum", "axes": (1, 0), "dtype": FLOAT32},
            "reduce: axes (1, 0) of float32[2, 3]",
        ),
        (
            p.reduce,
            (X,),
            {"op": "sum", "axes": (2,), "dtype": FLOAT32},
            "reduce: axes (2,) of float32[2, 3]",
        ),
        (
            p.reduce,
            (X,),
            {"op": "max", "axes": (0,), "dtype": INT64},
            "reduce: max of float32 to int64",
        ),
        (
            p.reduce,
            (X,),
            {"op": "any", "axes": (0,), "dtype": BOOL},
            "reduce: any of float32 to bool",
        ),
        (
            p.reduce,
            (X,),
            {"op": "argmax", "axes": (0, 1), "dtype": INT64},
            "reduce: argmax over axes (0, 1), not over one",
        ),
        (
            p.reduce,
            (EMPTY,),
            {"op": "min", "axes": (1,), "dtype": FLOAT32},
            "reduce: min of nothing: axes (1,) of float32[2, 0]",
        ),
    ],
)
def test_refusals(primitive: Primitive, atoms: tuple, params: dict, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        infer(primitive, atoms, params)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("lhs", "rhs", "out", "via", "message"),
    [
        ((0, 1), (1, 2), (0, 2), "tensordot", "contract: via tensordot"),
        ((0, 1), (0,), (0,), "dot", "contract: label 0 is both 2 and 3"),
        ((0,), (1,), (0,), "dot", "contract: labels (0,) for float32[2, 3]"),
        ((0, 1), (1,), (0, 0), "dot", "contract: a label twice in (0, 0)"),
        ((0, 1), (1,), (0, 2), "dot", "contract: (0, 2) has labels that no operand has"),
        (
            (0, 1),
            (1,),
            (1,),
            "dot",
            "contract: (0, 1), (1,) -> (1,) sums over a label of one operand",
        ),
    ],
)
def test_refused_contractions(lhs: tuple, rhs: tuple, out: tuple, via: str, message: str) -> None:
    b = V if len(rhs) == 1 else Var((3, 4), FLOAT32)
    with pytest.raises(ValueError) as caught:
        infer(p.contract, (X, b), {"lhs": lhs, "rhs": rhs, "out": out, "via": via})
    assert str(caught.value) == message


def test_contracted_types() -> None:
    b = Var((4, 3), FLOAT32)
    params = {"lhs": (7, 1), "rhs": (0, 1), "out": (0, 7), "via": "einsum"}
    assert infer(p.contract, (X, b), params) == ((4, 2), FLOAT32)
    with pytest.raises(ValueError, match=r"float32\[2, 3\] and int64\[2, 3\]"):
        infer(p.contract, (X, I), params)


def test_literals_take_part_in_dtypes_not_shapes() -> None:
    with pytest.raises(ValueError, match="add: computes in float64, float64, not in float32"):
        infer(p.elementwise, (X, Literal(np.float64(2))), {"op": "add"})


@settings(max_examples=100, deadline=None)
@given(array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4), st.data())
def test_types_of_views_are_what_numpy_gives(shape: tuple[int, ...], data: Any) -> None:
    build = GraphBuilder()
    x = build.input("x", *shape)
    steps = st.integers(-3, 3).filter(bool)
    bounds = st.none() | st.integers(-5, 5)
    axes = data.draw(st.permutations(range(len(shape))))
    slices = [slice(data.draw(bounds), data.draw(bounds), data.draw(steps)) for _ in shape]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    graph = build.graph(build.transpose(build.slice(x, slices), *axes))
    (result,) = interpret(graph, [array], NumpyNumerics())
    expected = np.transpose(array[tuple(slices)], axes)
    np.testing.assert_array_equal(result, expected)
    assert result.size == 0 or result.strides == expected.strides
    assert graph.outputs[0].shape == expected.shape
