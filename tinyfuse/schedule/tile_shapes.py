"""How large the tiles of a reduction are: what the vector registers and the caches hold of it."""

from __future__ import annotations

import math

from tinyfuse.dtypes import BOOL
from tinyfuse.loops.vectors import has_vectors
from tinyfuse.machine import Machine
from tinyfuse.schedule.loop_order import with_inlined
from tinyfuse.schedule.places import REGION_LIMIT, Places
from tinyfuse.stage.analysis import point_cost
from tinyfuse.stage.expr import Cast, Expr, IndexTest, Load, Op, walk
from tinyfuse.stage.ir import Stage

# By the registers that a processor has: rows of a tile and vectors of its columns, which with what
# they are computed from fill these; and the time for an element beside that of the first, as tall
# tiles load more.
SHAPES = {
    32: (
        *((6, 4, 1.0), (5, 4, 1.01), (8, 3, 1.03), (7, 3, 1.04), (8, 2, 1.05), (7, 2, 1.06)),
        *((12, 2, 1.03), (14, 2, 1.03), (24, 1, 1.15)),
    ),
    16: ((6, 2, 1.0), (12, 1, 1.15)),
}
# The same where the innermost loop of a chain is short, as over the taps of a convolution: gcc
# writes it out and then holds more values at a time than one step needs.
SHAPES_OF_SHORT = {
    32: ((8, 2, 1.0), (7, 2, 1.03), (6, 2, 1.06), (8, 1, 1.12)),
    16: SHAPES[16],
}
SHORT = 16
# The vectors of columns where there is one row, where there are two, and so on.
FOR_FEW = {32: (8, 8, 8, 6, 4), 16: (4, 4, 4, 2, 2)}
# Columns of a tile that lies in an array: the C compiler writes shorter loops out before it makes
# vectors.
LEAST_WIDTH = 32
# Bytes of a row of a tile, from which on it is wide.
WIDE_BYTES = 256
# Operations of an element, in additions, that may be written out for each row of a tile.
ROW_BUDGET = 16


def tile_shape(
    places: Places, stage: Stage, rows: int, columns: int, machine: Machine, copied: bool = True
) -> tuple[int, int]:
    """Rows and columns of a tile: those that the registers hold where vectors are computed; else
    as many as half of them, or one row where the text would be long.

    copied: whether the columns are copied in panels.
    """
    lanes = machine.vector_bytes // stage.dtype.itemsize
    inside = with_inlined(stage, places.inlined - unpacked_stages(stage, places))
    bodies = [each.body for each in inside if each.body]
    if all(fits_vectors(body) for body in bodies):
        return _in_registers(stage, rows, columns, lanes, machine, copied)
    width = max(LEAST_WIDTH, 2 * lanes)
    if sum(map(point_cost, bodies)) > ROW_BUDGET:
        return 1, width
    return max(1, machine.vector_registers * lanes // (2 * width)), width


def fits_vectors(body: Expr) -> bool:
    """Whether there are vector registers, and instructions, for an expression.

    Loops are cut where a test of an index changes: it is none of them.
    """
    if isinstance(body, Op) and body.name == "select" and isinstance(body.operands[0], IndexTest):
        body = body.operands[1]
    nodes = walk(body)
    return all(node.dtype == body.dtype for node in nodes) and all(
        has_vectors(node.name, body.dtype) for node in nodes if isinstance(node, Op)
    )


def _in_registers(
    stage: Stage, rows: int, columns: int, lanes: int, machine: Machine, copied: bool
) -> tuple[int, int]:
    """The tile that leaves the least over at the edges, and whose panels, if they are copied, fit
    the L2 cache and a thread's stack."""
    registers = machine.vector_registers
    length = math.prod([axis.extent for axis in stage.reduce_axes])
    if rows <= len(FOR_FEW[registers]):
        vectors = min(FOR_FEW[registers][rows - 1], max(1, -(-columns // lanes)))
        return rows, vectors * lanes

    def time(shape: tuple[int, int, float]) -> float:
        height, vectors, each = shape
        return each * -(-rows // height) * height * -(-columns // (vectors * lanes)) * vectors

    largest = min(REGION_LIMIT, machine.l2 // 2)
    most = largest // (length * lanes * stage.dtype.itemsize)  # vectors of a panel
    inner = [axis.extent for axis in stage.reduce_axes if axis.extent > 1]
    known = (SHAPES_OF_SHORT if len(inner) > 1 and inner[-1] <= SHORT else SHAPES)[registers]
    shapes = [shape for shape in known if shape[0] <= rows] or known[:1]
    fitting = [shape for shape in shapes if not copied or shape[1] <= most]
    height, vectors, _ = min(fitting or shapes[-1:], key=time)
    return height, vectors * lanes


def has_wide_tiles(machine: Machine) -> bool:
    """Whether a row of a tile is several lines of memory."""
    return SHAPES[machine.vector_registers][0][1] * machine.vector_bytes >= WIDE_BYTES


def unpacked_stages(stage: Stage, places: Places) -> frozenset[Stage]:
    """What is inlined into a stage and only converts numbers: better once, while they are copied,
    than at each use."""
    return frozenset([each for each in with_inlined(stage, places.inlined) if _converts(each)])


def _converts(stage: Stage) -> bool:
    body = stage.body
    if not isinstance(body, Cast) or not isinstance(body.operand, Load):
        return False
    return BOOL not in (body.dtype, body.operand.dtype)
