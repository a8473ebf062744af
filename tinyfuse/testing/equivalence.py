"""For users: does a function of theirs compute the same, however tinyfuse runs it?"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.dtypes import describe
from tinyfuse.testing.case import Case
from tinyfuse.testing.choices import Choices, SeededChoices
from tinyfuse.testing.ladder import Ladder
from tinyfuse.testing.program import describe_value
from tinyfuse.testing.report import Report
from tinyfuse.testing.values import draw_array
from tinyfuse.testing.variants import Variant, fused, random, unfused
from tinyfuse.tree import flatten


@dataclass(frozen=True)
class ArraySpec:
    """Stands for arrays of this dtype and shape, with nasty values and memory layouts."""

    dtype: Any
    shape: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return describe(self.shape, np.dtype(self.dtype))


def check_equivalence(
    function: Callable[..., Any],
    *arguments: Any,
    threads: Sequence[int] = (1, 2),
    schedules: int = 3,
    examples: int = 5,
    seed: int = 0,
    exact: bool = True,
) -> Report:
    """Assert that a function computes the same bits at every level, however it is scheduled.

    Levels: plain numpy (where `exact`); then under tinyfuse's numerics the traced graph, the
    stages, the loops and the compiled C, unfused, fused and under random schedules, with one
    thread and several, and `tinyfuse.jit`. NaN is equal to NaN.

    Args:
        function: what `tinyfuse.jit` is to take.
        arguments: what to call it with. An `ArraySpec`, also inside a tuple, list or dict, stands
            for random arrays of its dtype and shape, other ones in each example.
        threads: numbers of threads to share parallel loops.
        schedules: how many random schedules to try.
        examples: how many times arrays are drawn; where no `ArraySpec` is given, one is enough.
        seed: of the arrays and schedules.
        exact: whether the traced function is compared with plain numpy to the bit. Turn it off
            where tinyfuse composes a numpy function otherwise than numpy does (einsum).

    Returns: how often each level was compared.

    Raises:
        AssertionError: a result differs; the message has the level, the first element that
            differs with both bit patterns, and the function's source.
    """
    ladder = Ladder(_variants(threads, schedules, seed), jit_of=lambda case: True)
    for case in _cases(function, arguments, examples, SeededChoices(seed), exact):
        ladder.climb([case])
    if ladder.report.failures:
        raise AssertionError(str(ladder.report.failures[0]))
    return ladder.report


def _variants(threads: Sequence[int], schedules: int, seed: int) -> list[Variant]:
    pieces = tuple(threads)
    result = [Variant("unfused C", unfused, pieces=pieces), Variant("fused C", fused, (), pieces)]
    for number in range(schedules):
        schedule_of = random(seed * 1000 + number)
        result.append(Variant(f"C of random schedule {number}", schedule_of, pieces=pieces))
    return result


def _cases(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    examples: int,
    choices: Choices,
    exact: bool,
) -> Iterator[Case]:
    drawn = [_drawn(choices, value) for value in arguments]
    yield _case(function, drawn, exact)
    if any(new is not value for new, value in zip(drawn, arguments, strict=True)):
        for _ in range(examples - 1):
            yield _case(function, [_drawn(choices, value) for value in arguments], exact)


def _drawn(choices: Choices, value: Any) -> Any:
    """A value with arrays in place of every spec in it; the same object where there is none."""
    if isinstance(value, ArraySpec):
        return draw_array(choices, tuple(value.shape), np.dtype(value.dtype))
    if type(value) not in (tuple, list, dict):
        return value
    old = list(value.values() if isinstance(value, dict) else value)
    new = [_drawn(choices, item) for item in old]
    if all(a is b for a, b in zip(old, new, strict=True)):
        return value
    return dict(zip(value, new, strict=True)) if isinstance(value, dict) else type(value)(new)


def _case(function: Callable[..., Any], arguments: Sequence[Any], exact: bool) -> Case:
    return Case(function, arguments, _text(function, flatten(tuple(arguments))[0]), exact)


def _text(function: Callable[..., Any], leaves: Sequence[Any]) -> str:
    try:
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        source = repr(function)
    return "\n".join(
        [source, *(f"# argument {n}: {describe_value(leaf)}" for n, leaf in enumerate(leaves))]
    )
