"""The place in the user's code that an operation comes from."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

from tests.trace_checking import trace_call
from tinyfuse.source import Source, location


def sources(function: Any, *args: Any) -> list[Source]:
    found = [eqn.source for eqn in trace_call(function, *args).graph.eqns]
    assert None not in found
    return found  # type: ignore[return-value]


X = np.ones(3, np.float32)


def test_the_line_the_statement_and_the_name() -> None:
    def scaled(x: Any) -> Any:
        y = np.exp(x) * 2
        return y + x

    exp, multiply, add = sources(scaled, X)
    line = scaled.__code__.co_firstlineno
    assert exp == Source(__file__, line + 1, "scaled", "y = np.exp(x) * 2", "np.exp(x)")
    assert (multiply.expression, multiply.name) == ("np.exp(x) * 2", "y")
    assert (add.line, add.statement, add.expression) == (line + 2, "return y + x", "y + x")
    assert location(add) == f"test_source.py:{line + 2}, in scaled"


def test_statements_of_several_lines_keep_their_layout() -> None:
    def weighted(x: Any) -> Any:
        return (
            x * 2
            + np.sqrt(
                x,
            )
        )  # fmt: skip

    multiply, sqrt, add = sources(weighted, X)
    assert multiply.expression == "x * 2"
    assert sqrt.expression == "np.sqrt(\n    x,\n)"
    assert sqrt.statement == add.statement
    assert add.statement.startswith("return (\n    x * 2\n    + np.sqrt(")


def test_names_of_every_kind_of_assignment() -> None:
    def assigned(x: Any) -> Any:
        a = b = x + 1
        c, d = a * 2, b * 3
        e: Any = c - d
        q, r = np.divmod(e, x)
        return (f := q + r) * f

    names = [(source.name, source.names) for source in sources(assigned, X)]
    assert names == [
        ("a", ()),
        ("c", ()),
        ("d", ()),
        ("e", ()),
        (None, ("q", "r")),
        (None, ("q", "r")),
        ("f", ()),
        (None, ()),
    ]


def test_headers_of_compound_statements() -> None:
    def looped(x: Any) -> Any:
        for row in x * 2:
            x = x + row
        return x

    assert sources(looped, X)[0].statement == "for row in x * 2"


def test_lambdas_and_nested_functions() -> None:
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            z = y * 3
            return z  # noqa: RET504

        return inner(x)

    assert [(s.function, s.name) for s in sources(outer, X)] == [("inner", "z")]
    (square,) = sources(lambda x: x * x, X)
    assert (square.function, square.expression) == ("<lambda>", "x * x")


def test_non_ascii_text_before_the_expression() -> None:
    def greek(x: Any) -> Any:
        β = 2; γ = x * β  # noqa: E702  # fmt: skip
        return γ  # noqa: RET504

    (multiply,) = sources(greek, X)
    assert (multiply.expression, multiply.name) == ("x * β", "γ")


def test_code_without_a_file() -> None:
    variables: dict[str, Any] = {}
    exec(compile("def f(x):\n    y = x + 1\n    return y\n", "<made>", "exec"), variables)
    (add,) = sources(variables["f"], X)
    assert add == Source("<made>", 2, "f")


def test_code_whose_text_is_registered() -> None:
    text = "def f(x):\n    y = x + 1\n    return y\n"
    linecache.cache["<kept>"] = (len(text), None, text.splitlines(keepends=True), "<kept>")
    variables: dict[str, Any] = {}
    exec(compile(text, "<kept>", "exec"), variables)
    (add,) = sources(variables["f"], X)
    assert (add.statement, add.name) == ("y = x + 1", "y")
