"""The named rewrites "tf32_products", "bfloat16_products" and "float16_products".

The operands of products of float32 are rounded to the format that tensor cores multiply: to
nearest, ties to even. The products of two such numbers are exact in float32, and are summed in
float32 as before, in the same order, whatever the target. So the result has the accuracy of the
format's 11 or 8 bits, and the same bits on every target but a GPU's tensor cores themselves: these
add some products of a sum at once, with few bits for what is lost between them. There the result is
as accurate, and not the same bit for bit. float16 overflows to infinity at 65520.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.dtypes import FLOAT32, is_half
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Var
from tinyfuse.graph.simplify import simplify


def tensor_products(op: str) -> Callable[[Graph], Graph]:
    """The rewrite that rounds the operands of products by a scalar operation."""

    def rewrite(graph: Graph) -> Graph:
        eqns = [made for eqn in graph.eqns for made in _rounded(eqn, op)]
        if len(eqns) == len(graph.eqns):
            return graph
        return simplify(Graph(graph.name, graph.inputs, tuple(eqns), graph.outputs))

    return rewrite


def _rounded(eqn: Eqn, op: str) -> list[Eqn]:
    """A product with what stands before and after it; another equation alone."""
    product = eqn.primitive is p.contract and len(eqn.inputs) == 2
    if not product or not all(_is_short(atom) for atom in (*eqn.inputs, *eqn.outputs)):
        return [eqn]
    made: list[Eqn] = []
    operands = [_nearest(_single(atom, eqn, made), op, eqn, made) for atom in eqn.inputs]
    out = eqn.output
    summed = out if out.dtype == FLOAT32 else Var(out.shape, FLOAT32)
    made.append(Eqn(p.contract, tuple(operands), eqn.params, summed, eqn.source))
    if summed is not out:
        made.append(Eqn(p.cast, (summed,), {"dtype": out.dtype}, out, eqn.source))
    return made


def _is_short(atom: Atom) -> bool:
    return atom.dtype == FLOAT32 or is_half(atom.dtype)


def _single(atom: Atom, eqn: Eqn, made: list[Eqn]) -> Atom:
    if atom.dtype == FLOAT32:
        return atom
    out = Var(atom.shape, FLOAT32)
    made.append(Eqn(p.cast, (atom,), {"dtype": FLOAT32}, out, eqn.source))
    return out


def _nearest(atom: Atom, op: str, eqn: Eqn, made: list[Eqn]) -> Atom:
    out = Var(atom.shape, FLOAT32)
    made.append(Eqn(p.elementwise, (atom,), {"op": op}, out, eqn.source))
    return out
