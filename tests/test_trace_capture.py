"""What a traced function takes from outside is read at every call, or else traced again."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import trace_call
from tinyfuse.errors import SideEffectError, UnlistedFunctionError

X = np.arange(4.0)
W = np.arange(1.0, 5.0)
V = np.ones(4)
N = 3
TABLES = {"a": np.arange(4.0), "b": [np.ones(4), np.ones(4)], "scale": 2.0}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "W", np.arange(1.0, 5.0))
    monkeypatch.setitem(globals(), "V", np.ones(4))
    monkeypatch.setitem(globals(), "N", 3)
    tables = {"a": np.arange(4.0), "b": [np.ones(4), np.ones(4)], "scale": 2.0}
    monkeypatch.setitem(globals(), "TABLES", tables)


def rebind(**values: Any) -> None:
    globals().update(values)


def same(function: Callable[..., Any], jitted: Callable[..., Any], *args: Any) -> None:
    np.testing.assert_allclose(jitted(*args), function(*args), rtol=1e-14)


def follows(
    function: Callable[..., Any], *changes: Callable[[], Any], programs: int = 1, x: Any = X
) -> Any:
    """Compare with numpy, at first and after each change; count the compilations."""
    jitted = tinyfuse.jit(function)
    same(function, jitted, x)
    for change in changes:
        change()
        same(function, jitted, x)
        same(function, jitted, x)
    assert jitted.cache_info().misses == programs
    return jitted


def write_w() -> None:
    W[:] = 5


def rebind_w() -> None:
    rebind(W=np.array([3.0, 1.0, 4.0, 1.5]))


# -- globals and closures


def element(x: Any) -> Any:
    return x * W[0]


def total(x: Any) -> Any:
    return x * W.sum()


def view_of_a_product(x: Any) -> Any:
    return x[:2] * (W * 2)[:2]


def ufunc_of_a_table(x: Any) -> Any:
    return x + np.exp(W)


def two_tables(x: Any) -> Any:
    return x + W * V


def without_any_argument(x: Any) -> Any:
    return W.reshape(2, 2) @ V.reshape(2, 2)


def in_a_comprehension(x: Any) -> Any:
    return sum([x * w for w in W]) + sum(x * W[at] for at in range(2))


def in_a_lambda(x: Any) -> Any:
    return (lambda y: y * W.max())(x)


def in_a_nested_function(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return y * W.sum()

    return inner(x)


def in_a_nested_jitted_function(x: Any) -> Any:
    @tinyfuse.jit
    def inner(y: Any) -> Any:
        return y * W.sum() + np.exp(V[0])  # names that the outer function does not mention

    return inner(x)


def in_a_class(x: Any) -> Any:
    class Scaled:
        factor = W.sum()

        def apply(self, y: Any) -> Any:
            return y * self.factor + W[0]

    return Scaled().apply(x)


def evaluated(x: Any) -> Any:
    return eval("x * W.sum()") + globals()["W"][1]


def unpacked(x: Any) -> Any:
    first, *_, last = W
    return x * first + last


def in_a_generator(x: Any) -> Any:
    def pieces() -> Iterator[Any]:
        yield W.min()
        yield W.max()

    low, high = pieces()
    return np.clip(x, low, high)


@pytest.mark.parametrize(
    "function",
    [
        element,
        total,
        view_of_a_product,
        ufunc_of_a_table,
        two_tables,
        without_any_argument,
        in_a_comprehension,
        in_a_lambda,
        in_a_nested_function,
        in_a_nested_jitted_function,
        in_a_class,
        unpacked,
        in_a_generator,
    ],
)
def test_global_arrays(function: Callable[..., Any]) -> None:
    follows(function, write_w, rebind_w, write_w, lambda: rebind(V=np.full(4, 7.0)))


def test_evaluated_text() -> None:
    jitted = tinyfuse.jit(evaluated)  # may read anything, so that whatever changes counts
    for change in (lambda: None, write_w, rebind_w):
        change()
        same(evaluated, jitted, X)


def test_arrays_in_closures() -> None:
    w = np.arange(1.0, 5.0)

    def write() -> None:
        w[:] = 7

    def replace() -> None:
        nonlocal w
        w = np.arange(4.0) - 2

    follows(lambda x: x * w[0] + (w * 2).sum() + np.sqrt(abs(w)), write, replace, write)


def test_another_type_is_traced_again() -> None:
    def whole(x: Any) -> Any:
        return x * W.sum() if W.ndim == 1 else x - W

    follows(whole, lambda: rebind(W=np.ones((2, 4), np.float32)), rebind_w, programs=3)


def test_defaults_of_helpers() -> None:
    table, other = np.arange(4.0), np.ones(4)

    def helper(x: Any, w: Any = table, *, v: Any = other) -> Any:
        return x * w.sum() + v[1]

    def write() -> None:
        table[:] = 3
        other[:] = 4

    def replace() -> None:
        helper.__defaults__ = (np.full(4, 9.0),)
        helper.__kwdefaults__["v"] = np.full(4, 8.0)

    follows(lambda x: helper(x), write, replace)


def test_defaults_are_arguments() -> None:
    table = np.arange(4.0)

    def function(x: Any, w: Any = table) -> Any:
        return x * w.sum()

    def write() -> None:
        table[:] = 3

    follows(function, write)


# -- helpers


def helper(x: Any) -> Any:
    return x * W.sum()


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args) * (W[0] + W[0])

    return wrapper


@doubled
def decorated(x: Any) -> Any:
    return x * W[1]


def power(x: Any, n: int) -> Any:
    return x if n == 0 else power(x * W[0], n - 1)


class Plain:
    weight = np.arange(4.0)

    @staticmethod
    def scale(x: Any) -> Any:
        return x * W.sum()

    def __init__(self, bias: Any) -> None:
        self.bias = bias

    def shift(self, x: Any) -> Any:
        return x + W[0] * self.bias.sum()

    def __call__(self, x: Any) -> Any:
        return x * (self.bias * 2)[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: helper(x) + helper(2 * x),
        lambda x: decorated(x),
        lambda x: power(x, 3),
        lambda x: functools.reduce(lambda a, b: a * W[b], [0, 1], x),
        lambda x: sum(map(helper, [x, x])),
        doubled(helper),
        functools.partial(lambda y, x: x * y * W.sum(), 2),
    ],
)
def test_helpers(function: Callable[..., Any]) -> None:
    follows(function, write_w, rebind_w)


def test_partials_of_arrays() -> None:
    table = np.arange(4.0)
    scaled = functools.partial(lambda w, x: x * w.sum(), table)

    def write() -> None:
        table[:] = 3

    follows(lambda x: scaled(x), write)
    follows(scaled, write)


def test_functions_among_the_arguments() -> None:
    jitted = tinyfuse.jit(lambda function, x: function(x))
    for change in (lambda: None, write_w, rebind_w):
        change()
        np.testing.assert_array_equal(jitted(helper, X), helper(X))
    assert jitted.cache_info().misses == 1


def test_a_helper_that_is_replaced() -> None:
    def replace() -> None:
        rebind(helper=lambda x: x - 1)

    old = helper
    try:
        follows(lambda x: helper(x), replace, programs=2)
    finally:
        rebind(helper=old)


def test_jitted_helpers() -> None:
    table = np.arange(4.0)
    inner = tinyfuse.jit(lambda x: x * table.sum())
    constant = tinyfuse.jit(lambda n: table * n)

    def write() -> None:
        table[:] = 3

    def replace() -> None:
        nonlocal table
        table = np.ones(4)

    follows(lambda x: inner(x) + constant(3) + inner(table), write, replace)


def test_attributes_of_functions() -> None:
    def scaled(x: Any) -> Any:
        return x * scaled.table.sum()

    scaled.table = np.arange(4.0)  # type: ignore[attr-defined]

    def replace() -> None:
        scaled.table = np.full(4, 3.0)  # type: ignore[attr-defined]

    follows(lambda x: scaled(x), replace)


@contextmanager
def module(name: str, text: str) -> Iterator[Any]:
    made = types.ModuleType(name)
    exec(text, vars(made))
    sys.modules[name] = made
    try:
        yield made
    finally:
        del sys.modules[name]


MODULE = """
import numpy as np
table = np.arange(4.0)
scale = 2
def helper(x):
    return x * table.sum() * scale
def __getattr__(name):
    if name == "lazy":
        return table
    raise AttributeError(name)
"""


def test_other_modules() -> None:
    with module("tables_of_a_test", MODULE) as tables:
        imported = tables.helper

        def function(x: Any) -> Any:
            import tables_of_a_test as again
            from tables_of_a_test import table

            return tables.table[1] * x + tables.helper(x) + imported(x) + again.table[2] + table[0]

        def write() -> None:
            tables.table[:] = 7

        def replace() -> None:
            tables.table = np.arange(4.0) + 2

        follows(function, write, replace)

        def number() -> None:
            tables.scale = 5

        follows(function, number, programs=2)
        follows(lambda x: x * tables.lazy.sum(), write, replace)
        with pytest.raises(SideEffectError, match=r"^the traced function assigns tables_of_a_test"):
            tinyfuse.jit(lambda x: setattr(tables, "scale", 1) or x)(X)
        assert tables.scale == 5


# -- containers and objects


def test_containers() -> None:
    def function(x: Any) -> Any:
        layers = sum([x * layer.sum() for layer in TABLES["b"]])
        return layers + TABLES["a"][1] * TABLES["scale"]

    def write() -> None:
        TABLES["a"][:] = 4
        TABLES["b"][1][:] = 5

    def replace() -> None:
        TABLES["b"][0] = np.full(4, 8.0)
        TABLES["a"] = np.full(4, 9.0)

    follows(function, write, replace, lambda: rebind(TABLES={**TABLES, "a": np.ones(4)}))
    follows(function, lambda: TABLES["b"].append(np.ones(4)), programs=2)
    follows(function, lambda: TABLES.update(scale=3.0), programs=2)


def test_objects() -> None:
    plain = Plain(np.arange(4.0))
    space = types.SimpleNamespace(table=np.arange(4.0), n=2)

    def function(x: Any) -> Any:
        return plain(x) * plain.bias.sum() + (space.table * 2)[space.n]

    def write() -> None:
        plain.bias[:] = 4
        space.table[:] = 3

    def replace() -> None:
        plain.bias = np.full(4, 6.0)
        space.table = np.full(4, 7.0)

    follows(function, write, replace)
    follows(lambda x: x * space.n, lambda: setattr(space, "n", 4), programs=2)


def test_methods_that_use_global_arrays() -> None:
    """They run as they are: small arrays that they can read are compared at each call."""
    plain = Plain(np.arange(4.0))
    for function in (
        lambda x: Plain.scale(x),
        lambda x: plain.shift(x),
        lambda x: x * (Plain.weight * 2)[1],
    ):
        follows(function, write_w, rebind_w, programs=1 + 2 * ("weight" not in _names(function)))

    def write() -> None:
        Plain.weight[:] += 1

    follows(lambda x: x * (Plain.weight * 2)[1], write, programs=2)
    jitted = tinyfuse.jit(lambda self, x: self.shift(x))
    for change in (lambda: None, write_w):
        change()
        np.testing.assert_array_equal(jitted(plain, X), plain.shift(X))


def _names(function: Any) -> tuple[str, ...]:
    return function.__code__.co_names


class Jitted:
    def __init__(self, weight: Any) -> None:
        self.weight = weight

    @tinyfuse.jit
    def scale(self, x: Any) -> Any:
        return x * self.weight.sum() * W.sum()


def test_jitted_methods() -> None:
    model = Jitted(np.ones(4))
    bound = model.scale

    def replace() -> None:
        model.weight = np.full(4, 3.0)

    follows(lambda x: model.scale(x) + bound(x), write_w, rebind_w, replace)
    for change in (lambda: None, write_w, rebind_w):
        change()
        np.testing.assert_array_equal(model.scale(X), X * 12 * W.sum())


def test_large_arrays_in_methods_are_told(caplog: pytest.LogCaptureFixture) -> None:
    rebind(W=np.ones(1000))
    tinyfuse.jit(lambda x: Plain.scale(x))(X)
    assert caplog.messages == [
        "the captured W is used by code that tinyfuse does not trace (a method), so that what is "
        "computed from its elements without any traced array stays as it is now: pass it as an "
        "argument"
    ]


def test_containers_of_many_arrays(caplog: pytest.LogCaptureFixture) -> None:
    many = [np.ones(2) for _ in range(1200)]
    jitted = tinyfuse.jit(lambda x: x * many[3].sum())
    np.testing.assert_array_equal(jitted(X), X * 2)
    assert caplog.messages == [
        "the captured many has more than 1000 parts, so that what is computed from its elements "
        "without any traced array stays as it is now: pass it as an argument"
    ]


# -- what becomes an input, and what is compared


def test_only_what_is_used_is_an_input() -> None:
    traced = trace_call(lambda x: x.reshape(W.shape) * len(V) + W.ndim, X)
    assert [var.name for var in traced.graph.inputs] == ["x"]
    assert [guard.place.name for guard in traced.guards] == ["W", "V"]
    follows(lambda x: x * W.size, lambda: rebind(W=np.ones(6)), programs=2)


def test_one_array_under_two_names() -> None:
    rebind(V=W)
    function = lambda x: x * W.sum() - V[0] if W is V else x + W * V  # noqa: E731
    assert len(trace_call(function, X).captured) == 1
    follows(function, write_w, lambda: rebind(V=np.full(4, 2.0)), rebind_w, programs=2)


def test_a_returned_array_is_the_callers() -> None:
    jitted = tinyfuse.jit(lambda x: (x, W, W[1:]))
    assert jitted(X)[1] is W
    assert jitted(X)[2].base is W
    rebind_w()
    assert jitted(X)[1] is W
    assert tinyfuse.jit(lambda x: helper)(X) is helper


def test_numbers_that_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tinyfuse.compile")
    pair = (1, (2.0, "a"))

    def function(x: Any) -> Any:
        return x * N + pair[1][0]

    def equal() -> None:
        nonlocal pair
        pair = (1, (float("2"), "a"))

    def other() -> None:
        nonlocal pair
        pair = (1, (-0.0, "a"))

    follows(function, lambda: rebind(N=4), equal, other, lambda: rebind(N=4.0), programs=4)
    told = [m for m in caplog.messages if m.startswith("recompile")]
    assert told == [
        "recompile function: the captured N: 4, was 3",
        "recompile function: the captured pair: (1, (-0.0, 'a')), was (1, (2.0, 'a'))",
        "recompile function: the captured N: 4.0, was 4",
    ]


def test_isinstance_and_len() -> None:
    def function(x: Any) -> Any:
        assert isinstance(W, np.ndarray)
        assert (len(W), W.shape, W.dtype, W.ndim) == (4, (4,), np.float64, 1)
        return x * len(list(W)) + sum(W) + [w * 2 for w in W][3]

    follows(function, write_w, rebind_w)


# -- elements that Python needs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * float(W[0]),
        lambda x: x if W[0] > 2 else -x,
        lambda x: x[: int(W.min())],
        lambda x: x * W.tolist()[1],
        lambda x: x * np.unique(W)[0],
        lambda x: x * np.trim_zeros(W)[0],
        lambda x: x + np.zeros(int(W[0])).size,
        lambda x: sum(x[int(w) % 4] for w in W) + x,
        lambda x: x * {1.0: 2.0, 5.0: 3.0}.get(W[0], 4.0),
        lambda x: x * len(f"{W[0]:.2f}{W[1] * 100:.0f}"),
        lambda x: x * max(W),
    ],
)
def test_elements_that_tracing_needs(function: Callable[..., Any]) -> None:
    follows(function, write_w, rebind_w, programs=3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * np.array([W[0], W[1], 3.0, 4.0]),
        lambda x: x * W[W > 1].sum(),
        lambda x: x + np.linalg.norm(W),
        lambda x: x * np.partition(W, 1)[0],
        lambda x: x * np.asarray(W).sum(),
        lambda x: x * W[(x % 4).astype(int)],
    ],
)
def test_elements_that_tracing_does_not_need(function: Callable[..., Any]) -> None:
    follows(function, write_w, rebind_w)


def test_elements_for_tracing_and_for_the_program() -> None:
    follows(lambda x: x[: int(W[0])].sum() + W[(x % 4).astype(int)], write_w, programs=2)


def test_integer_arrays_as_indices() -> None:
    order = np.array([2, 0, 1])

    def write() -> None:
        order[:] = [3, 1, 0]

    follows(lambda x: sum([x[at] * (k + 1) for k, at in enumerate(order)]), write)
    follows(lambda x: x[order[0] :], write, programs=1)


def test_elements_of_large_arrays_are_refused() -> None:
    large = np.ones((30, 30))
    with pytest.raises(UnlistedFunctionError) as raised:
        tinyfuse.jit(lambda x: x * np.linalg.eigvals(large * 2)[0])(X)
    assert str(raised.value).split("\n")[0] == (
        "np.linalg.eigvals is not traced: it needs eigenvalues of matrices that are not "
        "symmetric: call it outside of the traced function; large is a captured "
        "float64[30, 30], and tracing "
        "can use the elements only of arrays of up to 4096 bytes: do this outside the traced "
        "function, and capture the result or pass it as an argument"
    )


def test_arrays_of_other_dtypes() -> None:
    words = np.array(["a", "b"])
    numbers = np.array([1 + 2j, 3])

    def write() -> None:
        words[0] = "c"
        numbers[1] = 5

    follows(lambda x: x * ord(words[0]) + abs(numbers[1]), write, programs=2)


# -- side effects


def nothing_global(x: Any) -> Any:
    global N
    N = N + 1
    return x * N


def test_writes_of_globals_are_refused() -> None:
    with pytest.raises(SideEffectError) as raised:
        tinyfuse.jit(nothing_global)(X)
    line = nothing_global.__code__.co_firstlineno
    assert str(raised.value) == (
        "the traced function assigns the global variable N, which would happen while tracing only: "
        f"return the new value instead\n  at test_trace_capture.py:{line}, in nothing_global"
    )
    assert N == 3


def test_writes_of_enclosing_variables_are_refused() -> None:
    count = 0

    def counting(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count

    with pytest.raises(SideEffectError, match=r"assigns the variable count of an enclosing"):
        tinyfuse.jit(counting)(X)
    assert count == 0

    def inside(x: Any) -> Any:
        count = 0

        def up() -> None:
            nonlocal count
            count += 1

        up()
        up()
        return x * count + W[0]

    follows(inside, write_w)


def test_siblings_share_their_variables() -> None:
    table = np.ones(4)

    def replace(value: Any) -> None:
        nonlocal table
        table = value

    def read(x: Any) -> Any:
        return x * table.sum()

    follows(read, lambda: replace(np.arange(4.0)))
    with pytest.raises(SideEffectError, match="assigns the variable table"):
        tinyfuse.jit(lambda x: replace(x) or read(x))(X)
    np.testing.assert_array_equal(table, np.arange(4.0))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: TABLES.update(a=x) or x, "changes the captured TABLES"),
        (lambda x: TABLES["b"].append(x) or x, "adds to the captured TABLES_b"),
        (lambda x: TABLES.update(scale=3.0) or x, "changes the captured TABLES"),
        (lambda x: setattr(helper, "kept", x) or x, "sets an attribute of the function helper"),
    ],
)
def test_writes_of_containers_are_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(SideEffectError, match=words):
        tinyfuse.jit(function)(X)
    assert list(TABLES) == ["a", "b", "scale"]


def test_captured_arrays_are_written() -> None:
    table = np.arange(4.0)

    def counting(x: Any) -> Any:
        table[1:] += x[:-1]
        return table[0], table

    jitted = tinyfuse.jit(counting)
    for turn in (1, 2):
        first, result = jitted(X)
        assert result is table
        np.testing.assert_array_equal(table[1:], np.arange(1.0, 4.0) + turn * X[:-1])
        assert first == 0
    table = np.full(4, 5.0)
    assert jitted(X)[1] is table
    np.testing.assert_array_equal(table[1:], 5 + X[:-1])


def test_a_captured_array_that_is_an_argument_as_well() -> None:
    table = np.arange(4.0)
    jitted = tinyfuse.jit(lambda x: table.__setitem__(0, x[1]))
    jitted(np.ones(4))
    with pytest.raises(tinyfuse.errors.OverlapError, match="table, which the function writes"):
        jitted(table[1:])
    with pytest.raises(tinyfuse.errors.OverlapError, match="the captured table is also given as x"):
        jitted(table)
    np.testing.assert_array_equal(table, [1, 1, 2, 3])


def test_an_array_whose_elements_tracing_needs_is_written() -> None:
    table = np.zeros(4)

    def writing(x: Any) -> Any:
        if table[0] < 2:
            table[0] += 1
        return x + table[0]

    jitted = tinyfuse.jit(writing)
    assert [jitted(X)[0] - X[0] for _ in range(4)] == [1, 2, 2, 2]


def test_tables_that_a_helper_keeps() -> None:
    kept: dict[int, Any] = {}

    def window(n: int) -> Any:
        if n not in kept:
            kept[n] = np.hanning(n)
        return kept[n]

    jitted = tinyfuse.jit(lambda x: x * window(len(x)).sum())
    for n in (4, 6, 4, 6, 4):
        np.testing.assert_allclose(jitted(np.ones(n)), np.ones(n) * np.hanning(n).sum())
    assert list(kept) == [4, 6]


def test_looking_at_a_trace_is_allowed() -> None:
    seen: list[Any] = []
    jitted = tinyfuse.jit(lambda x: seen.append(x.shape) or x * 2)
    jitted(X)
    jitted(X)
    assert seen == [(4,)]


def test_what_changes_whenever_it_is_traced() -> None:
    class Counter:
        count = 0

        @classmethod
        def up(cls) -> None:
            rebind(N=N + 1)

    with pytest.raises(SideEffectError, match=r"the captured N: \d+, was \d+, again and again"):
        tinyfuse.jit(lambda x: (x * N, Counter.up())[0])(X)


# -- around it


def test_places_and_tracebacks_are_the_users() -> None:
    def function(x: Any) -> Any:
        scaled = x * W.sum()
        return scaled + np.ones(3)

    traced = trace_call(lambda x: x * W.sum(), X)
    assert traced.graph.eqns[0].source.function == "<lambda>"
    with pytest.raises(ValueError, match="in function: return scaled") as raised:
        tinyfuse.jit(function)(X)
    assert raised.traceback[-1].name == "function"


def test_threads() -> None:
    table = np.arange(4.0)
    jitted = [tinyfuse.jit(lambda x, k=k: x * table.sum() * k) for k in range(4)]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(20):
            if not np.array_equal(jitted[k](X), X * 6 * k):
                wrong.append(k)
            jitted[k].clear_cache()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_original_is_left_alone() -> None:
    before = (helper.__code__, helper.__globals__, helper.__closure__)
    tinyfuse.jit(lambda x: helper(x))(X)
    assert (helper.__code__, helper.__globals__, helper.__closure__) == before
    assert type(W) is np.ndarray


def test_compiled_for_other_numbers() -> None:
    compiled = tinyfuse.jit(lambda x: x * N).lower(X).compile()
    rebind(N=4)
    with pytest.raises(tinyfuse.errors.SignatureMismatchError, match="the captured N: 4, was 3"):
        compiled(X)
