"""What `for` statements iterate over, where it is more than a list of values that Python knows."""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Callable, Iterator
from typing import Any

from tinyfuse.records import dataclass
from tinyfuse.source import Source
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import as_integer


@dataclass(frozen=True, slots=True)
class Items:
    """So many items, by the number of the turn. kept: whether they are the same whenever they are
    asked for, so that the last one can be told after the loop."""

    count: int
    at: Callable[[Any], Any]
    kept: bool = True

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return (self.at(turn) for turn in range(self.count))


@dataclass(frozen=True, slots=True)
class RunTimeRange:
    """A range of which only a call knows where it begins or ends."""

    start: Any
    stop: Any
    step: int

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self.start, self.stop, self.step))  # which says what it needs

    def backwards(self) -> Any:
        if abs(self.step) > 1:
            return reversed(range(self.start, self.stop, self.step))
        return RunTimeRange(self.stop - self.step, self.start - self.step, -self.step)


def items_of(function: Any, *args: Any, **keywords: Any) -> Any:
    """What `range`, `reversed`, `enumerate` or `zip` gives a loop, or another function of such a
    name."""
    made = _MAKERS.get(id(function))
    found = made(*args, **keywords) if made else None
    return function(*args, **keywords) if found is None else found


def as_items(value: Any) -> Items | None:
    """What may be rolled: ranges, and arrays by their first axis."""
    if type(value) is Items:
        return value
    if type(value) is range:
        start, step = value.start, value.step

        def counted(turn: Any) -> Any:
            return start + (turn if step == 1 else turn * step) if start else turn * step

        return Items(len(value), counted if start or step != 1 else lambda turn: turn)
    if type(value) is Tracer and value.ndim:
        return Items(len(value), value.__getitem__, kept=False)
    return None


def name_of_turn(value: Any, source: Source) -> str:
    """What the number of a turn is called: as the user calls it, where it is what a range gives."""
    target = _TARGET.match(linecache.getline(source.file, source.line))
    counted = type(value) in (range, RunTimeRange) and type(value.start) is int
    if target is None or not counted or (value.start, value.step) != (0, 1):
        return "turn"
    return target[1]


_TARGET = re.compile(r"\s*for ([^\W_]\w*) in ")


def _range(*args: Any, **keywords: Any) -> RunTimeRange | None:
    args = tuple([as_integer(each) for each in args])
    if keywords or not any(type(each) is TracedInt for each in args) or not 0 < len(args) < 4:
        return None
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    return RunTimeRange(start, stop, step) if type(step) is int and step else None


def _reversed(value: Any) -> Any:
    if type(value) is RunTimeRange:
        return value.backwards()
    return value[::-1] if type(value) is range else None


def _enumerate(values: Any, start: Any = 0) -> Items | None:
    items = as_items(values)
    if items is None or type(start) is not int:
        return None
    at = items.at
    return Items(items.count, lambda turn: (turn + start if start else turn, at(turn)), items.kept)


def _zip(*values: Any, **keywords: Any) -> Items | None:
    parts = [as_items(value) for value in values]
    found = [part for part in parts if part is not None]
    if keywords or not found or len(found) < len(parts):
        return None
    count = min(part.count for part in found)
    kept = all(part.kept for part in found)
    return Items(count, lambda turn: tuple([part.at(turn) for part in found]), kept)


_MAKERS: dict[int, Callable[..., Any]] = {
    id(builtins.range): _range,
    id(builtins.reversed): _reversed,
    id(builtins.enumerate): _enumerate,
    id(builtins.zip): _zip,
}
