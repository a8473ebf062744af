"""`for` and `while` statements of traced functions, as the rewritten functions run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyfuse.config import compile_log as log
from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import bodies
from tinyfuse.graph.ir import Eqn
from tinyfuse.source import here
from tinyfuse.trace.branching import choose
from tinyfuse.trace.builder import GraphBuilder, state
from tinyfuse.trace.control_flow import is_unknown
from tinyfuse.trace.loop_items import Items, RunTimeRange, as_items
from tinyfuse.trace.rolling import Rolled
from tinyfuse.trace.rolling_while import RolledRange, RolledWhile, Stopped, StoppedRange
from tinyfuse.trace.specs import LoopPlace, Roll
from tinyfuse.trace.turns import MISSING, read_names

MOST_UNROLLED = 64  # turns, of all loops around one another, that are written out
FEW = 4  # turns that are written out even if there is a loop inside that is not
MOST_EQUATIONS = 256  # of turns that write arrays, and are written out
LONG = 256  # turns that are not written out without a warning


class Loop:
    """A `for` statement of a traced function.

    items: what it iterates over. names: the variables that its body binds. getters: for each a
    function that reads it. used: whether anything but the body reads it. stop: whether the turn
    before has left the loop.
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
        stop: Callable[[], Any] | None = None,
        reason: str = "",
        target: Callable[[], Any] = lambda: MISSING,
        target_used: bool = True,
    ) -> None:
        self._target, self._target_used = target, target_used
        self._items, self._names, self._getters, self._used = items, names, getters, used
        self._reason, self._stop = reason, stop
        self._rolled: Rolled | None = None
        self.carrying = False
        self.carried: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()
        self.last: Any = None

    def __iter__(self) -> Iterator[Any]:
        builder = state.builder
        if builder is None:
            return self._plainly(self._items)
        source = here()
        place = source.file, source.line
        rolling = builder.rolling
        reason = self._reason or rolling.unrolled.get(place, "")
        if type(self._items) is RunTimeRange:
            if reason:
                return self._plainly(self._items)
            kind = RolledRange if self._stop is None else StoppedRange
            self._rolled = kind(self, builder, source, self._items)
            return self._rolled.turns()
        items = as_items(self._items)
        if items is None:
            return self._plainly(self._items)
        if not items.kept and self._target_used:
            reason = reason or "what it goes through may be another after it"
        turns = items.count
        few = turns * rolling.turns <= MOST_UNROLLED and place not in rolling.wanted
        if turns < 2 or few or reason:
            if turns >= LONG and reason:
                return self._warned(builder, items, place, reason)
            return self._written_out(builder, items, None if reason else place)
        around = next((at for at, turns in rolling.around if turns > FEW), None)
        if around is not None:
            raise Roll(around)
        kind_of_loop = Rolled if self._stop is None else Stopped
        self._rolled = kind_of_loop(self, builder, source)
        return self._rolled.turns()

    def _warned(
        self, builder: GraphBuilder, items: Items, place: LoopPlace, reason: str
    ) -> Iterator[Any]:
        """All turns, and a warning if they come to their end: not where they are traced again."""
        yield from self._written_out(builder, items, None)
        if place not in builder.rolling.told:
            builder.rolling.told[place] = None
            log.warning(
                "the loop at %s:%d is written out, with all of its %d turns: %s",
                *(*place, items.count, reason),
            )

    def _plainly(self, items: Any) -> Iterator[Any]:
        """All turns, of a loop that is none of the program's."""
        if self._stop is None:
            yield from items
            return
        for item in items:
            yield item
            if self._stop():
                return

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
                stopped = self._stop is not None and self._stop()
                if place and is_unknown(stopped) and at + 1 < turns:
                    raise Roll(place)
                if at + 1 < turns and stopped:
                    return
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
    return writes and turns * _length(turn) > MOST_EQUATIONS


def _length(eqns: Sequence[Eqn]) -> int:
    """How many equations there are, those in loops and branches too."""
    return len(eqns) + sum(_length(graph.eqns) for eqn in eqns for graph in bodies(eqn).values())


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
        stop: Callable[[], Any] = lambda: False,
        endless: bool = False,
    ) -> None:
        """endless: whether the test is always true, so that turns that nobody stops are the
        program's."""
        self._plain_test, self._stop, self._endless = test, stop, endless
        self._names, self._getters, self._used = names, getters, used
        self.carrying = False
        self.carried: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()
        self.last: Any = None

    def __iter__(self) -> Iterator[None]:
        builder = state.builder
        while True:
            test = self._test()
            again = self._endless and self._stop() is False
            if builder is not None and (again or is_unknown(test)):
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

    def _test(self) -> Any:
        """Whether there is another turn."""
        stopped = self._stop()
        if stopped is False:
            return self._plain_test()
        return choose(stopped, lambda: False, self._plain_test)
