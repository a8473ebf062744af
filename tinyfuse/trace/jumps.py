"""Functions without `break`, `continue`, `else` of loops and early `return`: with names in place of
these, which say that the rest is left out::

    for i in range(n):          done_1 = False
        if c:                   for i in range(n):
            break                   if c:
        rest                            done_1 = True
    else:                           else:
        more                            rest
                                if done_1:
                                    pass
                                else:
                                    more

A loop that has such a name stops before a turn where it is true.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from tinyfuse.records import dataclass
from tinyfuse.trace.parts import Loop, let_stop, walk

UNSET = "__tinyfuse_unset__"
RESULT = "the_result"  # as errors call it


def rewrite_jumps(function: ast.FunctionDef) -> None:
    """Rewrite the statements of a function and of those in it; where jumps leave `with` or `try`
    they stay as they are."""
    inside = [each for each in ast.walk(function) if isinstance(each, ast.FunctionDef)]
    for each in reversed(inside):
        try:
            each.body = _Jumps(function).body(copy.deepcopy(each))
        except _UnstructuredError:
            continue


class _UnstructuredError(Exception):
    """A jump leaves a statement that has to see it."""


class _NeedsNameError(Exception):
    """What comes after a choice needs a name that tells whether it is left out."""


@dataclass(eq=False, slots=True)
class _Frame:
    """What a jump leaves: a turn of a loop, or the function.

    done: is true where there are no more turns. left: is true where the rest is left out.
    """

    done: str = ""
    left: str = ""


class _Jumps:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        self.returned = self.result = ""

    def fresh(self, word: str) -> str:
        name, number = word, 0
        while name in self.taken:
            number += 1
            name = f"{word}_{number}"
        self.taken.add(name)
        return name

    def body(self, function: ast.FunctionDef) -> list[ast.stmt]:
        *before, _ = function.body
        if not any("return" in _jumps(each) for each in before) and not _ends_in_choice(function):
            return self.block(function.body, None)
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in walk(function.body)):
            raise _UnstructuredError
        self.returned, self.result = self.fresh("returned"), self.fresh(RESULT)
        first, last = function.body[0], function.body[-1]
        body = function.body
        if not _always_jumps(body):
            body = [*body, ast.copy_location(ast.Return(None), last)]
        begin = [_set(self.returned, ast.Constant(False), first)]
        begin.append(_set(self.result, ast.Name(UNSET, ast.Load()), first))
        end = ast.copy_location(ast.Return(ast.Name(self.result, ast.Load())), last)
        return [*begin, *self.block(body, _Frame("", self.returned)), end]

    def block(self, body: Sequence[ast.stmt], frame: _Frame | None) -> list[ast.stmt]:
        """Statements that leave out what jumps leave out."""
        made: list[ast.stmt] = []
        for at, node in enumerate(body):
            rest = body[at + 1 :]
            jumps = _jumps(node)
            if isinstance(node, (ast.For, ast.While)):
                return [*made, *self.loop(node, rest, frame)]
            if not jumps:
                made.append(self.inside(node))
            elif isinstance(node, ast.If):
                return [*made, *self.choice(node, rest, frame)]
            elif isinstance(node, (ast.Break, ast.Continue, ast.Return)):
                return [*made, *self.jump(node, frame)]
            else:
                raise _UnstructuredError
        return made

    def inside(self, node: ast.stmt) -> ast.stmt:
        """A statement that no jump leaves; there may be loops inside."""
        if isinstance(node, ast.If):
            node.body, node.orelse = self.block(node.body, None), self.block(node.orelse, None)
        elif any(_is_loop_with_jumps(each) for each in walk([node])):
            raise _UnstructuredError
        return node

    def jump(self, node: ast.stmt, frame: _Frame | None) -> list[ast.stmt]:
        if frame is None:
            return [node]  # the last statement of a function
        made = []
        if isinstance(node, ast.Return):
            made.append(_set(self.result, node.value or ast.Constant(None), node))
            made.append(_set(self.returned, ast.Constant(True), node))
        names = [frame.left] if isinstance(node, ast.Continue) else [frame.done, frame.left]
        names = [name for name in names if name not in ("", self.returned)]
        true = [_set(name, ast.Constant(True), node) for name in names]
        return [*made, *true] if made or true else [ast.copy_location(ast.Pass(), node)]

    def choice(
        self, node: ast.If, rest: Sequence[ast.stmt], frame: _Frame | None
    ) -> list[ast.stmt]:
        """The rest comes after the part that does not leave; after both only where it is asked
        for."""
        if _always_jumps(node.body):
            rest, node.orelse = [], [*node.orelse, *rest]
        elif _always_jumps(node.orelse):
            rest, node.body = [], [*node.body, *rest]
        node.body, node.orelse = self.block(node.body, frame), self.block(node.orelse, frame)
        return [node, *self.unless(frame.left if frame else "", rest, node, frame)]

    def unless(
        self, name: str, rest: Sequence[ast.stmt], after: ast.stmt, frame: _Frame | None
    ) -> list[ast.stmt]:
        """The rest of some statements, where a name is not true."""
        if not rest:
            return []
        if not name:
            raise _NeedsNameError
        skipped: list[ast.stmt] = [ast.copy_location(ast.Pass(), after)]
        test = ast.copy_location(ast.Name(name, ast.Load()), after)
        return [ast.copy_location(ast.If(test, skipped, self.block(rest, frame)), after)]

    def loop(self, node: Loop, rest: Sequence[ast.stmt], frame: _Frame | None) -> list[ast.stmt]:
        """A loop, its `else`, and what comes after it."""
        jumps = {jump for each in node.body for jump in _jumps(each)}
        own = _Frame(self.fresh("done") if jumps & {"break", "return"} else "")
        if own.done:
            let_stop(node, own.done)
        kept = copy.deepcopy(node.body)
        try:
            node.body = self.block(node.body, own if jumps else None)
        except _NeedsNameError:
            own.left = self.fresh("left")
            first = kept[0]
            body = self.block(kept, own)
            node.body = [_set(own.left, ast.Constant(False), first), *body]
        made: list[ast.stmt] = [node]
        if own.done:
            made.insert(0, _set(own.done, ast.Constant(False), node))
        otherwise, node.orelse = node.orelse, []
        if otherwise and own.done:
            skipped: list[ast.stmt] = [ast.copy_location(ast.Pass(), node)]
            test = ast.copy_location(ast.Name(own.done, ast.Load()), node)
            otherwise = [ast.copy_location(ast.If(test, skipped, otherwise), node)]
        rest = [*otherwise, *rest]
        if "return" not in jumps:
            return [*made, *self.block(rest, frame)]
        left = [_set(name, ast.Constant(True), node) for name in _outer(frame, self.returned)]
        test = ast.copy_location(ast.Name(self.returned, ast.Load()), node)
        leave: list[ast.stmt] = [*left] or [ast.copy_location(ast.Pass(), node)]
        return [*made, ast.copy_location(ast.If(test, leave, self.block(rest, frame)), node)]


def _outer(frame: _Frame | None, returned: str) -> list[str]:
    """The names that are true when the function has returned inside of a loop in a frame."""
    names = [frame.done, frame.left] if frame else []
    return [name for name in names if name and name != returned]


def _ends_in_choice(function: ast.FunctionDef) -> bool:
    return "return" in _jumps(function.body[-1]) and not isinstance(function.body[-1], ast.Return)


def _jumps(node: ast.stmt) -> set[str]:
    """What leaves a statement: "break", "continue", "return"."""
    if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
        return {type(node).__name__.lower()}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    handlers = [each for handler in getattr(node, "handlers", ()) for each in handler.body]
    cases = [each for case in getattr(node, "cases", ()) for each in case.body]
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        own = {jump for each in node.body for jump in _jumps(each)} & {"return"}
        return own | {jump for each in node.orelse for jump in _jumps(each)}
    return {jump for each in (*inner, *handlers, *cases) for jump in _jumps(each)}


def _is_loop_with_jumps(node: ast.AST) -> bool:
    if not isinstance(node, (ast.For, ast.While)):
        return False
    return bool(node.orelse) or any(_jumps(each) for each in node.body)


def _always_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows these statements never runs."""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            return True
        if isinstance(node, ast.If) and _always_jumps(node.body) and _always_jumps(node.orelse):
            return True
    return False


def _set(name: str, value: ast.expr, place: ast.stmt) -> ast.Assign:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    for each in (made, made.targets[0], *ast.walk(value)):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return made
