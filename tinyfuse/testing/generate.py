"""Random programs: statements are drawn one by one and kept where numpy accepts them.

Each runs at once on what the ones before it have left: expressions give new values, effects write
into arrays that others may be views of. So what is drawn next sees what a run of the program sees:
indices are in range and shapes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.dtypes import is_complex, is_half, is_supported
from tinyfuse.testing import complex_constructs as of_complex
from tinyfuse.testing import composed_constructs as composed_of
from tinyfuse.testing import elementwise_constructs as elementwise
from tinyfuse.testing import half_constructs as of_halves
from tinyfuse.testing import index_constructs as indexed
from tinyfuse.testing import row_constructs as rows
from tinyfuse.testing import shaped_constructs as shaped
from tinyfuse.testing import write_constructs as writes
from tinyfuse.testing.choices import Choices, SeededChoices
from tinyfuse.testing.memory import fresh, share_memory
from tinyfuse.testing.parameters import draw_parameters
from tinyfuse.testing.program import (
    NAMESPACE,
    Expression,
    Form,
    Program,
    Statement,
    operator,
    quietly,
)
from tinyfuse.testing.scope import NotApplicable, Scope, is_array

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
    rows.cumulative: 2,
    rows.accumulate: 1,
    rows.sort: 2,
    rows.argsort: 1,
    rows.ranked: 1,
    rows.lexsort: 1,
    rows.order_statistic: 1,
    rows.place: 1,
    rows.histogram: 1,
    shaped.pieces: 6,
}
# What writes, what indexes with arrays and what makes arrays, besides those above.
EFFECTS: dict[Construct, int] = {
    writes.assign: 9,
    writes.augment: 5,
    writes.augment_part: 5,
    writes.assign_through_views: 5,
    writes.overlap: 6,
    writes.output: 3,
    writes.reduced_output: 1,
    writes.copyto: 2,
    writes.fill: 2,
    writes.swap: 2,
    writes.another_name: 2,
    writes.view: 8,
    writes.copy: 3,
    writes.filled: 2,
    indexed.gather: 6,
    indexed.take: 2,
    indexed.take_along_axis: 1,
    indexed.scatter: 4,
    indexed.scatter_at: 3,
    indexed.put_along_axis: 1,
    indexed.set_masked: 4,
    indexed.masked_reduction: 2,
    indexed.make: 4,
    indexed.make_like: 2,
    indexed.sequence: 2,
    indexed.matrix: 1,
    indexed.causal: 1,
    indexed.one_hot: 1,
    indexed.listed: 2,
    rows.sort_in_place: 2,
    composed_of.skipping_nan: 2,
    composed_of.special_values: 2,
    composed_of.rearranged: 4,
    composed_of.combined: 3,
    composed_of.put: 4,
    composed_of.accumulate_at: 2,
    composed_of.write_what_is_masked: 2,
}
# With 16-bit floats, where one is among the arguments.
HALVES: dict[Construct, int] = {
    of_halves.narrow: 3,
    of_halves.half_arithmetic: 4,
    of_halves.half_unary: 2,
    of_halves.half_where: 1,
    of_halves.half_view: 2,
    of_halves.widen: 3,
    of_halves.half_extreme: 1,
    of_halves.half_sum: 1,
    of_halves.half_product: 1,
}
# With complex numbers, where some are among the arguments.
COMPLEX_NUMBERS: dict[Construct, int] = {
    of_complex.complex_arithmetic: 5,
    of_complex.complex_literal: 2,
    of_complex.complex_unary: 3,
    of_complex.complex_function: 2,
    of_complex.complex_part: 3,
    of_complex.complex_of_real: 2,
    of_complex.complex_cast: 2,
    of_complex.complex_where: 1,
    of_complex.complex_view: 3,
    of_complex.complex_reduction: 2,
    of_complex.complex_sort: 1,
    of_complex.complex_product: 1,
    of_complex.complex_assignment: 3,
    of_complex.complex_part_assignment: 3,
}


def _weighted(constructs: Mapping[Construct, int]) -> tuple[Construct, ...]:
    return tuple(construct for construct, weight in constructs.items() for _ in range(weight))


_DRAWN = _weighted(CONSTRUCTS)
_DRAWN_IF_LARGE = (*_DRAWN, *(shaped.reduction,) * 12, *(shaped.product, shaped.gram) * 2)
_EFFECTS = _weighted(EFFECTS)
_HALVES = _weighted(HALVES)
_COMPLEX_NUMBERS = _weighted(COMPLEX_NUMBERS)
_SMALL, _LARGE = 120, 9000  # elements of a value
_DEEPEST = 6  # axes of a value
_TRIES = 3
_REFUSALS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)  # numpy's
_LENGTH = 20  # a program ends after each statement with a chance of one in so many
_DROPPED = 12  # of so many effects one is left out, which is how programs shrink
# Names that mean something in C, or to the code around it, stand among ordinary ones.
_VARIABLES = (
    "a", "b", "c", "total", "scale", "mean", "d", "e", "double", "out", "exp", "i", "main", "sum",
    "restrict", "h", "long", "n", "signed", "program", "k", "fmax", "q", "r", "s", "t", "u", "v",
)  # fmt: skip


def random_program(seed: int, *, composed: bool = True, effects: bool = True) -> Program:
    """The program of a seed.

    composed: whether it may hold what is computed otherwise than numpy does (einsum, masked sums),
    exact only below the graph. effects: whether it may write, index with arrays and make arrays;
    without them a seed has another program.
    """
    label = f"random_program({seed})" if effects else f"random_program({seed}, effects=False)"
    choices, name = SeededChoices(seed), f"program_{seed}"
    return draw_program(choices, label, name, composed=composed, effects=effects)


def draw_program(
    choices: Choices,
    label: str = "drawn program",
    name: str = "program",
    *,
    composed: bool = True,
    effects: bool = True,
) -> Program:
    """A valid program: numpy runs it on its arguments without raising, to supported dtypes."""
    while True:
        program = _attempted(choices, label, name, composed, effects)
        if program is not None:
            return program


def _attempted(
    choices: Choices, label: str, name: str, composed: bool, effects: bool
) -> Program | None:
    """A program; None in the rare case that it does not run as it did while it was drawn."""
    large = choices.chance(1, 8)
    arguments, captured = draw_parameters(choices, large, effects)
    scope = _scope(choices, arguments, captured, _LARGE if large else _SMALL, composed)
    runs = _runs(scope, large, effects) or [_identity(scope)]
    made = [run.statement.target for run in runs if run.statement.target]
    outputs = _outputs(choices, made or [scope.array()])
    if choices.chance(1, 10):  # what nothing needs stays
        program = _program(scope, label, name, arguments, captured, runs, outputs)
        return program if _is_valid(program, scope.values) else None
    some = [run for run in runs if not run.statement.is_effect or choices.below(_DROPPED)]
    for chosen in (some, runs):
        kept, needed = _needed(chosen, outputs, scope)
        known = {*arguments, *captured, *[run.statement.target for run in kept]}
        if not needed <= known:
            continue  # what made it is left out, and Python might have a name like it
        given = {name: arguments[name] for name in arguments if name in needed} or arguments
        seen = {name: captured[name] for name in captured if name in needed}
        program = _program(scope, label, name, given, seen, kept, outputs)
        if _is_valid(program, scope.values):
            return program
    return None


def _program(
    scope: Scope,
    label: str,
    name: str,
    arguments: Mapping[str, Any],
    captured: Mapping[str, np.ndarray],
    runs: Sequence[_Run],
    outputs: tuple[str, ...],
) -> Program:
    statements = tuple([run.statement for run in runs])
    return Program(label, arguments, captured, statements, outputs, scope.exact, name)


def _is_valid(program: Program, drawn: Mapping[str, Any]) -> bool:
    """Whether it runs, and all names end up with the dtypes that they had as it was drawn.

    Effects that have been left out may have changed what comes after.
    """
    made = [each.target for each in program.statements if each.target]
    names = dict.fromkeys([*program.outputs, *made, *program.arguments, *program.captured])
    try:
        results = replace(program, outputs=tuple(names), _functions=[])()
    except Exception:  # whatever numpy or Python says
        return False
    values = results if len(names) > 1 else (results,)
    pairs = zip(values, [drawn[name] for name in names], strict=True)
    return all(np.asarray(value).dtype == np.asarray(known).dtype for value, known in pairs)


@dataclass(frozen=True, slots=True)
class _Run:
    """A statement, the values that its operands had, those that it wrote, and what it made."""

    statement: Statement
    read: tuple[Any, ...]
    written: tuple[Any, ...]


def _scope(
    choices: Choices,
    arguments: Mapping[str, Any],
    captured: Mapping[str, np.ndarray],
    largest: int,
    composed: bool,
) -> Scope:
    """Where the statements run: on copies of the arguments and captured arrays."""
    names, values = [*arguments, *captured], fresh([*arguments.values(), *captured.values()])
    given = dict(zip(names, values, strict=True))
    return Scope(choices, given, largest, frozenset(captured), tuple(values), composed)


def _runs(scope: Scope, large: bool, effects: bool) -> list[_Run]:
    choices, runs = scope.choices, []
    for target in _VARIABLES:
        if not choices.below(_LENGTH):
            break
        drawn = _DRAWN_IF_LARGE if large else _DRAWN
        if effects and choices.below(2):
            drawn = _EFFECTS
        if "half" in scope.values and choices.below(3) == 2:
            drawn = _HALVES
        if "pair" in scope.values and choices.below(2):
            drawn = _COMPLEX_NUMBERS
        run = _attempt(scope, choices.choose(drawn), target)
        if run is not None:
            nested = choices.chance(1, 2)
            runs.append(replace(run, statement=replace(run.statement, nested=nested)))
    return runs


def _attempt(scope: Scope, construct: Construct, target: str) -> _Run | None:
    """A statement that numpy accepts, with what it has done entered in the scope; or None."""
    exact = scope.exact
    for _ in range(_TRIES):
        try:
            expression = construct(scope)
            run = _ran(scope, expression, target, _may_make(construct))
        except (NotApplicable, *_REFUSALS):
            continue
        if run is not None:
            return run
    scope.exact = exact
    return None


def _may_make(construct: Construct) -> Callable[[np.dtype], bool]:
    """Which dtypes a construct may make: 16-bit floats and complex numbers are apart."""
    if construct in HALVES:
        return lambda dtype: not is_complex(dtype)
    if construct in COMPLEX_NUMBERS:
        return lambda dtype: not is_half(dtype)
    return lambda dtype: not (is_half(dtype) or is_complex(dtype))


def _ran(
    scope: Scope, expression: Expression, target: str, may_make: Callable[[np.dtype], bool]
) -> _Run | None:
    read = tuple([scope.values[name] for name in expression.operands])
    written = tuple([scope.values[name] for name in expression.written])
    if expression.form is not Form.EFFECT:
        value = evaluate(expression, scope.values)
        if not _admitted(value, scope.largest) or not may_make(value.dtype):
            return None
        scope.values[target] = value
        return _Run(Statement(target, expression), read, written)
    if not all(_admitted(value, scope.largest) for value in written):
        return None
    after = perform(expression, scope.values, target)
    if not all(_admitted(after[name], scope.largest) for name in after):
        return None
    scope.values.update(after)
    made = target if target in after else ""
    return _Run(Statement(made, expression), read, written)


def evaluate(expression: Expression, values: dict[str, Any]) -> Any:
    """What numpy makes of an expression; raises what numpy raises."""
    return quietly(eval, expression.text(expression.operands), {**NAMESPACE, **values})


def perform(expression: Expression, values: Mapping[str, Any], target: str = "") -> dict[str, Any]:
    """Run an effect: what it leaves by the names that it writes, and a new value by `target`.

    Where it raises, or gives what is not supported, the arrays are as before.
    """
    before = [values[name] for name in expression.written]
    elements = [np.copy(value) for value in before]
    namespace = {**NAMESPACE, **values}
    try:
        quietly(exec, expression.text(expression.operands, target), namespace)
    except Exception:
        for value, saved in zip(before, elements, strict=True):
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = saved
        raise
    made = (target,) if "{target}" in expression.template else ()
    return {name: namespace[name] for name in (*expression.written, *made)}


def _admitted(value: Any, largest: int) -> bool:
    return (
        is_array(value)
        and is_supported(value.dtype)
        and value.size <= largest
        and value.ndim <= _DEEPEST
    )


def _identity(scope: Scope) -> _Run:
    name = scope.array()
    expression = operator("{0} + {1}", name, name)
    scope.values["a"] = evaluate(expression, scope.values)
    return _Run(Statement("a", expression), (), ())


def _outputs(choices: Choices, names: Sequence[str]) -> tuple[str, ...]:
    """The last value and perhaps others."""
    others = [name for name in names[:-1] if choices.chance(1, 8)]
    return (names[-1], *others[:3])


def _needed(
    runs: Sequence[_Run], outputs: Sequence[str], scope: Scope
) -> tuple[list[_Run], set[str]]:
    """The runs that the outputs and the caller's arrays depend on, and all names in them."""
    needed: set[str] = set(outputs)
    memory = [*[scope.values[name] for name in outputs], *scope.given]
    kept = []
    for run in reversed(runs):
        statement = run.statement
        names = {statement.target, *statement.expression.written}
        if needed & names or any(share_memory(a, b) for a in run.written for b in memory):
            needed.update(statement.expression.operands)
            memory.extend(run.read)
            kept.append(run)
    return kept[::-1], needed
