"""The steps of a program: kernels with the loops and choices around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tinyfuse.loops.ir import Buffer, Choice, Kernel, Repeat, Step, Steps
from tinyfuse.records import replace


def walk_steps(steps: Steps) -> Iterator[Steps | Step]:
    """Steps and all that is inside them, in the order in which they are written."""
    yield steps
    for step in steps.body:
        yield step
        if not isinstance(step, Kernel):
            for inner in (step.steps,) if isinstance(step, Repeat) else step.branches:
                yield from walk_steps(inner)


def map_kernels(steps: Steps, change: Callable[[Kernel], Sequence[Kernel]]) -> Steps:
    """Steps with what stands for each kernel, in the order in which they are written."""
    body: list[Step] = []
    for step in steps.body:
        if isinstance(step, Kernel):
            body += change(step)
        elif isinstance(step, Repeat):
            body.append(replace(step, steps=map_kernels(step.steps, change)))
        else:
            branches = tuple([map_kernels(branch, change) for branch in step.branches])
            body.append(replace(step, branches=branches))
    return Steps(tuple(body), steps.moves)


def buffers_in(steps: Steps) -> set[Buffer]:
    """The buffers of its kernels, and those that decide about steps or are exchanged."""
    return {buffer for node in walk_steps(steps) for buffer in _buffers_of(node) if buffer}


def _buffers_of(node: Steps | Step) -> tuple[Buffer | None, ...]:
    if isinstance(node, Kernel):
        return node.parameters
    if isinstance(node, Steps):
        return tuple([buffer for move in node.moves for buffer in move])
    return (node.index,) if isinstance(node, Choice) else (node.turn, *node.decides)
