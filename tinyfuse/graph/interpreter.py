"""The slow, obvious meaning of a graph: equation after equation, on whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import sliding_window_view

from tinyfuse.dtypes import describe
from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import carried_count
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive
from tinyfuse.graph.numerics import Array, Numerics, NumpyNumerics, OrderedNumerics
from tinyfuse.graph.orders import Steps, reduction_steps
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.shapes import result_dtype
from tinyfuse.memory import overlaps_itself

__all__ = ["Numerics", "NumpyNumerics", "OrderedNumerics", "interpret"]


# Is told each equation that has been computed, with its operands and its value.
Watch = Callable[[Eqn, Sequence[Array], Array], None]


def interpret(
    graph: Graph, arrays: Sequence[np.ndarray], numerics: Numerics, watch: Watch | None = None
) -> list[np.ndarray]:
    """The graph's outputs for one array per graph input.

    Views in the graph are views of numpy, so outputs may share memory with each other and with
    `arrays`. Raises ValueError where the arrays are not of the inputs' types.
    """
    with np.errstate(all="ignore"):
        return _Run(numerics, watch)(graph, arrays)


class _Run:
    """One run of a graph, and of those inside it."""

    def __init__(self, numerics: Numerics, watch: Watch | None):
        self.numerics, self.watch = numerics, watch
        self._steps: dict[Graph, dict[Eqn, Steps]] = {}

    def __call__(self, graph: Graph, arrays: Sequence[Array]) -> list[np.ndarray]:
        values = _inputs(graph, arrays)
        if graph not in self._steps:
            self._steps[graph] = reduction_steps(graph)
        steps = self._steps[graph]
        for eqn in graph.eqns:
            operands = [_value(values, atom) for atom in eqn.inputs]
            control = RUNS.get(eqn.primitive)
            if control is not None:
                values.update(zip(eqn.outputs, control(eqn, operands, self), strict=True))
                continue
            values[eqn.output] = _evaluate(eqn, operands, self.numerics, steps.get(eqn, ()))
            if self.watch is not None:
                self.watch(eqn, operands, values[eqn.output])
        return [np.asarray(_value(values, atom)) for atom in graph.outputs]


def _inputs(graph: Graph, arrays: Sequence[Array]) -> dict[Atom, Array]:
    values: dict[Atom, Array] = {}
    for var, array in zip(graph.inputs, arrays, strict=True):
        if array.shape != var.shape or array.dtype != var.dtype:
            given = describe(array.shape, array.dtype)
            raise ValueError(f"{graph.name}: input {var.name} is not of type {given}")
        values[var] = array
    return values


def _value(values: dict[Atom, Array], atom: Atom) -> Array:
    return atom.value if isinstance(atom, Literal) else values[atom]


def _evaluate(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    view = VIEWS.get(eqn.primitive)
    if view is not None:
        return view(eqn, *map(np.asarray, operands))
    return COMPUTATIONS[eqn.primitive](eqn, operands, numerics, steps)


def _slice(eqn: Eqn, x: np.ndarray) -> np.ndarray:
    return x[_key(eqn, eqn.params["shape"])]


def _key(eqn: Eqn, shape: Sequence[int]) -> tuple[slice, ...]:
    triples = zip(eqn.params["starts"], eqn.params["steps"], shape, strict=True)
    return tuple([_as_slice(start, step, count) for start, step, count in triples])


def _as_slice(start: int, step: int, count: int) -> slice:
    if count == 0:
        return slice(0, 0)
    end = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, end if end >= 0 else None, step)


def _windows(eqn: Eqn, x: np.ndarray) -> np.ndarray:
    return sliding_window_view(x, eqn.params["window_shape"], eqn.params["axes"])


def _from_parts(eqn: Eqn, re: np.ndarray, im: np.ndarray) -> np.ndarray:
    made = np.empty(eqn.output.shape, eqn.output.dtype)
    made.real, made.imag = re, im
    return made


def _pad(eqn: Eqn, x: np.ndarray, fill: np.ndarray) -> np.ndarray:
    widths = list(zip(eqn.params["before"], eqn.params["after"], strict=True))
    return np.pad(x, widths, constant_values=fill[()]) if widths else x


def _written_copy(x: np.ndarray) -> np.ndarray:
    """A copy that lies in memory like the array, which numpy writes in place, gaps included."""
    if not x.size or overlaps_itself(x):
        return np.array(x)
    low, high = byte_bounds(x)
    memory = np.empty(high - low, np.uint8)
    start = x.__array_interface__["data"][0] - low
    copied: np.ndarray = np.ndarray(x.shape, x.dtype, memory, start, x.strides)
    copied[...] = x
    return copied


def _scatter(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    x, values, *indices = map(np.asarray, operands)
    result, row = _written_copy(x), SCALAR_OPS.get(eqn.params["op"])
    if row is None:  # set
        # In C order, so that the last of several wins: numpy goes by the indices' order in memory.
        result[tuple([np.array(index, order="C") for index in indices])] = values
    elif row.exact and row.ufunc is not None and eqn.params["dtype"] == x.dtype == values.dtype:
        row.ufunc.at(result, tuple(indices), values)
    else:
        dtype = np.dtype(eqn.params["dtype"])
        made = result_dtype(row.name, (dtype, values.dtype))
        for turn in np.ndindex(indices[0].shape):
            place = tuple([index[turn] for index in indices])
            so_far = numerics.cast(result[place], dtype)
            combined = numerics.scalar(row.name, [so_far, values[turn]], made)
            result[place] = numerics.cast(combined, x.dtype)
    return result


def _update(eqn: Eqn, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    result = _written_copy(x)
    result[_key(eqn, values.shape)] = values
    return result


# How numpy itself places elements.
VIEWS: dict[Primitive, Callable[..., np.ndarray]] = {
    p.broadcast: lambda eqn, x: np.broadcast_to(x, eqn.params["shape"]),
    p.reshape: lambda eqn, x: np.reshape(x, eqn.params["shape"]),
    p.transpose: lambda eqn, x: np.transpose(x, eqn.params["axes"]),
    p.slice_: _slice,
    p.windows: _windows,
    p.part: lambda eqn, x: x.imag if eqn.params["at"] else x.real,
    p.from_parts: _from_parts,
    p.pad: _pad,
    p.concat: lambda eqn, *xs: np.concatenate(xs, axis=eqn.params["axis"]),
    p.iota: lambda eqn: np.arange(eqn.params["extent"], dtype=np.int64),
    p.gather: lambda eqn, x, *indices: x[indices],
    p.update: _update,
}


def _elementwise(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.scalar(eqn.params["op"], operands, eqn.output.dtype)


def _cast(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.cast(operands[0], eqn.output.dtype)


def _reduce(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.reduce(eqn, operands[0], steps)


def _contract(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.contract(eqn, operands[0], operands[1], steps)


def _softmax_contract(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.softmax_contract(eqn, operands[0], operands[1])


def _cumulative(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.cumulative(eqn, operands[0])


def _sort(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.sort(eqn, operands[0])


def _argsort(eqn: Eqn, operands: list[Array], numerics: Numerics, steps: Steps) -> Array:
    return numerics.argsort(eqn, operands[0])


def _loop(eqn: Eqn, operands: list[Array], run: _Run) -> list[Array]:
    body, count = eqn.params["body"], carried_count(eqn)
    carried, read = operands[:count], operands[count:]
    for turn in range(int(read[-1]) if eqn.params["counted"] else eqn.params["extent"]):
        carried = run(body, [np.int64(turn), *carried, *read])
    return carried


def _while(eqn: Eqn, operands: list[Array], run: _Run) -> list[Array]:
    body, count = eqn.params["body"], carried_count(eqn)
    carried, read = operands[:count], operands[count:]
    while carried[0]:
        carried = run(body, [*carried, *read])
    return carried


def _cond(eqn: Eqn, operands: list[Array], run: _Run) -> list[Array]:
    branches = eqn.params["branches"]
    chosen = min(max(int(operands[0]), 0), len(branches) - 1)
    return list(run(branches[chosen], operands[1:]))


RUNS: dict[Primitive, Callable[[Eqn, list[Array], _Run], list[Array]]] = {
    p.loop: _loop,
    p.while_: _while,
    p.cond: _cond,
}
COMPUTATIONS: dict[Primitive, Callable[[Eqn, list[Array], Numerics, Steps], Array]] = {
    p.scatter: _scatter,
    p.elementwise: _elementwise,
    p.cast: _cast,
    p.reduce: _reduce,
    p.cumulative: _cumulative,
    p.sort: _sort,
    p.argsort: _argsort,
    p.contract: _contract,
    p.softmax_contract: _softmax_contract,
}
