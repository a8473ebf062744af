"""Errors of tracing: their classes, their exact words, and the place they name."""

from __future__ import annotations

import inspect
import math
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import trace_call
from tinyfuse import errors
from tinyfuse.tracebacks import without_internal_frames

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Outside:
    """Whose methods are not traced, and see numpy itself."""

    copied = staticmethod(np.array)

    def halves(self, *shape: int) -> Any:
        return np.full(shape, 0.5)


OUTSIDE = Outside()


def truth_test(x: Any) -> Any:
    return x if bool(x.sum() > 1) else -x


def chained_comparison(x: Any) -> Any:
    return 0 < x < 1


def square_root_of_math(x: Any) -> Any:
    return math.sqrt(x[0, 0])


def traced_range(x: Any) -> Any:
    return range(x[0, 0].astype(int))


def outside_of_numpys_functions(x: Any) -> Any:
    return OUTSIDE.copied(x)


def contained(x: Any) -> Any:
    return 1 in x


def general_eigenvalues(x: Any) -> Any:
    return np.linalg.eigvals(x)


def drawn(x: Any) -> Any:
    return x + np.random.default_rng(0).normal(size=4)


def method_that_is_not_listed(x: Any) -> Any:
    return x.tobytes()


def reduced_in_parts(x: Any) -> Any:
    return np.add.reduceat(x[0], x[0].argsort())


def different_shapes(x: Any) -> Any:
    return x + np.ones(3)


def different_inner_extents(x: Any) -> Any:
    return x @ x


def unfitting_reshape(x: Any) -> Any:
    return x.reshape(5, 5)


def axis_out_of_bounds(x: Any) -> Any:
    return x.max(axis=3)


def index_out_of_bounds(x: Any) -> Any:
    return x[7]


def too_many_indices(x: Any) -> Any:
    return x[0, 0, 0]


def masked(x: Any) -> Any:
    return x[x > 1]


def where_is_it(x: Any) -> Any:
    return np.where(x > 1)


def bits_of_floats(x: Any) -> Any:
    return x & x


def half(x: Any) -> Any:
    return np.cumsum(x.astype(np.float16))


def complex_median(x: Any) -> Any:
    return np.median(x * 1j)


def complex_arcsine(x: Any) -> Any:
    return np.arcsin(x * 1j)


def complex_running_product(x: Any) -> Any:
    return np.multiply.accumulate(x * 1j)


def wider_complex_array(x: Any) -> Any:
    return x + np.ones(4, np.clongdouble)


def conversion_to_long_double(x: Any) -> Any:
    return x.astype(np.longdouble)


def nothing_to_maximize(x: Any) -> Any:
    return x[:0].max()


def misspelt_argument(x: Any) -> Any:
    return x.sum(axes=1)


def word_for_an_axis(x: Any) -> Any:
    return np.sum(x, axis="rows")


def large_integer(x: Any) -> Any:
    return x.astype(np.uint8) + 300


def negative_power(x: Any) -> Any:
    return x.astype(int) ** -1


def assignment_of_another_shape(x: Any) -> Any:
    x[0] = np.ones(3)
    return x


def augmented_assignment(x: Any) -> Any:
    np.zeros_like(x, np.int32).__itruediv__(2)
    return x


def output_of_another_shape(x: Any) -> Any:
    return np.add(x, x, out=x[0])


def output_of_another_dtype(x: Any) -> Any:
    return np.argmax(x, axis=0, out=np.zeros_like(x[0], np.int32))


def read_only(x: Any) -> Any:
    np.broadcast_to(x, (2, 3, 4))[0] = 1
    return x


def read_only_output(x: Any) -> Any:
    return np.negative(x, out=np.broadcast_to(x, (3, 4)))


def integer_beyond_the_dtype(x: Any) -> Any:
    x.astype(np.int8)[0] = 300


def nan_as_an_integer(x: Any) -> Any:
    x.astype(np.int64)[0] = float("nan")


def array_of_another_making(x: Any) -> Any:
    return np.add(x, 1, out=OUTSIDE.halves(3, 4))


def resized(x: Any) -> Any:
    x.resize(20)


def resized_in_place(x: Any) -> Any:
    x.resize(20)
    return x


def shape_assignment(x: Any) -> Any:
    x.shape = (12,)
    return x


def einsum_in_another_order(x: Any) -> Any:
    return np.einsum("ij->ji", x, order="F")


FUNCTION_RUNS = "which is known only when the compiled function runs; use"
TRUTH = f"""\
`if`, `while`, `and`, `or`, `not` or bool() needs the value of a traced bool[], {FUNCTION_RUNS} \
np.where(condition, a, b) in place of `if`, & | ~ in place of and, or, not"""
AMBIGUOUS = f"""\
The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(): truth \
test needs the value of a traced bool[3, 4], {FUNCTION_RUNS} np.where or & | ~"""
REAL_ARRAY = "code outside numpy's functions (or np.array in a method of a class) needs the value"
JOIN = (
    f"{FUNCTION_RUNS} x itself, x.astype(dtype), or np.stack([x, y]) in place of np.array([x, y])"
)

CASES: list[tuple[Callable[..., Any], type[Exception], type[Exception], str]] = [
    (truth_test, errors.BoolConversionError, ValueError, TRUTH),
    (chained_comparison, errors.BoolConversionError, ValueError, AMBIGUOUS),
    (
        square_root_of_math,
        errors.NumberConversionError,
        TypeError,
        f"float() (or a function of `math`) needs the value of a traced float32[], {FUNCTION_RUNS} "
        "x.astype(np.float64), and np.sqrt, np.exp ... in place of those of `math`",
    ),
    (
        traced_range,
        errors.NumberConversionError,
        TypeError,
        "a Python integer (an index, a shape, range()) needs the value of a traced int64[], "
        f"{FUNCTION_RUNS} a Python int argument, len(x) or x.shape",
    ),
    (
        outside_of_numpys_functions,
        errors.ArrayConversionError,
        TypeError,
        f"{REAL_ARRAY} of a traced float32[3, 4], {JOIN}",
    ),
    (
        contained,
        errors.BoolConversionError,
        ValueError,
        f"`in` needs the value of a traced float32[3, 4], {FUNCTION_RUNS} (x == value).any()",
    ),
    (
        general_eigenvalues,
        errors.UnlistedFunctionError,
        TypeError,
        "np.linalg.eigvals is not traced: it needs eigenvalues of matrices that are not "
        "symmetric: call it outside of the traced function",
    ),
    (
        drawn,
        errors.SideEffectError,
        RuntimeError,
        "np.random.default_rng draws while the function is traced, so that every call would have "
        "the same numbers: pass a key, and write tinyfuse.random.normal(key, ...), or draw outside "
        "of the traced function and pass the array",
    ),
    (
        method_that_is_not_listed,
        errors.UnlistedAttributeError,
        AttributeError,
        "x.tobytes is not among the attributes of an array that tinyfuse traces, which dir(x) "
        "lists",
    ),
    (
        reduced_in_parts,
        errors.DataDependentShapeError,
        TypeError,
        "np.add.reduceat at indices that are known at run time only: write np.add.at(result, "
        "piece_of_each, x)",
    ),
    (
        different_shapes,
        errors.ShapeError,
        ValueError,
        "operands could not be broadcast together with shapes (3,4) (3,): float32[3, 4], "
        "float64[3]",
    ),
    (
        different_inner_extents,
        errors.ShapeError,
        ValueError,
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        "(n?,k),(k,m?)->(n?,m?) (size 3 is different from 4): float32[3, 4] @ float32[3, 4]",
    ),
    (
        unfitting_reshape,
        errors.ShapeError,
        ValueError,
        "cannot reshape array of size 12 into shape (5,5)",
    ),
    (
        axis_out_of_bounds,
        errors.AxisError,
        np.exceptions.AxisError,
        "axis 3 is out of bounds for array of dimension 2",
    ),
    (
        index_out_of_bounds,
        errors.IndexingError,
        IndexError,
        "index 7 is out of bounds for axis 0 with size 3",
    ),
    (
        too_many_indices,
        errors.IndexingError,
        IndexError,
        "too many indices for array: array is 2-dimensional, but 3 were indexed",
    ),
    (
        masked,
        errors.DataDependentShapeError,
        TypeError,
        "the function returns x[mask]: the shape of x[mask] depends on data: compute on all "
        "elements and choose with np.where(mask, x, other), reduce it (x[mask].sum()), or put it "
        "back under the same mask (y[mask] = ...)",
    ),
    (
        where_is_it,
        errors.DataDependentShapeError,
        TypeError,
        "np.where(condition) has a shape that depends on data: choose between two arrays with "
        "np.where(condition, a, b)",
    ),
    (
        bits_of_floats,
        errors.DtypeError,
        TypeError,
        "ufunc 'bitwise_and' not supported for the input types, and the inputs could not be safely "
        "coerced to any supported types according to the casting rule ''safe'': float32[3, 4], "
        "float32[3, 4]",
    ),
    (
        half,
        errors.UnsupportedDtypeError,
        TypeError,
        "np.add.accumulate of float16[12] gives float16, which tinyfuse does not support: convert "
        "the array before, with astype(np.float32)",
    ),
    (
        complex_median,
        errors.UnsupportedDtypeError,
        TypeError,
        "np.median of complex numbers is not supported: call it with x.real, x.imag or abs(x), or "
        "compute with numpy outside of the traced function",
    ),
    (
        complex_arcsine,
        errors.UnsupportedDtypeError,
        TypeError,
        "np.arcsin of complex numbers is not supported: write it with those that are, as np.exp, "
        "np.log and np.sqrt",
    ),
    (
        complex_running_product,
        errors.UnsupportedDtypeError,
        TypeError,
        "np.multiply.accumulate of complex numbers is not supported: write a loop over the "
        "elements",
    ),
    (
        wider_complex_array,
        errors.UnsupportedDtypeError,
        TypeError,
        "an array of dtype complex256 meets a traced array; tinyfuse computes with bool, "
        "int8..int64, uint8..uint64, float16, bfloat16, float32, float64, complex64 and "
        "complex128: convert it to a supported dtype with astype",
    ),
    (
        conversion_to_long_double,
        errors.UnsupportedDtypeError,
        TypeError,
        "the dtype float128 is not supported; supported are bool, int8..int64, uint8..uint64, "
        "float16, bfloat16, float32, float64, complex64 and complex128",
    ),
    (
        nothing_to_maximize,
        errors.InvalidArgumentError,
        ValueError,
        "zero-size array to reduction operation maximum which has no identity: float32[0, 4]",
    ),
    (
        misspelt_argument,
        errors.ArgumentTypeError,
        TypeError,
        "sum() got an unexpected keyword argument 'axes'",
    ),
    (
        word_for_an_axis,
        errors.ArgumentTypeError,
        TypeError,
        "'str' object cannot be interpreted as an integer",
    ),
    (
        large_integer,
        errors.IntegerRangeError,
        OverflowError,
        "Python integer 300 out of bounds for uint8",
    ),
    (
        negative_power,
        errors.NegativePowerError,
        ValueError,
        "Integers to negative integer powers are not allowed.",
    ),
    (
        assignment_of_another_shape,
        errors.ShapeError,
        ValueError,
        "could not broadcast input array from shape (3,) into shape (4,)",
    ),
    (
        augmented_assignment,
        errors.DtypeError,
        TypeError,
        "Cannot cast ufunc 'divide' output from dtype('float64') to dtype('int32') with casting "
        "rule 'same_kind'",
    ),
    (
        output_of_another_shape,
        errors.ShapeError,
        ValueError,
        "non-broadcastable output operand with shape (4,) doesn't match the broadcast shape (3,4)",
    ),
    (
        output_of_another_dtype,
        errors.ArgumentTypeError,
        TypeError,
        "np.argmax(..., out=) of int32, where the result is int64: pass an array of that dtype",
    ),
    (read_only, errors.InvalidArgumentError, ValueError, "assignment destination is read-only"),
    (read_only_output, errors.InvalidArgumentError, ValueError, "output array is read-only"),
    (
        integer_beyond_the_dtype,
        errors.IntegerRangeError,
        OverflowError,
        "Python integer 300 out of bounds for int8",
    ),
    (
        nan_as_an_integer,
        errors.InvalidArgumentError,
        ValueError,
        "cannot convert float NaN to integer",
    ),
    (
        array_of_another_making,
        errors.InPlaceWriteError,
        TypeError,
        "a traced value is written into an array that was not made by numpy's functions in the "
        "traced function: make it with np.zeros or np.empty there, or pass it as an argument",
    ),
    (
        resized,
        errors.InPlaceWriteError,
        TypeError,
        "x.resize changes an array in place, which tinyfuse does not trace: make a new array, with "
        "np.concatenate or a slice",
    ),
    (
        resized_in_place,
        errors.InPlaceWriteError,
        TypeError,
        "x.resize changes an array in place, which tinyfuse does not trace: make a new array, with "
        "np.concatenate or a slice",
    ),
    (
        shape_assignment,
        errors.InPlaceWriteError,
        TypeError,
        "assigning to x.shape changes the array in place: write x = x.reshape(shape)",
    ),
    (
        einsum_in_another_order,
        errors.UnsupportedArgumentError,
        TypeError,
        "np.einsum(..., order=) is not supported: leave it out",
    ),
]


def failure(function: Callable[..., Any], *args: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        trace_call(function, *args)
    return caught.value


@pytest.mark.parametrize(
    ("function", "cls", "base", "words"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_words_and_place(
    function: Callable[..., Any], cls: type[Exception], base: type[Exception], words: str
) -> None:
    error = failure(function, X)
    assert type(error) is cls
    assert isinstance(error, errors.TinyfuseError)
    assert isinstance(error, base)
    lines, first = inspect.getsourcelines(function)
    place = f"test_errors.py:{first + 1}, in {function.__name__}: {lines[1].strip()}"
    assert str(error) == f"{words}\n  at {place}"


def test_statements_of_several_lines_are_shown_in_one() -> None:
    def added(x: Any) -> Any:
        return (
            x +
            np.ones(7)
        )  # fmt: skip

    assert str(failure(added, X)).endswith("in added: return ( x + np.ones(7) )")


def test_a_leaked_tracer() -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        kept.append(x * 2)
        return x

    trace_call(leaking, X)
    words = (
        "; it stands for an array only while its function is traced: return the value from the "
        "function instead of keeping it"
    )
    with pytest.raises(errors.LeakedTracerError) as caught:
        kept[0] + 1
    assert str(caught.value).split("\n")[0] == (
        "a traced array was used after its trace had ended" + words
    )
    error = failure(lambda x: x + kept[0], X)
    assert type(error) is errors.LeakedTracerError
    assert str(error).split("\n")[0] == (
        "a traced array was used inside the trace of another function" + words
    )
    assert type(failure(lambda x: kept[0], X)) is errors.LeakedTracerError


def test_changed_arguments() -> None:
    def assigning(state: Any) -> Any:
        state["x"] = state["x"] + 1
        return state["x"]

    def growing(state: Any) -> Any:
        state["y"] = state["x"]
        return state["x"]

    line = assigning.__code__.co_firstlineno
    assert str(failure(assigning, {"x": X})) == (
        "the traced function assigns a new value (float32[3, 4]) to state_x, inside an argument, "
        "which would happen while tracing only: return the new value instead\n"
        f"  at test_errors.py:{line}, in assigning"
    )
    assert str(failure(growing, {"x": X})).startswith(
        "the traced function adds to or removes from a list, dict or object among its arguments, "
        "which would happen while tracing only: return the new value instead\n  at test_errors.py:"
    )


def test_a_real_array_that_is_written_after_its_use() -> None:
    def writing(x: Any) -> Any:
        weights = OUTSIDE.halves(4)
        y = x * weights
        weights[0] = 3
        return y * weights

    error = failure(writing, X)
    assert type(error) is errors.SideEffectError
    assert str(error) == (
        "an array that a traced operation uses was written afterwards; write all its elements "
        "before the first traced operation that uses it, or use a new array\n"
        f"  at test_errors.py:{writing.__code__.co_firstlineno + 2}, in writing: y = x * weights"
    )


def test_the_traceback_ends_at_the_users_line() -> None:
    error = without_internal_frames(failure(different_shapes, X))
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "different_shapes"
    assert not any(
        "/tinyfuse/trace/" in f.filename for f in traceback.extract_tb(error.__traceback__)
    )


def test_except_clauses_of_the_user_work() -> None:
    def careful(x: Any) -> Any:
        try:
            return x + np.ones(3)
        except ValueError:
            return x + np.ones(4)

    assert trace_call(careful, X).graph.outputs[0].shape == (3, 4)


def test_every_error_explains_itself() -> None:
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, errors.TinyfuseError):
            assert cls.__doc__, name
            assert len(cls.__doc__.split("\n")) > 4 or cls is errors.TinyfuseError, name
            assert cls.__module__ == "tinyfuse.errors"
            assert pickle.loads(pickle.dumps(cls("no"))).args == ("no",)


def test_supported_functions_can_be_called_and_others_say_where_they_are_listed() -> None:
    names = tinyfuse.supported_functions()
    assert list(names) == sorted(set(names))
    assert {"np.sum", "np.zeros", "np.add", "np.matmul", "np.linalg.norm"} < set(names)
    assert not {"np.nonzero", "np.allclose", "np.roots"} & set(names)
    for name in names:
        assert callable(eval(name, {"np": np})), name


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.mena(), "ndarray' object has no attribute 'mena'. Did you mean: 'mean'?"),
        (lambda x: x[0, 0].mena, "float32' object has no attribute 'mena'. Did you mean: 'mean'?"),
        (lambda x: x.iloc[0], "ndarray' object has no attribute 'iloc'\n"),
    ],
)
def test_misspelt_attributes(function: Any, words: str) -> None:
    with pytest.raises(errors.UnlistedAttributeError) as raised:
        tinyfuse.jit(function)(X)
    assert str(raised.value).startswith(f"'numpy.{words}")
    assert "\n  at test_errors.py:" in str(raised.value)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [Path(frame.filename).name for frame in frames] == ["test_errors.py"] * 2


def test_attributes_that_are_asked_for() -> None:
    def asked(x: Any) -> Any:
        return x if not hasattr(x, "iloc") and getattr(x, "values", 1) == 1 else -x

    np.testing.assert_array_equal(tinyfuse.jit(asked)(X), X)
