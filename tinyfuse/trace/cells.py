"""Cells: what holds the value of an array while it is traced, and views of other cells.

A cell holds the atom that stands for its elements now. Writing puts another atom there. A view has
a base and the equation that reads it from there: it is read again after its base has been written,
and what is written into it is put into its base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    """

    __slots__ = (
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


READ_ONLY = "assignment destination is read-only"


def require_writable(cell: Cell, words: str = READ_ONLY) -> None:
    """Raises InvalidArgumentError with numpy's words, InPlaceWriteError with other reasons."""
    for each in path_to_root(cell):
        if each._read_only is not None:
            reason = each._read_only
            raise InPlaceWriteError(reason) if reason else InvalidArgumentError(words)


def write(cell: Cell, atom: Atom, words: str = READ_ONLY) -> None:
    """Put in new elements, of the same shape and dtype: a fresh value that no cell holds.

    words: what numpy says where the array can't be written.
    """
    builder = cell._builder
    require_writable(cell, words)
    path = path_to_root(cell)
    root = path[-1]
    note(root)
    if root._layout is None:
        root._layout = root._value
    builder.writes += 1
    values = [atom]
    for view in path[:-1]:
        values.append(_put(builder, view, values[-1]))
    for each, value in zip(path, values, strict=True):
        note(each)
        _name_after(value, each._value)
        if type(value) is Var and len(value.shape) > 1:
            builder.memory.stay(value, each)
        each._value, each._version = value, builder.writes
    if root._written is None:
        root._written = words + builder.place()


STATE = (
    "_base",
    "_layout",
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
