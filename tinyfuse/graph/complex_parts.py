"""Graphs without complex numbers: each array of them is two real ones, the parts.

Inputs and outputs are what they are in memory: real arrays with one more axis, of two, the last
one. What loops and choices carry is carried in parts, each an array of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tinyfuse.dtypes import BOOL, INT64, is_complex, part_dtype
from tinyfuse.graph import primitives as p
from tinyfuse.graph.complex_arithmetic import truth
from tinyfuse.graph.complex_reductions import REDUCTIONS, argsorted, taken_along
from tinyfuse.graph.complex_rules import RULES
from tinyfuse.graph.control import CONTROL, all_graphs
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.parts import Complex, Equations, Real
from tinyfuse.records import replace

Value = Complex | Real


def parts_array(array: np.ndarray) -> np.ndarray:
    """An array as graphs in parts take it: of complex numbers the same elements, as their parts."""
    if not is_complex(array.dtype):
        return array
    ordered = np.asarray(array, order="C").reshape(*array.shape, 1)
    return ordered.view(part_dtype(array.dtype))


def joined_array(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What `parts_array` was given, for its dtype; itself where it has that."""
    if array.dtype == dtype:
        return array
    whole: np.ndarray = np.ascontiguousarray(array).view(dtype)
    return whole.reshape(array.shape[:-1])


def with_parts(graph: Graph) -> Graph:
    """An equivalent graph of real arrays; the graph itself where it has no complex numbers."""
    if not any(map(_has_complex, all_graphs(graph))):
        return graph
    pass_ = _Parts()
    inputs = tuple([pass_.take_input(var) for var in graph.inputs])
    pass_.run(graph.eqns)
    outputs = tuple([pass_.output(atom) for atom in graph.outputs])
    return Graph(graph.name, inputs, tuple(pass_.equations.eqns), outputs)


def _has_complex(graph: Graph) -> bool:
    atoms = [*graph.inputs, *graph.outputs]
    atoms += [each for eqn in graph.eqns for each in (*eqn.inputs, *eqn.outputs)]
    return any(is_complex(atom.dtype) for atom in atoms)


class _Parts:
    """The parts of the variables of one graph, and its equations so far."""

    def __init__(self) -> None:
        self.equations = Equations()
        self._values: dict[Atom, Value] = {}

    def take_input(self, var: Var) -> Var:
        """The input that stands for one: with an axis for the parts, which become known."""
        if not is_complex(var.dtype):
            return self._keep(var)
        dtype = part_dtype(var.dtype)
        array = Var((*var.shape, 2), dtype, var.name, var.given, var.constant)
        self._values[var] = Complex(*[self._part_of(array, var, at) for at in (0, 1)])
        return array

    def take_parts(self, var: Var) -> tuple[Var, ...]:
        """The inputs that stand for one of a graph inside another: one for each part."""
        if not is_complex(var.dtype):
            return (self._keep(var),)
        made = [Var(var.shape, part_dtype(var.dtype), name) for name in _names(var)]
        self._values[var] = Complex(*[Real(self.equations, each) for each in made])
        return tuple(made)

    def _keep(self, var: Var) -> Var:
        self._values[var] = Real(self.equations, var)
        return var

    def _part_of(self, array: Var, var: Var, at: int) -> Real:
        starts, steps = (*(0,) * len(var.shape), at), (1,) * len(array.shape)
        x = Real(self.equations, array)
        part = x.of(p.slice_, starts=starts, steps=steps, shape=(*var.shape, 1))
        part = part.of(p.reshape, shape=var.shape)
        _give_name(part, _names(var)[at])
        return part

    def value(self, atom: Atom) -> Value:
        if not isinstance(atom, Literal):
            return self._values[atom]
        if not is_complex(atom.dtype):
            return Real(self.equations, atom)
        parts = (atom.value.real, atom.value.imag)
        return Complex(*[Real(self.equations, Literal(part)) for part in parts])

    def atoms(self, atom: Atom) -> tuple[Atom, ...]:
        """The one or two real arrays that stand for a value."""
        value = self.value(atom)
        return (value.re.atom, value.im.atom) if isinstance(value, Complex) else (value.atom,)

    def output(self, atom: Atom) -> Atom:
        """The output that stands for one: the parts side by side."""
        value = self.value(atom)
        if isinstance(value, Real):
            return value.atom
        shape = (*atom.shape, 1)
        re, im = [_spread(part, atom.shape).of(p.reshape, shape=shape) for part in value]
        joined = re.of(p.concat, im, axis=len(atom.shape))
        if isinstance(atom, Var):
            _give_name(joined, atom.name, atom.given)
        return joined.atom

    def run(self, eqns: Iterable[Eqn]) -> None:
        for eqn in eqns:
            if eqn.primitive in CONTROL:
                self._control(eqn)
            elif not any(is_complex(atom.dtype) for atom in (*eqn.inputs, eqn.output)):
                self._real(eqn)
            else:
                self._complex(eqn)

    def _real(self, eqn: Eqn) -> None:
        inputs = tuple([self.atoms(atom)[0] for atom in eqn.inputs])
        if any(new is not old for new, old in zip(inputs, eqn.inputs, strict=True)):
            eqn = replace(eqn, inputs=inputs)
        self.equations.eqns.append(eqn)
        self._keep(eqn.output)

    def _complex(self, eqn: Eqn) -> None:
        self.equations.source = eqn.source
        value = _RULES[eqn.primitive](eqn, [self.value(atom) for atom in eqn.inputs])
        self._values[eqn.output] = value
        if isinstance(value, Real):
            _give_name(value, eqn.output.name, eqn.output.given)
            return
        self._values[eqn.output] = value = Complex(*[_spread(x, eqn.output.shape) for x in value])
        for part, name in zip(value, _names(eqn.output), strict=True):
            _give_name(part, name)

    def _control(self, eqn: Eqn) -> None:
        inputs = [atom for each in eqn.inputs for atom in self.atoms(each)]
        params = {key: _inner(value) for key, value in eqn.params.items()}
        outputs = [var for each in eqn.outputs for var in self.take_parts(each)]
        self.equations.eqns.append(
            replace(
                eqn,
                inputs=tuple(inputs),
                params=params,
                output=outputs[0],
                others=tuple(outputs[1:]),
            )
        )


def _inner(value: object) -> object:
    """The graphs of a loop or a choice, in parts; other parameters as they are."""
    if isinstance(value, tuple):
        return tuple(map(_inner, value))
    if not isinstance(value, Graph):
        return value
    pass_ = _Parts()
    inputs = [var for each in value.inputs for var in pass_.take_parts(each)]
    pass_.run(value.eqns)
    outputs = [atom for each in value.outputs for atom in pass_.atoms(each)]
    return Graph(value.name, tuple(inputs), tuple(pass_.equations.eqns), tuple(outputs))


def _names(var: Var) -> tuple[str | None, str | None]:
    return (f"{var.name}_real", f"{var.name}_imag") if var.name else (None, None)


def _give_name(x: Real, name: str | None, given: bool = False) -> None:
    if isinstance(x.atom, Var) and x.atom.name is None and name is not None:
        object.__setattr__(x.atom, "name", name)  # no one has seen the variable yet
        object.__setattr__(x.atom, "given", given)


def _spread(x: Real, shape: tuple[int, ...]) -> Real:
    """A part of this shape: literals are arrays of one value."""
    return x if x.shape == shape else x.of(p.broadcast, shape=shape)


# -- the rule of each primitive


def _elementwise(eqn: Eqn, operands: list[Value]) -> Value:
    return RULES[eqn.params["op"]](*operands)


def _cast(eqn: Eqn, operands: list[Value]) -> Value:
    (x,) = operands
    dtype = np.dtype(eqn.params["dtype"])
    part = part_dtype(dtype)
    if isinstance(x, Real):
        re = x.cast(part)
        return Complex(re, re.like(0))
    if is_complex(dtype):
        return Complex(x.re.of(p.cast, dtype=part), x.im.of(p.cast, dtype=part))
    return truth(x) if dtype == BOOL else x.re.cast(dtype)


def _each_part(eqn: Eqn, operands: list[Value]) -> Value:
    """What moves elements, or adds them: once for each part."""
    made = [_part(eqn, operands, at) for at in (0, 1)]
    return Complex(*made)


def _part(eqn: Eqn, operands: list[Value], at: int) -> Real:
    reals = [x[at] if isinstance(x, Complex) else x for x in operands]
    params = dict(eqn.params)
    if "dtype" in params:
        params["dtype"] = part_dtype(np.dtype(params["dtype"]))
    first, *others = reals
    return first.of(eqn.primitive, *others, **params)


def _one_part(eqn: Eqn, operands: list[Value]) -> Value:
    (x,) = operands
    assert isinstance(x, Complex)
    return x[eqn.params["at"]]


def _from_parts(eqn: Eqn, operands: list[Value]) -> Value:
    re, im = operands
    assert isinstance(re, Real)
    assert isinstance(im, Real)
    return Complex(re, im)


def _update(eqn: Eqn, operands: list[Value]) -> Value:
    shapes = [atom.shape for atom in eqn.inputs]
    spread = [_spread_parts(x, shape) for x, shape in zip(operands, shapes, strict=True)]
    return _each_part(eqn, spread)


def _spread_parts(x: Value, shape: tuple[int, ...]) -> Value:
    return x if isinstance(x, Real) else Complex(*[_spread(part, shape) for part in x])


def _reduce(eqn: Eqn, operands: list[Value]) -> Value:
    (x,) = operands
    dtype = np.dtype(eqn.params["dtype"])
    if isinstance(x, Complex) and not is_complex(dtype) and dtype != INT64:
        x = x.re  # a sum in a real dtype: numpy leaves the imaginary parts out
    if isinstance(x, Real):
        part = x.of(p.reduce, **{**eqn.params, "dtype": part_dtype(dtype)})
        return Complex(part, part.like(0)) if is_complex(dtype) else part
    return REDUCTIONS[eqn.params["op"]](x, eqn.params["axes"], part_dtype(dtype))


def _sort(eqn: Eqn, operands: list[Value]) -> Value:
    (x,) = operands
    assert isinstance(x, Complex)
    places = argsorted(x, eqn.params["axis"])
    return places if eqn.primitive is p.argsort else taken_along(x, places, eqn.params["axis"])


def _contract(eqn: Eqn, operands: list[Value]) -> Value:
    """Four real products, the order of each that of any; the parts of terms are summed apart."""
    a, b = operands
    assert isinstance(a, Complex)
    assert isinstance(b, Complex)

    def product(x: Real, y: Real) -> Real:
        return x.of(p.contract, y, **eqn.params)

    re = product(a.re, b.re) - product(a.im, b.im)
    return Complex(re, product(a.re, b.im) + product(a.im, b.re))


_RULES: dict[Primitive, Callable[[Eqn, list[Value]], Value]] = {
    p.elementwise: _elementwise,
    p.cast: _cast,
    **dict.fromkeys((p.broadcast, p.reshape, p.transpose, p.slice_, p.windows), _each_part),
    **dict.fromkeys((p.pad, p.gather, p.concat, p.cumulative), _each_part),
    **dict.fromkeys((p.update, p.scatter), _update),
    p.part: _one_part,
    p.from_parts: _from_parts,
    p.reduce: _reduce,
    **dict.fromkeys((p.sort, p.argsort), _sort),
    p.contract: _contract,
}
