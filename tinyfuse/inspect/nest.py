"""A loop nest in short: its loops and what they store, without the expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyfuse.loops.ir import Block, For, If, Prefetch, SortRow, Statement, Store, Transpose, While
from tinyfuse.loops.printer import loop_text

MOST_LINES = 16


def nest_lines(body: Sequence[Statement]) -> list[str]:
    """`for i < 8 parallel, j < 64 vector: out`; a body of several parts stands below its loops."""
    lines = list(_block(body))
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"... and {more} more lines"] if more > 1 else lines


def _block(body: Sequence[Statement]) -> Iterator[str]:
    stored: dict[str, None] = {}
    for statement in _opened(body):
        name = _stored(statement)
        if name is not None:
            stored[name] = None
        elif isinstance(statement, (For, While, If)):
            if stored:
                yield ", ".join(stored)
                stored = {}
            yield from _PARTS[statement.__class__](statement)
    if stored:
        yield ", ".join(stored)


def _opened(body: Sequence[Statement]) -> Iterator[Statement]:
    """The statements, and those within blocks."""
    for statement in body:
        yield from _opened(statement.body) if isinstance(statement, Block) else [statement]


def _stored(statement: Statement) -> str | None:
    if isinstance(statement, SortRow):
        return f"{statement.to.buffer.name} (sorted)"
    if isinstance(statement, Transpose):
        return f"{statement.to.buffer.name} (transposed)"
    if isinstance(statement, Prefetch):
        return f"{statement.row.buffer.name} (ahead)"
    if isinstance(statement, Store):
        return (
            f"{statement.buffer.name} (streamed)" if statement.streamed else statement.buffer.name
        )
    return None


def _loop(node: For) -> Iterator[str]:
    heads = [loop_text(node)]
    while len(node.body) == 1 and isinstance(node.body[0], For):
        node = node.body[0]
        heads.append(loop_text(node))
    inside = list(_block(node.body))
    head = f"for {', '.join(heads)}"
    if len(inside) == 1 and not inside[0].startswith(("for ", "while", "if")):
        yield f"{head}: {inside[0]}"
    else:
        yield head
        yield from [f"  {line}" for line in inside]


def _choice(node: If) -> Iterator[str]:
    for word, part in (("if", node.then), ("else", node.otherwise)):
        if part:
            yield word
            yield from [f"  {line}" for line in _block(part)]


def _while(node: While) -> Iterator[str]:
    yield "while"
    yield from [f"  {line}" for line in _block(node.body)]


_PARTS: dict[type, Callable[[Any], Iterator[str]]] = {For: _loop, While: _while, If: _choice}
