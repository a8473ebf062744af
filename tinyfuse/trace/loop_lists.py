"""Lists that the turns of a loop append to, and that nothing reads before its end.

out = []                            out = []
for t in range(steps):              for t in loop_1:
    x = step(x)                         x = step(x)
    out.append(x)                       loop_1.append(out, x)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from tinyfuse.trace.loop_targets import loads_in

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)


def read_in_functions(function: ast.FunctionDef) -> set[str]:
    """The names that functions inside of one read, whenever they run."""
    inside = [each for each in ast.walk(function) if isinstance(each, _SCOPES)]
    return {name for each in inside if each is not function for name in loads_in(each)}


def lists_of(block: Sequence[ast.stmt], place: int, others: Collection[str]) -> set[str]:
    """The lists that a loop in a block may collect: made in that block, and only appended to since,
    once at the end of each turn. others: names that functions inside may read."""
    loop = block[place]
    assert isinstance(loop, ast.For)
    names = [name for statement in loop.body if (name := appended_to(statement)) is not None]
    loads, stored = loads_in(loop), _stored(loop)
    return {
        name
        for name in names
        if loads[name] == 1
        and name not in stored
        and name not in others
        and _is_new(name, block[:place])
    }


def appended_to(statement: ast.stmt) -> str | None:
    """The name in `name.append(value)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    function, value = call.func, call.args[0]
    if not isinstance(function, ast.Attribute) or function.attr != "append":
        return None
    named = isinstance(function.value, ast.Name) and not isinstance(value, ast.Starred)
    return function.value.id if named and isinstance(function.value, ast.Name) else None


def collect(body: Sequence[ast.stmt], lists: Collection[str], loop: str) -> None:
    """Let the turns of a loop append through it."""
    for statement in body:
        name = appended_to(statement)
        if name in lists:
            assert isinstance(statement, ast.Expr)
            assert isinstance(statement.value, ast.Call)
            assert isinstance(statement.value.func, ast.Attribute)
            call, function = statement.value, statement.value.func
            call.args.insert(0, function.value)
            function.value = ast.copy_location(ast.Name(loop, ast.Load()), function.value)


def _is_new(name: str, block: Sequence[ast.stmt]) -> bool:
    """Whether a name is a list that statements have made and since then only appended to."""
    for statement in reversed(block):
        if name in _stored(statement):
            return _makes_list(statement, name)
        appends = [each for each in ast.walk(statement) if isinstance(each, ast.Expr)]
        if loads_in(statement).get(name, 0) != sum(appended_to(each) == name for each in appends):
            return False
    return False


def _makes_list(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name, and no other one, a new list."""
    pairs: list[tuple[ast.expr, ast.expr | None]]
    if isinstance(statement, ast.AnnAssign):
        pairs = [(statement.target, statement.value)]
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = [*zip(target.elts, value.elts, strict=False)]
    else:
        return False
    made = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
    return len(made) == 1 and isinstance(made[0], ast.List)


def _stored(node: ast.AST) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
