"""Scalar expressions: what a stage computes for one element.

Expressions are directed acyclic graphs: a shared node is computed once. Indices are kept apart
(`index.Affine`); they meet values in `Load` (indices used), `Index` (an index as a value) and
`IndexTest` (a condition on indices, which intervals can decide).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tinyfuse.dtypes import BOOL, INT64, is_floating
from tinyfuse.records import dataclass
from tinyfuse.stage.index import Affine, Axis, IndexLike


class Expr:
    """A scalar value with a dtype; `parts` are the expressions directly inside it."""

    __slots__ = ()
    dtype: np.dtype
    parts: ClassVar[Any] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Const(Expr):
    value: np.generic

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.value.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Index(Expr):
    """An index as an int64 value."""

    index: Affine

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return INT64


@dataclass(frozen=True, eq=False, slots=True)
class IndexTest(Expr):
    """Whether low <= index < high; a missing bound is no condition."""

    index: Affine
    low: int | None
    high: int | None

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return BOOL

    def decided(self) -> bool | None:
        """The answer where it is the same for all values of the axes, else None."""
        first, last = self.index.interval()
        low, high = self.low, self.high
        if (low is None or first >= low) and (high is None or last < high):
            return True
        if (low is not None and last < low) or (high is not None and first >= high):
            return False
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Load(Expr):
    """An element of a stage (in stages) or of a buffer (in loops, with one flat index).

    data: int64 expressions that the place depends on as well: in stages the indices for the first
    axes of the source, so that `indices` are those for the others; in loops at most one, which is
    added to the flat index.
    """

    source: Any
    indices: tuple[Affine, ...]
    data: tuple[Expr, ...] = ()

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.source.dtype

    @property
    def places(self) -> tuple[Affine | None, ...]:
        """The index along each axis of the source; None where data decides it."""
        if not self.data:
            return self.indices
        known = [part.index if isinstance(part, Index) else None for part in self.data]
        return (*known, *self.indices)


Load.parts = vars(Load)["data"]  # the slot itself


@dataclass(frozen=True, eq=False, slots=True)
class Op(Expr):
    """A scalar operation on operands in the dtypes it computes in.

    name: a row of `graph.scalar_ops.SCALAR_OPS`, or `fma` (a * b + c, rounded once; for integers in
    wrapping arithmetic, for bool `a & b | c`).
    """

    name: str
    operands: tuple[Expr, ...]
    dtype: np.dtype


Op.parts = vars(Op)["operands"]  # the slot itself


@dataclass(frozen=True, eq=False, slots=True)
class Cast(Expr):
    """Conversion to another dtype, as `numpy.ndarray.astype`."""

    operand: Expr
    dtype: np.dtype

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, eq=False, slots=True)
class Accumulator(Expr):
    """The value so far: in the body of a stage with reduce axes, or with a scan axis."""

    dtype: np.dtype


def walk(root: Expr) -> Sequence[Expr]:
    """Every node once, operands before the nodes that use them; without recursion."""
    if not root.parts:
        return (root,)
    found: dict[Expr, None] = {}
    stack: list[Expr | None] = [root]  # after None stands a node whose operands are all found
    while stack:
        node = stack.pop()
        if node is None:
            found[stack.pop()] = None  # type: ignore[index]
        elif node not in found:
            parts = node.parts
            if parts:
                stack += (node, None, *parts[::-1])
            else:
                found[node] = None
    return list(found)


def rewrite(
    root: Expr,
    leaf: Callable[[Expr], Expr],
    call: Callable[[Expr], Expr] | None = None,
    known: Mapping[Expr, Expr] | None = None,
) -> Expr:
    """A copy with `leaf(node)` for each leaf and `call(node)` for each rebuilt inner node.

    known: what some nodes become whatever they hold.

    A load is a leaf, also where its place depends on data; that is rewritten before.

    What was shared stays shared, what did not change is the same object.
    """
    new: dict[Expr, Expr] = {}
    for node in walk(root):
        parts = node.parts
        if known and node in known:
            new[node] = known[node]
            continue
        if not parts:
            new[node] = leaf(node)
            continue
        replaced = tuple([new[part] for part in parts])
        result = node if replaced == parts else _rebuilt(node, replaced)
        if isinstance(result, Load):
            new[node] = leaf(result)
        else:
            new[node] = call(result) if call else result
    return new[root]


def _rebuilt(node: Expr, parts: tuple[Expr, ...]) -> Expr:
    if isinstance(node, Op):
        return Op(node.name, parts, node.dtype)
    if isinstance(node, Load):
        return Load(node.source, node.indices, parts)
    return Cast(parts[0], node.dtype)


def substitute(root: Expr, values: Mapping[Axis, IndexLike]) -> Expr:
    """A copy with axes replaced in all indices; selects whose test is now decided are resolved."""
    return rewrite(root, lambda node: substitute_leaf(node, values), decide)


def substitute_leaf(node: Expr, values: Mapping[Axis, IndexLike]) -> Expr:
    if isinstance(node, Load):
        indices = tuple([index.substitute(values) for index in node.indices])
        return Load(node.source, indices, node.data)
    if isinstance(node, Index):
        return Index(node.index.substitute(values))
    if isinstance(node, IndexTest):
        return IndexTest(node.index.substitute(values), node.low, node.high)
    return node


# An index as a value: the values in it with their factors, and the rest of it -> the expression.
Values = dict[tuple[tuple[tuple[Expr, int], ...], Affine], Expr]


def substitute_places(root: Expr, values: Mapping[Axis, Affine | Expr], made: Values) -> Expr:
    """A copy with axes replaced by indices, and by int64 values; no test or division depends on
    the latter. made: indices that have become values so far; equal ones are the same object."""
    plain = {axis: value for axis, value in values.items() if isinstance(value, Affine)}
    data = {axis: value for axis, value in values.items() if isinstance(value, Expr)}

    def value(index: Affine) -> Expr:
        rest = Affine(tuple([t for t in index.terms if t[0] not in data]), index.constant)
        parts = tuple([(data[t], factor) for t, factor in index.terms if t in data])
        key = (parts, rest.substitute(plain))
        if key not in made:
            made[key] = _sum(*key)
        return made[key]

    def leaf(node: Expr) -> Expr:
        if not any(axis in data for axis in axes_of(node)):
            return substitute_leaf(node, plain)
        if isinstance(node, Index):
            return value(node.index)
        assert isinstance(node, Load)
        found = [any(axis in data for axis in index.axes()) for index in node.indices]
        first = len(found) - found[::-1].index(True)
        rest = tuple([index.substitute(plain) for index in node.indices[first:]])
        return Load(node.source, rest, (*node.data, *map(value, node.indices[:first])))

    return rewrite(root, leaf, decide)


def _sum(parts: Sequence[tuple[Expr, int]], rest: Affine) -> Expr:
    """The value of an index: `rest`, and values times factors."""
    terms: list[Expr] = [Index(rest)] if rest != Affine() or not parts else []
    for value, factor in parts:
        times = Op("multiply", (value, Const(np.int64(factor))), INT64)
        terms.append(value if factor == 1 else times)
    return functools.reduce(lambda a, b: Op("add", (a, b), INT64), terms)


def decide(node: Expr) -> Expr:
    """A select on an index test that intervals settle is one of its branches."""
    if isinstance(node, Op) and node.name == "select":
        known = decided(node.operands[0])
        if known is not None:
            return node.operands[1 if known else 2]
    return node


def fold(node: Expr) -> Expr:
    """`decide`, and the constant that a conversion of a constant is, where all agree on it."""
    if isinstance(node, Cast):
        value = constant(node.operand)
        if value is not None and (is_floating(node.dtype) or not is_floating(value.dtype)):
            with np.errstate(over="ignore"):
                return Const(value.astype(node.dtype))
    return decide(node)


def constant(node: Expr) -> np.generic | None:
    """The value of an expression that is a constant or a constant index."""
    if isinstance(node, Index) and node.index.is_constant:
        return np.int64(node.index.constant)
    return node.value if isinstance(node, Const) else None


def decided(condition: Expr) -> bool | None:
    """The value of a condition where index intervals settle it, else None."""
    if isinstance(condition, IndexTest):
        return condition.decided()
    if isinstance(condition, Const):
        return bool(condition.value)
    if isinstance(condition, Op) and condition.name == "logical_and":
        parts = [decided(part) for part in condition.operands]
        return False if False in parts else True if None not in parts else None
    return None


def axes_of(node: Expr) -> dict[Axis, None]:
    """The axes in the indices of a leaf."""
    if isinstance(node, Load):
        return {axis: None for index in node.indices for axis in index.axes()}
    return node.index.axes() if isinstance(node, (Index, IndexTest)) else {}


def depends_on(node: Expr, axis: Axis) -> bool:
    """Whether an axis is in the indices of a leaf."""
    if isinstance(node, Load):
        return any(index.depends_on(axis) for index in node.indices)
    return isinstance(node, (Index, IndexTest)) and node.index.depends_on(axis)


def is_of_rank(node: Expr) -> bool:
    """Whether an expression only turns a stored rank into the value it stands for."""
    return (
        isinstance(node, Op)
        and node.name.startswith("of_rank_")
        and isinstance(node.operands[0], Load)
    )


def loads(root: Expr) -> list[Load]:
    """All loads, in order of first use."""
    return [node for node in walk(root) if isinstance(node, Load)]


def select(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """`chosen` where the condition holds, else `other`; only the chosen one is evaluated."""
    return decide(Op("select", (condition, chosen, other), chosen.dtype))


def is_select(node: Expr) -> bool:
    return isinstance(node, Op) and node.name == "select"


def is_guard(node: Expr) -> bool:
    """Whether a select keeps its branches from running at the wrong indices."""
    return is_select(node) and any(isinstance(part, IndexTest) for part in walk(node.parts[0]))


def always_run(root: Expr, chooses: Callable[[Expr], bool] = is_select) -> dict[Expr, None]:
    """The nodes that run whatever is chosen by the selects that `chooses` tells from others."""
    found: dict[Expr, None] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if node not in found:
            found[node] = None
            pending += node.parts[:1] if chooses(node) else node.parts
    return found
