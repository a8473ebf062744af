"""The statements that compute one element, with inlined stages in it and addresses for reads."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from tinyfuse.dtypes import BOOL
from tinyfuse.graph.scalar_ops import cost
from tinyfuse.loops.ir import Let, Local
from tinyfuse.lower.reads import Key, inlined_body
from tinyfuse.records import dataclass, field
from tinyfuse.stage.analysis import is_operation, operation_name
from tinyfuse.stage.expr import (
    Accumulator,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Op,
    Values,
    always_run,
    decide,
    depends_on,
    fold,
    is_guard,
    is_select,
    rewrite,
    select,
    substitute_leaf,
    walk,
)
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage

# An expression nested deeper than this is cut by naming a part of it: a line stays readable.
MAX_DEPTH = 4
# What the least of functions takes, in additions: more than a division.
FUNCTION = 16


@dataclass(eq=False, slots=True)
class _Element:
    """An element of an inlined stage, or the one that all this is for, which has no stage here.

    uses: how often expressions mention it. chosen: whether one chooses it or another by data.
    inside: those that its own mentions, in order. gathers: the loads of it whose place data
    decides. value: in the end.
    """

    stage: Any
    body: Expr
    uses: int = 0
    chosen: bool = False
    inside: list[_Element] = field(default_factory=list)
    gathers: list[Load] = field(default_factory=list)
    value: Any = None


@dataclass
class Point:
    """Builds the value of one stage at one point of its loops.

    inlined: the stages to see through. address: turns a load of a stored stage into one of its
    buffer. fresh: an unused name like the one given. innermost: the variable of the innermost loop,
    if any. known: a leaf, or the constant that it is where the statement stands. made: as of
    `substitute_places`. gathered: the values of loads whose place data decides. invariant: the
    locals that are the same in every step of the innermost loop.
    """

    inlined: Container[Stage]
    address: Callable[[Load], Load]
    fresh: Callable[[str], str]
    innermost: Axis | None
    known: Callable[[Expr], Expr]
    lets: list[Let] = field(default_factory=list)
    made: Values = field(default_factory=dict)
    gathered: dict[Expr, Expr] = field(default_factory=dict)
    invariant: set[Local] = field(default_factory=set)

    def value(
        self, expression: Expr, values: Mapping[Axis, Affine], accumulator: Load | None = None
    ) -> Expr:
        """An expression of a stage at the point; `lets` holds what has to be named before it."""

        def leaf(node: Expr) -> Expr:
            if accumulator is not None and isinstance(node, Accumulator):
                return accumulator
            return self.known(substitute_leaf(node, values))

        body = rewrite(expression, leaf, decide)
        root, elements = self._expanded(body)
        free = _free(root, elements) if elements else ()
        for element in _operands_first(root):
            result = self._resolved(element.body, elements)
            if element in free:
                result = self._bound(element, self._read_ahead(element.body, result))
            element.value = result
            for load in element.gathers:
                self.gathered[load] = element.value
        return self._read_ahead(body, self._resolved(body, elements))

    def named(self, name: str, value: Expr) -> Expr:
        """A local for a value, so that it is computed once."""
        if isinstance(value, (Local, Const)):
            return value
        local = Local(self.fresh(name), value.dtype)
        if self._invariant(value):
            self.invariant.add(local)
        self.lets.append(Let(local, value))
        return local

    def _expanded(self, body: Expr) -> tuple[_Element, dict[Load, _Element]]:
        """A body with every inlined element that it needs, and which loads are of these."""
        root = _Element(None, body)
        known: dict[Key, _Element] = {}
        elements: dict[Load, _Element] = {}
        pending = [root]
        while pending:
            reader = pending.pop()
            for node in walk(reader.body):
                if isinstance(node, Load) and node.source in self.inlined:
                    key = (node.source, node.indices, node.data)
                    element = known.get(key)
                    if element is None:
                        body = inlined_body(*key, self.made)
                        element = known[key] = _Element(node.source, body)
                        pending.append(element)
                    elements[node] = element
                    if node.data:
                        element.gathers.append(node)
                    reader.inside.append(element)
                for part in node.parts:
                    if part in elements:
                        elements[part].uses += 1
                        elements[part].chosen |= is_select(node) and part is not node.parts[0]
            if reader.body in elements:
                elements[reader.body].uses += 1
        return root, elements

    def _resolved(self, body: Expr, elements: Mapping[Load, _Element]) -> Expr:
        def leaf(node: Expr) -> Expr:
            if not isinstance(node, Load) or not isinstance(node.source, Stage):
                return self.known(node)
            element = elements.get(node)
            return self._loaded(node) if element is None else element.value

        return rewrite(body, leaf, fold, self.gathered)

    def _read_ahead(self, body: Expr, value: Expr) -> Expr:
        """The value of a body, with names for elements that it chooses where one index is another.

        There gcc puts the one in place of the other in the element's address too, which makes it
        another element, read in that branch alone: no such loop is vectorized.
        """
        if not any(is_select(node) for node in walk(body)):
            return value
        chosen = [
            part
            for node in always_run(value, is_guard)
            if is_select(node) and self._compares_indices(node.parts[0])
            for part in node.parts[1:]
            if isinstance(part, Load)
        ]
        names: dict[Expr, Expr] = {
            part: self.named(part.source.name, part) for part in dict.fromkeys(chosen)
        }
        return rewrite(value, lambda leaf: names.get(leaf, leaf), fold)

    def _compares_indices(self, condition: Expr) -> bool:
        if isinstance(condition, Local):
            condition = next((let.value for let in self.lets if let.local is condition), condition)
        return (
            isinstance(condition, Op)
            and condition.name in ("equal", "not_equal")
            and any(isinstance(part, Index) for part in condition.parts)
        )

    def _loaded(self, load: Load) -> Expr:
        """An element of a stored stage: of two that are named first, where a bool says which."""
        condition = _index_as_bool(load)
        if condition is None or self.innermost is None:
            return self.address(load)
        two = [self.address(_with_bool(load, value)) for value in (1, 0)]
        if not all(each.indices[0].is_constant for each in two):
            return self.address(load)
        chosen, other = [self.named(load.source.name, each) for each in two]
        return select(condition, chosen, other)

    def _bound(self, element: _Element, value: Expr) -> Expr:
        """The value, or a local for it: the user's names stay, what is shared is computed once."""
        stage = element.stage
        if isinstance(value, (Local, Const, Index)) or (
            isinstance(value, Load) and not stage.named
        ):
            return value
        shared = element.uses > 1 or stage.named or (element.chosen and _holds_function(value))
        if not shared and depth(value) < MAX_DEPTH and not self._invariant(value):
            return value
        return self.named(stage.name, value)

    def _invariant(self, value: Expr) -> bool:
        """Whether it is the same in every step of the innermost loop, so that it can move out."""
        return self.innermost is not None and not any(
            (isinstance(node, Local) and node not in self.invariant)
            or depends_on(node, self.innermost)
            for node in walk(value)
        )


def _holds_function(value: Expr) -> bool:
    """Whether a function of several operations is in it: gcc vectorizes no loop in which such a one
    runs in a branch of a choice that is itself one of another's, the double sine in none."""
    return any(
        is_operation(node) and node.dtype.kind == "f" and cost(operation_name(node)) >= FUNCTION
        for node in walk(value)
    )


def _index_as_bool(load: Load) -> Expr | None:
    """The bool that a load has as its only index that is data, if it chooses among two or more."""
    data = [(part, at) for at, part in enumerate(load.data) if not isinstance(part, Index)]
    if len(data) != 1:
        return None
    index, several = data[0][0], load.source.shape[data[0][1]] > 1
    if isinstance(index, Op) and index.name == "wrap_index":
        index, extent = index.operands
        several = isinstance(extent, Const) and int(extent.value) > 1
    while isinstance(index, Cast) and index.dtype.kind != "f":
        index = index.operand
    return index if several and index.dtype == BOOL else None


def _with_bool(load: Load, value: int) -> Load:
    """The load with a value for the index that is data."""
    data = [part if isinstance(part, Index) else Index(affine(value)) for part in load.data]
    return Load(load.source, load.indices, tuple(data))


def _free(root: _Element, elements: Mapping[Load, _Element]) -> set[_Element]:
    """The elements needed whatever the index tests say: only these may be named beforehand."""
    free: set[_Element] = set()
    pending = unguarded_loads(root.body)
    while pending:
        element = elements.get(pending.pop())
        if element is not None and element not in free:
            free.add(element)
            pending += unguarded_loads(element.body)
    return free


def _operands_first(root: _Element) -> list[_Element]:
    done: dict[_Element, None] = {}
    stack = [(element, False) for element in reversed(root.inside)]
    while stack:
        element, finished = stack.pop()
        if finished:
            done.setdefault(element)
        elif element not in done:
            stack.append((element, True))
            stack += [(inner, False) for inner in reversed(element.inside) if inner not in done]
    return list(done)


def depth(root: Expr) -> int:
    """The number of operations on the longest way down."""
    depths: dict[Expr, int] = {}
    for node in walk(root):
        below = max([depths[part] for part in node.parts], default=-1)
        depths[node] = below + (0 if isinstance(node, Cast) else 1)
    return depths[root]


def unguarded_loads(root: Expr) -> list[Load]:
    """The loads that run whatever the index tests in the expression say."""
    return [node for node in always_run(root, is_guard) if isinstance(node, Load)]
