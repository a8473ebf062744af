"""jit(f, check="nan"): where a NaN or an infinity comes from."""

from __future__ import annotations

import inspect
import logging
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import NonFiniteError
from tinyfuse.graph.ir import Literal
from tinyfuse.testing import difference, random_program
from tinyfuse.testing.memory import fresh
from tinyfuse.testing.program import quietly
from tinyfuse.trace import Trace
from tinyfuse.tree import flatten

F32, F64 = np.float32, np.float64
INF, NAN = np.inf, np.nan


def entropy(x: Any) -> Any:
    logarithm = np.log(x)
    return -(x * logarithm).sum()


def overflow(x: Any) -> Any:
    y = x * F32(1e30)
    return y.sum()


def masked(x: Any, mask: Any) -> Any:
    scores = np.where(mask, x, F32(-INF))
    scores = scores - scores.max(axis=-1, keepdims=True)
    return np.exp(scores)


def converted(x: Any) -> Any:
    return x.astype(F32)


def product(x: Any, y: Any) -> Any:
    return x @ y


def running(x: Any) -> Any:
    return np.cumsum(x, axis=0)


def scattered(x: Any, at: Any) -> Any:
    total = np.zeros(3, F32)
    np.add.at(total, at, x)
    return total


def mean_of_nothing(x: Any) -> Any:
    return x[:0].mean()


@pytest.mark.parametrize(
    ("function", "args", "words", "line"),
    [
        (entropy, [np.array([0.5, 0.5, 0])],
         "log(0.0) is -inf, at [2] of float64[3]", "logarithm = np.log(x)"),
        (overflow, [np.array([1e5, 1e10, -1e20], F32)],
         "multiply(1e+10, 1e+30) is inf, at [1] of float32[3] and at 1 other place",
         "y = x * F32(1e30)"),
        (overflow, [np.array([2e8] * 4, F32)],
         "sum of finite numbers is inf", "return y.sum()"),
        (masked, [np.ones((2, 3), F32), np.array([[1, 0, 1], [0, 0, 0]], bool)],
         "subtract(-inf, -inf) is nan, at [1, 0] of float32[2, 3] and at 2 other places",
         "scores = scores - scores.max(axis=-1, keepdims=True)"),
        (converted, [np.array([[1.0, 1e300]])],
         "cast(1e+300) is inf, at [0, 1] of float32[1, 2]", "return x.astype(F32)"),
        (product, [np.array([[1.0, 1e300], [1, 1]]), np.array([[1.0, 0], [1e300, 0]])],
         "matmul of finite numbers is inf, at [0, 0] of float64[2, 2]", "return x @ y"),
        (product, [np.array([[1.0, 0], [1, 1]]), np.array([[1.0, 0], [INF, 0]])],
         "matmul of numbers, some infinite, is nan, at [0, 0] of float64[2, 2]", "return x @ y"),
        (running, [np.array([[1, 2e38], [1, 2e38], [1, -1]], F32)],
         "cumsum of finite numbers is inf, at [1, 1] of float32[3, 2] and at 1 other place",
         "return np.cumsum(x, axis=0)"),
        (scattered, [np.array([2e38, 1, 2e38], F32), np.array([1, 0, 1])],
         "add of finite numbers is inf, at [1] of float32[3]",
         "np.add.at(total, at, x)"),
        (mean_of_nothing, [np.ones(3)], "divide(0.0, 0.0) is nan", "return x[:0].mean()"),
    ],
)  # fmt: skip
def test_the_first_operation_is_named(
    function: Callable[..., Any], args: list[Any], words: str, line: str
) -> None:
    checked = tinyfuse.jit(function, check="nan")
    for _ in range(2):
        with pytest.raises(NonFiniteError) as caught:
            checked(*args)
        assert str(caught.value) == (
            f"{function.__name__}: {words}\n"
            f"  at test_finite_check.py:{line_of(function, line)}, in {function.__name__}: {line}"
        )


def line_of(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(at for at, line in enumerate(lines) if line.strip() == text)


def test_what_is_finite_is_computed() -> None:
    checked = tinyfuse.jit(entropy, check="nan")
    x = np.array([0.5, 0.25, 0.25])
    for _ in range(3):
        assert checked(x) == tinyfuse.jit(entropy)(x)
    assert len(checked.lower(x).kernels) == len(tinyfuse.jit(entropy, fuse=False).lower(x).kernels)


def test_nan_and_infinities_of_the_arguments_are_no_error() -> None:
    checked = tinyfuse.jit(entropy, check="nan")
    assert np.isnan(checked(np.array([0.5, NAN])))
    assert checked(np.array([0.5, INF])) == -INF
    with pytest.raises(NonFiniteError, match=r"log\(-1.0\) is nan, at \[2\] of float64\[3\]"):
        checked(np.array([NAN, INF, -1]))
    assert np.isnan(tinyfuse.jit(product, check="nan")(np.array([[NAN, 1]]), np.ones((2, 2)))).all()
    assert np.isnan(tinyfuse.jit(running, check="nan")(np.array([1.0, NAN, 2]))[1:]).all()
    total = tinyfuse.jit(scattered, check="nan")(np.array([INF, 1], F32), np.array([0, 1]))
    assert total.tolist() == [INF, 1, 0]


def test_constants_are_no_error() -> None:
    checked = tinyfuse.jit(lambda x: np.where(x > 0, x, np.nan) + np.full(2, INF), check="nan")
    np.testing.assert_array_equal(checked(np.array([1.0, -1])), [INF, NAN])


INSIDE = {
    "logaddexp": lambda x: np.logaddexp(x, -x * 1000),
    "nanmax": lambda x: np.nanmax(x, axis=0),
    "nanmean": lambda x: np.nanmean(x),
    "hypot": lambda x: np.hypot(x * 1e200, x * 1e200),
    "var": lambda x: x.var(axis=1),
    "sinc": lambda x: np.sinc(x),
    "interp": lambda x: np.interp(x, np.array([0.0, 1, 2]), np.array([1.0, 2, 3])),
    "quantile": lambda x: np.quantile(x, 0.3, axis=0),
    "median": lambda x: np.median(x),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    "power": lambda x: x**0.5 + np.float_power(x, 2),
    "tanh": lambda x: np.tanh(x * 1e3) + np.exp(-x * 1e3),
    "nan_to_num": lambda x: np.nan_to_num(x),
    "average": lambda x: np.average(x, weights=x, axis=0),
    "clip": lambda x: np.clip(x, None, 2),
    "std": lambda x: np.std(x, ddof=1),
    "divmod": lambda x: np.divmod(x, 0.3),
    "trapezoid": lambda x: np.trapezoid(x),
    "gradient": lambda x: np.gradient(x, axis=0),
    "histogram": lambda x: np.histogram(x, bins=4, range=(0, 4))[0],
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_numpys_functions_do_inside_is_no_error(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4) / 3
    function = INSIDE[name]
    with np.errstate(all="raise", under="ignore"):
        function(x)
    tinyfuse.jit(function, check="nan")(x)


def test_nothing_is_written_before_the_error() -> None:
    @tinyfuse.jit(check="nan")
    def step(x: Any) -> None:
        x[0] = 5
        x[:] = 1 / x

    x = np.array([1.0, 0])
    with pytest.raises(NonFiniteError, match=r"divide\(1.0, 0.0\) is inf, at \[1\]"):
        step(x)
    assert x.tolist() == [1, 0]
    y = np.array([1.0, 2])
    step(y)
    assert y.tolist() == [0.2, 0.5]


def test_captured_arrays_and_numbers() -> None:
    scale = np.array([1.0, 2])

    @tinyfuse.jit(check="nan")
    def scaled(x: Any, a: float) -> Any:
        return x * scale / a

    x = np.ones(2)
    assert scaled(x, 2.0).tolist() == [0.5, 1]
    with pytest.raises(NonFiniteError, match=r"divide\(1.0, 0.0\) is inf"):
        scaled(x, 0.0)
    scale[1] = INF
    assert scaled(x, 2.0).tolist() == [0.5, INF]
    assert scaled(x[::-1], 2.0).tolist() == [0.5, INF]


def test_the_frames_are_the_users() -> None:
    with pytest.raises(NonFiniteError) as caught:
        tinyfuse.jit(entropy, check="nan")(np.zeros(2))
    assert isinstance(caught.value, FloatingPointError)
    assert all("tinyfuse/tinyfuse" not in str(entry.path) for entry in caught.traceback)


def test_a_checked_function_is_pickled_with_its_check() -> None:
    again = pickle.loads(pickle.dumps(CHECKED))
    with pytest.raises(NonFiniteError):
        again(np.zeros(2))


def _entropy(x: Any) -> Any:
    return entropy(x)


CHECKED = tinyfuse.jit(check="nan")(_entropy)


def test_disabled_it_checks_nothing() -> None:
    with tinyfuse.disable_jit(), np.errstate(all="ignore"):
        assert np.isnan(CHECKED(np.zeros(2)))


def test_there_is_one_check() -> None:
    with pytest.raises(ValueError, match="check must be None or 'nan', not 'inf'"):
        tinyfuse.jit(entropy, check="inf")  # type: ignore[call-overload]


def _has_other_constants(trace: Trace) -> bool:
    atoms = [atom for eqn in trace.graph.eqns for atom in eqn.inputs]
    literals = [atom.value for atom in atoms if isinstance(atom, Literal)]
    return not all(map(_is_finite, [*literals, *[each.current() for each in trace.captured]]))


def _is_finite(value: Any) -> bool:
    value = np.asarray(value)
    return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def _finite(value: Any, large: bool) -> Any:
    """The array, with finite elements; large: the largest of them nearly as large as can be."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.flags.writeable:
        most = np.finfo(value.dtype).max
        finite = np.nan_to_num(value, nan=0, posinf=most, neginf=-most)
        unit = finite / max(
            np.abs(finite.real).max(initial=0), np.abs(finite.imag).max(initial=0), 1
        )
        value[...] = unit * (most / 4) if large else finite
    return value


def test_random_programs(caplog: pytest.LogCaptureFixture) -> None:
    """The same bits or an error; an error where finite arguments give something that is not."""
    caplog.set_level(logging.ERROR, "tinyfuse.compile")
    found = {"same": 0, "raises": 0, "has to": 0}
    programs = [random_program(seed) for seed in range(150)]
    for at, program in enumerate([each for each in programs if not each.captured]):
        given, again = [
            [_finite(each, at % 4 > 0) for each in fresh([*program.arguments.values()])]
            for _ in range(2)
        ]
        plain = tinyfuse.jit(program.function, fuse=False)
        trace = plain.trace(*given).trace
        expected = flatten(quietly(plain, *given))[0]
        finite = all(map(_is_finite, [*again, *expected])) or _has_other_constants(trace)
        try:
            result = flatten(quietly(tinyfuse.jit(program.function, check="nan"), *again))[0]
        except NonFiniteError:
            found["raises"] += 1
            found["has to"] += not finite
            continue
        assert finite or not all(map(_is_finite, again)), program
        for one, other in zip(expected, result, strict=True):
            assert difference(one, other) is None
        found["same"] += 1
    assert min(found.values()) > 3, found
