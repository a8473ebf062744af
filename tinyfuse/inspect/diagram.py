"""What a drawing of a program shows: stages, in the kernels that compute them, and reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tinyfuse.compilation import Lowered
from tinyfuse.dtypes import describe
from tinyfuse.loops.ir import Kernel
from tinyfuse.records import dataclass
from tinyfuse.stage.ir import Stage

INPUTS = 0  # the group of the arrays that are read; those of the kernels follow


@dataclass(frozen=True, slots=True)
class Node:
    """A stage in one of the groups. kind: input, inside (of a kernel only), stored or output."""

    group: int
    name: str
    kind: str
    about: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """groups: a name for each, none for the inputs. edges: (from, to), as positions in nodes."""

    groups: tuple[str, ...]
    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]


def diagram_of(lowered: Lowered) -> Diagram:
    """A stage that several kernels compute for themselves is shown in each."""
    stages = lowered.stages
    order = {stage.name: at for at, stage in enumerate(stages.stages)}
    members: list[list[Stage]] = [list(stages.inputs)]
    for kernel in lowered.all_kernels:
        known = sorted({name: order[name] for name in kernel.stages if name in order}.values())
        members.append([stages.stages[at] for at in known])
    kinds = _kinds(lowered)
    nodes = [
        Node(group, stage.name, kinds.get((group, stage.name), "inside"), _about(stage))
        for group, found in enumerate(members)
        for stage in found
    ]
    place = {(node.group, node.name): at for at, node in enumerate(nodes)}
    edges = dict.fromkeys(_edges(members, place, _homes(lowered, members)))
    names = ["", *[kernel.name for kernel in lowered.all_kernels]]
    return Diagram(tuple(names), tuple(nodes), tuple(edges))


def _kinds(lowered: Lowered) -> dict[tuple[int, str], str]:
    outputs = {stage.name for stage in lowered.stages.outputs}
    kinds = {(INPUTS, stage.name): "input" for stage in lowered.stages.inputs}
    for group, kernel in enumerate(lowered.all_kernels, 1):
        for name in _stored(kernel):
            kinds[group, name] = "output" if name in outputs else "stored"
    return kinds


def _stored(kernel: Kernel) -> list[str]:
    return [buffer.name for buffer in kernel.parameters if buffer in kernel.written]


def _homes(lowered: Lowered, members: list[list[Stage]]) -> dict[str, int]:
    """The group from which others read a stage: that which stores it, or the first that has it."""
    homes: dict[str, int] = {}
    for group, kernel in enumerate(lowered.all_kernels, 1):
        for name in _stored(kernel):
            homes.setdefault(name, group)
    for group, found in enumerate(members):
        for stage in found:
            homes.setdefault(stage.name, group)
    return homes


def _edges(
    members: list[list[Stage]], place: Mapping[tuple[int, str], int], homes: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    for group, found in enumerate(members):
        for stage in found:
            for read in stage.reads():
                name = read.source.name
                own = place.get((group, name))
                source = own if own is not None else place.get((homes.get(name, INPUTS), name))
                if source is not None and read.source is not stage:
                    yield source, place[group, stage.name]


def _about(stage: Stage) -> str:
    """What is shown of a stage under the pointer."""
    statements = dict.fromkeys([source.statement for source in stage.sources if source.statement])
    return "\n".join([f"{stage.name}: {describe(stage.shape, stage.dtype)}", *statements])
