"""Where in the user's file a value is computed: the line, its text, the variable it is bound to."""

from __future__ import annotations

import ast
import bisect
import linecache
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType

import numpy as np

from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the user's code.

    statement: the whole statement as written, dedented, perhaps of several lines; of a compound
    statement (`for`, `if`, `with`) its first part, up to the colon.
    expression: the text of the part that computes the value.
    name: the variable, where the expression is the whole right side of an assignment to it.
    names: the variables of `q, r = np.divmod(x, y)`, which takes a value apart.
    Texts are empty and names are None where the source can't be read.
    """

    file: str
    line: int
    function: str
    statement: str = ""
    expression: str = ""
    name: str | None = None
    names: tuple[str | None, ...] = ()


UNKNOWN = Source("<unknown>", 0, "<unknown>")

_INTERNAL = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep for path in (__file__, np.__file__)
)


class _Function:
    """What is known of a code object. Holds it, so that its id stays its own."""

    __slots__ = ("code", "internal", "positions", "sources", "statements")

    def __init__(self, code: CodeType):
        self.code = code
        self.internal = code.co_filename.startswith(_INTERNAL)
        self.sources: dict[int, Source] = {}  # by instruction
        self.positions: list[tuple[int | None, ...]] | None = None  # by instruction / 2
        self.statements: list[_Statement] | None = None  # in order of the text


# By id: code objects of different files can be equal.
_functions: dict[int, _Function] = {}
_LIMIT = 20_000  # functions that are made again and again must not fill the memory

# CPython 3.11 counts how deep a tree is in one place for all threads, and raises SystemError where
# two parse at once: https://github.com/python/cpython/issues/106905.
_parsing = threading.Lock()


def _renew_lock() -> None:
    global _parsing
    _parsing = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # another thread may have held it


def here() -> Source:
    """The place in the innermost frame that belongs neither to tinyfuse nor to numpy."""
    frame = users_frame()
    if frame is None:
        return UNKNOWN
    function, at = _function_of(frame.f_code), frame.f_lasti
    return function.sources.get(at) or _find(function, at)


def users_frame() -> FrameType | None:
    """The innermost frame that belongs neither to tinyfuse nor to numpy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _function_of(frame.f_code).internal:
        frame = frame.f_back
    return frame


def location(source: Source) -> str:
    """`file.py:12, in softmax`, for messages."""
    return f"{os.path.basename(source.file)}:{source.line}, in {source.function}"


def _function_of(code: CodeType) -> _Function:
    known = _functions.get(id(code))
    if known is None:
        if len(_functions) >= _LIMIT:
            _functions.clear()
        known = _functions[id(code)] = _Function(code)
    return known


Extent = tuple[
    int, int, int, int
]  # first line, first column, last line, last column; in UTF-8 bytes


def _find(function: _Function, instruction: int) -> Source:
    source = function.sources[instruction] = _source_of(function, instruction)
    return source


def _source_of(function: _Function, instruction: int) -> Source:
    code = function.code
    extent = _extent_of(function, instruction)
    place = code.co_filename, extent[0] if extent else code.co_firstlineno, code.co_name
    statement = _statement_around(function, extent) if extent else None
    if extent is None or statement is None:
        return Source(*place)
    lines = linecache.getlines(code.co_filename)
    name, names = statement.bound(extent)
    return Source(
        *place, _text(lines, statement.extent), _text(lines, extent), name=name, names=names
    )


def _extent_of(function: _Function, instruction: int) -> Extent | None:
    if function.positions is None:
        function.positions = list(function.code.co_positions())
    if instruction // 2 >= len(function.positions):
        return None
    line, last_line, column, last_column = function.positions[instruction // 2]
    if line is None or last_line is None or column is None or last_column is None:
        return None
    return line, column, last_line, last_column


def _text(lines: Sequence[str], extent: Extent) -> str:
    """A piece of a file; its later lines are indented relative to the line it begins in."""
    first, column, last, last_column = extent
    chosen = [line.encode() for line in lines[first - 1 : last]]
    if not chosen:
        return ""
    indent = _indent(lines[first - 1])
    chosen[-1] = chosen[-1][:last_column]
    texts = [line.decode(errors="replace").rstrip() for line in [chosen[0][column:], *chosen[1:]]]
    return "\n".join([texts[0], *[line[min(indent, _indent(line)) :] for line in texts[1:]]])


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement's extent, and which variables its expressions are bound to."""

    extent: Extent
    names: dict[Extent, str]
    tuples: dict[Extent, tuple[str | None, ...]]

    def bound(self, extent: Extent) -> tuple[str | None, tuple[str | None, ...]]:
        return self.names.get(extent), self.tuples.get(extent, ())


def _statement_around(function: _Function, extent: Extent) -> _Statement | None:
    """The statement of a function that holds a piece of its text. No two of them overlap, as of
    compound ones only the first part counts."""
    if function.statements is None:
        function.statements = sorted(_parse(function.code), key=_start)
    after = bisect.bisect_right(function.statements, extent[:2], key=_start)
    before = function.statements[after - 1] if after else None
    return before if before and extent[2:] <= before.extent[2:] else None


def _start(statement: _Statement) -> tuple[int, int]:
    return statement.extent[:2]


def _parse(code: CodeType) -> list[_Statement]:
    """The statements of a function's text, or of the whole file where it can't be cut out."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    first, last = code.co_firstlineno, _last_line(code)
    if not lines:
        return []
    for start, end in ((first, last), (1, len(lines))):
        block = lines[start - 1 : end]
        indent = min((_indent(line) for line in block if line.strip()), default=0)
        # inside `if True:` an indented function parses as it stands, columns and all
        opening = "if True:\n" if indent else "\n"
        try:
            with _parsing:
                module = ast.parse(opening + "".join(block))
        except (SyntaxError, ValueError):
            continue
        return [_statement(node, start - 2) for node in ast.walk(module) if _is_users(node)]
    return []


def parsed_function(code: CodeType) -> ast.AST | None:
    """The tree of a function's definition, with the places of its file; None without a source."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    first, last = code.co_firstlineno, _last_line(code)
    block = lines[first - 1 : last]
    indent = min((_indent(line) for line in block if line.strip()), default=0)
    try:
        with _parsing:
            module = ast.parse(("if True:\n" if indent else "\n") + "".join(block))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            ast.increment_lineno(node, first - 2)
            return node
    return None


def _last_line(code: CodeType) -> int:
    """The last line of a function, closing brackets that stand on lines of their own included."""
    last = max([line for *_, line in code.co_lines() if line is not None], default=0)
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    nested = [_last_line(const) for const in code.co_consts if isinstance(const, CodeType)]
    last = max([last, *ends, *nested])
    lines = linecache.getlines(code.co_filename)
    while last < len(lines) and lines[last].strip()[:1] in (")", "]", "}"):
        last += 1
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_users(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and node.lineno > 1


def _statement(node: ast.AST, shift: int) -> _Statement:
    assert isinstance(node, ast.stmt)
    extent = _extent(node, shift)
    body = getattr(node, "body", None)
    if body:
        extent = _header(node, extent, shift)
    names: dict[Extent, str] = {}
    tuples: dict[Extent, tuple[str | None, ...]] = {}
    for target, value in _bindings(node):
        if isinstance(target, ast.Name):
            names.setdefault(_extent(value, shift), target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = tuple(part.id if isinstance(part, ast.Name) else None for part in target.elts)
            tuples.setdefault(_extent(value, shift), parts)
    return _Statement(extent, names, tuples)


def _header(node: ast.stmt, extent: Extent, shift: int) -> Extent:
    """A compound statement's extent up to its colon: its last expression before the body."""
    parts = [
        child
        for field, child in _children(node)
        if field not in ("body", "orelse", "handlers", "finalbody", "decorator_list")
    ]
    ends = [_extent(part, shift)[2:] for part in parts if hasattr(part, "end_lineno")]
    last = max(ends, default=extent[:2])
    return (*extent[:2], *last)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.withitem):
                yield field, child.context_expr
            elif isinstance(child, ast.AST):
                yield field, child


def _extent(node: ast.AST, shift: int) -> Extent:
    assert isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword))
    last, last_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno + shift, node.col_offset, last + shift, last_column


def _bindings(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr | ast.stmt]]:
    """(target, what is bound to it) of a statement and of the `:=` inside its own expressions."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target, node
    for field, child in _children(node):
        if field not in ("body", "orelse", "handlers", "finalbody"):
            for inner in ast.walk(child):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.target, inner.value


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Element by element where both sides are written as tuples of one length."""
    if (
        isinstance(target, (ast.Tuple, ast.List))
        and isinstance(value, (ast.Tuple, ast.List))
        and len(target.elts) == len(value.elts)
    ):
        for part, element in zip(target.elts, value.elts, strict=True):
            yield from _paired(part, element)
    else:
        yield target, value
