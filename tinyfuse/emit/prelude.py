"""The head of a C file: typedefs, declarations of the C library, and the prelude functions it uses.

The functions stand in `runtime_c` as readable C, most of them written once for a type that is a
placeholder. The head holds what a program uses and what that needs, nothing else, and no `#include`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_FLOATING = ("float", "double")

_ONE_ARGUMENT = (
    "exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh"
)
_TWO_ARGUMENTS = "atan2 hypot pow fmod"


class _Piece(NamedTuple):
    """A part of the head: its C text, and the names of other parts that stand in it."""

    text: str
    needs: tuple[str, ...]


def runtime_c() -> Path:
    """The folder with the C that ships: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "runtime_c"
    return installed if installed.is_dir() else package.parent / "runtime_c"


def prelude_text(used: Iterable[str]) -> str:
    """The head for the names in `used` (as `emit.scalar` notes them), in an order that is always the same."""
    pieces = _pieces()
    needed = _closure(used, pieces)
    groups: list[list[str]] = [[], [], []]
    for name, piece in pieces.items():
        if name in needed:
            groups[_group(name)].append(piece.text)
    typedefs, declarations, functions = groups
    parts = ["\n".join(typedefs), "\n".join(declarations), *functions]
    return "".join(f"{part}\n\n" for part in parts if part)


def uses_library(used: Iterable[str]) -> bool:
    """Whether the functions of the C library are called by what `used` names."""
    return any(_group(name) == 1 for name in _closure(used, _pieces()))


def library_functions() -> frozenset[str]:
    """All names of the C library that a head may declare: no variable can have one of them."""
    return frozenset(name for name in _pieces() if _group(name) == 1)


def _group(name: str) -> int:
    return 2 if name.startswith("tf_") else 0 if name.endswith("_t") else 1


def _closure(used: Iterable[str], pieces: Mapping[str, _Piece]) -> set[str]:
    found: set[str] = set()
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(pieces[name].needs)
    return found


@functools.cache
def _pieces() -> dict[str, _Piece]:
    """Every part that a head can have, in the order in which heads have them."""
    texts = {**_typedefs(), **_declarations(), **_functions()}
    return {name: _Piece(text, _needs(name, text, texts)) for name, text in texts.items()}


def _needs(name: str, text: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    code = re.sub(r"//.*", "", text)
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", code))
    return tuple(word for word in words if word in texts and word != name)


def _typedefs() -> dict[str, str]:
    integers = {f"{name}_t": f"typedef __{name.upper()}_TYPE__ {name}_t;" for name in _INTEGERS}
    return {"bool8_t": "typedef __UINT8_TYPE__ bool8_t; // 0 or 1", **integers}


def _declarations() -> dict[str, str]:
    return {
        name: text
        for real, suffix in zip(_FLOATING, ("f", ""), strict=True)
        for name, text in _declarations_for(real, suffix)
    }


def _declarations_for(real: str, suffix: str) -> Iterator[tuple[str, str]]:
    for names, parameters in [(_ONE_ARGUMENT, real), (_TWO_ARGUMENTS, f"{real}, {real}"), ("ldexp", f"{real}, int")]:
        for name in names.split():
            yield f"{name}{suffix}", f"{real} {name}{suffix}({parameters});"


# Functions that are written for a placeholder type


def _functions() -> dict[str, str]:
    texts: dict[str, str] = {}
    for file, instances in _FILES.items():
        blocks = _blocks((runtime_c() / file).read_text())
        for instantiate in instances:
            texts.update(_named(instantiate(block)) for block in blocks)
    return texts


def _blocks(source: str) -> list[str]:
    """The functions of a file, each with the comment above it."""
    return [block for block in source.strip().split("\n\n") if "{" in block]


def _named(text: str) -> tuple[str, str]:
    match = re.search(r"\b(tf_\w+)\(", text)
    assert match, text
    return match[1], text


def _unchanged(text: str) -> str:
    return text


def _for_integer(name: str) -> Callable[[str], str]:
    bits = int(name.strip("uint"))
    unsigned = f"uint{bits}"
    smallest = {8: "0", 16: "0", 32: "-2147483647 - 1", 64: "-9223372036854775807 - 1"}
    largest = {8: "0", 16: "0", 32: "0", 64: "0"}
    words = {
        "BITS": str(bits),
        "RECIPROCAL_OF_ZERO": (largest if name == unsigned else smallest)[bits],
        "int_t": f"{name}_t",
        "uint_t": f"{unsigned}_t",
    }

    def instantiate(text: str) -> str:
        text = re.sub(r"\b(BITS|RECIPROCAL_OF_ZERO|u?int_t)\b", lambda match: words[match[1]], text)
        return re.sub(r"\b(tf_\w+)_(u?int)\b", lambda match: f"{match[1]}_{match[2]}{bits}", text)

    return instantiate


def _for_real(real: str) -> Callable[[str], str]:
    single = real == "float"
    suffix = "f" if single else ""
    words = {
        "real_t": real,
        "bits_t": "uint32_t" if single else "uint64_t",
        "MANTISSA_BITS": "23" if single else "52",
        "EXPONENT_BITS": "8" if single else "11",
        "EXPONENT_BIAS": "127" if single else "1023",
        "SMALLEST_NORMAL": "1.17549435e-38f" if single else "2.2250738585072014e-308",
        "SUBNORMAL_SCALE": "16777216.0f" if single else "9007199254740992.0",
    }
    names = re.compile(rf"\b({'|'.join(words)})\b")

    def function(match: re.Match[str]) -> str:
        name = match[1]
        return f"{name}_{real}" if name.startswith("tf_") else f"{name}{suffix}"

    def instantiate(text: str) -> str:
        text = re.sub(r"\(real_t\)(-?\d[\d.]*(?:e[-+]?\d+)?)", rf"\g<1>{suffix}", text)
        text = re.sub(r"\b(\w+)_real\b", function, text)
        return names.sub(lambda match: words[match[1]], text)

    return instantiate


_FILES: dict[str, list[Callable[[str], str]]] = {
    "scalar_mixed.h": [_unchanged],
    "scalar_uint.h": [_for_integer(name) for name in _INTEGERS if name.startswith("u")],
    "scalar_int.h": [_for_integer(name) for name in _INTEGERS if not name.startswith("u")],
    "scalar_float.h": [_for_real(real) for real in _FLOATING],
    "scalar_convert.h": [_for_real(real) for real in _FLOATING],
}
