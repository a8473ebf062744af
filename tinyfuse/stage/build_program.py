"""From a graph with loops to a program: where parts begin and end, and which arrays they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import prod

from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import CONTROL, carried_count, has_control
from tinyfuse.graph.ir import Atom, Eqn, Graph, Var
from tinyfuse.graph.orders import Steps, reduction_steps
from tinyfuse.graph.rereading import with_rereads
from tinyfuse.records import dataclass, field
from tinyfuse.stage.build import Builder, Part, build_stages, built
from tinyfuse.stage.ir import Stage
from tinyfuse.stage.names import Names, StageName
from tinyfuse.stage.program import Array, Block, Choice, Moves, Program, Repeat, Segment, Step
from tinyfuse.stage.views import INDEX_MAPS


def build_program(graph: Graph) -> Program:
    """The program of a graph. Without loops and choices it is one part, built by `build_stages`."""
    if not has_control(graph):
        stages = build_stages(graph)
        reads, writes = [tuple(map(_array_of, each)) for each in (stages.inputs, stages.outputs)]
        for stage, array in zip((*stages.inputs, *stages.outputs), (*reads, *writes), strict=True):
            array.name = stage.name
        return Program(stages.name, reads, writes, Block((Segment(stages, reads, writes),)))
    return _ProgramBuilder(graph).program(graph)


def _array_of(value: Stage | Atom) -> Array:
    return Array(value.dtype, prod(value.shape), constant=getattr(value, "constant", False))


class _ProgramBuilder:
    """What all blocks of a program share: names, and the exchanges that data decides about."""

    def __init__(self, graph: Graph) -> None:
        self.names = Names()
        self.name = self.names.fresh(graph.name)
        self.called: dict[Array, StageName] = {}
        self.unknown = 0  # loops around whose turns data decides, and choices
        self.exchanged: list[tuple[bool, Moves]] = []  # whether data decides how often

    def program(self, graph: Graph) -> Program:
        inputs = tuple(map(_array_of, graph.inputs))
        for var, array in zip(graph.inputs, inputs, strict=True):
            self.call(array, self.names.fresh(var.name or "argument"), var.name is not None)
        block = _BlockBuilder(self, graph, dict(zip(graph.inputs, inputs, strict=True)), ())
        steps = block.steps()
        outputs = block.results(graph.outputs, self._uncertain())
        return Program(self.name, inputs, tuple(outputs), Block(tuple(block.built(steps))))

    def exchange(self, moves: Moves) -> None:
        if moves:
            self.exchanged.append((self.unknown > 0, moves))

    def _uncertain(self) -> set[Array]:
        """The arrays whose memory at the end depends on data."""
        groups = [
            (unknown, {array.itself() for move in moves for array in move})
            for unknown, moves in self.exchanged
        ]
        found = {array for unknown, group in groups if unknown for array in group}
        while more := [group for _, group in groups if group & found and not group <= found]:
            found.update(*more)
        return found

    def call(self, array: Array, name: str, named: bool) -> None:
        array = array.itself()
        if array not in self.called:
            array.name = name
            self.called[array] = StageName(name, named)


@dataclass(eq=False, slots=True)
class _Piece:
    """Equations that become one part, and what it has to put into arrays."""

    eqns: list[Eqn] = field(default_factory=list)
    outputs: list[tuple[Array, Atom]] = field(default_factory=list)

    def touches(self, var: Atom, roots: Mapping[Atom, Atom]) -> bool:
        """Whether it reads or defines a value."""
        used = {roots.get(atom, atom) for eqn in self.eqns for atom in (*eqn.inputs, eqn.output)}
        return var in used or var in {roots.get(atom, atom) for _, atom in self.outputs}


# A loop or a choice, whose stages are built after those before it.
Later = Callable[[], Step]


class _BlockBuilder:
    """The steps of one graph.

    arrays: of its inputs; `owned` are those that it may write.
    """

    def __init__(
        self,
        program: _ProgramBuilder,
        graph: Graph,
        arrays: dict[Var, Array],
        owned: Iterable[Array],
    ) -> None:
        self.program, self.graph = program, graph
        self.arrays: dict[Atom, Array] = dict(arrays.items())
        self.owned = set(owned)
        self.reduction_steps: Mapping[Eqn, Steps] = reduction_steps(graph)
        self.makers = {var: eqn for eqn in graph.eqns for var in eqn.outputs}
        self.roots = self._roots()
        self.last = self._last_uses()
        self.piece = _Piece()

    def _roots(self) -> dict[Atom, Atom]:
        """For each view the value that it is a view of."""
        roots: dict[Atom, Atom] = {}
        for eqn in self.graph.eqns:
            if eqn.primitive in INDEX_MAPS:
                roots[eqn.output] = roots.get(eqn.inputs[0], eqn.inputs[0])
        return roots

    def _last_uses(self) -> dict[Atom, int]:
        """The place of the last equation that reads each value, or a view of it."""
        last: dict[Atom, int] = {}
        for at, eqn in enumerate(self.graph.eqns):
            if eqn.primitive not in INDEX_MAPS:
                last.update({self.root(atom): at for atom in eqn.inputs})
        last.update({self.root(atom): len(self.graph.eqns) for atom in self.graph.outputs})
        return last

    def root(self, atom: Atom) -> Atom:
        return self.roots.get(atom, atom)

    # -- where steps begin and end

    def steps(self) -> list[_Piece | Later]:
        """The pieces and the loops between them; the last piece is open still."""
        steps: list[_Piece | Later] = [self.piece]
        for at, eqn in enumerate(self.graph.eqns):
            if eqn.primitive in CONTROL:
                steps += [self._control(at, eqn)]
                steps.append(self._next_piece())
            elif not _is_remade(eqn):
                if self._is_put_in_place(at, eqn):
                    target = eqn.inputs[0]
                    if self.piece.touches(target, self.roots):
                        steps.append(self._next_piece())
                    self.arrays[eqn.output] = self.arrays[target]
                    self.piece.outputs.append((self.arrays[target], eqn.output))
                self.piece.eqns.append(eqn)
        return steps

    def _next_piece(self) -> _Piece:
        self.piece = _Piece()
        return self.piece

    def _is_put_in_place(self, at: int, eqn: Eqn) -> bool:
        """Whether elements are put into an array that nobody needs as it was, and that may be
        written."""
        if eqn.primitive is not p.scatter:
            return False
        target = eqn.inputs[0]
        return self._is_free(target, at) and self._array(target) in self.owned

    def _is_free(self, atom: Atom, at: int) -> bool:
        """Whether a value lies in an array of its own that nobody reads after this equation."""
        if atom in self.roots or not isinstance(atom, Var) or self.last[atom] != at:
            return False
        reads = self.graph.eqns[at].inputs
        return sum(self.root(each) is atom for each in reads) == 1

    def _array(self, var: Atom) -> Array | None:
        """The array of a value that is no view; one that this block has made is its own."""
        if var not in self.arrays and isinstance(var, Var) and var in self.makers:
            if self.makers[var] in self.piece.eqns:
                return None  # part of what is computed together
            self._store(var)
        return self.arrays.get(var)

    def _store(self, var: Var) -> Array:
        array = self.arrays[var] = _array_of(var)
        self.owned.add(array)
        return array

    def _stored(self, atom: Atom) -> Array:
        """An array that holds a value, now if not before."""
        root = self.root(atom)
        if atom is root and isinstance(atom, Var) and not self._is_remade_value(atom):
            if atom not in self.arrays:
                self._store(atom)
            return self.arrays[atom]
        return self._copied(atom)

    def _is_remade_value(self, var: Var) -> bool:
        return var in self.makers and _is_remade(self.makers[var])

    def _copied(self, atom: Atom, name: str | None = None) -> Array:
        array = _array_of(atom)
        array.name = name or getattr(atom, "name", None) or "copy"
        self.owned.add(array)
        self.piece.outputs.append((array, atom))
        return array

    # -- loops and choices

    def _control(self, at: int, eqn: Eqn) -> Later:
        return self._choice(at, eqn) if eqn.primitive is p.cond else self._repeat(at, eqn)

    def _taken(self, at: int, atom: Atom, name: str | None) -> Array:
        """The array of what is carried: the value's own, if nobody needs it as it was."""
        if self._is_free(atom, at):
            array = self._stored(atom)
            if array in self.owned:
                return array
        return self._copied(atom, name or "carried")

    def _repeat(self, at: int, eqn: Eqn) -> Later:
        body, count = with_rereads(eqn.params["body"]), carried_count(eqn)
        names = [var.name for var in body.inputs[-len(eqn.inputs) :]]
        carried = [
            self._taken(at, atom, name)
            for atom, name in zip(eqn.inputs[:count], names, strict=False)
        ]
        read = [self._stored(atom) for atom in eqn.inputs[count:]]
        turn = Array(INT64, 1) if eqn.primitive is p.loop else None
        taken = [*([turn] if turn else []), *carried, *read]
        inner = _BlockBuilder(
            self.program, body, dict(zip(body.inputs, taken, strict=True)), carried
        )
        count_of_turns = read[-1] if turn and eqn.params["counted"] else None
        unknown = turn is None or count_of_turns is not None
        self.program.unknown += unknown
        steps = inner.steps()
        given = inner.results(body.outputs)
        moves = _moves(zip(carried, given, strict=True))
        self.program.exchange(moves)
        self.program.unknown -= unknown
        self.arrays.update(zip(eqn.outputs, carried, strict=True))
        self.owned.update(carried)

        def build() -> Step:
            self._call(zip(body.inputs, taken, strict=True))
            block = Block(tuple(inner.built(steps)), moves)
            if turn:
                return Repeat(block, eqn.params["extent"], turn, count=count_of_turns)
            return Repeat(block, test=carried[0])

        return build

    def _choice(self, at: int, eqn: Eqn) -> Later:
        index, *operands = [self._stored(atom) for atom in eqn.inputs]
        free = [
            array
            for atom, array in zip(eqn.inputs[1:], operands, strict=True)
            if array in self.owned and self._is_free(atom, at)
        ]
        scalars = [array for array in free if array.size == 1]  # copied: they may be in no memory
        made = []
        self.program.unknown += 1
        for branch in eqn.params["branches"]:
            arrays = dict(zip(branch.inputs, operands, strict=True))
            inner = _BlockBuilder(self.program, branch, arrays, free)
            steps = inner.steps()
            made.append((inner, steps, inner.results(branch.outputs, not_in=scalars)))
        results = self._results_of_branches([given for _, _, given in made], free)
        for _, _, given in made:
            for place, (array, result) in enumerate(zip(given, results, strict=True)):
                if array is not result and array not in free and result not in free:
                    array.same, given[place] = result, result
        moves = [_moves(zip(results, given, strict=True)) for _, _, given in made]
        for each in moves:
            self.program.exchange(each)
        self.program.unknown -= 1
        self.arrays.update(zip(eqn.outputs, results, strict=True))
        self.owned.update(results)

        def build() -> Step:
            self._call(zip(eqn.outputs, results, strict=True))
            branches = [
                Block(tuple(inner.built(steps)), exchanged)
                for (inner, steps, _), exchanged in zip(made, moves, strict=True)
            ]
            return Choice(index, tuple(branches))

        return build

    def _results_of_branches(
        self, given: Sequence[Sequence[Array]], free: Sequence[Array]
    ) -> list[Array]:
        """Where the results are after the choice: where a branch leaves them, if it is the same
        array of before, so that another branch need not copy it."""
        results: list[Array] = []
        for arrays in zip(*given, strict=True):
            kept = [array for array in arrays if array in free and array not in results]
            results.append(kept[0] if kept else Array(arrays[0].dtype, arrays[0].size))
        return results

    def _call(self, pairs: Iterable[tuple[Var, Array]]) -> None:
        """Name arrays after the first value in them."""
        for var, array in pairs:
            if array.itself() not in self.program.called:
                name = self.program.names.fresh(var.name or "carried")
                self.program.call(array, name, var.name is not None)

    def results(self, atoms: Sequence[Atom], not_in: Collection[Array] = ()) -> list[Array]:
        """Different arrays that hold these values at the end, none of them one that is only read,
        or one of some others."""
        found: list[Array] = []
        for atom in atoms:
            whole = isinstance(atom, Var) and atom is self.root(atom)
            array = self._stored(atom) if whole else None
            taken = array in found or array not in self.owned
            if array is None or taken or array.itself() in not_in:
                array = self._copied(atom, getattr(atom, "name", None) or "out")
            found.append(array)
        return found

    # -- stages

    def built(self, steps: Sequence[_Piece | Later]) -> list[Step]:
        """The steps with stages for the pieces; those that compute nothing are left out."""
        self._hand_on([step for step in steps if isinstance(step, _Piece)])
        made: list[Step] = []
        for step in steps:
            if not isinstance(step, _Piece):
                made.append(step())
            elif step.outputs:
                made.append(self._segment(step))
        return made

    def _hand_on(self, pieces: Sequence[_Piece]) -> None:
        """Let each piece store what is read after it."""
        home = {eqn.output: piece for piece in pieces for eqn in piece.eqns}
        for piece in pieces:
            for var in self._graph(piece).inputs:
                if var in home and home[var] is not piece and var not in self.arrays:
                    self._store(var)
        for var, piece in home.items():
            if var in self.arrays and (self.arrays[var], var) not in piece.outputs:
                piece.outputs.append((self.arrays[var], var))

    def _graph(self, piece: _Piece) -> Graph:
        """The equations of a piece, with those of the views that it reads."""
        own = {eqn.output for eqn in piece.eqns}
        waiting = [atom for eqn in piece.eqns for atom in eqn.inputs]
        waiting += [atom for _, atom in piece.outputs]
        remade: dict[Atom, Eqn] = {}
        inputs: dict[Var, None] = {}
        while waiting:
            atom = waiting.pop(0)
            if not isinstance(atom, Var) or atom in own or atom in remade:
                continue
            eqn = self.makers.get(atom)
            if eqn is not None and _is_remade(eqn):
                remade[atom] = eqn
                waiting.extend(eqn.inputs)
            else:
                inputs[atom] = None
        kept = {*piece.eqns, *remade.values()}
        eqns = tuple([eqn for eqn in self.graph.eqns if eqn in kept])
        outputs = tuple([atom for _, atom in piece.outputs])
        return Graph(self.graph.name, tuple(inputs), eqns, outputs)

    def _segment(self, piece: _Piece) -> Segment:
        graph, program = self._graph(piece), self.program
        reads = [self.arrays[var] for var in graph.inputs]
        called = {
            var: program.called[array.itself()]
            for var, array in zip(graph.inputs, reads, strict=True)
            if array.itself() in program.called
        }
        names = [array.itself().name for array, _ in piece.outputs]
        part = Part(program.name, program.names, called, self.reduction_steps, names)
        stages = built(Builder(graph, part), graph)
        writes = [array for array, _ in piece.outputs]
        for stage, array in zip((*stages.inputs, *stages.outputs), (*reads, *writes), strict=True):
            program.call(array, stage.name, stage.named)
        return Segment(stages, tuple(reads), tuple(writes))


def _is_remade(eqn: Eqn) -> bool:
    """Whether an equation is part of every piece that reads its output: it computes nothing."""
    return eqn.primitive in INDEX_MAPS or eqn.primitive is p.iota


def _moves(pairs: Iterable[tuple[Array, Array]]) -> Moves:
    """Exchanges after which the first array of each pair holds what the second one holds.

    The arrays that are given away get the memory that became free.
    """
    sources = {to: source for to, source in pairs if to is not source}
    moves = list(sources.items())
    for start in [to for to in sources if to not in sources.values()]:
        end = start
        while end in sources:
            end = sources[end]
        moves.append((end, start))
    return tuple(moves)
