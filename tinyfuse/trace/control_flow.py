"""Loops and choices of the user's, recorded as one equation each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.records import dataclass
from tinyfuse.source import Source, here
from tinyfuse.trace.builder import GraphBuilder, active
from tinyfuse.trace.carried import Carry, joined
from tinyfuse.trace.cells import write
from tinyfuse.trace.constants import filled_atom
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operations import cast_atom, traced
from tinyfuse.trace.position_bounds import position_bound
from tinyfuse.trace.recording import FALSE, Part, Recording, also, record
from tinyfuse.trace.specs import Check
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.tree import TreeDef

_NONE = Literal(np.int64(0))


def traced_loop(
    extent: int, body: Callable[[TracedInt, Any], Any], init: Any, name: str = "the function"
) -> Any:
    """`extent` turns of a body: from the number of the turn and what is carried to that."""
    builder = active()
    index = Var((), INT64, "turn")
    builder.bounds[index] = 0, max(extent - 1, 0)

    def turn(value: Any) -> Any:
        return body(TracedInt(builder, index), value)

    return _Loop(
        builder, p.loop, {"extent": extent, "counted": False}, [index], turn, init, name
    ).result()


def counted_loop(
    count: Atom,
    most: int,
    body: Callable[[TracedInt, Any], Any],
    init: Any,
    turns: str = "turn",
) -> Any:
    """As many turns as a number says (int64), from none to `most`. turns: what a turn is called."""
    builder = active()
    index = Var((), INT64, turns)
    builder.bounds[index] = 0, max(most - 1, 0)
    if position_bound(builder, count) is None:
        count = builder.define(p.elementwise, (count, _NONE), {"op": "maximum"}, (), INT64)

    def turn(value: Any) -> Any:
        return body(TracedInt(builder, index), value)

    options = {"extent": most, "counted": True}
    return _Loop(builder, p.loop, options, [index], turn, init, "the function", count).result()


def traced_while(
    test: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, name: str = "the function"
) -> Any:
    """Turns of a body as long as a test of what is carried is true."""
    builder = active()

    def turn(value: Any) -> Any:
        _, carried = value
        after = body(carried)
        return truth(test(after)), after

    begin = truth(test(init)), init
    loop = _Loop(builder, p.while_, {}, [], turn, begin, name)
    return loop.result()[1]


def is_unknown(test: Any) -> bool:
    """Whether only a call knows if something is true."""
    kind = type(test)
    if kind is Tracer:
        return test.size == 1 and known_value(test) is None
    return kind is TracedInt or (kind is TracedFloat and test._index is None)


def truth(value: Any) -> Any:
    """A truth value as a scalar of the graph's."""
    x = traced(value)
    if x.size != 1:
        raise errors.BoolConversionError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or "
            "a.all()"
        )
    if x.dtype != BOOL:
        x = x != 0  # type: ignore[assignment]
    return x.reshape(())[()]


class _Loop:
    """A loop that is being recorded.

    leading: what its body takes before what is carried. body: of what is carried to that. count: of
    its turns, where a call decides.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        primitive: Primitive,
        params: dict[str, Any],
        leading: list[Var],
        body: Callable[[Any], Any],
        init: Any,
        name: str,
        count: Atom | None = None,
    ) -> None:
        self.count = count
        self.builder, self.primitive, self.params = builder, primitive, params
        self.leading, self.body = leading, body
        self.source = builder.source or here()
        self.part = Part(builder)
        self.init = Carry(init, f"what {name} is given")
        self.name = name

    def result(self) -> Any:
        """What is carried in the end."""
        begun, recording = self._recorded()
        atoms = self.init.converted(self.init.kinds)
        loop = ClosedLoop(self.primitive, self.params, self.leading, self.source, self.count)
        ends = iter(loop.close(self.part, recording, begun, atoms))
        return self.init.value([None if var is None else next(ends) for var in begun])

    def _recorded(self) -> tuple[list[Var | None], Recording]:
        """The body, recorded until what it gives is of the kind of what it takes."""
        while True:
            begun = self.init.parameters()
            given: list[Carry] = []

            def run(begun: Sequence[Var | None] = begun, given: list[Carry] = given) -> list[Atom]:
                after = Carry(self.body(self.init.value(begun)), f"what {self.name} returns")
                given.append(after)
                kinds = joined(self.init, after, self.source)
                if kinds != self.init.kinds:
                    self.init.kinds = kinds
                    return []
                atoms = after.converted(self.init.kinds)
                return [atom for atom in atoms if atom is not None]

            carried = [var for var in begun if var is not None]
            kinds = list(self.init.kinds)
            recording, _ = self.part.record([*self.leading, *carried], run)
            if kinds == self.init.kinds:
                return begun, recording


@dataclass(slots=True)
class ClosedLoop:
    """A loop whose body has been recorded. leading: what its body takes first. count: of its turns,
    where a call decides."""

    primitive: Primitive
    params: dict[str, Any]
    leading: list[Var]
    source: Source
    count: Atom | None = None

    def close(
        self,
        part: Part,
        recording: Recording,
        begun: Sequence[Var | None],
        given: Sequence[Atom | None],
    ) -> list[Var]:
        """Append the equation of a loop, and let what it writes be as it is in the end.

        begun, given: the parameters that the body begins with, and what they are before. Returns
        what is carried in the end.
        """
        builder = part.builder
        carried = [var for var in begun if var is not None]
        reads = recording.reads()
        groups = _saying_the_same(recording.checks)
        flags = [_flag(group) for group in groups]
        outputs = [*recording.outputs, *part.values(recording)]
        outputs += [
            _any(recording, [flag, *group]) for flag, group in zip(flags, groups, strict=True)
        ]
        written = recording.params[len(self.leading) + len(carried) :]
        last = [] if self.count is None else [self.count]
        inputs = [
            *self.leading,
            *carried,
            *written,
            *flags,
            *reads,
            *[Var((), INT64) for _ in last],
        ]
        graph = Graph("body", tuple(inputs), tuple(recording.eqns), tuple(outputs))
        operands: list[Atom] = [atom for atom in given if atom is not None]
        operands += [cell._value for cell in part.cells]
        operands += [FALSE for _ in flags]
        params = {**self.params, "body": graph}
        like = [*carried, *written, *flags]
        operands += [*reads, *last]
        made = define(builder, self.primitive, operands, params, like, self.source)
        ends = made[: len(carried)]
        part.write_back(made[len(carried) : len(carried) + len(written)])
        for group, flag in zip(groups, made[len(carried) + len(written) :], strict=True):
            builder.checks.append(_afterwards(group[0], flag))
        return ends


def stacks_for(
    body: Callable[[TracedInt, Any], tuple[Any, Any]], init: Any, count: int
) -> tuple[list[Any], TreeDef]:
    """New arrays for what a body gives besides what it carries, one element for each turn."""
    builder = active()
    index = Var((), INT64, "turn")
    builder.bounds[index] = 0, max(count - 1, 0)
    given: list[Carry] = []

    def run() -> list[Atom]:
        carry = Carry(init, "init")
        value = carry.value(carry.parameters())
        given.append(Carry(body(TracedInt(builder, index), value)[1], "what it gives"))
        return []

    record(builder, [index], run)
    stacks: list[Tracer | None] = []
    for kind in given[0].kinds:
        if kind.dtype is None:
            stacks.append(None)
        else:
            zeros = filled_atom((count, *kind.shape), kind.dtype.type(0))
            stacks.append(Tracer(builder, zeros))
    return stacks, given[0].tree


def _afterwards(check: Check, flag: Var) -> Check:
    """A check that is made once for all turns of a loop, or after a choice."""
    return Check(flag, check.error, _said_afterwards(check), None, None, check.place)


def _said_afterwards(check: Check) -> str:
    if check.operand is not None and check.message.startswith("\n"):
        return "a value does not fit where a loop puts it" + check.message
    return check.message


def _saying_the_same(checks: Iterable[Check]) -> list[list[Check]]:
    """Checks of which one is enough afterwards."""
    groups: dict[Any, list[Check]] = {}
    for check in checks:
        groups.setdefault((check.error, _said_afterwards(check), check.place), []).append(check)
    return list(groups.values())


def _flag(group: Sequence[Check]) -> Var:
    return Var((), BOOL, "outside" if group[0].error is errors.IndexingError else "failed")


def _any(recording: Recording, checks: Sequence[Check | Var]) -> Atom:
    """Whether any of some truths holds at the end of a recording."""
    found: Atom = FALSE
    for check in checks:
        truth = check.output if isinstance(check, Check) else check
        found = truth if found is FALSE else also(recording, "logical_or", found, truth)
    return found


def define(
    builder: GraphBuilder,
    primitive: Primitive,
    inputs: Sequence[Atom],
    params: dict[str, Any],
    like: Sequence[Var],
    source: Any,
) -> list[Var]:
    """Append an equation with outputs of the types and names of some variables."""
    outputs = [Var(var.shape, var.dtype, var.name) for var in like]
    for output in outputs:
        builder.memory.lie(output, "C", None)
    if outputs:
        first, *others = outputs
        builder.eqns.append(Eqn(primitive, tuple(inputs), params, first, source, tuple(others)))
    return outputs


# -- choices


def traced_choice(
    index: Any, branches: Sequence[Callable[[], Any]], names: Sequence[str] = ()
) -> Any:
    """What one of several functions without arguments returns.

    index: which one, a traced integer; the nearest where there is none of that number.
    """
    builder = active()
    return _Choice(builder, index, branches, names).result()


class _Choice:
    def __init__(
        self,
        builder: GraphBuilder,
        index: Any,
        branches: Sequence[Callable[[], Any]],
        names: Sequence[str],
    ) -> None:
        self.builder, self.branches = builder, branches
        self.source = builder.source or here()
        self.index = cast_atom(traced(index)._atom, INT64)
        self.names = names or [f"branch {at}" for at in range(len(branches))]

    def result(self) -> Any:
        branches = zip(self.branches, self.names, strict=True)
        recorded = [self._branch(branch, name) for branch, name in branches]
        first = recorded[0][1]
        for _, other in recorded[1:]:
            first.kinds = joined(first, other, self.source, of_turns=False)
        parts = []
        for recording, carry in recorded:
            start = len(self.builder.eqns)
            atoms = carry.converted(first.kinds)
            recording.eqns += self.builder.cut(start)
            recording.outputs = [atom for atom in atoms if atom is not None]
            parts.append(recording)
        ends = iter(close_choice(self.builder, self.index, parts, self.source))
        return first.value([None if kind.word == "static" else next(ends) for kind in first.kinds])

    def _branch(self, branch: Callable[[], Any], name: str) -> tuple[Recording, Carry]:
        given: list[Carry] = []

        def run() -> list[Atom]:
            given.append(Carry(branch(), f"what {name} returns"))
            return [atom for atom in given[-1].atoms if atom is not None]

        return record(self.builder, [], run), given[-1]


def close_choice(
    builder: GraphBuilder, index: Atom, parts: Sequence[Recording], source: Source
) -> list[Var]:
    """Append the equation of a choice, and let what its branches write be as it is afterwards.

    Returns what they give, of the kinds of the first one's.
    """
    cells: list[Any] = []
    for recording in parts:
        new = [cell for cell, _ in recording.written if not any(cell is each for each in cells)]
        cells += new
    groups = _saying_the_same([check for recording in parts for check in recording.checks])
    values = [[_end_of(recording, cell) for cell in cells] for recording in parts]
    for recording, ends in zip(parts, values, strict=True):
        flags = [_any(recording, [c for c in recording.checks if c in group]) for group in groups]
        recording.outputs = [*recording.outputs, *ends, *flags]
    reads = list(dict.fromkeys([var for recording in parts for var in recording.reads()]))
    graphs = [
        Graph(
            "branch",
            tuple(reads),
            tuple(each.eqns),
            tuple(each.outputs),
        )
        for each in parts
    ]
    named = [cell._value for cell in cells]
    count = len(parts[0].outputs) - len(cells) - len(groups)
    given = [each.outputs[:count] for each in parts]
    like = [_like_all(atoms) for atoms in zip(*given, strict=True)]
    like += [Var(atom.shape, atom.dtype, getattr(atom, "name", None)) for atom in named]
    like += [_flag(group) for group in groups]
    made = define(builder, p.cond, (index, *reads), {"branches": tuple(graphs)}, like, source)
    for cell, output in zip(cells, made[count:], strict=False):
        write(cell, output, follow=False)
    for group, flag in zip(groups, made[count + len(cells) :], strict=True):
        builder.checks.append(_afterwards(group[0], flag))
    return made[:count]


def _like_all(atoms: Sequence[Atom]) -> Var:
    """A variable like each of some, with their name if they have one."""
    names = {getattr(atom, "name", None) for atom in atoms}
    return Var(atoms[0].shape, atoms[0].dtype, names.pop() if len(names) == 1 else None)


def _end_of(recording: Recording, cell: Any) -> Atom:
    """What an array holds at the end of a branch."""
    held: Atom = cell._value
    return next((atom for each, atom in recording.written if each is cell), held)
