"""Which parts of `if` statements can run both, where data decides which of them counts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

Loop = ast.For | ast.While

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those in functions, classes and comprehensions inside."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*SCOPES, *COMPREHENSIONS)):
            waiting.extend(ast.iter_child_nodes(node))


def let_stop(loop: Loop, name: str) -> None:
    """Note that a loop ends where a name is true."""
    vars(loop)["stop"] = name


def stop_of(loop: Loop) -> str | None:
    """The name that is true when a turn has left a loop; None where none does."""
    found: str | None = vars(loop).get("stop")
    return found


# Methods of Python's containers that change them, and what asks an iterator for more.
_CHANGING = frozenset(
    (
        *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "next", "pop"),
        *("popitem", "popleft", "remove", "reverse", "send", "setdefault", "update", "write"),
        "writelines",
    )
)


def is_pure(node: ast.expr) -> bool:
    """Whether an expression changes nothing of Python's, as far as its text tells."""
    for each in ast.walk(node):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(each, ast.Call):
            function = each.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            if name in _CHANGING or name == "print":
                return False
    return True


def bound_by_parts(node: ast.If) -> set[str] | None:
    """The names that the parts bind; None where they do anything but assign.

    Elements are put into what a name means.
    """
    names: set[str] = set()
    for statement in _statements(node):
        if isinstance(statement, (ast.If, ast.While)):
            if not is_pure(statement.test):
                return None
        elif isinstance(statement, ast.For):
            if not is_pure(statement.iter) or not _bind([statement.target], names):
                return None
        elif isinstance(statement, ast.Expr):
            if not is_pure(statement.value):
                return None
        elif isinstance(statement, ast.Assign):
            if not is_pure(statement.value) or not _bind(statement.targets, names):
                return None
        elif isinstance(statement, ast.AugAssign):
            if not is_pure(statement.value) or not _bind([statement.target], names):
                return None
        elif not isinstance(statement, ast.Pass):
            return None
    return names


def _statements(node: ast.If) -> list[ast.stmt]:
    waiting: list[ast.stmt] = [*node.body, *node.orelse]
    for each in waiting:
        if isinstance(each, (ast.If, ast.For, ast.While)):
            waiting += [*each.body, *each.orelse]
    return waiting


def _bind(targets: Sequence[ast.expr], names: set[str]) -> bool:
    """Add the names that targets bind; whether they are names and elements alone."""
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            if not _bind(target.elts, names):
                return False
        elif isinstance(target, ast.Name):
            names.add(target.id)
        elif not isinstance(target, ast.Subscript) or _array_of(target) is None:
            return False
    return True


def _array_of(target: ast.expr) -> str | None:
    """The name of the array of whose view elements are written, as of `x[1:][i]`, `z.real[i]`."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def targets_alone(node: ast.stmt) -> set[str]:
    """The names that only loops in the parts bind, as what they go through."""
    stored = [each for each in walk([node]) if isinstance(each, ast.Name)]
    loops = [each.target for each in walk([node]) if isinstance(each, ast.For)]
    of_loops = [each for target in loops for each in ast.walk(target)]
    others = [each for each in stored if isinstance(each.ctx, ast.Store) and each not in of_loops]
    found = {each.id for each in of_loops if isinstance(each, ast.Name)}
    return found - {each.id for each in others}


def written_in_parts(node: ast.If) -> list[str]:
    """The names of what the parts put elements into."""
    found: list[str | None] = []
    for statement in _statements(node):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        inner = [each for target in targets if target for each in ast.walk(target)]
        stored = [each for each in inner if isinstance(each, ast.Subscript)]
        found += [_array_of(each) for each in stored if isinstance(each.ctx, ast.Store)]
    return sorted({name for name in found if name is not None})
