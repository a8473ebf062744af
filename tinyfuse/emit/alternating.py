"""Products that are subtracted where others are added.

gcc 12 makes one instruction of `a * b - c` beside `a * b + c`, rounded once, whatever it is told of
contraction. It does so where a vector would hold both, in loops and of statements one after the
other. Where both are in the body of one loop, neither a part of the other, `x - y` is written as
`x + tf_negative(y)`: the same number, by a change of a bit in which gcc sees no difference. It does
in `x + -1.5`: that is written as `x + 0.0 - 1.5`, where 0.0 changes at most the sign of a zero.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

import numpy as np

from tinyfuse.loops.ir import (
    Buffer,
    For,
    Kernel,
    Let,
    Local,
    Scope,
    Statement,
    Store,
    While,
    children,
    walk_statements,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Const, Expr, Load, Op, walk

# Of all others, functions of the prelude among them, the last step may be a multiplication.
_NO_PRODUCTS = (
    *("add", "subtract", "fma", "select", "maximum", "minimum"),
    *("sqrt", "floor", "ceil", "rint", "trunc"),
)
_OWN = (Scope.REGISTER, Scope.STACK)


def subtracted_products(kernel: Kernel) -> frozenset[Expr]:
    """The differences that are to be written as sums, and what is negated to be added beside
    another sum."""
    statements = list(walk_statements(kernel.body))
    named = _named(statements)
    loops = [each.body for each in statements if isinstance(each, (For, While))]
    return frozenset([node for body in (kernel.body, *loops) for node in _in_one(body, named)])


def _in_one(body: Sequence[Statement], named: Container[object]) -> list[Expr]:
    """The same of one body, without the loops inside."""
    found = [
        node
        for each in _straight(body)
        for value in values_of(each)
        for node in walk(value)
        if isinstance(node, Op) and _has_product(node, named)
    ]
    bits = {node: 1 << place for place, node in enumerate(dict.fromkeys(found))}
    differences = [node for node in bits if _differs(node)]
    if not differences or len(differences) == len(bits):
        return []
    inside = _inside(body, bits)
    return [
        part for node in differences if _has_peer(node, bits, inside) for part in _written(node)
    ]


def _has_peer(node: Op, bits: Mapping[Op, int], inside: Mapping[Expr, int]) -> bool:
    """Whether there is a sum of the same dtype beside a difference."""
    return any(
        other.dtype == node.dtype
        and not _differs(other)
        and not inside[node] & bits[other]
        and not inside[other] & bits[node]
        for other in bits
    )


def _inside(body: Sequence[Statement], bits: Mapping[Op, int]) -> dict[Expr, int]:
    """For each node the bits of those it is made of, and its own."""
    known: dict[Expr, int] = {}
    for each in _straight(body):
        for value in values_of(each):
            for node in walk(value):
                own = bits.get(node, 0) if isinstance(node, Op) else known.get(node, 0)
                known[node] = reduce(or_, [known[part] for part in node.parts], own)
        if isinstance(each, Let):
            known[each.local] = known[each.value]
    return known


def _straight(body: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of a body, but for loops."""
    for each in body:
        if not isinstance(each, (For, While)):
            yield each
            yield from _straight(children(each))


def _differs(node: Op) -> bool:
    """Whether it is a difference for C compilers, which make one of a sum with what is negative."""
    constant = added_constant(node)
    if constant is not None:
        return bool(np.signbit(constant.value)) is (node.name == "add")
    return node.name == "subtract" or any(map(_is_negated, node.operands))


def added_constant(node: Op) -> Const | None:
    """The constant, other than 0, that a sum adds or a difference takes away from something."""
    operands = node.operands if node.name == "add" else node.operands[1:]
    return next((each for each in operands if isinstance(each, Const) and each.value != 0), None)


def _written(node: Op) -> list[Expr]:
    """What of a difference is written otherwise."""
    if node.name == "subtract" or added_constant(node) is not None:
        return [node]
    return [*filter(_is_negated, node.operands)]


def _is_negated(node: Expr) -> bool:
    return isinstance(node, Op) and node.name == "negative"


def _named(statements: Sequence[Statement]) -> set[Local | Buffer]:
    """The names, and the kernel's own buffers, of products."""
    found: set[Local | Buffer] = set()
    before = -1
    while before < len(found):
        before = len(found)
        found.update(_holders(statements, found))
    return found


def _holders(statements: Sequence[Statement], known: Container[object]) -> Iterator[Local | Buffer]:
    for each in statements:
        if not isinstance(each, (Let, Store)) or not _is_product(each.value, known):
            continue
        if isinstance(each, Let):
            yield each.local
        elif each.buffer.scope in _OWN:
            yield each.buffer


def _has_product(node: Op, named: Container[object]) -> bool:
    return (
        node.name in ("add", "subtract")
        and node.dtype.kind == "f"
        and any(_is_product(operand, named) for operand in node.operands)
    )


def _is_product(node: Expr, named: Container[object]) -> bool:
    if isinstance(node, Op):
        return node.dtype.kind == "f" and node.name not in _NO_PRODUCTS
    return (node.source if isinstance(node, Load) else node) in named
