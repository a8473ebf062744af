"""numpy's functions, traced, replayed equation by equation, and compared bit for bit."""

# ruff: noqa: B023 (functions are called before the loop goes on)
from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tinyfuse
from tests.trace_checking import assert_same, check, replay, trace_call
from tinyfuse.dtypes import SUPPORTED
from tinyfuse.errors import TinyfuseError, UnsupportedDtypeError
from tinyfuse.graph.scalar_ops import CONSTANT_POWERS
from tinyfuse.trace.promotion import OPERATIONS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DTYPES = [dtype.name for dtype in SUPPORTED]


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """An array with NaN, infinity and -0 where there are some."""
    random, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind != "f":
        return random.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    x = (random.standard_normal(shape) * 3).astype(dtype)
    if x.size > 4:
        x.flat[random.integers(0, x.size, 3)] = [np.nan, -0.0, np.inf]
    return x


def compare(function: Callable[..., Any], *args: Any) -> None:
    """The same result as numpy's, or an error where numpy has one."""
    with np.errstate(all="ignore"):
        try:
            expected = function(*args)
        except Exception as error:
            kind = next(base for base in type(error).__mro__ if base.__module__ == "builtins")
            with pytest.raises(kind):
                replay(trace_call(function, *args), *args)
            return
        try:
            traced = trace_call(function, *args)
        except UnsupportedDtypeError:
            results = expected if isinstance(expected, tuple) else (expected,)
            assert not all(result.dtype in SUPPORTED for result in results)
            return
        assert_same(replay(traced, *args), expected)


@pytest.mark.parametrize("ufunc", OPERATIONS, ids=lambda ufunc: ufunc.__name__)
def test_ufuncs_of_all_dtypes(ufunc: np.ufunc) -> None:
    for dtypes in itertools.product(DTYPES, repeat=ufunc.nin):
        shapes = [(3, 4), (4,), ()]
        args = [sample(shape, dtype, at) for at, (shape, dtype) in enumerate(zip(shapes, dtypes))]  # noqa: B905
        compare(ufunc, *args)


NUMBERS = (2, -1, 0, 1, 0.5, -1.0, 300, True, np.float32(1.5), np.int8(3), np.float64(2))


@pytest.mark.parametrize("ufunc", [u for u in OPERATIONS if u.nin == 2], ids=lambda u: u.__name__)
def test_ufuncs_with_numbers(ufunc: np.ufunc) -> None:
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        x = sample((5,), dtype, 1)
        compare(lambda x: ufunc(x, number), x)
        compare(lambda x: ufunc(number, x), x)
        compare(lambda x: ufunc(x, number), x[2:3].reshape(()))


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lshift,
    operator.rshift,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lt,
    operator.eq,
    divmod,
]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operators_from_both_sides(function: Callable[..., Any]) -> None:
    row = np.arange(5)
    for dtype, other in itertools.product(DTYPES, (*NUMBERS, row)):
        x = sample((5,), dtype, 1)
        compare(lambda x: function(x, other), x)
        compare(lambda x: function(other, x), x)
        if function is not operator.pow:  # numpy's scalars have a power of their own
            compare(lambda x: function(x, other), x[1])
            compare(lambda x: function(other, x), x[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_powers_take_the_shortcuts_of_numpy(dtype: str) -> None:
    x = np.array([-np.inf, -2.0, -0.0, 0.0, 3.1, np.nan], dtype)
    expected = [(-1, "reciprocal"), (0.5, "sqrt"), (1, "positive"), (2, "square"), (2.0, "square")]
    for exponent, name in expected:
        assert operations_of(lambda x: x**exponent, x) == [name]
    assert check(lambda x: x**0, x).graph.eqns[0].primitive.name == "broadcast"
    assert operations_of(lambda x: x**5, x) == ["power"]


def halved_exponents(x: Any) -> Any:
    y = x.copy()
    y **= 0.5
    return y, x**0.5, x.sum() ** 0.5


@pytest.mark.parametrize("value", [-0.0, 0.0, -np.inf, 2.0])
def test_roots_of_an_array_without_axes_and_of_numbers(value: float) -> None:
    """numpy takes a root of the one, and raises the other to a power, which is 0.0 of -0.0."""
    for x in (np.array(value), np.array([value])):
        with np.errstate(invalid="ignore"):
            assert_same(tinyfuse.jit(halved_exponents)(x), halved_exponents(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONSTANT_POWERS)
def test_constant_powers_that_a_few_operations_give(name: str, dtype: str) -> None:
    exponent, _ = CONSTANT_POWERS[name]
    x = np.array([-np.inf, -2.0, -0.0, 0.0, 3.1, np.inf, np.nan], dtype)
    assert operations_of(lambda x: x**exponent, x) == [name]
    assert operations_of(lambda x: np.power(x, x.dtype.type(exponent)), x) == [name]
    assert operations_of(lambda x: x[4] ** exponent, x)[-1] == "power"
    if exponent > 2:
        assert operations_of(lambda x: x ** int(exponent), np.arange(5)) == ["power"]


def operations_of(function: Callable[..., Any], *args: Any) -> list[str]:
    """The elementwise operations of the function's graph."""
    traced = check(function, *args)
    return [eqn.params["op"] for eqn in traced.graph.eqns if "op" in eqn.params]


REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin"]
AXES = (None, 0, 1, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2), ())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*REDUCTIONS, "ptp"])
def test_reductions(name: str, dtype: str) -> None:
    function = getattr(np, name)
    x, flipped = sample((3, 4, 5), dtype, 1), lambda x: x.T[::-1, ::2]
    for axis, keepdims in itertools.product(AXES, (False, True)):
        if name.startswith("arg") and isinstance(axis, tuple):
            continue
        compare(lambda x: function(x, axis=axis, keepdims=keepdims), x)
        compare(lambda x: function(flipped(x), axis=axis, keepdims=keepdims), x)
    for shape, axis in itertools.product([(0,), (0, 3), (3, 0), (0, 0), ()], (None, 0, -1)):
        compare(lambda x: function(x, axis=axis), np.zeros(shape, dtype))
    if name != "ptp":
        compare(lambda x: (getattr(x, name)(), getattr(x, name)(1)), x)
        compare(lambda x: getattr(x[0, 0, 0], name)(), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_reductions_have_the_bits_of_numpy(dtype: str) -> None:
    x, y = sample((300, 70), dtype, 2), sample((20000,), dtype, 3)
    for name in REDUCTIONS:
        compare(lambda x: [getattr(x, name)(axis) for axis in (None, 0, 1)], x)
        compare(lambda y: (getattr(y, name)(), getattr(y[::-1], name)()), y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_to_other_dtypes(dtype: str) -> None:
    x = sample((300, 70), dtype, 2)
    for name, to in itertools.product(("sum", "prod", "mean", "var", "std"), ("f4", "f8", "i4")):
        compare(lambda x: getattr(np, name)(x, axis=1, dtype=to), x)
        compare(lambda x: getattr(np, name)(x, dtype=to), x)
    compare(lambda x: (np.var(x, ddof=1), x.std(0, ddof=1), np.var(x, axis=1, ddof=0.5)), x)
    compare(lambda x: (np.max(x, initial=0), np.min(x, axis=0, initial=0)), x)
    compare(lambda x: np.count_nonzero(x, axis=1), x)
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or):
        compare(lambda x: [ufunc.reduce(x, axis=axis) for axis in (0, (0, 1), None)], x)
        compare(lambda x: ufunc.reduce(x), x)


Table = list[Callable[..., Any]]

INDEXING: Table = [
    lambda x: x[0],
    lambda x: x[-1, 1],
    lambda x: x[0, 1, 2],
    lambda x: x[..., 0],
    lambda x: x[0, ..., 0],
    lambda x: x[0, 1, 2, ...],
    lambda x: x[:, None],
    lambda x: x[::-1],
    lambda x: x[::2, 1:3],
    lambda x: x[:, ::-2],
    lambda x: x[5:],
    lambda x: x[2:0:-1],
    lambda x: x[-1:-10:-1],
    lambda x: x[...],
    lambda x: x[()],
    lambda x: x[np.int64(1)],
    lambda x: x[3],
    lambda x: x[0, 0, 0, 0],
    lambda x: x[..., ...],
    lambda x: x["a"],
    lambda x: x[0.5],
    lambda x: x[0, None, :, 1:][..., None],
    lambda x: list(x),
    lambda x: list(x[0, 0]),
    lambda x: x[::0],
    lambda x: (lambda a, b, c: a + b * c)(*x),
]

VIEWS: Table = [
    lambda x: (x.T, x.mT, x.transpose(), x.transpose(1, 0, 2), x.transpose((2, 0, 1))),
    lambda x: (np.transpose(x, (0, -1, 1)), np.permute_dims(x, (2, 1, 0)), np.matrix_transpose(x)),
    lambda x: (x.swapaxes(0, 2), np.swapaxes(x, 0, -1), np.moveaxis(x, [0, 1], [-1, 0])),
    lambda x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, -1)),
    lambda x: (x.reshape(12, 5), x.reshape(-1), x.reshape((2, -1)), x.reshape(-1, order="F")),
    lambda x: np.reshape(x, (5, 12), order="F"),
    lambda x: x.reshape(7, -1),
    lambda x: x.reshape(-1, -1),
    lambda x: (x.ravel(), x.flatten(), np.ravel(x, order="F"), x.T.flatten(), x.T.ravel()),
    lambda x: (x[:1].squeeze(), np.squeeze(x[:1], axis=0), x[:1, :1].squeeze(axis=(0, 1))),
    lambda x: x.squeeze(0),
    lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1))),
    lambda x: (np.flip(x), np.flip(x, 1), np.flip(x, (0, 2)), np.fliplr(x), np.flipud(x)),
    lambda x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, 3, (1, 2))),
    lambda x: (np.broadcast_to(x, (2, 3, 4, 5)), np.broadcast_arrays(x, x[0])),
    lambda x: np.broadcast_to(x, (2, 3, 4)),
    lambda x: (np.atleast_1d(x[0, 0, 0]), np.atleast_2d(x[0, 0]), np.atleast_3d(x[0])),
    lambda x: x.transpose(0, 0, 1),
    lambda x: x.transpose(0, 1),
    lambda x: x.swapaxes(0, 5),
    lambda x: x[0, 0].mT,
    lambda x: (sliding_window_view(x, (2, 2, 2)), sliding_window_view(x, 3, axis=1)),
    lambda x: (sliding_window_view(x, (2, 2), axis=(0, 2)), sliding_window_view(x, (2,) * 3)),
    lambda x: sliding_window_view(x, (2, 2), axis=(2, 2)),
    lambda x: sliding_window_view(x, 9, axis=1),
    lambda x: sliding_window_view(x, (2, 2)),
    lambda x: (x.copy(), x.T.copy(), np.copy(x.T), np.copy(x[0, 0, 0]), x[0, 0, 0].copy()),
]

JOINING: Table = [
    lambda x: (np.concatenate([x, x]), np.concatenate([x, x], axis=-1)),
    lambda x: (np.concatenate([x, x], axis=None), np.concatenate([x]), np.concat([x, x > 0])),
    lambda x: (np.concatenate((x, np.arange(6.0)[None])), np.concatenate([x, x], dtype="f8")),
    lambda x: np.concatenate([x, x[0]]),
    lambda x: np.concatenate([x, x[:, :2]]),
    lambda x: np.concatenate([x[0, 0], x[0, 0]]),
    lambda x: np.concatenate([x, x], dtype="i4"),
    lambda x: np.concatenate([x, x], axis=3),
    lambda x: (np.stack([x, x]), np.stack([x, x], axis=-1), np.stack(list(x))),
    lambda x: np.stack([x[0, 0], x[1, 1]]),
    lambda x: np.stack([x, x[0]]),
    lambda x: (np.vstack([x, x[0]]), np.vstack(x), np.hstack([x, x]), np.hstack([x[0], x[1]])),
    lambda x: (np.hstack([x[0, 0], x[0, 1]]), np.dstack([x, x]), np.column_stack([x[:, 0], x])),
    lambda x: (np.append(x, x), np.append(x, x, axis=0), np.append(x, 1.5)),
    lambda x: (np.tile(x, 2), np.tile(x, (2, 3)), np.tile(x, (2, 1, 3))),
    lambda x: (np.repeat(x, 3), np.repeat(x, 2, axis=0), x.repeat(2, 1)),
    lambda x: np.repeat(x, [1, 0, 2, 1], axis=0),
    lambda x: (np.split(x, 2), np.split(x, [1, 3], axis=1), np.array_split(x, 3)),
    lambda x: (np.array_split(x, [1, 9]), np.hsplit(x, 2), np.vsplit(x, 4), np.unstack(x, axis=1)),
    lambda x: np.split(x, 3),
    lambda x: (np.roll(x, 1), np.roll(x, -2, axis=1), np.roll(x, (1, 2), axis=(0, 1))),
    lambda x: (np.roll(x, (1, 2), axis=(0, 0)), np.roll(x, 0)),
    lambda x: (np.pad(x, 1), np.pad(x, ((1, 2), (0, 3))), np.pad(x, 0)),
    lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=5),
    lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4))),
    lambda x: np.pad(x, 1, constant_values=(1, np.nan)),
    lambda x: np.pad(x, 1, mode="constant", constant_values=x[0, 0]),
    lambda x: (np.pad(x, (1, 2), mode="edge"), np.pad(x, 3, mode="reflect")),
    lambda x: (np.pad(x, 7, mode="reflect"), np.pad(x, 9, mode="symmetric")),
    lambda x: np.pad(x, ((0, 5), (9, 2)), mode="wrap"),
    lambda x: np.pad(x, -1),
    lambda x: (np.diff(x), np.diff(x, axis=0), np.diff(x, n=2), np.diff(x > 0), np.diff(x, n=9)),
    lambda x: (np.diff(x, prepend=0), np.diff(x, append=x[:, :1]), np.diff(x, n=0)),
]

LAYOUTS: Table = [  # sums show in which order numpy's arrays lie in memory
    lambda x: (x.T.sum(0), x.T.copy().sum(0), np.copy(x.T).sum(0), (x.T + 1).sum(0)),
    lambda x: (x.T.flatten().sum(), x.ravel()[::-1].sum(), x[::-1, ::-1].copy().sum(0)),
    lambda x: (np.concatenate([x.T, x.T]).sum(0), np.stack([x, x], -1).sum(-1).sum()),
    lambda x: (np.where(x.T > 0, x.T, 0).sum(0), x.T.astype("f8").sum(1), np.pad(x.T, 1).sum(0)),
    lambda x: (np.clip(x.T, -1, 1).mean(1), (x.T @ x).sum(), np.roll(x.T, 1, 0).sum(1)),
]

ANY_ARRAY: Table = [
    lambda x: (np.where(x > 1, x, 0), np.where(x > 1, 1.0, 2), np.where(x, 1, x)),
    lambda x: np.where(True, x, 0),
    lambda x: (x.astype("i4"), x.astype(float), x.astype(x.dtype), np.astype(x, np.float32)),
    lambda x: x.astype("f4", casting="safe"),
    lambda x: (x.clip(0, 1), np.clip(x, 0, 1), np.clip(x, None, 1), np.clip(x, 1, None)),
    lambda x: np.clip(x, -1.5, 1.5),
    lambda x: np.clip(x, 0, 300),
    lambda x: (np.clip(x, x, 1), np.clip(x, 0, np.nan), np.clip(x, 0, -0.0)),
    lambda x: (np.clip(x, min=1, max=2), np.clip(x, np.float64(0), 1)),
    lambda x: np.clip(x, None, None),
    lambda x: np.round(x),
    lambda x: x.round(2),
    lambda x: (np.around(x, -1), x.round(-2)),
    lambda x: (x.real, x.imag, np.real(x), np.imag(x), x.conj()),
    lambda x: np.conj(x),
    lambda x: (np.zeros_like(x), np.ones_like(x, dtype="i2"), np.full_like(x, 7)),
    lambda x: (np.full_like(x, 7.5, shape=(2,)), np.zeros_like(x, shape=3)),
    lambda x: np.full_like(x, 300),
    lambda x: (x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes),
    lambda x: (np.shape(x), np.ndim(x), np.size(x), np.isscalar(x)),
    lambda x: (isinstance(x, np.ndarray), isinstance(x, np.generic), isinstance(x, np.floating)),
    len,
    lambda x: (np.result_type(x, np.float32), np.result_type(x, 1.0)),
    lambda x: (x.T, x.ravel(), x.squeeze(), x[None], x[...], np.transpose(x), x.copy()),
    lambda x: (np.expand_dims(x, 0), np.broadcast_to(x, x.shape), np.flip(x), np.roll(x, 1)),
    lambda x: -x,
    lambda x: (abs(x), 2 / x, x == None, x != None),  # noqa: E711
    lambda x: ~x,
    lambda x: divmod(x, 2),
    lambda x: np.modf(x),
    lambda x: (x.sum(), x.mean(), x.var(), np.std(x), x.max()),
    lambda x: (np.add(x, x, dtype="f8"), np.add(x, 1, dtype="f4")),
    lambda x: np.add(x, x, dtype="i4"),
    lambda x: np.add(x, x, casting="no"),
    lambda x: (np.multiply.outer(x, x), np.outer(x, x)),
    lambda x: x + np.ones(9),
    lambda x: (np.float32(3) * x, np.float64(3) / x, True + x),
    lambda x: np.bool_(True) & x,
    lambda x: np.vdot(x, x),
    lambda x: np.dot(x, x),
    lambda x: np.inner(x, x),
]

PRODUCTS: Table = [
    lambda a, b: (a @ b, np.matmul(a, b), np.dot(a, b), a.dot(b), np.inner(a, b.T)),
    lambda a, b: (a[0] @ b, a @ b[:, 0], a[0] @ b[:, 0], a.T @ a, a[:, ::2] @ b[::2]),
    lambda a, b: (np.tensordot(a, b, 1), np.tensordot(a, b.T.copy(), ((1,), (1,)))),
    lambda a, b: (np.tensordot(a, b, 0), np.tensordot(a, a), np.vdot(a, a), np.outer(a, b)),
    lambda a, b: (np.vecdot(a, a), np.einsum("ij,jk->ik", a, b), np.einsum("ij,jk", a, b)),
    lambda a, b: (np.einsum("i,i", a[0], a[1]), np.einsum("ij,ij->i", a, a)),
    lambda a, b: (np.einsum("i,j->ij", a[0], b[0]), np.einsum("...i,ij->...j", a, b)),
    lambda a, b: (np.linalg.multi_dot([a, b]), np.linalg.multi_dot([a, b, b.T])),
    lambda a, b: (np.linalg.multi_dot([a[0], b, b.T]), np.linalg.multi_dot([a[0], b, b[0]])),
    lambda a, b: np.linalg.multi_dot([a, b, b.T, b, b[0]]),
    lambda a, b: np.linalg.multi_dot([a[:, :1], a[:1], b, b.T, b[:, :1], b[:1].copy()]),
    lambda a, b: np.linalg.multi_dot([a]),
    lambda a, b: np.linalg.multi_dot([a[0], b[:, 0], b]),
    lambda a, b: np.linalg.multi_dot([a, b[None], b]),
    lambda a, b: np.einsum("ij->ji", a),
    lambda a, b: a @ a,
    lambda a, b: np.dot(a, a),
    lambda a, b: np.einsum("ij,jk", a, a),
    lambda a, b: np.einsum("ij,jk", a),
    lambda a, b: (a.astype(int) @ b.astype("f4"), np.arange(3.0) @ a, [1, 2, 3] + a[:, 0]),
]

BATCHES: Table = [
    lambda a, b: (a @ b, a[0] @ b, a @ b[0], a[None] @ b[:, None][:1], a[:1] @ b),
    lambda a, b: (a @ b[0, :, 0], np.dot(a, b), np.inner(a, b.swapaxes(1, 2))),
    lambda a, b: (np.einsum("bij,bjk->bik", a, b), np.einsum("bij,bjk->kbi", a, b)),
    lambda a, b: (np.einsum("...ij,...jk", a, b), np.tensordot(a, b, axes=([2, 0], [1, 0]))),
    lambda a, b: a @ b[:3],
]


def numbered(*tables: Table) -> list[Any]:
    return [pytest.param(f, id=str(at)) for table in tables for at, f in enumerate(table)]


@pytest.mark.parametrize("function", numbered(INDEXING, VIEWS))
def test_views(function: Callable[..., Any]) -> None:
    compare(function, sample((3, 4, 5), "f8", 1))


@pytest.mark.parametrize("function", numbered(JOINING))
def test_joining(function: Callable[..., Any]) -> None:
    compare(function, sample((4, 6), "f4", 2))
    compare(function, sample((4, 6), "i2", 2))


@pytest.mark.parametrize("function", numbered(LAYOUTS))
def test_layouts(function: Callable[..., Any]) -> None:
    compare(function, np.random.default_rng(1).standard_normal((300, 200)).astype("f4"))


@pytest.mark.parametrize("function", numbered(ANY_ARRAY))
def test_arrays_of_every_kind(function: Callable[..., Any]) -> None:
    for x in [
        sample((4, 6), "f4", 2),
        sample((3, 4, 5), "f8", 1),
        np.array([[1, 2], [3, 4]]),
        np.array([250, 3], "u1"),
        np.array([True, False]),
        np.array(1.5),
        np.float32(2.5),
    ]:
        compare(function, x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_products(dtype: str) -> None:
    random = np.random.default_rng(5)

    def matrix(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 3).astype(dtype)

    for function in PRODUCTS:
        compare(function, matrix(3, 8), matrix(8, 5))
    for function in BATCHES:
        compare(function, matrix(4, 3, 8), matrix(4, 8, 5))


def test_einsum_sums_over_labels_of_one_operand_first() -> None:
    a, b = sample((3, 8), "f8")[:, 1:], sample((7, 5), "f8", 3)
    a, b = np.nan_to_num(a, posinf=1.0), np.nan_to_num(b, posinf=1.0)
    (total,) = [replay(trace_call(lambda a, b: np.einsum("ij,jk->k", a, b), a, b), a, b)]
    np.testing.assert_allclose(total, np.einsum("ij,jk->k", a, b), rtol=1e-13)


def test_integers_beyond_the_range_of_a_dtype_compare() -> None:
    x = np.array([3, 255], np.uint8)
    compare(lambda x: (x < 256, x == -1, x != -1, x >= 2**70), x)


def test_errors_of_the_user_pass() -> None:
    def failing(x: Any) -> Any:
        raise KeyError(x.shape)

    with pytest.raises(KeyError, match=r"\(2,\)"):
        trace_call(failing, np.ones(2))
    assert not issubclass(KeyError, TinyfuseError)


@pytest.mark.parametrize("exponent", [-1, np.int32(-1), np.array([-1], np.int32)])
def test_powers_of_nothing_refuse_no_exponent(exponent: Any) -> None:
    for dtype in (np.bool_, np.int32):
        check(lambda x: np.power(x, exponent), np.zeros((2, 0), dtype))
    check(lambda x: x**exponent, np.zeros((2, 0), np.int32))
