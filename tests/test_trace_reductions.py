"""Reductions and their arguments, replayed equation by equation and compared with numpy's own."""

# ruff: noqa: B023 (functions are called before the loop goes on)
from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfuse
from tests.test_trace_functions import DTYPES, compare, sample
from tests.trace_checking import replay, trace_call, twin
from tinyfuse import errors
from tinyfuse.graph.reduce_ops import REDUCE_OPS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SUMS = ("sum", "prod", "nansum", "nanprod")
AVERAGES = ("mean", "var", "std", "nanmean", "nanvar", "nanstd")
EXTREMES = ("max", "min", "nanmax", "nanmin")
TRUTHS = ("any", "all")
PLACES = ("argmax", "argmin", "nanargmax", "nanargmin")
WITH_MASK = (*SUMS, *AVERAGES, *EXTREMES, *TRUTHS)
FOLDING = ("add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_or", "logical_and")
KINDS = ["bool", "int8", "uint64", "float32", "float64"]
AXES = (None, 0, 1, -1, (0, 1), (0, -1), (2, 0), (0, 1, 2), ())
WRONG_AXES = (3, -4, (0, 0), (1, -2), (0, 5), "rows", 1.0)


def with_runs_of_nan(dtype: str) -> np.ndarray:
    """(3, 4, 5), with a row and a plane that hold nothing else."""
    x = sample((3, 4, 5), dtype, 1)
    if x.dtype.kind == "f":
        x[1, 2], x[2] = np.nan, np.nan
    return x


def test_what_reductions_start_from() -> None:
    starts = [REDUCE_OPS[op].start(np.dtype("f4")) for op in ("sum", "prod", "max")]
    assert starts == [0, 1, -np.inf]
    assert np.isnan(REDUCE_OPS["fmax"].start(np.dtype("f4")))
    assert REDUCE_OPS["fmin"].start(np.dtype("i1")) == 127


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", [*SUMS[2:], *AVERAGES[3:], *EXTREMES[2:], *PLACES[2:]])
def test_what_leaves_out_nan(name: str, dtype: str) -> None:
    function = getattr(np, name)
    x, flipped = with_runs_of_nan(dtype), lambda x: x.T[::-1, ::2]
    for axis, keepdims in itertools.product(AXES, (False, True)):
        if name in PLACES and isinstance(axis, tuple):
            continue
        compare(lambda x: function(x, axis=axis, keepdims=keepdims), x)
        compare(lambda x: function(x, axis=axis, keepdims=keepdims), x[:2, :2])
        compare(lambda x: function(flipped(x), axis=axis, keepdims=keepdims), x)
    for shape, axis in itertools.product([(0,), (0, 3), (3, 0), (0, 0), ()], (None, 0, -1)):
        compare(lambda x: function(x, axis=axis), np.zeros(shape, dtype))
    compare(lambda x: function(x[0, 0, 0]), x)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", [*SUMS, *AVERAGES, *EXTREMES, *TRUTHS, *PLACES, "ptp"])
def test_wrong_axes_and_empty_arrays_raise_what_numpy_raises(name: str, dtype: str) -> None:
    function, x = getattr(np, name), sample((3, 4, 5), dtype, 1)
    for axis in WRONG_AXES:
        assert_same_error(lambda x: function(x, axis=axis), x)
    for shape, axis in itertools.product([(0,), (0, 3), (3, 0)], (None, 0, 1)):
        assert_same_error(lambda x: function(x, axis=axis), np.zeros(shape, dtype))


def assert_same_error(function: Callable[..., Any], *args: Any) -> None:
    """Whatever numpy says when it refuses a value stands in our message too."""
    error = error_of(function, *twin(args))
    if error is not None:
        kind = next(base for base in type(error).__mro__ if base.__module__ == "builtins")
        with pytest.raises(kind) as caught:
            replay(trace_call(function, *args), *args)
        assert kind is TypeError or str(error).strip() in str(caught.value)


def error_of(function: Callable[..., Any], *args: Any) -> Exception | None:
    try:
        with np.errstate(all="ignore"):
            function(*args)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", WITH_MASK)
@pytest.mark.parametrize("dtype", KINDS)
def test_masks_and_start_values(name: str, dtype: str) -> None:
    function, x = getattr(np, name), sample((3, 4, 5), dtype, 1)
    masks = [sample((3, 4, 5), bool, 2), sample((4, 1), bool, 3), np.zeros((3, 1, 1), bool)]
    starts: tuple[Any, ...] = ()
    if name in SUMS or name in EXTREMES:
        starts = (2, np.int8(3), True) if x.dtype.kind != "f" else (2, -1.5, np.nan, np.float32(3))
    for axis, keepdims in itertools.product((None, 1, (0, 2), ()), (False, True)):
        options = {"axis": axis, "keepdims": keepdims}
        for mask in masks:
            if name not in EXTREMES:
                close_to(lambda x, m: function(x, where=m, **options), x, mask)
            else:
                assert_same_error(lambda x, m: function(x, where=m, **options), x, mask)
            for start in starts:
                close_to(lambda x, m: function(x, where=m, initial=start, **options), x, mask)
        for start in starts:
            close_to(lambda x: function(x, initial=start, **options), x)


def close_to(function: Callable[..., Any], *args: Any) -> None:
    """numpy sums each run of chosen elements by itself, so that a last bit may differ.

    Within `4 eps` of the largest element times the number of elements; what is no sum is the same.
    """
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*twin(args)))
        found = np.asarray(replay(trace_call(function, *args), *twin(args)))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    bound = 1e-4 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, m: np.max(x, where=m), "'maximum' does not have an identity, so to use"),
        (lambda x, m: np.nanmin(x, where=m), "'fmin' does not have an identity, so to use"),
        (lambda x, m: np.sum(x, where=m, initial=None), "'add' does not have an identity"),
        (lambda x, m: np.prod(x, where=m, initial=None), "'multiply' does not have an identity"),
        (lambda x, m: np.sum(x, where=m + 0), "from dtype('int64') to dtype('bool') according to"),
        (lambda x, m: np.mean(x, where=m[:2]), "operands could not be broadcast together with"),
        (lambda x, m: np.any(x, where=m[None]), "input operand has more dimensions than allowed"),
        (lambda x, m: np.sum(x, initial=[1, 2]), "setting an array element with a sequence"),
        (lambda x, m: np.max(x.astype(int), initial=np.nan), "cannot convert float NaN to integer"),
        (lambda x, m: np.sum(x.astype("u1"), initial=-1), "Python integer -1 out of bounds for"),
        (lambda x, m: np.var(x, ddof=1, correction=1), "ddof and correction can't be provided sim"),
        (lambda x, m: np.nanmean(x, dtype=int), "If a is inexact, then dtype must be inexact"),
        (lambda x, m: np.nanstd(x, dtype=int), "If a is inexact, then dtype must be inexact"),
    ],
)  # fmt: skip
def test_refusals_of_numpy(function: Callable[..., Any], message: str) -> None:
    x, mask = sample((3, 4), "float32", 1), np.ones((3, 4), bool)
    with pytest.raises(errors.TinyfuseError) as found:
        trace_call(function, x, mask)
    assert message in str(error_of(function, x, mask))
    assert message in str(found.value)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: np.sum(x, dtype="longdouble"), errors.UnsupportedDtypeError, "longdouble is"),
        (lambda x: np.mean(x, dtype=object), errors.UnsupportedDtypeError, "object is not"),
        (
            lambda x: np.max(x, axis=0, out=np.zeros(4, np.int8)),
            errors.UnsupportedArgumentError,
            "np.maximum.reduce(..., out=) of int8, where numpy compares float32 and converts "
            "elements on the way, is not supported: pass an array of float32",
        ),
        (
            lambda x: np.argmax(x, out=np.zeros((), np.int32)),
            errors.ArgumentTypeError,
            "np.argmax(..., out=) of int32, where the result is int64: pass an array of that dtype",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_with_a_remedy(
    function: Callable[..., Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as found:
        tinyfuse.jit(function)(sample((3, 4), "float32", 1))
    assert message in str(found.value)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_degrees_of_freedom(name: str, dtype: str) -> None:
    function, x = getattr(np, name), with_runs_of_nan(dtype)
    for axis, ddof in itertools.product((None, 0, (0, 2), ()), (1, 0.5, 3, 100, -1)):
        compare(lambda x: function(x, axis=axis, ddof=ddof), x)
        compare(lambda x: function(x, axis=axis, correction=ddof, keepdims=True), x)
    compare(lambda x: function(x, mean=1.5), x)
    compare(lambda x: function(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), x)
    compare(lambda x, m: function(x, axis=1, mean=m, ddof=1), x, x[:, :1] + 0.5)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", [*SUMS, *AVERAGES, *EXTREMES, *TRUTHS])
def test_arrays_to_put_results_into(name: str, dtype: str) -> None:
    function, x = getattr(np, name), sample((3, 4, 5), dtype, 1)
    for axis, keepdims, to in itertools.product((None, 1, (0, 2)), (False, True), KINDS):
        if name.endswith("std") and np.dtype(to).kind != "f":
            continue  # refused by numpy too
        if name in EXTREMES and np.result_type(dtype, to) != to:
            continue  # numpy converts after every element
        shape = np.sum(x, axis=axis, keepdims=keepdims).shape

        def put(x: np.ndarray, out: np.ndarray) -> tuple[Any, np.ndarray]:
            returned = function(x, axis=axis, keepdims=keepdims, out=out)
            return returned + 0, out

        compare(put, x, np.zeros(shape, to))
    if not name.endswith("std"):
        compare(lambda x, out: function(x, out=out), x, np.zeros(7, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_dtypes_to_compute_in(dtype: str) -> None:
    x = sample((300, 7), dtype, 2)
    for name, to in itertools.product((*SUMS, *AVERAGES), ("f4", "f8", "i4", "u8", int)):
        compare(lambda x: getattr(np, name)(x, axis=0, dtype=to), x)
    for name, to in itertools.product(("maximum", "fmin"), ("f4", "i8", "u1", bool)):
        compare(lambda x: getattr(np, name).reduce(x, axis=0, dtype=to), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint8", "uint32", "int64"])
def test_sums_of_integers_widen(dtype: str) -> None:
    x = np.full((300, 5), np.iinfo(dtype).max if dtype != "bool" else 1, dtype)
    for name in ("sum", "prod", "nansum", "nanprod", "trace", "mean"):
        compare(lambda x: getattr(np, name)(x), x)
    wide = "uint64" if dtype.startswith("u") else "int64"
    assert tinyfuse.jit(lambda x: x.sum(0))(x).dtype == wide
    if dtype != "int64":
        assert tinyfuse.jit(lambda x: x.sum(0))(x).tolist() == [300 * int(x[0, 0])] * 5


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", FOLDING)
def test_ufuncs_that_reduce(name: str, dtype: str) -> None:
    ufunc, x = getattr(np, name), with_runs_of_nan(dtype)
    for axis, keepdims in itertools.product(AXES, (False, True)):
        compare(lambda x: ufunc.reduce(x, axis=axis, keepdims=keepdims), x)
    compare(lambda x: ufunc.reduce(x), x)
    for shape in ((0,), (0, 3), (3, 0), ()):
        compare(lambda x: ufunc.reduce(x), np.zeros(shape, dtype))
        assert_same_error(lambda x: ufunc.reduce(x, axis=None), np.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_averages_with_weights(dtype: str) -> None:
    for shape in ((3, 4), (5,), (2, 3, 4)):
        x = sample(shape, dtype, 1)
        for axis, weights in itertools.product(
            (None, 0, -1, (0, 1), (1, 0)), ("f4", "f8", "i4", "?")
        ):
            for own in (shape, shape[:1], shape[:2], shape[::-1], shape[1:]):
                w = np.abs(sample(own, weights, 3)) + np.ones((), weights)
                for options in ({}, {"keepdims": True}, {"returned": True}):
                    compare(lambda x, w: np.average(x, axis, w, **options), x, w)
            compare(lambda x: np.average(x, axis), x)
            compare(lambda x: np.average(x, axis, returned=True), x)


def test_weights_that_sum_to_zero() -> None:
    average = tinyfuse.jit(lambda x, w: np.average(x, axis=0, weights=w))
    x = np.ones((3, 2))
    assert average(x, np.array([1.0, 2.0, -1.0])).tolist() == [1, 1]
    with pytest.raises(errors.ZeroWeightsError, match="Weights sum to zero, can't be normalized"):
        average(x, np.array([1.0, 0.0, -1.0]))
    with pytest.raises(ZeroDivisionError):
        average(x, np.zeros(3))


def test_slices_of_nan_have_no_place_of_an_extreme() -> None:
    place = tinyfuse.jit(lambda x: np.nanargmax(x, axis=1))
    x = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 2.0]])
    assert place(x).tolist() == [2, 1]
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        place(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))


ORDERS = (None, 0, 1, 2, 3, -1, 0.5, 2.5, np.inf, -np.inf, "fro", "f", "bad")


@pytest.mark.parametrize("dtype", KINDS)
def test_norms(dtype: str) -> None:
    axes = (None, 0, -1, (0, 1), (1, 0), (0, 2), (-1, -2), (0,), (0, 0), "rows", 9)
    for shape, order in itertools.product([(3, 4), (5,), (3, 4, 5), (), (0,), (0, 3)], ORDERS):
        x = sample(shape, dtype, 1)
        for axis, keepdims in itertools.product(axes, (False, True)):
            if order == 2 and (isinstance(axis, tuple) or len(shape) == 2) and axis != (0,):
                continue  # singular values
            compare(lambda x: np.linalg.norm(x, order, axis, keepdims), x)
        compare(lambda x: np.linalg.vector_norm(x, ord=order), x)
        compare(lambda x: np.linalg.vector_norm(x, ord=order, axis=(0, -1), keepdims=True), x)
        if order != 2:
            compare(lambda x: np.linalg.matrix_norm(x, ord=order, keepdims=True), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_traces_of_matrices(dtype: str) -> None:
    x = sample((4, 5, 6), dtype, 2)
    for options in ({}, {"offset": 1}, {"offset": -9}, {"axis1": 2}, {"axis1": 1}, {"dtype": "f8"}):
        compare(lambda x: np.trace(x, **options), x)
        compare(lambda x: x.trace(**options), x)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
def test_what_a_mask_chose_without_nan(name: str) -> None:
    function, x = getattr(np, name), with_runs_of_nan("float64")
    close_to(lambda x: function(x[x < 1]), x)
    close_to(lambda x, m: function(x[m], axis=0), x, np.array([True, False, True]))


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_random_reductions(data: st.DataObject) -> None:
    """Any function, shape, axes and options; compiled as well, for shapes that were drawn."""
    name = data.draw(st.sampled_from([*SUMS, *AVERAGES, *EXTREMES, *TRUTHS, "ptp"]))
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 70]), max_size=3)))
    rank = len(shape)
    axes = st.lists(st.integers(-rank, rank - 1), max_size=rank) if rank else st.just([])
    axis = data.draw(st.one_of(st.none(), axes.map(tuple), st.integers(-rank - 1, rank)))
    options: dict[str, Any] = {"axis": axis, "keepdims": data.draw(st.booleans())}
    if name.endswith(("var", "std")):
        options["ddof"] = data.draw(st.sampled_from([0, 1, 2.5]))
    x = sample(shape, data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(0, 5)))
    compare(lambda x: getattr(np, name)(x, **options), x)


COMPILED = [
    (operator.methodcaller("sum"), 4e-6),
    (lambda x: np.nansum(x, axis=0), 4e-6),
    (lambda x: np.nanmean(x, axis=1, keepdims=True), 4e-6),
    (lambda x: np.nanvar(x, axis=(0, 1), ddof=1), 1e-5),
    (lambda x: np.nanmax(x, axis=-1), 0),
    (lambda x: np.nanmin(x), 0),
    (lambda x: np.fmax.reduce(x, axis=1), 0),
    (lambda x: np.nanargmin(x, axis=0), 0),
    (lambda x: np.average(x, axis=0, weights=np.arange(1, 71)), 4e-6),
    (lambda x: np.linalg.norm(x, axis=1), 4e-6),
    (lambda x: np.linalg.norm(x, np.inf), 4e-6),
]


@pytest.mark.parametrize(("function", "bound"), COMPILED)
def test_compiled(function: Callable[..., Any], bound: float) -> None:
    x = np.random.default_rng(4).standard_normal((70, 130)).astype(np.float32)
    x[3, ::7], x[5, 4] = np.nan, -0.0
    np.testing.assert_allclose(tinyfuse.jit(function)(x), function(x), rtol=bound, atol=bound)
