"""Random programs: statements are drawn one by one and kept where numpy accepts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT32, FLOAT64, SUPPORTED, is_supported
from tinyfuse.testing import elementwise_constructs as elementwise
from tinyfuse.testing import shaped_constructs as shaped
from tinyfuse.testing.choices import Choices, SeededChoices
from tinyfuse.testing.program import NAMESPACE, Expression, Program, Statement, operator, quietly
from tinyfuse.testing.scope import NotApplicable, Scope, is_array
from tinyfuse.testing.values import draw_array, draw_values

Construct = Callable[[Scope], Expression]

# Weights: how often each is drawn. The simplest come first.
CONSTRUCTS: dict[Construct, int] = {
    elementwise.arithmetic: 5,
    elementwise.with_literal: 4,
    elementwise.unary: 6,
    elementwise.binary: 6,
    elementwise.with_float: 1,
    shaped.reduction: 6,
    elementwise.cast: 2,
    shaped.slices: 3,
    shaped.flip: 2,
    shaped.transpose: 3,
    shaped.reshape: 4,
    shaped.flat_step: 1,
    shaped.new_axis: 1,
    shaped.broadcast: 1,
    elementwise.where: 2,
    elementwise.compare_where: 1,
    elementwise.centre: 1,
    elementwise.outer: 1,
    elementwise.two_results: 1,
    elementwise.signs: 1,
    shaped.position: 2,
    shaped.concatenate: 2,
    shaped.pad: 1,
    shaped.windows: 2,
    shaped.product: 3,
    shaped.gram: 1,
    shaped.einsum: 1,
}
_DRAWN = tuple(construct for construct, weight in CONSTRUCTS.items() for _ in range(weight))
_DRAWN_IF_LARGE = (*_DRAWN, *(shaped.reduction,) * 12, *(shaped.product, shaped.gram) * 2)
_DTYPES: tuple[np.dtype, ...] = (FLOAT32, FLOAT64, *SUPPORTED, FLOAT32, FLOAT64, FLOAT32, FLOAT64)
_EXTENTS = (2, 3, 4, 1, 5, 7, 0)
# Shapes at which a reduction is split into lanes, blocks or several chains.
_LARGE_SHAPES = (
    (70,), (64,), (3, 70), (130, 3), (128, 2), (2, 65, 2), (5, 200), (300, 4), (2, 3, 100), (1030,),
    (2, 1100), (2100,), (33, 34), (4100,), (4097, 1),
)  # fmt: skip
_SMALL, _LARGE = 120, 9000  # elements of a value
_DEEPEST = 6  # axes of a value
_TRIES = 3
_REFUSALS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)  # numpy's
_LENGTH = 20  # a program ends after each statement with a chance of one in so many
_PARAMETERS = ("x", "y", "z", "w")
_CAPTURED = ("table", "weights")
# Names that mean something in C, or to the code around it, stand among ordinary ones.
_VARIABLES = (
    "a", "b", "c", "total", "scale", "mean", "d", "e", "double", "out", "exp", "i", "main", "sum",
    "restrict", "h", "long", "n", "signed", "program", "k", "fmax", "q", "r", "s", "t", "u", "v",
)  # fmt: skip


def random_program(seed: int, *, composed: bool = True) -> Program:
    """The program of a seed. composed: whether it may hold einsum, exact only below the graph."""
    return draw_program(
        SeededChoices(seed), f"random_program({seed})", f"program_{seed}", composed=composed
    )


def draw_program(
    choices: Choices, label: str = "drawn program", name: str = "program", *, composed: bool = True
) -> Program:
    """A valid program: numpy runs it on its arguments without raising, to supported dtypes."""
    large = choices.chance(1, 8)
    arguments, captured = _parameters(choices, large)
    scope = Scope(choices, {**arguments, **captured}, _LARGE if large else _SMALL, composed)
    statements: list[Statement] = []
    for target in _VARIABLES:
        if not choices.below(_LENGTH):
            break
        construct = choices.choose(_DRAWN_IF_LARGE if large else _DRAWN)
        expression = _attempt(scope, construct, target)
        if expression is not None:
            statements.append(Statement(target, expression, choices.chance(1, 2)))
    if not statements:
        statements.append(_identity(scope))
    outputs = _outputs(choices, [statement.target for statement in statements])
    if choices.chance(1, 10):  # what nothing needs stays
        return Program(label, arguments, captured, tuple(statements), outputs, scope.exact, name)
    kept, needed = _needed(statements, outputs)
    arguments = {name: arguments[name] for name in arguments if name in needed} or arguments
    captured = {name: captured[name] for name in captured if name in needed}
    return Program(label, arguments, captured, kept, outputs, scope.exact, name)


def _parameters(choices: Choices, large: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    shapes = _shapes(choices, large)
    dtype = choices.choose(_DTYPES)
    arguments: dict[str, Any] = {}
    for name in _PARAMETERS[: 1 + choices.below(len(_PARAMETERS))]:
        arguments[name] = draw_array(
            choices, choices.choose(shapes), _related_dtype(choices, dtype)
        )
    if choices.chance(1, 6):
        arguments["count"] = draw_values(choices, (), _related_dtype(choices, dtype))[()]
    if choices.chance(1, 4):
        arguments["factor"] = choices.choose((2.0, 0.5, -0.0, 1e-3, 3.7, float("inf")))
    names = _CAPTURED[: choices.choose((0, 0, 0, 1, 2))]
    return arguments, {
        name: draw_array(choices, choices.choose(shapes), _related_dtype(choices, dtype))
        for name in names
    }


def _related_dtype(choices: Choices, dtype: np.dtype) -> np.dtype:
    return choices.choose(_DTYPES) if choices.chance(1, 3) else dtype


def _shapes(choices: Choices, large: bool) -> tuple[tuple[int, ...], ...]:
    """A shape, some that broadcast with it, and one to multiply it with."""
    if large:
        base = choices.choose(_LARGE_SHAPES)
    else:
        base = tuple(choices.choose(_EXTENTS) for _ in range(choices.choose((1, 2, 3, 2, 2, 0, 4))))
    ones = tuple(1 if choices.below(2) else extent for extent in base)
    suffix = base[choices.below(len(base) + 1) :]
    other = (*base[1:], choices.choose(_EXTENTS[:4])) if base else (3,)
    return base, base, base, suffix, ones, other


def _attempt(scope: Scope, construct: Construct, target: str) -> Expression | None:
    """An expression that numpy accepts, with its value entered in the scope; or None."""
    exact = scope.exact
    for _ in range(_TRIES):
        try:
            expression = construct(scope)
            value = evaluate(expression, scope.values)
        except (NotApplicable, *_REFUSALS):
            continue
        if _admitted(value, scope.largest):
            scope.values[target] = value
            return expression
    scope.exact = exact
    return None


def evaluate(expression: Expression, values: dict[str, Any]) -> Any:
    """What numpy makes of an expression; raises what numpy raises."""
    text = expression.template.format(*expression.operands)
    return quietly(eval, text, {**NAMESPACE, **values})


def _admitted(value: Any, largest: int) -> bool:
    return (
        is_array(value)
        and is_supported(value.dtype)
        and value.size <= largest
        and value.ndim <= _DEEPEST
    )


def _identity(scope: Scope) -> Statement:
    name = scope.array()
    return Statement("a", operator("{0} + {1}", name, name))


def _outputs(choices: Choices, names: Sequence[str]) -> tuple[str, ...]:
    """The last value and perhaps others."""
    others = [name for name in names[:-1] if choices.chance(1, 8)]
    return (names[-1], *others[:3])


def _needed(
    statements: Sequence[Statement], outputs: Sequence[str]
) -> tuple[tuple[Statement, ...], set[str]]:
    """The statements that the outputs depend on, and all names in them."""
    needed, kept = set(outputs), []
    for statement in reversed(statements):
        if statement.target in needed:
            needed.update(statement.expression.operands)
            kept.append(statement)
    return tuple(kept[::-1]), needed
