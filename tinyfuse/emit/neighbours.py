"""Kernels in which gcc 12 loses the order of elements that lie side by side.

Of `for (j) { t = 0; for (k < 2) t += test(j) ? x[2 * j + k] : 0; out[2 * j] = …; out[2 * j + 1] = …
}` it makes vectors of several steps, and of each load one with a mask (of those of an `if` too).
Elements that change places between the load and its use stay where they are then. Such kernels are
compiled without vectors of what stands behind conditions.

Of `t = 0; for (k < 8) t += x[k]; for (j < 8) out[j] = x[7 - j] * t` with integers, whose sum may be
taken in any order, it makes one vector of x; in the order that suits the sum, for both. Such
kernels are compiled without vectors of statements side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from tinyfuse.emit.pieces import SHORT_LOOP
from tinyfuse.loops.ir import Block, For, If, Kernel, Statement, Store, While, walk_statements
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Load, always_run, is_guard, walk
from tinyfuse.stage.index import Affine, Axis

# The name of what such kernels are declared with, and what that is.
MASKS = "tf_masks"
MASKS_TEXT = """\
// for gcc, which does not move elements that it loads, several at a time, behind a condition
#if defined(__GNUC__) && !defined(__clang__)
#define tf_masks __attribute__((noinline, optimize("no-tree-loop-if-convert")))
#else
#define tf_masks
#endif"""

TURNED = "tf_turned"
TURNED_TEXT = """\
// for gcc, which does not turn round what it also combines, in whatever order
#if defined(__GNUC__) && !defined(__clang__)
#define tf_turned __attribute__((noinline, optimize("no-tree-slp-vectorize")))
#else
#define tf_turned
#endif"""
# Steps of loops inside one another that compilers may write out.
MOST_STEPS = 64


def masks_neighbours(kernel: Kernel) -> bool:
    loops = [node for node in walk_statements(kernel.body) if isinstance(node, For)]
    return any(_masks_neighbours(loop) for loop in loops)


def _masks_neighbours(loop: For) -> bool:
    """Whether a step may load, behind conditions, all elements of an array up to those of the next
    step, and these are two or more."""
    counts: Counter[tuple[object, int]] = Counter()
    for load, axes in _guarded(loop.body, (), False) or ():
        place = load.indices[0]
        step = abs(place.coefficient(loop.variable))
        if step > 1 and not load.data:
            along = [axis.extent for axis in axes if place.depends_on(axis)]
            counts[load.source, step] += math.prod(along)
    return any(count >= step for (_, step), count in counts.items())


def _guarded(
    body: Sequence[Statement], axes: tuple[Axis, ...], guarded: bool
) -> list[tuple[Load, tuple[Axis, ...]]] | None:
    """What is loaded behind conditions, with the loops around it; None where no compiler writes out
    all loops. Choices by data load first, and choose then."""
    found = [*_loads(body, axes, guarded)]
    for node in body:
        if isinstance(node, While):
            return None
        parts: list[tuple[Sequence[Statement], tuple[Axis, ...], bool]] = []
        if isinstance(node, For):
            around = (*axes, node.variable)
            steps = math.prod(axis.extent for axis in around)
            if node.count is not None or node.variable.extent > SHORT_LOOP or steps > MOST_STEPS:
                return None
            parts.append((node.body, around, guarded))
        elif isinstance(node, If):
            parts += [(node.then, axes, True), (node.otherwise, axes, True)]
        elif isinstance(node, Block):
            parts.append((node.body, axes, guarded))
        for part in parts:
            inside = _guarded(*part)
            if inside is None:
                return None
            found += inside
    return found


def _loads(
    body: Sequence[Statement], axes: tuple[Axis, ...], guarded: bool
) -> Iterator[tuple[Load, tuple[Axis, ...]]]:
    for node in body:
        for value in values_of(node):
            always = {} if guarded else always_run(value, is_guard)
            for part in walk(value):
                if isinstance(part, Load) and part not in always:
                    yield part, axes


def turns_combined(kernel: Kernel) -> bool:
    """Whether it combines the integers of short rows, and goes backwards through any."""
    statements = [*walk_statements(kernel.body)]
    loops = [node for node in statements if isinstance(node, For)]
    return any(map(_combines_few_integers, loops)) and any(
        coefficient < 0 for place in _places(statements) for _, coefficient in place.terms
    )


def _combines_few_integers(loop: For) -> bool:
    return loop.variable.extent <= SHORT_LOOP and any(
        isinstance(node, Store)
        and node.buffer.dtype.kind in "iub"
        and any(isinstance(part, Load) and part.source is node.buffer for part in walk(node.value))
        for node in loop.body
    )


def _places(statements: Sequence[Statement]) -> Iterator[Affine]:
    for node in statements:
        if isinstance(node, Store):
            yield node.position
        for value in values_of(node):
            yield from (part.indices[0] for part in walk(value) if isinstance(part, Load))
