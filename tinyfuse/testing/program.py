"""Programs as values: statements over numpy that render to a plain, readable function."""

from __future__ import annotations

import collections
import inspect
import itertools
import linecache
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tinyfuse.dtypes import describe
from tinyfuse.testing.memory import fresh

NAMESPACE: dict[str, Any] = {"np": np, "sliding_window_view": sliding_window_view}


def ascending(x: Any) -> Any:
    """An array without negative strides: itself, or a copy with the axes in the same order."""
    if isinstance(x, np.ndarray) and any(stride < 0 for stride in x.strides):
        return x.copy(order="K")
    return x


# How operands have to lie for results that depend on that: as text.
_ORDERED = {"C": "({}).copy()", "F": "({}).copy('F')", "ascending": "ascending({})"}
_LONGEST_NESTED = 60  # characters of an expression that is written inside another
_KEPT_SOURCES = 512

_numbers = itertools.count()
_files: collections.deque[str] = collections.deque()


class Form(Enum):
    """How a template binds: whether its holes need parentheses, and whether it does itself."""

    CALL = "call"  # holes between commas: neither
    POSTFIX = "postfix"  # holes with a method or subscript behind: only the holes
    OPERATOR = "operator"  # both
    EFFECT = "effect"  # whole lines, which write what their operands name


@dataclass(frozen=True, slots=True)
class Expression:
    """A template of numpy code with a hole `{i}` for each operand, a name.

    An effect is whole lines, with a hole `{target}` where they make a new value. written: those
    operands that it writes into or binds anew. by_layout: where the last bits of the result
    depend on how operands lie in memory, how they have to lie: C (in C order), F or ascending, K
    where they may lie as they do; one word for all operands, or one for each.
    """

    template: str
    operands: tuple[str, ...]
    form: Form = Form.CALL
    written: tuple[str, ...] = ()
    by_layout: str = ""

    def text(self, operands: Sequence[str], target: str = "") -> str:
        return self.template.format(*operands, target=target)


def call(template: str, *operands: str, by_layout: str = "") -> Expression:
    return Expression(template, operands, Form.CALL, by_layout=by_layout)


def method(template: str, *operands: str, by_layout: str = "") -> Expression:
    """A method call, attribute or subscript."""
    return Expression(template, operands, Form.POSTFIX, by_layout=by_layout)


def operator(template: str, *operands: str, by_layout: str = "") -> Expression:
    return Expression(template, operands, Form.OPERATOR, by_layout=by_layout)


def effect(template: str, *operands: str, written: int = 1, by_layout: str = "") -> Expression:
    """Lines that write into the first operands."""
    return Expression(template, operands, Form.EFFECT, operands[:written], by_layout)


@dataclass(frozen=True, slots=True)
class Statement:
    """`target = expression`; if `nested`, written inside its reader where it has only one.

    Not where an effect comes in between. An effect stands by itself.
    """

    target: str
    expression: Expression
    nested: bool = False

    @property
    def is_effect(self) -> bool:
        return self.expression.form is Form.EFFECT


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """A numpy function with the arguments to call it with.

    arguments: arrays, numpy scalars and Python floats, which no run writes: each has fresh copies
    with the same layout in memory. captured: arrays that the function finds among its globals.
    exact: whether tinyfuse computes all of it from the numpy functions that it calls, so that
    numpy's bits can be expected under numpy's numerics. label: how to draw it again.
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
        return self._source()

    @property
    def function(self) -> Callable[..., Any]:
        """The function, compiled from its source, which tracebacks and `inspect` can find."""
        if not self._functions:
            self._functions.append(self._compiled(self.source))
        return self._functions[0]

    @property
    def writes(self) -> bool:
        """Whether there is anything in it that writes."""
        return any(statement.expression.written for statement in self.statements)

    def compact(self) -> Callable[..., Any]:
        """The function, with sums and the like over copies of their operands.

        Numpy sums in the order of memory, and has other loops for descending elements. Where arrays
        lie otherwise in a graph, this is what can be compared with it to the bit.
        """
        return self._compiled(self._source(compact=True))

    def __call__(self) -> Any:
        """What numpy computes from copies of its arrays, without warnings."""
        values = fresh([*self.arguments.values(), *self.captured.values()])
        count = len(self.arguments)
        variables = global_variables(self.function)
        variables.update(zip(self.captured, values[count:], strict=True))
        try:
            return quietly(self.function, *values[:count])
        finally:
            variables.update(self.captured)

    def __str__(self) -> str:
        """What a failure prints: how to draw it again, the source, and what its arrays are like."""
        named = {**self.arguments, **self.captured}
        described = [f"    # {name}: {describe_value(value)}" for name, value in named.items()]
        first, *rest = self.source.splitlines()
        return "\n".join([f"# {self.label}", first, *described, *rest])

    __repr__ = __str__  # so that hypothesis prints it

    def _source(self, compact: bool = False) -> str:
        lines = [f"def {self.name}({', '.join(self.arguments)}):"]
        lines += [f"    {line}" for text in self._lines(compact) for line in text.splitlines()]
        return "\n".join([*lines, f"    return {', '.join(self.outputs)}", ""])

    def _lines(self, compact: bool) -> list[str]:
        inlined = self._inlined()
        inside: dict[str, tuple[str, Form]] = {}
        result = []
        for statement in self.statements:
            text = _rendered(statement, inside, compact)
            if statement.target in inlined and len(text) <= _LONGEST_NESTED:
                inside[statement.target] = text, statement.expression.form
            else:
                result.append(text if statement.is_effect else f"{statement.target} = {text}")
        return result

    def _inlined(self) -> set[str]:
        """The names of values that are written inside their readers, if not too long."""
        readers: dict[str, list[int]] = collections.defaultdict(list)
        for at, statement in enumerate(self.statements):
            for name in statement.expression.operands:
                readers[name].append(at)
        fixed = {name for each in self.statements for name in each.expression.written}
        fixed.update(self.outputs)
        return {
            statement.target
            for at, statement in enumerate(self.statements)
            if statement.nested and not statement.is_effect and statement.target not in fixed
            if len(readers[statement.target]) == 1
            and not self._effects_between(at, readers[statement.target][0])
        }

    def _effects_between(self, first: int, reader: int) -> bool:
        """Whether something is written after a statement, or in several lines by its reader."""
        if any(statement.is_effect for statement in self.statements[first + 1 : reader]):
            return True
        last = self.statements[reader]
        return last.is_effect and "\n" in last.expression.template

    def _compiled(self, source: str) -> Callable[..., Any]:
        file = f"<random program {next(_numbers)}>"
        _remember(file, source)
        namespace = {**NAMESPACE, "ascending": ascending, **self.captured}
        exec(compile(source, file, "exec"), namespace)
        function: Callable[..., Any] = namespace[self.name]
        return function


def _rendered(statement: Statement, inside: Mapping[str, tuple[str, Form]], compact: bool) -> str:
    expression = statement.expression
    texts = []
    for at, name in enumerate(expression.operands):
        text, form = inside.get(name, (name, Form.CALL))
        if compact and expression.by_layout and name not in expression.written:
            orders = expression.by_layout.split()
            order = orders[min(at, len(orders) - 1)]
            if order != "K":
                text, form = _ORDERED[order].format(text), Form.POSTFIX
        alone = expression.form is Form.CALL
        if statement.is_effect:
            alone = expression.template.endswith(f"= {{{at}}}")  # the right side of an assignment
        texts.append(text if form is not Form.OPERATOR or alone else f"({text})")
    return expression.text(texts, statement.target)


def _remember(file: str, source: str) -> None:
    """Makes a source findable as if it were a file, and forgets old ones."""
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    _files.append(file)
    if len(_files) > _KEPT_SOURCES:
        linecache.cache.pop(_files.popleft(), None)


def global_variables(function: Any) -> dict[str, Any]:
    """Those that the code of a function sees, whatever wraps it."""
    found: dict[str, Any] = inspect.unwrap(function).__globals__
    return found


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
