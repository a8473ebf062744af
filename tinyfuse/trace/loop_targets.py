"""Where the variables of a function are read, and which targets of loops are read after them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tinyfuse.trace.parts import stop_of


def loads_in(function: ast.AST) -> dict[str, int]:
    """How often each name is read, functions inside included; also those that stop loops."""
    counts: dict[str, int] = {}
    for node in ast.walk(function):
        stop = stop_of(node) if isinstance(node, (ast.For, ast.While)) else None
        if stop:
            counts[stop] = counts.get(stop, 0) + 1
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, (ast.Nonlocal, ast.Global)):
            counts.update({name: counts.get(name, 0) + 1 for name in node.names})
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 1
    return counts


def loads_of(node: ast.For | ast.While | ast.If) -> dict[str, int]:
    counts: dict[str, int] = {}
    if isinstance(node, ast.While):
        counts = loads_in(node.test)
    parts = [*node.body, *node.orelse]
    for statement in parts:
        for name, count in loads_in(statement).items():
            counts[name] = counts.get(name, 0) + count
    return counts


def targets_read_after(function: ast.AST, loads: Mapping[str, int]) -> set[ast.For]:
    """The loops whose target may be read after they have ended.

    What another loop with that target reads in its body is its own. loads: of the function.
    """
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    own = {loop: loads_of(loop) for loop in loops}
    inside = {
        loop: {each for each in ast.walk(loop) if isinstance(each, ast.For)} for loop in loops
    }

    def is_read_after(loop: ast.For, name: str) -> bool:
        others = [
            each
            for each in loops
            if name in targets_of(each) and loop not in inside[each] and each not in inside[loop]
        ]
        outermost = [each for each in others if not any(each in inside[o] - {o} for o in others)]
        elsewhere = sum([own[each].get(name, 0) for each in outermost])
        return loads.get(name, 0) > own[loop].get(name, 0) + elsewhere

    return {loop for loop in loops if any(is_read_after(loop, name) for name in targets_of(loop))}


def targets_of(loop: ast.For) -> set[str]:
    return {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
