"""What equations are instead, primitive by primitive: earlier values, or simpler equations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import BOOL, FLOATING, is_floating
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal, Primitive, Var
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.graph.signs import Producer, is_never_positive
from tinyfuse.records import replace

# What an equation is: an earlier value, or an equation with the same output.
Result = Atom | Eqn


def _elementwise(producer: Producer, eqn: Eqn) -> Result:
    scalars = [_stretched_literal(producer, atom) for atom in eqn.inputs]
    arrays = [
        atom
        for atom, scalar in zip(eqn.inputs, scalars, strict=True)
        if scalar is None and isinstance(atom, Var)
    ]
    exponential = eqn.params["op"] == "exp" and eqn.output.dtype in FLOATING
    if exponential and is_never_positive(eqn.inputs[0], producer):
        return replace(eqn, params={"op": EXP_NONPOSITIVE})
    if not arrays or not any(scalars):
        return eqn
    pairs = zip(scalars, eqn.inputs, strict=True)
    return replace(eqn, inputs=tuple([scalar or atom for scalar, atom in pairs]))


def _stretched_literal(producer: Producer, atom: Atom) -> Literal | None:
    """The literal that an array is filled with."""
    scalar = _stretched_scalar(producer, atom)
    return scalar if isinstance(scalar, Literal) else None


def _stretched_scalar(producer: Producer, atom: Atom) -> Atom | None:
    """The value of shape () that an array is filled with."""
    inner = producer(atom, p.broadcast)
    return inner.inputs[0] if inner and inner.inputs[0].shape == () else None


def _cast(producer: Producer, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    if operand.dtype == eqn.params["dtype"]:
        return operand
    if isinstance(operand, Literal) and _always_defined(operand.dtype, eqn.output.dtype):
        with np.errstate(all="ignore"):
            return Literal(operand.value.astype(eqn.output.dtype))
    return eqn


def _always_defined(old: np.dtype, new: np.dtype) -> bool:
    """Whether each value has a conversion that all machines agree on."""
    return not is_floating(old) or is_floating(new) or new == BOOL


def _broadcast(producer: Producer, eqn: Eqn) -> Result:
    operand, shape = eqn.inputs[0], eqn.params["shape"]
    if operand.shape == shape:
        return operand
    inner = producer(operand, p.broadcast) or producer(operand, p.reshape)
    if inner is None or not _prepends_ones(inner):
        return eqn
    return _broadcast(producer, replace(eqn, inputs=inner.inputs))


def _prepends_ones(eqn: Eqn) -> bool:
    """Whether a broadcast of the equation's output is the same broadcast of its input."""
    old, new = eqn.inputs[0].shape, eqn.output.shape
    prepended = len(new) - len(old)
    return eqn.primitive is p.broadcast or (
        prepended >= 0 and new[prepended:] == old and math.prod(new[:prepended]) == 1
    )


def _stretched(eqn: Eqn, scalar: Atom) -> Eqn:
    """An array like the equation's, filled with a scalar."""
    params = {"shape": eqn.output.shape}
    return replace(eqn, primitive=p.broadcast, inputs=(scalar,), params=params)


def _view(rule: Callable[[Producer, Eqn], Result]) -> Callable[[Producer, Eqn], Result]:
    """A rule for views that only move elements: a stretched scalar stays a stretched scalar."""

    def apply(producer: Producer, eqn: Eqn) -> Result:
        scalar = _stretched_scalar(producer, eqn.inputs[0])
        if scalar is None:
            return rule(producer, eqn)
        return _broadcast(producer, _stretched(eqn, scalar))

    return apply


def _reshape(producer: Producer, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    inner = producer(operand, p.reshape)
    if inner is not None:
        operand = inner.inputs[0]
        eqn = replace(eqn, inputs=(operand,))
    return operand if operand.shape == eqn.params["shape"] else eqn


def _transpose(producer: Producer, eqn: Eqn) -> Result:
    operand, axes = eqn.inputs[0], eqn.params["axes"]
    inner = producer(operand, p.transpose)
    if inner is not None:
        operand = inner.inputs[0]
        axes = tuple([inner.params["axes"][axis] for axis in axes])
        eqn = replace(eqn, inputs=(operand,), params={"axes": axes})
    return operand if axes == tuple(range(len(axes))) else eqn


def _slice(producer: Producer, eqn: Eqn) -> Result:
    operand, starts, steps = eqn.inputs[0], eqn.params["starts"], eqn.params["steps"]
    shape = eqn.params["shape"]
    looked_at = None
    while operand is not looked_at:
        inner = producer(operand, p.slice_)
        if inner is not None:
            operand = inner.inputs[0]
            first, by = inner.params["starts"], inner.params["steps"]
            starts = tuple([f + b * start for f, b, start in zip(first, by, starts, strict=True)])
            steps = tuple([b * step for b, step in zip(by, steps, strict=True)])
        starts = tuple([start if n else 0 for start, n in zip(starts, shape, strict=True)])
        steps = tuple([step if n > 1 else 1 for step, n in zip(steps, shape, strict=True)])
        looked_at = operand
        operand, starts, steps = _past_updates(producer, operand, starts, steps, shape)
    scalar = _stretched_scalar(producer, operand)
    if scalar is not None:
        return _broadcast(producer, _stretched(eqn, scalar))
    if operand.shape == shape and all(step == 1 for step in steps):
        return operand
    params = {"starts": starts, "steps": steps, "shape": shape}
    return replace(eqn, inputs=(operand,), params=params)


_UPDATES = 64  # that one slice looks through, so that all slices together take linear time
Ints = tuple[int, ...]


def _past_updates(
    producer: Producer, operand: Atom, starts: Ints, steps: Ints, shape: Ints
) -> tuple[Atom, Ints, Ints]:
    """What a slice of a written array is a slice of: the values put in, or the array before."""
    for _ in range(_UPDATES):
        update = producer(operand, p.update)
        if update is None:
            break
        array, values = update.inputs
        first, by = update.params["starts"], update.params["steps"]
        axes = list(zip(starts, steps, shape, first, by, values.shape, strict=True))
        if any(_are_apart(*axis) for axis in axes):
            operand = array
            continue
        within = [_within(*axis) for axis in axes]
        if None in within:
            break
        operand = values
        starts = tuple([start for start, _ in filter(None, within)])
        steps = tuple([step for _, step in filter(None, within)])
    return operand, starts, steps


def _are_apart(start: int, step: int, count: int, first: int, by: int, written: int) -> bool:
    """Whether two ranges of positions have none in common."""
    end, last = start + step * (count - 1), first + by * (written - 1)
    if not count or not written:
        return True
    if max(start, end) < min(first, last) or max(first, last) < min(start, end):
        return True
    common = by if count == 1 else step if written == 1 else math.gcd(step, by)
    return (start - first) % common != 0


def _within(
    start: int, step: int, count: int, first: int, by: int, written: int
) -> tuple[int, int] | None:
    """A range of positions as start and step within another range; None where it leaves that."""
    if (start - first) % by or (count > 1 and step % by):
        return None
    begin, stride = (start - first) // by, (step // by if count > 1 else 1)
    last = begin + stride * (count - 1)
    return (begin, stride) if min(begin, last) >= 0 and max(begin, last) < written else None


def _update(producer: Producer, eqn: Eqn) -> Result:
    array, values = eqn.inputs
    starts, steps = eqn.params["starts"], eqn.params["steps"]
    if math.prod(values.shape) == 0:
        return array
    if values.shape == array.shape:
        if all(step == 1 for step in steps):
            return values
        params = {"starts": starts, "steps": steps, "shape": values.shape}
        return _slice(producer, replace(eqn, primitive=p.slice_, inputs=(values,), params=params))
    before = producer(array, p.update)
    if before is not None and _is_same_region(before, eqn):
        return replace(eqn, inputs=(before.inputs[0], values))
    return eqn


def _is_same_region(one: Eqn, other: Eqn) -> bool:
    names = ("starts", "steps")
    same = all(one.params[name] == other.params[name] for name in names)
    return same and one.inputs[1].shape == other.inputs[1].shape


def _gather(producer: Producer, eqn: Eqn) -> Result:
    """What was put at one place is there."""
    array, *indices = eqn.inputs
    put = producer(array, p.scatter)
    if put is None or not _puts_at(put, indices) or indices[0].shape:
        return eqn
    return put.inputs[1]


def _scatter(producer: Producer, eqn: Eqn) -> Result:
    array, values, *indices = eqn.inputs
    if eqn.params["op"] != "set":
        return eqn
    taken = producer(values, p.gather)
    if taken is not None and taken.inputs == (array, *indices):
        return array
    before = producer(array, p.scatter)
    if before is None or not _puts_at(before, indices):
        return eqn
    if before.inputs[1] is values:
        return array
    if indices[0].shape:
        return eqn  # what is put at several places may be computed of what was put there before
    return _scatter(producer, replace(eqn, inputs=(before.inputs[0], values, *indices)))


def _puts_at(scatter: Eqn, indices: Sequence[Atom]) -> bool:
    return scatter.params["op"] == "set" and [*scatter.inputs[2:]] == [*indices]


def _windows(producer: Producer, eqn: Eqn) -> Result:
    return eqn if eqn.params["axes"] else eqn.inputs[0]


def _pad(producer: Producer, eqn: Eqn) -> Result:
    return eqn if any(eqn.params["before"] + eqn.params["after"]) else eqn.inputs[0]


def _concat(producer: Producer, eqn: Eqn) -> Result:
    return eqn if len(eqn.inputs) > 1 else eqn.inputs[0]


def _cumulative(producer: Producer, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    return operand if operand.shape[eqn.params["axis"]] == 1 else eqn


def _contract(producer: Producer, eqn: Eqn) -> Result:
    """Axes of operands in their own order. What is summed keeps its order: that of `lhs`."""
    params, inputs = dict(eqn.params), list(eqn.inputs)
    for place, side in enumerate(("lhs", "rhs")):
        inner = producer(inputs[place], p.transpose)
        if inner is None:
            continue
        labels = dict(zip(inner.params["axes"], params[side], strict=True))
        moved = tuple([labels[axis] for axis in range(len(labels))])
        if side == "rhs" or _summed(moved, params) == _summed(params[side], params):
            params[side], inputs[place] = moved, inner.inputs[0]
    return eqn if tuple(inputs) == eqn.inputs else replace(eqn, inputs=tuple(inputs), params=params)


def _summed(labels: Sequence[int], params: Mapping[str, Any]) -> list[int]:
    return [label for label in labels if label not in params["out"]]


def _sort(producer: Producer, eqn: Eqn) -> Result:
    operand, axis = eqn.inputs[0], eqn.params["axis"]
    inner = producer(operand, p.sort)
    done = operand.shape[axis] == 1 or (inner is not None and inner.params["axis"] == axis)
    return operand if done else eqn


RULES: dict[Primitive, Callable[[Producer, Eqn], Result]] = {
    p.elementwise: _elementwise,
    p.cast: _cast,
    p.broadcast: _broadcast,
    p.reshape: _view(_reshape),
    p.transpose: _view(_transpose),
    p.slice_: _view(_slice),
    p.windows: _view(_windows),
    p.pad: _pad,
    p.concat: _concat,
    p.update: _update,
    p.cumulative: _cumulative,
    p.contract: _contract,
    p.sort: _sort,
    p.gather: _gather,
    p.scatter: _scatter,
}
