"""Stores of long rows go past the caches, where the schedule says so of a stage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import Buffer, For, Statement, Store
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.loops.streaming import can_stream
from tinyfuse.records import replace


def stream(statements: Sequence[Statement], buffers: Collection[Buffer]) -> tuple[Statement, ...]:
    """Mark the stores to buffers by loops over rows of them; others stay as they are."""
    return tuple([_streamed(statement, buffers) for statement in statements])


def _streamed(node: Statement, buffers: Collection[Buffer]) -> Statement:
    node = with_inside(node, lambda body: stream(body, buffers))
    if not isinstance(node, For):
        return node
    body = tuple([_marked(node, each, buffers) for each in node.body])
    return For(node.variable, node.kind, body)


def _marked(loop: For, node: Statement, buffers: Collection[Buffer]) -> Statement:
    if isinstance(node, Store) and node.buffer in buffers and can_stream(loop, node):
        return replace(node, streamed=True)
    return node
