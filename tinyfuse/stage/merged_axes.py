"""Axes into which a reshape has merged others, found by how they are divided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from tinyfuse.stage.expr import Expr, loads
from tinyfuse.stage.index import Affine, Axis, Quotient, affine, flat_index

Extents = tuple[int, ...]


def merged_extents(
    operands: Callable[[Mapping[int, Affine]], Sequence[Expr]],
    sizes: Mapping[int, int],
    wanted: Collection[int],
) -> dict[int, Extents]:
    """For each of the wanted axes the extents that it was merged of; its own where of none.

    operands: what is read where these axes have these indices. sizes: extents by axis.
    """
    axes = {label: Axis(f"axis{label}", extent) for label, extent in sizes.items()}
    cuts: dict[Axis, set[int]] = {axis: set() for axis in axes.values()}
    for operand in operands({label: affine(axis) for label, axis in axes.items()}):
        for load in loads(operand):
            for axis, cut in _cuts(flat_index(load.indices, load.source.shape)):
                cuts[axis].add(cut)
    return {label: _extents(axes[label].extent, sorted(cuts[axes[label]])) for label in wanted}


def _cuts(index: Affine) -> Iterator[tuple[Axis, int]]:
    """(axis, divisor) of each place where an index divides one axis."""
    for term, _ in index.terms:
        if isinstance(term, Axis):
            continue
        inner, size = _divided(term.index)
        if inner is None:
            continue
        yield inner, size * term.divisor
        if size > 1:
            yield inner, size


def _divided(index: Affine) -> tuple[Axis | None, int]:
    """The axis, and by what it is divided, where an index is that and nothing else."""
    if len(index.terms) != 1 or index.constant or index.terms[0][1] != 1:
        return None, 1
    term = index.terms[0][0]
    if isinstance(term, Axis):
        return term, 1
    inner, size = _divided(term.index)
    return (inner, size * term.divisor) if isinstance(term, Quotient) else (None, 1)


def _extents(extent: int, cuts: Sequence[int]) -> Extents:
    """Of an axis that is cut into pieces of these sizes, smallest first."""
    if not cuts or not extent:
        return (extent,)
    found: list[int] = []
    size = 1
    for cut in (*cuts, extent):
        if cut % size or extent % cut:
            return (extent,)
        if cut > size:
            found.insert(0, cut // size)
        size = cut
    return tuple(found)


class Split:
    """Axes, by label, in place of which there are those that they were merged of.

    extents: of the new ones, by new labels.
    """

    def __init__(self, sizes: Mapping[int, int], merged: Mapping[int, Extents]):
        self.of_label: dict[int, tuple[tuple[int, ...], Extents]] = {}
        self.extents: dict[int, int] = {}
        for label, size in sizes.items():
            extents = merged.get(label, (size,))
            parts = tuple(range(len(self.extents), len(self.extents) + len(extents)))
            self.of_label[label] = parts, extents
            self.extents.update(zip(parts, extents, strict=True))

    def parts(self, labels: Sequence[int]) -> tuple[int, ...]:
        return tuple([part for label in labels for part in self.of_label[label][0]])

    def of(self, labels: Sequence[int]) -> tuple[Extents, ...]:
        """The new extents for each of the labels."""
        return tuple([self.of_label[label][1] for label in labels])

    def merged(self, position: Mapping[int, Affine]) -> dict[int, Affine]:
        """The indices along the old axes of a position along the new ones."""
        return {
            label: flat_index([position.get(part, Affine()) for part in parts], extents)
            for label, (parts, extents) in self.of_label.items()
        }
