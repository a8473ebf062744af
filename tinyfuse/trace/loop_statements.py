"""`for` and `while` statements of traced functions, as the rewritten functions run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyfuse.config import compile_log as log
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Eqn
from tinyfuse.source import here
from tinyfuse.trace.builder import GraphBuilder, state
from tinyfuse.trace.control_flow import is_unknown
from tinyfuse.trace.loop_items import Items, RunTimeRange, as_items
from tinyfuse.trace.rolling import Rolled
from tinyfuse.trace.rolling_while import RolledRange, RolledWhile
from tinyfuse.trace.specs import LoopPlace, Roll
from tinyfuse.trace.turns import MISSING, read_names

MOST_UNROLLED = 64  # turns, of all loops around one another, that are written out
FEW = 4  # turns that are written out even if there is a loop inside that is not
MOST_EQUATIONS = 256  # of turns that write arrays, and are written out
LONG = 256  # turns that are not written out without a warning


class Loop:
    """A `for` statement of a traced function.

    items: what it iterates over. names: the variables that its body binds. getters: for each a
    function that reads it. used: whether anything but the body reads it.
    target, target_used: the same of its target, if that is one variable.
    carrying: whether the names are to be bound to `carried` before a turn, to `after` behind the
    loop, where the target is bound to `last`. reason: why it has to be written out.
    """

    def __init__(
        self,
        items: Any,
        names: tuple[str, ...] = (),
        getters: tuple[Callable[[], Any], ...] = (),
        used: tuple[bool, ...] = (),
        reason: str = "",
        target: Callable[[], Any] = lambda: MISSING,
        target_used: bool = True,
    ) -> None:
        self._target, self._target_used = target, target_used
        self._items, self._names, self._getters, self._used = items, names, getters, used
        self._reason = reason
        self._rolled: Rolled | None = None
        self.carrying = False
        self.carried: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()
        self.last: Any = None

    def __iter__(self) -> Iterator[Any]:
        builder = state.builder
        if builder is None:
            return iter(self._items)
        source = here()
        place = source.file, source.line
        rolling = builder.rolling
        reason = self._reason or rolling.unrolled.get(place, "")
        if type(self._items) is RunTimeRange:
            if reason:
                return iter(self._items)
            self._rolled = RolledRange(self, builder, source, self._items)
            return self._rolled.turns()
        items = as_items(self._items)
        if items is None:
            return iter(self._items)
        if not items.kept and self._target_used:
            reason = reason or "what it goes through may be another after it"
        turns = items.count
        few = turns * rolling.turns <= MOST_UNROLLED and place not in rolling.wanted
        if turns < 2 or few or reason:
            if turns >= LONG and reason and place not in rolling.told:
                rolling.told[place] = None
                log.warning(
                    "the loop at %s:%d is written out, with all of its %d turns: %s",
                    *(source.file, source.line, turns, reason),
                )
            return self._written_out(builder, items, None if reason else place)
        around = next((at for at, turns in rolling.around if turns > FEW), None)
        if around is not None:
            raise Roll(around)
        self._rolled = Rolled(self, builder, source)
        return self._rolled.turns()

    def _written_out(
        self, builder: GraphBuilder, items: Items, place: LoopPlace | None
    ) -> Iterator[Any]:
        """All turns. place: of a loop that might be one loop of the program as well."""
        rolling, turns, begun = builder.rolling, items.count, len(builder.eqns)
        before, around = rolling.turns, rolling.around
        rolling.turns = before * max(turns, 1)
        rolling.around = around if place is None else [*around, (place, turns)]
        try:
            for at, item in enumerate(items):
                if at == 1 and place and _is_much(builder.eqns[begun:], turns):
                    raise Roll(place)
                yield item
        finally:
            rolling.turns, rolling.around = before, around

    def append(self, into: list[Any], value: Any) -> None:
        """What a turn appends to a list that nothing reads before the end of the loop."""
        if self._rolled is None:
            into.append(value)
        else:
            self._rolled.append(into, value)

    def values(self) -> list[Any]:
        return read_names(self._getters)

    def target(self) -> Any:
        """What the target means now."""
        return read_names([self._target])[0]


def _is_much(turn: Sequence[Eqn], turns: int) -> bool:
    """Whether turns that are written out would be a long program, and gain nothing: those that
    write arrays are not one kernel together."""
    writes = any(eqn.primitive in (p.update, p.scatter) for eqn in turn)
    return writes and turns * len(turn) > MOST_EQUATIONS


class While:
    """A `while` statement of a traced function, which hands out turns that count nothing.

    test: what it asks before each turn. The rest is as in `Loop`. Turns are run as long as Python
    knows the answer; then those that are left become a loop of the program.
    """

    def __init__(
        self,
        test: Callable[[], Any],
        names: tuple[str, ...],
        getters: tuple[Callable[[], Any], ...],
        used: tuple[bool, ...],
    ) -> None:
        self._test, self._names, self._getters, self._used = test, names, getters, used
        self.carrying = False
        self.carried: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()
        self.last: Any = None

    def __iter__(self) -> Iterator[None]:
        builder = state.builder
        while True:
            test = self._test()
            if builder is not None and is_unknown(test):
                source = here()
                if (source.file, source.line) not in builder.rolling.unrolled:
                    rolled = RolledWhile(self, builder, source, self._test, test)
                    yield from rolled.turns()
                    return
            if not test:
                return
            yield

    def values(self) -> list[Any]:
        return read_names(self._getters)
