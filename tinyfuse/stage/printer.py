"""Stages as text: one definition per line, in the notation of Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import describe
from tinyfuse.stage.expr import (
    Accumulator,
    Cast,
    Const,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    walk,
)
from tinyfuse.stage.index import Axis, index_text
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.program import Block, Program, Repeat, Segment

# A reduction that would be longer is broken in two.
LONGEST_LINE = 96
# A longer part of an expression gets a name and a line of its own.
LONGEST_PART = 400


def stages_text(stages: Stages) -> str:
    """The program: its inputs, the definition of each stage, the stages that it returns.

    ::

        stages softmax(x: float32[64, 1024])
          m[i < 64]: float32 = halving maximum over l < 64 of m_lanes[i, l]
          e[i < 64, j < 1024]: float32 = exp(x[i, j] - m[i])
          return e
    """
    inputs = ", ".join(map(_input_text, stages.inputs))
    taken = {stage.name for stage in (*stages.inputs, *stages.stages)}
    lines = [f"stages {stages.name}({inputs})"]
    for stage in stages.stages:
        lines += _indented(stage_lines(stage, taken))
    lines.append(f"  return {', '.join([stage.name for stage in stages.outputs])}".rstrip())
    return "\n".join(lines)


def _input_text(stage: Stage) -> str:
    text = f"{stage.name}: {describe(stage.shape, stage.dtype)}"
    return f"constant {text}" if stage.constant else text


def program_text(program: Program) -> str:
    """The stages of each part, with the loops and choices around them."""
    if program.alone is not None:
        return stages_text(program.alone)
    return "\n".join([f"program {program.name}", *_indented(_block_lines(program.block))])


def _block_lines(block: Block) -> list[str]:
    lines: list[str] = []
    for step in block.steps:
        if isinstance(step, Segment):
            lines += stages_text(step.stages).splitlines()
        elif isinstance(step, Repeat):
            lines += [_repeat_text(step), *_indented(_block_lines(step.body))]
        else:
            for at, branch in enumerate(step.branches):
                where = f"where {step.index.itself().name} is {at}"
                lines += [where, *_indented(_block_lines(branch))]
    if block.moves:
        pairs = [f"{to.itself().name} = {source.itself().name}" for to, source in block.moves]
        lines.append(f"exchange {', '.join(pairs)}")
    return lines


def _repeat_text(step: Repeat) -> str:
    if step.test:
        return f"while {step.test.itself().name}"
    assert step.turn is not None
    times = step.count.itself().name if step.count else step.extent
    return f"repeat {times} times, counted in {step.turn.itself().name}"


def stage_lines(stage: Stage, taken: Collection[str] = ()) -> list[str]:
    """The definition of a stage, then an indented line for each part with a name of its own.

    What a long reduction combines stands on a second line. taken: names that parts must not have.
    """
    assert stage.body is not None
    head = f"{stage.name}{_domain(stage.axes)}: {stage.dtype.name} ="
    if not stage.reduce_axes:
        lines, value = expression_lines(stage.body, taken)
        return [f"{head} {_arrangement(stage)}{value}", *_indented(lines)]
    operation, term, guard = _reduction(stage.body)
    lines, value = expression_lines(term, taken)
    head = f"{head} {stage.order.value} {operation}over {_ranges(stage.reduce_axes)}"
    where = f" where {_test_text(guard)}" if guard else ""
    start = f", from {_constant(stage.init).text}" if stage.init is not None else ""
    value = f"of {value}{where}{start}"
    one_line = len(head) + len(value) < LONGEST_LINE
    definition = [f"{head} {value}"] if one_line else [head, *_indented([value])]
    return definition + _indented(lines)


def _arrangement(stage: Stage) -> str:
    """What is said of an element before the body that it comes from."""
    if stage.scan:
        return f"scan over {stage.scan.name} of "
    return f"{stage.sort.value} over {stage.axes[-1].name} of " if stage.sort else ""


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _domain(axes: Sequence[Axis]) -> str:
    return f"[{_ranges(axes)}]" if axes else ""


def _ranges(axes: Sequence[Axis]) -> str:
    return ", ".join([f"{axis.name} < {axis.extent}" for axis in axes])


def _reduction(body: Expr) -> tuple[str, Expr, IndexTest | None]:
    """(`add `, term, test) of a body that combines terms where a test holds; else no operation."""
    guard, inner = _guard(body)
    combined = _combined(inner)
    return (f"{combined[0]} ", combined[1], guard) if combined else ("", body, None)


def _guard(body: Expr) -> tuple[IndexTest | None, Expr]:
    """(test, body) of a body that leaves the value so far alone where the test fails."""
    if isinstance(body, Op) and body.name == "select":
        test, chosen, other = body.operands
        if isinstance(test, IndexTest) and isinstance(other, Accumulator):
            return test, chosen
    return None, body


def _combined(body: Expr) -> tuple[str, Expr] | None:
    """(operation, term) of a body that combines the value so far with a term free of it."""
    if not isinstance(body, Op) or len(body.operands) < 2:
        return None
    place = {"fma": 2}.get(body.name, 0)
    terms = [operand for at, operand in enumerate(body.operands) if at != place]
    if not isinstance(body.operands[place], Accumulator) or any(map(_accumulates, terms)):
        return None
    if body.name == "fma":
        return "fma", Op("multiply", (terms[0], terms[1]), body.dtype)
    return body.name, terms[0]


def _accumulates(root: Expr) -> bool:
    return any(isinstance(node, Accumulator) for node in walk(root))


class Text(NamedTuple):
    """Text, and how tightly it binds: as much as its loosest operator."""

    text: str
    binding: int


ATOM = 20
UNARY = 12
CONDITIONAL = 1
COMPARISON = 5

# operator, how tightly it binds
INFIX: dict[str, tuple[str, int]] = {
    "logical_or": ("or", 2),
    "logical_and": ("and", 3),
    "equal": ("==", COMPARISON),
    "not_equal": ("!=", COMPARISON),
    "less": ("<", COMPARISON),
    "less_equal": ("<=", COMPARISON),
    "greater": (">", COMPARISON),
    "greater_equal": (">=", COMPARISON),
    "bitwise_or": ("|", 6),
    "bitwise_xor": ("^", 7),
    "bitwise_and": ("&", 8),
    "left_shift": ("<<", 9),
    "right_shift": (">>", 9),
    "add": ("+", 10),
    "subtract": ("-", 10),
    "multiply": ("*", 11),
    "divide": ("/", 11),
    "floor_divide": ("//", 11),
    "remainder": ("%", 11),
    "power": ("**", 13),
}
NOT_ASSOCIATIVE = (COMPARISON, 13)
PREFIX: dict[str, tuple[str, int]] = {
    "logical_not": ("not ", 4),
    "negative": ("-", UNARY),
    "positive": ("+", UNARY),
    "invert": ("~", UNARY),
}


def expression_lines(
    root: Expr, taken: Collection[str] = (), node_texts: NodeTexts | None = None
) -> tuple[list[str], str]:
    """(`t0 = …` lines for what is used more than once or is long, the text of the expression).

    node_texts: how each kind of node is written; `NODE_TEXTS` where not given.
    """
    node_texts = node_texts or NODE_TEXTS
    nodes = list(walk(root))
    uses = Counter([id(part) for node in nodes for part in node.parts])
    texts: dict[int, Text] = {}
    lines: list[str] = []
    count = 0
    for node in nodes:
        text = node_texts[type(node)](node, [texts[id(part)] for part in node.parts])
        inner = bool(node.parts) and node is not root
        if inner and (uses[id(node)] > 1 or len(text.text) > LONGEST_PART):
            while f"t{count}" in taken:
                count += 1
            lines.append(f"t{count} = {text.text}")
            text = Text(f"t{count}", ATOM)
            count += 1
        texts[id(node)] = text
    return lines, texts[id(root)].text


def _load(node: Load, parts: Sequence[Text]) -> Text:
    texts = [*(part.text for part in parts), *map(index_text, node.indices)]
    indices = ", ".join(texts)
    return Text(f"{node.source.name}[{indices}]" if indices else node.source.name, ATOM)


def _index(node: Index, parts: Sequence[Text]) -> Text:
    text = index_text(node.index)
    return Text(text, ATOM if text.isalnum() else 10)


def _cast(node: Cast, parts: Sequence[Text]) -> Text:
    return Text(f"{node.dtype.name}({parts[0].text})", ATOM)


def _test_text(test: IndexTest) -> str:
    low = f"{test.low} <= " if test.low is not None else ""
    high = f" < {test.high}" if test.high is not None else ""
    return f"{low}{index_text(test.index)}{high}"


def _constant(value: np.generic) -> Text:
    text = str(value)
    return Text(text, UNARY if text.startswith("-") else ATOM)


def _op(node: Op, parts: Sequence[Text]) -> Text:
    if node.name == "select":
        condition, chosen, other = parts
        text = f"{_inside(chosen, 2)} if {_inside(condition, 2)} else {other.text}"
        return Text(text, CONDITIONAL)
    if node.name in INFIX:
        return _infix(*INFIX[node.name], parts)
    if node.name in PREFIX:
        sign, binding = PREFIX[node.name]
        return Text(sign + _inside(parts[0], binding), binding)
    return Text(f"{node.name}({', '.join([part.text for part in parts])})", ATOM)


def _infix(operator: str, binding: int, parts: Sequence[Text]) -> Text:
    left = _inside(parts[0], binding + (binding in NOT_ASSOCIATIVE))
    return Text(f"{left} {operator} {_inside(parts[1], binding + 1)}", binding)


def _inside(part: Text, binding: int) -> str:
    return part.text if part.binding >= binding else f"({part.text})"


NodeTexts = Mapping[type, Callable[..., Text]]

NODE_TEXTS: NodeTexts = {
    Const: lambda node, parts: _constant(node.value),
    Index: _index,
    IndexTest: lambda node, parts: Text(_test_text(node), COMPARISON),
    Load: _load,
    Op: _op,
    Cast: _cast,
    Accumulator: lambda node, parts: Text("so_far", ATOM),
}
