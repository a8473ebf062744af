"""The C of loops with exponentials of a row below one number: one call does all of a row."""

from __future__ import annotations

from tinyfuse.dtypes import FLOAT32
from tinyfuse.emit.blocks import BLOCK, KernelText
from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.divisions import is_along, needed
from tinyfuse.loops.exponentials import exponentials_below, row_of
from tinyfuse.loops.ir import Buffer, For, Row, Scope, Store
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_values
from tinyfuse.stage.expr import Expr, Load, Op
from tinyfuse.stage.index import Affine, affine


def lines_with_exponentials(loop: For, kernel: KernelText, taken: set[str]) -> list[str] | None:
    """The lines of a loop, in a kernel where the names in `taken` have a meaning; None for one
    without such exponentials, or of too many steps to keep them on the stack."""
    found = exponentials_below(loop)
    if not found:
        return None
    target = _only_target(loop, found[0])
    if target:
        return [_call(target, found[0], loop, kernel)]
    if loop.variable.extent * FLOAT32.itemsize > BLOCK:
        return None
    lines, kept = [], dict[Expr, Expr]()
    for node in found:
        block = Buffer(unused("exponentials", taken), FLOAT32, loop.variable.extent, Scope.STACK)
        lines.append(f"{type_text(FLOAT32, kernel.used)} {block.name}[{block.size}];")
        lines.append(_call(Row(block, Affine()), node, loop, kernel))
        kept[node] = Load(block, (affine(loop.variable) - loop.variable.start,))
    body = tuple(needed(with_values(loop.body, kept)))
    first = loop.variable.start
    last = first + loop.variable.extent
    return lines + kernel.steps(For(loop.variable, loop.kind, body), str(first), str(last))


def _only_target(loop: For, node: Op) -> Row | None:
    """Where the exponentials go if that is all that a loop does, side by side."""
    store = loop.body[0]
    if len(loop.body) > 1 or not isinstance(store, Store) or store.value != node:
        return None
    if store.offset is not None or not is_along(store.position, loop):
        return None
    return _row(store.buffer, store.position, loop)


def _call(to: Row, node: Op, loop: For, kernel: KernelText) -> str:
    source, top = row_of(node), node.operands[0].parts[1]
    rows = [kernel.row(row) for row in (to, _row(source.source, source.indices[0], loop))]
    count = str(loop.variable.extent)
    return f"{kernel.prelude_call('tf_exp_row_float', *rows, count, kernel.value(top))};"


def _row(buffer: Buffer, position: Affine, loop: For) -> Row:
    return Row(buffer, position.substitute({loop.variable: loop.variable.start}))
