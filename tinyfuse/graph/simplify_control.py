"""Loops and choices without what no turn changes, nobody reads, or is there twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import bodies, carried_count
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.records import replace

Simplify = Callable[[Graph], Graph]


def simplified(eqn: Eqn, simplify: Simplify) -> tuple[Eqn | None, dict[Atom, Atom]]:
    """The equation, or none if it is needless, and what its outputs are that it does not change.

    - The graphs inside are simplified.
    - A loop without turns gives what it was given, and so does one for what no turn changes. One
      that is counted by a number that is known is as long as that.
    - What all turns read is read once, a `Literal` is there where it is used, and what no graph
      uses is no operand.
    """
    eqn = _with_known_count(eqn)
    if eqn.primitive is p.loop and eqn.params["extent"] == 0:
        return None, dict(zip(eqn.outputs, eqn.inputs, strict=False))
    eqn = _with_graphs(eqn, simplify)
    replaced: dict[Atom, Atom] = {}
    if eqn.primitive is not p.cond:
        same = _unchanged(eqn)
        replaced = {eqn.outputs[at]: eqn.inputs[at] for at in same}
        if len(same) == len(eqn.outputs):
            return None, replaced
        if same:
            eqn = _with_graphs(_without_carried(eqn, same), simplify)
    return _with_operands(eqn, simplify), replaced


def _with_known_count(eqn: Eqn) -> Eqn:
    count = eqn.inputs[-1] if _is_counted(eqn) else None
    if not isinstance(count, Literal):
        return eqn
    extent = min(max(int(count.value), 0), eqn.params["extent"])
    return replace(eqn, params={**eqn.params, "extent": extent, "counted": False})


def _is_counted(eqn: Eqn) -> bool:
    return eqn.primitive is p.loop and bool(eqn.params["counted"])


def pruned(eqn: Eqn, needed: Collection[Atom], simplify: Simplify) -> Eqn | None:
    """The equation without the outputs that nobody needs; none if they are all of that kind."""
    wanted = [at for at, output in enumerate(eqn.outputs) if output in needed]
    if not wanted:
        return None
    if eqn.primitive is not p.cond:
        wanted = _carried_for(eqn, wanted)
    if len(wanted) == len(eqn.outputs):
        return eqn
    graphs = {what: _giving(graph, wanted) for what, graph in bodies(eqn).items()}
    eqn = _of_graphs(eqn, graphs, eqn.inputs, [eqn.outputs[at] for at in wanted])
    if eqn.primitive is not p.cond:
        # What is no longer carried is nowhere used: it stands among what is read until it is gone.
        eqn = _reordered(eqn, wanted)
    return _with_operands(_with_graphs(eqn, simplify), simplify)


def _with_graphs(eqn: Eqn, simplify: Simplify) -> Eqn:
    graphs = {what: simplify(graph) for what, graph in bodies(eqn).items()}
    return _of_graphs(eqn, graphs, eqn.inputs, eqn.outputs)


def _of_graphs(
    eqn: Eqn, graphs: Mapping[str, Graph], inputs: Iterable[Atom], outputs: Sequence[Var]
) -> Eqn:
    held = {"branches": tuple(graphs.values())} if eqn.primitive is p.cond else graphs
    output, *others = outputs
    return replace(
        eqn,
        inputs=tuple(inputs),
        params={**eqn.params, **held},
        output=output,
        others=tuple(others),
    )


def _leading(eqn: Eqn) -> int:
    """How many inputs of its graphs are no operands: the number of the turn; -1 for an operand
    that is no input, the number of the branch."""
    return {p.loop: 1, p.while_: 0, p.cond: -1}[eqn.primitive]


# -- what a loop carries


def _unchanged(eqn: Eqn) -> list[int]:
    """The places of what every turn hands on as it is."""
    body, first = eqn.params["body"], _leading(eqn)
    pairs = zip(body.inputs[first:], body.outputs, strict=False)
    same = [at for at, (before, after) in enumerate(pairs) if before is after]
    return same if eqn.primitive is p.loop else [at for at in same if at]


def _without_carried(eqn: Eqn, same: Collection[int]) -> Eqn:
    """The loop with some of what it carries as something that it reads."""
    kept = [at for at in range(carried_count(eqn)) if at not in same]
    body = _giving(eqn.params["body"], kept)
    eqn = _of_graphs(eqn, {"body": body}, eqn.inputs, [eqn.outputs[at] for at in kept])
    return _reordered(eqn, kept)


def _reordered(eqn: Eqn, first: Sequence[int]) -> Eqn:
    """With some operands before the others, also as inputs of the graphs."""
    order = [*first, *[at for at in range(len(eqn.inputs)) if at not in first]]
    graphs = {}
    for what, graph in bodies(eqn).items():
        leading = _leading(eqn)
        inputs = [*graph.inputs[:leading], *[graph.inputs[leading + at] for at in order]]
        graphs[what] = replace(graph, inputs=tuple(inputs))
    return _of_graphs(eqn, graphs, [eqn.inputs[at] for at in order], eqn.outputs)


def _giving(graph: Graph, places: Sequence[int]) -> Graph:
    outputs = tuple([graph.outputs[at] for at in places])
    return replace(graph, outputs=outputs)


def _carried_for(eqn: Eqn, wanted: Sequence[int]) -> list[int]:
    """The places of what a loop has to carry so that some of it is right."""
    body, count = eqn.params["body"], carried_count(eqn)
    places = {var: at for at, var in enumerate(body.inputs[_leading(eqn) :][:count])}
    needed = {*wanted, 0} if eqn.primitive is p.while_ else {*wanted}
    while True:
        used = _used(body, [body.outputs[at] for at in needed])
        more = {places[var] for var in used if var in places} - needed
        if not more:
            return sorted(needed)
        needed |= more


def _used(graph: Graph, outputs: Iterable[Atom]) -> list[Var]:
    """The inputs of a graph that some of its outputs depend on."""
    needed: set[Atom] = set(outputs)
    for eqn in reversed(graph.eqns):
        if not needed.isdisjoint(eqn.outputs):
            needed.update(eqn.inputs)
    return [var for var in graph.inputs if var in needed]


# -- what its graphs read


def _with_operands(eqn: Eqn, simplify: Simplify) -> Eqn:
    """Operands that the graphs only read: each once, no literals, all used."""
    leading = _leading(eqn)
    fixed = 1 if eqn.primitive is p.cond else carried_count(eqn)
    used = {var for graph in bodies(eqn).values() for var in _used(graph, graph.outputs)}
    first: dict[Atom, int] = {}
    literals: dict[int, Literal] = {}
    repeated: dict[int, int] = {}
    kept = list(range(fixed))
    counted = [len(eqn.inputs) - 1] if _is_counted(eqn) else []
    for at in range(fixed, len(eqn.inputs) - len(counted)):
        atom = eqn.inputs[at]
        inputs = [graph.inputs[leading + at] for graph in bodies(eqn).values()]
        if isinstance(atom, Literal):
            literals[at] = atom
        elif atom in first:
            repeated[at] = first[atom]
        elif not used.isdisjoint(inputs):
            first[atom] = at
            kept.append(at)
    kept += counted
    if len(kept) == len(eqn.inputs):
        return eqn
    graphs = {}
    for what, graph in bodies(eqn).items():
        new: dict[Atom, Atom] = {
            graph.inputs[leading + at]: value for at, value in literals.items()
        }
        new.update(
            {graph.inputs[leading + a]: graph.inputs[leading + b] for a, b in repeated.items()}
        )
        # The number of a branch is no input of the graphs.
        places = [leading + at for at in kept if leading + at >= 0]
        inputs = [*graph.inputs[: max(leading, 0)], *[graph.inputs[place] for place in places]]
        graphs[what] = _substituted(graph, new, inputs)
    eqn = _of_graphs(eqn, graphs, [eqn.inputs[at] for at in kept], eqn.outputs)
    return _with_graphs(eqn, simplify) if literals or repeated else eqn


def _substituted(graph: Graph, new: Mapping[Atom, Atom], inputs: Sequence[Var]) -> Graph:
    def replaced(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
        return tuple([new.get(atom, atom) for atom in atoms])

    eqns = tuple([replace(eqn, inputs=replaced(eqn.inputs)) for eqn in graph.eqns])
    return Graph(graph.name, tuple(inputs), eqns, replaced(graph.outputs))
