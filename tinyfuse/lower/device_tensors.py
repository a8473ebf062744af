"""Tiles of products by tensor cores: sums of operands that are rounded to what these multiply.

A warp does 16 rows and 8 columns with one instruction, of whose sums each thread has four; eight
warps share a tile. The loops are those of any tile, over other elements of each thread, and mean
the same; the kind of the loop over the steps says how they are done.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.graph.scalar_ops import FMA, NEAREST
from tinyfuse.loops.ir import TENSOR_STEPS, Buffer, For, LoopKind, Statement
from tinyfuse.loops.rewrite import substitute_axes
from tinyfuse.lower.device_tile_loops import Elements, Last, TileLowering, nested_over
from tinyfuse.lower.device_tiles import Tile
from tinyfuse.records import replace
from tinyfuse.stage.expr import Expr, Load, Op
from tinyfuse.stage.index import Affine, Axis, affine, flat_index

ROWS, COLUMNS = 16, 8  # of an instruction
WARPS = (2, 4)  # of a tile, along rows and columns
STEPS = 16  # of the sums at a time
# By the least extent of rows and columns: of how many of both each thread has, and steps at a time.
TENSOR_SHAPES = ((128, 8, STEPS), (32, 4, STEPS))
# Elements between rows of steps, and between steps of columns, so that what a warp loads at once
# lies in different banks.
ROW_PAD = 4
STEP_PADS = {LoopKind.TF32: 8, LoopKind.BFLOAT16: 4, LoopKind.FLOAT16: 4}


def tensor_kind(tile: Tile) -> LoopKind | None:
    """The format of what a tile multiplies, if it is one of tensor cores."""
    kinds = {_kind(each.value, tile) for each in tile.sums}
    return kinds.pop() if len(kinds) == 1 else None


def _kind(value: Expr, tile: Tile) -> LoopKind | None:
    if not isinstance(value, Op) or value.name != FMA:
        return None
    *factors, total = value.operands
    names = {each.name if isinstance(each, Op) else "" for each in factors}
    summed = isinstance(total, Load) and total.source in tile.accumulators
    if len(names) > 1 or not summed or not names <= {*NEAREST}:
        return None
    return LoopKind(names.pop().removeprefix("nearest_"))


class TensorLowering(TileLowering):
    """The statements of one tile, for eight warps."""

    def __init__(self, tile: Tile, kind: LoopKind, loads_ahead: bool) -> None:
        self.kind = kind
        # Pairs of operands in one register are made of two others.
        in_pairs = kind is not LoopKind.TF32
        fits = not in_pairs or tile.each < TENSOR_SHAPES[0][1]
        super().__init__(tile, loads_ahead and fits)

    def widths(self) -> tuple[Last | None, tuple[int, int]]:
        return None, (1, 1)  # instructions take their operands one by one

    def elements_of_thread(self) -> Elements:
        warps = Axis("warp_row", WARPS[0]), Axis("warp_column", WARPS[1])
        group, pair = Axis("group", 8), Axis("pair", 4)
        row = Axis("row", self.tile.side // ROWS // WARPS[0])
        column = Axis("column", self.tile.side // COLUMNS // WARPS[1])
        half, second = Axis("half", 2), Axis("second", 2)
        rows = flat_index((warps[0], row, half, group), (2, row.extent, 2, 8))
        columns = flat_index((warps[1], column, pair, second), (4, column.extent, 4, 2))
        threads, own = [*warps, group, pair], [row, column, half, second]
        places = flat_index((*threads, *own), [axis.extent for axis in (*threads, *own)])
        return threads, own, rows, columns, places

    def memory(self, number: int, part: Expr) -> Buffer:
        lines = self.tile.side if self.by_steps(part) else self.tile.steps
        size = lines * self.length(part)
        return replace(super().memory(number, part), size=size)

    def length(self, part: Expr) -> int:
        if self.by_steps(part):
            return self.tile.steps + ROW_PAD
        return self.tile.side + STEP_PADS[self.kind]

    def at(self, part: Expr, step: Affine, place: Affine) -> Affine:
        if self.by_steps(part):
            return place * self.length(part) + step
        return super().at(part, step, place)

    def summed(self, shared: Mapping[Expr, Buffer], step: Axis) -> Statement:
        plain = super().summed(shared, step)
        assert isinstance(plain, For)
        at_once = TENSOR_STEPS[self.kind]
        if step.extent % at_once:
            return plain
        turns = Axis(f"{step.name}_part", step.extent // at_once)
        inner = Axis(step.name, at_once)
        moved = substitute_axes(plain.body, {step: affine(turns) * at_once + inner})
        return nested_over([turns], LoopKind.UNROLL, (For(inner, self.kind, moved),))
