"""Modules import only from those above them: the order of the levels is the order of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tinyfuse

ROOT = Path(tinyfuse.__file__).parent
LEVELS = (
    *("config", "errors", "tracebacks", "records", "dispatch", "dtypes", "memory", "tree"),
    *("cache_directory", "large_pages", "fixed", "constants", "machine", "occupancy", "source"),
    *("graph", "trace", "stage", "loops", "schedule", "lower", "emit", "runtime", "calibration"),
    *("naming", "control_flow", "parameters", "signature"),
    *("signature_differences", "effects", "finite_check", "executable", "device_executable"),
    *("direct", "python_call", "direct_call"),
    *("scheduling", "fitting", "kept", "compiled", "compilation"),
    *("bound", "by_value", "pickling", "jitted", "api"),
    *("quantiles", "keys", "random"),
    *("inspect", "testing", "nn", "__init__"),
)
MODULES = sorted(ROOT.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = ("tinyfuse", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


NAMES = {module_name(path): path for path in MODULES}


def level(name: str) -> int:
    parts = name.split(".")
    return LEVELS.index(parts[1] if len(parts) > 1 else "__init__")


def statements(path: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements, also those inside functions, but for those that only type checkers see."""
    stack: list[ast.AST] = [ast.parse(path.read_text())]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            stack.extend(node.orelse)
        else:
            stack.extend(ast.iter_child_nodes(node))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """(tinyfuse module, line) of each import."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (
                (alias.name, node.lineno)
                for alias in node.names
                if alias.name.split(".")[0] == "tinyfuse"
            )
        elif node.module and node.module.split(".")[0] == "tinyfuse":
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield (submodule if submodule in NAMES else node.module), node.lineno


def test_every_module_has_a_level():
    assert [name for name in NAMES if name.split(".")[1] not in LEVELS] == []


@pytest.mark.parametrize("name", NAMES)
def test_imports_only_from_above(name: str):
    below = [
        f"{name} line {line}: {imported}"
        for imported, line in imports(NAMES[name])
        if level(imported) > level(name) and name != "tinyfuse.__init__"
    ]
    assert below == []


def test_no_relative_imports():
    assert [
        str(path) for path in MODULES for node in statements(path) if getattr(node, "level", 0)
    ] == []


def test_no_import_cycles():
    """Within a level too: a module can be understood after those that it imports."""
    waiting = {
        name: {to for to, _ in imports(path) if to in NAMES and to != name}
        for name, path in NAMES.items()
    }
    waiting.pop("tinyfuse.__init__", None)
    while ready := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in ready:
            del waiting[name]
    assert waiting == {}
