"""Rows and columns of images as one axis, where a product and what follows take them as such.

A product over channels, as a convolution of single elements is, has the same sum at each place of
an image. Where also what is computed of it goes element by element, or stretches one number over an
image, images are rows: long ones, which tiles divide well and in which they find side by side what
they read. No arithmetic changes, nor any order of summation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.simplify import simplify
from tinyfuse.records import dataclass, field, replace

# What is stored, however it is read.
_STORED = (p.contract, p.reduce, p.softmax_contract)


def merged_axes(graph: Graph) -> Graph:
    """An equivalent graph; itself where nothing is merged."""
    finder = _Finder(graph)
    regions: list[dict[Var, None]] = []
    for eqn in graph.eqns:
        if eqn.primitive is p.contract and not any(eqn.output in region for region in regions):
            region = finder.region(eqn)
            regions += [region] if region else []
    if not regions:
        return graph
    merging = _Merging(finder, {var for region in regions for var in region})
    eqns = [new for eqn in graph.eqns for new in merging.equations(eqn)]
    return simplify(Graph(graph.name, graph.inputs, tuple(eqns), graph.outputs))


def _merged(shape: tuple[int, ...], at: int = -2) -> tuple[int, ...]:
    """A shape with the axis at a place, and the one after it, as one."""
    at %= len(shape)
    return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])


def _is_window_of_one(eqn: Eqn) -> bool:
    return eqn.primitive is p.windows and prod(eqn.params["window_shape"]) == 1


def _side_of_pair(eqn: Eqn) -> tuple[int, int] | None:
    """Which operand of a product alone has the last two axes of the result, side by side, and where
    the first of them is; None where that is not so."""
    labels, out = (eqn.params["lhs"], eqn.params["rhs"]), eqn.params["out"]
    if len(out) < 3 or min(eqn.output.shape[-2:]) < 2:
        return None
    for side, other in ((0, 1), (1, 0)):
        if out[-2] in labels[side] and not {*out[-2:]}.intersection(labels[other]):
            at = labels[side].index(out[-2])
            if labels[side][at + 1 : at + 2] == out[-1:]:
                return side, at
    return None


class _Finder:
    """What of a graph could have merged axes."""

    def __init__(self, graph: Graph) -> None:
        self.producers: Mapping[Atom, Eqn] = {eqn.output: eqn for eqn in graph.eqns}
        self.readers: dict[Atom, list[Eqn]] = {}
        for eqn in graph.eqns:
            for atom in dict.fromkeys(eqn.inputs):
                self.readers.setdefault(atom, []).append(eqn)

    def region(self, product: Eqn) -> dict[Var, None]:
        """The values that have merged axes if this product has; none where something stands
        against that."""
        if not self._is_mergeable(product):
            return {}
        found: dict[Var, None] = {product.output: None}
        pending: list[Var] = [product.output]
        while pending:
            near = self._neighbours(pending.pop(), product.output.shape[-2:])
            if near is None:
                return {}
            new = [var for var in near if var not in found]
            found |= dict.fromkeys(new)
            pending += new
        return found

    def _is_mergeable(self, eqn: Eqn) -> bool:
        found = _side_of_pair(eqn) if eqn.primitive is p.contract else None
        return found is not None and self._lies_flat(eqn.inputs[found[0]])

    def _lies_flat(self, atom: Atom) -> bool:
        """Whether the places of an image are read one after the other, without a division."""
        pending = [atom]
        while pending:
            eqn = self.producers.get(pending.pop())
            if eqn is None or eqn.primitive in _STORED:
                continue
            if eqn.primitive in (p.elementwise, p.cast, p.reshape) or _is_window_of_one(eqn):
                pending += eqn.inputs
            elif not self._is_stretched(eqn):
                return False
        return True

    def _is_stretched(self, eqn: Eqn) -> bool:
        """Whether each image is one element, or all images are the same one."""
        if eqn.primitive is not p.broadcast:
            return False
        last = eqn.inputs[0].shape[-2:]
        return prod(last) == 1 or last == eqn.output.shape[-2:]

    def _neighbours(self, var: Var, image: tuple[int, ...]) -> list[Var] | None:
        """The values that have merged axes where this one has; None where one of them cannot."""
        near: list[Var] = []
        producer = self.producers[var]
        if producer.primitive is not p.contract:
            found = [self._operand(atom) for atom in producer.inputs]
            if None in found:
                return None
            near += [each for atoms in found if atoms for each in atoms]
        for reader in self.readers.get(var, ()):
            if reader.primitive in (p.elementwise, p.cast) or self._goes_on(reader, var):
                near.append(reader.output)
            elif not self._leaves(reader, image):
                return None
        return near

    def _operand(self, atom: Atom) -> list[Var] | None:
        """What has to be merged for an operand of an elementwise operation to be."""
        eqn = self.producers.get(atom)
        if eqn is None or self._is_stretched(eqn):
            return []
        joins = eqn.primitive in (p.elementwise, p.cast) or self._is_mergeable(eqn)
        return [eqn.output] if joins else None

    def _goes_on(self, reader: Eqn, var: Var) -> bool:
        """Whether a product takes merged images for its own."""
        if not self._is_mergeable(reader):
            return False
        found = _side_of_pair(reader)
        assert found is not None
        side, at = found
        alone = reader.inputs[1 - side] is not var
        return alone and reader.inputs[side] is var and at == len(var.shape) - 2

    def _leaves(self, reader: Eqn, image: tuple[int, ...]) -> bool:
        """Whether a reader takes images in one axis as well as in two: it only copies them, or goes
        through all of each."""
        if reader.primitive in (p.reshape, p.pad) or _is_window_of_one(reader):
            return True
        if reader.primitive is p.concat:
            return reader.params["axis"] < len(reader.output.shape) - 2
        rank = len(reader.inputs[0].shape)
        return reader.primitive is p.reduce and reader.params["axes"] == (rank - 2, rank - 1)


@dataclass(eq=False, slots=True)
class _Merging:
    """The equations with merged axes. merged: for each value of a region the one in its place."""

    finder: _Finder
    region: set[Var]
    merged: dict[Atom, Var] = field(default_factory=dict)

    def equations(self, eqn: Eqn) -> Iterator[Eqn]:
        """What stands in place of an equation; the value as it was is a view."""
        var = eqn.output
        if var not in self.region:
            yield eqn
            return
        new = self.merged[var] = replace(var, shape=_merged(var.shape))
        if eqn.primitive is p.contract:
            yield from self._product(eqn, new)
        else:
            inputs = []
            for atom in eqn.inputs:
                yield from self._viewed(eqn, atom, _merged(var.shape))
                inputs.append(self.merged.get(atom, atom))
            yield replace(eqn, inputs=tuple(inputs), output=new)
        yield _view(p.reshape, new, var, eqn)

    def _product(self, eqn: Eqn, new: Var) -> Iterator[Eqn]:
        found = _side_of_pair(eqn)
        assert found is not None
        side, at = found
        operands, image = list(eqn.inputs), eqn.params["out"][-1]
        operand = operands[side]
        if operand not in self.region:
            seen = Var(_merged(operand.shape, at), operand.dtype)
            yield _view(p.reshape, operand, seen, eqn)
            operands[side] = seen
        else:
            operands[side] = self.merged[operand]
        names = ("lhs", "rhs", "out")
        labels = {name: tuple([x for x in eqn.params[name] if x != image]) for name in names}
        params = {**eqn.params, **labels}
        yield replace(eqn, inputs=tuple(operands), params=params, output=new)

    def _viewed(self, eqn: Eqn, atom: Atom, shape: tuple[int, ...]) -> Iterator[Eqn]:
        """A view of an operand of an elementwise operation, if there is none yet."""
        if isinstance(atom, Literal) or atom in self.merged:
            return
        new = self.merged[atom] = Var(shape, atom.dtype)
        made = self.finder.producers.get(atom)
        if made is None or made.primitive is not p.broadcast:
            yield _view(p.reshape, atom, new, eqn)
            return
        small = made.inputs[0]
        if len(small.shape) > 1:
            seen = Var(_merged(small.shape), small.dtype)
            yield _view(p.reshape, small, seen, eqn)
            small = seen
        yield _view(p.broadcast, small, new, eqn)


def _view(primitive: Primitive, operand: Atom, output: Var, eqn: Eqn) -> Eqn:
    return Eqn(primitive, (operand,), {"shape": output.shape}, output, eqn.source)
