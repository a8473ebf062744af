"""Programs as values: statements over numpy that render to a plain, readable function."""

from __future__ import annotations

import collections
import itertools
import linecache
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tinyfuse.dtypes import describe

NAMESPACE: dict[str, Any] = {"np": np, "sliding_window_view": sliding_window_view}
_LONGEST_NESTED = 60  # characters of an expression that is written inside another
_KEPT_SOURCES = 512

_numbers = itertools.count()
_files: collections.deque[str] = collections.deque()


class Form(Enum):
    """How a template binds: whether its holes need parentheses, and whether it does itself."""

    CALL = "call"  # holes between commas: neither
    POSTFIX = "postfix"  # holes with a method or subscript behind: only the holes
    OPERATOR = "operator"  # both


@dataclass(frozen=True, slots=True)
class Expression:
    """A template of numpy code with a hole `{i}` for each operand, a name."""

    template: str
    operands: tuple[str, ...]
    form: Form = Form.CALL


def call(template: str, *operands: str) -> Expression:
    return Expression(template, operands, Form.CALL)


def method(template: str, *operands: str) -> Expression:
    """A method call, attribute or subscript."""
    return Expression(template, operands, Form.POSTFIX)


def operator(template: str, *operands: str) -> Expression:
    return Expression(template, operands, Form.OPERATOR)


@dataclass(frozen=True, slots=True)
class Statement:
    """`target = expression`; if `nested`, written inside its reader where it has only one."""

    target: str
    expression: Expression
    nested: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """A numpy function with the arguments to call it with.

    arguments: arrays, numpy scalars and Python floats; captured: arrays that the function finds
    among its globals. exact: whether tinyfuse computes all of it from the numpy functions that it
    calls, so that numpy's bits can be expected under numpy's numerics. label: how to draw it again.
    """

    label: str
    arguments: Mapping[str, Any]
    captured: Mapping[str, np.ndarray]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    exact: bool = True
    name: str = "program"
    _functions: list[Callable[..., Any]] = field(default_factory=list, compare=False, repr=False)

    @property
    def source(self) -> str:
        """The text of the function."""
        lines = [f"def {self.name}({', '.join(self.arguments)}):"]
        lines += [f"    {target} = {text}" for target, text in self._assignments()]
        return "\n".join([*lines, f"    return {', '.join(self.outputs)}", ""])

    @property
    def function(self) -> Callable[..., Any]:
        """The function, compiled from its source, which tracebacks and `inspect` can find."""
        if not self._functions:
            self._functions.append(self._compiled())
        return self._functions[0]

    def __call__(self) -> Any:
        """What numpy computes from the arguments, without warnings."""
        return quietly(self.function, *self.arguments.values())

    def __str__(self) -> str:
        """What a failure prints: how to draw it again, the source, and what its arrays are like."""
        named = {**self.arguments, **self.captured}
        described = [f"    # {name}: {describe_value(value)}" for name, value in named.items()]
        first, *rest = self.source.splitlines()
        return "\n".join([f"# {self.label}", first, *described, *rest])

    __repr__ = __str__  # so that hypothesis prints it

    def _assignments(self) -> list[tuple[str, str]]:
        uses = collections.Counter(
            name for each in self.statements for name in each.expression.operands
        )
        inside: dict[str, tuple[str, Form]] = {}
        result = []
        for statement in self.statements:
            text = self._rendered(statement.expression, inside)
            single = uses[statement.target] == 1 and statement.target not in self.outputs
            if statement.nested and single and len(text) <= _LONGEST_NESTED:
                inside[statement.target] = text, statement.expression.form
            else:
                result.append((statement.target, text))
        return result

    @staticmethod
    def _rendered(expression: Expression, inside: Mapping[str, tuple[str, Form]]) -> str:
        texts = []
        for name in expression.operands:
            text, form = inside.get(name, (name, Form.CALL))
            bare = form is not Form.OPERATOR or expression.form is Form.CALL
            texts.append(text if bare else f"({text})")
        return expression.template.format(*texts)

    def _compiled(self) -> Callable[..., Any]:
        source, file = self.source, f"<random program {next(_numbers)}>"
        _remember(file, source)
        namespace = {**NAMESPACE, **self.captured}
        exec(compile(source, file, "exec"), namespace)
        function: Callable[..., Any] = namespace[self.name]
        return function


def _remember(file: str, source: str) -> None:
    """Makes a source findable as if it were a file, and forgets old ones."""
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    _files.append(file)
    if len(_files) > _KEPT_SOURCES:
        linecache.cache.pop(_files.popleft(), None)


def quietly(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Calls a function with numpy's warnings off."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments, **keywords)


def describe_value(value: Any) -> str:
    """A short text: `float32[3, 4], strides (16, 4)`, `int8 scalar -3`, `float 0.5`."""
    if isinstance(value, np.ndarray):
        strides = "" if value.flags.c_contiguous else f", strides {value.strides}"
        read_only = "" if value.flags.writeable else ", read-only"
        misaligned = "" if value.flags.aligned else ", misaligned"
        return describe(value.shape, value.dtype) + strides + read_only + misaligned
    if isinstance(value, np.generic):
        return f"{value.dtype.name} scalar {value}"
    return f"{type(value).__name__} {value!r}"
