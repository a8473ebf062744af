"""Graphs as text: typed equations, in the user's names."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator

from tinyfuse.dtypes import describe
from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import bodies
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var


def graph_text(graph: Graph) -> str:
    """One line for each equation: `name: type = operation[parameters] operands`; after those of
    loops and choices the graphs that they run.

    What the output's type says (the dtype of a cast, the shape of a broadcast) is not repeated.
    """
    names = variable_names(graph)
    inputs = ", ".join([_input(var, names) for var in graph.inputs])
    equations = [line for eqn in graph.eqns for line in _equation_lines(eqn, names)]
    outputs = ", ".join([_atom_text(atom, names) for atom in graph.outputs])
    body = "".join([f"  {line}\n" for line in [*equations, f"return {outputs}".rstrip()]])
    return f"{graph.name}({inputs}) {{\n{body}}}"


# So that `print(graph)` shows it; the class stands below the printers and cannot import one.
Graph.__str__ = graph_text  # type: ignore[method-assign, assignment]


def variable_names(graph: Graph) -> dict[Var, str]:
    """A name for each variable: the user's, else what its equation computes; `_1` … where taken.

    Names of inputs come first, then those that the user has asked for.
    """
    names: dict[Var, str] = {}
    taken: dict[str, int] = {}
    for var in graph.inputs:
        names[var] = _unique(var.name or "input", taken)
    for eqn in sorted(graph.eqns, key=lambda eqn: not eqn.output.given):
        for output in eqn.outputs:
            names[output] = _unique(output.name or computed_name(eqn), taken)
    return names


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, or the first one not yet taken of name_1, name_2 …; `taken` counts the uses."""
    unique = name
    while unique in taken:
        unique = f"{name}_{taken[name]}"
        taken[name] += 1
    taken[unique] = 1
    return unique


_CUMULATIVE = {"add": "cumsum", "multiply": "cumprod"}


def computed_name(eqn: Eqn) -> str:
    """What an equation computes, in a word: `exp`, `sum`, `matmul`, `cumsum`, `transpose`."""
    if eqn.primitive is p.cumulative:
        return _CUMULATIVE.get(eqn.params["op"], f"cumulative_{eqn.params['op']}")
    for key in ("op", "via"):
        if key in eqn.params:
            return str(eqn.params[key])
    return eqn.primitive.name


def _typed(var: Var, names: dict[Var, str]) -> str:
    return f"{names[var]}: {describe(var.shape, var.dtype)}"


def _input(var: Var, names: dict[Var, str]) -> str:
    return f"constant {_typed(var, names)}" if var.constant else _typed(var, names)


def _equation_lines(eqn: Eqn, names: dict[Var, str]) -> Iterator[str]:
    """An equation, then the graphs in it, indented."""
    operands = [_atom_text(atom, names) for atom in eqn.inputs]
    outputs = ", ".join([_typed(output, names) for output in eqn.outputs])
    yield " ".join([f"{outputs} = {_operation_text(eqn)}", *operands])
    for what, graph in bodies(eqn).items():
        first, *rest = graph_text(graph).splitlines()
        yield f"  {what}{first[len(graph.name) :]}"
        yield from [f"  {line}" for line in rest]


def _atom_text(atom: Atom, names: dict[Var, str]) -> str:
    return f"{atom.value!s}:{atom.dtype.name}" if isinstance(atom, Literal) else names[atom]


def _operation_text(eqn: Eqn) -> str:
    write = OPERATION_TEXTS.get(eqn.primitive)
    return write(eqn) if write else eqn.primitive.name


def _with(*keys: str) -> Callable[[Eqn], str]:
    def write(eqn: Eqn) -> str:
        params = " ".join([f"{key}={eqn.params[key]}" for key in keys])
        return f"{eqn.primitive.name}[{params}]"

    return write


def _loop(eqn: Eqn) -> str:
    """The extent; of a loop whose last operand says how many turns there are, that."""
    return "loop[counted]" if eqn.params["counted"] else _with("extent")(eqn)


def _scatter(eqn: Eqn) -> str:
    """The dtype where it is not that of the elements."""
    alike = eqn.params["dtype"] == eqn.inputs[0].dtype
    return (_with("op") if alike else _with("op", "dtype"))(eqn)


def _contract(eqn: Eqn) -> str:
    return f"contract[{_product(eqn)} via={eqn.params['via']}]"


def _product(eqn: Eqn) -> str:
    labels = [eqn.params[key] for key in ("lhs", "rhs", "out")]
    letters = _letters(label for part in labels for label in part)
    lhs, rhs, out = ["".join([letters[label] for label in part]) for part in labels]
    return f"{lhs},{rhs}->{out}"


def _softmax_contract(eqn: Eqn) -> str:
    rank, limits = len(eqn.params["lhs"]) + 1, eqn.params["limits"]
    forms = [str(limits[at : at + rank]) for at in range(0, len(limits), rank)]
    where = f" limits={' '.join(forms)}" if forms else ""
    return f"softmax_contract[{_product(eqn)} block={eqn.params['block']}{where}]"


def _letters(labels: Iterable[int]) -> dict[int, str]:
    """a, b, c … for labels in order of appearance; what is beyond the letters is a number."""
    alphabet = string.ascii_letters
    distinct = enumerate(dict.fromkeys(labels))
    return {label: alphabet[at] if at < len(alphabet) else f"({at})" for at, label in distinct}


# How operations are written that say more than their primitive.
OPERATION_TEXTS: dict[Primitive, Callable[[Eqn], str]] = {
    p.elementwise: lambda eqn: str(eqn.params["op"]),
    p.transpose: _with("axes"),
    p.slice_: _with("starts", "steps"),
    p.windows: _with("window_shape", "axes"),
    p.pad: _with("before", "after"),
    p.concat: _with("axis"),
    p.iota: _with("extent"),
    p.scatter: _scatter,
    p.update: _with("starts", "steps"),
    p.reduce: _with("op", "axes"),
    p.cumulative: _with("op", "axis"),
    p.sort: _with("axis"),
    p.argsort: _with("axis"),
    p.contract: _contract,
    p.softmax_contract: _softmax_contract,
    p.loop: _loop,
}
