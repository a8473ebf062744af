"""Programs with copies: of what stages read, and of what a reduction has computed.

A schedule asks for them, and says where they are computed. All other stages keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyfuse.errors import ScheduleError
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import (
    Const,
    Expr,
    IndexTest,
    Load,
    depends_on,
    loads,
    select,
    substitute,
)
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Order, Stage, Stages, rewritten
from tinyfuse.stage.wrapping import Wrap, wrapped


@dataclass(frozen=True, slots=True)
class CacheRead:
    """The stage `name` is a copy of a source, from which others read in its place.

    readers: these stages, each with the axis that the indices of such a read depend on; without
    one all that it reads of the source is read from the copy. index: the axis of the source whose
    index that is; None for any.
    """

    name: str
    source: Stage
    readers: tuple[tuple[Stage, Axis | None], ...]
    index: Axis | None = None

    def redirects(self, reader: Stage, load: Load) -> bool:
        """Whether a reader loads this from the copy."""
        readers = dict(self.readers)
        if load.source is not self.source or reader not in readers:
            return False
        return is_along(load, readers[reader], self.index)


@dataclass(frozen=True, slots=True)
class CacheWrite:
    """The stage `name` computes what another stage did, which becomes a copy of it."""

    name: str
    stage: Stage


@dataclass(frozen=True, slots=True)
class Pad:
    """An axis of a stage is longer: there are elements past its end, which nobody asks for."""

    stage: Stage
    axis: Axis
    extent: int

    @property
    def name(self) -> str:
        return self.stage.name


Change = CacheRead | CacheWrite | Pad | Wrap


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """The program that another one was made of, how, and which stages have become which."""

    stages: Stages
    change: Change
    replaced: Mapping[Stage, Stage]


def changed(stages: Stages, change: Change) -> Stages:
    """The program with another stage; the same one each time.

    Raises ScheduleError where there is one of that name, and where the change is no such one.
    """
    if change not in stages.derived:
        if (
            isinstance(change, CacheRead | CacheWrite)
            and fresh_name(change.name, stages) != change.name
        ):
            raise ScheduleError(f"there is a stage {change.name} already")
        stages.derived.setdefault(change, MAKE[type(change)](stages, change))
    return stages.derived[change]


def original(stages: Stages) -> Stages:
    """The program without copies."""
    while stages.origin:
        stages = stages.origin.stages
    return stages


def changes(stages: Stages) -> list[Change]:
    """What has made a program of the original one, in this order."""
    found: list[Change] = []
    while stages.origin:
        found.append(stages.origin.change)
        stages = stages.origin.stages
    return found[::-1]


def current(stage: Stage, stages: Stages) -> Stage:
    """What a stage of a program that this one was made of has become."""
    origins = []
    while stages.origin:
        origins.append(stages.origin)
        stages = stages.origin.stages
    for origin in reversed(origins):
        stage = origin.replaced.get(stage, stage)
    return stage


def copies(stages: Stages) -> frozenset[str]:
    """The names of the stages that only copy what others read, of a program with such."""
    return frozenset([each.name for each in changes(stages) if isinstance(each, CacheRead)])


def fresh_name(base: str, stages: Stages) -> str:
    """A name that no stage has."""
    taken = {stage.name for stage in (*stages.inputs, *stages.stages)}
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    return name


def _with_read(stages: Stages, change: CacheRead) -> Stages:
    source, readers = change.source, dict(change.readers)
    _check_readers(change)
    axes = _same_axes(source)
    copy = Stage(change.name, axes, source.dtype, source[axes], sources=source.sources)

    def from_copy(stage: Stage, load: Load) -> Stage | None:
        return copy if change.redirects(stage, load) else None

    return _rebuilt(
        stages, change, {next(s for s in stages.stages if s in readers): copy}, from_copy
    )


def _with_write(stages: Stages, change: CacheWrite) -> Stages:
    stage = change.stage
    if stage.order is not Order.SERIAL or stage.row_axis or stage.scatter:
        raise ScheduleError("its elements depend on each other")
    if stage.body is None:
        raise ScheduleError("it is an input")
    axes = _same_axes(stage)
    body = substitute(stage.body, dict(zip(stage.axes, axes, strict=True)))
    local = replace(stage, name=change.name, axes=axes, body=body, named=False)
    copy = replace(stage, body=local[stage.axes], reduce_axes=(), init=None, order=Order.SERIAL)
    return _rebuilt(stages, change, {stage: local}, lambda reader, load: None, {stage: copy})


def _with_padding(stages: Stages, change: Pad) -> Stages:
    stage, axis = change.stage, change.axis
    longer = Axis(axis.name, change.extent)
    _check_padding(stages, change)
    assert stage.body is not None
    body = substitute(stage.body, {axis: longer})
    if not has_room(change):
        if stage.reduce_axes:
            raise ScheduleError(f"what it reads ends where {axis.name} does: pad that first")
        zero = Const(stage.dtype.type(0))
        body = select(IndexTest(affine(longer), None, axis.extent), body, zero)
    axes = tuple([longer if each is axis else each for each in stage.axes])
    padded = replace(stage, axes=axes, body=body)
    return _rebuilt(stages, change, {}, lambda reader, load: None, {stage: padded})


def _check_padding(stages: Stages, change: Pad) -> None:
    stage, axis = change.stage, change.axis
    if stage.is_input:
        raise ScheduleError("it is an input")
    if axis not in stage.axes or change.extent < axis.extent:
        raise ScheduleError(f"{axis.name} cannot be {change.extent} long")
    if stage in stages.outputs:
        raise ScheduleError("it is an output, which has no room past its end")
    if stage.row_axis or stage.scatter:
        raise ScheduleError("its elements depend on each other")
    readers = [load for each in stages.stages for load in each.reads() if load.source is stage]
    if any(load.data for load in (*readers, *stage.reads())):
        raise ScheduleError("data decides where it is read, or what it reads")


def has_room(change: Pad) -> bool:
    """Whether what a stage reads is there also past the end; else the elements there are zeros."""
    longer = Axis(change.axis.name, change.extent)
    return all(
        _is_inside(load, longer)
        for expression in change.stage.expressions
        for load in loads(substitute(expression, {change.axis: longer}))
    )


def _is_inside(load: Load, along: Axis) -> bool:
    """Whether the indices that depend on an axis are those of elements, wherever they are tested
    to be."""
    places = zip(load.indices, load.source.shape[len(load.data) :], strict=True)
    moving = [(index.interval(), extent) for index, extent in places if index.depends_on(along)]
    return all(low >= 0 and high < extent for (low, high), extent in moving)


def _check_readers(change: CacheRead) -> None:
    for reader, along in change.readers:
        if not any(change.redirects(reader, load) for load in reader.reads()):
            where = f" at indices that depend on {along.name}" if along else ""
            raise ScheduleError(f"{reader.name} does not read {change.source.name}{where}")
        if reader.order is not Order.SERIAL:
            name = change.source.name
            raise ScheduleError(f"{reader.name} combines the elements of {name} in place")


def is_along(load: Load, along: Axis | None, index: Axis | None) -> bool:
    """Whether the indices of a load depend on an axis, if one is given: that of the source's axis
    `index`, or any."""
    if along is None or index is None:
        return along is None or depends_on(load, along)
    place = load.places[load.source.axes.index(index)]
    return place is not None and place.depends_on(along)


def _with_wrapping(stages: Stages, change: Wrap) -> Stages:
    made = [each for each in changes(stages) if isinstance(each, Wrap)]
    earlier = {
        current(stage, stages): known
        for each in made
        for stage, known in each.rounds
        if known.place == change.place
    }
    ordered, new = wrapped(stages, change, earlier)
    outputs = tuple([new.get(stage, stage) for stage in stages.outputs])
    return Stages(stages.name, stages.inputs, ordered, outputs, Origin(stages, change, new))


MAKE: Mapping[type, Callable[[Stages, Change], Stages]] = {
    CacheRead: _with_read,  # type: ignore[dict-item]
    CacheWrite: _with_write,  # type: ignore[dict-item]
    Pad: _with_padding,  # type: ignore[dict-item]
    Wrap: _with_wrapping,  # type: ignore[dict-item]
}


def _same_axes(stage: Stage) -> tuple[Axis, ...]:
    return tuple([Axis(axis.name, axis.extent) for axis in stage.axes])


def _rebuilt(
    stages: Stages,
    change: Change,
    before: Mapping[Stage, Stage],
    redirected: Callable[[Stage, Load], Stage | None],
    replaced: Mapping[Stage, Stage] = {},
) -> Stages:
    """The program with a stage more in front of another one, and all loads of what is replaced.

    redirected: what a stage reads instead of the source of a load, if not its successor.
    """
    new: dict[Stage, Stage] = dict(replaced)
    ordered = []
    for stage in stages.stages:
        if stage in before:
            ordered.append(before[stage])
        if stage not in new:

            def leaf(node: Expr, stage: Stage = stage) -> Expr:
                if not isinstance(node, Load):
                    return node
                source = redirected(stage, node) or new.get(node.source, node.source)
                return node if source is node.source else Load(source, node.indices, node.data)

            found = rewritten(stage, leaf)
            if found is not stage:
                new[stage] = found
        ordered.append(new.get(stage, stage))
    outputs = tuple([new.get(stage, stage) for stage in stages.outputs])
    return Stages(stages.name, stages.inputs, tuple(ordered), outputs, Origin(stages, change, new))
