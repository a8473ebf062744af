"""Identifiers: what the user called a value, as a name that C accepts and nothing else has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, count, islice
from math import prod
from typing import NamedTuple

from tinyfuse.graph.ir import Graph, Primitive, Var
from tinyfuse.graph.printer import computed_name
from tinyfuse.stage.layout import Layout

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while
    alignas alignof asm bool constexpr false nullptr static_assert thread_local true typeof
    typeof_unqual linux unix i386
"""

# Of C++ and CUDA besides: the same names stand in the text for a GPU.
_CUDA = """
    and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl
    concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend
    mutable namespace new noexcept not not_eq operator or or_eq private protected public
    reinterpret_cast requires static_cast template this throw try typeid typename using virtual xor
    xor_eq
    threadIdx blockIdx blockDim gridDim warpSize float4 double2 int4 uint4 tf
"""

_TYPES = """
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t
    uintmax_t size_t ssize_t ptrdiff_t wchar_t wint_t max_align_t time_t clock_t off_t div_t ldiv_t
    lldiv_t fpos_t va_list float_t double_t
    pair_t int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool8 float16 float32 float64
"""

_MATH = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1
    fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma lgamma_r llrint llround log
    log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder
    remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc significand drem
    j0 j1 jn y0 y1 yn
"""

_LIBRARY = """
    NULL EOF I FILE INFINITY NAN HUGE_VAL CHAR_BIT RAND_MAX assert errno signgam
    abort abs alloca atexit atof atoi atol bsearch calloc clock ctime div errx exit ffs free getc
    getchar getenv gets index isalnum isalpha isblank iscntrl isdigit isfinite isgraph isgreater
    isinf isless islower isnan isnormal isprint ispunct isspace isunordered isupper isxdigit labs
    ldiv llabs lldiv longjmp main malloc memchr memcmp memcpy memmove memset perror printf putc
    putchar puts qsort raise rand read realloc remove rename rewind scanf setjmp signal signbit
    sprintf srand sscanf stderr stdin stdout strcat strchr strcmp strcpy strlen strncmp strncpy
    strtod strtol system time tolower toupper write gamma
"""

# What the emitted C itself is written with.
_EMITTED = """
    arrays scratch pool buffers begin end extent grain task
    apart warp partial_float partial_double partial_int partial_int32 partial_int64 partial_uint32
    partial_uint64
"""


def _reserved() -> frozenset[str]:
    mathematical = _MATH.split()
    variants = [name + suffix for name in [*mathematical, "gamma"] for suffix in ("f", "l")]
    others = f"{_KEYWORDS} {_CUDA} {_TYPES} {_LIBRARY} {_EMITTED}".split()
    return frozenset([*mathematical, *variants, *others])


RESERVED = _reserved()

_NOT_AN_IDENTIFIER = re.compile(r"\W", re.ASCII)
_RESERVED_START = re.compile(r"_+(?=[A-Z_]|$)|_(?=\d)|tf_", re.ASCII)
_LETTER = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?([A-Z]+)$")


@lru_cache(maxsize=4096)
def identifier(text: str) -> str:
    """A C identifier that looks like `text`: `x` for `x`, `alpha_0` for `α_0`, `u_tf_x` for `tf_x`.

    It may still be a reserved word; those count as taken in `Names`.
    """
    if not text.isascii():
        text = "".join(map(_transliterated, unicodedata.normalize("NFKD", text)))
    if not text.isidentifier():
        text = _NOT_AN_IDENTIFIER.sub("_", text).strip("_")
    if not text or text[0].isdigit() or _RESERVED_START.match(text):
        return f"u_{text.lstrip('_')}".rstrip("_") or "u"
    return text


def _transliterated(character: str) -> str:
    """ASCII for one character: `alpha` for a Greek letter, nothing for an accent, else `u4e2d`."""
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return ""
    letter = _LETTER.match(unicodedata.name(character, ""))
    if letter is None:
        return f"u{ord(character):x}"
    name = letter[2].lower().replace("lamda", "lambda")
    return name.capitalize() if letter[1] == "CAPITAL" else name


class Names:
    """Hands out identifiers, each once; the reserved words count as handed out."""

    def __init__(self) -> None:
        self._suffixes: dict[str, int] = dict.fromkeys(RESERVED, 1)

    def fresh(self, text: str) -> str:
        """`text` as an identifier, with the first free suffix `_1`, `_2`, … where it is taken."""
        name = wanted = identifier(text)
        suffix = self._suffixes.get(wanted, 0)
        while name in self._suffixes:
            name, suffix = f"{wanted}_{max(suffix, 1)}", max(suffix, 1) + 1
        self._suffixes[wanted] = suffix
        self._suffixes.setdefault(name, 1)
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._suffixes


class AxisNames:
    """Names for the axes of stages: the usual letters, but for those that a stage is called.

    Stages and loop counters share a scope in C.
    """

    def __init__(self, taken: Names):
        self._taken = taken
        more = (f"axis{position}" for position in count())
        self._letters = self._free(chain("ijklmnopqrtuvwxyz", more))
        self._found: list[str] = []
        self._kept: dict[int, tuple[str, ...]] = {}

    def _free(self, names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if name not in self._taken)

    def _first(self, number: int) -> list[str]:
        """The first letters that are free."""
        self._found += islice(self._letters, max(0, number - len(self._found)))
        return self._found[:number]

    def kept(self, rank: int) -> tuple[str, ...]:
        """Names for the axes of a stage: i, j, k, or from four axes on i0, i1, …"""
        if rank not in self._kept:
            self._kept[rank] = tuple(self._first(rank)) if rank < 4 else self._numbered(rank)
        return self._kept[rank]

    def _numbered(self, rank: int) -> tuple[str, ...]:
        for letter in self._first(26):
            names = tuple([f"{letter}{position}" for position in range(rank)])
            if not any(name in self._taken for name in names):
                return names
        return tuple(self._first(rank))

    def reduced(self, kept: Collection[str], rank: int) -> list[str]:
        """Names for reduce axes: k, l, … but for those of the axes that the stage keeps."""
        used = (*kept, "i", "j")
        return [name for name in self._first(rank + len(used)) if name not in used][:rank]

    def special(self, letter: str, word: str, kept: Collection[str]) -> str:
        """`letter`, or `word` where something else is called so, or that with a suffix."""
        candidates = chain((letter, word), (f"{word}_{suffix}" for suffix in count(1)))
        return next(name for name in self._free(candidates) if name not in kept)


class StageName(NamedTuple):
    text: str
    named: bool  # by the user


def stage_names(
    graph: Graph,
    names: Names,
    views: Collection[Primitive],
    layouts: Mapping[Var, Layout],
    known: Mapping[Var, StageName] | None = None,
) -> dict[Var, StageName]:
    """What the stages of a graph's inputs, computed values and copied outputs are called.

    The user's names come first: those of inputs, then those that were asked for. A value without
    one is called after a view that shows all of it and has one, then `out` where it is returned,
    else after its operation. known: for a part of a program the names of inputs that have some.
    """
    returned = graph.outputs if known is None else ()
    known = known or {}
    computed = {eqn.output: eqn for eqn in graph.eqns if eqn.primitive not in views}
    seen_as = _names_of_views(graph, computed)
    copied = _copied(graph, computed, layouts)
    wanted = {var: var.name or "argument" for var in graph.inputs if var not in known}
    called = {var: seen_as[var] for var in computed if var in seen_as}
    called |= {var: var for var in copied if var.name}
    by_rank = sorted(called.items(), key=lambda item: not item[1].given)
    wanted |= {var: named.name for var, named in by_rank if named.name}
    result = {var: known[var] for var in graph.inputs if var in known}
    result |= {var: StageName(names.fresh(name), True) for var, name in wanted.items()}
    for var in (*returned, *layouts, *copied):
        if isinstance(var, Var) and var not in result and (var in computed or var in copied):
            result[var] = StageName(names.fresh("out"), False)
    for var, eqn in computed.items():
        if var not in result:
            result[var] = StageName(names.fresh(computed_name(eqn)), False)
    return result


def _copied(
    graph: Graph, computed: Collection[Var], layouts: Mapping[Var, Layout]
) -> dict[Var, None]:
    """The returned views that are copied."""
    stored = {*graph.inputs, *computed, *(layout.output for layout in layouts.values())}
    return {var: None for var in graph.outputs if isinstance(var, Var) and var not in stored}


def _names_of_views(graph: Graph, computed: Collection[Var]) -> dict[Var, Var]:
    """For computed values the variable that each is called after.

    It is itself if it has a name, else a reshaped or transposed view of it; but the first of these
    whose name was asked for.
    """
    found = {var: var for var in computed if var.name}
    origins = {var: var for var in computed}
    for eqn in graph.eqns:
        view = eqn.output
        if view in origins:
            continue
        operand = eqn.inputs[0]
        if operand in origins and prod(view.shape) == prod(operand.shape):
            origin = origins[view] = origins[operand]
            if view.name and (origin not in found or view.given > found[origin].given):
                found[origin] = view
    return found
