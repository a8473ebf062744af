"""Adjacent loops that walk memory as one become one loop."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import For, LoopKind, Statement
from tinyfuse.loops.rewrite import indices_of, substitute_axes, with_inside
from tinyfuse.stage.index import Affine, Axis, affine


def collapse(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Merge a loop with the only loop in it where all indices use both as one flat counter."""
    return tuple([_collapsed(statement) for statement in statements])


def _collapsed(node: Statement) -> Statement:
    node = with_inside(node, collapse)
    inner = node.body[0] if isinstance(node, For) and len(node.body) == 1 else None
    if (
        isinstance(node, For)
        and isinstance(inner, For)
        and not node.count
        and _is_flat(node.variable, inner)
    ):
        extent = node.variable.extent * inner.variable.extent
        merged = Axis(node.variable.name, extent)
        values = {node.variable: Affine(), inner.variable: affine(merged)}
        kind = LoopKind.PARALLEL if node.kind is LoopKind.PARALLEL else inner.kind
        return For(merged, kind, substitute_axes(inner.body, values))
    return node


def _is_flat(outer: Axis, inner: For) -> bool:
    variable = inner.variable
    if outer.start or variable.start or inner.kind is LoopKind.UNROLL or inner.count is not None:
        return False
    return all(_as_one(index, outer, variable) for index in indices_of(inner.body))


def _as_one(index: Affine, outer: Axis, inner: Axis) -> bool:
    """Whether the two appear only as `inner.extent * outer + inner`, times something."""
    if index.coefficient(outer) != index.coefficient(inner) * inner.extent:
        return False
    return not any(
        term.index.depends_on(outer) or term.index.depends_on(inner)
        for term, _ in index.terms
        if not isinstance(term, Axis)
    )
