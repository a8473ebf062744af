"""Names in a kernel on a device: one for each buffer and loop variable, shared memory in front."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tinyfuse.loops.ir import Alloc, Buffer, For, Scope, Statement, walk_statements
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import substitute_axes, with_buffers, with_inside
from tinyfuse.records import replace
from tinyfuse.stage.index import Axis, affine


def declared_first(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """With all shared memory in front: it is there once, for all turns of a loop."""
    inner = [each for each in walk_statements(body) if isinstance(each, Alloc) and each not in body]
    shared = [each for each in inner if each.buffer.scope is Scope.SHARED]
    for each in shared:
        body = without(body, each.buffer)
    return (*shared, *body)


def with_names(body: tuple[Statement, ...], others: Collection[str]) -> tuple[Statement, ...]:
    """With another name for each buffer of the kernel that is called as another one is."""
    taken, new = set(others), dict[Buffer, Buffer]()
    for each in walk_statements(body):
        if isinstance(each, Alloc):
            name = unused(each.buffer.name, taken)
            if name != each.buffer.name:
                new[each.buffer] = replace(each.buffer, name=name)
    return with_buffers(body, new) if new else body


def with_axes(body: tuple[Statement, ...], others: Collection[str]) -> tuple[Statement, ...]:
    """With another name for each loop variable that is called as a buffer is."""
    statements = list(walk_statements(body))
    taken = {*others, *[each.buffer.name for each in statements if isinstance(each, Alloc)]}
    loops = [each.variable for each in statements if isinstance(each, For)]
    names = {*taken, *[axis.name for axis in loops]}
    new = {
        axis: replace(axis, name=unused(axis.name, names))
        for axis in dict.fromkeys(loops)
        if axis.name in taken
    }
    return _over(body, new) if new else body


def _over(body: Sequence[Statement], new: Mapping[Axis, Axis]) -> tuple[Statement, ...]:
    """Statements with other variables in their loops."""
    values = {old: affine(axis) for old, axis in new.items()}

    def renamed(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        inside = [with_inside(each, renamed) for each in statements]
        return tuple(
            [
                replace(each, variable=new.get(each.variable, each.variable))
                if isinstance(each, For)
                else each
                for each in inside
            ]
        )

    return renamed(substitute_axes(body, values))


def without(body: Sequence[Statement], buffer: Buffer) -> tuple[Statement, ...]:
    """The statements without the one that makes a buffer."""
    kept = [each for each in body if not (isinstance(each, Alloc) and each.buffer is buffer)]
    return tuple([with_inside(each, lambda inner: without(inner, buffer)) for each in kept])
