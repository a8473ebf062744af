"""Cells: what holds the value of an array while it is traced, and views of other cells.

A cell holds the atom that stands for its elements now. Writing puts another atom there. A view has
a base and the equation that reads it from there: it is read again after its base has been written,
and what is written into it is put into its base. Cells that are one array where some truth holds,
as data decides, are linked: what is written into one is chosen by that truth for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyfuse.errors import InPlaceWriteError, InvalidArgumentError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Primitive, Var

if TYPE_CHECKING:
    from tinyfuse.trace.builder import GraphBuilder

# What decides whether a cell is a view of its base.
Question = Callable[[Any], bool]


class Cell:
    """The value of a traced array.

    _value: the atom. _version: of the memory that the value was read from; it is stale where the
        root has another one.
    _base, _step: of a view what it is a view of, and the equation that reads it from there; none
        where it is the same elements.
    _root: the cell at the end of the bases; None for a root.
    _shares: whether a view is one, or what is to be asked about the layout of the base in memory:
        then it may be a copy.
    _read_only: why it, and what is a view of it, can't be written; an empty text where numpy says
        so, None where it can.
    _layout: of a root that has been written the value that it was made with, which tells how it
        lies in memory.
    _written: of a root that has been written, what is said where it can't be.
    _born: how many cells there were when it was made.
    _links: of a root, (weakly) the other roots that may be the same array, each with the truth that
        says so; with None where no truth does: then none of them can be written.
    """

    __slots__ = (
        *("__weakref__", "_links"),
        *("_base", "_born", "_builder", "_layout", "_read_only", "_root", "_scalar", "_shares"),
        "_step",
        *("_value", "_version", "_written"),
    )

    def __init__(self, builder: GraphBuilder, atom: Atom, scalar: bool = False):
        self._builder = builder
        self._value = atom
        self._scalar = scalar
        self._version = 0
        self._base: Any = None
        self._root: Any = None
        self._step: Eqn | None = None
        self._shares: bool | Question = True
        self._read_only: str | None = None
        self._layout: Atom | None = None
        self._written: str | None = None
        self._links: tuple[Link, ...] = ()
        builder.cells += 1
        self._born = builder.cells

    @property
    def _atom(self) -> Atom:
        """What stands for the elements now."""
        root = self._root
        if root is not None and root._version != self._version:
            _refresh(self)
        return self._value

    def _become_view(self, base: Any, step: Eqn | None, shares: bool | Question = True) -> None:
        """Show the elements of another cell from now on, which the equation has just read.

        Without an equation: all of them.
        """
        root = base._root
        self._base, self._step, self._shares = base, step, shares
        self._root = base if root is None else root
        self._version = self._root._version

    def _assign(self, value: Any) -> None:
        """Put in new elements, of the same shape and dtype: a fresh value that no cell holds."""
        write(self, value._atom)


# A cell that may be the same array, where a truth holds.
Link = tuple["ref[Cell]", Atom | None]

READ_ONLY = "assignment destination is read-only"


def require_writable(cell: Cell, words: str = READ_ONLY) -> None:
    """Raises InvalidArgumentError with numpy's words, InPlaceWriteError with other reasons."""
    path = path_to_root(cell)
    for each in (*path, *[other for other, _ in links_of(path[-1])]):
        if each._read_only is not None:
            reason = each._read_only
            raise InPlaceWriteError(reason) if reason else InvalidArgumentError(words)


def write(cell: Cell, atom: Atom, words: str = READ_ONLY, follow: bool = True) -> None:
    """Put in new elements, of the same shape and dtype: a fresh value that no cell holds.

    words: what numpy says where the array can't be written. follow: whether cells that may be the
    same array get them too.
    """
    builder = cell._builder
    require_writable(cell, words)
    path = path_to_root(cell)
    values = [atom]
    for view in path[:-1]:
        values.append(_put(builder, view, values[-1]))
    others = links_of(path[-1]) if follow else []
    values += [_chosen(builder, when, values[-1], other) for other, when in others]
    builder.writes += 1
    for each, value in zip([*path, *[other for other, _ in others]], values, strict=True):
        note(each)
        if each._root is None:
            each._layout = each._value if each._layout is None else each._layout
            each._written = each._written or words + builder.place()
        _name_after(value, each._value)
        if type(value) is Var and len(value.shape) > 1:
            builder.memory.stay(value, each)
        each._value, each._version = value, builder.writes


# -- cells that are one array, as data decides


def link(cell: Cell, others: Sequence[tuple[Cell, Atom]]) -> None:
    """Let a new cell be each of some roots where a truth holds, of which one does at most."""
    builder = cell._builder
    found: dict[int, tuple[Cell, Atom | None]] = {}
    for other, when in others:
        for each, also in [(other, when), *links_of(other)]:
            truth = when if also is when else _both(builder, "logical_and", when, also)
            if id(each) in found:
                truth = _both(builder, "logical_or", found[id(each)][1], truth)
            found[id(each)] = each, truth
    for each, known in found.values():
        _add_link(each, cell, known)
        _add_link(cell, each, known)


def freeze(made: Sequence[Cell], others: Sequence[Cell], reason: str) -> None:
    """Let nobody write these new cells, and roots that they may be, no truth says when."""
    for cell in (*made, *others):
        note(cell)
        cell._read_only = reason
    for cell in made:
        for other in others:
            _add_link(other, cell, None)
            _add_link(cell, other, None)


def reached(roots: Sequence[Cell]) -> list[Any]:
    """These roots, and all that may be the same arrays."""
    found = {id(root): root for root in roots}
    waiting = [*roots]
    while waiting:
        for other, _ in links_of(waiting.pop()):
            if id(other) not in found:
                found[id(other)] = other
                waiting.append(other)
    return [*found.values()]


def _add_link(cell: Cell, other: Cell, truth: Atom | None) -> None:
    note(cell)
    cell._links = (*[each for each in cell._links if each[0]() is not None], (ref(other), truth))


def links_of(root: Cell) -> list[tuple[Cell, Any]]:
    """The cells that may be the same array, and that somebody can look at."""
    pairs = [(other(), truth) for other, truth in root._links]
    return [(other, truth) for other, truth in pairs if other is not None]


def _both(builder: GraphBuilder, op: str, one: Atom | None, other: Atom | None) -> Atom | None:
    """Of two truths another one; None of what none says."""
    if one is None or other is None:
        return None
    return builder.define(p.elementwise, (one, other), {"op": op}, (), one.dtype)


def _chosen(builder: GraphBuilder, when: Atom, value: Atom, other: Cell) -> Atom:
    """The new elements of a cell that is the written one where a truth holds."""
    shape = value.shape
    mask = builder.emit(p.broadcast, when, shape=shape) if shape else when
    atoms = (mask, value, other._value)
    return builder.define(p.elementwise, atoms, {"op": "select"}, shape, value.dtype)


STATE = (
    "_base",
    "_layout",
    "_links",
    "_read_only",
    "_root",
    "_shares",
    "_step",
    "_value",
    "_version",
    "_written",
)


def note(cell: Any) -> None:
    """Remember what a cell is like before it is changed, for whoever records what changes."""
    changed = cell._builder.changed
    if changed is not None and id(cell) not in changed:
        changed[id(cell)] = cell, tuple([getattr(cell, name) for name in STATE])


def put_back(cell: Any, state: Sequence[Any]) -> None:
    """Let a cell be as it was when it was noted."""
    for name, value in zip(STATE, state, strict=True):
        setattr(cell, name, value)


def _put(builder: GraphBuilder, view: Any, atom: Atom) -> Atom:
    """What the base of a view holds when these are the view's elements."""
    step = view._step
    return atom if step is None else PUTS[step.primitive](builder, step, view._base._atom, atom)


def path_to_root(cell: Cell) -> list[Any]:
    """The cell and its bases. Views that turn out to be copies are roots from now on."""
    path: list[Any] = [cell]
    while path[-1]._base is not None:
        if shares_memory(path[-1]):
            path.append(path[-1]._base)
        else:
            root = path[-1]._root
            _detach(path[-1])
            cell._builder.writes += 1
            root._version = cell._builder.writes  # so that all that was read there looks again
    return path


def _refresh(view: Cell) -> None:
    """Read a stale view again, and the views that it is a view of."""
    stale: list[Any] = [view]
    while True:
        base = stale[-1]._base
        if base._root is None or base._root._version == base._version:
            break
        stale.append(base)
    for cell in reversed(stale):
        note(cell)
        if not shares_memory(cell):
            _detach(cell)
            continue
        base = cell._base
        cell._root = base if base._root is None else base._root
        if cell._version != cell._root._version:
            cell._value = _read_again(cell)
            cell._version = cell._root._version


def _read_again(view: Any) -> Atom:
    """The view's equation, of what its base holds now."""
    step, old = view._step, view._value
    if step is None:
        return view._base._value
    output = Var(old.shape, old.dtype, getattr(old, "name", None))
    builder = view._builder
    source = builder.source or step.source
    inputs = (view._base._value, *step.inputs[1:])
    builder.eqns.append(Eqn(step.primitive, inputs, step.params, output, source))
    return output


def _detach(cell: Cell) -> None:
    """Make a root of what looked like a view and is a copy: it keeps what was read last."""
    note(cell)
    if cell._step is None:
        cell._value = _copied_in_c_order(cell._builder, cell._value)
        cell._builder.writes += 1
        cell._version = cell._builder.writes
    cell._base = cell._root = cell._step = None
    cell._shares = True


def _copied_in_c_order(builder: GraphBuilder, atom: Atom) -> Atom:
    flat = builder.emit(p.reshape, atom, shape=(math.prod(atom.shape),))
    copied = builder.emit(p.cast, flat, dtype=atom.dtype)
    return builder.emit(p.reshape, copied, shape=atom.shape)


def shares_memory(view: Any) -> bool:
    """Whether numpy makes a view here."""
    if type(view._shares) is not bool:
        view._shares = view._shares(view)
    return view._shares


def _name_after(atom: Atom, old: Atom) -> None:
    """New elements have the name of those that were there before."""
    if type(atom) is Var and atom.name is None and type(old) is Var:
        object.__setattr__(atom, "name", old.name)  # no one has seen the variable yet
        object.__setattr__(atom, "given", old.given)


# -- from the elements of a view to those of its base

Put = Callable[["GraphBuilder", Eqn, Atom, Atom], Atom]


def _put_reshaped(builder: GraphBuilder, step: Eqn, base: Atom, value: Atom) -> Atom:
    return builder.define(p.reshape, (value,), {"shape": base.shape}, base.shape, base.dtype)


def _put_transposed(builder: GraphBuilder, step: Eqn, base: Atom, value: Atom) -> Atom:
    axes = step.params["axes"]
    inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return builder.define(p.transpose, (value,), {"axes": inverse}, base.shape, base.dtype)


def _put_slice(builder: GraphBuilder, step: Eqn, base: Atom, value: Atom) -> Atom:
    params = {"starts": step.params["starts"], "steps": step.params["steps"]}
    return builder.define(p.update, (base, value), params, base.shape, base.dtype)


def _put_at(builder: GraphBuilder, step: Eqn, base: Atom, value: Atom) -> Atom:
    atoms = (base, value, *step.inputs[1:])
    return builder.define(
        p.scatter, atoms, {"op": "set", "dtype": base.dtype}, base.shape, base.dtype
    )


def _put_part(builder: GraphBuilder, step: Eqn, base: Atom, value: Atom) -> Atom:
    other = builder.emit(p.part, base, at=1 - step.params["at"])
    parts = (other, value) if step.params["at"] else (value, other)
    return builder.emit(p.from_parts, *parts)


PUTS: dict[Primitive, Put] = {
    p.gather: _put_at,
    p.part: _put_part,
    p.reshape: _put_reshaped,
    p.transpose: _put_transposed,
    p.slice_: _put_slice,
}
