"""CUDA text from loop nests that are mapped to a device: a kernel for each different one.

The same text compiles with nvcc and with the emulator, which runs it on the CPU: what differs
between the two are the macros of `cuda_prelude.h`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tinyfuse.emit.c import KernelText, has_fma, shipped
from tinyfuse.emit.comments import kernel_comment
from tinyfuse.emit.ctext import CText, Precedence, call, enclosed, type_text
from tinyfuse.emit.expression import Expressions
from tinyfuse.emit.launch import (
    ChoiceLaunches,
    CudaBuffer,
    CudaProgram,
    Launch,
    LaunchStep,
    LaunchSteps,
    RepeatLaunches,
    WhileLaunches,
)
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.emit.scalar import op_text
from tinyfuse.emit.tensors import tensor_lines
from tinyfuse.emit.zeros import Zeros
from tinyfuse.graph.scalar_ops import FMA
from tinyfuse.loops.ir import (
    ON_DEVICE,
    TENSOR_STEPS,
    Buffer,
    Choice,
    Combine,
    Copy,
    For,
    HalveRow,
    Kernel,
    LoopKind,
    Loops,
    Repeat,
    Row,
    Rows,
    Scope,
    Statement,
    Steps,
    Store,
    Sync,
    walk_statements,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import indices_of
from tinyfuse.lower.device import runs_alone
from tinyfuse.stage.expr import Const, Expr, Index, Op
from tinyfuse.stage.index import Affine, Axis, affine, index_text

WARP = 32
# CUDA's types of 16 bytes whose parts are of a dtype.
VECTORS = {"float32": "float4", "float64": "double2", "int32": "int4", "uint32": "uint4"}
VECTOR_BYTES = 16
MOST_INT = 2**31 - 1
ALL_LANES = "0xffffffffu"
_WRAPPING = {"add": "+", "subtract": "-", "multiply": "*", FMA: ""}


def emit_cuda(loops: Loops) -> CudaProgram:
    """The CUDA of one program, mapped by `lower.device`."""
    return emit_cuda_many([loops])[0]


def emit_cuda_many(programs: Sequence[Loops]) -> tuple[CudaProgram, ...]:
    """The CUDA of several programs, whose kernels' names differ, in one text."""
    used: dict[str, None] = {}
    functions = [text for loops in programs for text in _kernels(loops, used).values()]
    prelude = prelude_text(used).rstrip("\n")
    for old, new in (("static inline", "static __device__ inline"), ("restrict ", "__restrict__ ")):
        prelude = prelude.replace(old, new)
    tensors = any("tf_mma_" in each for each in functions)
    heads = shipped("cuda_prelude.h"), prelude, shipped("cuda_tensor.h") if tensors else ""
    parts = (*heads, *functions)
    text = "\n\n".join(part for part in parts if part) + "\n"
    return tuple([_program(loops, text) for loops in programs])


def cuda_kernel_texts(loops: Loops) -> tuple[str, ...]:
    """The function of each kernel, as in the text of the whole program."""
    texts = _kernels(loops, {})
    return tuple([texts[kernel.function] for kernel in loops.kernels])


def _kernels(loops: Loops, used: dict[str, None]) -> dict[Kernel, str]:
    """The text of each kernel that is no other one's."""
    fused = has_fma(loops)
    callers: dict[Kernel, list[Kernel]] = {}
    for kernel in loops.kernels:
        callers.setdefault(kernel.function, []).append(kernel)
    return {
        kernel: CudaKernelText(kernel, used, fused).function([k for k in others if k is not kernel])
        for kernel, others in callers.items()
    }


# --- what is launched -----------------------------------------------------------------------------


def _program(loops: Loops, text: str) -> CudaProgram:
    buffers = [CudaBuffer(b.name, b.dtype, b.size, "input") for b in loops.inputs]
    buffers += [CudaBuffer(b.name, b.dtype, b.size, "output") for b in loops.outputs]
    for buffer, offset in loops.scratch:
        buffers.append(CudaBuffer(buffer.name, buffer.dtype, buffer.size, "scratch", offset))
    known = (*loops.inputs, *loops.outputs, *[buffer for buffer, _ in loops.scratch])
    places = {buffer: place for place, buffer in enumerate(known)}
    steps = _launches(loops.steps or Steps(loops.kernels), places)
    return CudaProgram(loops.name, text, tuple(buffers), steps, loops.scratch_bytes)


def _launches(steps: Steps, places: Mapping[Buffer, int]) -> LaunchSteps:
    body: list[LaunchStep] = []
    for step in steps.body:
        if isinstance(step, Kernel):
            arguments = tuple([places[buffer] for buffer in step.parameters])
            grid, block = (step.blocks, 1, 1), (step.threads, 1, 1)
            body.append(Launch(step.function.name, grid, block, 0, arguments))
        elif isinstance(step, Choice):
            branches = tuple([_launches(branch, places) for branch in step.branches])
            body.append(ChoiceLaunches(places[step.index], branches))
        else:
            body.append(_repeated(step, places))
    moves = tuple([(places[to], places[source]) for to, source in steps.moves])
    return LaunchSteps(tuple(body), moves)


def _repeated(step: Repeat, places: Mapping[Buffer, int]) -> LaunchStep:
    inside = _launches(step.steps, places)
    if step.test:
        return WhileLaunches(places[step.test], inside)
    assert step.extent is not None
    turn, counted = [None if each is None else places[each] for each in (step.turn, step.count)]
    return RepeatLaunches(step.extent, inside, turn, counted)


# --- kernels --------------------------------------------------------------------------------------


class CudaKernelText(KernelText):
    """The text of one kernel."""

    def __init__(self, kernel: Kernel, used: dict[str, None], fused: bool) -> None:
        super().__init__(kernel, used, fused, several=False)
        expressions = CudaExpressions(self.locals, used, fused, True)
        self.expressions = expressions
        self.index = "int" if _fits_int(kernel) else "long"
        self.partial: dict[str, None] = {}
        self.threads: list[Axis] = []  # variables of the loop around that threads share
        expressions.threads = {
            each.variable: affine(0)
            for each in walk_statements(kernel.body)
            if isinstance(each, For) and each.kind is LoopKind.THREADS
        }

    def function(self, others: Sequence[Kernel]) -> str:
        """Its text; others: kernels that are it with other arrays."""
        kernel = self.kernel
        names = ", ".join([self.parameter(buffer) for buffer in kernel.parameters])
        least = f", {kernel.at_once}" if kernel.at_once else ""
        bounds = f"__launch_bounds__({kernel.threads}{least})"
        head = f'extern "C" __global__ void {bounds} {kernel.name}({names}) {{'
        body = self.block(kernel.body, "  ")
        shared = [f"  {line}" for line in self.partial]
        comment = [*kernel_comment(kernel, others), f"// {launch_text(kernel)}"]
        return "\n".join([*comment, head, *shared, *body, "}"])

    def parameter(self, buffer: Buffer) -> str:
        macro = "TF_OUT" if buffer in self.kernel.written else "TF_IN"
        return f"{macro}({type_text(buffer.dtype, self.used)}) {buffer.name}"

    def declaration(self, buffer: Buffer) -> str:
        if buffer.scope is Scope.SHARED:
            dtype = type_text(buffer.dtype, self.used)
            return f"TF_SHARED({dtype}, {buffer.name}, [{buffer.size}])"
        if buffer.scope is Scope.LOCAL:
            dtype = type_text(buffer.dtype, self.used)
            return f"{dtype} {buffer.name}[{buffer.size // self.kernel.threads}]"
        if buffer.scope is Scope.STACK and buffer.nbytes == VECTOR_BYTES:
            return f"alignas({VECTOR_BYTES}) {super().declaration(buffer)}"
        return super().declaration(buffer)

    def assignment(self, node: Store) -> str:
        value = node.value
        if (
            not isinstance(value, Op)
            or value.name not in _WRAPPING
            or not _may_overflow(value.dtype)
        ):
            return super().assignment(node)
        offset = "" if node.offset is None else self.value(node.offset)
        target = self.expressions.element(node.buffer, node.position, offset)
        return f"{target} = {self.value(value)}"

    def row(self, row: Row | Rows) -> str:
        name = row.buffer.name if row.buffer.scope is Scope.STACK else f"TF_RAW({row.buffer.name})"
        position = index_text(row.position)
        return name if position == "0" else f"{name} + {position}"

    def statement(self, node: Statement, indent: str) -> list[str]:
        if isinstance(node, Sync):
            return [f"{indent}__syncthreads();"]
        if isinstance(node, Copy):
            return [f"{indent}{self.copy(node)};"]
        if isinstance(node, Combine):
            return [indent + line for line in self.combine(node)]
        return super().statement(node, indent)

    def loop(self, node: For, indent: str) -> list[str]:
        if node.kind in ON_DEVICE:
            lines = self.shared_loop(node)
        elif node.kind in TENSOR_STEPS:
            self.used["uint32_t"] = None
            lines = tensor_lines(node, self.threads, self.value)
        else:
            start = node.variable.start
            last = f"{start + node.variable.extent}"
            if node.count is not None:
                first = f"{start} + " if start else ""
                last = f"{first}({self.value(node.count)})"
            lines = self.steps(node, f"{start}", last)
        return [indent + line for line in lines]

    def steps(self, node: For, first: str, last: str) -> list[str]:
        name = node.variable.name
        index = self.index if node.count is None else "long"
        head = f"for ({index} {name} = {first}; {name} < {last}; {name}++)"
        unrolled = ["#pragma unroll"] if node.kind is LoopKind.UNROLL else []
        return [*unrolled, *_braced(head, self.inside(node.body))]

    def inside(self, body: Sequence[Statement]) -> list[str]:
        return self.block(body, "  ")

    def shared_loop(self, node: For) -> list[str]:
        """A loop, with those right inside it of the same kind, whose steps are shared."""
        axes, body = [node.variable], node.body
        while len(body) == 1 and isinstance(inner := body[0], For) and inner.kind is node.kind:
            axes.append(inner.variable)
            body = inner.body
        if node.kind is LoopKind.BLOCKS:
            return [*self.counters(axes, "blockIdx.x"), *self.block(body, "")]
        threads, self.threads = self.kernel.threads, axes
        total = prod([axis.extent for axis in axes])
        first, step = "threadIdx.x", threads
        if node.kind is LoopKind.WARPS:
            first, step = f"threadIdx.x / {WARP}", threads // WARP
        if node.kind is LoopKind.GRID:
            first, step = f"blockIdx.x * {threads} + threadIdx.x", threads * self.kernel.blocks
        index = "long" if total + step > MOST_INT else self.index
        if index == "long":
            first = first.replace("blockIdx.x *", "(long)blockIdx.x *")
        lines_of = self.of_warp if node.kind is LoopKind.WARPS else self.inside
        if total == 1:
            those = f"< {WARP}" if node.kind is LoopKind.WARPS else "== 0"
            return _braced(f"if (threadIdx.x {those})", lines_of(body))
        (axis, *others) = axes
        if others or axis.start:
            name = unused("step", self.taken)
            inside = [f"  {line}" for line in self.counters(axes, name)]
            inside += lines_of(body)
            self.taken.discard(name)
        else:
            name, inside = axis.name, lines_of(body)
        if total <= step:
            value = f"const {index} {name} = {first};"
            test = [] if total == step else [f"if ({name} < {total}) {{"]
            lines = [value, *test, *inside, *(["}"] if test else [])]
            return _scoped(lines) if test else ["{", *[f"  {value}"], *inside, "}"]
        head = f"for ({index} {name} = {first}; {name} < {total}; {name} += {step})"
        return _braced(head, inside)

    def of_warp(self, body: Sequence[Statement]) -> list[str]:
        """What all lanes of a warp do, which halve rows, then what the first of them does."""
        halved = [each for each in body if isinstance(each, HalveRow)]
        names = [unused(name, self.taken) for name in ("lane", *["sum"] * len(halved))]
        lane, *sums = names
        lines = [f"const int {lane} = threadIdx.x % {WARP};"]
        for node, name in zip(halved, sums, strict=True):
            lines += self.halves(node, name, lane)
        pairs = [(node.row, name) for node, name in zip(halved, sums, strict=True)]
        element = self.expressions.element
        stores = [f"  {element(row.buffer, row.position)} = {name};" for row, name in pairs]
        lines += _braced(f"if ({lane} == 0)", [*stores, *self.inside(body[len(halved) :])])
        self.taken.difference_update(names)
        return [f"  {line}" for line in lines]

    def halves(self, node: HalveRow, name: str, lane: str) -> list[str]:
        """Of a row, two elements of each lane, then those of the lanes by shuffles."""
        dtype = type_text(node.row.buffer.dtype, self.used)
        places = [node.row.position + Axis(lane, WARP) + at for at in range(0, node.extent, WARP)]
        parts = [self.expressions.element(node.row.buffer, place) for place in places]
        return [
            f"{dtype} {name} = {' + '.join(parts)};",
            f"for (int apart = {WARP // 2}; apart > 0; apart /= 2)",
            f"  {name} += __shfl_down_sync({ALL_LANES}, {name}, apart);",
        ]

    def counters(self, axes: Sequence[Axis], number: str) -> list[str]:
        """The variables of loops that are one, from the number of its step."""
        lines: list[str] = []
        inner = prod([axis.extent for axis in axes])
        for place, axis in enumerate(axes):
            inner //= axis.extent
            text = f"{number} / {inner}" if inner > 1 else number
            if place and axis.extent > 1:
                text = f"{text} % {axis.extent}"
            text = "0" if axis.extent == 1 else text
            start = f" + {axis.start}" if axis.start else ""
            lines.append(f"const {self.index} {axis.name} = {text}{start};")
        return lines

    def copy(self, node: Copy) -> str:
        """One load or store of 16 bytes between a thread's own memory and the device's."""
        kind = VECTORS[node.row.buffer.dtype.name]
        if node.row.buffer.scope is Scope.STACK:
            own, place = node.row.buffer.name, index_text(node.to.position)
            return f"TF_STORE({kind}, &{node.to.buffer.name}[{place}], *({kind} *){own})"
        own, place = node.to.buffer.name, index_text(node.row.position)
        return f"*({kind} *){own} = TF_LOAD({kind}, &{node.row.buffer.name}[{place}])"

    def combine(self, node: Combine) -> list[str]:
        """Halving by shuffles in each warp, then of the results of all warps."""
        buffer, threads = node.buffer, self.kernel.threads
        dtype = type_text(buffer.dtype, self.used)
        name, wide = buffer.name, "int" if buffer.dtype.itemsize < 4 else dtype
        other = f"({dtype})__shfl_xor_sync({ALL_LANES}, ({wide}){name}, apart)"
        lines = [
            f"for (int apart = {WARP // 2}; apart > 0; apart /= 2)",
            f"  {name} = {self.operation(node, name, other)};",
        ]
        if threads > WARP:
            partial = f"partial_{wide.removesuffix('_t')}"
            self.partial[f"TF_SHARED({wide}, {partial}, [{self.kernel.threads // WARP}]);"] = None
            element = f"({dtype}){partial}[warp]"
            lines += [
                f"if (threadIdx.x % {WARP} == 0)",
                f"  {partial}[threadIdx.x / {WARP}] = {name};",
                "__syncthreads();",
                f"for (int warp = 0; warp < {threads // WARP}; warp++)",
                f"  {name} = {self.operation(node, name, element)};",
            ]
        return lines

    def operation(self, node: Combine, first: str, second: str) -> str:
        dtype = node.buffer.dtype
        operands = [CText(first), CText(second, Precedence.UNARY)]
        return op_text(node.name, operands, [dtype, dtype], dtype, self.used).text


def launch_text(kernel: Kernel) -> str:
    """How a kernel is launched, and what of it no two threads share."""
    blocks = "1 block" if kernel.blocks == 1 else f"{kernel.blocks} blocks"
    alone = "; one thread goes through what cannot be shared" if runs_alone(kernel) else ""
    return f"{blocks} of {kernel.threads} threads{alone}"


def _braced(head: str, inside: Sequence[str]) -> list[str]:
    return [head + " {", *inside, "}"]


def _scoped(lines: Sequence[str]) -> list[str]:
    """A value, a test of it, and what is inside the test."""
    return ["{", *[f"  {line}" for line in lines], "}"]


def _fits_int(kernel: Kernel) -> bool:
    """Whether 32 bits hold all indices, and all that they are made of."""
    return all(_largest(index) <= MOST_INT for index in indices_of(kernel.body)) and all(
        buffer.size <= MOST_INT for buffer in kernel.parameters
    )


def _largest(index: Affine) -> int:
    """More than any part of an index is."""
    total = abs(index.constant)
    for term, factor in index.terms:
        first, last = term.interval()
        total += abs(factor) * max(abs(first), abs(last))
        if not isinstance(term, Axis):
            total = max(total, _largest(term.index))
    return total


class CudaExpressions(Expressions):
    """Expressions of a kernel: sums and products of signed integers wrap around, which nvcc has no
    flag for; indices as values have 64 bits."""

    threads: Mapping[Axis, Affine] = {}  # the variables of loops that the threads of a block share

    def element(self, buffer: Buffer, position: Affine, offset: str = "") -> str:
        """Of what each thread has, its own part: its number is no part of the place."""
        if buffer.scope is Scope.LOCAL:
            position = position.substitute(self.threads)
        return super().element(buffer, position, offset)

    def _node(self, node: Expr, done: Mapping[Expr, CText], zeros: Zeros) -> CText:
        if isinstance(node, Op) and node.name == "select":
            done = self._of_one_type(node, done)
        text = super()._node(node, done, zeros)
        if isinstance(node, Index):
            return CText(f"(long){enclosed(text, Precedence.UNARY)}", Precedence.UNARY)
        if not isinstance(node, Op) or not _may_overflow(node.dtype):
            return text
        operands = [done[part] for part in node.parts]
        return self._wrapping(node, operands) if node.name in _WRAPPING else text

    def _of_one_type(self, node: Op, done: Mapping[Expr, CText]) -> Mapping[Expr, CText]:
        """The parts of a choice, of which C++ looks for a type that both can have: not that of a
        short literal, where the other is an element of a checked array."""
        literals = [part for part in node.parts[1:] if isinstance(part, Const)]
        if node.dtype.kind not in "iu" or node.dtype.itemsize < 8:
            return done
        dtype = type_text(node.dtype, self.used)
        typed: dict[Expr, CText] = {
            part: CText(f"({dtype}){enclosed(done[part], Precedence.UNARY)}", Precedence.UNARY)
            for part in literals
        }
        return {**done, **typed}

    def _wrapping(self, node: Op, operands: Sequence[CText]) -> CText:
        own, bits = type_text(node.dtype, self.used), max(32, 8 * node.dtype.itemsize)
        unsigned = f"uint{bits}_t"
        self.used[unsigned] = None
        parts = [f"({unsigned}){enclosed(part, Precedence.UNARY)}" for part in operands]
        if node.name == FMA:
            return call(f"({own})", f"{parts[0]} * {parts[1]} + {parts[2]}")
        return call(f"({own})", f" {_WRAPPING[node.name]} ".join(parts))


def _may_overflow(dtype: np.dtype) -> bool:
    """Whether C++ computes with integers in a signed type that does not hold all results: of 16
    bits, unsigned, in one of 32."""
    kind, itemsize = dtype.kind, dtype.itemsize
    return (kind == "i" and itemsize >= 4) or (kind == "u" and itemsize == 2)
