"""Stores of long rows go past the caches, where the schedule says so of a stage."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Block, Buffer, For, If, Statement, Store
from tinyfuse.loops.streaming import can_stream
from tinyfuse.records import replace


def stream(statements: Sequence[Statement], buffer: Buffer) -> tuple[Statement, ...]:
    """Mark the stores to a buffer by loops over rows of it; others stay as they are."""
    return tuple(_streamed(statement, buffer) for statement in statements)


def _streamed(node: Statement, buffer: Buffer) -> Statement:
    if isinstance(node, Block):
        return Block(stream(node.body, buffer))
    if isinstance(node, If):
        return If(node.test, stream(node.then, buffer), stream(node.otherwise, buffer))
    if not isinstance(node, For):
        return node
    body = stream(node.body, buffer)
    return For(node.variable, node.kind, tuple(_marked(node, each, buffer) for each in body))


def _marked(loop: For, node: Statement, buffer: Buffer) -> Statement:
    if isinstance(node, Store) and node.buffer is buffer and can_stream(loop, node):
        return replace(node, streamed=True)
    return node
