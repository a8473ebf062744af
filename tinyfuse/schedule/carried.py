"""Sums over blocks that are scaled as a running value moves on: which stages compute one.

As an online softmax has them: a scan along blocks, arrays of blocks that are computed of it, and
sums over the blocks that go with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyfuse.records import dataclass
from tinyfuse.stage.analysis import consumers, only_axis
from tinyfuse.stage.expr import Load, depends_on
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Order, Stage, Stages

Readers = Mapping[Stage, Sequence[Stage]]


@dataclass(frozen=True, slots=True)
class Carried:
    """The stages of one such computation; arrays of blocks have the axis of blocks in front.

    tops: the reduction of each block that the scan combines. inside: what is computed of a block,
    in the order of the program; of it products has an element for each of the leader's. leader: the
    sums over the blocks that have all axes of the root, which reads them. others: sums for each
    row. scores: the reductions that blocks are computed of, with an element for each row and key.

    outer: the axes of the leader that are those of the sums of rows, and the last axes of what is
    computed for each row. rows: at most one of these, along which the products read one array
    only. inner: the others of the leader.
    """

    scan: Stage
    tops: Stage
    inside: tuple[Stage, ...]
    products: Stage
    leader: Stage
    others: tuple[Stage, ...]
    root: Stage
    scores: tuple[Stage, ...]
    outer: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @property
    def blocks(self) -> Axis:
        return self.leader.reduce_axes[0]

    @property
    def stages(self) -> tuple[Stage, ...]:
        sums = (self.leader, *self.others, self.root)
        return (*self.scores, self.tops, self.scan, *self.inside, *sums)

    def along(self, stage: Stage) -> dict[Axis, Axis]:
        """For axes of the leader those of one of these stages that go along with them."""
        if stage is self.root:
            return _read_along(self.root, self.leader) or {}
        axes = self.leader.axes if stage in (self.leader, self.products) else self.outer
        return dict(zip(axes, stage.axes[len(stage.axes) - len(axes) :], strict=True))

    def axes_of(self, stage: Stage) -> tuple[tuple[Axis, ...], Axis] | None:
        """The axes of rows and of keys of what blocks are computed of, by how they read it; None
        where it is no such stage. An axis of rows of one element may be left out."""
        own = self.along(self.tops)
        rows = tuple([own[axis] for axis in self.rows])
        waiting = [(load, rows, self.tops.axes[0]) for load in self.tops.reads()]
        while waiting:
            load, rows, key = waiting.pop()
            found, keys = _moving(load, rows), _moving(load, (key,))
            if load.data or len(found) > len(self.rows) or len(keys) != 1 or found == keys:
                continue
            if load.source is stage:
                return found, keys[0]
            waiting += [(each, found, keys[0]) for each in load.source.reads()]
        return None


def _read_along(reader: Stage, source: Stage) -> dict[Axis, Axis] | None:
    """For each axis of a source the one of its reader that it is read along, but for axes of one
    element that the reader has none for; None where another one has none."""
    loads = [load for load in reader.reads() if load.source is source]
    if len(loads) != 1 or loads[0].data:
        return None
    single = [axis for axis in reader.axes if axis.extent == 1]
    found: dict[Axis, Axis] = {}
    for axis, index in zip(source.axes, loads[0].indices, strict=True):
        own = only_axis(index) or next((each for each in single if axis.extent == 1), None)
        if own is None and axis.extent == 1:
            continue
        if own is None or own.extent != axis.extent or own in found.values():
            return None
        found[axis] = own
        single = [each for each in single if each is not own]
    return found


def _moving(load: Load, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of what is loaded whose indices depend on some axes."""
    pairs = zip(load.source.axes, load.places, strict=True)
    return tuple([own for own, at in pairs if at and any(map(at.depends_on, axes))])


def carried_blocks(stages: Stages) -> tuple[Carried, ...]:
    """All that is computed in such a way."""
    scans = [stage for stage in stages.stages if stage.scan and stage.scan is stage.axes[0]]
    readers: Readers = consumers(stages) if scans else {}
    found = [_carried(stages, scan, readers) for scan in scans]
    return tuple([each for each in found if each])


def _carried(stages: Stages, scan: Stage, readers: Readers) -> Carried | None:
    tops, *rest = dict.fromkeys(load.source for load in scan.reads()) or [None]
    if rest or tops is None or not tops.reduce_axes or tops.order is not Order.SERIAL:
        return None
    parts = _parts(stages, scan)
    if parts is None:
        return None
    inside, sums = parts
    after = dict.fromkeys(reader for stage in sums for reader in readers[stage])
    known = {tops, scan, *inside, *sums}
    closed = all(reader in known for stage in (tops, scan, *inside) for reader in readers[stage])
    if len(after) != 1 or not closed or known & {*stages.outputs}:
        return None
    (root,) = after
    leader = max(sums, key=lambda stage: len(stage.axes))
    products = [s for s in inside if s.shape[1:] == leader.shape and s.reduce_axes]
    if root.reduce_axes or root.row_axis or root.scatter or not _read_along(root, leader):
        return None
    others = tuple([stage for stage in sums if stage is not leader])
    if len(products) != 1 or not others or any(s.shape != others[0].shape for s in others):
        return None
    axes = _axes(leader, products[0], others[0], inside)
    if axes is None:
        return None
    scores = _scores(stages, tops, {tops, *inside}, readers)
    return Carried(scan, tops, inside, products[0], leader, others, root, scores, *axes)


def _parts(stages: Stages, scan: Stage) -> tuple[tuple[Stage, ...], tuple[Stage, ...]] | None:
    """What is computed of the scan for each block, and the sums over the blocks; None where
    something is computed otherwise."""
    inside: dict[Stage, None] = {}
    sums: dict[Stage, None] = {}
    for stage in stages.stages:
        read = [load for load in stage.reads() if load.source is scan or load.source in inside]
        if not read:
            continue
        over_blocks = [axis for axis in stage.reduce_axes if axis.extent == scan.shape[0]]
        kinds = ((sums, over_blocks), (inside, stage.axes[:1]))
        fitting = [
            found
            for found, axes in kinds
            if axes and all(load.places[:1] == (affine(axes[0]),) for load in read)
        ]
        if not fitting or stage.order is not Order.SERIAL:
            return None
        fitting[0][stage] = None
    return tuple(inside), tuple(sums)


def _axes(
    leader: Stage, products: Stage, total: Stage, inside: Sequence[Stage]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]] | None:
    """The axes of the leader: those of rows, of which one is chosen, and the others."""
    own = dict(zip(leader.axes, products.axes[1:], strict=True))
    weights = [load for load in products.reads() if load.source in inside]
    values = [load for load in products.reads() if load.source not in inside]
    used = [a for a in leader.axes if any(depends_on(x, own[a]) for x in weights)]
    single = [axis for axis in leader.axes if axis.extent == 1][: len(total.axes) - len(used)]
    outer = tuple([axis for axis in leader.axes if axis in used or axis in single])
    inner = tuple([axis for axis in leader.axes if axis not in outer])
    free = [axis for axis in outer if not any(depends_on(x, own[axis]) for x in values)]
    if not inner or tuple([axis.extent for axis in outer]) != total.shape:
        return None
    rows = sorted(free, key=lambda axis: (axis.extent, leader.axes.index(axis)))[-1:]
    return outer, tuple(rows), inner


def _scores(stages: Stages, tops: Stage, users: set[Stage], readers: Readers) -> tuple[Stage, ...]:
    """The reductions that blocks are computed of, and nothing else is; also through what is
    computed of them element by element."""
    pairs = {load.source for load in tops.reads()}
    found: list[Stage] = []
    for stage in reversed(stages.stages):
        if stage not in pairs or stage in stages.outputs:
            continue
        if not all(reader in users for reader in readers[stage]):
            continue
        if stage.reduce_axes:
            lanes = [load.source for load in stage.reads()] if stage.order is Order.HALVING else []
            single = all(readers[each] == [stage] for each in lanes)
            found += [stage] if single and not stage.scatter else []
        elif not (stage.row_axis or stage.scatter):
            users.add(stage)
            pairs.update(load.source for load in stage.reads() if load.source.shape == stage.shape)
    return tuple(reversed(found))
