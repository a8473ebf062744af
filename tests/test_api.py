"""Calls of jitted functions: which functions can be jitted, with which arguments, and what differs
from the plain function (nothing)."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import pickle
import traceback
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import ArgumentError, ScheduleError, SideEffectError, UnsupportedDtypeError

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.array([2.0, 3.0, 5.0, 7.0], dtype=np.float32)

Point = namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 2


@dataclasses.dataclass
class Layer:
    weight: np.ndarray
    power: int


class Model:
    def __init__(self, weight):
        self.weight = weight

    @tinyfuse.jit
    def scale(self, x, bias=1.0):
        """Scales."""
        return x * self.weight + bias

    @tinyfuse.jit
    def remember(self, x):
        self.last = x
        return x + 1

    @classmethod
    @tinyfuse.jit
    def of_class(cls, x):
        return x + len(cls.__name__)

    @staticmethod
    @tinyfuse.jit
    def of_none(x):
        return x + 3


class Stateless:
    factor = 2

    @tinyfuse.jit
    def scale(self, x):
        return x * self.factor


@tinyfuse.jit
def module_level(x):
    return x + 1


def equal(result, expected):
    np.testing.assert_array_equal(result, expected)
    assert type(result) is type(expected)
    assert result.dtype == expected.dtype
    return True


# --- functions


def test_a_function_keeps_its_name_documentation_and_signature():
    @tinyfuse.jit
    def double(x, *, by=2):
        """Twice."""
        return x * by

    assert (double.__name__, double.__doc__) == ("double", "Twice.")
    assert str(inspect.signature(double)) == "(x, *, by=2)"
    assert equal(double(X), X * 2)
    assert equal(double(X, by=3), X * 3)


def test_a_lambda_a_partial_and_a_callable_object():
    class Adder:
        def __call__(self, x, n):
            return x + n

    assert equal(tinyfuse.jit(lambda x: x + 1)(X), X + 1)
    assert equal(tinyfuse.jit(functools.partial(np.add, X))(W), X + W)
    assert equal(tinyfuse.jit(Adder())(X, 2), X + 2)


def test_instances_of_equal_structure_share_a_program():
    Model.scale.clear_cache()
    assert equal(Model(2.0).scale(X), X * 2 + 1)
    assert equal(Model(5.0).scale(X), X * 5 + 1)
    assert equal(Model(5.0).scale(X, bias=0.5), X * 5 + np.float32(0.5))
    assert Model.scale.cache_info() == (2, 1, 256, 1)
    assert equal(Model(W).scale(X), X * W + 1)
    assert Model.scale.cache_info().misses == 2
    assert equal(Model.scale(Model(3.0), X), X * 3 + 1)
    assert Model(1.0).scale.__doc__ == "Scales."


def test_instances_without_attributes_share_a_program():
    Stateless.scale.clear_cache()
    assert equal(Stateless().scale(X), X * 2)
    assert equal(Stateless().scale(X), X * 2)
    assert Stateless.scale.cache_info().misses == 1


def test_class_and_static_methods():
    assert equal(Model.of_class(X), X + 5)
    assert equal(Model(1.0).of_class(X), X + 5)
    assert equal(Model(1.0).of_none(X), X + 3)


def test_an_assignment_to_an_attribute_is_refused():
    model = Model(1.0)
    with pytest.raises(SideEffectError):
        model.remember(X)
    assert not hasattr(model, "last")
    with tinyfuse.disable_jit():
        assert equal(model.remember(X), X + 1)
    assert model.last is X


def test_jitted_functions_are_arguments_by_identity():
    f = tinyfuse.jit(lambda x, function: function(x))
    model = Model(2.0)
    for function in (module_level, Model.of_class, model.of_class, model.scale, model.scale):
        assert equal(f(X, function), function(X))
    assert f.cache_info() == (2, 3, 256, 3)


def test_jitted_functions_are_copied_and_pickled_as_functions_are():
    assert copy.deepcopy([module_level])[0] is module_level
    assert pickle.loads(pickle.dumps(module_level)) is module_level


def test_what_cannot_be_jitted():
    with pytest.raises(TypeError, match="jit takes a function, not a int"):
        tinyfuse.jit(3)
    with pytest.raises(
        TypeError, match="jit takes a function, not a classmethod: put jit below it"
    ):
        tinyfuse.jit(classmethod(lambda cls: 1))
    with pytest.raises(TypeError, match="make_graph takes a function, not None"):
        tinyfuse.make_graph(None)
    schedule = tinyfuse.jit(module_level).lower(np.ones(3)).schedule
    with pytest.raises(TypeError, match=r"takes a function of the stages, not <schedule of .*: to"):
        tinyfuse.jit(module_level, schedule=schedule)
    with pytest.raises(ValueError, match="f has no parameter 'axes', only: x, axis"):

        @tinyfuse.jit(static_argnames="axes")
        def f(x, axis):
            return x

    with pytest.raises(ValueError, match="maxsize must be positive, not 0"):
        tinyfuse.jit(lambda x: x, maxsize=0)
    with pytest.raises(tinyfuse.errors.ThreadCountError):
        tinyfuse.jit(lambda x: x, threads=0)


# --- arguments


@pytest.mark.parametrize(
    "args",
    [
        (X, W),
        (X, 2),
        (X, True),
        (X, 2.5),
        (X, np.float64(2.5)),
        (X, np.int8(3)),
        (X.T[:, :1], np.array(3)),
        (X[::-1, ::2], np.uint8([1, 2])),
        (X.astype(">f4"), W.astype(">f8")),
        (np.zeros((0, 4), np.float32), W),
    ],
    ids=str,
)
def test_sum_of_arguments(args):
    assert equal(tinyfuse.jit(lambda a, b: a + b)(*args), args[0] + args[1])


def test_a_misaligned_array():
    misaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    misaligned[:] = [1, 2, 3, 4]
    assert not misaligned.flags.aligned
    assert equal(tinyfuse.jit(lambda x: x * 2)(misaligned), misaligned * 2)


def test_a_memory_map(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(4,))
    mapped[:] = W
    assert equal(tinyfuse.jit(lambda x: x * 2)(mapped), W * 2)


def test_containers_in_and_out():
    @tinyfuse.jit
    def f(params, points, layer):
        total = params["a"] + params["b"][0]
        return {"sum": total, "point": Point(points[0].x * 2, 1)}, [layer, None, "text"]

    params = {"a": X, "b": [W]}
    results, (layer, nothing, text) = f(params, (Point(W, None),), Layer(W, 2))
    assert equal(results["sum"], X + W)
    assert equal(results["point"].x, W * 2)
    assert results["point"].y == 1
    assert isinstance(layer, Layer)
    assert layer.weight is W
    assert (layer.power, nothing, text) == (2, None, "text")


def test_static_arguments_compile_for_each_value():
    @tinyfuse.jit
    def f(x, how, kind=None, color=Color.RED, function=np.add):
        y = x.sum() if how == "sum" else x.max()
        return function(y if kind is None else y.astype(kind), color.value)

    assert equal(f(X, "sum"), X.sum() + 2)
    assert equal(f(X, "max"), X.max() + 2)
    assert equal(f(X, "max", np.int16), X.max().astype(np.int16) + 2)
    assert equal(f(X, "max", function=np.subtract), X.max() - 2)
    assert f.cache_info() == (0, 4, 256, 4)


def test_one_true_and_one_point_zero_are_three_values():
    f = tinyfuse.jit(lambda x, n: (x, n), static_argnames="n")
    values = (1, True, 1.0, np.float32(0), np.float32(-0.0), -0.0, 0.0, (1, 0.0), (True, -0.0))
    for value in values:
        result = f(X, value)[1]
        assert repr(result) == repr(value)
    assert f.cache_info().misses == len(values)


def test_static_argnames():
    @tinyfuse.jit(static_argnames=("axis", "scale"))
    def f(x, axis, scale=1.0):
        return x.sum(axis) if scale > 1 else x.max(axis)

    assert equal(f(X, (0, 1), 2.0), X.sum())
    assert equal(f(X, axis=(1,)), X.max(1))
    assert equal(f(X, (), 0.5), X)
    message = (
        "f(): argument axis: static arguments must be hashable, and a list is not: pass a tuple, "
        "or leave it out of static_argnames"
    )
    with pytest.raises(ArgumentError) as raised:
        f(X, [0])
    assert str(raised.value).startswith(message + "\n  at test_api.py:")


def test_starred_parameters():
    f = tinyfuse.jit(lambda first, *rest, **named: first + sum(rest) + named["last"])
    assert equal(f(X, W, W, last=W), X + (W + W) + W)
    assert equal(f(X, last=W), X + 0 + W)


def test_a_wrong_call_is_worded_as_python_does():
    @tinyfuse.jit
    def f(x, y):
        return x

    with pytest.raises(TypeError, match=r"f\(\): missing a required argument: 'y'"):
        f(X)
    with pytest.raises(TypeError, match=r"f\(\): got an unexpected keyword argument 'z'"):
        f(X, X, z=1)


SUPPORTED = (
    "tinyfuse computes with bool, int8..int64, uint8..uint64, float16, bfloat16, float32, "
    "float64, complex64 and complex128: convert it with astype"
)


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (
            np.ones(3).view(np.recarray),
            ArgumentError,
            "f(): argument p: a recarray has a meaning of its own, which would be lost: pass "
            "np.asarray of it",
        ),
        (
            [X, np.ma.array(X)],
            ArgumentError,
            "f(): argument p[1]: a MaskedArray has a meaning of its own, which would be lost: pass "
            "np.asarray of it",
        ),
        (
            {"w": {1}},
            ArgumentError,
            "f(): argument p['w']: a set is neither an array nor hashable, so that tinyfuse "
            "cannot tell whether two calls mean the same: pass arrays, numbers, strings, or "
            "tuples, lists and dicts of them",
        ),
        (
            X.astype(np.longdouble),
            UnsupportedDtypeError,
            f"f(): argument p: float128[3, 4] is not supported; {SUPPORTED}",
        ),
        (
            Point(X, X.astype(object)),
            UnsupportedDtypeError,
            f"f(): argument p.y: object[3, 4] is not supported; {SUPPORTED}",
        ),
        (
            np.clongdouble(1),
            UnsupportedDtypeError,
            f"f(): argument p: complex256[] is not supported; {SUPPORTED}",
        ),
        (
            tinyfuse.ShapeDtypeStruct((2,), np.float32),
            ArgumentError,
            "f(): argument p: a ShapeDtypeStruct has no elements to compute with; it is for trace "
            "and lower",
        ),
    ],
)
def test_arguments_that_are_refused(argument, error, message):
    @tinyfuse.jit
    def f(x, p):
        return x

    with pytest.raises(error) as raised:
        f(X, argument)
    text, place = str(raised.value).split("\n  at ")
    assert text == message
    assert place.startswith("test_api.py:")
    assert place.endswith(", in test_arguments_that_are_refused: f(X, argument)")


def test_a_container_that_contains_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="a list contains itself and cannot be taken apart"):
        tinyfuse.jit(lambda x: 1)(loop)


def test_array_likes_are_converted():
    class Likeness:
        def __array__(self, dtype=None, copy=None):
            return X

    assert equal(tinyfuse.jit(lambda x: x + 1)(Likeness()), X + 1)


# --- floats


def test_python_floats_are_run_time_values():
    f = tinyfuse.jit(lambda x, a: (x * a, a * 2, a))
    for a in (1.5, -0.0, 1e30):
        product, double, same = f(X[0], a)
        assert equal(product, X[0] * a)
        assert (type(double), double) == (float, a * 2)
        assert same is a
    assert f.cache_info().misses == 1


def test_a_float_whose_value_python_needs_becomes_static(caplog):
    @tinyfuse.jit
    def f(x, a, b):
        return x * b if a > 1 else x - b

    caplog.set_level("INFO", "tinyfuse.compile")
    assert equal(f(X, 2.0, 3.0), X * 3)
    assert equal(f(X, 2.0, 4.0), X * 4)
    assert equal(f(X, 0.5, 3.0), X - 3)
    assert equal(f(X, 2.0, 3.0), X * 3)
    assert f.cache_info() == (2, 2, 256, 2)
    retraces = [m for m in caplog.messages if m.startswith("retrace f: tracing needs the value of")]
    assert len(retraces) == 1


# --- captured arrays


def test_captured_arrays_are_read_at_every_call(caplog):
    table = W.copy()
    f = tinyfuse.jit(lambda x: x * table)
    assert equal(f(X), X * W)
    table[0] = 100
    assert equal(f(X), X * table)
    table = table + 1
    assert equal(f(X), X * table)
    assert f.cache_info() == (2, 1, 256, 1)
    caplog.set_level("INFO", "tinyfuse.compile")
    table = np.ones((3, 1))
    assert equal(f(X), X * table)
    assert f.cache_info() == (2, 2, 256, 1)
    assert "recompile lambda: the captured table: float64[3, 1], was float32[4]" in caplog.messages
    table = 3
    assert equal(f(X), X * 3)


# --- inside other functions


def test_a_jitted_function_inside_another_is_a_part_of_it():
    inner = tinyfuse.jit(lambda x: x * 2)
    outer = tinyfuse.jit(lambda x: inner(x) + 1)
    assert equal(outer(X), X * 2 + 1)
    assert inner.cache_info().misses == 0
    assert len(outer.lower(X).kernels) == 1


def test_disable_jit():
    seen = []

    @tinyfuse.jit
    def f(x):
        seen.append(type(x))
        return x + 1

    with tinyfuse.disable_jit():
        assert equal(f(X), X + 1)
        with tinyfuse.disable_jit():
            pass
        f(X)
    assert seen == [np.ndarray, np.ndarray]
    assert f.cache_info().misses == 0
    f(X)
    assert f.cache_info().misses == 1


# --- errors


def frames(error):
    return [(frame.name, frame.filename) for frame in traceback.extract_tb(error.__traceback__)]


def test_errors_show_no_frame_of_ours():
    def helper(x):
        return x + np.ones(7)

    @tinyfuse.jit
    def f(x):
        return helper(x)

    with pytest.raises(ValueError, match=r"shapes \(3,4\) \(7,\)") as raised:
        f(X)
    names = [name for name, _ in frames(raised.value)]
    assert names == [
        "test_errors_show_no_frame_of_ours",
        "f",
        "helper",
    ]


def test_errors_of_the_function_itself_pass():
    def f(x):
        raise KeyError("mine")

    for attempt in (tinyfuse.jit(f), tinyfuse.jit(f).trace, tinyfuse.jit(f).lower):
        with pytest.raises(KeyError, match="mine") as raised:
            attempt(X)
        assert frames(raised.value)[-1][0] == "f"


def test_a_check_of_values_is_raised_after_the_call():
    f = tinyfuse.jit(lambda x, n: x**n)
    integers = np.array([1, 2, 3])
    assert equal(f(integers, integers), integers**integers)
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        f(integers, -integers)


def test_the_c_compiler_keeps_the_sign_of_a_zero_difference():
    def differences(x, y):
        return 0 - x.astype(np.float64), 0.0 - np.abs(y), -np.abs(y), np.float32(0) - np.abs(y)

    x, y = np.zeros(5, np.int32), np.array([0.0, -0.0, 1, np.inf, -2], np.float32)
    for result, expected in zip(tinyfuse.jit(differences)(x, y), differences(x, y), strict=True):
        assert result.tobytes() == expected.tobytes()


def test_the_c_compiler_keeps_the_sign_of_a_negated_product():
    """A product starts from +0, so that these are all +0 before they are negated."""
    pairs = [
        (np.full((6, 1), -0.0, np.float32), np.ones((1, 70), np.float32)),
        (np.array([[2.0, -4.0]]), np.array([[2.0], [1.0]])),
    ]
    for a, b in pairs:
        assert np.signbit(tinyfuse.jit(lambda a, b: -(a @ b))(a, b)).all()
        assert np.signbit(tinyfuse.jit(lambda a, b: -1 * (a @ b))(a, b)).all()
        assert not np.signbit(tinyfuse.jit(lambda a, b: 0 - (a @ b))(a, b)).any()


def test_a_schedule_of_another_program_is_refused():
    other = tinyfuse.jit(lambda x: x + 1).lower(np.ones((40, 40))).schedule
    for wrong in (other, None, "fast"):
        with pytest.raises(ScheduleError, match="which is no schedule of its stages"):
            tinyfuse.jit(lambda x: x + 1, schedule=lambda stages, wrong=wrong: wrong)(np.ones(3))


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: np.repeat(x, 1),
        lambda x: np.pad(x, 0, mode="wrap"),
        lambda x: np.full_like(x, x),
        lambda x: np.tile(x, 1),
    ],
)
def test_what_numpy_copies_is_no_view_of_the_argument(copied: Any):
    x = np.arange(4.0)
    assert not np.shares_memory(tinyfuse.jit(copied)(x), x)


def test_bounds_of_clip_that_do_not_fit_are_refused_as_by_numpy():
    x = np.array([-100, 5, 100], np.int8)
    for low, high in ((0, -1000), (200, -129)):
        with pytest.raises(OverflowError):
            tinyfuse.jit(lambda x, low=low, high=high: np.clip(x, low, high))(x)


def test_the_position_of_an_extreme_of_one_number_has_its_shape():
    x = np.array(3.0)
    assert tinyfuse.jit(lambda x: x.argmax(axis=0, keepdims=True))(x).shape == ()
