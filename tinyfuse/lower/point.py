"""The statements that compute one element, with inlined stages in it and addresses for reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyfuse.loops.ir import Let, Local
from tinyfuse.lower.reads import inlined_body, is_inlined
from tinyfuse.records import dataclass, field
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import (
    Accumulator,
    Cast,
    Const,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    decide,
    depends_on,
    fold,
    rewrite,
    substitute_leaf,
    walk,
)
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage

# An expression nested deeper than this is cut by naming a part of it: a line stays readable.
MAX_DEPTH = 4

Key = tuple[Stage, tuple[Affine, ...]]


@dataclass
class Point:
    """Builds the value of one stage at one point of its loops.

    address: turns a load of a stored stage into one of its buffer. fresh: an unused name like the
    one given. innermost: the variable of the innermost loop, if any.
    """

    schedule: Schedule
    address: Callable[[Load], Load]
    fresh: Callable[[str], str]
    innermost: Axis | None
    lets: list[Let] = field(default_factory=list)

    def value(
        self, expression: Expr, values: Mapping[Axis, Affine], accumulator: Load | None = None
    ) -> Expr:
        """An expression of a stage at the point; `lets` holds what has to be named before it."""

        def leaf(node: Expr) -> Expr:
            if accumulator is not None and isinstance(node, Accumulator):
                return accumulator
            return substitute_leaf(node, values)

        body = rewrite(expression, leaf, decide)
        bodies = self._expand(body)
        if not bodies:
            return self._resolved(body, {})
        uses = self._uses([body, *bodies.values()])
        free = self._free(body, bodies)
        results: dict[Key, Expr] = {}
        for key in self._operands_first(body, bodies):
            result = self._resolved(bodies[key], results)
            results[key] = self._bound(key[0], result, uses[key]) if key in free else result
        return self._resolved(body, results)

    def named(self, name: str, value: Expr) -> Expr:
        """A local for a value, so that it is computed once."""
        if isinstance(value, (Local, Const)):
            return value
        local = Local(self.fresh(name), value.dtype)
        self.lets.append(Let(local, value))
        return local

    def _inlined(self, root: Expr) -> list[Key]:
        return [
            (node.source, node.indices)
            for node in walk(root)
            if isinstance(node, Load)
            and isinstance(node.source, Stage)
            and is_inlined(self.schedule, node.source)
        ]

    def _expand(self, body: Expr) -> dict[Key, Expr]:
        """The body of every inlined element that the value needs."""
        bodies: dict[Key, Expr] = {}
        pending = self._inlined(body)
        while pending:
            key = pending.pop()
            if key not in bodies:
                bodies[key] = inlined_body(*key)
                pending.extend(self._inlined(bodies[key]))
        return bodies

    def _uses(self, roots: list[Expr]) -> dict[Key, int]:
        counts: dict[Key, int] = {}
        for root in roots:
            for node in walk(root):
                for part in node.parts:
                    if isinstance(part, Load):
                        key = (part.source, part.indices)
                        counts[key] = counts.get(key, 0) + 1
            if isinstance(root, Load):
                counts[root.source, root.indices] = counts.get((root.source, root.indices), 0) + 1
        return counts

    def _free(self, body: Expr, bodies: Mapping[Key, Expr]) -> set[Key]:
        """The elements needed whatever the index tests say: only these may be named beforehand."""
        free: set[Key] = set()
        pending = unguarded_loads(body)
        while pending:
            load = pending.pop()
            key = (load.source, load.indices)
            if key in bodies and key not in free:
                free.add(key)
                pending.extend(unguarded_loads(bodies[key]))
        return free

    def _operands_first(self, body: Expr, bodies: Mapping[Key, Expr]) -> list[Key]:
        done: dict[Key, None] = {}
        stack = [(key, False) for key in reversed(self._inlined(body))]
        while stack:
            key, finished = stack.pop()
            if finished:
                done.setdefault(key)
            elif key not in done:
                stack.append((key, True))
                stack.extend(
                    (k, False) for k in reversed(self._inlined(bodies[key])) if k not in done
                )
        return list(done)

    def _resolved(self, body: Expr, results: Mapping[Key, Expr]) -> Expr:
        def leaf(node: Expr) -> Expr:
            if not isinstance(node, Load) or not isinstance(node.source, Stage):
                return node
            known = results.get((node.source, node.indices))
            return self.address(node) if known is None else known

        return rewrite(body, leaf, fold)

    def _bound(self, stage: Stage, value: Expr, uses: int) -> Expr:
        """The value, or a local for it: the user's names stay, what is shared is computed once."""
        if isinstance(value, (Local, Const, Index)) or (
            isinstance(value, Load) and not stage.named
        ):
            return value
        if uses < 2 and not stage.named and depth(value) < MAX_DEPTH and not self._invariant(value):
            return value
        return self.named(stage.name, value)

    def _invariant(self, value: Expr) -> bool:
        """Whether it is the same in every step of the innermost loop, so that it can move out."""
        return self.innermost is not None and not any(
            isinstance(node, Local) or depends_on(node, self.innermost) for node in walk(value)
        )


def depth(root: Expr) -> int:
    """The number of operations on the longest way down."""
    depths: dict[int, int] = {}
    for node in walk(root):
        below = max((depths[id(part)] for part in node.parts), default=-1)
        depths[id(node)] = below + (0 if isinstance(node, Cast) else 1)
    return depths[id(root)]


def unguarded_loads(root: Expr) -> list[Load]:
    """The loads that run whatever the index tests in the expression say."""
    found, seen = [], set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Load):
            found.append(node)
        pending.extend(node.parts[:1] if is_guard(node) else node.parts)
    return found


def is_guard(node: Expr) -> bool:
    """Whether a select keeps its branches from running at the wrong indices."""
    return (
        isinstance(node, Op)
        and node.name == "select"
        and any(isinstance(part, IndexTest) for part in walk(node.operands[0]))
    )
