"""Loops that tensor cores do, as CUDA: what each thread loads of the operands, and instructions.

The layouts are those of `mma.sync` in the PTX manual. Of 16 rows and 8 columns thread `group`,
`pair` of a warp has rows `group` and `group + 8` and columns `2 pair` and `2 pair + 1`. It loads
rows `group` and `group + 8` of the first operand and column `group` of the second, of each four of
tf32 and two, in one number of 32 bits, of formats of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tinyfuse.loops.ir import TENSOR_STEPS, For, LoopKind, Statement, Store
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Load, Op
from tinyfuse.stage.index import Affine, Axis, affine

Element = Callable[[Load], str]
Values = Mapping[Axis, Affine | int]


@dataclass(frozen=True, eq=False, slots=True)
class _Nest:
    """step: of the sums. row, column: instructions of a warp; half, second: the elements of each.
    group, pair: the threads of a warp."""

    step: Axis
    row: Axis
    column: Axis
    half: Axis
    second: Axis
    group: Axis
    pair: Axis
    sums: tuple[Statement, ...]


def tensor_lines(node: For, threads: Sequence[Axis], element: Element) -> list[str]:
    """A loop over the steps of sums in tensor cores. threads: variables of the loops that the
    threads of a block share; element: the text of a load."""
    axes, body = [node.variable], node.body
    while len(body) == 1 and isinstance(inner := body[0], For):
        axes.append(inner.variable)
        body = inner.body
    nest = _Nest(*axes, *threads[-2:], body)  # type: ignore[call-arg, arg-type]
    lines: list[str] = ["{"]
    for number, each in enumerate(nest.sums):
        assert isinstance(each, Store)
        assert isinstance(each.value, Op)
        first, second, total = each.value.operands
        assert isinstance(first, Load)
        assert isinstance(second, Load)
        assert isinstance(total, Load)
        if not first.indices[0].depends_on(nest.row):
            first, second = second, first
        lines += [
            f"  {line}" for line in _sum(nest, node.kind, number, (first, second, total), element)
        ]
    return [*lines, "}"]


def _sum(
    nest: _Nest, kind: LoopKind, number: int, loads: tuple[Load, Load, Load], element: Element
) -> list[str]:
    rows, columns, total = loads
    a, b = f"a_{number}", f"b_{number}"
    row, column = nest.row.name, nest.column.name
    firsts = [
        _part(nest, kind, rows, {nest.half: half}, k, element) for k in (0, 1) for half in (0, 1)
    ]
    own = {nest.pair: affine(0), nest.second: affine(nest.group)}
    seconds = [_part(nest, kind, columns, own, k, element) for k in (0, 1)]
    place = Load(total.source, (total.indices[0].substitute({nest.half: 0, nest.second: 0}),))
    return [
        f"uint32_t {a}[{nest.row.extent}][4], {b}[{nest.column.extent}][2];",
        "#pragma unroll",
        f"for (int {row} = 0; {row} < {nest.row.extent}; {row}++) {{",
        *[f"  {a}[{row}][{at}] = {text};" for at, text in enumerate(firsts)],
        "}",
        "#pragma unroll",
        f"for (int {column} = 0; {column} < {nest.column.extent}; {column}++) {{",
        *[f"  {b}[{column}][{at}] = {text};" for at, text in enumerate(seconds)],
        "}",
        "#pragma unroll",
        f"for (int {row} = 0; {row} < {nest.row.extent}; {row}++) {{",
        "  #pragma unroll",
        f"  for (int {column} = 0; {column} < {nest.column.extent}; {column}++)",
        f"    tf_mma_{SHORT[kind]}(&{element(place)}, {a}[{row}], {b}[{column}]);",
        "}",
    ]


def _part(
    nest: _Nest,
    kind: LoopKind,
    load: Load,
    values: Values,
    upper: int,
    element: Element,
) -> str:
    """What a thread loads of an operand, of the first half of the steps or of the second one."""
    first = (
        affine(nest.pair) + upper * 4
        if kind is LoopKind.TF32
        else affine(nest.pair) * 2 + upper * 8
    )
    count = 1 if kind is LoopKind.TF32 else 2
    texts = []
    for step in [first + at for at in range(count)]:
        place = load.indices[0].substitute({**values, nest.step: step})
        texts.append(element(Load(load.source, (place,))))
    return f"tf_part_{SHORT[kind]}({', '.join(texts)})"


SHORT = {LoopKind.TF32: "tf32", LoopKind.BFLOAT16: "bf16", LoopKind.FLOAT16: "f16"}
assert SHORT.keys() == TENSOR_STEPS.keys()
