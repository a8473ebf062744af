"""Plain Python loops as one loop of the program.

The rewritten function (see `rewriting`) iterates over a `Loop`. That hands out a few turns only,
records each apart from the rest, and undoes it: the first one to see which names the body binds
anew and which arrays it writes; one with a parameter in each of these, which becomes the body; and
one more, begun with what the one before has made, which has to be the same. What is not, and what
does not come to its end, is traced again with its turns written out.

Two names of one array must not part: an array that is carried under a name and written has to stay
with the names, each under one of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.source import Source
from tinyfuse.trace.branching import one_of_two
from tinyfuse.trace.builder import GraphBuilder
from tinyfuse.trace.captured import equal
from tinyfuse.trace.carried import Carry
from tinyfuse.trace.cells import freeze, note, write
from tinyfuse.trace.collecting import Collector
from tinyfuse.trace.control_flow import ClosedLoop
from tinyfuse.trace.exchanges import comes_back, end_of, order_of
from tinyfuse.trace.loop_items import as_items, name_of_turn
from tinyfuse.trace.python_numbers import number_place
from tinyfuse.trace.python_state import PythonState
from tinyfuse.trace.recording import Part, Recorder, Recording
from tinyfuse.trace.run_time_parts import RunTimePart
from tinyfuse.trace.same_recordings import same_recordings
from tinyfuse.trace.specs import LoopPlace, Unroll
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.turns import (
    MISSING,
    UNSET,
    Slot,
    Turn,
    arrays_of,
    atoms_before,
    can_begin_as,
    cells_of,
    converted,
    fitted,
    frozen_reason,
    is_array,
    is_written,
    kinds_text,
    leaves_of,
    lies_in_order,
    params_of,
    reached_from,
    roots_of,
    slot_of,
)
from tinyfuse.trace.weak import TracedInt
from tinyfuse.tree import flatten


class Rolled:
    """A loop whose turns are traced.

    slots: of the names that are carried. heads: what a turn takes first, as its number. count: how
    many turns there are; None where data decides.
    """

    def __init__(self, loop: Any, builder: GraphBuilder, source: Source) -> None:
        self.loop, self.builder, self.source = loop, builder, source
        self.place: LoopPlace = source.file, source.line
        self.part = Part(builder)
        over = getattr(loop, "_items", None)
        self.heads = [Var((), INT64, name_of_turn(over, source))]
        self.count: int | None = None
        self.slots: dict[int, Slot] = {}
        self.before: list[Any] = []
        self.fixed: dict[int, Any] = {}  # what names are after each turn, made before the loop
        self.collector = Collector(builder, self._fail)
        self._first_cell = builder.cells
        items = as_items(over)
        if items is not None:
            self.items = items
            self.count = items.count
            builder.bounds[self.heads[0]] = 0, items.count - 1

    def turns(self) -> Iterator[Any]:
        rolling = self.builder.rolling
        self.before = self.loop.values()
        python = None if rolling.rehearsing else PythonState(cells_of(self.loop._getters))
        rolling.rehearsing += 1
        try:
            first = yield from self._turn(self.before, {})
            self.collector.fit(self.count)
            names = {at for at in range(len(self.before)) if self._changes(first, at)}
            for at in names:
                if self.before[at] is not MISSING:
                    self.slots[at] = slot_of(self.before[at])
            turn = yield from self._settled(names)
            self.collector.require_own(turn, self._is_outer)
        finally:
            rolling.rehearsing -= 1
        if python is not None:
            yield from self._confirm(turn, names)
            if python.has_changed():
                self._fail("its turns change a list, an object or an iterator of Python's")
        rolling.rolled.append(self.place)
        self.fixed = self._fixed(turn, names)
        group = self._tied(turn)
        self._require_apart(turn, names, group)
        self._close(turn, names, group)

    def _fixed(self, turn: Turn, names: set[int]) -> dict[int, Any]:
        """What names are after each turn that was made before the loop."""
        return {
            at: turn.after[at]
            for at in names
            if type(turn.after[at]) is Tracer and self._is_outer(turn.after[at])
        }

    def _changes(self, turn: Turn, at: int) -> bool:
        old, new = self.before[at], turn.after[at]
        return old is not new and not equal(old, new)

    def _fail(self, reason: str) -> NoReturn:
        raise Unroll(self.place, reason)

    def _name(self, at: int) -> str:
        return self.loop._names[at]

    # -- one turn

    def _turn(self, names: Sequence[Any], slots: Mapping[int, Slot]) -> Generator[Any, None, Turn]:
        """Record the body, begun with stand-ins for some names."""
        builder, loop = self.builder, self.loop
        recorder = Recorder(builder)
        begun: dict[int, Any] = {}
        params: dict[int, list[Var | None]] = {}
        values = list(names)
        for at, slot in slots.items():
            params[at] = [kind.parameter(self._name(at)) for kind in slot.kinds]
            pairs = zip(slot.kinds, params[at], strict=True)
            leaves = [kind.stand_in(builder, var) for kind, var in pairs]
            begun[at] = values[at] = slot.structure.unflatten(leaves)
            slot.freeze(begun[at])
            if self._begins_as_number(at, slot):
                builder.rolling.numbers.update({var: self.place for var in params[at] if var})
            for leaf in leaves_of(names[at]):
                self._touch(leaf)
        cells = self.part.parameters()
        self.part.hold(cells)
        loop.carrying, loop.carried = True, tuple(values)
        self.collector.begin_turn()
        flat = [*self.heads, *[var for at in slots for var in params[at] if var], *cells]
        try:
            yield self._item()
        except GeneratorExit:
            recorder.end(flat)
            builder.rolling.failed.append(self.place)
            raise
        self.collector.end_turn()
        after = [self._kept(at, value) for at, value in enumerate(loop.values())]
        truths = self._truths()
        carries = [Carry(value, "") for value in after]
        outputs = [converted(carry, slots.get(at)) for at, carry in enumerate(carries)]
        written = {at for at in begun if is_written(begun[at], params[at])}
        roots = [roots_of(value) for value in after]
        reached = [reached_from(value) for value in after]
        frozen = [self._frozen_reason(value) for value in after]
        recording = recorder.end(flat)
        return Turn(
            *(recording, begun, params, after, carries, outputs, written, roots, reached, frozen),
            truths,
        )

    def _frozen_reason(self, value: Any) -> str | None:
        """Why an array of a name can't be written after a turn, if it can't."""
        linked = any(root._links for root in roots_of(value) if not self._is_outer(root))
        return frozen_reason(value) or (one_of_two(self.source) if linked else None)

    def _kept(self, at: int, value: Any) -> Any:
        """What a name means after a turn; nothing, if that is a slice that nobody reads then."""
        if not any(isinstance(leaf, RunTimePart) for leaf in flatten(value)[0]):
            return value
        if self.loop._used[at]:
            self._fail(f"{self._name(at)} is a slice of a length that a turn decides")
        return MISSING

    def _truths(self) -> list[Atom]:
        """What a turn gives besides what is carried."""
        return []

    def _touch(self, array: Any) -> None:
        """Let views of an array be read again, so that it shows who reads it."""
        if array._root is None:
            note(array)
            self.builder.writes += 1
            array._version = self.builder.writes

    def append(self, into: list[Any], value: Any) -> None:
        """What a turn appends to a list."""
        self.collector.append(into, value, TracedInt(self.builder, self.heads[0]))

    def _item(self) -> Any:
        return self.items.at(TracedInt(self.builder, self.heads[0]))

    def _settled(self, names: set[int]) -> Generator[Any, None, Turn]:
        """A turn begun with all that is carried, in kinds that it gives too."""
        for _ in range(MOST_TURNS):
            turn = yield from self._turn(self.before, self.slots)
            again = self.part.add(turn.recording)
            again = self.collector.fit(self.count) or again
            for at in range(len(self.before)):
                if at not in names and self._changes(turn, at):
                    if self.before[at] is MISSING:
                        self._fail(f"{self._name(at)} is bound in some turns only")
                    names.add(at)
                    self.slots[at] = slot_of(self.before[at])
                    again = True
            for at in [*self.slots]:
                again = self._fit(turn, at) or again
            if not again:
                return turn
        self._fail("each turn carries something else")

    def _fit(self, turn: Turn, at: int) -> bool:
        """Make a slot fit what the turn gives; whether it was another one."""
        slot, carry = self.slots[at], turn.carries[at]
        if slot.structure == carry.tree:
            kinds = [fitted(*pair) for pair in zip(slot.kinds, carry.given, strict=True)]
            if kinds == slot.kinds:
                was, slot.frozen = slot.frozen, slot.frozen or turn.frozen[at]
                return slot.frozen is not was
            if None not in kinds and can_begin_as(self.before[at], kinds):
                slot.kinds = kinds  # type: ignore[assignment]
                return True
        if turn.uses(at):
            old, new = kinds_text(slot.kinds), kinds_text(carry.given)
            self._fail(f"{self._name(at)} is {old} before a turn and {new} after it")
        del self.slots[at]
        return True

    # -- what has to hold

    def _confirm(self, turn: Turn, names: set[int]) -> Generator[Any, None, None]:
        """Another turn, begun with what the first has made, has to be the same."""
        slots = dict(self.slots)
        for at in names - slots.keys():
            if self.before[at] is not UNSET:
                slots[at] = Slot(turn.carries[at].tree, turn.carries[at].given, turn.frozen[at])
        again = yield from self._turn(self.before, slots)
        pairs = list(zip(params_of(turn, self.slots), params_of(again, self.slots), strict=True))
        cells = len(self.part.cells)
        ends = turn.recording.params, again.recording.params
        pairs += zip(*[params[len(params) - cells :] for params in ends], strict=True)
        for each in (turn, again):
            outputs = [atom for at in sorted(names) for atom in each.outputs[at] or ()]
            each.recording.outputs = [*each.truths, *[atom for atom in outputs if atom]]
        pairs += [(head, head) for head in self.heads]
        if self.collector.fit(self.count):
            self._fail("its turns append values of several kinds to a list")
        same = same_recordings(turn.recording, again.recording, dict(pairs))
        used = [at for at in slots if at not in self.slots and again.uses(at)]
        for at in names:
            one, other = turn.carries[at], again.carries[at]
            same = same and one.tree == other.tree and one.given == other.given
            fixed = turn.after[at]
            if type(fixed) is Tracer and self._is_outer(fixed):
                same = same and again.after[at] is fixed
        if not same or used:
            self._fail("its turns differ: something that Python keeps changes from turn to turn")

    def _tied(self, turn: Turn) -> dict[int, int]:
        """For names that exchange arrays, and those whose arrays are written: whose array each has
        after a turn."""
        arrays = {at: value for at, value in turn.begun.items() if is_array(value)}
        owners = {id(value): at for at, value in arrays.items()}
        found = {at: owners.get(id(turn.after[at])) for at in self.slots}
        group = turn.written | {at for at in found if comes_back(at, found)}
        handed_on = [at for at in found if found[at] is not None and at not in group]
        ends = [end_of(at, found) for at in handed_on]
        few = self.count is None or self.count <= len(found)
        if handed_on and (few or self.fixed.keys() & ends):
            self._fail("a name has an array from before the loop after it")
        while True:
            more = {at for at in self.slots if found[at] in group} - group
            more |= {to for at in group if (to := found[at]) is not None} - group
            if not more:
                break
            group |= more
        tied = {at: to for at in group if (to := found[at]) is not None}
        if tied.keys() != group or set(tied.values()) != group:
            self._fail("an array that it writes has other names after a turn")
        if self.count is None and any(at != to for at, to in tied.items()):
            self._fail("names exchange arrays in as many turns as data decides")
        return tied

    def _require_apart(self, turn: Turn, names: set[int], tied: Mapping[int, int]) -> None:
        """Raises Unroll where arrays share memory that would not share it as what is carried."""
        cells = {id(cell) for cell in self.part.cells}
        reads = set(turn.recording.reads())
        begun = [self.before[at] for at in tied]
        for value in begun if turn.written & tied.keys() else ():
            alone = type(value) is Tracer and value._root is None and id(value) not in cells
            if (
                not alone
                or value._links
                or isinstance(value._value, Literal)
                or value._value in reads
            ):
                self._fail("an array that it writes under one name has another one")
        if any(id(root) in cells for value in begun for root in roots_of(value)):
            self._fail("an array that names exchange is written under another one")
        if len({id(value) for value in begun}) < len(begun):
            self._fail("two names that it writes are one array")
        kept: set[int] = set()
        shared = {id(turn.begun[at]) for at in turn.written} | cells
        shared |= {id(root) for at in turn.written for root in roots_of(self.before[at])}
        begun_with = {id(value) for value in turn.begun.values()}
        for at in names - tied.keys() - self.fixed.keys():
            alive = self.loop._used[at] or turn.uses(at)
            old = reached_from(self.before[at]) if at in self.slots else []
            roots = [*turn.reached[at], *old]
            if alive and any(id(root) in shared for root in roots):
                self._fail(f"{self._name(at)} shows an array that it writes")
            older = any(
                self._is_outer(root) or (id(root) in begun_with and root is not turn.after[at])
                for root in turn.roots[at]
            )
            if self.loop._used[at] and older:
                self._fail(f"{self._name(at)} shows an array from before the loop")
            if self.loop._used[at]:
                if any(id(root) in kept for root in turn.roots[at]):
                    self._fail("two names have one array after the loop")
                kept.update([id(root) for root in turn.roots[at]])
            if any(not lies_in_order(leaf) for leaf in leaves_of(turn.after[at])) and alive:
                self._fail(f"{self._name(at)} does not lie in C order")
        for at, value in self.fixed.items():
            if turn.uses(at) and any(id(root) in shared for root in roots_of(value)):
                self._fail(f"{self._name(at)} shows an array that it writes")
        for at in self.slots:
            if not all(map(lies_in_order, leaves_of(self.before[at]))):
                self._fail(f"{self._name(at)} does not lie in C order")

    def _is_outer(self, root: Any) -> bool:
        return root._born <= self._first_cell

    # -- the loop

    def _close(self, turn: Turn, names: set[int], tied: Mapping[int, int]) -> None:
        loop, builder = self.loop, self.builder
        kept = [
            at for at in sorted(names - self.slots.keys() - self.fixed.keys()) if loop._used[at]
        ]
        slots = {**self.slots}
        for at in kept:
            slots[at] = Slot(turn.carries[at].tree, turn.carries[at].given, turn.frozen[at])
            turn.params[at] = [kind.parameter(self._name(at)) for kind in slots[at].kinds]
        params = [var for at in slots for var in turn.params[at]]
        given = [
            atom
            for at, slot in slots.items()
            for atom in atoms_before(self.before[at] if at in self.slots else MISSING, slot)
        ]
        outputs = [atom for at in slots for atom in turn.outputs[at] or ()]
        recording = turn.recording
        cells = recording.params[len(recording.params) - len(self.part.cells) :]
        recording.params = [*self.heads, *[var for var in params if var], *cells]
        recording.outputs = [*turn.truths, *[atom for atom in outputs if atom is not None]]
        ends: Iterator[Var] = iter(())
        if recording.outputs or self.part.cells or recording.checks:
            ends = iter(self._equation(recording, params, given))
        after = {}
        for at, slot in slots.items():
            made = [None if var is None else next(ends) for var in turn.params[at]]
            self._note_numbers(turn, at, made)
            leaves = [
                kind.stand_in(builder, var) for kind, var in zip(slot.kinds, made, strict=True)
            ]
            after[at] = slot.structure.unflatten(leaves)
            self._freeze(turn, at, slot, after[at])
        after.update(self._exchanged(after, tied, turn.written))
        after.update(self.fixed)
        loop.after = tuple(
            [
                after.get(at, MISSING) if at in names else value
                for at, value in enumerate(self.before)
            ]
        )
        if self.count is not None:
            loop.after = self.collector.extend(turn, self.before, loop.after, self.count)
        loop.last = self._last()

    def _freeze(self, turn: Turn, at: int, slot: Slot, value: Any) -> None:
        """Let nobody write what may be another array too, as one from before the loop."""
        if slot.frozen:
            old = reached_from(self.before[at])
            others = [*old, *[root for root in turn.reached[at] if self._is_outer(root)]]
            freeze(arrays_of(value), others, slot.frozen)

    def _begins_as_number(self, at: int, slot: Slot) -> bool:
        """Whether a name may have a Python number before, but a scalar of numpy's after a turn."""
        carry, known = Carry(self.before[at], ""), self.builder.rolling.numbers
        pairs = zip(carry.given, slot.kinds, strict=False)
        changes = any(one.is_weak and not other.is_weak for one, other in pairs)
        return changes or any(number_place(x, known, self.builder.eqns) for x in carry.atoms)

    def _note_numbers(self, turn: Turn, at: int, ends: Sequence[Var | None]) -> None:
        """Note which scalars are Python numbers where some loop inside has no turns."""
        numbers = self.builder.rolling.numbers
        for end, given in zip(ends, turn.outputs[at] or (), strict=False):
            if end is not None and number_place(given, numbers, turn.recording.eqns):
                numbers[end] = self.place

    def _last(self) -> Any:
        """What the target of the loop is afterwards."""
        return self.items.at(self.items.count - 1)

    def _equation(
        self,
        recording: Recording,
        params: Sequence[Var | None],
        given: Sequence[Atom | None],
    ) -> list[Var]:
        options = {"extent": len(self.items), "counted": False}
        closed = ClosedLoop(p.loop, options, self.heads, self.source)
        return closed.close(self.part, recording, params, given)

    def _exchanged(
        self, after: Mapping[int, Any], tied: Mapping[int, int], written: set[int]
    ) -> dict[int, Any]:
        """The arrays from before the loop that names have in the end, with what is in them then."""
        ends = {at: at for at in tied}
        for _ in range((self.count or 0) % order_of(tied)):
            ends = {at: ends[to] for at, to in tied.items()}
        found = {}
        for at, origin in ends.items():
            array = self.before[origin]
            found[at] = array
            if written & tied.keys():
                write(array, after[at]._value)
        return found


MOST_TURNS = 12  # that are recorded to find out what is carried
