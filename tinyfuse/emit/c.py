"""C text from loop nests: a function for each different kernel, and an entry that calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tinyfuse.dtypes import BOOL
from tinyfuse.emit import vectors
from tinyfuse.emit.alternating import subtracted_products
from tinyfuse.emit.angles import lines_with_angles
from tinyfuse.emit.blocks import BlockLoop, fits_a_block, goes_by_blocks, streams
from tinyfuse.emit.comments import entry_comment, kernel_comment
from tinyfuse.emit.ctext import SUFFIXES, call, type_text
from tinyfuse.emit.decided_places import DecidedPlaces
from tinyfuse.emit.entry import EntryCalls
from tinyfuse.emit.exponentials import line_with_quotients, lines_with_exponentials
from tinyfuse.emit.expression import Expressions, InLoop
from tinyfuse.emit.interleaving import INTERLEAVED, has_long_steps
from tinyfuse.emit.jumps import is_chain, is_usual
from tinyfuse.emit.neighbours import MASKS, TURNED, masks_neighbours, turns_combined
from tinyfuse.emit.pieces import PIECES, writes_pieces
from tinyfuse.emit.prelude import prelude_text, runtime_c
from tinyfuse.emit.vectors import VectorLoop
from tinyfuse.loops.divided_exponentials import divided_exponentials
from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    For,
    HalveRow,
    If,
    Kernel,
    Let,
    LoopKind,
    Loops,
    Prefetch,
    Row,
    Rows,
    Scope,
    SortRow,
    Statement,
    Steps,
    Store,
    Transpose,
    While,
    walk_statements,
)
from tinyfuse.loops.names import local_names, names_in
from tinyfuse.loops.rewrite import values_of
from tinyfuse.loops.steps import buffers_in
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Expr, Load, Op, walk
from tinyfuse.stage.index import index_text
from tinyfuse.stage.ir import Sort

LONG_LOOP = (
    32  # steps: of those that are fewer, C compilers write some out before they make vectors
)
# Where C's meaning is numpy's, but for bool.
_UPDATES = {"add": "+=", "multiply": "*=", "bitwise_or": "|="}


@dataclass(frozen=True, slots=True)
class CModule:
    """A translation unit. entries: the functions to call, one for each program in it."""

    text: str
    entries: tuple[str, ...]

    @property
    def entry(self) -> str:
        return self.entries[0]


def emit_c(loops: Loops, watched: bool = False) -> CModule:
    """The C of one program; watched: as in `emit_c_many`."""
    return emit_c_many([loops], watched)


def emit_c_many(programs: Sequence[Loops], watched: bool = False) -> CModule:
    """The C of several programs in one translation unit; their names must differ.

    watched: whether their entries take a `tf_watch` after their arrays and tell it of each moment
    between two kernels.
    """
    used: dict[str, None] = {}
    tasks: dict[Kernel, str] = {}
    functions = [text for loops in programs for text in _functions(loops, used, tasks, watched)]
    shared = any(kernel.parallel for loops in programs for kernel in loops.kernels)
    watch = shipped("watch.h") if watched else ""
    head = [prelude_text(used).rstrip("\n"), _entry_types(shared), watch]
    text = "\n\n".join(part for part in (*head, *functions) if part) + "\n"
    return CModule(text, tuple(loops.name for loops in programs))


def kernel_texts(loops: Loops) -> tuple[str, ...]:
    """The function of each kernel, as in the C of the whole program."""
    texts = _kernels(loops, {})
    return tuple([texts[kernel.function] for kernel in loops.kernels])


def _kernels(loops: Loops, used: dict[str, None]) -> dict[Kernel, str]:
    """The functions, each once."""
    fused, several = has_fma(loops), len(loops.kernels) > 1
    callers: dict[Kernel, list[Kernel]] = {}
    for kernel in loops.kernels:
        callers.setdefault(kernel.function, []).append(kernel)
    return {
        kernel: KernelText(kernel, used, fused, several).function(
            [each for each in others if each is not kernel]
        )
        for kernel, others in callers.items()
    }


def _entry_types(shared: bool) -> str:
    return shipped("entry.h") if shared else "typedef struct tf_pool tf_pool;"


def shipped(name: str) -> str:
    return (runtime_c() / name).read_text().rstrip("\n")


def _functions(
    loops: Loops, used: dict[str, None], tasks: dict[Kernel, str], watched: bool
) -> Iterator[str]:
    """tasks: for each function that is written the name by which threads reach it."""
    written = set(tasks)
    tasks.update(_task_names(loops, tasks))
    for kernel, text in _kernels(loops, used).items():
        if kernel not in written:
            yield text
            if kernel.parallel:
                yield _task(kernel, tasks[kernel])
    yield _entry(loops, tasks, used, watched)


def has_fma(loops: Loops) -> bool:
    return any(
        isinstance(node, Op) and node.name == "fma"
        for kernel in dict.fromkeys(each.function for each in loops.kernels)
        for statement in walk_statements(kernel.body)
        for value in values_of(statement)
        for node in walk(value)
    )


def _task_names(loops: Loops, known: Mapping[Kernel, str]) -> dict[Kernel, str]:
    """A name for the function by which threads reach each parallel kernel that has none yet."""
    buffers = (*loops.inputs, *loops.outputs, *(buffer for buffer, _ in loops.scratch))
    taken = {
        loops.name,
        *(kernel.name for kernel in loops.kernels),
        *(buffer.name for buffer in buffers),
    }
    taken.update(known.values())
    names = {}
    for kernel in dict.fromkeys(each.function for each in loops.kernels):
        if kernel in known:
            continue
        name = f"{kernel.name}_task"
        while name in taken:
            name += "_"
        taken.add(name)
        names[kernel] = name
    return names


def _task(kernel: Kernel, name: str) -> str:
    arguments = [f"buffers[{place}]" for place, _ in enumerate(kernel.parameters)]
    return (
        f"static void {name}(void *const *buffers, long begin, long end) {{\n"
        f"  {kernel.name}({', '.join([*arguments, 'begin', 'end'])});\n"
        "}"
    )


def _entry(loops: Loops, tasks: Mapping[Kernel, str], used: dict[str, None], watched: bool) -> str:
    mentioned = buffers_in(loops.steps or Steps(loops.kernels))
    lines = []
    for number, buffer in enumerate((*loops.inputs, *loops.outputs)):
        if buffer in mentioned:
            lines.append(f"{type_text(buffer.dtype, used)} *{buffer.name} = arrays[{number}];")
    for buffer, offset in loops.scratch:
        place = f"(void *)((char *)scratch + {offset})" if offset else "scratch"
        lines.append(f"{type_text(buffer.dtype, used)} *{buffer.name} = {place};")
    watch = len(loops.inputs) + len(loops.outputs) if watched else None
    lines += EntryCalls(loops, tasks, used, watch).lines()
    body = "".join(f"  {line}\n" for line in lines)
    unused = [
        name
        for name, is_used in (
            ("arrays", watched or any(b.scope is Scope.ARGUMENT for b in mentioned)),
            ("scratch", bool(loops.scratch)),
            ("pool", any(kernel.parallel for kernel in loops.kernels)),
        )
        if not is_used
    ]
    ignored = "".join(f"  (void){name};\n" for name in unused)
    head = f"int {loops.name}(void *const *arrays, void *scratch, const tf_pool *pool)"
    comment = "\n".join(entry_comment(loops))
    return f"{comment}\n{head} {{\n{ignored}{body}  return 0;\n}}"


def _is_of_vectors(statement: Statement) -> bool:
    return isinstance(statement, For) and vectors.tile_of(statement) is not None


def adds_up(kernel: Kernel) -> bool:
    """Whether a floating-point value is made of itself and others, step after step."""
    return any(
        isinstance(node, Load) and node.source is statement.buffer
        for statement in walk_statements(kernel.body)
        if isinstance(statement, Store) and statement.buffer.dtype.kind == "f"
        for node in walk(statement.value)
    )


def may_be_written_out(loop: For) -> bool:
    """Whether a C compiler may make vectors of several statements in a loop, or of its steps side
    by side in an outer one, rather than of one statement in several steps."""
    stores = [statement for statement in loop.body if not isinstance(statement, (Alloc, Let))]
    simple = len(stores) == 1 and isinstance(stores[0], Store)
    return not simple or loop.count is not None or loop.variable.extent < LONG_LOOP


def reduces(loop: For) -> bool:
    """Whether a loop combines what it computes in each step into one value."""
    return any(
        isinstance(node, Load) and node.source is statement.buffer
        for statement in loop.body
        if isinstance(statement, Store) and statement.buffer.scope is Scope.REGISTER
        for node in walk(statement.value)
    )


# What gcc is told of some kernels.
_ATTRIBUTES: Mapping[str, Callable[[Kernel], bool]] = {
    PIECES: writes_pieces,
    MASKS: masks_neighbours,
    TURNED: turns_combined,
    INTERLEAVED: has_long_steps,
}


class KernelText:
    """The function of one kernel.

    several: whether it is one of several. They are never inlined then: gcc 12 takes `restrict` to
    hold longer than the function runs, and reads in the next what this one has still to store.
    """

    def __init__(self, kernel: Kernel, used: dict[str, None], fused: bool, several: bool):
        self.kernel, self.used, self.several = kernel, used, several
        self.locals = local_names(kernel)
        places = DecidedPlaces(kernel)
        subtracted = subtracted_products(kernel)
        self.expressions = Expressions(
            self.locals, used, fused, adds_up(kernel), places, subtracted
        )
        self.parallel = kernel.parallel
        self.taken = {*self.locals.values(), *names_in(kernel)}
        self.streams = False
        self.divided: dict[For, For] = {}
        self.sizes: dict[For, str] = {}

    def function(self, others: Sequence[Kernel]) -> str:
        """Its text; others: kernels that call it with other arrays."""
        names = [self.parameter(buffer) for buffer in self.kernel.parameters]
        names += ["long begin", "long end"] if self.parallel else []
        apart = "__attribute__((noinline)) " if self.several else ""
        for name, is_such in _ATTRIBUTES.items():
            if is_such(self.kernel):
                self.used[name] = None
                apart += f"{name} "
        head = f"static {apart}void {self.kernel.name}({', '.join(names)}) {{"
        body = self.block(self.kernel.body, "  ")
        if self.streams:
            body.append(f"  {self.prelude_call('tf_stream_end')};")
        return "\n".join([*kernel_comment(self.kernel, others), head, *body, "}"])

    def parameter(self, buffer: Buffer) -> str:
        constant = "" if buffer in self.kernel.written else "const "
        return f"{constant}{type_text(buffer.dtype, self.used)} *restrict {buffer.name}"

    def block(self, statements: Sequence[Statement], indent: str) -> list[str]:
        lines: list[str] = []
        previous: Statement | None = None
        self.divided.update(divided_exponentials(statements))
        for statement in statements:
            register = self.register_start(previous, statement)
            if register:
                lines[-1] = indent + register
            else:
                lines += self.statement(statement, indent)
            previous = statement
        return lines

    def register_start(self, previous: Statement | None, statement: Statement) -> str | None:
        """The declaration of a register together with its first value."""
        if not isinstance(previous, Alloc) or not isinstance(statement, Store):
            return None
        if statement.buffer is not previous.buffer or previous.buffer.scope is not Scope.REGISTER:
            return None
        return f"{self.declaration(previous.buffer)} = {self.value(statement.value)};"

    def statement(self, node: Statement, indent: str) -> list[str]:
        if isinstance(node, For):
            return self.loop(node, indent)
        if isinstance(node, Store):
            return [f"{indent}{self.assignment(node)};"]
        if isinstance(node, If):
            return self.choice(node, indent)
        if isinstance(node, While):
            head = f"{indent}while ({self.value(node.test)}) {{"
            return [head, *self.block(node.body, indent + "  "), f"{indent}}}"]
        if isinstance(node, Block):
            return [f"{indent}{{", *self.block(node.body, indent + "  "), f"{indent}}}"]
        if isinstance(node, Let):
            declared = f"const {type_text(node.local.dtype, self.used)} {self.locals[node.local]}"
            return [f"{indent}{declared} = {self.expressions.named(node.local, node.value)};"]
        if isinstance(node, Alloc):
            return [f"{indent}{self.declaration(node.buffer)};"]
        if isinstance(node, SortRow):
            return [f"{indent}{self.sort(node)};"]
        if isinstance(node, Transpose):
            return [f"{indent}{self.transpose(node)};"]
        if isinstance(node, Prefetch):
            size = str(node.extent * node.row.buffer.dtype.itemsize)
            function = "tf_prefetch_far" if node.far else "tf_prefetch"
            return [f"{indent}{self.prelude_call(function, self.row(node.row), size)};"]
        assert isinstance(node, HalveRow), "others are a device's"
        function = f"tf_halve_{node.extent}_{SUFFIXES[node.row.buffer.dtype]}"
        return [f"{indent}{self.prelude_call(function, self.row(node.row))};"]

    def sort(self, node: SortRow) -> str:
        what = "sort" if node.sort is Sort.ELEMENTS else "argsort"
        dtype = node.row.buffer.dtype
        suffix = "uint8" if dtype == BOOL else SUFFIXES[dtype]
        rows = [self.row(row) for row in (node.row, node.to, node.work)]
        if node.block:
            suffix += f"_{node.block.rows}x{node.block.lanes}"
        return self.prelude_call(f"tf_{what}_{suffix}", *rows, str(node.extent))

    def transpose(self, node: Transpose) -> str:
        function = f"tf_transpose_{node.lanes}_uint{8 * node.to.buffer.dtype.itemsize}"
        pairs = [(self.row(rows), str(rows.step)) for rows in (node.to, node.block)]
        return self.prelude_call(function, *pairs[0], *pairs[1], str(node.rows), str(node.columns))

    def prelude_call(self, function: str, *arguments: str) -> str:
        self.used[function] = None
        return call(function, *arguments).text

    def row(self, row: Row | Rows) -> str:
        position = index_text(row.position)
        return row.buffer.name if position == "0" else f"{row.buffer.name} + {position}"

    def assignment(self, node: Store) -> str:
        offset = "" if node.offset is None else self.value(node.offset)
        target, value = self.expressions.element(node.buffer, node.position, offset), node.value
        if isinstance(value, Op) and value.name in _UPDATES and value.dtype != BOOL:
            first = value.operands[0]
            if (
                isinstance(first, Load)
                and first.source is node.buffer
                and first.indices[0] == node.position
                and first.data == (() if node.offset is None else (node.offset,))
            ):
                return f"{target} {_UPDATES[value.name]} {self.value(value.operands[1])}"
        return f"{target} = {self.value(value)}"

    def declaration(self, buffer: Buffer) -> str:
        if buffer.scope is Scope.VECTORS:
            return vectors.declaration(buffer, self.used)
        size = "" if buffer.scope is Scope.REGISTER else f"[{buffer.size}]"
        return f"{type_text(buffer.dtype, self.used)} {buffer.name}{size}"

    def loop(self, node: For, indent: str) -> list[str]:
        tile = vectors.tile_of(node)
        if tile:
            taken = set(self.taken)
            loop = VectorLoop(node, tile, self.expressions, self.locals, taken, self.used)
            lines = loop.lines()
            return [indent + line for line in lines]
        start = node.variable.start
        first, last = f"{start}", f"{start + node.variable.extent}"
        if node.count is not None:
            last = self.value(node.count)
        if node is self.parallel:
            first, last = "begin", "end"
        self.streams = self.streams or streams(node)
        if node in self.divided:
            lines = [line_with_quotients(node, self)]
        elif goes_by_blocks(node):
            single = node is not self.parallel and fits_a_block(node)
            taken = self.taken if single else set(self.taken)
            lines = BlockLoop(node, self, taken, single).lines(first, last)
        else:
            shared = node is self.parallel
            rows = None if shared else lines_with_exponentials(node, self, self.taken)
            lines = rows or self.steps(node, first, last)
        return [indent + line for line in lines]

    def steps(self, node: For, first: str, last: str) -> list[str]:
        found = lines_with_angles(node, self, first, last)
        return found or self.plain_steps(node, first, last)

    def plain_steps(self, node: For, first: str, last: str) -> list[str]:
        name = node.variable.name
        head = f"for (long {name} = {first}; {name} < {last}; {name}++)"
        expressions = self.expressions
        around = expressions.inside
        lane = node.variable if node.kind is LoopKind.VECTOR else None
        expressions.inside = InLoop(may_be_written_out(node), reduces(node), lane, is_chain(node))
        body = self.block(node.body, "  ")
        expressions.inside = around
        begun = [line for line in body if line[2] not in " }"]  # the first line of each statement
        if (
            len(begun) == 1
            and not isinstance(node.body[0], (Alloc, If, Let))
            and not _is_of_vectors(node.body[0])
        ):
            return [head, *body]
        return [head + " {", *body, "}"]

    def choice(self, node: If, indent: str) -> list[str]:
        test = self.value(node.test)
        test = f"__builtin_expect({test}, 1)" if is_usual(node) else test
        lines = [f"{indent}if ({test}) {{", *self.block(node.then, indent + "  ")]
        otherwise = node.otherwise
        while len(otherwise) == 1 and isinstance(otherwise[0], If):
            inner = otherwise[0]
            lines += [f"{indent}}} else if ({self.value(inner.test)}) {{"]
            lines += self.block(inner.then, indent + "  ")
            otherwise = inner.otherwise
        if otherwise:
            lines += [f"{indent}}} else {{", *self.block(otherwise, indent + "  ")]
        return [*lines, f"{indent}}}"]

    def value(self, node: Expr) -> str:
        return self.expressions.text(node).text
