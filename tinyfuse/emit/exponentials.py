"""The C of loops with exponentials of a row below one number: one call does all of a row."""

from __future__ import annotations

import numpy as np

from tinyfuse.dtypes import FLOAT32
from tinyfuse.emit.blocks import BLOCK, KernelText
from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.divisions import division_in_place, needed
from tinyfuse.loops.exponentials import exponentials_alone, exponentials_below, first_of, row_of
from tinyfuse.loops.ir import Buffer, For, Row, Scope
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_values
from tinyfuse.stage.expr import Expr, Load, Op
from tinyfuse.stage.index import Affine, affine

# Elements of a row from which on a function of its own computes it.
LONG_ROW = 256
_UINT32 = np.dtype(np.uint32)


def lines_with_exponentials(loop: For, kernel: KernelText, taken: set[str]) -> list[str] | None:
    """The lines of a loop, in a kernel where the names in `taken` have a meaning; None for one
    without such exponentials, or of too many steps to keep them on the stack."""
    alone = exponentials_alone(loop)
    if alone:
        sizes = ""
        if loop in kernel.divided.values():
            kernel.sizes[loop] = unused(f"{alone[0].buffer.name}_sizes", taken)
            sizes = f"const {type_text(_UINT32, kernel.used)} {kernel.sizes[loop]} = "
        return [f"{sizes}{_call(*alone, loop, kernel)};"]
    found = exponentials_below(loop)
    if not found or loop.variable.extent * FLOAT32.itemsize > BLOCK:
        return None
    lines, kept = [], dict[Expr, Expr]()
    for node in found:
        block = Buffer(unused("exponentials", taken), FLOAT32, loop.variable.extent, Scope.STACK)
        lines.append(f"{type_text(FLOAT32, kernel.used)} {block.name}[{block.size}];")
        lines.append(f"{_call(Row(block, Affine()), node, loop, kernel)};")
        kept[node] = Load(block, (affine(loop.variable) - loop.variable.start,))
    body = tuple(needed(with_values(loop.body, kept)))
    first = loop.variable.start
    last = first + loop.variable.extent
    return lines + kernel.steps(For(loop.variable, loop.kind, body), str(first), str(last))


def line_with_quotients(loop: For, kernel: KernelText) -> str:
    """The line of a loop that is one of those in `kernel.divided`."""
    division = division_in_place(loop)
    assert division is not None
    dividend, divisor = division.operands
    assert isinstance(dividend, Load)
    row = kernel.row(first_of(dividend.source, dividend.indices[0], loop))
    arguments = (row, str(loop.variable.extent), kernel.value(divisor))
    sizes = kernel.sizes[kernel.divided[loop]]
    return f"{kernel.prelude_call('tf_divide_exps_float', *arguments, sizes)};"


def _call(to: Row, node: Op, loop: For, kernel: KernelText) -> str:
    source, top = row_of(node), node.operands[0].parts[1]
    rows = [kernel.row(row) for row in (to, first_of(source.source, source.indices[0], loop))]
    extent = loop.variable.extent
    function = "tf_exp_row_float" if extent < LONG_ROW else "tf_exp_long_row_float"
    return kernel.prelude_call(function, *rows, str(extent), kernel.value(top))
