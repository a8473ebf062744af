"""Names that the user's code gives to values, for all texts and for schedules."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tinyfuse.errors import StageNameError
from tinyfuse.graph.ir import Var
from tinyfuse.stage.names import RESERVED, identifier
from tinyfuse.trace.builder import leaked, state
from tinyfuse.trace.operation import operate

Value = TypeVar("Value")


def name(x: Value, text: str) -> Value:
    """Call a value `text` in all texts and in schedules; returns x itself.

    ::

        blur_x = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
        tinyfuse.name(blur_x, "across")          # lowered.schedule.stage("across")

    The stage that computes the value has this name, and not that of a variable; `text_1` where an
    argument, the function or a value named before is called so. A view of a computed value names
    that if it shows all of its elements. Nothing else changes: not what is fused, and no bit.

    Args:
        x: an array of any shape and dtype, or a number. Outside of tracing nothing happens to it.
        text: a C identifier, and neither a word of C nor one of its library.

    Raises:
        ArgumentTypeError: text is not a string, or x is no array.
        StageNameError: text is no such identifier.
    """
    return operate(_named, x, text)


def _named(x: Any, text: Any) -> Any:
    if not isinstance(text, str):
        raise TypeError(f"tinyfuse.name takes a name as a string, not a {type(text).__name__}")
    _require_identifier(text)
    if not isinstance(x, np.ndarray | np.generic | float | int):
        raise TypeError(f"tinyfuse.name takes an array, not a {type(x).__name__}: name its parts")
    if hasattr(type(x), "_atom"):
        _give(x, text)
    return x


def _require_identifier(text: str) -> None:
    if not text.isascii() or not text.isidentifier():
        raise StageNameError(f"{text!r} is no C identifier (letters, digits and _)")
    if text in RESERVED:
        raise StageNameError(f"{text!r} is a word of C or of its library: write {text}_ or another")
    if identifier(text) != text:
        raise StageNameError(f"{text!r} begins as names do that C or tinyfuse keep for themselves")


def _give(x: Any, text: str) -> None:
    """Name what the stand-in for an array holds now; a literal has no name."""
    if x._builder is not state.builder:
        raise leaked()
    var = x._atom
    if type(var) is Var:
        object.__setattr__(var, "name", text)  # the graph is still being made
        object.__setattr__(var, "given", True)
