"""The head of a C file: typedefs, and the functions of the prelude that it uses.

The functions stand in `runtime_c` as readable C: those of mathematics for float and for double,
most others written once for a placeholder type.
The head holds what a program uses and what that needs, nothing else, and no `#include`: no C
library is called.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tinyfuse.emit.interleaving import INTERLEAVED, INTERLEAVED_TEXT
from tinyfuse.emit.neighbours import MASKS, MASKS_TEXT, TURNED, TURNED_TEXT
from tinyfuse.emit.pieces import PIECES, PIECES_TEXT
from tinyfuse.loops.sorting import BLOCKS, NetworkBlock
from tinyfuse.loops.transposes import LANES

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@functools.cache
def runtime_c() -> Path:
    """The folder of the C that ships: in the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "runtime_c"
    return installed if installed.is_dir() else package.parent / "runtime_c"


def prelude_text(used: Iterable[str]) -> str:
    """The head for the names in `used`, as `emit.scalar` notes them, in an order of its own."""
    needed = _closure(used)
    typedefs = [text for name, text in _typedefs().items() if name in needed]
    functions = sorted(needed - _typedefs().keys(), key=lambda name: _positions()[name])
    parts = ("\n".join(typedefs), *map(_text, functions))
    return "".join(f"{part}\n\n" for part in parts if part)


def all_names() -> list[str]:
    """Every name that can be used, in the order of heads."""
    return [*_typedefs(), *_functions()]


def _closure(used: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_needs(name))
    return found


@functools.cache
def _needs(name: str) -> tuple[str, ...]:
    """The names of the other parts that stand in a part: in a typedef only those of typedefs.

    So the files of functions are only read where a program uses one.
    """
    known: Collection[str] = _typedefs() if name in _typedefs() else _known()
    code = re.sub(r"//.*", "", _text(name))
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", code))
    return tuple([word for word in words if word in known and word != name])


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(all_names())


@functools.cache
def _text(name: str) -> str:
    if name in _typedefs():
        return _typedefs()[name]
    source = _functions()[name]
    return source.instantiate(source.text)


@functools.cache
def _typedefs() -> dict[str, str]:
    integers = {f"{name}_t": f"typedef __{name.upper()}_TYPE__ {name}_t;" for name in _INTEGERS}
    vectors = {vector_type(name, lanes): _vector_typedef(name, lanes) for name, lanes in _VECTORS}
    pair = "typedef struct {\n  uint64_t key, position;\n} pair_t;"
    return {
        "bool8_t": "typedef __UINT8_TYPE__ bool8_t; // 0 or 1",
        **{f"{name}_t": f"typedef __UINT16_TYPE__ {name}_t;" for name in _HALVES},
        **integers,
        **vectors,
        "pair_t": pair,
        PIECES: PIECES_TEXT,
        INTERLEAVED: INTERLEAVED_TEXT,
        MASKS: MASKS_TEXT,
        TURNED: TURNED_TEXT,
    }


_HALVES = ("float16", "bfloat16")
_SIZES = {
    "float": 4,
    "double": 8,
    "bool8_t": 1,
    **{f"{name}_t": int(name[-2:].lstrip("t")) // 8 for name in _INTEGERS},
}
_VECTORS = [(name, width // size) for name, size in _SIZES.items() for width in (16, 32, 64)]


def vector_type(element: str, lanes: int) -> str:
    """The name of the type of vectors of a type: `float_x16`, `int32_x16`."""
    return f"{element.removesuffix('_t')}_x{lanes}"


# By bytes of a vector: what says that there is such an instruction, and gcc's function for it.
_FMA = {
    16: ("__FMA__", "", ""),
    32: ("__FMA__", "256", ""),
    64: ("__AVX512F__", "512_mask", ", -1, 4"),  # all lanes, rounded to nearest
}


def _vector_typedef(element: str, lanes: int) -> str:
    """Vectors that may lie at any element of an array."""
    size = _SIZES[element]
    kind = f"vector_size({size * lanes}), aligned({size}), may_alias"
    return f"typedef {element} {vector_type(element, lanes)} __attribute__(({kind}));"


# Functions of `runtime_c`


class _Source(NamedTuple):
    """A function: C, and what puts types in the place of its placeholders."""

    text: str
    instantiate: Callable[[str], str]


@functools.cache
def _positions() -> dict[str, int]:
    return {name: position for position, name in enumerate(_functions())}


@functools.cache
def _functions() -> dict[str, _Source]:
    """Every function that a head can have, in the order in which heads have them."""
    functions: dict[str, _Source] = {}
    for file, instances in _FILES.items():
        blocks = _blocks((runtime_c() / file).read_text())
        for instantiate in instances:
            names = instantiate("\n".join(blocks)).split("\n")  # at once, for it is the first call
            for name, text in zip(names, blocks.values(), strict=True):
                functions[name] = _Source(text, instantiate)
    return functions


def _blocks(source: str) -> dict[str, str]:
    """The functions of a file by name, each with the comment above it."""
    blocks = source.strip().split("\n\n")[1:]  # the first one describes the file
    return {_name(block): block for block in blocks}


def _name(block: str) -> str:
    defined = re.search(r"\b(tf_\w+)\(", block)
    assert defined is not None
    return defined[1]


def _unchanged(text: str) -> str:
    return text


_INFINITY_AS_INT = {8: "0", 16: "0", 32: "-2147483647 - 1", 64: "-9223372036854775807 - 1"}


def _for_integer(bits: int) -> Callable[[str], str]:
    """Puts int32_t for int_t, uint32_t for uint_t, and the like in names."""
    words = {
        "int_t": f"int{bits}_t",
        "uint_t": f"uint{bits}_t",
        "BITS": str(bits),
        "INFINITY_AS_INT": _INFINITY_AS_INT[bits],
    }

    def instantiate(text: str) -> str:
        return re.sub(r"\b(tf_\w+_u?int)\b", rf"\g<1>{bits}", _with_words(text, words))

    return instantiate


_FORMATS = {
    "float": {
        "bits_t": "uint32_t",
        "signed_t": "int32_t",
        "BITS": "32",
        "MANTISSA_BITS": "23",
        "EXPONENT_MASK": "0x7f800000u",
        "EXPONENT_OF_HALF": "126",
        "SMALLEST_NORMAL": "1.17549435e-38f",
        "SUBNORMAL_SCALE": "16777216.0f",
    },
    "double": {
        "bits_t": "uint64_t",
        "signed_t": "int64_t",
        "BITS": "64",
        "MANTISSA_BITS": "52",
        "EXPONENT_MASK": "0x7ff0000000000000u",
        "EXPONENT_OF_HALF": "1022",
        "SMALLEST_NORMAL": "2.2250738585072014e-308",
        "SUBNORMAL_SCALE": "9007199254740992.0",
    },
}


def _for_real(real: str) -> Callable[[str], str]:
    """Puts float for real_t, 0.5f for (real_t)0.5, tf_x_float for tf_x_real.

    `__builtin_floor_real` becomes `__builtin_floorf`.
    """
    suffix = "f" if real == "float" else ""

    def name(match: re.Match[str]) -> str:
        return f"{match[1]}_{real}" if match[1].startswith("tf_") else match[1] + suffix

    def instantiate(text: str) -> str:
        text = re.sub(r"\(real_t\)(-?\d[\d.]*)", rf"\g<1>{suffix}", text)
        text = re.sub(r"\b(\w+)_real\b", name, text)
        return _with_words(text, {"real_t": real, **_FORMATS[real]})

    return instantiate


def _for_vector(element: str, lanes: int) -> Callable[[str], str]:
    """Puts int32_t for item_t, int32_x16 for vector_t, tf_x_int32_x16 for tf_x_vector."""
    vector = vector_type(element, lanes)
    words = {"vector_t": vector, "item_t": element, "LANES": str(lanes)}
    return lambda text: _with_words(re.sub(r"\b(tf_\w+)_vector\b", rf"\g<1>_{vector}", text), words)


def _for_real_vector(real: str, lanes: int) -> Callable[[str], str]:
    """The same for functions of vectors of float or double alone."""
    of_real, of_vector = _for_real(real), _for_vector(real, lanes)
    feature, function, rest = _FMA[_SIZES[real] * lanes]
    kind = {"float": "s", "double": "d"}[real]
    fma = f"__builtin_ia32_vfmaddp{kind}{function}(a, b, c{rest})"
    return lambda text: _with_words(of_vector(of_real(text)), {"HAS_FMA": feature, "FMA": fma})


def _with_words(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda match: words.get(match[0], match[0]), text)


def _for_items(item: str) -> Callable[[str], str]:
    """Puts uint32_t for item_t and key_t, or pair_t and uint64_t; tf_x_uint32 for tf_x_item."""
    words = {"item_t": f"{item}_t", "key_t": "uint64_t" if item == "pair" else f"{item}_t"}
    return lambda text: _with_words(re.sub(r"\b(tf_\w+)_item\b", rf"\g<1>_{item}", text), words)


def _for_value(value: str, bits: int) -> Callable[[str], str]:
    """Puts float for value_t, uint32_t for key_t, tf_x_float for tf_x_value, and so on."""
    words = {"value_t": value if value in _FORMATS else f"{value}_t", "key_t": f"uint{bits}_t"}

    def instantiate(text: str) -> str:
        text = re.sub(r"\b(tf_\w+)_value\b", rf"\g<1>_{value}", text)
        return _with_words(re.sub(r"\b(tf_\w+)_key\b", rf"\g<1>_uint{bits}", text), words)

    return instantiate


def _for_block(bits: int, lanes: int) -> Callable[[str], str]:
    """Puts uint32_t for item_t, 8 for LANES, tf_x_8_uint32 for tf_x_lanes_item, and for each half
    of two vectors the lanes of both by turns."""
    pairs = [f"{lane}, {lane + lanes}" for lane in range(lanes)]
    words = {
        "item_t": f"uint{bits}_t",
        "LANES": str(lanes),
        "FIRST_HALVES": ", ".join(pairs[: lanes // 2]),
        "SECOND_HALVES": ", ".join(pairs[lanes // 2 :]),
    }

    def instantiate(text: str) -> str:
        text = re.sub(r"\b(tf_\w+)_lanes_item\b", rf"\g<1>_{lanes}_uint{bits}", text)
        return _with_words(text, words)

    return instantiate


# What sorts columns of so many rows with the fewest comparisons known, by pairs of rows.
_NETWORKS = {
    4: "0 2 1 3 0 1 2 3 1 2",
    8: "0 2 1 3 4 6 5 7 0 4 1 5 2 6 3 7 0 1 2 3 4 5 6 7 2 4 3 5 1 4 3 6 1 2 3 4 5 6",
    16: "0 13 1 12 2 15 3 14 4 8 5 6 7 11 9 10 0 5 1 7 2 9 3 4 6 13 8 14 10 15 11 12 0 1 2 3 4 5 "
    "6 8 7 9 10 11 12 13 14 15 0 2 1 3 4 10 5 11 6 7 8 9 12 14 13 15 1 2 3 12 4 6 5 7 8 10 9 "
    "11 13 14 1 4 2 6 5 8 7 10 9 13 11 14 2 4 3 6 9 12 11 13 3 5 6 8 7 9 10 12 3 4 5 6 7 8 9 "
    "10 11 12 6 7 8 9",
}

# By bytes of a vector and of a lane: what says that there are instructions for the lesser and the
# greater of two lanes, and how gcc's functions for them are called and take their arguments.
_LEAST = {
    (16, 2): ("__SSE2__", "sw128", ""),
    (32, 2): ("__AVX2__", "sw256", ""),
    (16, 4): ("__SSE4_1__", "sd128", ""),
    (32, 4): ("__AVX2__", "sd256", ""),
    (64, 4): ("__AVX512F__", "sd512_mask", ", (lanes_t)a, -1"),
    (16, 8): ("__AVX512VL__", "sq128_mask", ", (lanes_t)a, -1"),
    (32, 8): ("__AVX512VL__", "sq256_mask", ", (lanes_t)a, -1"),
    (64, 8): ("__AVX512F__", "sq512_mask", ", (lanes_t)a, -1"),
}


def network_pairs(rows: int) -> list[tuple[int, int]]:
    """The rows that are put in order in turn: the lesser one goes to the first of a pair."""
    places = [int(row) for row in _NETWORKS[rows].split()]
    return list(zip(places[::2], places[1::2], strict=True))


def _network_words(bits: int, rows: int, lanes: int) -> dict[str, str]:
    turns = [f"{lane}, {lane + lanes}" for lane in range(lanes)]
    feature, function, rest = _LEAST[bits // 8 * lanes, bits // 8]
    arguments = f"{function}((lanes_t)a, (lanes_t)b{rest})"
    return {
        "item_t": f"int{bits}_t",
        "uitem_t": f"uint{bits}_t",
        "vector_t": vector_type(f"int{bits}", lanes),
        "lane_t": {16: "short", 32: "int", 64: "long long"}[bits],
        "ROWS": str(rows),
        "LANES": str(lanes),
        "NETWORK": ", ".join([f"{{{low}, {high}}}" for low, high in network_pairs(rows)]),
        "REVERSED": ", ".join(map(str, reversed(range(lanes)))),
        "FIRST_HALVES": ", ".join(turns[: lanes // 2]),
        "SECOND_HALVES": ", ".join(turns[lanes // 2 :]),
        "HAS_LEAST": feature,
        "LEAST": f"__builtin_ia32_pmin{arguments}",
        "GREATEST": f"__builtin_ia32_pmax{arguments}",
    }


def _for_network(bits: int, block: NetworkBlock) -> Callable[[str], str]:
    """Puts int32_t for item_t, int32_x8 for vector_t, tf_x_int32_16x8 for tf_x_network."""
    words, suffix = _network_words(bits, *block), f"int{bits}_{block.rows}x{block.lanes}"
    return lambda text: _with_words(re.sub(r"\b(tf_\w+)_network\b", rf"\1_{suffix}", text), words)


def _for_ranked(value: str, bits: int, block: NetworkBlock) -> Callable[[str], str]:
    """The same for functions of values, whose items have so many bits: tf_sort_float_16x8 for
    tf_sort_value_network."""
    of_network, words = (
        _for_network(bits, block),
        {"value_t": value if value in _FORMATS else f"{value}_t"},
    )

    def instantiate(text: str) -> str:
        block_name = f"{value}_{block.rows}x{block.lanes}"
        text = re.sub(r"\b(tf_\w+)_value_network\b", rf"\1_{block_name}", text)
        text = re.sub(r"\b(tf_\w+)_value\b", rf"\1_{value}", text)
        return of_network(_with_words(text, words))

    return instantiate


def _for_rank(bits: int) -> Callable[[str], str]:
    """As `_for_integer`, of ranks of 16 bits or more."""
    of_integer, rank = _for_integer(bits), max(bits, 16)
    top = f"((uint{bits}_t)1 << {bits - 1})" if bits == rank else "0"
    return lambda text: _with_words(of_integer(text), {"rank_t": f"int{rank}_t", "TOP_BIT": top})


_WIDTHS = (8, 16, 32, 64)
_NARROW_NAMES = {
    **{f"{sign}int{bits}": bits for bits in _WIDTHS[:3] for sign in ("", "u")},
    "float": 32,
}
_WIDE_NAMES = dict.fromkeys(("int64", "uint64", "double"), 64)
_NARROW = [_for_value(name, bits) for name, bits in _NARROW_NAMES.items()]
_WIDE = [_for_value(name, 64) for name in _WIDE_NAMES]
_FILES: dict[str, list[Callable[[str], str]]] = {
    "scalar_mixed.h": [_unchanged],
    "scalar_uint.h": [_for_integer(bits) for bits in _WIDTHS],
    "scalar_int.h": [_for_integer(bits) for bits in _WIDTHS],
    "scalar_float.h": [_for_real(real) for real in _FORMATS],
    "scalar_half.h": [_unchanged],
    "half_rows.h": [_unchanged],
    "streamed_stores.h": [_unchanged],
    "prefetch.h": [_unchanged],
    "transposes.h": [
        _for_block(8 * size, lanes) for size, numbers in LANES.items() for lanes in numbers
    ],
    "halving_rows.h": [_for_real(real) for real in _FORMATS],
    "vectors.h": [_for_vector(element, lanes) for element, lanes in _VECTORS],
    "vectors_float.h": [
        _for_real_vector(name, lanes) for name, lanes in _VECTORS if name in _FORMATS
    ],
    "dividing_rows.h": [_unchanged],
    "math_division.h": [_unchanged],
    "scalar_division.h": [_for_real(real) for real in _FORMATS],
    "scalar_convert.h": [_for_real(real) for real in _FORMATS],
    "sort_keys.h": [_for_integer(bits) for bits in _WIDTHS],
    "sort_keys_float.h": [_for_real(real) for real in _FORMATS],
    "sort_pairs.h": [_unchanged],
    "sort_items.h": [_for_items(f"uint{bits}") for bits in _WIDTHS] + [_for_items("pair")],
    "sort_values.h": [*_NARROW, *_WIDE],
    "sort_positions.h": _NARROW,
    "sort_wide_positions.h": _WIDE,
    "sort_ranks.h": [_for_rank(bits) for bits in _WIDTHS],
    "sort_ranks_float.h": [_for_real(real) for real in _FORMATS],
    "sort_network.h": [_for_network(8 * size, b) for size in BLOCKS for b in BLOCKS[size]],
    "sort_ranked.h": [
        _for_ranked(name, max(bits, 16), block)
        for name, bits in {**_NARROW_NAMES, **_WIDE_NAMES}.items()
        for block in BLOCKS[max(bits // 8, 2)]
    ],
    "sort_ranked_positions.h": [
        _for_ranked(name, 64, block) for name in _NARROW_NAMES for block in BLOCKS[8]
    ],
    "sort_ranked_wide_positions.h": [
        _for_ranked(name, 64, block) for name in _WIDE_NAMES for block in BLOCKS[8]
    ],
    "math_exponential.h": [_unchanged],
    "exponential_rows.h": [_unchanged],
    "math_logarithm.h": [_unchanged],
    "math_power.h": [_unchanged],
    "math_constant_power.h": [_for_real(real) for real in _FORMATS],
    "math_trigonometric.h": [_unchanged],
    "math_special.h": [_unchanged],
}
