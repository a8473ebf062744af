"""`tinyfuse.explain`: what a function compiles to, what was fused and what not, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyfuse.api import jitted
from tinyfuse.compilation import Lowered, Traced
from tinyfuse.compiled import Compiled
from tinyfuse.inspect.facts import Facts, KernelFacts, Totals, facts_of
from tinyfuse.inspect.page import page
from tinyfuse.inspect.report_page import report_fragment
from tinyfuse.inspect.report_text import report_text
from tinyfuse.inspect.writing import plural


class Report:
    """What a function compiles to and why: `print` it, `save` it, or let a notebook show it.

    Attributes:
        facts: all that it says, as values.
    """

    def __init__(self, lowered: Lowered) -> None:
        self.facts: Facts = facts_of(lowered)

    @property
    def fused(self) -> Totals:
        """Kernels, bytes, operations and scratch memory of the program."""
        return self.facts.fused

    @property
    def unfused(self) -> Totals:
        """The same of the program with nothing fused."""
        return self.facts.unfused

    @property
    def kernels(self) -> tuple[KernelFacts, ...]:
        """For each kernel, in the order they run, what the report says of it."""
        return self.facts.kernels

    def __str__(self) -> str:
        return report_text(self.facts)

    def html(self) -> str:
        """A page of its own, without scripts, that loads nothing."""
        return page(self.facts.title, report_fragment(self.facts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. Raises OSError where that cannot be written."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return str(report_fragment(self.facts))

    def __repr__(self) -> str:
        return f"<report on {self.facts.title}, {plural(len(self.kernels), 'kernel')}>"


def explain(
    function: Callable[..., Any] | Traced | Lowered | Compiled, /, *args: Any, **kwargs: Any
) -> Report:
    """What a call of the function compiles to: kernels, memory traffic, decisions and reasons.

    ::

        print(tinyfuse.explain(softmax, x))
        tinyfuse.explain(softmax, x).save("softmax.html")

    Nothing is compiled by the C compiler, and nothing run. Bytes and operations are counted from
    the loop nests: each element of the caller's arrays and of the scratch memory that a kernel
    reads or writes once.

    Args:
        function: jitted or not, or what has come out of its `trace`, `lower` or `compile`, which
            has its arguments already.
        args, kwargs: arguments of the function; ShapeDtypeStructs may stand for arrays.

    Raises:
        TypeError: function cannot be called, or has its arguments already and was given others.
        What `trace` and `lower` raise.
    """
    return Report(lowered_of(function, args, kwargs))


def lowered_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    """The program that a call of the function, or a step of compiling it, stands for."""
    if isinstance(function, (Traced, Lowered, Compiled)):
        if args or kwargs:
            raise TypeError(f"{function!r} has its arguments already: explain takes no others")
        return _STEPS[type(function)](function)
    return jitted(function, "explain").lower(*args, **kwargs)


_STEPS: dict[type, Callable[[Any], Lowered]] = {
    Traced: lambda traced: traced.lower(),
    Lowered: lambda lowered: lowered,
    Compiled: lambda compiled: compiled.lowered,
}
