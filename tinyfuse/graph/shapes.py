"""The shape rule of each primitive: the type of an equation's output, from those of its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tinyfuse.dtypes import BOOL, COMPLEX_OF, INT64, describe, is_complex, is_supported, part_dtype
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Primitive
from tinyfuse.graph.reduce_ops import REDUCE_OPS
from tinyfuse.graph.scalar_ops import SCALAR_OPS

Shape = tuple[int, ...]
Type = tuple[Shape, np.dtype]

CONTRACT_FUNCTIONS = ("matmul", "dot", "einsum")
# A position and an element of at most four bytes are one integer while they are sorted.
MOST_POSITIONS = 1 << 32
SORT_KINDS = ("quicksort", "heapsort", "stable")


def infer(primitive: Primitive, atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    """(shape, dtype) of the output of an equation.

    Raises ValueError where the inputs or parameters are not what the primitive takes.
    """
    rule = RULES.get(primitive)
    if rule is None:
        raise ValueError(f"there is no primitive {primitive.name}")
    return rule(atoms, params)


def _single(primitive: str, atoms: Sequence[Atom]) -> Atom:
    if len(atoms) != 1:
        raise ValueError(f"{primitive}: takes one array, got {len(atoms)}")
    return atoms[0]


def type_text(atom: Atom) -> str:
    return describe(atom.shape, atom.dtype)


def _elementwise(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    dtype = result_dtype(params["op"], tuple([atom.dtype for atom in atoms]))
    shape: Shape | None = None
    for atom in atoms:
        if type(atom) is Literal:
            continue
        if shape is None:
            shape = atom.shape
        elif shape != atom.shape:
            types = ", ".join(map(type_text, atoms))
            raise ValueError(f"elementwise {params['op']}: shapes differ: {types}")
    return shape or (), dtype


@cache
def result_dtype(op: str, dtypes: tuple[np.dtype, ...]) -> np.dtype:
    """The dtype of a scalar operation's result on operands of exactly the dtypes it computes in.

    Raises ValueError where numpy has no loop for just these dtypes.
    """
    row = SCALAR_OPS.get(op)
    if row is None:
        raise ValueError(f"there is no scalar operation {op}")
    if len(dtypes) != row.arity:
        raise ValueError(f"{op}: takes {row.arity} operands, got {len(dtypes)}")
    if op == "select":
        if dtypes[0] != BOOL:
            raise ValueError(f"{op}: the condition is {dtypes[0]}, not bool")
        if dtypes[1] != dtypes[2]:
            raise ValueError(f"{op}: the branches are {dtypes[1]} and {dtypes[2]}")
        return dtypes[1]
    if row.ufunc is None:
        if dtypes not in row.loops:
            taken = " or ".join(map(_names, row.loops))
            raise ValueError(f"{op}: takes {taken}, not {_names(dtypes)}")
        return row.loops[dtypes]
    computed, results = resolve(row.ufunc, dtypes)
    if computed != dtypes:
        raise ValueError(f"{op}: computes in {_names(computed)}, not in {_names(dtypes)}")
    result = results[row.output]
    if not is_supported(result):
        raise ValueError(f"{op}: gives {result}, which is not supported")
    return result


def _names(dtypes: Sequence[np.dtype]) -> str:
    return ", ".join(dtype.name for dtype in dtypes)


@cache
def resolve(
    ufunc: np.ufunc, dtypes: tuple[np.dtype | type, ...]
) -> tuple[tuple[np.dtype, ...], tuple[np.dtype, ...]]:
    """(dtypes that a ufunc computes in, dtypes of its outputs), by numpy's own promotion.

    `int` and `float` in place of a dtype stand for Python's weak scalars. Raises ValueError where
    numpy has no loop.
    """
    try:
        found = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
    except TypeError as error:
        raise ValueError(str(error)) from None
    return found[: ufunc.nin], found[ufunc.nin :]


def _cast(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    dtype = np.dtype(params["dtype"])
    if not is_supported(dtype):
        raise ValueError(f"cast: {dtype} is not supported")
    return _single("cast", atoms).shape, dtype


def _broadcast(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom, shape = _single("broadcast", atoms), tuple(params["shape"])
    old = atom.shape
    aligned = shape[len(shape) - len(old) :]
    fits = len(old) <= len(shape) and all(a in (1, b) for a, b in zip(old, aligned, strict=True))
    if not fits:
        raise ValueError(f"broadcast: {type_text(atom)} does not broadcast to {shape}")
    return shape, atom.dtype


def _reshape(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom, shape = _single("reshape", atoms), tuple(params["shape"])
    fits = min(shape, default=0) >= 0 and math.prod(shape) == math.prod(atom.shape)
    if not fits:
        raise ValueError(f"reshape: {type_text(atom)} does not have the size of {shape}")
    return shape, atom.dtype


def _transpose(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom, axes = _single("transpose", atoms), params["axes"]
    if sorted(axes) != list(range(len(atom.shape))):
        raise ValueError(f"transpose: {axes} is no permutation of the axes of {type_text(atom)}")
    return tuple([atom.shape[axis] for axis in axes]), atom.dtype


def _slice(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom = _single("slice", atoms)
    starts, steps, shape = params["starts"], params["steps"], tuple(params["shape"])
    if not len(starts) == len(steps) == len(shape) == len(atom.shape):
        raise ValueError(f"slice: one start, step and extent per axis of {type_text(atom)}")
    if 0 in steps:
        raise ValueError(f"slice: a step is 0: {steps}")
    if min(shape, default=0) < 0:
        raise ValueError(f"slice: a negative extent: {shape}")
    for axis, (extent, count) in enumerate(zip(atom.shape, shape, strict=True)):
        first, last = starts[axis], starts[axis] + steps[axis] * (count - 1)
        if count and not (0 <= first < extent and 0 <= last < extent):
            raise ValueError(f"slice: {first}..{last} leaves axis {axis} of {type_text(atom)}")
    return shape, atom.dtype


def _windows(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom = _single("windows", atoms)
    window_shape, axes = tuple(params["window_shape"]), params["axes"]
    paired = len(window_shape) == len(axes) and all(0 <= axis < len(atom.shape) for axis in axes)
    if not paired:
        raise ValueError(f"windows: window {window_shape} over axes {axes} of {type_text(atom)}")
    positions = list(atom.shape)
    for axis, extent in zip(axes, window_shape, strict=True):
        positions[axis] -= extent - 1
        if extent < 0 or positions[axis] < 0:
            raise ValueError(f"windows: {window_shape} does not fit into {type_text(atom)}")
    return (*positions, *window_shape), atom.dtype


def _part(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom = _single("part", atoms)
    if not is_complex(atom.dtype) or params["at"] not in (0, 1):
        raise ValueError(f"part: {params['at']} of {type_text(atom)}")
    return atom.shape, part_dtype(atom.dtype)


def _from_parts(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    types = [(atom.shape, atom.dtype) for atom in atoms]
    made = COMPLEX_OF.get(atoms[0].dtype) if len(atoms) == 2 else None
    if made is None or types[0] != types[1]:
        raise ValueError(f"from_parts: of {', '.join(map(type_text, atoms))}")
    return atoms[0].shape, made


def _pad(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if len(atoms) != 2:
        raise ValueError("pad: takes an array and a fill value")
    atom, fill = atoms
    before, after = params["before"], params["after"]
    if fill.shape != () or fill.dtype != atom.dtype:
        raise ValueError(f"pad: fills with {type_text(fill)}")
    fits = len(before) == len(after) == len(atom.shape) and min((*before, *after), default=0) >= 0
    if not fits:
        raise ValueError(f"pad: {before} and {after} around {type_text(atom)}")
    shape = tuple([a + n + b for a, n, b in zip(before, atom.shape, after, strict=True)])
    return shape, atom.dtype


def _concat(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if not atoms:
        raise ValueError("concat: takes at least one array")
    first, axis = atoms[0], params["axis"]
    if not 0 <= axis < len(first.shape):
        raise ValueError(f"concat: axis {axis} of {type_text(first)}")
    for atom in atoms[1:]:
        if not _joins(first, atom, axis):
            raise ValueError(f"concat: {type_text(first)} and {type_text(atom)}")
    extent = sum(atom.shape[axis] for atom in atoms)
    return (*first.shape[:axis], extent, *first.shape[axis + 1 :]), first.dtype


def _joins(first: Atom, other: Atom, axis: int) -> bool:
    same_rank = len(first.shape) == len(other.shape) and first.dtype == other.dtype
    return same_rank and all(
        axis == at or a == b for at, (a, b) in enumerate(zip(first.shape, other.shape, strict=True))
    )


def _iota(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if atoms or params["extent"] < 0:
        raise ValueError(f"iota: {len(atoms)} inputs, extent {params['extent']}")
    return (params["extent"],), INT64


def _gather(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    array, indices = atoms[0], atoms[1:]
    return _gathered_shape("gather", array, indices), array.dtype


def _gathered_shape(name: str, array: Atom, indices: Sequence[Atom]) -> Shape:
    """The shape of the elements at these indices for the first axes of an array."""
    if not 0 < len(indices) <= len(array.shape):
        raise ValueError(f"{name}: {len(indices)} indices for {type_text(array)}")
    for index in indices:
        if index.dtype != INT64 or index.shape != indices[0].shape:
            types = ", ".join(map(type_text, indices))
            raise ValueError(f"{name}: indices {types}, not int64 of one shape")
    return indices[0].shape + array.shape[len(indices) :]


def _scatter(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if len(atoms) < 3:
        raise ValueError("scatter: takes an array, values and indices")
    array, values, *indices = atoms
    shape, op = _gathered_shape("scatter", array, indices), params["op"]
    if values.shape != shape:
        raise ValueError(f"scatter: values {type_text(values)} for {type_text(array)}")
    if op != "set":
        result_dtype(op, (params["dtype"], values.dtype))
    elif not array.dtype == values.dtype == params["dtype"]:
        raise ValueError(f"scatter: puts {values.dtype} into {array.dtype} as {params['dtype']}")
    return array.shape, array.dtype


def _update(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if len(atoms) != 2:
        raise ValueError("update: takes an array and values")
    array, values = atoms
    given = {"starts": params["starts"], "steps": params["steps"], "shape": values.shape}
    _slice([array], given)
    if values.dtype != array.dtype:
        raise ValueError(f"update: values {type_text(values)} for {type_text(array)}")
    return array.shape, array.dtype


def _reduce(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom, op = _single("reduce", atoms), params["op"]
    axes, dtype = params["axes"], np.dtype(params["dtype"])
    row = REDUCE_OPS.get(op)
    if row is None:
        raise ValueError(f"reduce: there is no reduction {op}")
    if list(axes) != sorted(set(axes)) or not all(0 <= axis < len(atom.shape) for axis in axes):
        raise ValueError(f"reduce: axes {axes} of {type_text(atom)}")
    if dtype not in row.dtypes(atom.dtype):
        raise ValueError(f"reduce: {op} of {atom.dtype} to {dtype}")
    if row.finds_place and len(axes) != 1:
        raise ValueError(f"reduce: {op} over axes {axes}, not over one")
    if row.needs_elements and not all(atom.shape[axis] for axis in axes):
        raise ValueError(f"reduce: {op} of nothing: axes {axes} of {type_text(atom)}")
    return tuple([n for axis, n in enumerate(atom.shape) if axis not in axes]), dtype


def _cumulative(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom, op = _single("cumulative", atoms), params["op"]
    _check_axis("cumulative", atom, params["axis"])
    row = SCALAR_OPS.get(op)
    if row is None or row.ufunc is None or (row.ufunc.nin, row.ufunc.nout) != (2, 1):
        raise ValueError(f"cumulative: there is no ufunc {op} of two operands")
    if result_dtype(op, (atom.dtype, atom.dtype)) != atom.dtype:
        raise ValueError(f"cumulative: {op} of {atom.dtype} gives another dtype")
    return atom.shape, atom.dtype


def _check_axis(name: str, atom: Atom, axis: int) -> None:
    if not 0 <= axis < len(atom.shape):
        raise ValueError(f"{name}: axis {axis} of {type_text(atom)}")


def _sort(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom = _sorted("sort", atoms, params)
    return atom.shape, atom.dtype


def _argsort(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    atom = _sorted("argsort", atoms, params)
    if atom.dtype.itemsize <= 4 and atom.shape[params["axis"]] >= MOST_POSITIONS:
        raise ValueError(f"argsort: {type_text(atom)} has too many elements along an axis")
    return atom.shape, INT64


def _sorted(name: str, atoms: Sequence[Atom], params: Mapping[str, Any]) -> Atom:
    atom = _single(name, atoms)
    _check_axis(name, atom, params["axis"])
    if params["kind"] not in SORT_KINDS:
        raise ValueError(f"{name}: there is no kind {params['kind']}")
    return atom


def _contract(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    if len(atoms) != 2:
        raise ValueError(f"contract: takes two arrays, got {len(atoms)}")
    a, b = atoms
    if a.dtype != b.dtype:
        raise ValueError(f"contract: {type_text(a)} and {type_text(b)}")
    if params["via"] not in CONTRACT_FUNCTIONS:
        raise ValueError(f"contract: via {params['via']}")
    lhs, rhs, out = params["lhs"], params["rhs"], params["out"]
    extents: dict[int, int] = {}
    _label(extents, a, lhs)
    _label(extents, b, rhs)
    for labels in (lhs, rhs, out):
        if len(set(labels)) != len(labels):
            raise ValueError(f"contract: a label twice in {labels}")
    if not extents.keys() >= set(out):
        raise ValueError(f"contract: {out} has labels that no operand has")
    if not set(out) >= set(lhs) ^ set(rhs):
        raise ValueError(f"contract: {lhs}, {rhs} -> {out} sums over a label of one operand")
    return tuple([extents[label] for label in out]), a.dtype


def _softmax_contract(atoms: Sequence[Atom], params: Mapping[str, Any]) -> Type:
    shape, dtype = _contract(atoms, {**params, "via": "einsum"})
    lhs, limits = params["lhs"], params["limits"]
    if len([label for label in lhs if label not in params["out"]]) != 1:
        raise ValueError(f"softmax_contract: {lhs} -> {params['out']} has not one label of keys")
    if params["block"] < 1 or len(limits) % (len(lhs) + 1):
        raise ValueError(f"softmax_contract: block {params['block']}, limits {limits}")
    if dtype.kind != "f":
        raise ValueError(f"softmax_contract: of {dtype}")
    return shape, dtype


def _label(extents: dict[int, int], atom: Atom, labels: Sequence[int]) -> None:
    """Notes the extent of each label of an operand."""
    if len(labels) != len(atom.shape):
        raise ValueError(f"contract: labels {labels} for {type_text(atom)}")
    for label, extent in zip(labels, atom.shape, strict=True):
        if extents.setdefault(label, extent) != extent:
            raise ValueError(f"contract: label {label} is both {extents[label]} and {extent}")


RULES: dict[Primitive, Callable[[Sequence[Atom], Mapping[str, Any]], Type]] = {
    p.elementwise: _elementwise,
    p.cast: _cast,
    p.broadcast: _broadcast,
    p.reshape: _reshape,
    p.transpose: _transpose,
    p.slice_: _slice,
    p.windows: _windows,
    p.part: _part,
    p.from_parts: _from_parts,
    p.pad: _pad,
    p.concat: _concat,
    p.iota: _iota,
    p.gather: _gather,
    p.scatter: _scatter,
    p.update: _update,
    p.reduce: _reduce,
    p.cumulative: _cumulative,
    p.sort: _sort,
    p.argsort: _argsort,
    p.contract: _contract,
    p.softmax_contract: _softmax_contract,
}
