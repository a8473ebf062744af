"""The graph without what computes nothing new: views of views, repeated and unused equations.

Values stay the same bit for bit: no arithmetic is touched, only which equations there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import CONTROL
from tinyfuse.graph.differences import is_less_its_largest
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.graph.simplify_control import pruned, simplified
from tinyfuse.records import dataclass, field


def simplify(graph: Graph) -> Graph:
    """An equivalent graph, in one pass forwards and one backwards.

    - A view of a view of the same kind is one view; a view that changes nothing, a pad by nothing,
      a cast to the own dtype and a concat of one array are the array itself.
    - A view of a stretched scalar is a stretched scalar; where an elementwise equation has another
      array operand, a stretched `Literal` is the `Literal`.
    - An update of all elements is the values, one of none the array, and one of the same elements
      as the update before makes that one needless; a slice of updated elements is a slice of the
      values, one of others a slice of the array before the update. It is the same for elements at
      places that depend on data.
    - What is cumulative or sorted along an axis of one element, or sorted already, is the array.
    - Contractions take transposed operands as they were before.
    - The exponential of an array less its largest elements is one of what is not above 0.
    - Equal equations of equal operands are one; `Literal`s are equal by dtype and bytes.
    - Equations that no output needs are gone; of loops and choices see `simplify_control`.

    Inputs stay, used or not. A value that several variables of the user hold has the name of the
    first; one that had none takes the name of what was merged into it, and a name that the user
    has asked for goes before others. Two outputs can become the same variable, and an output can
    become an input.
    """
    state = _State()
    for eqn in graph.eqns:
        _visit(state, eqn)
    outputs = tuple([state.resolve(atom) for atom in graph.outputs])
    return _without_unused(graph, state, outputs)


@dataclass(slots=True)
class _State:
    """What is known after some equations."""

    eqns: list[Eqn] = field(default_factory=list)
    producers: dict[Atom, Eqn] = field(default_factory=dict)  # of all but inputs
    replaced: dict[Atom, Atom] = field(default_factory=dict)  # by what came before
    known: dict[tuple[Any, ...], Var] = field(default_factory=dict)  # equation key → its output
    renamed: dict[Var, Eqn] = field(default_factory=dict)  # to the output of this equation

    def resolve(self, atom: Atom) -> Atom:
        return self.replaced.get(atom, atom)

    def producer(self, atom: Atom, primitive: Primitive) -> Eqn | None:
        """The equation that defines the atom, if it is of this primitive."""
        eqn = self.producers.get(atom)
        return eqn if eqn is not None and eqn.primitive is primitive else None


def _visit(state: _State, eqn: Eqn) -> None:
    inputs = tuple([state.resolve(atom) for atom in eqn.inputs])
    if any(new is not old for new, old in zip(inputs, eqn.inputs, strict=True)):
        eqn = _changed(eqn, inputs=inputs)
    if eqn.primitive in CONTROL:
        changed, replaced = simplified(eqn, simplify)
        state.replaced.update(replaced)
        state.eqns += [changed] if changed else []
        return
    rule = RULES.get(eqn.primitive)
    result = rule(state, eqn) if rule else eqn
    if isinstance(result, Eqn):
        key = _key(result)
        found = state.known.setdefault(key, result.output)
        if found is result.output:
            state.eqns.append(result)
            state.producers[found] = result
            return
        result = found
    _replace(state, eqn, result)


def _replace(state: _State, eqn: Eqn, atom: Atom) -> None:
    """Readers of the equation's output read `atom`, which inherits its name if that is better."""
    state.replaced[eqn.output] = atom
    if isinstance(atom, Literal) or atom not in state.producers:
        return
    named_by = state.renamed.get(atom)
    if _claim(eqn.output) > _claim(named_by.output if named_by else atom):
        state.renamed[atom] = eqn


def _claim(var: Var) -> int:
    """How much the user cares about a variable's name."""
    return (var.name is not None) + var.given


def _changed(
    eqn: Eqn,
    primitive: Primitive | None = None,
    inputs: tuple[Atom, ...] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Eqn:
    return Eqn(
        primitive or eqn.primitive,
        eqn.inputs if inputs is None else inputs,
        eqn.params if params is None else params,
        eqn.output,
        eqn.source,
        eqn.others,
    )


def _key(eqn: Eqn) -> tuple[Any, ...]:
    """Equal for equations that compute the same."""
    params = eqn.params
    names = p.PARAMETERS[eqn.primitive]
    return (eqn.primitive.name, *[params[name] for name in names], *map(_atom_key, eqn.inputs))


def _atom_key(atom: Atom) -> Any:
    return (atom.dtype, atom.value.tobytes()) if isinstance(atom, Literal) else atom


def _without_unused(graph: Graph, state: _State, outputs: tuple[Atom, ...]) -> Graph:
    needed: set[Atom] = set(outputs)
    kept: list[Eqn] = []
    for eqn in reversed(state.eqns):
        if eqn.primitive in CONTROL:
            control = pruned(eqn, needed, simplify)
            needed.update(control.inputs if control else ())
            kept += [control] if control else []
        elif eqn.output in needed:
            needed.update(eqn.inputs)
            kept.append(eqn)
    kept.reverse()
    if not state.renamed:
        return Graph(graph.name, graph.inputs, tuple(kept), outputs)
    return _with_names(graph, state.renamed, kept, outputs)


def _with_names(
    graph: Graph, renamed: Mapping[Var, Eqn], eqns: list[Eqn], outputs: tuple[Atom, ...]
) -> Graph:
    new: dict[Atom, Atom] = {}
    for var, eqn in renamed.items():
        new[var] = Var(var.shape, var.dtype, eqn.output.name, eqn.output.given)
    named = [_with_vars(eqn, new, renamed) for eqn in eqns]
    inputs = graph.inputs
    return Graph(graph.name, inputs, tuple(named), tuple([new.get(atom, atom) for atom in outputs]))


def _with_vars(eqn: Eqn, new: Mapping[Atom, Atom], renamed: Mapping[Var, Eqn]) -> Eqn:
    inputs = tuple([new.get(atom, atom) for atom in eqn.inputs])
    output, named_by = new.get(eqn.output, eqn.output), renamed.get(eqn.output)
    assert isinstance(output, Var)
    source = named_by.source if named_by is not None and named_by.source else eqn.source
    return Eqn(eqn.primitive, inputs, eqn.params, output, source, eqn.others)


# What an equation is: an earlier value, or an equation with the same output.
Result = Atom | Eqn


def _elementwise(state: _State, eqn: Eqn) -> Result:
    scalars = [_stretched_literal(state, atom) for atom in eqn.inputs]
    arrays = [
        atom
        for atom, scalar in zip(eqn.inputs, scalars, strict=True)
        if scalar is None and isinstance(atom, Var)
    ]
    if eqn.params["op"] == "exp" and is_less_its_largest(eqn.inputs[0], state.producer):
        return _changed(eqn, params={"op": EXP_NONPOSITIVE})
    if not arrays or not any(scalars):
        return eqn
    pairs = zip(scalars, eqn.inputs, strict=True)
    return _changed(eqn, inputs=tuple([scalar or atom for scalar, atom in pairs]))


def _stretched_literal(state: _State, atom: Atom) -> Literal | None:
    """The literal that an array is filled with."""
    scalar = _stretched_scalar(state, atom)
    return scalar if isinstance(scalar, Literal) else None


def _stretched_scalar(state: _State, atom: Atom) -> Atom | None:
    """The value of shape () that an array is filled with."""
    inner = state.producer(atom, p.broadcast)
    return inner.inputs[0] if inner and inner.inputs[0].shape == () else None


def _cast(state: _State, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    if operand.dtype == eqn.params["dtype"]:
        return operand
    if isinstance(operand, Literal) and _always_defined(operand.dtype, eqn.output.dtype):
        with np.errstate(all="ignore"):
            return Literal(operand.value.astype(eqn.output.dtype))
    return eqn


def _always_defined(old: np.dtype, new: np.dtype) -> bool:
    """Whether each value has a conversion that all machines agree on."""
    return old.kind != "f" or new.kind in "fb"


def _broadcast(state: _State, eqn: Eqn) -> Result:
    operand, shape = eqn.inputs[0], eqn.params["shape"]
    if operand.shape == shape:
        return operand
    inner = state.producer(operand, p.broadcast) or state.producer(operand, p.reshape)
    if inner is None or not _prepends_ones(inner):
        return eqn
    return _broadcast(state, _changed(eqn, inputs=inner.inputs))


def _prepends_ones(eqn: Eqn) -> bool:
    """Whether a broadcast of the equation's output is the same broadcast of its input."""
    old, new = eqn.inputs[0].shape, eqn.output.shape
    prepended = len(new) - len(old)
    return eqn.primitive is p.broadcast or (
        prepended >= 0 and new[prepended:] == old and math.prod(new[:prepended]) == 1
    )


def _view(rule: Callable[[_State, Eqn], Result]) -> Callable[[_State, Eqn], Result]:
    """A rule for views that only move elements: a stretched scalar stays a stretched scalar."""

    def apply(state: _State, eqn: Eqn) -> Result:
        scalar = _stretched_scalar(state, eqn.inputs[0])
        if scalar is None:
            return rule(state, eqn)
        params = {"shape": eqn.output.shape}
        return _broadcast(state, _changed(eqn, p.broadcast, (scalar,), params))

    return apply


def _reshape(state: _State, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    inner = state.producer(operand, p.reshape)
    if inner is not None:
        operand = inner.inputs[0]
        eqn = _changed(eqn, inputs=(operand,))
    return operand if operand.shape == eqn.params["shape"] else eqn


def _transpose(state: _State, eqn: Eqn) -> Result:
    operand, axes = eqn.inputs[0], eqn.params["axes"]
    inner = state.producer(operand, p.transpose)
    if inner is not None:
        operand = inner.inputs[0]
        axes = tuple([inner.params["axes"][axis] for axis in axes])
        eqn = _changed(eqn, inputs=(operand,), params={"axes": axes})
    return operand if axes == tuple(range(len(axes))) else eqn


def _slice(state: _State, eqn: Eqn) -> Result:
    operand, starts, steps = eqn.inputs[0], eqn.params["starts"], eqn.params["steps"]
    shape = eqn.params["shape"]
    looked_at = None
    while operand is not looked_at:
        inner = state.producer(operand, p.slice_)
        if inner is not None:
            operand = inner.inputs[0]
            first, by = inner.params["starts"], inner.params["steps"]
            starts = tuple([f + b * start for f, b, start in zip(first, by, starts, strict=True)])
            steps = tuple([b * step for b, step in zip(by, steps, strict=True)])
        starts = tuple([start if n else 0 for start, n in zip(starts, shape, strict=True)])
        steps = tuple([step if n > 1 else 1 for step, n in zip(steps, shape, strict=True)])
        looked_at = operand
        operand, starts, steps = _past_updates(state, operand, starts, steps, shape)
    scalar = _stretched_scalar(state, operand)
    if scalar is not None:
        return _broadcast(state, _changed(eqn, p.broadcast, (scalar,), {"shape": shape}))
    if operand.shape == shape and all(step == 1 for step in steps):
        return operand
    params = {"starts": starts, "steps": steps, "shape": shape}
    return _changed(eqn, inputs=(operand,), params=params)


_UPDATES = 64  # that one slice looks through, so that all slices together take linear time
Ints = tuple[int, ...]


def _past_updates(
    state: _State, operand: Atom, starts: Ints, steps: Ints, shape: Ints
) -> tuple[Atom, Ints, Ints]:
    """What a slice of a written array is a slice of: the values put in, or the array before."""
    for _ in range(_UPDATES):
        update = state.producer(operand, p.update)
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
    ends = sorted((start, start + step * (count - 1))), sorted((first, first + by * (written - 1)))
    if not count or not written or ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]:
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


def _update(state: _State, eqn: Eqn) -> Result:
    array, values = eqn.inputs
    starts, steps = eqn.params["starts"], eqn.params["steps"]
    if math.prod(values.shape) == 0:
        return array
    if values.shape == array.shape:
        if all(step == 1 for step in steps):
            return values
        params = {"starts": starts, "steps": steps, "shape": values.shape}
        return _slice(state, _changed(eqn, p.slice_, (values,), params))
    before = state.producer(array, p.update)
    if before is not None and _is_same_region(before, eqn):
        return _changed(eqn, inputs=(before.inputs[0], values))
    return eqn


def _is_same_region(one: Eqn, other: Eqn) -> bool:
    names = ("starts", "steps")
    same = all(one.params[name] == other.params[name] for name in names)
    return same and one.inputs[1].shape == other.inputs[1].shape


def _gather(state: _State, eqn: Eqn) -> Result:
    """What was put at one place is there."""
    array, *indices = eqn.inputs
    put = state.producer(array, p.scatter)
    if put is None or not _puts_at(put, indices) or indices[0].shape:
        return eqn
    return put.inputs[1]


def _scatter(state: _State, eqn: Eqn) -> Result:
    array, values, *indices = eqn.inputs
    if eqn.params["op"] != "set":
        return eqn
    taken = state.producer(values, p.gather)
    if taken is not None and taken.inputs == (array, *indices):
        return array
    before = state.producer(array, p.scatter)
    if before is None or not _puts_at(before, indices):
        return eqn
    if before.inputs[1] is values:
        return array
    if indices[0].shape:
        return eqn  # what is put at several places may be computed of what was put there before
    return _scatter(state, _changed(eqn, inputs=(before.inputs[0], values, *indices)))


def _puts_at(scatter: Eqn, indices: Sequence[Atom]) -> bool:
    return scatter.params["op"] == "set" and [*scatter.inputs[2:]] == [*indices]


def _windows(state: _State, eqn: Eqn) -> Result:
    return eqn if eqn.params["axes"] else eqn.inputs[0]


def _pad(state: _State, eqn: Eqn) -> Result:
    return eqn if any(eqn.params["before"] + eqn.params["after"]) else eqn.inputs[0]


def _concat(state: _State, eqn: Eqn) -> Result:
    return eqn if len(eqn.inputs) > 1 else eqn.inputs[0]


def _cumulative(state: _State, eqn: Eqn) -> Result:
    operand = eqn.inputs[0]
    return operand if operand.shape[eqn.params["axis"]] == 1 else eqn


def _contract(state: _State, eqn: Eqn) -> Result:
    """Axes of operands in their own order. What is summed keeps its order: that of `lhs`."""
    params, inputs = dict(eqn.params), list(eqn.inputs)
    for place, side in enumerate(("lhs", "rhs")):
        inner = state.producer(inputs[place], p.transpose)
        if inner is None:
            continue
        labels = dict(zip(inner.params["axes"], params[side], strict=True))
        moved = tuple([labels[axis] for axis in range(len(labels))])
        if side == "rhs" or _summed(moved, params) == _summed(params[side], params):
            params[side], inputs[place] = moved, inner.inputs[0]
    return (
        eqn if tuple(inputs) == eqn.inputs else _changed(eqn, inputs=tuple(inputs), params=params)
    )


def _summed(labels: Sequence[int], params: Mapping[str, Any]) -> list[int]:
    return [label for label in labels if label not in params["out"]]


def _sort(state: _State, eqn: Eqn) -> Result:
    operand, axis = eqn.inputs[0], eqn.params["axis"]
    inner = state.producer(operand, p.sort)
    done = operand.shape[axis] == 1 or (inner is not None and inner.params["axis"] == axis)
    return operand if done else eqn


RULES: dict[Primitive, Callable[[_State, Eqn], Result]] = {
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
