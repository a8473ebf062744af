"""What `verify_loops` refuses of the loops and choices around kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import VerificationError
from tinyfuse.loops.ir import Buffer, Choice, Kernel, Loops, Repeat, Scope, Step, Steps
from tinyfuse.loops.steps import walk_steps
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower import program
from tinyfuse.records import replace


@pytest.fixture(autouse=True)
def loops_are_around_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of serial kernels stay around these."""
    monkeypatch.setattr(program, "with_loop_kernels", lambda steps, *_: steps)


def halved(x, k):
    while x.sum() > 1:
        x = x / 2
    if x[k] > 0.01:
        x = x * 3
    return x


def raised(x):
    for turn in range(100):
        x = x * 2 + turn
    return x


def loops_of(function: Callable[..., object], *arrays: np.ndarray) -> Loops:
    loops = tinyfuse.jit(function).lower(*arrays).loops
    verify_loops(loops)
    return loops


def parts() -> tuple[Loops, list[Step]]:
    """What comes before a loop, the loop, what decides about a choice, that, and the result."""
    loops = loops_of(halved, np.ones(8, np.float32), np.int64(2))
    assert loops.steps
    kinds = [type(step) for step in loops.steps.body]
    assert kinds == [Kernel, Repeat, Kernel, Choice, Kernel]
    return loops, [*loops.steps.body]


def refused(loops: Loops, message: str, *body: Step) -> None:
    assert loops.steps
    steps = replace(loops.steps, body=body)
    kernels = tuple([node for node in walk_steps(steps) if isinstance(node, Kernel)])
    with pytest.raises(VerificationError, match=message):
        verify_loops(replace(loops, steps=steps, kernels=kernels))


def test_what_decides_is_written_before() -> None:
    loops, (before, loop, decides, choice, result) = parts()
    refused(loops, "nobody writes greater", loop, before, decides, choice, result)
    refused(loops, "nobody writes cast", before, loop, choice, decides, result)
    refused(loops, "nobody writes cast", before, decides_in(loop, decides), choice, result)


def decides_in(loop: Step, decides: Step) -> Repeat:
    """A loop that may have no turn, with what decides about a choice in it."""
    assert isinstance(loop, Repeat)
    steps = replace(loop.steps, body=(*loop.steps.body, decides))
    return replace(loop, steps=steps)


def test_a_test_is_written_in_each_turn() -> None:
    loops, (before, loop, *others) = parts()
    assert isinstance(loop, Repeat)
    kept = replace(loop, steps=replace(loop.steps, body=(), moves=()))
    refused(loops, "nobody writes greater, which decides", before, kept, *others)


def test_what_decides_is_written_in_all_branches_or_before() -> None:
    loops, (before, loop, decides, choice, result) = parts()
    assert isinstance(choice, Choice)
    (k,) = [buffer for buffer in loops.inputs if buffer.size == 1]
    some = Choice(k, (Steps((decides,)), Steps(())))
    refused(loops, "nobody writes cast", before, loop, some, choice, result)


def test_one_number_decides() -> None:
    loops, (before, loop, decides, choice, result) = parts()
    assert isinstance(choice, Choice)
    several = replace(choice, index=loops.inputs[0])
    refused(
        loops, "x cannot decide about a loop or a choice", before, loop, decides, several, result
    )


def test_the_number_of_a_turn_is_known_in_it_alone() -> None:
    loops = loops_of(raised, np.ones(8, np.float32))
    assert loops.steps
    (loop,) = [step for step in loops.steps.body if isinstance(step, Repeat)]
    assert loop.turn
    inside = Choice(loop.turn, (Steps(()), Steps(())))
    steps = replace(loop.steps, body=(inside, *loop.steps.body))
    body = [replace(loop, steps=steps) if step is loop else step for step in loops.steps.body]
    verify_loops(replace(loops, steps=replace(loops.steps, body=tuple(body))))
    refused(loops, f"nobody writes {loop.turn.name}", inside, *loops.steps.body)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extent": -1}, "a loop of -1 turns"),
        ({"extent": None}, "an endless loop"),
        ({"turn": Buffer("other", np.dtype(np.int64), 1, Scope.SCRATCH)}, "other cannot decide"),
    ],
)
def test_loops_that_cannot_be(changes: dict[str, object], message: str) -> None:
    loops = loops_of(raised, np.ones(8, np.float32))
    assert loops.steps
    body = [
        replace(step, **changes) if isinstance(step, Repeat) else step for step in loops.steps.body
    ]
    refused(loops, message, *body)


def test_kernels_run_in_their_order() -> None:
    loops, (_, *others) = parts()
    assert loops.steps
    steps = replace(loops.steps, body=tuple(others))
    with pytest.raises(VerificationError, match="its steps are not its kernels in their order"):
        verify_loops(replace(loops, steps=steps))
