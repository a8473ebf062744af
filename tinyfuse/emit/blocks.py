"""The C of loops that go through a row block by block, each of them computed on the stack.

For streamed stores, so that the compiler vectorizes the loop as it does others and need not be told
of them; for divisions of a whole row by one number and for conversions from and to float16, which
functions of the prelude do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tinyfuse.dtypes import FLOAT16
from tinyfuse.dtypes import FLOAT32 as FLOAT
from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.conversions import (
    LEAST_ROW,
    converted_alone,
    converts_rows,
    narrowed,
    operand_row,
    widened,
)
from tinyfuse.loops.divisions import shared_division
from tinyfuse.loops.ir import Buffer, For, Row, Scope, Statement, Store
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_values
from tinyfuse.loops.streaming import BLOCK, read_ahead
from tinyfuse.stage.expr import Expr, Load
from tinyfuse.stage.index import Affine, Axis, affine, index_text

# Elements of a block, where all of a row have as many and are converted: fewer take longer.
LEAST_BLOCK = 64


class KernelText(Protocol):
    """What writes the function around the loop.

    divided: loops that divide rows of exponentials, with those that store them. sizes: the names
    of what is known then of their sizes.
    """

    used: dict[str, None]
    divided: dict[For, For]
    sizes: dict[For, str]

    def steps(self, node: For, first: str, last: str) -> list[str]: ...
    def row(self, row: Row) -> str: ...
    def value(self, node: Expr) -> str: ...
    def prelude_call(self, function: str, *arguments: str) -> str: ...


def goes_by_blocks(loop: For) -> bool:
    if loop.count is not None:
        return False
    return streams(loop) or converts_rows(loop) or shared_division(loop) is not None


def streams(loop: For) -> bool:
    return any(isinstance(statement, Store) and statement.streamed for statement in loop.body)


def fits_a_block(loop: For) -> bool:
    """Whether one block holds all that a loop streams or converts of each row, and it divides no
    row."""
    stores = [each for each in loop.body if isinstance(each, Store) and each.streamed]
    sizes = [store.buffer.dtype.itemsize for store in stores]
    largest = max([*sizes, FLOAT.itemsize if converts_rows(loop) else 0])
    return largest * loop.variable.extent <= BLOCK and shared_division(loop) is None


class BlockLoop:
    """One such loop, in a kernel where the names in `taken` have a meaning.

    single: whether one block holds all of the row. It stays declared then after the loop, and its
    name in `taken`.
    """

    def __init__(self, loop: For, kernel: KernelText, taken: set[str], single: bool):
        self.loop, self.kernel, self.taken, self.single = loop, kernel, taken, single
        variable = loop.variable
        self.first: Axis | int = variable.start
        self.next: Axis | int = variable.start + variable.extent
        if not single:
            first, following = (unused(f"{variable.name}_{s}", taken) for s in ("first", "next"))
            self.first, self.next = (
                Axis(name, variable.extent, variable.start) for name in (first, following)
            )
        self.following = index_text(self.next)
        self.length = 0  # of blocks that are known to be even
        self.place = affine(variable) - self.first  # of an element within its block
        self.blocks: list[Buffer] = []
        self.streamed: list[tuple[Row, Buffer]] = []

    def lines(self, begin: str, end: str) -> list[str]:
        """begin, end: of the whole row."""
        if begin.isdecimal() and end.isdecimal():
            self.length = self._even_length()
        first, following = index_text(self.first), self.following
        body = tuple([self._unstreamed(statement) for statement in self.loop.body])
        steps = self._computed(body)
        declared = [f"{self._type(b)} {b.name}[{b.size}];" for b in self.blocks]
        stored = [f"{self._stored(target, block)};" for target, block in self.streamed]
        asked = [f"{self._asked(row)};" for row in read_ahead(self.loop)] if self.streamed else []
        if self.single:
            return [*declared, *steps, *stored]
        if self.length:
            head = f"for (long {first} = {begin}; {first} < {end}; {first} += {self.length})"
            return [f"{head} {{", *[f"  {line}" for line in (*declared, *steps)], "}"]
        inside = [*declared, f"{following} = {self._following(end)};", *asked, *steps, *stored]
        head = f"for (long {first} = {begin}, {following}; {first} < {end}; {first} = {following})"
        return [f"{head} {{", *[f"  {line}" for line in inside], "}"]

    def _even_length(self) -> int:
        """Elements of each block where all have as many and are converted; else 0."""
        extent = self.loop.variable.extent
        if self.single or streams(self.loop) or not converts_rows(self.loop):
            return 0
        lengths = range(BLOCK // FLOAT.itemsize, LEAST_BLOCK - 1, -LEAST_ROW)
        return next((length for length in lengths if extent % length == 0), 0)

    def _type(self, block: Buffer) -> str:
        return type_text(block.dtype, self.kernel.used)

    def _following(self, end: str) -> str:
        """Where the next block begins."""
        first = index_text(self.first)
        if self.streamed:
            target, left = self.kernel.row(self.streamed[0][0]), f"{end} - {first}"
            length = self.kernel.prelude_call(
                "tf_stream_length", target, left, str(self._itemsize())
            )
            return f"{first} + {length}"
        length = str(BLOCK // self._itemsize())
        last = str(int(end) - int(length)) if end.isdecimal() else f"{end} - {length}"
        return f"{first} < {last} ? {first} + {length} : {end}"

    def _itemsize(self) -> int:
        """Bytes of the largest elements of a block."""
        return max([block.dtype.itemsize for block in self.blocks], default=FLOAT.itemsize)

    def _asked(self, row: Row) -> str:
        """The next block of a row that is read, ahead of its use."""
        position = row.position.substitute({self.loop.variable: self.next})
        nbytes = BLOCK // self._itemsize() * row.buffer.dtype.itemsize
        place = self.kernel.row(Row(row.buffer, position))
        return self.kernel.prelude_call("tf_prefetch", place, str(nbytes))

    def _count(self) -> str:
        """How many elements a block has."""
        if self.single or self.length:
            return str(self.length or self.loop.variable.extent)
        return f"{self.following} - {index_text(self.first)}"

    def _block(self, name: str, dtype: np.dtype) -> Buffer:
        size = self.loop.variable.extent if self.single else self.length or BLOCK // dtype.itemsize
        self.blocks.append(Buffer(unused(name, self.taken), dtype, size, Scope.STACK))
        return self.blocks[-1]

    def _row(self, buffer: Buffer, position: Affine) -> Row:
        """What the block is of a row with an element at `position`."""
        return Row(buffer, position.substitute({self.loop.variable: self.first}))

    def _unstreamed(self, node: Statement) -> Statement:
        """A streamed store as one into a block, which is streamed afterwards."""
        if not isinstance(node, Store) or not node.streamed:
            return node
        block = self._block(f"{node.buffer.name}_block", node.buffer.dtype)
        self.streamed.append((self._row(node.buffer, node.position), block))
        return Store(block, self.place, node.value)

    def _stored(self, target: Row, block: Buffer) -> str:
        size, count = block.dtype.itemsize, self._count()
        several = f"{size} * ({count})" if size > 1 else count
        nbytes = str(block.nbytes) if self.single else several
        return self.kernel.prelude_call("tf_stream", self.kernel.row(target), block.name, nbytes)

    def _computed(self, body: tuple[Statement, ...]) -> list[str]:
        """The lines of one block."""
        if not converts_rows(self.loop):
            return self._divided(body)
        alone = converted_alone(self.loop, body)
        if alone:
            load, target = operand_row(alone.value), self._row(alone.buffer, alone.position)
            return [self._call(target, self._row(load.source, load.indices[0]))]
        before, body = self._widened(body)
        body, after = self._narrowed(body)
        return [*before, *self._steps(body), *after]

    def _widened(self, body: Sequence[Statement]) -> tuple[list[str], tuple[Statement, ...]]:
        """Calls that convert what the block reads, and statements that take what they give."""
        blocks: dict[tuple[Buffer, Affine], Buffer] = {}
        known: dict[Expr, Expr] = {}
        for cast in widened(self.loop, body):
            load = operand_row(cast)
            row = load.source, load.indices[0]
            if row not in blocks:
                blocks[row] = self._block(f"{load.source.name}_floats", FLOAT)
            known[cast] = Load(blocks[row], (self.place,))
        rows = {block: self._row(*row) for row, block in blocks.items()}
        calls = [self._call(Row(block, Affine()), row) for block, row in rows.items()]
        return calls, with_values(body, known)

    def _narrowed(self, body: Sequence[Statement]) -> tuple[tuple[Statement, ...], list[str]]:
        """Statements that keep what the block stores, and calls that convert it."""
        stores: dict[Statement, Statement] = {}
        calls = []
        for store in narrowed(self.loop, body):
            block = self._block(f"{store.buffer.name}_floats", FLOAT)
            stores[store] = Store(block, self.place, store.value.parts[0])
            calls.append(self._call(self._row(store.buffer, store.position), Row(block, Affine())))
        return tuple([stores.get(each, each) for each in body]), calls

    def _call(self, to: Row, row: Row) -> str:
        """What converts a row."""
        function = "tf_float_row_of_float16"
        if to.buffer.dtype == FLOAT16:
            function = "tf_float16_row_of_float"
        rows = [self.kernel.row(each) for each in (to, row)]
        return f"{self.kernel.prelude_call(function, *rows, self._count())};"

    def _divided(self, body: tuple[Statement, ...]) -> list[str]:
        """The lines of one block in which nothing is converted."""
        division, store = shared_division(self.loop), body[0]
        if division is None or not isinstance(store, Store):
            return self._steps(body)
        dividend, divisor = division.operands
        assert isinstance(dividend, Load)
        dividends = self._row(dividend.source, dividend.indices[0])
        rows = (self._row(store.buffer, store.position), dividends)
        arguments = [*map(self.kernel.row, rows), self._count(), self.kernel.value(divisor)]
        return [f"{self.kernel.prelude_call('tf_divide_row_float', *arguments)};"]

    def _steps(self, body: Sequence[Statement]) -> list[str]:
        loop = For(self.loop.variable, self.loop.kind, tuple(body))
        last = index_text(affine(self.first) + self.length) if self.length else self.following
        return self.kernel.steps(loop, index_text(self.first), last)
