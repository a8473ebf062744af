"""Expressions of a function whose parts data decides about, rewritten as calls::

    a if c else b           __tinyfuse_choose__(c, lambda: a, lambda: b)
    a and b                 __tinyfuse_both__(lambda: a, lambda: b)
    x < y < z               __tinyfuse_both__(lambda: x < y, lambda: y < z)
    not a                   __tinyfuse_not__(a)
    max(a, b)               __tinyfuse_extreme__(max, a, b)
    np.float64(a)           __tinyfuse_scalar__(np.float64, a)

In tests, where only truth counts, the parts of `and` and `or` are `__tinyfuse_tested__(a)`. What
changes anything of Python's stays as it is: both parts run while the function is traced.
"""

from __future__ import annotations

import ast
from typing import Any

from tinyfuse.trace.parts import is_pure

CHOOSE, NOT, EXTREME = "__tinyfuse_choose__", "__tinyfuse_not__", "__tinyfuse_extreme__"
SCALAR = "__tinyfuse_scalar__"
BOTH, EITHER, TESTED = "__tinyfuse_both__", "__tinyfuse_either__", "__tinyfuse_tested__"
_SCALARS = ("float64", "float32", "float16", "int64")
_INSIDE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def rewrite_expressions(statement: ast.stmt) -> int:
    """Rewrite the expressions directly in a statement; returns how many there are."""
    rewriter = _Rewriter()
    for field, value in ast.iter_fields(statement):
        if isinstance(value, ast.expr):
            rewrite = rewriter.test if field == "test" else rewriter.visit
            setattr(statement, field, rewrite(value))
    return rewriter.count


class _Rewriter(ast.NodeTransformer):
    """Rewrites expressions, but for those in functions and comprehensions inside."""

    def __init__(self) -> None:
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, _INSIDE) else super().visit(node)

    def test(self, node: ast.expr) -> ast.expr:
        """What only has to be as true as an expression."""
        if isinstance(node, ast.BoolOp) and is_pure(node):
            parts = [self._call(node, TESTED, self.test(each)) for each in node.values]
            return self._call(node, _of_parts(node), *map(_later, parts))
        return self.visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if not is_pure(node):
            return node
        yes, no = self.visit(node.body), self.visit(node.orelse)
        return self._call(node, CHOOSE, self.test(node.test), _later(yes), _later(no))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if not is_pure(node):
            return node
        parts = [_later(self.visit(each)) for each in node.values]
        return self._call(node, _of_parts(node), *parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            self.generic_visit(node)
            return node
        return self._call(node, NOT, self.test(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        between = node.comparators[:-1]  # read twice
        if not between or not is_pure(node) or any(map(_calls, between)):
            return node
        pairs = zip([node.left, *between], node.ops, node.comparators, strict=True)
        parts = [_later(ast.Compare(one, [op], [other])) for one, op, other in pairs]
        return self._call(node, BOTH, *parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        func, starred = node.func, any(isinstance(each, ast.Starred) for each in node.args)
        if node.keywords or starred:
            return node
        if isinstance(func, ast.Name) and func.id in ("min", "max") and len(node.args) > 1:
            return self._call(node, EXTREME, func, *node.args)
        if isinstance(func, ast.Attribute) and func.attr in _SCALARS and len(node.args) == 1:
            return self._call(node, SCALAR, func, *node.args)
        return node

    def _call(self, node: ast.expr, name: str, *args: ast.expr) -> ast.expr:
        """A call in the place of an expression."""
        self.count += 1
        made = ast.Call(ast.Name(name, ast.Load()), [*args], [])
        ast.copy_location(made, node)
        for each in (made.func, *args):
            if not hasattr(each, "lineno"):
                ast.copy_location(each, node)
        return made


def _of_parts(node: ast.BoolOp) -> str:
    return BOTH if isinstance(node.op, ast.And) else EITHER


def _later(value: ast.expr) -> ast.Lambda:
    """A function without parameters that gives the value of an expression."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))
