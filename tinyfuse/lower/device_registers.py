"""Registers of a thread: how many its values need, and what makes them fewer.

The compiler alone knows how many registers a kernel takes. What is counted here tells beforehand
where they are far too few; where the compiler says that it spills some, a kernel is lowered again
with the next remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Let,
    Local,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import values_of, with_inside
from tinyfuse.lower.device_nests import Arranged
from tinyfuse.records import replace
from tinyfuse.stage.expr import Load, walk

OTHERS = 16  # registers for places and counters
WORD = 4  # bytes of a register
OUTSIDE = (Scope.ARGUMENT, Scope.SCRATCH)


class Remedy(IntEnum):
    """What is done for a kernel that spills registers, each besides those before it."""

    NONE = 0
    AT_ONCE = 1  # two blocks at once are enough, of which none loads ahead
    FEWER = 2  # each thread does fewer elements at once
    HALVES = 3  # what the kernel stores is stored by two
    QUARTERS = 4


WORDS = {
    Remedy.AT_ONCE: "a multiprocessor holds fewer of its blocks at once, and none loads ahead",
    Remedy.FEWER: "each thread does fewer elements at once",
    Remedy.HALVES: "two kernels store what one did",
    Remedy.QUARTERS: "four kernels store what one did",
}
Remedies = Mapping[str, Remedy]  # by the names of kernels before they are mapped to a device


def values_alive(body: Sequence[Statement]) -> int:
    """Registers for what a step of a nest has at once: names between where they are given and where
    they are last used, and all that is loaded along with them."""
    last: dict[Local, int] = {}
    for at, each in enumerate(body):
        for value in values_of(each):
            last.update({node: at for node in walk(value) if isinstance(node, Local)})
    most = alive = 0
    for at, each in enumerate(body):
        ends = [local for local, end in last.items() if end == at]
        alive += _words(each.local) if isinstance(each, Let) and each.local in last else 0
        most = max(most, alive + max([_loaded(value) for value in values_of(each)], default=0))
        alive -= sum(map(_words, ends))
    return most


def _words(value: Local | Load) -> int:
    return max(1, value.dtype.itemsize // WORD)


def _loaded(value: object) -> int:
    loads = [node for node in walk(value) if isinstance(node, Load)]  # type: ignore[arg-type]
    return sum(map(_words, loads))


def needed(body: Sequence[Statement], items: int) -> int:
    """Registers that a thread needs, roughly, which does so many steps of a nest at once."""
    return values_alive(body) * items + OTHERS


def halves(nest: Arranged) -> tuple[Arranged, Arranged] | None:
    """Two nests that store what one does, the first stores in one and the others in the other;
    None where it stores to one array only, or one would have to see what the other has changed."""
    stores = [each for each in walk_statements(nest.body) if isinstance(each, Store)]
    outside = [each for each in stores if each.buffer.scope in OUTSIDE]
    arrays = list(dict.fromkeys(each.buffer for each in outside))
    if len(arrays) < 2:
        return None
    first = {*arrays[: len(arrays) // 2]}
    second = {*arrays} - first
    one, other = _storing(nest.body, first), _storing(nest.body, second)
    if second & _loads(one) or first & _loads(other):
        return None
    return replace(nest, body=one), replace(nest, body=other)


def _storing(body: tuple[Statement, ...], wanted: set[Buffer]) -> tuple[Statement, ...]:
    """The statements that lead to what is stored in some arrays."""
    used: set[Buffer | Local] = {*wanted}
    while True:
        kept = _leading(body, used)
        values = [value for each in walk_statements(kept) for value in values_of(each)]
        names = {node for value in values for node in walk(value) if isinstance(node, Local)}
        found: set[Buffer | Local] = {
            *names,
            *[each for each in _loads(kept) if each.scope not in OUTSIDE],
        }
        if found <= used:
            return kept
        used |= found


def _leading(body: Sequence[Statement], used: set[Buffer | Local]) -> tuple[Statement, ...]:
    made = [with_inside(each, lambda inner: _leading(inner, used)) for each in body]
    return tuple([each for each in made if _leads(each, used)])


def _leads(node: Statement, used: set[Buffer | Local]) -> bool:
    if isinstance(node, Let):
        return node.local in used
    if isinstance(node, Alloc):
        return node.buffer in used
    if isinstance(node, For):
        return bool(node.body)
    return any(not used.isdisjoint(written_by(each)) for each in walk_statements((node,)))


def _loads(body: Sequence[Statement]) -> set[Buffer]:
    values = [value for each in walk_statements(body) for value in values_of(each)]
    return {node.source for value in values for node in walk(value) if isinstance(node, Load)}
