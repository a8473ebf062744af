"""One small function for each kind of fusion, with its loops before and after: python fusion.py

Names of functions as arguments print only those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from inspect import getsource
from typing import NamedTuple

import numpy as np

import tinyfuse

KIB = 1024


class Example(NamedTuple):
    """shapes: of the function's float32 arguments. kernels: before and after."""

    function: Callable[..., object]
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    kernels: tuple[int, int]


EXAMPLES: dict[str, Example] = {}


def example(
    kind: str, *shapes: tuple[int, ...], kernels: tuple[int, int]
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def list_it(function: Callable[..., object]) -> Callable[..., object]:
        EXAMPLES[function.__name__] = Example(function, kind, shapes, kernels)
        return function

    return list_it


@example("a chain, with arrays that are broadcast", (512, 1024), (1024,), (512, 1), kernels=(3, 1))
def scaled_and_bent(x, weight, offset):
    y = x * weight - offset
    return np.tanh(y)


@example("what is elementwise goes into a reduction", (512, 1024), (512, 1024), kernels=(3, 1))
def squared_error(x, y):
    return ((x - y) ** 2).sum(axis=-1)


@example("reductions of a row, and what is computed of them", (512, 1024), kernels=(5, 1))
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@example("reductions of what reductions gave", (64, 128, 256), kernels=(4, 1))
def longest_row(x):
    return np.sqrt((x * x).sum(axis=-1)).max(axis=-1)


@example(
    "an outer product that is summed up, and never stored", (1024, 3), (1024, 3), kernels=(4, 1)
)
def distances(x, y):
    return np.sqrt(((x[:, None] - y) ** 2).sum(axis=-1))


@example("sums of what is computed of pairs: side by side", (1024,), (1024,), kernels=(8, 1))
def average_of_near(x, values):
    near = np.exp(-np.abs(x[:, None] - x))
    return (near * values).sum(axis=-1) / near.sum(axis=-1)


@example("several reductions of one array: one pass", (512, 1024), kernels=(4, 1))
def statistics(x):
    return x.sum(axis=-1), x.max(axis=-1), (x * x).sum(axis=-1)


@example("several results, and one producer of two readers", (512, 1024), kernels=(4, 1))
def polar(x):
    angle = np.exp(x) * 2
    return np.cos(angle), np.sin(angle)


@example("operations of one shape that share nothing", *[(512, 1024)] * 4, kernels=(4, 1))
def two_updates(p, q, dp, dq):
    return p - np.float32(0.1) * dp, q - np.float32(0.1) * dq


@example("what follows a matrix product", (64, 32), (32, 128), (128,), kernels=(3, 1))
def dense(x, weight, bias):
    return np.maximum(x @ weight + bias, 0)


@example("arrays put together of others", (512, 1024), (512, 512), kernels=(4, 1))
def joined(x, y):
    both = np.concatenate([np.flip(x, axis=1), np.roll(y, 1, axis=0) * 2], axis=1)
    return both + 1


@example("a running total, and what is computed of it", (512, 1024), kernels=(3, 1))
def running_root(x):
    return np.sqrt(np.cumsum(x * x, axis=1))


@example("a stencil of a stencil: a few rows are kept", (2048, 2048), kernels=(6, 1))
def blur(image):
    across = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3


@example("many stencils of one another: strips of rows", (2048, 2048), kernels=(15, 1))
def smoothed(u):
    for _ in range(5):
        u = np.pad((u[:-2] + u[2:]) * np.float32(0.5), ((1, 1), (0, 0)))
    return u


@example("stencils that go round: their ends are copied", (2048, 2048), kernels=(12, 1))
def advected(q):
    for _ in range(3):
        q = q - np.float32(0.25) * (q - np.roll(q, 1, axis=0))
    return q


@example("short rows: many of them at a time", (10000, 12), kernels=(5, 1))
def shares_of_few(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@example("nothing is gained: nothing is fused", (512, 1024), (512, 1024), kernels=(2, 2))
def unrelated(x, y):
    return np.cumsum(x, axis=1), y.T + 1


# --- the report -----------------------------------------------------------------------------------


def lowered(shown: Example) -> tinyfuse.Lowered:
    return tinyfuse.jit(shown.function).lower(*arguments(shown))


def arguments(shown: Example) -> list[np.ndarray]:
    return [np.zeros(shape, np.float32) for shape in shown.shapes]


def show(shown: Example, after: tinyfuse.Lowered) -> None:
    source = getsource(shown.function)
    print(f"== {shown.kind}\n\n{source[source.index('def ') :]}")
    for name, program in (("before", after.unfused()), ("after", after)):
        print(f"{name}: {counts(program)}")
        program.schedule.print_loop_nest()
        print()


def counts(program: tinyfuse.Lowered) -> str:
    number = len(program.kernels)
    moved = sum(cost.bytes_read + cost.bytes_written for cost in program.cost.values())
    return (
        f"{number} kernel{'s' * (number != 1)}; {moved / KIB:,.0f} KiB read and written;"
        f" {program.scratch_bytes / KIB:,.0f} KiB of scratch memory"
    )


def main(names: Sequence[str] = ()) -> None:
    for name in names or EXAMPLES:
        show(EXAMPLES[name], lowered(EXAMPLES[name]))


if __name__ == "__main__":
    main(sys.argv[1:])
