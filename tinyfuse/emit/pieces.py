"""Kernels that put together an array of short pieces.

Of `out[0 … 1] = x[0 … 1]; out[2] = x[4]; out[3 … 7] = x[3 … 7]` a compiler can make one vector
whose elements change places. gcc 12 takes some such orders of eight doubles for others (with
`vpermilpd`, although elements come from further away than that reaches): there, such kernels
have vectors of 256 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from tinyfuse.loops.ir import Block, Buffer, For, If, Kernel, Scope, Statement, Store, While
from tinyfuse.stage.expr import IndexTest, walk

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
        written: Counter[Buffer] = Counter()
        for store in _stores(body, bodies):
            if store.buffer.dtype == _DOUBLE and store.buffer.scope is not Scope.REGISTER:
                chosen = any(isinstance(node, IndexTest) for node in walk(store.value))
                written[store.buffer] += 2 if chosen else 1
        if any(count > 1 for count in written.values()):
            return True
    return False


def _stores(body: Sequence[Statement], others: list[Sequence[Statement]]) -> Iterator[Store]:
    """What may be stored side by side. others: takes the bodies of longer loops."""
    for statement in body:
        if isinstance(statement, Store):
            yield statement
        elif isinstance(statement, For) and statement.variable.extent > SHORT_LOOP:
            others.append(statement.body)
        elif isinstance(statement, If):
            yield from _stores((*statement.then, *statement.otherwise), others)
        elif isinstance(statement, (For, Block, While)):
            yield from _stores(statement.body, others)
