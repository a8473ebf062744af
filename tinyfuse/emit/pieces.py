"""Kernels that put together an array of short pieces.

Of `out[0 … 1] = x[0 … 1]; out[2] = x[4]; out[3 … 7] = x[3 … 7]` a compiler can make one vector
whose elements change places. gcc 12 takes some such orders of eight doubles for others (with
`vpermilpd`, although elements come from further away than that reaches): there, such kernels
have vectors of 256 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tinyfuse.loops.ir import Block, Buffer, For, If, Kernel, Scope, Statement, Store, While
from tinyfuse.stage.expr import IndexTest, Load, walk

# The name of what such kernels are declared with, and what that is.
PIECES = "tf_pieces"
PIECES_TEXT = """\
// for gcc, which takes some orders of eight doubles for others
#if defined(__AVX512F__) && !defined(__clang__)
#define tf_pieces __attribute__((noinline, target("prefer-vector-width=256")))
#else
#define tf_pieces
#endif"""
# Steps of a loop that compilers may write out one after the other.
SHORT_LOOP = 16
_DOUBLE = np.dtype(np.float64)


def writes_pieces(kernel: Kernel) -> bool:
    """Whether several statements, in short loops or side by side, fill an array of doubles."""
    bodies: list[Sequence[Statement]] = [kernel.body]
    for body in bodies:  # grows while it runs
        places: dict[Buffer, set[int]] = {}
        for store, written_out in _stores(body, bodies, False):
            if store.buffer.dtype == _DOUBLE and store.buffer.scope not in _REGISTERS:
                found = places.setdefault(store.buffer, set())
                found.add(store.position.interval()[0])
                if len(found) > 1 or (written_out and _chooses(store)):
                    return True
    return False


_REGISTERS = (Scope.REGISTER, Scope.VECTORS)


def _chooses(store: Store) -> bool:
    """Whether it depends on the place what is stored there."""
    return any(isinstance(node, IndexTest) for node in walk(store.value))


def _stores(
    body: Sequence[Statement], others: list[Sequence[Statement]], short: bool
) -> Iterator[tuple[Store, bool]]:
    """What may be stored side by side, and whether it stands in a short loop.

    others: takes the bodies of longer loops. short: whether the body is one of a short loop.
    """
    for statement in body:
        if isinstance(statement, Store):
            loaded = [node.source for node in walk(statement.value) if isinstance(node, Load)]
            if not any(getattr(source, "scope", None) is Scope.VECTORS for source in loaded):
                yield statement, short
        elif isinstance(statement, For):
            if statement.variable.extent > SHORT_LOOP:
                others.append(statement.body)
            else:
                yield from _stores(statement.body, others, True)
        elif isinstance(statement, If):
            yield from _stores((*statement.then, *statement.otherwise), others, short)
        elif isinstance(statement, (Block, While)):
            yield from _stores(statement.body, others, short)
