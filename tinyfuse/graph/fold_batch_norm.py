"""The named rewrite "fold batch norm": what scales the channels of a product scales its weights.

    contract(x, weight) * scale + shift,  with a scale and a shift for each output channel,

becomes `contract(x, weight * scale) + shift`; so do differences and quotients, one after the other,
as in `(y - mean) / deviation * gain + offset`: they are gathered into one scale and one shift. The
weights are fewer than the results, and where they are constant that is done once. But products are
rounded before they are summed rather than after, so other bits come out: it is part of the meaning,
whatever the schedule. The scale and the shift are rounded at each step, as the equations were. NaN
and infinities in a scale reach all that the channel reads: infinity times a weight of 0 is NaN,
though the sum may not have been 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import FLOATING
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.simplify import simplify

_OPS = ("add", "subtract", "multiply", "divide")


def fold_batch_norm(graph: Graph) -> Graph:
    """The graph with the scales of products' channels in their weights."""
    found = _Finder(graph)
    chains = {chain.last: chain for eqn in graph.eqns if (chain := found.chain(eqn))}
    eqns: list[Eqn] = []
    for eqn in graph.eqns:
        eqns += _Folded(chains[eqn]).eqns if eqn in chains else [eqn]
    if not chains:
        return graph
    return simplify(Graph(graph.name, graph.inputs, tuple(eqns), graph.outputs))


class _Chain(NamedTuple):
    """A product, and (operation, what each channel has) of the equations after it up to the last.

    axis: of the channels, among the product's. side: the operand that alone has them.
    """

    product: Eqn
    axis: int
    side: int
    steps: list[tuple[str, Atom]]
    last: Eqn


class _Finder:
    def __init__(self, graph: Graph):
        self.producers: Mapping[Atom, Eqn] = {eqn.output: eqn for eqn in graph.eqns}
        self.readers = {atom: eqn for eqn in graph.eqns for atom in eqn.inputs}
        self.uses = Counter([atom for eqn in graph.eqns for atom in eqn.inputs])
        self.uses.update(graph.outputs)

    def chain(self, product: Eqn) -> _Chain | None:
        """What scales and shifts the channels of a product; None where nothing scales them."""
        if product.primitive is not p.contract or product.output.dtype not in FLOATING:
            return None
        for axis, side in _channel_axes(product):
            if self._repeats(product.inputs[side]):
                continue
            steps: list[tuple[str, Atom]] = []
            last = product
            while (step := self._step(last, axis)) is not None:
                last, each = step
                steps.append((last.params["op"], each))
            if any(op in ("multiply", "divide") for op, _ in steps):
                return _Chain(product, axis, side, steps, last)
        return None

    def _repeats(self, atom: Atom) -> bool:
        """Whether an array is a view in which elements come more than once."""
        made = self.producers.get(atom)
        while made and made.primitive in (p.reshape, p.transpose, p.slice_):
            made = self.producers.get(made.inputs[0])
        return made is not None and made.primitive in (p.windows, p.broadcast)

    def _step(self, eqn: Eqn, axis: int) -> tuple[Eqn, Atom] | None:
        """The only reader of an equation, if it does one thing to each channel, and with what."""
        reader = self.readers.get(eqn.output)
        if self.uses[eqn.output] != 1 or reader is None or reader.primitive is not p.elementwise:
            return None
        op, inputs = reader.params["op"], reader.inputs
        if op not in _OPS or (inputs[0] is not eqn.output and op in ("subtract", "divide")):
            return None
        each = self._of_channels(inputs[inputs[0] is eqn.output], axis)
        return None if each is None else (reader, each)

    def _of_channels(self, atom: Atom, axis: int) -> Atom | None:
        """The array before it was stretched, if it has one element for each channel; a scalar."""
        if isinstance(atom, Literal):
            return atom
        made = self.producers.get(atom)
        if made is None or made.primitive is not p.broadcast:
            return None
        small = made.inputs[0]
        place = axis - (len(atom.shape) - len(small.shape))
        if all(n == 1 or at == place for at, n in enumerate(small.shape)):
            return small
        return None


def _channel_axes(product: Eqn) -> Iterator[tuple[int, int]]:
    """(axis of the result, the one operand that has it), of each that could be of channels."""
    sides = (product.params["lhs"], product.params["rhs"])
    for axis, label in enumerate(product.params["out"]):
        owners = [side for side in (0, 1) if label in sides[side]]
        if len(owners) == 1 and product.output.shape[axis] > 1:
            yield axis, owners[0]


class _Folded:
    """The equations in place of a chain's last one. The product stays, for simplify to drop."""

    def __init__(self, chain: _Chain):
        self.chain, self.dtype, self.eqns = chain, chain.product.output.dtype, list[Eqn]()
        self.channels = chain.product.output.shape[chain.axis]
        scale: Atom = Literal(self.dtype.type(1))
        shift: Atom | None = None
        for op, atom in chain.steps:
            each = self._vector(atom)
            if op in ("multiply", "divide"):
                scale = self._elementwise(op, scale, each)
                shift = None if shift is None else self._elementwise(op, shift, each)
            elif shift is None and op == "add":
                shift = each
            else:
                zero = Literal(self.dtype.type(0))
                shift = self._elementwise(op, zero if shift is None else shift, each)
        self._finish(scale, shift)

    def _finish(self, scale: Atom, shift: Atom | None) -> None:
        product, side, last = self.chain.product, self.chain.side, self.chain.last
        operands = list(product.inputs)
        weight = operands[side]
        label = product.params["out"][self.chain.axis]
        place = (product.params["lhs"], product.params["rhs"])[side].index(label)
        stretched = self._stretched(scale, weight.shape, place)
        operands[side] = self._elementwise("multiply", weight, stretched)
        out = last.output
        summed = out if shift is None else Var(out.shape, out.dtype)
        self.eqns.append(Eqn(p.contract, tuple(operands), product.params, summed, product.source))
        if shift is not None:
            added = self._stretched(shift, out.shape, self.chain.axis)
            self._make(p.elementwise, (summed, added), {"op": "add"}, out)

    def _vector(self, atom: Atom) -> Atom:
        if isinstance(atom, Literal) or atom.shape == (self.channels,):
            return atom
        if np.prod(atom.shape) == 1:
            one = self._make(p.reshape, (atom,), {"shape": ()}, Var((), self.dtype))
            return self._stretched(one, (self.channels,), 0)
        shape = (self.channels,)
        return self._make(p.reshape, (atom,), {"shape": shape}, Var(shape, self.dtype))

    def _stretched(self, atom: Atom, shape: tuple[int, ...], axis: int) -> Atom:
        """A vector along one axis of a shape; a scalar everywhere."""
        if isinstance(atom, Literal):
            return atom
        if atom.shape:
            column = (self.channels,) + (1,) * (len(shape) - 1 - axis)
            atom = self._make(p.reshape, (atom,), {"shape": column}, Var(column, self.dtype))
        return self._make(p.broadcast, (atom,), {"shape": shape}, Var(shape, self.dtype))

    def _elementwise(self, op: str, a: Atom, b: Atom) -> Atom:
        if isinstance(a, Literal) and isinstance(b, Literal):
            b = self._make(p.broadcast, (b,), {"shape": (self.channels,)}, self._channels())
        shape = b.shape if isinstance(a, Literal) else a.shape
        return self._make(p.elementwise, (a, b), {"op": op}, Var(shape, self.dtype))

    def _channels(self) -> Var:
        return Var((self.channels,), self.dtype)

    def _make(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        params: Mapping[str, object],
        output: Var,
    ) -> Var:
        self.eqns.append(Eqn(primitive, inputs, params, output, self.chain.last.source))
        return output
