"""Functions whose `for` statements tell what they carry from turn to turn.

The tree of a function is rewritten where its source is at hand, so that while tracing each loop is
an object that hands out the turns, and the values of the names that the turns bind::

    for t in range(steps):           loop_1 = __tinyfuse_loop__(range(steps), (...), ...)
        x = x + dt * f(x)            for t in loop_1:
                                         if loop_1.carrying:
                                             x, = loop_1.carried
                                         x = x + dt * f(x)
                                     if loop_1.carrying:
                                         x, = loop_1.after
                                         t = loop_1.last

Places in the source stay as they are. A loop stays as it is where `break`, `return`, `yield` or
`else` decide about its turns, and where it binds what is no variable of the function.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType

from tinyfuse.source import parsed_function

LOOP = "__tinyfuse_loop__"
_MADE = "loop_"

_rewritten: dict[int, tuple[CodeType, CodeType]] = {}  # by id, with the original, which lives on
_LIMIT = 2_000


def rewritten(code: CodeType) -> CodeType:
    """The code of a function with its loops rewritten; the same where there is nothing to do."""
    known = _rewritten.get(id(code))
    if known is None:
        if len(_rewritten) >= _LIMIT:
            _rewritten.clear()
        known = _rewritten[id(code)] = code, _compiled(code) if has_loops(code) else code
    return known[1]


def has_loops(code: CodeType) -> bool:
    """Whether there is a `for`, also in a comprehension or in a function inside."""
    iterates = dis.opmap["FOR_ITER"] in code.co_code[::2]
    return iterates or any(has_loops(each) for each in code.co_consts if isinstance(each, CodeType))


def rewritten_source(code: CodeType) -> str | None:
    """The text of a function as it is traced; None where its loops stay as they are."""
    tree = _tree(code)
    return None if tree is None else ast.unparse(tree)


def _tree(code: CodeType) -> ast.FunctionDef | None:
    function = parsed_function(code)
    if not isinstance(function, ast.FunctionDef):
        return None
    function.decorator_list = []
    rewriter = _Rewriter(function)
    rewriter.rewrite(function)
    if not rewriter.count:
        return None
    ast.fix_missing_locations(function)
    return function


def _compiled(code: CodeType) -> CodeType:
    tree = _tree(code)
    if tree is None:
        return code
    made = _function_code(_around(tree, code.co_freevars), code)
    same = made is not None and made.co_freevars == code.co_freevars
    return made.replace(co_qualname=code.co_qualname) if made and same else code


def _around(function: ast.FunctionDef, free: tuple[str, ...]) -> ast.Module:
    """A module with the function, inside another one that has the variables of its closure."""
    module = ast.Module([function], [])
    if free:
        outer = ast.FunctionDef(
            "around",
            ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, []),
            [function],
            [],
        )
        if "type_params" in ast.FunctionDef._fields:
            setattr(outer, "type_params", [])  # noqa: B010
        ast.copy_location(outer, function)
        module = ast.Module([outer], [])
    return ast.fix_missing_locations(module)


def _function_code(module: ast.Module, like: CodeType) -> CodeType | None:
    try:
        compiled = compile(module, like.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    waiting = [compiled]
    for code in waiting:
        if code.co_name == like.co_name and code is not compiled:
            return code
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return None


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those in functions, classes and comprehensions inside."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            waiting.extend(ast.iter_child_nodes(node))


class _Rewriter:
    """Rewrites the loops of one function, and of those inside it."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.count = 0
        self.loads = _loads(function)

    def rewrite(self, function: ast.FunctionDef) -> None:
        outside = _declared(function)
        function.body = self._statements(function.body, outside)

    def _statements(self, body: list[ast.stmt], outside: set[str]) -> list[ast.stmt]:
        return [each for statement in body for each in self._statement(statement, outside)]

    def _statement(self, node: ast.stmt, outside: set[str]) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            self.rewrite(node)
            return [node]
        if isinstance(node, (ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        names = _bound(node, self.loads) if isinstance(node, ast.For) else None
        inside = _loads_of(node) if isinstance(node, ast.For) else {}
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                setattr(node, field, self._statements(inner, outside))
        for handler in getattr(node, "handlers", []):
            handler.body = self._statements(handler.body, outside)
        if isinstance(node, ast.For) and names is not None and not outside & set(names):
            used = [self.loads.get(name, 0) > inside.get(name, 0) for name in names]
            return self._loop(node, names, used)
        return [node]

    def _loop(self, node: ast.For, names: list[str], used: list[bool]) -> list[ast.stmt]:
        self.count += 1
        loop = f"{_MADE}{self.count}"
        made = ast.parse(
            f"{loop} = {LOOP}(None, {tuple(names)!r}, "
            f"({''.join(f'lambda: {name}, ' for name in names)}), {tuple(used)!r})"
        ).body[0]
        assert isinstance(made, ast.Assign)
        assert isinstance(made.value, ast.Call)
        made.value.args[0] = node.iter
        after = f"if {loop}.carrying:\n"
        if names:
            bound = "".join(f"{name}, " for name in names)
            begin = ast.parse(f"if {loop}.carrying:\n {bound} = {loop}.carried").body
            after += f" {bound} = {loop}.after\n"
        else:
            begin = []
        last = ast.parse(f"{after} target = {loop}.last").body
        assert isinstance(last[0], ast.If)
        assert isinstance(last[0].body[-1], ast.Assign)
        last[0].body[-1].targets = [node.target]
        head = ast.For(node.target, ast.Name(loop, ast.Load()), [*begin, *node.body], [])
        for new in (made, head, *begin, *last):
            for each in ast.walk(new) if new is not head else (head, head.iter):
                if each is not node.iter and not _is_inside(each, node):
                    ast.copy_location(each, node.iter)
        head.lineno, head.col_offset = node.lineno, node.col_offset
        head.end_lineno, head.end_col_offset = node.end_lineno, node.end_col_offset
        return [made, head, *last]


def _is_inside(node: ast.AST, loop: ast.For) -> bool:
    """Whether a node is of the user's loop, and has its place."""
    return any(node is each for part in (loop.iter, loop.target) for each in ast.walk(part))


def _loads(function: ast.AST) -> dict[str, int]:
    """How often each name is read, functions inside included."""
    counts: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, (ast.Nonlocal, ast.Global)):
            counts.update({name: counts.get(name, 0) + 1 for name in node.names})
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 1
    return counts


def _loads_of(loop: ast.For) -> dict[str, int]:
    counts: dict[str, int] = {}
    for statement in loop.body:
        for name, count in _loads(statement).items():
            if not name.startswith(_MADE):
                counts[name] = counts.get(name, 0) + count
    return counts


def _declared(function: ast.FunctionDef) -> set[str]:
    """The names that are no variables of the function itself."""
    return {
        name
        for node in _walk(function.body)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }


def _bound(loop: ast.For, loads: Mapping[str, int]) -> list[str] | None:
    """The names that the turns of a loop bind; None where it has to stay as it is.

    loads: how often the function reads each name.
    """
    if loop.orelse or not _is_plain(loop.target):
        return None
    names: dict[str, None] = {}
    for node in _walk(loop.body):
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.Delete)):
            return None
        if isinstance(node, (ast.Import, ast.ImportFrom, *_SCOPES)) and not isinstance(
            node, ast.Lambda
        ):
            return None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
    if _breaks(loop.body):
        return None
    targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    if any(loads.get(name) for name in targets & names.keys()):
        return None
    return sorted(names.keys() - targets)


def _is_plain(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_plain, target.elts))
    return isinstance(target, ast.Name)


def _breaks(body: Iterable[ast.stmt]) -> bool:
    """Whether a `break` leaves the loop itself."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            if _breaks(node.orelse):
                return True
        elif not isinstance(node, _SCOPES):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            if _breaks(inner):
                return True
    return False
