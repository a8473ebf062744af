"""Loops and choices as functions, with JAX's names and signatures.

Under `tinyfuse.jit` each is one loop or choice of the compiled program, traced once; elsewhere they
are plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse.trace import control_flow as traced
from tinyfuse.trace.builder import state
from tinyfuse.trace.operations import is_traced
from tinyfuse.tree import flatten


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Carry a value through the turns of a loop.

    ::

        value = init_val
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value

    Args:
        lower, upper: integers; where they are traced, the number of turns is found at run time.
        body_fun: of the index and the value to the next value.
        init_val: an array, a number, or a container of such.

    Raises CarryError where body_fun returns another structure, other shapes or dtypes.
    """
    if state.builder is None or not _is_known(lower, upper):
        if state.builder is not None:
            return _counted(lower, upper, body_fun, init_val)
        value = _own(init_val)
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value

    def body(turn: Any, value: Any) -> Any:
        return body_fun(turn + lower if lower else turn, value)

    return traced.traced_loop(max(upper - lower, 0), body, init_val, "fori_loop's body_fun")


def _counted(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    def turn(carried: Any) -> Any:
        i, value = carried
        return i + 1, body_fun(i, value)

    return while_loop(lambda carried: carried[0] < upper, turn, (lower, init_val))[1]


def _is_known(*values: Any) -> bool:
    return not any(is_traced(value) for value in values)


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Carry a value through turns as long as a function of it is true.

    ::

        value = init_val
        while cond_fun(value):
            value = body_fun(value)
        return value

    Args:
        cond_fun: of the value to a truth.
        body_fun: of the value to the next value.
        init_val: an array, a number, or a container of such.

    Raises CarryError where body_fun returns another structure, other shapes or dtypes.
    """
    if state.builder is not None:
        return traced.traced_while(cond_fun, body_fun, init_val, "while_loop's body_fun")
    value = _own(init_val)
    while cond_fun(value):
        value = body_fun(value)
    return value


def _own(value: Any) -> Any:
    """With arrays of its own, so that bodies that write leave the caller's as they are."""
    leaves, structure = flatten(value)
    copies = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    return structure.unflatten(copies)


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    """Carry a value along the first axis of arrays, and stack what comes out at each position.

    ::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Args:
        f: of the value and the elements at one position to the next value and an output.
        init: an array, a number, or a container of such.
        xs: an array, or a container of arrays, of equal first extents; None where f needs none.
        length: how many positions; needed where xs is None.
        reverse: whether to go from the last position to the first; outputs keep their positions.
        unroll: without effect, as in JAX.

    Raises CarryError as fori_loop; ValueError where the extents differ.
    """
    leaves, structure = flatten(xs)
    arrays = [leaf for leaf in leaves if leaf is not None]
    count = _extent(arrays, length, "scan")

    def at(i: Any) -> Any:
        return structure.unflatten([None if leaf is None else leaf[i] for leaf in leaves])

    if not count and state.builder is None:
        return init, None
    if state.builder is not None:
        return _traced_scan(f, init, at, count, reverse)
    carry, outputs = _own(init), []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, at(i))
        outputs.append(y)
    return carry, _stacked(outputs[::-1] if reverse else outputs)


def _extent(arrays: Sequence[Any], length: int | None, what: str) -> int:
    extents = {len(array) for array in arrays} | ({length} if length is not None else set())
    if len(extents) != 1:
        words = "gets no arrays and no length" if not extents else f"gets lengths {sorted(extents)}"
        raise ValueError(f"{what} {words}")
    return extents.pop()


def _stacked(outputs: Sequence[Any]) -> Any:
    """A container of the outputs' leaves, stacked along a new first axis."""
    pairs = [flatten(output) for output in outputs]
    columns = zip(*[leaves for leaves, _ in pairs], strict=True)
    return pairs[0][1].unflatten(
        [None if column[0] is None else np.stack(column) for column in columns]
    )


def _traced_scan(
    f: Callable[[Any, Any], Any], init: Any, at: Callable[[Any], Any], count: int, reverse: bool
) -> Any:
    stacks, structure = traced.stacks_for(lambda i, carry: f(carry, at(i)), init, count)

    def body(turn: Any, carry: Any) -> Any:
        i = (count - 1) - turn if reverse else turn
        carry, y = f(carry, at(i))
        for stack, leaf in zip(stacks, flatten(y)[0], strict=True):
            if stack is not None:
                stack[i] = leaf
        return carry

    carry = traced.traced_loop(count, body, init, "scan's f")
    return carry, structure.unflatten(stacks)


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:  # noqa: A001
    """A function of the elements along the first axis of arrays, its results stacked.

    f: of the elements at one position. xs: an array or a container of arrays of equal first
    extents. batch_size: without effect.
    """
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """`true_fun(*operands) if pred else false_fun(*operands)`.

    pred: a truth. Both functions return the same structure, shapes and dtypes.
    Raises CarryError where they do not.
    """
    if not is_traced(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    branches = [lambda: false_fun(*operands), lambda: true_fun(*operands)]
    names = ("cond's false_fun", "cond's true_fun")
    return traced.traced_choice(traced.truth(pred), branches, names)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index that is too small or too large means the nearest.

    All functions return the same structure, shapes and dtypes. Raises CarryError where they do not,
    ValueError where there are none.
    """
    if not branches:
        raise ValueError("switch gets no branches")
    if not is_traced(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    names = [f"switch's branch {at}" for at in range(len(branches))]
    made = [lambda branch=branch: branch(*operands) for branch in branches]
    return traced.traced_choice(index, made, names)
