"""Colours for Python and C: which words are keywords, comments, numbers and strings."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from tinyfuse.inspect.page import Markup, element, joined

_C_KEYWORDS = (
    *("bool", "break", "char", "const", "continue", "double", "else", "float", "for", "if", "int"),
    *("long", "restrict", "return", "static", "uint32_t", "unsigned", "void", "while"),
)
_WORDS = r"(?P<number>\b\d[\w.]*)|(?P<string>\"[^\"\n]*\"|'[^'\n]*')"


def _pattern(comment: str, keywords: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<comment>{comment}[^\n]*)|{_WORDS}|(?P<keyword>\b({'|'.join(keywords)})\b)"
    )


_LANGUAGES = {
    "c": _pattern("//", _C_KEYWORDS),
    "python": _pattern("#", keyword.kwlist),
}


def code(text: str, language: str) -> Markup:
    """A block of code. language: `c` or `python`."""
    parts: list[str] = []
    end = 0
    for found in _LANGUAGES[language].finditer(text):
        parts += [text[end : found.start()], _span(found)]
        end = found.end()
    return element("pre", joined(*parts, text[end:]))


def _span(found: re.Match[str]) -> Markup:
    kind = next(name for name, words in found.groupdict().items() if words is not None)
    return element("span", found[0], class_=kind)
