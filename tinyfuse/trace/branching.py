"""Plain Python `if` statements and conditional expressions, where data decides.

The rewritten function (see `rewriting`) iterates over an `If`, whose body has both parts: once with
the truth that Python knows, or else with both, each recorded apart from the rest. What a name means
afterwards is chosen by the test. Where it can be one of two arrays, what is written into it later
is chosen by the test for these. That takes whole arrays, each from before or from one part alone;
else none of them can be written any more.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Var
from tinyfuse.source import Source, here, location
from tinyfuse.trace.builder import GraphBuilder, state
from tinyfuse.trace.carried import Carry, Kind
from tinyfuse.trace.cells import freeze, link, links_of, reached
from tinyfuse.trace.control_flow import close_choice, is_unknown, truth
from tinyfuse.trace.operation import explained
from tinyfuse.trace.python_state import PythonState
from tinyfuse.trace.recording import FALSE, Recorder, Recording
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.turns import (
    MISSING,
    UNSET,
    Slot,
    arrays_of,
    atoms_before,
    can_be_linked,
    cells_of,
    is_array,
    reached_from,
    read_names,
)
from tinyfuse.tree import flatten


class If:
    """An `if` statement of a traced function.

    names: the variables that its parts bind. getters: for each a function that reads it. used:
    whether anything but the parts reads it. written: names of what the parts put elements into.
    carrying: whether the names are to be bound to `carried` before a part, to `after` behind both.
    """

    def __init__(
        self,
        test: Any,
        names: tuple[str, ...],
        getters: tuple[Callable[[], Any], ...],
        used: tuple[bool, ...],
        written: tuple[Callable[[], Any], ...],
    ) -> None:
        self._test, self._names, self._getters, self._used = test, names, getters, used
        self._written = written
        self.carrying = False
        self.carried: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[bool]:
        builder = state.builder
        written = read_names(self._written)
        arrays = all(type(each) is Tracer or each is MISSING for each in written)
        if builder is None or not is_unknown(self._test) or not arrays:
            yield bool(self._test)
            return
        source = here()
        before = read_names(self._getters)
        python = PythonState(cells_of(self._getters))
        sides = []
        for side in (False, True):
            recorder = Recorder(builder)
            self.carrying, self.carried = True, tuple(before)
            try:
                yield side
            except GeneratorExit:
                recorder.end([])
                raise
            sides.append(_Side(recorder, read_names(self._getters)))
        _require_unchanged(python, self._test)
        self.after = _Merged(builder, sides[0], sides[1], source).values(
            self._test, self._names, self._used
        )


def choose(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`yes() if test else no()`."""
    builder = state.builder
    if builder is None or not is_unknown(test):
        return yes() if test else no()
    source = here()
    python = PythonState([])
    sides = []
    for branch in (no, yes):
        recorder = Recorder(builder)
        try:
            value = branch()
        except BaseException:
            recorder.end([])
            raise
        sides.append(_Side(recorder, [value]))
    _require_unchanged(python, test)
    merged = _Merged(builder, sides[0], sides[1], source)
    return merged.values(test, ("its value",), (True,))[0]


def _require_unchanged(python: PythonState, test: Any) -> None:
    """Raises BoolConversionError where parts change something of Python's: only one should."""
    if python.has_changed():
        bool(test)


# Of an array of a part: its place among the leaves of its name, one from before that it is, and the
# truth that says so; None where it always is.
_Tie = tuple[int, Any, "Atom | None"]


class _Side:
    """A part that has been recorded, with what names mean at its end."""

    def __init__(self, recorder: Recorder, after: list[Any]) -> None:
        self.after = after
        self.carries = [Carry(value, "") for value in after]
        self.reached = [reached_from(value) for value in after]
        self._recorder = recorder
        self.ties = {at: self._ties(at) for at in range(len(after)) if self._can_be_linked(at)}
        self.recording: Recording = recorder.end([])

    def _can_be_linked(self, at: int) -> bool:
        """Whether the arrays of a name are from before, or made here and no other name has them."""
        value = self.after[at]
        others = [root for other, roots in enumerate(self.reached) if other != at for root in roots]
        return can_be_linked(value) and all(
            is_older(root) or not any(root is each for each in others)
            for is_older in (self._recorder.is_older,)
            for leaf in arrays_of(value)
            for root in ([] if is_older(leaf) else reached([leaf]))
        )

    def _ties(self, at: int) -> list[_Tie]:
        """Which arrays from before those of a name are, if this part runs."""
        found = []
        for place, leaf in enumerate(flatten(self.after[at])[0]):
            if is_array(leaf):
                links = [(leaf, None)] if self._recorder.is_older(leaf) else links_of(leaf)
                older = [link for link in links if self._recorder.is_older(link[0])]
                found += [(place, *link) for link in older]
        return found


class _Merged:
    """Two parts of which one runs."""

    def __init__(self, builder: GraphBuilder, no: _Side, yes: _Side, source: Source) -> None:
        self.builder, self.no, self.yes, self.source = builder, no, yes, source

    def values(self, test: Any, names: tuple[str, ...], used: tuple[bool, ...]) -> tuple[Any, ...]:
        """What the names mean after both parts."""
        chosen = [at for at in range(len(names)) if self.no.after[at] is not self.yes.after[at]]
        for one, other in ((self.no, self.yes), (self.yes, self.no)):
            for at in chosen:
                if one.after[at] is UNSET:
                    one.carries[at] = _anything(other.carries[at])
        kinds = {at: self._kinds(at, names[at]) for at in chosen if used[at]}
        linked = [at for at in kinds if at in self.no.ties and at in self.yes.ties]
        inner = [
            (at, *tie, side)
            for at in linked
            for side in (self.no, self.yes)
            for tie in side.ties[at]
        ]
        for side in (self.no, self.yes):
            atoms = [atom for at in kinds for atom in side.carries[at].converted(kinds[at])]
            truths = [tied if of is side else FALSE for *_, tied, of in inner if tied is not None]
            side.recording.outputs = [*[atom for atom in atoms if atom is not None], *truths]
        builder = self.builder
        decided = truth(test)._atom
        index = builder.emit(p.cast, decided, dtype=INT64)
        parts = [self.no.recording, self.yes.recording]
        ends: Iterator[Var] = iter(())
        if any(part.outputs or part.written or part.checks for part in parts):
            ends = iter(close_choice(builder, index, parts, self.source))
        after, found = dict.fromkeys(chosen, MISSING), {}
        for at, of_leaves in kinds.items():
            leaves = [
                kind.stand_in(builder, None if kind.dtype is None else next(ends))
                for kind in of_leaves
            ]
            after[at] = self.yes.carries[at].tree.unflatten(leaves)
            found[at] = leaves
            if at not in linked:
                self._freeze(at, leaves)
        self._link(found, inner, decided, ends)
        return tuple([after.get(at, value) for at, value in enumerate(self.yes.after)])

    def _kinds(self, at: int, name: str) -> list[Kind]:
        """The kinds that a name has in both parts. Raises BoolConversionError where they differ."""
        no, yes = self.no.carries[at], self.yes.carries[at]
        missing = any(side.after[at] is MISSING for side in (self.no, self.yes))
        if no.tree == yes.tree and not missing:
            common = [_common(*pair) for pair in zip(no.given, yes.given, strict=True)]
            found = [kind for kind in common if kind is not None]
            if len(found) == len(common):
                return found
        old, new = [
            "nothing"
            if side.after[at] is MISSING
            else ", ".join(map(str, side.carries[at].given)) or repr(side.after[at])
            for side in (self.yes, self.no)
        ]
        error = errors.BoolConversionError(
            f"{name} is {old} where the test is true, else {new}, and only the compiled function "
            "knows which: let it have one shape and dtype, or use np.where(condition, a, b) or "
            "tinyfuse.cond"
        )
        raise explained(error, self.source)

    def _link(
        self,
        found: dict[int, list[Any]],
        inner: Sequence[tuple[int, int, Any, Atom | None, _Side]],
        decided: Atom,
        truths: Iterator[Var],
    ) -> None:
        """Let what is written into an array show in those from before that it is.

        found: the leaves of names.
        """
        others: dict[tuple[int, int], list[Any]] = {}
        for at, place, cell, tied, side in inner:
            when: Atom = decided if tied is None else next(truths)
            if tied is None and side is self.no:
                when = self.builder.emit(p.elementwise, decided, op="logical_not")
            others.setdefault((at, place), []).append((cell, when))
        for (at, place), cells in others.items():
            link(found[at][place], cells)

    def _freeze(self, at: int, leaves: list[Any]) -> None:
        """Let nobody write what may be another array too."""
        arrays = [leaf for leaf in leaves if is_array(leaf)]
        freeze(arrays, [*self.no.reached[at], *self.yes.reached[at]], one_of_two(self.source))


def one_of_two(source: Source) -> str:
    """Why an array can't be written that may be another one."""
    return (
        "an array that is one of two, as data decides, can't be written afterwards: copy it, "
        f"as in x = x.copy()\n  decided at {location(source)}"
    )


def _anything(like: Carry) -> Carry:
    """What nobody reads, of the kinds of something else."""
    made = copy.copy(like)
    made.atoms = atoms_before(MISSING, Slot(like.tree, like.given))
    return made


def _common(one: Kind, other: Kind) -> Kind | None:
    """A kind for what is of one or the other.

    A number of Python's counts as one of numpy's, of its dtype or a float; an int as a float.
    """
    if one.is_weak != other.is_weak and not (one.shape or other.shape):
        weak, strong = (one, other) if one.is_weak else (other, one)
        assert strong.dtype is not None
        fits = strong.dtype == weak.dtype or strong.dtype.kind == "f"
        return strong if fits else None
    if one.is_weak and other.is_weak:
        return one.joined(other)
    if one.is_truth and other.is_truth and one != other:
        return Kind("scalar", (), BOOL)
    return one.joined(other) if one.word == other.word else None
