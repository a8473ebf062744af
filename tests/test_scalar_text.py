"""How scalar operations read in C, and what the head of a file holds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_emit import parsed
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from tinyfuse.emit.casts import cast_text
from tinyfuse.emit.ctext import CText, Precedence, const_text, type_text
from tinyfuse.emit.interleaving import INTERLEAVED
from tinyfuse.emit.neighbours import MASKS, TURNED
from tinyfuse.emit.pieces import PIECES
from tinyfuse.emit.prelude import (
    all_names,
    prelude_text,
    runtime_c,
)
from tinyfuse.emit.scalar import op_text

A, B, C = CText("a"), CText("b"), CText("c")
INT8, INT32, UINT8 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.uint8)
UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def text(
    name: str, *operands: CText, dtype: np.dtype = FLOAT32, out: np.dtype | None = None
) -> CText:
    return op_text(name, operands, [dtype] * len(operands), out or dtype, {})


def typed(name: str, *operands: tuple[CText, np.dtype], out: np.dtype) -> str:
    return op_text(name, [o for o, _ in operands], [dtype for _, dtype in operands], out, {}).text


def constant(value: np.generic) -> CText:
    return const_text(value, {})


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (text("add", A, text("add", B, C)), "a + (b + c)"),
        (text("add", text("add", A, B), C), "a + b + c"),
        (text("subtract", A, text("multiply", B, C)), "a - b * c"),
        (text("multiply", text("subtract", A, B), C), "(a - b) * c"),
        (text("divide", A, text("divide", B, C)), "a / (b / c)"),
        (text("negative", text("negative", A)), "-(-a)"),
        (text("negative", text("add", A, B)), "-(a + b)"),
        (text("subtract", A, constant(np.float32(-2))), "a - (-2.0f)"),
        (text("multiply", constant(np.float32(-2)), A), "-2.0f * a"),
        (text("square", A), "a * a"),
        (text("square", text("add", A, B)), "tf_square_float(a + b)"),
        (text("reciprocal", text("multiply", A, B)), "1.0f / (a * b)"),
        (text("exp", text("subtract", A, B)), "tf_exp_float(a - b)"),
        (text("exp", A, dtype=FLOAT64), "tf_exp_double(a)"),
        (text("arctan2", A, B), "tf_atan2_float(a, b)"),
        (text("sqrt", A), "__builtin_sqrtf(a)"),
        (text("fma", A, B, C), "__builtin_fmaf(a, b, c)"),
        (text("degrees", A), "a * 57.295776f"),
        (text("isfinite", A, out=BOOL), "__builtin_fabsf(a) < __builtin_inff()"),
        (text("maximum", A, B), "tf_maximum_float(a, b)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_floats(got: CText, expected: str) -> None:
    assert got.text == expected


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (text("add", A, B, dtype=INT32), "a + b"),
        (text("add", A, B, dtype=INT8), "(int8_t)(a + b)"),
        (text("negative", A, dtype=UINT8), "(uint8_t)-a"),
        (text("invert", A, dtype=INT64), "~a"),
        (text("invert", A, dtype=BOOL), "!a"),
        (text("fma", A, B, C, dtype=INT8), "(int8_t)(a * b + c)"),
        (text("fma", A, B, C, dtype=BOOL), "(a & b) | c"),
        (text("bitwise_or", text("bitwise_and", A, B, dtype=INT32), C, dtype=INT32), "(a & b) | c"),
        (text("less", text("add", A, B), C, out=BOOL), "a + b < c"),
        (text("equal", A, text("less", A, B, out=BOOL), dtype=BOOL), "a == (a < b)"),
        (text("less", A, B, dtype=BOOL), "(!a) & b"),
        (text("logical_and", A, B, out=BOOL), "(a != 0.0f) & (b != 0.0f)"),
        (text("logical_not", A, dtype=INT32, out=BOOL), "a == 0"),
        (text("logical_xor", A, B, dtype=BOOL), "a != b"),
        (text("floor_divide", A, B, dtype=INT32), "tf_floor_divide_int32(a, b)"),
        (text("absolute", A, dtype=UINT8), "a"),
        (text("isnan", A, dtype=INT32, out=BOOL), "0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_integers_and_bools(got: CText, expected: str) -> None:
    assert got.text == expected


def test_int64_and_uint64_are_compared_by_value() -> None:
    signed, unsigned = (A, INT64), (B, UINT64)
    for name, expected in {
        "equal": "tf_equal_int64_uint64(a, b)",
        "not_equal": "!tf_equal_int64_uint64(a, b)",
        "less": "tf_less_int64_uint64(a, b)",
        "greater": "!tf_less_equal_int64_uint64(a, b)",
    }.items():
        assert typed(name, signed, unsigned, out=BOOL) == expected
    assert typed("less", unsigned, signed, out=BOOL) == "!tf_less_equal_int64_uint64(a, b)"
    assert typed("greater", unsigned, signed, out=BOOL) == "tf_less_int64_uint64(a, b)"


def test_selects() -> None:
    condition = CText("x < 0", Precedence.RELATIONAL)
    flag = CText("p & q", Precedence.BITWISE_AND)
    inner = CText("p ? b : c", Precedence.CONDITIONAL)

    def select(test: CText, chosen: CText, other: CText, dtype: np.dtype = FLOAT32) -> str:
        return typed("select", (test, BOOL), (chosen, dtype), (other, dtype), out=dtype)

    assert select(condition, A, B) == "x < 0 ? a : b"
    assert select(flag, A, B) == "(p & q) ? a : b"
    assert select(condition, A, inner) == "x < 0 ? a : p ? b : c"
    assert select(condition, inner, A) == "x < 0 ? (p ? b : c) : a"
    one, two = (constant(np.int64(value)) for value in (1, 2))
    assert select(condition, one, two, INT64) == "x < 0 ? (int64_t)1 : 2"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.1), "0.1f"),
        (np.float32(2), "2.0f"),
        (np.float32(1e30), "1e+30f"),
        (np.float32(-0.0), "-0.0f"),
        (np.float64(1 / 3), "0.3333333333333333"),
        (np.float64(np.inf), "__builtin_inf()"),
        (np.float32(-np.inf), "-__builtin_inff()"),
        (np.float32(np.nan), '__builtin_nanf("")'),
        (np.float64(-np.nan), '__builtin_nan("")'),
        (np.bool_(True), "1"),
        (np.int8(-128), "-128"),
        (np.uint8(200), "200"),
        (np.int32(-(2**31)), "-2147483647 - 1"),
        (np.int64(-(2**63)), "-9223372036854775807 - 1"),
        (np.uint32(7), "7u"),
        (np.uint64(2**64 - 1), "18446744073709551615u"),
    ],
    ids=repr,
)
def test_constants(value: np.generic, expected: str) -> None:
    assert constant(value).text == expected


@given(st.floats(width=32) | st.floats())
def test_constants_read_back_as_the_same_value(value: float) -> None:
    for dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            number = dtype(value)
        if np.isfinite(number):
            read = dtype(constant(number).text.removesuffix("f"))
            assert read.tobytes() == number.tobytes()


def test_constants_are_put_into_parentheses_where_they_are_sums() -> None:
    smallest = constant(np.int64(-(2**63)))
    assert text("multiply", A, smallest, dtype=INT64).text == "a * (-9223372036854775807 - 1)"
    assert text("subtract", A, smallest, dtype=INT64).text == "a - (-9223372036854775807 - 1)"


def test_literals_of_64_bits_are_computed_with_64_bits() -> None:
    big = constant(np.int64(2_000_000_000))
    assert text("add", big, big, dtype=INT64).text == "(int64_t)2000000000 + 2000000000"
    assert text("add", A, big, dtype=INT64).text == "a + 2000000000"
    product = text("multiply", constant(np.uint64(3)), constant(np.uint64(5)), dtype=UINT64)
    assert product.text == "(uint64_t)3u * 5u"


@pytest.mark.parametrize(
    ("from_dtype", "to_dtype", "expected"),
    [
        (FLOAT64, FLOAT32, "(float)(a + b)"),
        (INT32, FLOAT64, "(double)(a + b)"),
        (INT64, INT8, "(int8_t)(a + b)"),
        (FLOAT32, BOOL, "a + b != 0.0f"),
        (INT64, BOOL, "a + b != 0"),
        (FLOAT32, INT32, "tf_int32_float(a + b)"),
        (FLOAT64, UINT8, "(uint8_t)tf_int32_double(a + b)"),
        (FLOAT32, UINT32, "(uint32_t)tf_int64_float(a + b)"),
        (FLOAT32, UINT64, "tf_uint64_float(a + b)"),
        (FLOAT32, FLOAT32, "a + b"),
    ],
    ids=str,
)
def test_casts(from_dtype: np.dtype, to_dtype: np.dtype, expected: str) -> None:
    assert cast_text(CText("a + b", Precedence.ADDITIVE), from_dtype, to_dtype, {}).text == expected


# The head of a file


def test_a_head_holds_what_is_used_and_what_that_needs() -> None:
    used: dict[str, None] = {}
    op_text("maximum", [A, B], [FLOAT32, FLOAT32], FLOAT32, used)
    type_text(INT64, used)
    assert prelude_text(used) == (
        """\
typedef __INT64_TYPE__ int64_t;
typedef __UINT32_TYPE__ uint32_t;

// The bits of x.
static inline uint32_t tf_bits_float(float x) {
  union {
    float value;
    uint32_t bits;
  } pun = {.value = x};
  return pun.bits;
}

// The value that has these bits.
static inline float tf_from_bits_float(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } pun = {.bits = bits};
  return pun.value;
}

// The larger of a and b; NaN where one is NaN; +0 is larger than -0.
static inline float tf_maximum_float(float a, float b) {
  float first = a > b ? a : b;
  float second = b > a ? b : a; // of two zeros, first is b and second is a
  float larger = tf_from_bits_float(tf_bits_float(first) & tf_bits_float(second));
  return __builtin_isunordered(a, b) ? a + b : larger;
}

"""
    )


def test_an_unused_head_is_empty() -> None:
    assert prelude_text({}) == ""


def test_the_order_of_a_head_does_not_depend_on_that_of_its_use() -> None:
    names = ["tf_remainder_float", "tf_gcd_int8", "tf_sin_float", "uint64_t", "tf_int32_double"]
    assert prelude_text(names) == prelude_text(names[::-1])


def whole_head() -> str:
    return prelude_text(all_names())


def test_nothing_is_left_of_placeholders() -> None:
    words = set(re.findall(r"\w+", re.sub(r"//.*|#pragma.*", "", whole_head())))
    assert not {word for word in words if word.isupper() and not word.startswith("__")}
    assert not {
        word for word in words if re.search(r"real|(bits|signed)_t$|\b(u?int)_t$|_u?int$", word)
    }


def test_each_function_says_what_it_does() -> None:
    functions = [part for part in whole_head().split("\n\n") if "static" in part]
    assert len(functions) > 100
    beginning = r"(// .*\n)+static (inline|__attribute__\(\(noinline\)\)) \w+ \*?tf_\w+\("
    assert all(re.match(beginning, part) for part in functions)


def test_pycparser_reads_the_head() -> None:
    macros = {PIECES, INTERLEAVED, MASKS, TURNED}
    assert len(parsed(whole_head()).ext) == len({*all_names()} - macros)


@pytest.mark.parametrize("path", sorted(runtime_c().glob("*_*.h")), ids=lambda path: path.name)
def test_sources_are_formatted(path: Path) -> None:
    assert clang_format(path.read_text(), path.name) == path.read_text()


def test_heads_are_formatted() -> None:
    assert clang_format(whole_head().rstrip() + "\n") == whole_head().rstrip() + "\n"


def clang_format(code: str, name: str = "x.c") -> str:
    tool = pytest.importorskip("clang_format").get_executable("clang-format")
    style = Path(__file__).parent.parent / ".clang-format"
    command = [tool, f"--style=file:{style}", f"--assume-filename={name}"]
    return subprocess.run(command, input=code, text=True, capture_output=True, check=True).stdout
