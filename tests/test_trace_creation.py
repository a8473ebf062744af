"""Arrays that a traced function creates: traced cells, ranges as expressions, known values."""

from __future__ import annotations

import functools
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np
import numpy as xp
import pytest
from numpy import arange, mgrid, pi, zeros
from numpy import max as max_of
from numpy.linalg import norm

import tinyfuse
from tests.trace_checking import assert_same, check, trace_call
from tinyfuse.errors import DataDependentShapeError, InvalidArgumentError, NumberConversionError
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.simplify import simplify

X = np.arange(12.0).reshape(3, 4)
I = np.array([2, 0, 1])  # noqa: E741


def filled_and_written(x: Any, i: Any) -> Any:
    z, f, o = np.zeros(4), np.full((2, 2), x[0, 0]), numpy.ones(3, np.float32)
    z[1] = x[0, 0]
    z[2:] = x[1, 2:]
    f[0] = 7
    o[i[0]] += 2
    e = np.empty(3)
    e[:] = x[:, 1]
    return z, f, o, e, np.full(3, 7), np.full((2,), [1, 2]), np.full((2, 2), x[0, :2]), np.zeros(())


def imported_names(x: Any, i: Any) -> Any:
    from numpy import ones as filled

    z = zeros((3, 4), np.float32)
    z += x.astype(np.float32)
    z[i] = 1
    import numpy as again

    w = again.zeros(3)
    w[0] = x[1, 1]
    return z, xp.zeros(2) + x[0, :2], arange(3.0) / pi, filled(2) * x[0, 0], w, mgrid[0:2, 0:3]


def lists_of_values(x: Any, i: Any) -> Any:
    out = []
    for k in range(3):  # as people write it
        out.append(x[k].sum())  # noqa: PERF401
    rows = [x[0], x[1] * 2]
    return (
        np.array(out),
        np.stack(out),
        np.array([x[0, 0], 1.0, 2]),
        np.array([[x[0, 0], x[1, 1]], [0, 1]]),
        np.array(rows),
        np.asarray([x[0, 0]], np.float32),
        np.array([x[0], [1, 2, 3, 4]]),
        np.concatenate([np.array([x[0, 0]]), x[1]]),
        np.array([x[0]])[0] * np.array((x[1, 1], i[0])).sum(),
        np.array([[x[0, 0]]]),
        np.array([np.float32(1), x[0, 0].astype(np.float32), 3]),
    )


def lists_in_place_of_arrays(x: Any, i: Any) -> Any:
    a, b, largest = x[0], x[1] * x[2], max_of
    return (
        np.max([a, b], axis=0),
        largest((a, b)),
        np.mean([a, b, a + b]),
        np.median([a, [0, 1, 2, 3.5]], axis=0),
        np.sort([b[0], 2, a[3]]),
        np.argmax([x[k].sum() for k in range(3)]),
        np.transpose([a, b])[::-1],
        np.dot([a[0], b[0], 2], x),
        np.linalg.norm([a[0], b[0]]),
        norm([a, b], axis=0),
        np.where([a[0] > 1, b[0] > 1], 1, x[0, :2]),
        np.shape([a, b]),
        np.lexsort([a, -b]),
        np.max([1, 2]) + np.max(x, axis=1),
    )


def ranges(x: Any, i: Any) -> Any:
    n = x.shape[1]
    return (
        np.where(np.arange(n)[:, None] >= np.arange(n), x.sum(), -np.inf),
        np.arange(5),
        np.arange(0, 1, 0.1),
        np.arange(3, dtype=np.float32),
        np.arange(0.1, 2, 0.3, dtype=np.float32),
        np.arange(1, 10, 3, dtype=np.int16),
        np.arange(10, 0, -2),
        np.arange(3, 3),
        np.linspace(0, 1, 11),
        np.linspace(0, 1, 10, endpoint=False),
        np.linspace(0, 3, 7, dtype=int),
        np.linspace(0.1, 0.7, 33, dtype=np.float32),
        np.linspace(1, 1, 4),
        np.linspace(0, 1, 1),
        np.linspace([0, 1], [2, 3], 4),
        np.linspace(-3, 5, 6, retstep=True),
        np.geomspace(1, 8, 4),
        np.logspace(0, 2, 3),
    )


def traced_ends(x: Any, i: Any) -> Any:
    return (
        np.linspace(x[0, 0], x[2, 3], 5),
        np.linspace(x[0], x[1], 3),
        np.linspace(x[0], x[1], 3, axis=1),
        np.linspace(x[0, 0], 5, 4, endpoint=False),
        np.linspace(x[1, 1], x[1, 1], 3),
        np.linspace(i[0], i[1], 4, dtype=int),
        np.linspace(x[0, 1], 9, 5, retstep=True),
        np.linspace(x[0, 1], 9, 1),
    )


def grids(x: Any, i: Any) -> Any:
    y, x0 = np.mgrid[0:3, 0:2]
    y[0] = 5
    return (
        np.eye(3) @ x,
        np.eye(3, 4, 1),
        np.eye(2, k=-1, dtype=bool),
        np.identity(2, np.int32),
        np.tri(3, 4, -1),
        np.indices((2, 3)),
        np.indices((2, 3), sparse=True),
        np.meshgrid(x[0], x[:, 1]),
        np.meshgrid(np.arange(3), np.arange(2), indexing="ij"),
        np.meshgrid([1.5, 2], x[0], sparse=True),
        np.fromfunction(lambda a, b: a * 10 + b, (2, 3)),
        np.fromfunction(lambda a: a % 2 == 0, (3,), dtype=int),
        (y, x0),
        np.mgrid[0:1:5j],
        np.mgrid[0:1:0.25, 0:2],
        np.mgrid[2:5],
        np.ogrid[0:3, 1:2:0.25],
        np.r_[0, x[0], 1:3],
        np.c_[x[0], x[1]],
        np.r_[1:4, 7],
    )


def copies_and_views(x: Any, i: Any) -> Any:
    y = x * 1
    same, copied = np.asarray(y), np.array(y)
    same[0] = 5
    copied[1] = 7
    contiguous, fortran = np.ascontiguousarray(y), np.asfortranarray(y.T)
    contiguous[2, 0] = 1
    fortran[1, 1] = 3
    one = np.atleast_1d(np.array(5.0))
    return (
        (y, same is y, copied, contiguous, fortran, np.copy(y), one, np.array(x[0, 0])),
        (np.asarray(x[0, 0]), np.asarray(y, np.float32), np.array(y, ndmin=3), np.array(5.0)),
        (np.full_like(x, 2), np.ones_like(x[0]), np.zeros_like(x, dtype=np.int8)),
        (np.zeros_like([1, 2]), np.empty_like(x).shape, np.full_like(np.arange(3), x[0, 1])),
        (np.array([1, 2, 4]), np.array([]), np.zeros((0, 3)), np.array([[]]), np.full(2, True)),
        (np.zeros((2, 3), order="F").T.reshape(-1), np.array((1.5, 2)), np.asarray(range(3))),
    )


def numbers_for_python(x: Any, i: Any) -> Any:
    for k in np.arange(3):
        x = x + k * x[k]
    for v in np.linspace(0, 1, 3):
        x = x * v + 1
    a = np.arange(3)
    a[1] += 1
    shape, flags, weights = np.array([2, 3]), {}, np.array([[1, 2, 1], [0, 0, 0]])
    flags[a[0]] = 1
    total = 0.0
    for row in range(2):
        for column in range(3):
            if weights[row, column]:
                total = total + weights[row, column] * x[row, column]
    return (
        x[a[1] :],
        x[a % 3],
        x[int(np.zeros(1)[0])],
        x[a[-1], a],
        a.tolist(),
        x[: np.array(2)],
        np.zeros(shape).shape,
        np.ones(shape) * x[0, 0],
        float(np.ones(2).sum()),
        f"{a[2]:03d} {np.array(0.5)[()]:.2f}",
        flags[0],
        math.sqrt(np.full(2, 4.0)[0]),
        bool((a > 0).any()),
        2 in a,
        max(a),
        len(np.zeros(4)),
        x.reshape(np.array([4, 3])),
        total,
        sorted(np.array([3, 1, 2])),
        a.item(1),
        divmod(a[2], 2),
    )


def numpy_itself(x: Any, i: Any) -> Any:
    inverse = np.linalg.inv(np.array([[2.0, 0], [0, 4]]))
    inverse[0, 0] = x[0, 0]
    window, order = np.hanning(5), np.array([3, 1, 2])
    window[2] = x[1, 1]
    order.sort()
    spread = np.arange(4)[::-1] * 1
    np.put(spread, [0], 9)
    return (
        (inverse, window, order, spread, np.sort(np.array([3, 1, 2])), np.cumsum(np.arange(4))),
        (x[np.argsort(np.array([2, 0, 1]))], np.unique(np.array([1, 1, 2])), np.arange(3).cumsum()),
        (np.linalg.eigh(np.eye(2)).eigenvalues, np.nonzero(np.arange(4) > 1)),
        (np.ones(2).std(), np.arange(3).astype(np.float16).astype(float), np.arange(4)[[True] * 4]),
    )


FUNCTIONS: list[Callable[..., Any]] = [
    *(
        filled_and_written,
        imported_names,
        lists_of_values,
        lists_in_place_of_arrays,
        ranges,
        traced_ends,
        grids,
    ),
    *(copies_and_views, numbers_for_python, numpy_itself),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_as_numpy(function: Any) -> None:
    check(function, X, I)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled(function: Any) -> None:
    jitted = tinyfuse.jit(function)
    for x in (X, X * 3 - 1):
        assert_same(jitted(x, I), function(x, I))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64"])
def test_ranges_have_numpys_bits(dtype: str) -> None:
    steps = [
        (0, 100, 1),
        (5, -60, -3),
        (0, 3, 0.1),
        (0.1, 7.3, 0.7),
        (-1e-3, 1e-3, 1e-5),
        (1, 2, 0.01),
    ]

    def function() -> Any:
        found = [np.arange(*each, dtype=dtype) for each in steps if type(each[2]) is int]
        if dtype.startswith("float"):
            found += [np.arange(*each, dtype=dtype) for each in steps]
            found += [np.linspace(*each[:2], 17, dtype=dtype) for each in steps]
            found += [np.linspace(1 / 3, 1e6 / 7, n, dtype=dtype) for n in (2, 3, 50, 1001)]
        return found

    traced = check(function)
    assert not any(v.dtype == np.int64 and v.shape for v in traced.graph.inputs)


def needed(function: Any, *args: Any) -> Graph:
    return simplify(trace_call(function, *args).graph)


def test_a_mask_of_positions_is_an_expression() -> None:
    def causal(x: Any) -> Any:
        n = x.shape[1]
        return np.where(np.arange(n)[:, None] >= np.arange(n), x.sum(), -np.inf)

    graph = needed(causal, X)
    assert [eqn.primitive.name for eqn in graph.eqns].count("iota") == 1
    assert len(graph.inputs) == 1


def test_large_constants_are_no_literals() -> None:
    graph = needed(lambda x: x + np.zeros(4) + np.array([1.0, 2, 4, 8]) + np.linspace(0, 1, 4), X)
    assert [var.shape for var in graph.inputs] == [(3, 4), (4,)]
    assert {eqn.primitive.name for eqn in graph.eqns} == {
        "iota",
        "cast",
        "elementwise",
        "broadcast",
    }


def test_equal_constants_are_one() -> None:
    graph = needed(lambda x: x * np.array([1.0, 2, 4, 8]) + np.array([1.0, 2, 4, 8]), X)
    assert len(graph.inputs) == 2


# -- what sees them


def test_helpers_of_other_modules() -> None:
    made = types.ModuleType("creating_module")
    exec(
        "import numpy as np\nfrom numpy import zeros\n"
        "def put(v):\n    z = zeros(3)\n    z[1] = v\n    return z + np.arange(3)\n",
        vars(made),
    )
    sys.modules["creating_module"] = made
    try:
        check(lambda x: made.put(x[0, 0]) + functools.partial(made.put, x[1, 1])(), X)
    finally:
        del sys.modules["creating_module"]


def test_methods_of_classes_see_numpy_itself() -> None:
    class Maker:
        def make(self) -> Any:
            return np.arange(4.0)

    def function(x: Any) -> Any:
        made = Maker().make()
        return x + made, type(made) is np.ndarray

    check(function, X)


def test_numpy_is_itself_outside_of_traces() -> None:
    kept = []

    @tinyfuse.jit
    def function(x: Any) -> Any:
        kept.append(np.zeros)
        kept.append(np)
        return x * np.ones(4), np.zeros, np

    _, creator, module = function(X)
    assert creator is np.zeros
    assert module is np
    assert type(kept[0](3)) is np.ndarray
    assert kept[1].pi == np.pi
    assert isinstance(kept[1], types.ModuleType)
    assert type(np.zeros(3)) is np.ndarray


def test_the_type_of_a_created_array() -> None:
    def function(x: Any) -> Any:
        made = np.zeros(3)
        return (
            isinstance(made, np.ndarray),
            isinstance(x, np.ndarray),
            isinstance(x[0, 0], np.float64),
        )

    check(function, X)
    # what stands for an array is of another class
    assert tinyfuse.jit(lambda x: (type(np.zeros(3)) is np.ndarray, type(x) is np.ndarray))(X) == (
        False,
        False,
    )


def test_the_array_namespace() -> None:
    def function(x: Any) -> Any:
        namespace = x.__array_namespace__()
        z = namespace.zeros(3)
        z[0] = x[0, 0]
        return z

    check(function, X)


# -- what is refused


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            lambda x: np.arange(x[0, 0]),
            DataDependentShapeError,
            "np.arange(n) of a traced n has a shape that depends on data: n must be a Python "
            "integer, len(x) or a part of x.shape",
        ),
        (
            lambda x: np.zeros(x[0, 0].astype(int)),
            NumberConversionError,
            "a Python integer (an index, a shape, range()) needs the value of a traced int64[], "
            "which is known only when the compiled function runs; use a Python int argument, "
            "len(x) or x.shape",
        ),
        (
            lambda x: np.array([x[0], x[0, :2]]),
            InvalidArgumentError,
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            "shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.",
        ),
        (lambda x: np.zeros(-1), ValueError, "negative dimensions are not allowed"),
        (lambda x: np.full(2, "a") * x, None, None),
    ],
)
def test_refusals(function: Any, error: Any, words: str | None) -> None:
    with pytest.raises(error or Exception) as raised:
        tinyfuse.jit(function)(X)
    if words:
        assert str(raised.value).split("\n")[0] == words


def test_a_known_value_that_changes_with_data_is_not_known_any_more() -> None:
    def function(x: Any) -> Any:
        n = np.zeros(2, int)
        n[0] = 3
        y = x[: n[0]]
        n[1] = x[0, 1].astype(int)
        return y, x[n[1]], n

    check(function, X)
    with pytest.raises(NumberConversionError):
        tinyfuse.jit(lambda x: range(_with(np.zeros(2, int), x[0, 1])[0]))(X)


def _with(n: Any, value: Any) -> Any:
    n[1] = value
    return n


def test_real_arrays_of_known_ones_cannot_be_written() -> None:
    class Writer:
        def write(self, array: Any) -> None:
            np.asarray(array)[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        tinyfuse.jit(lambda x: Writer().write(np.zeros(3)) or x)(X)


# -- of Python floats that are known at run time only

ARRAYS_OF_A_FLOAT = """
np.full(2, y, dtype=int), np.full(2, y, bool), np.full((), y, "f4"), np.full((2, 2), y, "u1", "F")
np.full(2, [y, 300.7], "i1"), np.full(2, [300, y], "i1"), np.full(2, 300.7, "i1"), np.full(2, y)
np.array(y, "f4"), np.array(y, bool), np.array(y), np.array(y, ndmin=2), np.array(y, copy=None)
np.asarray(y), np.asarray(y).shape, np.asarray(y).dtype, np.asarray(y)[()], np.asarray(y)[...]
np.asarray(y, dtype=x.dtype), np.asarray(y, dtype=x.dtype) * x, np.asarray(y) * x, y * x
np.asanyarray(y, bool), np.asfortranarray(y), np.ascontiguousarray(y), np.asfortranarray(y, "f4")
np.asfortranarray(x[0, 0]), np.asfortranarray(np.asarray(2)), np.ascontiguousarray(x[0, 0])
np.array([y, 1], "f4"), np.array([[y], [1]], bool), np.array([y, x[0, 0]])
np.asarray(y), y, -y
""".strip().splitlines()


def of_expression(expression: str, parameters: str) -> Any:
    space: dict[str, Any] = {"np": np}
    exec(f"def f({parameters}):\n    return {expression}\n", space)
    return space["f"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", ARRAYS_OF_A_FLOAT)
def test_arrays_of_a_run_time_float(expression: str) -> None:
    function, x = of_expression(expression, "x, y"), X.astype(np.float32)
    compiled = tinyfuse.jit(function)
    for y in (2.7, -0.0, 300.7, 1e300, math.inf, math.nan):
        assert check(function, x, y).specs[1].kind == "weak"
        assert_same(compiled(x, y), function(x, y))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8"])
@pytest.mark.parametrize(
    "create",
    [
        lambda y, dtype: np.array(y, dtype),
        lambda y, dtype: np.asarray(y, dtype),
        lambda y, dtype: np.array([y, 1], dtype),
        lambda y, dtype: np.asfortranarray(y, dtype),
    ],
)
def test_floats_that_do_not_fit_into_integers_are_refused(create: Any, dtype: str) -> None:
    compiled = tinyfuse.jit(create)
    for y in (2.7, -1.5, 300.7, 2.0**63, math.inf, math.nan):
        try:
            expected = create(y, dtype)
        except (OverflowError, ValueError) as error:
            with pytest.raises((OverflowError, ValueError), match=str(error)):
                compiled(y, dtype)
        else:
            assert_same(compiled(y, dtype), expected)


def test_numpys_own_code_asks_for_the_value_of_a_float() -> None:
    def ask(y: float) -> Any:
        numbers = np.nan_to_num(y), np.nan_to_num(y, nan=1.0, posinf=7)
        return *numbers, np.searchsorted([1, 2.0], y), np.inner(y, 2.0), np.vdot(y, y)

    for y in (0.5, 2.0, math.inf, math.nan):
        assert_same(tinyfuse.jit(ask)(y), ask(y))


NUMBERS_AS_ARRAYS = """
np.broadcast_to(s, ()), np.broadcast_arrays(s, s), np.broadcast_arrays(s, x[0, 0]), s, -s
np.expand_dims(s, ()), np.tile(s, ()), np.tile(x[0, 0], ()), np.expand_dims(x[0, 0], ())
np.reshape(s, ()), np.squeeze(s), np.transpose(s), np.asarray(s), np.copy(s), np.array([s])[0]
""".strip().splitlines()


@pytest.mark.parametrize("s", [2.5, np.float32(2.5), np.int8(3), np.array(2.5)])
@pytest.mark.parametrize("expression", NUMBERS_AS_ARRAYS)
def test_numbers_as_arrays_without_axes(expression: str, s: Any) -> None:
    function = of_expression(expression, "x, s")
    check(function, X, s)
    assert_same(tinyfuse.jit(function)(X, s), function(X, s))
