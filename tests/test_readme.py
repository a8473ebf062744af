"""The README: its code runs, and what it shows is what comes out."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the README's Python defines, run as one file."""
    path = tmp_path_factory.mktemp("readme") / "readme.py"
    path.write_text("\n\n".join(blocks("python")))
    return runpy.run_path(str(path))


@pytest.fixture(scope="module")
def lowered(readme: dict[str, Any]) -> Lowered:
    traced = readme["softmax"].trace(readme["x"])
    return Lowered(traced, traced.options, REFERENCE)


def require_block(language: str, text: str, request: pytest.FixtureRequest) -> None:
    """The README's block of that language is this text; --update-golden writes it."""
    if request.config.getoption("--update-golden"):
        before, fence, rest = README.read_text().partition(f"```{language}\n")
        README.write_text(before + fence + text + rest[rest.index("```") :])
    assert blocks(language) == [text], "pytest --update-golden tests/test_readme.py accepts this"


def test_python_runs_and_gives_a_softmax(readme: dict[str, Any]):
    x, y = readme["x"], readme["y"]
    expected = readme["softmax"].__wrapped__(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    assert abs(y - expected).max() <= 1e-6 * expected.max()


def test_c_is_what_is_emitted(lowered: Lowered, request: pytest.FixtureRequest):
    text = lowered.as_text("c")
    kernels = text[text.index("// e = np.exp(") :]
    require_block("c", kernels, request)


def test_graph_is_what_is_traced(lowered: Lowered, request: pytest.FixtureRequest):
    require_block("text", lowered.as_text("graph") + "\n", request)


def test_report_is_what_explain_says(lowered: Lowered, request: pytest.FixtureRequest):
    require_block("plaintext", str(tinyfuse.explain(lowered)), request)


def test_commands_are_in_the_makefile():
    makefile = (README.parent / "Makefile").read_text()
    commands = set(re.findall(r"\bmake ([a-z]+)", README.read_text()))
    assert commands == {"demo", "test", "bench", "gpu", "lint", "thorough"}
    assert all(f"\n{command}:" in makefile for command in commands)
