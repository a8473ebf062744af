"""The C of loops through buffers in vector registers: a statement for each vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyfuse.emit.ctext import CText, Precedence, call, enclosed, type_text
from tinyfuse.emit.expression import Expressions
from tinyfuse.emit.prelude import vector_type
from tinyfuse.loops.ir import Buffer, For, Let, Local, Scope, Store
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Expr, Load, Op, depends_on, is_guard, walk
from tinyfuse.stage.index import Affine, Axis, affine, index_text

_OF_NUMBERS = {
    "add": ("+", Precedence.ADDITIVE),
    "subtract": ("-", Precedence.ADDITIVE),
    "multiply": ("*", Precedence.MULTIPLICATIVE),
    "divide": ("/", Precedence.MULTIPLICATIVE),
}
_OF_BOOLS = {"add": ("|", Precedence.BITWISE_OR), "multiply": ("&", Precedence.BITWISE_AND)}


def declaration(buffer: Buffer, used: dict[str, None]) -> str:
    length = buffer.size // buffer.lanes
    return f"{_type(buffer, used)} {buffer.name}[{length}]"


def variable(buffer: Buffer, place: int) -> str:
    return f"{buffer.name}[{place // buffer.lanes}]"


def tile_of(loop: For) -> Buffer | None:
    """A buffer in vector registers that a loop goes through."""
    for statement in loop.body:
        if isinstance(statement, Store) and statement.buffer.scope is Scope.VECTORS:
            return statement.buffer
        for value in values_of(statement):
            for node in walk(value):
                if isinstance(node, Load) and node.source.scope is Scope.VECTORS:
                    return node.source
    return None


def _type(tile: Buffer, used: dict[str, None]) -> str:
    name = vector_type(type_text(tile.dtype, used), tile.lanes)
    used[name] = None
    return name


def _infix(symbol: str, precedence: Precedence, first: CText, second: CText) -> CText:
    left = Precedence.UNARY if symbol in "&|" else precedence  # nobody knows which binds tighter
    right = enclosed(second, precedence + 1)
    return CText(f"{enclosed(first, left)} {symbol} {right}", precedence)


def _choice(kind: str, condition: CText, chosen: CText, other: CText) -> CText:
    test = enclosed(condition, Precedence.CONDITIONAL + 1)
    first, second = (_of_type(each, kind) for each in (chosen, other))
    return CText(f"{test} ? {first} : {second}", Precedence.CONDITIONAL)


def _of_type(vector: CText, kind: str) -> str:
    """gcc takes a sum of vectors that lie at any element for one of vectors that do not."""
    is_operand = vector.precedence >= Precedence.UNARY
    return vector.text if is_operand else f"({kind}){enclosed(vector, Precedence.UNARY)}"


class VectorLoop:
    """The statements of a loop through `tile`, vector by vector.

    expressions: writes what is the same in all lanes. names: of locals. taken: all that have a
    meaning in the kernel.
    """

    def __init__(
        self,
        loop: For,
        tile: Buffer,
        expressions: Expressions,
        names: Mapping[Local, str],
        taken: set[str],
        used: dict[str, None],
    ):
        self.loop, self.tile, self.names = loop, tile, names
        self.expressions, self.used = expressions, used
        self.type = _type(tile, used)
        self.lane = unused("l", taken)
        self.own = {each.local for each in loop.body if isinstance(each, Let)}
        self.stored = {each.buffer for each in loop.body if isinstance(each, Store)}

    def lines(self) -> list[str]:
        axis, lanes = self.loop.variable, self.tile.lanes
        whole = axis.extent - axis.extent % lanes
        found: list[str] = []
        for step in range(axis.start, axis.start + whole, lanes):
            lines = [line for each in self.loop.body for line in self.statement(each, step)]
            found += ["{", *[f"  {line}" for line in lines], "}"] if self.own else lines
        for store in self.loop.body if whole < axis.extent else ():
            assert isinstance(store, Store)
            found += self.rest(store, axis.start + whole, axis.extent - whole)
        return found

    def statement(self, node: object, step: int) -> Iterator[str]:
        if isinstance(node, Let):
            yield f"const {self.type} {self.names[node.local]} = {self.value(node.value, step)};"
            return
        assert isinstance(node, Store)
        target = self.element(node.buffer, node.position, step).text
        yield f"{target} = {self.value(node.value, step)};"

    def rest(self, store: Store, first: int, count: int) -> list[str]:
        """The last elements, fewer than a vector, of what is only copied from a tile."""
        assert isinstance(store.value, Load)
        lane = self.lane
        at = {self.loop.variable: affine(Axis(lane, count)) + first}
        target = self.expressions.element(store.buffer, store.position.substitute(at))
        source = self.element(store.value.source, store.value.indices[0], first).text
        return [
            f"for (long {lane} = 0; {lane} < {count}; {lane}++)",
            f"  {target} = {source}[{lane}];",
        ]

    def value(self, root: Expr, step: int) -> str:
        done: dict[Expr, CText] = {}
        tests = {part for node in walk(root) if is_guard(node) for part in walk(node.parts[0])}
        for node in walk(root):
            done[node] = (
                self.expressions.text(node) if node in tests else self.node(node, done, step)
            )
        return done[root].text

    def node(self, node: Expr, done: Mapping[Expr, CText], step: int) -> CText:
        if isinstance(node, Op):
            operands = [done[each] for each in node.operands]
            if is_guard(node):  # the same in all lanes
                return _choice(self.type, *operands)
            return self.operation(node, operands)
        if isinstance(node, Local) and node in self.own:
            return CText(self.names[node])
        if isinstance(node, Load) and depends_on(node, self.loop.variable):
            return self.element(node.source, node.indices[0], step)
        return call(self.function("tf_splat"), self.expressions.text(node).text)

    def operation(self, node: Op, operands: Sequence[CText]) -> CText:
        infix = _OF_BOOLS if node.dtype.kind == "b" else _OF_NUMBERS
        if node.name in infix:
            return _infix(*infix[node.name], *operands)
        if node.name == "fma" and node.dtype.kind != "f":
            first, second, third = operands
            product = _infix(*infix["multiply"], first, second)
            return _infix(*infix["add"], product, third)
        return call(self.function(f"tf_{node.name}"), *[each.text for each in operands])

    def element(self, buffer: Buffer, place: Affine, step: int) -> CText:
        """The vector of a buffer, from what an index is in a step on."""
        first = place.substitute({self.loop.variable: affine(step)})
        if buffer.scope is Scope.VECTORS:
            return CText(variable(buffer, first.constant))
        constant = "" if buffer in self.stored else "const "
        address = f"&{buffer.name}[{index_text(first)}]"
        return CText(f"*({constant}{self.type} *){address}", Precedence.UNARY)

    def function(self, name: str) -> str:
        function = f"{name}_{self.type}"
        self.used[function] = None
        return function
