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

Places in the source stay as they are. A loop stays as it is where `yield` or an exception decides
about its turns, and where it binds what is no variable of the function; where no data decides
anything, also with `break`, `return` or `else` (see `jumps`).
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Mapping
from types import CodeType

from tinyfuse.source import parsed_function
from tinyfuse.trace.jumps import rewrite_jumps
from tinyfuse.trace.loop_lists import collect, lists_of, read_in_functions
from tinyfuse.trace.loop_targets import loads_in, loads_of, targets_of, targets_read_after
from tinyfuse.trace.parts import (
    COMPREHENSIONS,
    SCOPES,
    bound_by_parts,
    is_pure,
    stop_of,
    targets_alone,
    walk,
    written_in_parts,
)
from tinyfuse.trace.rewriting_expressions import rewrite_expressions

LOOP, WHILE, ITEMS = "__tinyfuse_loop__", "__tinyfuse_while__", "__tinyfuse_items__"
IF = "__tinyfuse_if__"

# By id, with the original, which lives on.
_rewritten: dict[tuple[int, bool], tuple[CodeType, CodeType]] = {}
_LIMIT = 2_000


def rewritten(code: CodeType, branches: bool = False) -> CodeType:
    """The code of a function with its loops rewritten; the same where there is nothing to do.

    branches: whether its conditions are too.
    """
    key = id(code), branches
    known = _rewritten.get(key)
    if known is None:
        if len(_rewritten) >= _LIMIT:
            _rewritten.clear()
        wanted = branches or has_loops(code)
        known = _rewritten[key] = code, _compiled(code, branches) if wanted else code
    return known[1]


def has_loops(code: CodeType) -> bool:
    """Whether there is a `for`, also in a comprehension or in a function inside."""
    iterates = dis.opmap["FOR_ITER"] in code.co_code[::2]
    return iterates or any(has_loops(each) for each in code.co_consts if isinstance(each, CodeType))


def rewritten_source(code: CodeType) -> str | None:
    """The text of a function as it is traced; None where its loops stay as they are.

    Its conditions are rewritten as they are where data decides one of them.
    """
    tree = _tree(code, True)
    return None if tree is None else ast.unparse(tree)


def _tree(code: CodeType, branches: bool) -> ast.FunctionDef | None:
    function = parsed_function(code)
    if not isinstance(function, ast.FunctionDef):
        return None
    function.decorator_list = []
    if branches:
        rewrite_jumps(function)
    rewriter = _Rewriter(function, branches)
    rewriter.rewrite(function)
    if not rewriter.count:
        return None
    ast.fix_missing_locations(function)
    return function


def _compiled(code: CodeType, branches: bool) -> CodeType:
    tree = _tree(code, branches)
    if tree is None:
        return code
    made = _function_code(_around(tree, code), code)
    same = made is not None and made.co_freevars == code.co_freevars
    return made.replace(co_qualname=code.co_qualname) if made and same else code


def _around(function: ast.FunctionDef, code: CodeType) -> ast.Module:
    """A module with the function, inside of its class, which has a part in names like `__x`, and of
    another function that has the variables of its closure."""
    body: list[ast.stmt] = [function]
    owner = _class_around(code.co_qualname)
    if owner:
        body = ast.parse(f"class {owner}:\n    pass").body
        assert isinstance(body[0], ast.ClassDef)
        body[0].body = [function]
    if code.co_freevars:
        outer = ast.parse(f"def around({', '.join(code.co_freevars)}):\n    pass").body
        assert isinstance(outer[0], ast.FunctionDef)
        outer[0].body, body = body, outer
    return ast.Module(body, [])


def _class_around(name: str) -> str | None:
    """The innermost class in a qualified name, as V in `f.<locals>.V.run`."""
    parts = name.split(".")
    pairs = zip(reversed(parts[:-1]), reversed(parts[1:]), strict=True)
    return next((a for a, b in pairs if "<locals>" not in (a, b)), None)


def _function_code(module: ast.Module, like: CodeType) -> CodeType | None:
    try:
        compiled = compile(module, like.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    waiting = [compiled]
    for code in waiting:
        if (code.co_name, code.co_argcount) == (like.co_name, like.co_argcount):
            return code
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return None


class _Rewriter:
    """Rewrites the loops of one function, and of those inside it."""

    def __init__(self, function: ast.FunctionDef, branches: bool) -> None:
        self.count = 0
        self.branches = branches
        self.loads = loads_in(function)
        self.read_after = targets_read_after(function, self.loads)
        self.hidden = read_in_functions(function)
        self.lists: dict[ast.For, set[str]] = {}
        self.taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}

    def fresh(self, word: str) -> str:
        """A name with the number of what is being rewritten that the function has not."""
        name = f"{word}_{self.count}"
        while name in self.taken:
            name += "_"
        return name

    def rewrite(self, function: ast.FunctionDef) -> None:
        outside = _declared(function)
        function.body = self._statements(function.body, outside)

    def _statements(self, body: list[ast.stmt], outside: set[str]) -> list[ast.stmt]:
        for place, statement in enumerate(body):
            if isinstance(statement, ast.For):
                self.lists[statement] = lists_of(body, place, self.hidden | outside)
        return [each for statement in body for each in self._statement(statement, outside)]

    def _statement(self, node: ast.stmt, outside: set[str]) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            self.rewrite(node)
            return [node]
        if isinstance(node, (ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        names = self._names(node)
        inside = loads_of(node) if isinstance(node, (ast.For, ast.While, ast.If)) else {}
        bound = bound_by_parts(node) if isinstance(node, ast.If) else None
        written = written_in_parts(node) if isinstance(node, ast.If) and bound is not None else []
        passing = targets_alone(node) - self._read_after(node) if bound is not None else ()
        if self.branches:
            self.count += rewrite_expressions(node)
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                setattr(node, field, self._statements(inner, outside))
        for handler in getattr(node, "handlers", []):
            handler.body = self._statements(handler.body, outside)
        if isinstance(names, list) and outside & set(names):
            names = "its turns bind variables from outside of the function"
        if isinstance(names, list):
            used = [self.loads.get(name, 0) > inside.get(name, 0) for name in names]
            if isinstance(node, ast.While):
                return self._while(node, names, used)
            assert isinstance(node, ast.For)
            return self._loop(node, names, used, node in self.read_after)
        if self.branches and bound is not None and not outside & bound:
            assert isinstance(node, ast.If)
            outer = [self.loads.get(name, 0) > inside.get(name, 0) for name in sorted(bound)]
            used = [o and name not in passing for o, name in zip(outer, sorted(bound), strict=True)]
            return self._branch(node, sorted(bound), used, written)
        if isinstance(node, ast.For):
            node.iter = self._kept(node.iter, str(names), _stop(node))
        if isinstance(node, ast.While) and stop_of(node):
            node.test = _unless_left(node)
        return [node]

    def _read_after(self, node: ast.stmt) -> set[str]:
        """The targets of loops in the parts of an `if` that may be read after these."""
        loops = [each for each in walk([node]) if isinstance(each, ast.For)]
        return {name for each in loops if each in self.read_after for name in targets_of(each)}

    def _kept(self, items: ast.expr, reason: str, stop: str) -> ast.expr:
        """What a loop that stays as it is iterates over, with the reason for that."""
        self.count += 1
        made = ast.parse(f"{LOOP}(None, reason={reason!r}{stop})", mode="eval").body
        for each in ast.walk(made):
            ast.copy_location(each, items)
        assert isinstance(made, ast.Call)
        made.args[0] = items
        return made

    def _names(self, node: ast.stmt) -> list[str] | str:
        """The names that the turns of a loop bind; else why it has to stay as it is."""
        if isinstance(node, ast.For):
            if not _is_plain(node.target):
                return "it binds other things than names"
            targets = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            return _bound(node, self.loads, targets)
        if isinstance(node, ast.While) and self.branches and is_pure(node.test):
            return _bound(node, self.loads, set())
        return ""

    def _while(self, node: ast.While, names: list[str], used: list[bool]) -> list[ast.stmt]:
        self.count += 1
        loop, turn = self.fresh("loop"), self.fresh("turn")
        getters = "".join(f"lambda: {name}, " for name in names)
        bound = "".join(f"{name}, " for name in names)
        text = f"{loop} = {WHILE}(lambda: None, {tuple(names)!r}, ({getters}), {tuple(used)!r}"
        text += f"{_stop(node)}, endless={_is_endless(node)})\n"
        text += f"for {turn} in {loop}:\n    pass\n"
        text += f"    if {loop}.carrying:\n        {bound} = {loop}.carried\n" if names else ""
        text += f"if {loop}.carrying:\n    {bound} = {loop}.after\n" if names else ""
        made = _parsed(text, node.test)
        call, head = made[0], made[1]
        assert isinstance(call, ast.Assign)
        assert isinstance(call.value, ast.Call)
        assert isinstance(head, ast.For)
        test = call.value.args[0]
        assert isinstance(test, ast.Lambda)
        test.body = node.test
        head.body = [*head.body[1:], *node.body]
        return made

    def _branch(
        self, node: ast.If, names: list[str], used: list[bool], written: list[str]
    ) -> list[ast.stmt]:
        self.count += 1
        branch, taken = self.fresh("branch"), self.fresh("taken")
        getters = "".join(f"lambda: {name}, " for name in names)
        bases = "".join(f"lambda: {name}, " for name in written)
        bound = "".join(f"{name}, " for name in names)
        text = f"{branch} = {IF}(None, {tuple(names)!r}, ({getters}), {tuple(used)!r}, ({bases}))\n"
        text += f"for {taken} in {branch}:\n"
        text += f"    if {branch}.carrying:\n        {bound} = {branch}.carried\n" if names else ""
        text += f"    if {taken}:\n        pass\n"
        text += f"if {branch}.carrying:\n    {bound} = {branch}.after\n" if names else ""
        made = _parsed(text, node.test)
        call, loop = made[0], made[1]
        assert isinstance(call, ast.Assign)
        assert isinstance(call.value, ast.Call)
        assert isinstance(loop, ast.For)
        call.value.args[0] = node.test
        choice = loop.body[-1]
        assert isinstance(choice, ast.If)
        choice.body, choice.orelse = node.body, node.orelse
        return made

    def _loop(
        self, node: ast.For, names: list[str], used: list[bool], target_read: bool
    ) -> list[ast.stmt]:
        self.count += 1
        loop = self.fresh("loop")
        collect(node.body, self.lists[node], loop)
        target = f", target=lambda: {node.target.id}" if isinstance(node.target, ast.Name) else ""
        if not target_read:
            target = ", target_used=False"
        made = ast.parse(
            f"{loop} = {LOOP}(None, {tuple(names)!r}, "
            f"({''.join(f'lambda: {name}, ' for name in names)}), {tuple(used)!r}"
            f"{_stop(node)}{target})"
        ).body[0]
        assert isinstance(made, ast.Assign)
        assert isinstance(made.value, ast.Call)
        made.value.args[0] = node.iter = _items(node.iter)
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


def _stop(node: ast.For | ast.While) -> str:
    """The argument that asks whether a turn has left a loop."""
    name = stop_of(node)
    return f", stop=lambda: {name}" if name else ""


def _unless_left(node: ast.While) -> ast.expr:
    """The test of a loop that stays as it is: it is not asked after a turn that has left."""
    test = ast.parse(f"not {stop_of(node)} and None", mode="eval").body
    for each in ast.walk(test):
        ast.copy_location(each, node.test)
    assert isinstance(test, ast.BoolOp)
    test.values[1] = node.test
    return test


def _is_endless(node: ast.While) -> bool:
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def _items(items: ast.expr) -> ast.expr:
    """What a loop goes through, with calls of `range`, `zip` and the like for traced values."""
    if not isinstance(items, ast.Call) or not isinstance(items.func, ast.Name):
        return items
    if items.func.id not in ("range", "reversed", "enumerate", "zip"):
        return items
    args = [items.func, *map(_items, items.args)]
    made = ast.Call(ast.Name(ITEMS, ast.Load()), args, items.keywords)
    ast.copy_location(made.func, items)
    return ast.copy_location(made, items)


def _parsed(text: str, place: ast.expr) -> list[ast.stmt]:
    """Statements in the place of an expression of the user's."""
    made = ast.parse(text).body
    for statement in made:
        for each in ast.walk(statement):
            ast.copy_location(each, place)
    return made


def _is_inside(node: ast.AST, loop: ast.For) -> bool:
    """Whether a node is of the user's loop, and has its place."""
    return any(node is each for part in (loop.iter, loop.target) for each in ast.walk(part))


def _declared(function: ast.FunctionDef) -> set[str]:
    """The names that are no variables of the function itself."""
    return {
        name
        for node in walk(function.body)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }


def _bound(
    loop: ast.For | ast.While, loads: Mapping[str, int], targets: set[str]
) -> list[str] | str:
    """The names that the turns of a loop bind; else the reason why it has to stay as it is.

    loads: how often the function reads each name. targets: names that the loop itself binds.
    """
    if loop.orelse:
        return "it has an `else`"
    names: dict[str, None] = {}
    for node in walk(loop.body):
        for kinds, reason in _STAYING:
            if isinstance(node, kinds):
                return reason
        if isinstance(node, COMPREHENSIONS) and _has_walrus(node):
            return "a comprehension in it binds variables"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
    if _breaks(loop.body):
        return "`break` leaves it"
    if any(loads.get(name) for name in targets & names.keys()):
        return "its turns bind its own variable"
    return sorted(names.keys() - targets)


_STAYING: list[tuple[tuple[type, ...], str]] = [
    ((ast.Return,), "`return` leaves it"),
    ((ast.Yield, ast.YieldFrom, ast.Await), "its turns can be interrupted"),
    ((ast.Try,), "its turns handle exceptions"),
    ((ast.Delete, ast.Import, ast.ImportFrom), "its turns delete or import"),
    ((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "its turns define functions"),
    ((ast.Match,), "its turns match patterns"),
]


def _has_walrus(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


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
        elif not isinstance(node, SCOPES):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            if _breaks(inner):
                return True
    return False
