"""The interpreter under numpy's numerics: the bits, views and layouts of the plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.graphs import GraphBuilder, PlainNumerics, float32
from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Literal
from tinyfuse.graph.scalar_ops import SCALAR_OPS


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def evaluated(make: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    build = GraphBuilder()
    inputs = [build.input(f"x{at}", *x.shape, dtype=x.dtype) for at, x in enumerate(arrays)]
    return interpret(build.graph(make(build, *inputs)), arrays, NumpyNumerics())[0]


def assert_same(result: np.ndarray, expected: np.ndarray) -> None:
    """Same type, bits and layout."""
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert result.strides == expected.strides
    assert result.tobytes() == expected.tobytes()


VIEWS: list[tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = [
    (lambda b, x: b.transpose(x, 1, 0), lambda x: x.T),
    (lambda b, x: b.reshape(x, 4, 15), lambda x: x.reshape(4, 15)),
    (lambda b, x: b.broadcast(x, 3, 6, 10), lambda x: np.broadcast_to(x, (3, 6, 10))),
    (lambda b, x: b.slice(x, [slice(1, 5, 2), slice(None, 2, -3)]), lambda x: x[1:5:2, :2:-3]),
    (lambda b, x: b.slice(x, [slice(None, None, -1), slice(0)]), lambda x: x[::-1, :0]),
    (lambda b, x: b.windows(x, (2, 3), (1, 0)), lambda x: sliding_window_view(x, (2, 3), (1, 0))),
    (lambda b, x: b.windows(x, (2, 2), (1, 1)), lambda x: sliding_window_view(x, (2, 2), (1, 1))),
]


@pytest.mark.parametrize(("make", "expected"), VIEWS)
def test_views_are_views(make: Callable[..., Any], expected: Callable[..., Any]) -> None:
    x = normal(6, 10)
    result = evaluated(make, x)
    assert np.shares_memory(result, x) == np.shares_memory(expected(x), x)
    assert_same(result, expected(x))


def test_an_update_writes_one_element_where_several_share_memory() -> None:
    windows = sliding_window_view(np.arange(4.0, dtype=np.float32), 2)

    def make(build: GraphBuilder, x: Any, value: Any) -> Any:
        return build.apply(p.update, x, value, starts=(1, 0), steps=(1, 1))

    result = evaluated(make, windows, np.full((1, 1), 9, np.float32))
    np.testing.assert_array_equal(result, [[0, 1], [9, 2], [2, 3]])


def test_layouts_are_numpys() -> None:
    x, columns = normal(50, 70), np.asfortranarray(normal(70, 50).T)
    cases: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (lambda b, x: b.op("exp", b.transpose(x, 1, 0)), lambda x: np.exp(x.T)),
        (
            lambda b, x: b.reduce("sum", b.op("exp", b.transpose(x, 1, 0)), 0, 1),
            lambda x: np.exp(x.T).sum(),
        ),
        (
            lambda b, x: b.cast(b.slice(x, [slice(None), slice(None, None, -2)]), "float64"),
            lambda x: x[:, ::-2].astype(np.float64),
        ),
        (
            lambda b, x: b.pad(x, float32(2), (1, 0), (0, 3)),
            lambda x: np.pad(x, [(1, 0), (0, 3)], constant_values=2),
        ),
        (lambda b, x: b.concat(x, x, axis=1), lambda x: np.concatenate([x, x], axis=1)),
        (
            lambda b, x: b.op("select", b.op("less", x, float32(0)), float32(0), x),
            lambda x: np.where(x < 0, 0, x),
        ),
    ]
    for make, expected in cases:
        for array in (x, columns, x[::2, ::-1]):
            assert_same(evaluated(make, array), np.asarray(expected(array)))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,)])
def test_reductions_have_numpys_bits(op: str, axes: tuple[int, ...]) -> None:
    x = normal(30, 3, 40).transpose(2, 1, 0)
    method = getattr(x, op)
    assert_same(evaluated(lambda b, x: b.reduce(op, x, *axes), x), method(axis=axes[0]))


def test_reductions_over_several_axes_and_dtypes() -> None:
    x = normal(30, 30)
    assert_same(
        evaluated(lambda b, x: b.reduce("sum", x, 0, 1, dtype="float64"), x),
        np.asarray(x.sum(dtype=np.float64)),
    )
    small = np.full((30, 30), 100, np.int8)
    assert_same(
        evaluated(lambda b, x: b.reduce("sum", x, 1, dtype="int64"), small), small.sum(axis=1)
    )
    assert evaluated(lambda b, x: b.reduce("any", x, 0, 1), np.eye(3, dtype=bool)) == np.True_


PRODUCTS: list[tuple[str, str, list[tuple[int, ...]], Callable[..., Any]]] = [
    ("matmul", "ij,jk->ik", [(30, 40), (40, 20)], np.matmul),
    ("matmul", "bij,jk->bik", [(3, 30, 40), (40, 20)], np.matmul),
    ("matmul", "ij,bjk->bik", [(30, 40), (3, 40, 20)], np.matmul),
    ("matmul", "abij,bjk->abik", [(2, 3, 5, 40), (3, 40, 20)], np.matmul),
    ("matmul", "i,i->", [(400,), (400,)], np.matmul),
    ("matmul", "ij,j->i", [(30, 400), (400,)], np.matmul),
    ("matmul", "j,bjk->bk", [(40,), (3, 40, 20)], np.matmul),
    ("dot", "aij,bjk->aibk", [(2, 30, 40), (3, 40, 20)], np.dot),
    ("dot", "i,i->", [(400,), (400,)], np.dot),
    ("dot", "ij,j->i", [(30, 400), (400,)], np.dot),
    ("einsum", "ij,kj->ki", [(30, 40), (20, 40)], lambda a, b: np.einsum("ij,kj->ki", a, b)),
    ("einsum", "zaj,ajz->z", [(3, 4, 50), (4, 50, 3)], lambda a, b: np.einsum("zaj,ajz->z", a, b)),
    # What the function cannot do alone is einsum's.
    ("matmul", "ij,jk->ki", [(30, 40), (40, 20)], lambda a, b: np.einsum("ij,jk->ki", a, b)),
    ("dot", "ij,kj->ik", [(30, 40), (20, 40)], lambda a, b: np.einsum("ij,kj->ik", a, b)),
    ("dot", ",i->i", [(), (40,)], lambda a, b: np.einsum(",i->i", a, b)),
    (
        "matmul",
        "bij,ajk->abik",
        [(3, 2, 4), (5, 4, 2)],
        lambda a, b: np.einsum("bij,ajk->abik", a, b),
    ),
]


@pytest.mark.parametrize(("via", "labels", "shapes", "function"), PRODUCTS)
def test_products_have_the_bits_of_their_function(
    via: str, labels: str, shapes: list[tuple[int, ...]], function: Callable[..., Any]
) -> None:
    a, b = [normal(*shape) for shape in shapes]
    result = evaluated(lambda build, a, b: build.contract(labels, a, b, via=via), a, b)
    assert_same(result, np.asarray(function(a, b)))


def test_literals_are_scalars_of_their_dtype() -> None:
    x = np.array([200], np.uint8)
    total = evaluated(lambda b, x: b.op("add", x, Literal(np.uint8(100))), x)
    assert_same(total, np.array([44], np.uint8))
    both = evaluated(lambda b: b.op("add", Literal(np.float64(1)), Literal(np.float64(2))))
    assert_same(both, np.array(3.0))


@pytest.mark.parametrize(
    "op", ["modf_fraction", "modf_integral", "frexp_mantissa", "frexp_exponent"]
)
def test_outputs_of_one_ufunc(op: str) -> None:
    ufunc, which = SCALAR_OPS[op].ufunc, SCALAR_OPS[op].output
    x = normal(9)
    assert_same(evaluated(lambda b, x: b.op(op, x), x), ufunc(x)[which])


def test_no_warnings() -> None:
    zero = np.zeros(2, np.float32)
    with np.errstate(all="raise"):
        result = evaluated(lambda b, x: b.op("divide", float32(1), x), zero)
        assert result.tolist() == [np.inf, np.inf]


def test_outputs_in_order() -> None:
    build = GraphBuilder()
    x = build.input("x", 3)
    y = build.op("negative", x)
    array = normal(3)
    outputs = interpret(build.graph(y, x, float32(2), y), [array], NumpyNumerics())
    assert [each.tolist() for each in outputs] == [
        (-array).tolist(),
        array.tolist(),
        2.0,
        (-array).tolist(),
    ]
    assert outputs[1] is array


def test_wrong_arrays_are_refused() -> None:
    build = GraphBuilder("scale")
    graph = build.graph(build.input("x", 3))
    with pytest.raises(ValueError) as caught:
        interpret(graph, [np.zeros((3, 1))], NumpyNumerics())
    assert str(caught.value) == "scale: input x is not of type float64[3, 1]"
    with pytest.raises(ValueError, match="shorter"):
        interpret(graph, [], NumpyNumerics())


def test_elementwise_under_ordered_numerics_goes_through_scalar() -> None:
    class Counting(PlainNumerics):
        calls: tuple[str, ...] = ()

        def scalar(self, op_name: str, operands: Any, dtype: np.dtype) -> Any:
            self.calls += (op_name,)
            return super().scalar(op_name, operands, dtype)

    build = GraphBuilder()
    x = build.input("x", 4)
    y = build.reduce("sum", build.op("exp", build.op("add", x, float32(1))), 0)
    numerics = Counting()
    (result,) = interpret(build.graph(y), [np.zeros(4, np.float32)], numerics)
    assert numerics.calls == ("add", "exp", "add", "add", "add", "add")
    assert result == 4 * np.exp(np.float32(1))


def test_deep_graphs() -> None:
    build = GraphBuilder()
    x: Any = build.input("x", 2)
    for _ in range(5000):
        x = build.apply(p.elementwise, x, float32(1), op="add")
    assert interpret(build.graph(x), [np.zeros(2, np.float32)], NumpyNumerics())[0].tolist() == [
        5000,
        5000,
    ]
