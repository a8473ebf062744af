"""Equations that run graphs: loops, and choices between graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tinyfuse.dtypes import BOOL, INT64, describe
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Primitive

CONTROL = frozenset((p.loop, p.while_, p.cond))


def bodies(eqn: Eqn) -> dict[str, Graph]:
    """The graphs of an equation, by what they are called when it is printed."""
    if eqn.primitive in (p.loop, p.while_):
        return {"body": eqn.params["body"]}
    if eqn.primitive is p.cond:
        return {f"branch {at}": branch for at, branch in enumerate(eqn.params["branches"])}
    return {}


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """A graph and all those inside it."""
    waiting = [graph]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [inner for eqn in each.eqns for inner in bodies(eqn).values()]


def has_control(graph: Graph) -> bool:
    return any(eqn.primitive in CONTROL for eqn in graph.eqns)


def carried_count(eqn: Eqn) -> int:
    """How many values a loop carries."""
    return len(eqn.params["body"].outputs)


def check_control(eqn: Eqn) -> None:
    """Raises ValueError where the graphs do not fit the operands, or the outputs the graphs."""
    _CHECKS[eqn.primitive](eqn)


def _check_loop(eqn: Eqn) -> None:
    body, count = eqn.params["body"], carried_count(eqn)
    if eqn.params["extent"] < 0:
        raise ValueError(f"{eqn.params['extent']} turns")
    if not body.inputs or (body.inputs[0].shape, body.inputs[0].dtype) != ((), INT64):
        raise ValueError("the body does not begin with the number of the turn")
    _require_types("the body takes", body.inputs[1:], eqn.inputs)
    if eqn.params["counted"] and _types(eqn.inputs[count:][-1:]) != [_type(body.inputs[0])]:
        raise ValueError("the number of turns is no int64")
    _check_carried(eqn, eqn.inputs[:count])


def _check_while(eqn: Eqn) -> None:
    body = eqn.params["body"]
    _require_types("the body takes", body.inputs, eqn.inputs)
    if not body.outputs or (body.outputs[0].shape, body.outputs[0].dtype) != ((), BOOL):
        raise ValueError("the body does not give first whether there is another turn")
    _check_carried(eqn, eqn.inputs[: carried_count(eqn)])


def _check_carried(eqn: Eqn, carried: Sequence[Atom]) -> None:
    _require_types("the body gives", eqn.params["body"].outputs, carried)
    _require_types("the loop gives", eqn.outputs, carried)


def _check_cond(eqn: Eqn) -> None:
    branches = eqn.params["branches"]
    if not branches:
        raise ValueError("there are no branches")
    index, *operands = eqn.inputs
    if (index.shape, index.dtype) != ((), INT64):
        raise ValueError("the number of the branch is no int64")
    for branch in branches:
        _require_types("a branch takes", branch.inputs, operands)
        _require_types("a branch gives", branch.outputs, eqn.outputs)


def _require_types(what: str, found: Sequence[Atom], wanted: Sequence[Atom]) -> None:
    given, asked = _types(found), _types(wanted)
    if given != asked:
        raise ValueError(f"{what} {', '.join(given)}, not {', '.join(asked)}")


def _types(atoms: Sequence[Atom]) -> list[str]:
    return [_type(atom) for atom in atoms]


def _type(atom: Atom) -> str:
    return describe(atom.shape, atom.dtype)


_CHECKS: dict[Primitive, Callable[[Eqn], None]] = {
    p.loop: _check_loop,
    p.while_: _check_while,
    p.cond: _check_cond,
}
