"""The two numerics, primitive by primitive: numpy's and tinyfuse's results differ within bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tinyfuse.dtypes import FLOATING, SUPPORTED, is_half, is_supported
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.testing import Case, difference, special_values, ulps

# In units in the last place: numpy's own functions are up to 4 away from the exact value, and
# powers of large numbers a little more.
BOUND = 4
BOUNDS = {"power": 5, "float_power": 5, "exp2": 4}
# Near the zeros of these, ulps say nothing: there the bound is absolute, in multiples of epsilon.
WITH_ZEROS = ("logaddexp", "logaddexp2")
# The NaN that has a sign is outside every promise.
SEES_SIGN_OF_NAN = ("signbit", "copysign")

FLOATS = [name for name, op in SCALAR_OPS.items() if isinstance(op.evaluate, np.ufunc)]


def values(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Special values, then ordinary ones of every magnitude."""
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        exponents = random.integers(-30, 30, count)
        ordinary = np.ldexp(random.standard_normal(count), exponents).astype(dtype)
        return np.concatenate(
            [special_values(dtype), ordinary, random.standard_normal(count).astype(dtype)]
        )
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    ordinary = random.integers(low, high, count, dtype, endpoint=True)
    return np.concatenate([special_values(dtype), ordinary, (ordinary % 7).astype(dtype)])


def operands(dtypes: tuple[np.dtype, ...]) -> list[np.ndarray]:
    """Every special value with every other, and ordinary ones."""
    specials = np.meshgrid(*[special_values(dtype) for dtype in dtypes])
    ordinary = [values(dtype, 2000, seed) for seed, dtype in enumerate(dtypes)]
    length = min(map(len, ordinary))
    return [
        np.concatenate([special.ravel(), some[:length]])
        for special, some in zip(specials, ordinary, strict=True)
    ]


def resolved(ufunc: np.ufunc) -> list[tuple[np.dtype, ...]]:
    """All tuples of operand dtypes that the ufunc computes in, with supported results."""
    found = {}
    for dtypes in itertools.product(SUPPORTED, repeat=ufunc.nin):
        try:
            loop = ufunc.resolve_dtypes((*dtypes, None))
        except TypeError:
            continue
        if all(is_supported(dtype) and not is_half(dtype) for dtype in loop):
            found[loop[: ufunc.nin]] = None
    return list(found)


def both(name: str, arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        dtype = np.asarray(SCALAR_OPS[name].evaluate(*[array[:1] for array in arrays])).dtype
        return (
            np.asarray(NumpyNumerics().scalar(name, arrays, dtype)),
            np.asarray(CompiledNumerics().scalar(name, arrays, dtype)),
        )


@pytest.mark.parametrize("name", FLOATS)
def test_elementwise_operations(name: str):
    ufunc = SCALAR_OPS[name].evaluate
    for dtypes in resolved(ufunc):
        arrays = operands(dtypes)
        if name == "power" and dtypes[0].kind in "iu":
            arrays[1] = np.abs(arrays[1]) if dtypes[1].kind == "i" else arrays[1]
            arrays = [array[arrays[1] >= 0] for array in arrays]
        expected, found = both(name, arrays)
        if name in SEES_SIGN_OF_NAN:
            keep = ~np.isnan(arrays[-1])
            expected, found = expected[keep], found[keep]
        if SCALAR_OPS[name].exact or expected.dtype.kind != "f":
            assert difference(expected, found) is None, (name, dtypes)
        else:
            assert_within(name, arrays, expected, found)


def assert_within(
    name: str, arrays: list[np.ndarray], expected: np.ndarray, found: np.ndarray
) -> None:
    far = ulps(expected, found) > BOUNDS.get(name, BOUND)
    if name in WITH_ZEROS:
        with np.errstate(invalid="ignore", over="ignore"):
            scale = sum(np.abs(array) for array in arrays) * np.finfo(expected.dtype).eps
            far &= ~(np.abs(expected - found) <= 2 * scale)
    worst = (
        [(*[array[far][0] for array in arrays], expected[far][0], found[far][0])]
        if far.any()
        else []
    )
    assert not far.any(), (name, expected.dtype, int(far.sum()), worst)


@pytest.mark.parametrize(
    ("source", "target"), list(itertools.product(SUPPORTED, repeat=2)), ids=str
)
def test_casts(source: np.dtype, target: np.dtype):
    array = values(source, 500, 0)
    if source.kind == "f" and target == np.uint32:  # beyond, numpy's answer depends on the place
        array = array[np.abs(array) < 2.0**31]
    with np.errstate(all="ignore"):
        expected = NumpyNumerics().cast(array, target)
        assert difference(expected, CompiledNumerics().cast(array, target)) is None


SHAPES = [
    (5,),
    (64,),
    (1000,),
    (5000,),
    (3, 70),
    (200, 3),
    (2, 1100),
    (300, 5),
    (130, 4, 3),
    (3, 2, 1030),
]


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums(dtype: np.dtype, shape: tuple[int, ...]):
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    every = range(len(shape))
    for axes in [axes for count in (1, 2, 3) for axes in itertools.combinations(every, count)]:
        case = Case(lambda x, axes=axes: x.sum(axis=axes), [x], "sum")
        within(case, np.abs(x.astype(np.float64)).sum(axis=axes), x.size)


def within(case: Case, terms: np.ndarray, count: int) -> None:
    """|difference| <= c * eps * sum of |terms|: c grows with the root of a chain's length."""
    (expected,) = interpret(case.graph, case.arrays, NumpyNumerics())
    (found,) = interpret(case.graph, case.arrays, CompiledNumerics())
    assert (expected.shape, expected.dtype) == (found.shape, found.dtype)
    bound = (2 + min(count, 4096) ** 0.5) * np.finfo(expected.dtype).eps * terms
    distance = np.abs(expected.astype(np.float64) - found.astype(np.float64))
    assert (distance <= bound).all(), (distance / bound).max()


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("length", [1, 2, 63, 64, 1000, 5000, 9000])
def test_contractions(dtype: np.dtype, length: int):
    random = np.random.default_rng(2)
    x, y = (random.standard_normal((3, length)).astype(dtype) for _ in range(2))
    terms = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T
    within(Case(lambda x, y: x @ y.T, [x, y], "matmul"), terms, length)
    within(Case(lambda x, y: np.einsum("ik,jk->ij", x, y), [x, y], "einsum"), terms, length)
    within(Case(lambda x, y: np.dot(x, y[0]), [x, y], "dot"), terms[:, 0], length)


SUBSCRIPTS = ["ij,jk->ik", "bij,bjk->bik", "ij,ij->", "i,j->ij", "ij,ij->ji", "ijk,k->ji", "ij,k->"]


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_is_numpys(dtype: np.dtype, subscripts: str):
    """The plain function and the graph under both numerics: composed otherwise than numpy does."""
    random, extents = np.random.default_rng(4), {"b": 2, "i": 3, "j": 70, "k": 5}
    operands = subscripts.split("->")[0].split(",")
    shapes = [[extents[label] for label in labels] for labels in operands]
    x, y = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    terms = np.einsum(subscripts, np.abs(x).astype(np.float64), np.abs(y).astype(np.float64))
    case = Case(lambda x, y: np.einsum(subscripts, x, y), [x, y], subscripts)
    within(case, terms, 70)
    plain, traced = case.expected[0], case.traced()[0]
    assert (type(plain), plain.shape, plain.dtype) == (type(traced), traced.shape, traced.dtype)
    assert (np.abs(plain - traced) <= 10 * np.finfo(dtype).eps * terms).all()


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_products(dtype: np.dtype):
    x = 1 + np.random.default_rng(3).standard_normal((4, 1500)).astype(dtype) / 100
    case = Case(lambda x: x.prod(axis=1), [x], "prod")
    within(case, np.abs(x.astype(np.float64).prod(axis=1)), 1500)


@pytest.mark.parametrize("dtype", [dtype for dtype in SUPPORTED if dtype.kind in "iub"], ids=str)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "nanmax", "nanargmin"]
)
def test_integer_reductions_are_exact(dtype: np.dtype, name: str):
    x = values(dtype, 1200, 5)[:2400].reshape(2, -1)
    for axis in (0, 1):
        case = Case(lambda x, axis=axis: getattr(np, name)(x, axis=axis), [x], name)
        (expected,) = interpret(case.graph, case.arrays, NumpyNumerics())
        (found,) = interpret(case.graph, case.arrays, CompiledNumerics())
        assert difference(expected, found) is None


@pytest.mark.parametrize(
    "name", ["max", "min", "argmax", "argmin", "any", "all", "nanmax", "nanmin"]
)
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_order_free_reductions(dtype: np.dtype, name: str):
    """Exact, but for the sign of a zero that is the largest or smallest."""
    x = values(dtype, 800, 6)[:1600].reshape(2, -1)
    x[1] = np.where(np.isnan(x[1]), 0, x[1])
    for axis in (0, 1):
        case = Case(lambda x, axis=axis: getattr(np, name)(x, axis=axis), [x], name)
        (expected,) = interpret(case.graph, case.arrays, NumpyNumerics())
        (found,) = interpret(case.graph, case.arrays, CompiledNumerics())
        zero = (expected == 0) & (found == 0)
        assert difference(np.where(zero, 0, expected), np.where(zero, 0, found)) is None
