"""Stores of long rows go past the caches, where the schedule says so of a stage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import Block, Buffer, For, If, Statement, Store
from tinyfuse.loops.streaming import can_stream
from tinyfuse.records import replace


def stream(statements: Sequence[Statement], buffers: Collection[Buffer]) -> tuple[Statement, ...]:
    """Mark the stores to buffers by loops over rows of them; others stay as they are."""
    return tuple(_streamed(statement, buffers) for statement in statements)


def _streamed(node: Statement, buffers: Collection[Buffer]) -> Statement:
    if isinstance(node, Block):
        return Block(stream(node.body, buffers))
    if isinstance(node, If):
        return If(node.test, stream(node.then, buffers), stream(node.otherwise, buffers))
    if not isinstance(node, For):
        return node
    body = stream(node.body, buffers)
    return For(node.variable, node.kind, tuple(_marked(node, each, buffers) for each in body))


def _marked(loop: For, node: Statement, buffers: Collection[Buffer]) -> Statement:
    if isinstance(node, Store) and node.buffer in buffers and can_stream(loop, node):
        return replace(node, streamed=True)
    return node
