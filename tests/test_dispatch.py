"""Direct calls: which calls are, that they give what the long way gives, and what they cost."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
import tinyfuse.direct as direct_module
import tinyfuse.dispatch as dispatch_module
from tests.runtime_programs import ROOT, answering, run_python
from tinyfuse.direct import direct
from tinyfuse.dispatch import MOST_CALLS, Dispatcher, extension
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import ArgumentError, SideEffectError
from tinyfuse.jitted import JittedFunction
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
N = np.array([2, 0, 1])
TABLE = np.array([2.0, 3.0, 5.0, 7.0], np.float32)
PARAMETERS = {"weight": TABLE, "bias": [np.float32(1), 2.5]}
FACTOR = 3

Pair = namedtuple("Pair", "first second")


class Model:
    def __init__(self, weight):
        self.weight = weight

    @tinyfuse.jit
    def scale(self, x):
        return x * self.weight


needs_extension = pytest.mark.skipif(extension is None, reason="the extension is not in use")


def counted(x):
    count = 0
    for i in range(12):
        if x[i] > 3:
            count += i
    return count, count * 0.5


def helper(x):
    return x + FACTOR


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions whose calls went the long way."""
    names: list[str] = []
    slowly = JittedFunction._slowly

    def noted(self, /, *args, **kwargs):
        names.append(self.__name__)
        return slowly(self, *args, **kwargs)

    monkeypatch.setattr(JittedFunction, "_slowly", noted)
    return names


def equal(result: Any, expected: Any) -> bool:
    """The same values, bit for bit, in the same containers and of the same types."""
    assert type(result) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        return all(map(equal, result, expected))
    if isinstance(expected, dict):
        assert list(result) == list(expected)
        return all(map(equal, result.values(), expected.values()))
    if isinstance(expected, (np.ndarray, np.generic)):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        return bool(result.tobytes() == expected.tobytes())
    return bool(result == expected)


def calls(f: Callable[..., Any], *args: Any, count: int = 4, **kwargs: Any) -> JittedFunction:
    """A jitted function that was called, and gave what the plain one gives, so many times."""
    jitted = tinyfuse.jit(f)
    for _ in range(count):
        assert equal(jitted(*args, **kwargs), f(*args, **kwargs))
    return jitted


WEIGHT = 2.5


DIRECT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "three arrays": (lambda x, y, w: x * y + w, (X, Y, TABLE), {}),
    "no arrays in": (lambda n: np.arange(5.0) * n, (2.5,), {}),
    "no arguments": (lambda: np.ones(3) + 1, (), {}),
    "a float": (lambda x, a: x * a, (X, 0.1), {}),
    "a numpy scalar": (lambda x, a: x * a, (X, np.float64(0.1)), {}),
    "numpy scalars": (lambda a, b, c: a + b * c, (np.int8(3), np.bool_(True), np.uint64(5)), {}),
    "a number known while tracing": (lambda x, n: x * n, (X, 3), {}),
    "a large number": (lambda x, n: x * n, (X.astype(np.int64), 10**12), {}),
    "an option": (lambda x, how: x.sum() if how == "sum" else x.max(), (X, "sum"), {}),
    "none and a flag": (lambda x, a, b: x + 1 if b and a is None else x, (X, None, True), {}),
    "a keyword": (lambda x, axis: x.sum(axis=axis), (X,), {"axis": 1}),
    "a keyword-only argument": (lambda x, *, scale: x * scale, (X,), {"scale": 2.5}),
    "a default": (lambda x, n=3, a=0.5: x * n + a, (X,), {}),
    "some of the defaults": (lambda x, n=3, a=0.5: x * n + a, (X,), {"a": 1.5}),
    "a function": (lambda x, f: f(x) + 1, (X, np.negative), {}),
    "a dtype": (lambda x, t: x.astype(t), (X, np.dtype(np.int16)), {}),
    "a starred parameter": (lambda *all: all[0] + all[1] * all[2], (X, Y, X), {}),
    "0 dimensions": (lambda x: x + 1, (np.array(2.5),), {}),
    "size 0": (lambda x: x + 1, (np.zeros((0, 4)),), {}),
    "a reshape": (lambda x: x.reshape(-1) + 1, (X,), {}),
    "a scalar out": (lambda x: x.sum(), (X,), {}),
    "a flag out": (lambda x: (x > 3).any(), (X,), {}),
    "a float out": (lambda x, a: (x * a, a * 2, a), (X, 0.1), {}),
    "an integer out": (lambda x: counted(x), (X.ravel(),), {}),
    "two outputs": (lambda x, y: (x + y, x - y), (X, Y), {}),
    "one output twice": (lambda x: [z := x + 1, z], (X,), {}),
    "a list": (lambda x, y: [x + y, x.max()], (X, Y), {}),
    "a dictionary": (lambda x, y: {"sum": x + y, "parts": (x * 2, 5, "text")}, (X, Y), {}),
    "a named tuple": (lambda x: Pair(x + 1, None), (X,), {}),
    "an argument that comes back": (lambda x, y: (x, x + y, y), (X, np.float32(2)), {}),
    "a captured array": (lambda x: x * TABLE, (X,), {}),
    "a captured array that comes back": (lambda x: (x + 1, TABLE), (X,), {}),
    "parts of a captured dictionary": (lambda x: x * PARAMETERS["weight"], (X,), {}),
    "a captured number": (lambda x: x * FACTOR + WEIGHT, (X,), {}),
    "a helper": (helper, (X,), {}),
    "a list of arrays": (lambda p: p[0] + p[1], ([X, Y],), {}),
    "weights of many layers": (lambda p: p[0] + p[-1], ([X + i for i in range(200)],), {}),
    "containers in containers": (
        lambda p, n: p["a"][0] * p["b"].first + n + p["b"].second,
        ({"a": (X, 2), "b": Pair(Y, 0.5), "c": None}, 2),
        {},
    ),
    "an object": (lambda m, x: x * m.weight, (Model(TABLE), X), {}),
    "a container as a keyword": (lambda x, p: x + p["weight"], (X,), {"p": PARAMETERS}),
    "a check": (lambda x, n: x[n], (X, N), {}),
    "integer powers": (lambda n, m: n**m, (N, N), {}),
}


@pytest.mark.parametrize("name", DIRECT)
def test_direct_calls(name: str, slow: list[str]):
    f, args, kwargs = DIRECT[name]
    jitted = calls(f, *args, **kwargs)
    assert len(slow) == 2  # the first compiles, the second finds out how to do without
    assert jitted.cache_info() == (3, 1, 256, 1)


def test_dynamic_integers_are_direct_calls(slow: list[str]):
    def f(x: Any, n: int, *, m: int = 4) -> Any:
        return x * n, n + m, n, n * 0.5

    jitted = tinyfuse.jit(f, dynamic=("n", "m"))
    for n in (3, -5, 2**63 - 5, -(2**63), 0):
        assert equal(jitted(N, n), f(N, n))
        assert equal(jitted(N, n, m=2), f(N, n, m=2))
    assert len(slow) == 3  # the first compiles, then each form is found out about
    assert jitted.cache_info().misses == 1
    assert equal(jitted(N, np.int64(3)), f(N, 3))
    assert len(slow) == 4
    for wrong in (2**63, -(2**63) - 1):
        with pytest.raises(ArgumentError):
            jitted(N, wrong)


def test_a_direct_call_of_a_closure(slow: list[str]):
    table, count = TABLE.copy(), 2
    calls(lambda x: x * table + count, X)
    assert len(slow) == 2


def test_a_direct_call_of_arrays_that_no_variable_holds(slow: list[str]):
    calls(lambda x: x + np.array([1, 2, 3, 4.5]), X)
    assert len(slow) == 2


MODEL = Model(TABLE)


def test_a_direct_call_with_attributes_of_an_object(slow: list[str], monkeypatch):
    f = calls(lambda x: x * MODEL.weight, X)
    assert len(slow) == 2
    monkeypatch.setattr(MODEL, "weight", TABLE + 1)
    assert equal(f(X), X * (TABLE + 1))
    assert len(slow) == 2
    monkeypatch.setattr(MODEL, "weight", 2.0)
    assert equal(f(X), X * 2)
    assert len(slow) == 3


def misaligned() -> np.ndarray:
    array = np.zeros(12 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(3, 4)
    array[:] = X
    assert not array.flags.aligned
    return array


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: x + 1, (np.asfortranarray(X),)),
        (lambda x: x + 1, (X[:, ::-1],)),
        (lambda x: x + 1, (X.astype(">f4"),)),
        (lambda x: x + 1, (misaligned(),)),
        (lambda p: p["x"] + 1, (OrderedDict(x=X),)),
        (lambda x: x.T, (X,)),
        (lambda x: (y := x + 1, y[1:]), (X,)),
        (lambda x: (x + 1, x + 1), (X,)),
    ],
    ids=[
        "F order",
        "reversed",
        "swapped",
        "misaligned",
        "ordered",
        "view",
        "view of a sum",
        "twice",
    ],
)
def test_calls_that_are_not_direct(f: Callable[..., Any], args: tuple[Any, ...], slow: list[str]):
    jitted = calls(f, *args)
    assert len(slow) == 4
    assert jitted.cache_info() == (3, 1, 256, 1)


def test_writes_are_not_direct(slow: list[str]):
    @tinyfuse.jit
    def f(x):
        x += 1
        return x.sum()

    x = np.zeros(3)
    assert [f(x) for _ in range(4)] == [3, 6, 9, 12]
    assert len(slow) == 4


@pytest.mark.parametrize(
    "other",
    [
        np.asfortranarray(X),
        X[::-1],
        X[:, ::2],
        X.astype(np.float64),
        X.astype(">f4"),
        misaligned(),
        X[:2],
        X[0],
        np.float32(3),
        2.5,
        X.astype(np.int8),
        np.broadcast_to(X[0], (3, 4)),
    ],
    ids=str,
)
def test_other_arguments_are_told_apart(other: Any):
    """By a function that has direct calls, for arrays like X."""
    f = calls(lambda x: x * 2 + 1, X)
    for _ in range(3):
        assert equal(f(other), other * 2 + 1)
        assert equal(f(X), X * 2 + 1)


def test_a_subclass_is_refused_also_after_direct_calls():
    f = calls(lambda x: x + 1, X)
    with pytest.raises(ArgumentError, match="a MaskedArray has a meaning of its own"):
        f(np.ma.array(X))
    assert equal(f(X), X + 1)


def test_values_that_are_nearly_the_same_are_told_apart():
    f = tinyfuse.jit(lambda x, n: (x + 1, n), static_argnames="n")
    values = [1, True, 1.0, np.float32(1), 0.0, -0.0, np.float64(0), "a", b"a", None, (1,), (1.0,)]
    for _ in range(4):
        for value in values:
            result = f(X, value)[1]
            assert (type(result), repr(result)) == (type(value), repr(value))
    assert f.cache_info().misses == len(values)


def test_equal_values_are_direct_calls_whatever_object_they_are(slow: list[str]):
    f = tinyfuse.jit(lambda x, n, name: x * n + len(name))
    for turn in range(5):
        assert equal(f(X, int(f"{10**9}"), "".join(["a", "b" * 3])), X * 10**9 + 4), turn
    assert len(slow) == 2


def test_more_signatures_than_are_tried_directly(slow: list[str]):
    f = tinyfuse.jit(lambda x: x * 2)
    arrays = [np.arange(float(n)) for n in range(1, MOST_CALLS + 4)]
    for _ in range(3):
        for x in arrays:
            assert equal(f(x), x * 2)
    assert f.cache_info() == (2 * len(arrays), len(arrays), 256, len(arrays))
    slow.clear()
    for _ in range(3):
        for x in arrays[-MOST_CALLS:]:
            assert equal(f(x), x * 2)
    assert slow == []


def test_keywords_in_any_order(slow: list[str]):
    f = tinyfuse.jit(lambda x, y, z: x - y * z)
    for _ in range(3):
        assert equal(f(X, z=Y, y=X), X - X * Y)
        assert equal(f(X, y=X, z=Y), X - X * Y)
        assert equal(f(z=Y, x=X, y=X), X - X * Y)
    assert len(slow) == 4  # one program, three forms of calls
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        f(X, x=X, y=X)
    with pytest.raises(TypeError, match="missing a required argument: 'z'"):
        f(X, Y)


def test_containers_are_told_apart():
    f = calls(lambda p: sum(p.values()) if isinstance(p, dict) else sum(p), {"a": X, "b": Y})
    others = [[X, Y], (X, Y), [X], {"a": X}, {"b": X, "a": Y}, {"a": X, "c": Y}, Pair(X, Y)]
    others += [
        OrderedDict(a=X, b=Y),
        {"a": X, "b": 2.5},
        {"a": X, "b": 2},
        {"a": X, "b": X[:, :1]},
    ]
    for _ in range(3):
        for other in others:
            expected = sum(other.values()) if isinstance(other, dict) else sum(other)
            assert equal(f(other), expected)
        assert equal(f({"a": Y, "b": X}), 0 + Y + X)
    assert f.cache_info().misses == len(others) + 1


def random_leaf(generator: random.Random) -> Any:
    dtype = generator.choice(["f4", "f8", "i4", "i8", "u1", "?"])
    values = np.arange(6).reshape(2, 3) % 4
    array = values.astype(generator.choice(["<", "<", "<", ">"]) + dtype)
    layouts = [array, array, array, array.T, array[:, ::-1], np.asfortranarray(array), array[:1]]
    leaves = [2.5, -0.0, 3, True, None, "text", array.dtype.type(1), np.array(1, dtype)]
    return generator.choice([*layouts, *leaves])


def random_argument(generator: random.Random, depth: int = 2) -> Any:
    """A leaf, or a container of some."""
    if not depth or generator.random() < 0.5:
        return random_leaf(generator)
    parts = [random_argument(generator, depth - 1) for _ in range(generator.randint(0, 2))]
    kinds: list[Callable[[list[Any]], Any]] = [
        list,
        tuple,
        lambda parts: dict(zip("ab", parts, strict=False)),
        lambda parts: Pair(*parts, *[1] * (2 - len(parts))),
        lambda parts: Model(parts),
    ]
    return generator.choice(kinds)(parts)


def shown(value: Any) -> Any:
    """What can be compared of a value, bit for bit; objects by what is in them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value), value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, Model):
        return Model, shown(value.weight)
    if isinstance(value, dict):
        return [(key, shown(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    return type(value), repr(value)


def leaves_of(value: Any) -> list[Any]:
    if isinstance(value, Model):
        return leaves_of(value.weight)
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves_of(part)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [value]


def numbers(x: Any, y: Any = 1.5, *, z: Any = None) -> Any:
    """Each number by itself, once more and half; what is none as it is."""
    computed = [
        leaf * 0.5 + 1 if isinstance(leaf, (np.ndarray, np.generic, float)) else leaf
        for leaf in leaves_of((x, y, z))
    ]
    return computed, {"x": x}


@pytest.mark.parametrize("seed", range(6))
def test_random_calls(seed: int):
    """A few calls many times over, in any order: what one left must not serve another."""
    generator = random.Random(seed)
    calls = []
    for _ in range(24):
        args = [random_argument(generator) for _ in range(generator.randint(1, 2))]
        kwargs = {"z": random_argument(generator)} if generator.random() < 0.5 else {}
        if len(args) == 1 and generator.random() < 0.3:
            kwargs = {"y": random_argument(generator), **kwargs}
        calls.append((args, kwargs, shown(numbers(*args, **kwargs))))
    f = tinyfuse.jit(numbers)
    for _ in range(200):
        args, kwargs, expected = generator.choice(calls)
        assert shown(f(*args, **kwargs)) == expected, (args, kwargs)


def test_methods_of_instances_are_direct_calls(slow: list[str]):
    Model.scale.clear_cache()
    for turn in range(5):
        assert equal(Model(TABLE + turn).scale(X), X * (TABLE + np.float32(turn)))
    assert len(slow) == 2
    model = Model(TABLE)
    model.more = 3
    assert equal(model.scale(X), X * TABLE)
    model.weight = 2.0
    assert equal(model.scale(X), X * 2.0)
    assert Model.scale.cache_info().misses == 3


# -- what a program depends on, beside its arguments


def test_captured_arrays_are_what_they_are_at_the_call(slow: list[str]):
    table = TABLE.copy()
    f = tinyfuse.jit(lambda x: x * table)
    for _ in range(3):
        assert equal(f(X), X * table)
    table[0] = 100
    assert equal(f(X), X * table)
    table = table + 1
    assert equal(f(X), X * table)
    assert len(slow) == 2
    for table in (np.ones((3, 1)), np.asfortranarray(X), TABLE, 2.5, TABLE[::-1]):
        assert equal(f(X), X * table)
    del table
    with pytest.raises(NameError):
        f(X)
    table = TABLE
    assert equal(f(X), X * TABLE)


def test_captured_values_are_compared_at_every_call(monkeypatch):
    module = sys.modules[__name__]
    f, g = calls(helper, X), calls(lambda x: helper(x) * 2, X)
    monkeypatch.setattr(module, "FACTOR", 5)
    assert equal(f(X), X + 5)
    assert equal(g(X), (X + 5) * 2)
    monkeypatch.setattr(module, "FACTOR", 5.0)
    assert equal(g(X), (X + 5.0) * 2)
    monkeypatch.setattr(module, "helper", lambda x: x)
    assert equal(g(X), X * 2)


def test_defaults_are_compared_at_every_call():
    def scaled(x, n=2):
        return x * n

    f = calls(lambda x: scaled(x) + 1, X)
    scaled.__defaults__ = (3,)
    assert equal(f(X), X * 3 + 1)


def test_keys_of_a_dictionary_are_compared_at_every_call():
    parameters = {"a": TABLE}
    f = calls(lambda x: sum(x * parameters[key] for key in parameters), X)
    parameters["b"] = TABLE
    assert equal(f(X), 0 + X * TABLE + X * TABLE)
    del parameters["a"]
    assert equal(f(X), 0 + X * TABLE)
    parameters["b"] = TABLE * 2
    assert equal(f(X), 0 + X * (TABLE * 2))


# Groups of keys that are one for a dictionary.
EQUAL_KEYS: dict[str, tuple[Any, ...]] = {
    "ones": (1, True, 1.0, np.int64(1), np.float32(1), np.bool_(True)),
    "zeros": (0.0, -0.0, 0, False),
    "tuples": ((1, "a"), (True, "a"), (1.0, "a")),
    "sets": (frozenset([1]), frozenset([True])),
    "nested": (((0.0,),), ((-0.0,),)),
}


def described(keys: Any) -> list[tuple[str, type]]:
    return [(repr(key), type(key)) for key in keys]


@pytest.mark.parametrize("cls", [dict, OrderedDict])
@pytest.mark.parametrize("name", EQUAL_KEYS)
def test_keys_of_another_type_are_other_keys(name: str, cls: type):
    keys = EQUAL_KEYS[name]
    f = tinyfuse.jit(lambda d: type(d)((key, value + 1) for key, value in d.items()))
    outer = tinyfuse.jit(lambda ds: [key for d in ds for key in d])
    for key in keys * 3:
        found = f(cls([("first", X), (key, X)]))
        assert described(found) == described(["first", key])
        assert described(outer([{key: X}])) == described([key])


@pytest.mark.parametrize("name", EQUAL_KEYS)
def test_captured_keys_of_another_type_are_other_keys(name: str):
    captured: dict[Any, Any] = {}
    f = tinyfuse.jit(lambda x: {key: x * value for key, value in captured.items()})
    for key in EQUAL_KEYS[name] * 3:
        captured.clear()
        captured[key] = TABLE
        assert described(f(X)) == described([key])


def test_a_nan_is_a_key_of_its_own():
    f = tinyfuse.jit(lambda d: {key: value + 1 for key, value in d.items()})
    for key in [float("nan"), float("nan")] * 2:
        assert next(iter(f({key: X}))) is key


def test_another_key_in_place_of_an_equal_one_is_a_side_effect():
    captured = {1: TABLE}

    def change(d):
        d[True] = d.pop(1)

    def change_captured(x):
        change(captured)
        return x + 1

    def change_argument(d):
        change(d)
        return d[1] + 1

    for f, argument in ((change_captured, X), (change_argument, {1: X})):
        with pytest.raises(SideEffectError):
            tinyfuse.jit(f)(argument)


def test_a_direct_call_is_a_part_of_a_function_that_is_traced():
    table = TABLE.copy()
    inner = calls(lambda x: x * table, X)
    outer = tinyfuse.jit(lambda x: inner(X) + x)
    for _ in range(3):
        assert equal(outer(X), X * table + X)
    table[0] = 50  # read at every call of the outer one, too
    assert equal(outer(X), X * table + X)
    assert len(outer.lower(X).graph.inputs) == 3


def test_disable_jit_holds_for_direct_calls():
    seen = []

    @tinyfuse.jit
    def f(x):
        seen.append(type(x))
        return x + 1

    for _ in range(3):
        f(X)
    seen.clear()
    with tinyfuse.disable_jit():
        assert equal(f(X), X + 1)
        elsewhere = threading.Thread(target=f, args=(X,))
        elsewhere.start()
        elsewhere.join()
    f(X)
    assert seen == [np.ndarray]


def test_a_fork_while_others_trace_leaves_direct_calls_on():
    code = """
import os, threading
import numpy as np, tinyfuse
from tinyfuse.jitted import JittedFunction
x = np.ones(3)
f = tinyfuse.jit(lambda x: x + 1)
f(x), f(x)
tracing, go_on = threading.Event(), threading.Event()
@tinyfuse.jit
def slow(x):
    tracing.set()
    go_on.wait()
    return x
thread = threading.Thread(target=slow, args=(x,))
thread.start()
tracing.wait()
JittedFunction._slowly = None
child = os.fork()
if child == 0:
    os._exit(int(f(x)[0]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
del JittedFunction._slowly
go_on.set()
"""
    outcome = run_python(code)
    assert outcome.stdout == "2\n"


# -- what is in memory


def test_forgotten_programs_are_not_called_directly():
    f = tinyfuse.jit(lambda x: x + 1, maxsize=1)
    for rows in (3, 3, 3, 2, 2, 2, 3):
        assert equal(f(X[:rows]), X[:rows] + 1)
    assert f.cache_info() == (4, 3, 1, 1)
    f.clear_cache()
    assert f.cache_info() == (0, 0, 1, 0)
    f(X)
    assert f.cache_info() == (0, 1, 1, 1)


def test_what_was_called_directly_is_not_forgotten_first():
    f = tinyfuse.jit(lambda x: x + 1, maxsize=2)
    for rows in (1, 1, 2, 2, 1, 1, 3):  # 3 puts out 2
        f(X[:rows])
    f(X[:1])
    assert f.cache_info().misses == 3


def test_a_function_that_nobody_holds_is_gone():
    table = TABLE.copy()
    f = calls(lambda x: x * table, X)
    seen = weakref.ref(f)
    captured = weakref.ref(table)
    f = table = None
    gc.collect()
    assert seen() is None
    assert captured() is None


def left_by(call: Callable[[], Any], held: list[Any], count: int = 500) -> list[int]:
    """How many references to each of these objects, and then blocks of memory, calls leave.

    A few come and go without them.
    """
    gc.collect()
    before, blocks = [sys.getrefcount(each) for each in held], sys.getallocatedblocks()
    for _ in range(count):
        call()
    gc.collect()
    left = sys.getallocatedblocks() - blocks
    references = [sys.getrefcount(each) - old for each, old in zip(held, before, strict=True)]
    return [0 if abs(number) < count // 5 else number for number in (*references, left)]


@pytest.mark.parametrize("name", DIRECT)
def test_direct_calls_leave_no_references(name: str):
    f, args, kwargs = DIRECT[name]
    jitted = calls(f, *args, **kwargs)
    (executable,) = jitted._executables()
    held = [*args, *kwargs.values(), None, True, X.dtype, np.dtype(np.float64), TABLE, PARAMETERS]
    held += [jitted, *executable.direct_calls.values(), FACTOR, helper, "text", Pair]
    assert not any(left_by(lambda: jitted(*args, **kwargs), held))


def test_a_hundred_thousand_calls_leave_nothing():
    f = calls(lambda x, y, a: (x * y + a, x.sum(), a * 2), X, Y, 0.5)
    assert not any(left_by(lambda: f(X, Y, 0.5), [X, Y, None], 100_000))


def test_misses_leave_no_references():
    f = calls(lambda x, n: x[n] + TABLE, X, N)
    wrong = np.array([0, 99])

    def miss() -> None:
        with contextlib.suppress(IndexError):
            f(X, wrong)
        f(X, N)

    miss()
    assert not any(left_by(miss, [X, N, TABLE, wrong, None], 1000))


# -- what fails


def test_what_a_check_finds_is_said_as_by_the_long_way(slow: list[str]):
    f = calls(lambda x, n: x[n], X, N)
    for _ in range(3):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            f(X, np.array([0, 7, 1]))
        assert equal(f(X, N), X[N])
    assert len(slow) == 5
    g = calls(lambda n, m: n**m, N, N)
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        g(N, -N)


def test_compiled_code_that_fails_is_an_error():
    f = calls(lambda x: x + 1, X, count=1)
    (executable,) = f._executables()
    works, executable.entry = executable.entry, load(build(answering(3), "answer"), "answer")
    with pytest.raises(RuntimeError, match="the compiled lambda failed with status 3"):
        f(X)
    executable.entry = works
    assert equal(f(X), X + 1)
    executable.direct_calls.clear()
    f.clear_cache()
    assert equal(f(X), X + 1)


def test_a_direct_call_that_fails_goes_the_long_way(slow: list[str], monkeypatch):
    f = calls(lambda x: x + 1, X, count=1)
    (executable,) = f._executables()
    works, failing = executable.entry, load(build(answering(4), "answer"), "answer")
    executable.entry = failing
    f._call_directly(executable, (1, ()), (X,))
    executable.entry = works
    for _ in range(3):
        assert equal(f(X), X + 1)
    assert len(slow) == 4


def test_memory_that_cannot_be_had_is_a_memory_error():
    code = """
import resource
import numpy as np, tinyfuse
x = np.ones((1 << 12, 1 << 12), np.float32)
f = tinyfuse.jit(lambda x: (x + 1, x.sum(axis=0), x * 2))
for _ in range(4):
    result = f(x)
del result
import gc, sys
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (48 << 20), resource.RLIM_INFINITY))
before = sys.getrefcount(x), sys.getrefcount(x.dtype)
for _ in range(3):
    try:
        f(x)
    except MemoryError:
        print("MemoryError")
print((sys.getrefcount(x), sys.getrefcount(x.dtype)) == before)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(f(x)[1][0])
"""
    outcome = run_python(code, TINYFUSE_NUM_THREADS="1", TINYFUSE_KEPT_BYTES="0")
    assert outcome.stdout == "MemoryError\n" * 3 + "True\n4096.0\n", outcome.stderr


def test_scratch_memory_that_cannot_be_had_is_a_memory_error():
    code = """
import resource
import numpy as np, tinyfuse
x = np.ones((1 << 12, 1 << 11), np.float32)
f = tinyfuse.jit(lambda x: (x / x.sum(axis=0)).sum(), fuse=False)
f(x), f(x), f(x)
assert f.lower(x).loops.scratch_bytes >= x.nbytes
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20), resource.RLIM_INFINITY))
import threading
def call():
    try:
        f(x)
    except MemoryError as error:
        print(error)
threading.stack_size(1 << 20)
thread = threading.Thread(target=call)  # it has no scratch memory yet
thread.start()
thread.join()
print(f(x))
"""
    outcome = run_python(code, TINYFUSE_NUM_THREADS="1")
    bytes_, total = outcome.stdout.splitlines()
    assert bytes_.startswith("there are no ")
    assert bytes_.endswith(" bytes of memory for intermediate arrays")
    assert total == "2048.0"


# -- threads


def test_threads_call_and_forget_at_once():
    f = tinyfuse.jit(lambda x, a: (x * a).sum(axis=0), maxsize=2)
    failures: list[BaseException] = []

    def call(index: int) -> None:
        try:
            for turn in range(300):
                x, a = X[: 1 + (index + turn) % 3], float(turn)
                np.testing.assert_array_equal(f(x, a), (x * np.float32(a)).sum(axis=0))
                if index == 0 and turn % 20 == 0:
                    f.clear_cache()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_that_call_when_the_process_ends():
    code = """
import atexit, threading
import numpy as np, tinyfuse
small, large = np.ones(16), np.ones(1 << 16)
f = tinyfuse.jit(lambda x: np.exp(x) + 1)
for x in (small, large) * 3:
    f(x)
atexit.register(lambda: print(f(small)[0] == f(large)[0]))
def call():
    while True:
        f(small), f(large)
for _ in range(4):
    threading.Thread(target=call, daemon=True).start()
for _ in range(100):
    f(large)
print("end", flush=True)
"""
    outcome = run_python(code)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "end\nTrue\n", "")


def test_direct_calls_use_the_threads_of_the_moment():
    code = """
import os
import numpy as np, tinyfuse
def threads(): return len(os.listdir("/proc/self/task"))
before = threads()
x = np.ones(1 << 22, np.float32)
f = tinyfuse.jit(lambda x: np.exp(x) + 1)
f(x), f(x), f(x)
print(threads() - before)
tinyfuse.set_num_threads(3)
f(x)
print(threads() - before)
"""
    assert run_python(code, TINYFUSE_NUM_THREADS="1").stdout == "0\n2\n"


def test_long_calls_let_other_threads_run():
    f = tinyfuse.jit(lambda x: x * 2 + 1)
    for size, releases in ((16, False), (1 << 20, True)):
        x = np.ones(size)
        f(x)
        executable = f._executables()[-1]
        described = direct(executable, (1, ()), f._parameters.plan((1, ())), (x,))
        assert described is not None
        assert described.releases is releases


# -- the extension


@needs_extension
def test_jitted_functions_are_called_by_vectorcall():
    assert issubclass(JittedFunction, extension.Dispatcher)
    assert Dispatcher is extension.Dispatcher
    flag = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL
    assert JittedFunction.__flags__ & flag


@needs_extension
@pytest.mark.parametrize(
    "change",
    [
        {"arguments": ((9, 0, None, None, (), 0, X.dtype, (3,)),)},
        {"arguments": ((0, 1, None, None, (), 0, X.dtype, (3,)),)},
        {"arguments": ((0, 0, None, None, (), 0, "float32", (3,)),)},
        {"arguments": ((0, 0, None, None, (), 0, X.dtype, 3),)},
        {"arguments": ((0, 0, None, None, (), 0, X.dtype, (1,) * 65),)},
        {"arguments": ((2, 0, None, "x", (), 4, None, ()),)},
        {"arguments": ((3, 0, None, None, (), 4, None, ()),)},
        {"arguments": ((1, 0, None, None, (3,), 4, None, ()),)},
        {"arguments": ((1, 0, None, None, (), 6, [], ()),)},
        {"arguments": (direct_module.MOST_ARGUMENTS + 1) * ((1, 0, None, None, (), 4, None, ()),)},
        {"arguments": (5,)},
        {"arguments": None},
        {"operands": (1,)},
        {"operands": (-1,)},
        {"operands": ("x",)},
        {"outputs": ((9, X.dtype, (3,)),)},
        {"outputs": ((1, X.dtype, (3,)),)},
        {"outputs": ((0, X.dtype, ("x",)),)},
        {"results": ((0, 1, None),)},
        {"results": ((1, -1, None),)},
        {"results": ((9, 0, None),)},
        {"results": ()},
        {"pool": "x"},
        {"entry": "x"},
    ],
    ids=lambda change: str(change)[:60],
)
def test_what_describes_no_call_is_refused(change: dict[str, Any]):
    description = {
        "entry": 0,
        "owner": None,
        "given": 1,
        "names": (),
        "arguments": ((0, 0, None, None, (), 0, X.dtype, (3,)),),
        "operands": (0,),
        "outputs": ((0, X.dtype, (3,)),),
        "results": ((0, 0, None),),
        "build": None,
        "scratch_bytes": 0,
        "pool": 0,
        "releases": False,
    }
    assert extension.DirectCall(*description.values()).used == 0
    wrong = {**description, **change}

    def refused() -> None:
        with contextlib.suppress(ValueError, TypeError):
            extension.DirectCall(*wrong.values())
            raise AssertionError

    assert not any(left_by(refused, [X.dtype, None, *wrong.values()], 100))
    with pytest.raises(TypeError, match="only a DirectCall can be remembered"):
        tinyfuse.jit(helper)._remember(None)


@needs_extension
def test_another_interpreter_is_refused():
    code = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import tinyfuse
code = '''
import importlib.util
try:
    spec = importlib.util.spec_from_file_location("tinyfuse._dispatch", PATH)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except BaseException as error:
    print(type(error).__name__, flush=True)
'''
path = tinyfuse.dispatch.extension.__file__
print("before", flush=True)
interpreters.run_string(interpreters.create(), code.replace("PATH", repr(path)))
print(tinyfuse.jit(lambda x: x + 1)(1.5))
"""
    outcome = run_python(code)
    if "No module named" in outcome.stderr:
        pytest.skip("this Python has no module for interpreters")
    assert outcome.stdout.splitlines() == ["before", "ImportError", "2.5"], outcome.stderr


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
@pytest.mark.parametrize("file", ["dispatch", "direct_call", "call", "memory"])
def test_the_extension_has_no_warnings(compiler: str, file: str, tmp_path: Path):
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    command = ["gcc"]
    if compiler == "zig":
        zig = pytest.importorskip(
            "ziglang", reason="the ziglang wheel is not installed (extra: zig)"
        )
        command = [str(Path(zig.__file__).with_name("zig")), "cc"]
    included = [sysconfig.get_path("include"), np.get_include()]
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
    caches = {f"ZIG_{name}_CACHE_DIR": str(tmp_path / "zig") for name in ("GLOBAL", "LOCAL")}
    outcome = subprocess.run(
        [
            *command,
            *options,
            *[word for path in included for word in ("-isystem", path)],
            *("-fPIC", "-c", "-o", "out.o", str(runtime_c() / f"{file}.c")),
        ],
        cwd=tmp_path,
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")


@needs_extension
def test_constants_are_those_of_the_extension():
    for name in ("INTERFACE", "MOST_CALLS"):
        assert getattr(extension, name) == getattr(dispatch_module, name)
    for name in ("MOST_ARGUMENTS", "MOST_OUTPUTS"):
        assert getattr(extension, name) == getattr(direct_module, name)


@pytest.mark.parametrize(
    ("enumeration", "prefix", "members"),
    [
        ("source_kind", "", direct_module.Source),
        ("argument_kind", "", direct_module.Kind),
        ("output_kind", "AS_", direct_module.OutputKind),
        ("leaf_kind", "FROM_", direct_module.ResultKind),
    ],
)
def test_enumerations_are_those_of_the_extension(enumeration: str, prefix: str, members: Any):
    header = re.sub("//.*", "", (runtime_c() / "dispatch.h").read_text())
    found = re.search(rf"typedef enum {{([^}}]*)}} {enumeration};", header)
    assert found is not None
    names = [name.removeprefix(prefix) for name in re.findall(r"\w+", found[1])]
    assert {name: at for at, name in enumerate(names)} == dict(members.__members__)


@needs_extension
def test_all_of_this_holds_without_the_extension():
    files = [f"tests/test_{name}.py" for name in ("dispatch", "api", "api_cache", "api_inputs")]
    files += [f"tests/test_{name}.py" for name in ("api_results", "api_stages", "trace_capture")]
    files += ["tests/test_memory_of_calls.py", "tests/test_pickling.py"]
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**os.environ, "TINYFUSE_EXTENSION": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
