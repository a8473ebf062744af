"""What of a program depends on constants alone: kernels that run once, before the first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from tinyfuse.loops.ir import Buffer, Choice, Kernel, Loops, Repeat, Scope, Steps
from tinyfuse.loops.names import unused
from tinyfuse.loops.steps import map_kernels, walk_steps
from tinyfuse.lower.scratch import plan_scratch
from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Parted:
    """A program in two: what runs at every call, and what runs once, if anything does.

    The outputs of `once` are the last inputs of `each`.
    """

    each: Loops
    once: Loops | None


def parted(loops: Loops) -> Parted:
    """Move out of a program the kernels that read constants, and what is made of these, alone."""
    kernels = _fixed_kernels(loops)
    if not kernels:
        return Parted(loops, None)
    rest = [kernel for kernel in loops.kernels if kernel not in kernels]
    made = {b: None for kernel in kernels for b in kernel.parameters if b in kernel.written}
    read = {buffer for kernel in rest for buffer in kernel.parameters}
    kept = [buffer for buffer in made if buffer in read]
    used = {buffer for kernel in kernels for buffer in kernel.parameters}
    scratch, scratch_bytes = plan_scratch([*kernels], [each for each in made if each not in read])
    names = {buffer.name for buffer in (*loops.inputs, *loops.outputs, *made)}
    names.update([kernel.name for kernel in loops.kernels])
    once = Loops(
        unused(f"{loops.name}_once", names),
        tuple([buffer for buffer in loops.inputs if buffer in used]),
        tuple(kept),
        tuple(kernels),
        scratch,
        scratch_bytes,
    )
    return Parted(_without(loops, rest, kept, set(made)), once)


def _fixed_kernels(loops: Loops) -> dict[Kernel, None]:
    """The kernels whose results are the same at every call, in their order."""
    writers: dict[Buffer, list[Kernel]] = {}
    for kernel in loops.kernels:
        for buffer in kernel.written:
            writers.setdefault(buffer, []).append(kernel)
    constants = {buffer for buffer in loops.inputs if buffer.constant}
    found = dict.fromkeys(loops.kernels) if constants else {}
    bound = _bound(loops.steps, writers) if loops.steps else set()
    before = -1
    while len(found) != before:
        before = len(found)
        known = {each for each, by in writers.items() if found.keys() >= {*by}} - bound
        known = {each for each in known if each.scope is Scope.SCRATCH} | constants
        found = {kernel: None for kernel in found if known.issuperset(kernel.parameters)}
    return found


def _bound(steps: Steps, writers: Mapping[Buffer, Sequence[Kernel]]) -> set[Buffer]:
    """The buffers that hold one value after the other while loops run, and those that decide about
    loops and choices."""
    found = {buffer for buffer, by in writers.items() if len(by) > 1}
    for node in walk_steps(steps):
        if isinstance(node, Steps):
            found.update(chain(*node.moves))
        elif isinstance(node, Choice):
            found.add(node.index)
        elif isinstance(node, Repeat):
            found.update([*([node.turn] if node.turn else []), *node.decides])
    return found


def _without(
    loops: Loops, kernels: Sequence[Kernel], kept: Sequence[Buffer], made: set[Buffer]
) -> Loops:
    """The program of the kernels that are left; what others have made are inputs."""
    inputs = (*loops.inputs, *kept)
    left = [(buffer, offset) for buffer, offset in loops.scratch if buffer not in made]
    if loops.steps is None:
        scratch, size = plan_scratch(kernels, [buffer for buffer, _ in left])
    else:
        scratch, size = tuple(left), loops.scratch_bytes
    left_in = dict.fromkeys(kernels)
    steps = loops.steps and map_kernels(loops.steps, lambda k: (k,) if k in left_in else ())
    return Loops(loops.name, inputs, loops.outputs, tuple(kernels), scratch, size, steps)
