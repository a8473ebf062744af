"""Every scalar operation and cast in C, for every dtype, against numpy on nasty values."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tinyfuse.dtypes import BOOL, FLOATING, SUPPORTED
from tinyfuse.emit.casts import cast_text
from tinyfuse.emit.ctext import CText, type_text
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.emit.scalar import op_text
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE, SCALAR_OPS
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load

WARNINGS = ("-Wall", "-Wextra", "-Werror")
LEVELS = {
    "O3": ("-O3",),
    "O0": ("-O0",),
    "AVX2": ("-O3", "-march=x86-64-v3"),
}


class Loop(NamedTuple):
    """One operation on operands of these dtypes; a cast has the name `cast`."""

    name: str
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    @property
    def symbol(self) -> str:
        return "_".join([self.name, *(dtype.name for dtype in self.dtypes), self.dtype.name])


def ufunc_loops(name: str) -> Iterator[Loop]:
    """Each combination of supported dtypes that the ufunc computes in."""
    ufunc = SCALAR_OPS[name].ufunc
    assert ufunc is not None
    output = ufunc.nin + SCALAR_OPS[name].output
    for dtypes in itertools.product(SUPPORTED, repeat=ufunc.nin):
        try:
            resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
        except TypeError:
            continue
        if all(dtype in SUPPORTED for dtype in resolved):
            yield Loop(name, resolved[: ufunc.nin], resolved[output])


def all_loops() -> list[Loop]:
    loops = [loop for name in SCALAR_OPS if SCALAR_OPS[name].ufunc for loop in ufunc_loops(name)]
    others = [op for op in SCALAR_OPS.values() if op.ufunc is None]
    loops += [Loop(op.name, *loop) for op in others for loop in op.loops.items()]
    loops += [Loop("select", (BOOL, dtype, dtype), dtype) for dtype in SUPPORTED]
    loops += [Loop("fma", (dtype,) * 3, dtype) for dtype in SUPPORTED]
    loops += [Loop("cast", (a,), b) for a in SUPPORTED for b in SUPPORTED if a != b]
    return list(dict.fromkeys(loops))


LOOPS = all_loops()


# The loops as C


def loop_text(loop: Loop, used: dict[str, None]) -> str:
    operands = [CText(f"x{k}[i]") for k in range(len(loop.dtypes))]
    if loop.name == "cast":
        value = cast_text(operands[0], loop.dtypes[0], loop.dtype, used).text
    else:
        value = op_text(loop.name, operands, loop.dtypes, loop.dtype, used).text
    lines = [
        f"  const {type_text(dtype, used)} *restrict x{k} = arrays[{k + 1}];"
        for k, dtype in enumerate(loop.dtypes)
        if f"x{k}[i]" in value
    ]
    lines += [f"  {type_text(loop.dtype, used)} *restrict y = arrays[{len(loop.dtypes) + 1}];"]
    head = f"int {loop.symbol}(void *const *arrays, void *scratch, const void *pool) {{"
    count = "  (void)scratch, (void)pool;\n  const long n = *(const long *)arrays[0] & ~63L;"
    return "\n".join(
        [head, count, *lines, f"  for (long i = 0; i < n; i++) y[i] = {value};", "  return 0;\n}\n"]
    )


def module_text() -> str:
    used: dict[str, None] = {}
    functions = [loop_text(loop, used) for loop in LOOPS]
    return prelude_text(used) + "\n".join(functions)


@pytest.fixture(scope="module")
def libraries() -> Mapping[str, Path]:
    text = module_text()
    with ThreadPoolExecutor(2) as pool:
        built = pool.map(
            lambda flags: build(text, "operations", flags=(*WARNINGS, *flags)), LEVELS.values()
        )
        return dict(zip(LEVELS, built, strict=True))


def run(library: Path, loop: Loop, operands: list[np.ndarray]) -> np.ndarray:
    out = np.empty(operands[0].shape, loop.dtype)
    load(library, loop.symbol)([np.array([out.size], np.int64), *operands, out], threads=1)
    return out


# What they are fed


def nasty(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        return nasty_integers(dtype)
    limits = np.finfo(dtype)
    magnitudes = [
        *(0, 1, 2, 3, 0.5, 1.5, 2.5, 0.1, 1 / 3, 7.7, 100, 300.7, 88.7, 710, np.pi, 1e5, 1e30),
        *(limits.max, limits.tiny, limits.tiny / 2, limits.smallest_subnormal, limits.eps),
        *(2.0**23 + 1, 2.0**24, 2.0**31 - 1, 2.0**31, 2.0**32, 2.0**63, 2.0**64, np.inf),
    ]
    values = np.array(magnitudes, dtype)
    return np.concatenate([values, -values, np.array([np.nan, -np.nan], dtype)])


def nasty_integers(dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, 10, limits.bits - 1, limits.bits, limits.bits + 1]
    values += [limits.max, limits.max - 1, limits.max // 2, limits.max // 2 + 1, limits.max // 3]
    if limits.min < 0:
        values += [-1, -2, -3, -5, -7, -limits.bits, limits.min, limits.min + 1, limits.min // 2]
    return np.array(values, dtype)


def random(dtype: np.dtype, count: int, generator: np.random.Generator) -> np.ndarray:
    """Half of them small values, half of them any bits."""
    if dtype.kind == "b":
        return generator.integers(0, 2, count).astype(bool)
    bits = generator.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    small = generator.standard_normal(count) * 10
    with np.errstate(invalid="ignore"):
        small = np.abs(small).astype(dtype) if dtype.kind == "u" else small.astype(dtype)
    return np.where(generator.random(count) < 0.5, bits, small)


def operands_for(loop: Loop) -> list[np.ndarray]:
    """All combinations of nasty values, then random ones, up to a multiple of 64.

    (Without tails the loops compile in half the time.)
    """
    generator = np.random.default_rng(0)
    grid = np.meshgrid(*[nasty(dtype) for dtype in loop.dtypes], indexing="ij")
    count = 512 + -grid[0].size % 64
    pairs = zip(grid, loop.dtypes, strict=True)
    operands = [np.concatenate([g.ravel(), random(dtype, count, generator)]) for g, dtype in pairs]
    if loop.name == EXP_NONPOSITIVE:
        operands = [-abs(operand) for operand in operands]
    if loop.name == "power" and loop.dtype.kind == "i":
        operands[1] = np.maximum(operands[1], 0)
    return operands


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the bits are equal; one NaN is as good as another."""
    if a.dtype.kind != "f":
        return a == b
    bits = f"u{a.itemsize}"
    return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))


def assert_same(loop: Loop, operands: list[np.ndarray], got: np.ndarray, want: np.ndarray) -> None:
    assert want.dtype == got.dtype == loop.dtype
    wrong = np.nonzero(~same(got, want))[0][:5]
    shown = [(*[operand[at] for operand in operands], got[at], want[at]) for at in wrong]
    assert not shown, f"{loop.symbol}: operands, result, what it should be: {shown}"


# Tests


@pytest.fixture(scope="module", autouse=True)
def silent() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def exact_loops() -> list[Loop]:
    return [loop for loop in LOOPS if is_exact(loop)]


def is_exact(loop: Loop) -> bool:
    """Whether it has to have numpy's bits."""
    if loop.name in ("cast", "select"):
        return (loop.dtypes[0].kind, loop.dtype) != ("f", np.dtype(np.uint32))
    if loop.name == "fma":
        return loop.dtype.kind != "f"
    return SCALAR_OPS[loop.name].exact or loop.dtype.kind != "f"


def evaluate(loop: Loop, operands: list[np.ndarray]) -> np.ndarray:
    if loop.name == "cast":
        return operands[0].astype(loop.dtype)
    if loop.name == "fma":
        return operands[0] * operands[1] + operands[2]
    return SCALAR_OPS[loop.name].evaluate(*operands)


def by_name(loops: list[Loop]) -> list[object]:
    names = dict.fromkeys(loop.name for loop in loops)
    return [pytest.param([loop for loop in loops if loop.name == n], id=n) for n in names]


def test_every_row_has_loops() -> None:
    assert {loop.name for loop in LOOPS} == {*SCALAR_OPS, "fma", "cast"}
    assert len(LOOPS) == 707


@pytest.mark.parametrize("loops", by_name(exact_loops()))
def test_bits_are_those_of_numpy(libraries: Mapping[str, Path], loops: list[Loop]) -> None:
    for loop in loops:
        operands = operands_for(loop)
        assert_same(loop, operands, run(libraries["O3"], loop, operands), evaluate(loop, operands))


@pytest.mark.parametrize("level", ["O0", "AVX2"])
def test_bits_do_not_depend_on_how_it_is_compiled(
    libraries: Mapping[str, Path], level: str
) -> None:
    for loop in LOOPS:
        operands = operands_for(loop)
        reference = run(libraries["O3"], loop, operands)
        assert_same(loop, operands, run(libraries[level], loop, operands), reference)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_order_zeros(libraries: Mapping[str, Path], name: str, dtype: np.dtype) -> None:
    """numpy's result, but for zeros: -0 is below +0 wherever it stands."""
    loop = Loop(name, (dtype, dtype), dtype)
    operands = operands_for(loop)
    want = SCALAR_OPS[name].evaluate(*operands)
    zeros = (operands[0] == 0) & (operands[1] == 0)
    signs = [np.signbit(operand) for operand in operands]
    negative = signs[0] & signs[1] if name in ("maximum", "fmax") else signs[0] | signs[1]
    want = np.where(zeros, np.where(negative, dtype.type(-0.0), dtype.type(0.0)), want)
    assert_same(loop, operands, run(libraries["O3"], loop, operands), want)


def test_fma_rounds_once(libraries: Mapping[str, Path]) -> None:
    loop = Loop("fma", (np.dtype(np.float32),) * 3, np.dtype(np.float32))
    rows = [(1 + 2**-12, 1 + 2**-12, -(1 + 2**-11)), (3e38, 10, -np.inf), (np.inf, 0, 1)]
    a, b, c = (np.resize(np.float32(column), 64) for column in zip(*rows, strict=True))
    result = run(libraries["O3"], loop, [a, b, c])
    assert np.array_equal(result[:3], [2**-24, -np.inf, np.nan], equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_casts_to_uint32_wrap_around(libraries: Mapping[str, Path], dtype: np.dtype) -> None:
    loop = Loop("cast", (dtype,), np.dtype(np.uint32))
    operands = operands_for(loop)
    want = operands[0].astype(np.int64).astype(np.uint32)
    assert_same(loop, operands, run(libraries["O3"], loop, operands), want)
    fits = (operands[0] > -(2.0**31)) & (operands[0] < 2.0**32)
    assert_same(loop, operands, want[fits], operands[0][fits].astype(np.uint32))


# Operations that are only promised to be near the exact value: ulps of the result.
BOUND = 2.0
WIDER: dict[np.dtype, Callable[..., np.generic]] = {
    FLOATING[0]: np.float64,
    FLOATING[1]: np.longdouble,
}


def near_loops() -> list[Loop]:
    extrema = ("maximum", "minimum", "fmax", "fmin")
    return [
        loop for loop in LOOPS if loop.name not in ("fma", "cast", *extrema) and not is_exact(loop)
    ]


@pytest.mark.parametrize("loop", near_loops(), ids=lambda loop: loop.symbol)
def test_values_are_near_the_exact_ones(libraries: Mapping[str, Path], loop: Loop) -> None:
    operands = operands_for(loop)
    got, numpy_says = run(libraries["O3"], loop, operands), evaluate(loop, operands)
    finite = np.logical_and.reduce([np.isfinite(operand) for operand in operands])
    rest = [operand[~finite] for operand in operands]
    assert_same(loop, rest, got[~finite], numpy_says[~finite])
    if SCALAR_OPS[loop.name].ufunc is not None:  # whose long doubles are those of numpy
        check_errors(loop, [operand[finite] for operand in operands], got[finite])


def check_errors(loop: Loop, operands: list[np.ndarray], got: np.ndarray) -> None:
    wide = WIDER[loop.dtype]
    exact = evaluate(loop, [operand.astype(wide) for operand in operands])
    rounded = exact.astype(loop.dtype)
    number = np.isfinite(rounded)
    assert np.array_equal(got[~number], rounded[~number], equal_nan=True)
    size = np.abs(rounded[number])
    if loop.name.startswith("logaddexp"):  # a difference of logarithms near its zeros
        size = np.maximum.reduce([size, *[np.abs(x[number]) for x in operands], np.ones_like(size)])
    errors = np.abs(got[number].astype(wide) - exact[number]) / np.spacing(size).astype(wide)
    assert errors.max() <= BOUND


def test_no_behaviour_is_undefined() -> None:
    """No operand of any operation trips the compiler's checks, which would end the process."""
    flags = (
        "-O1",
        "-fsanitize=undefined,float-cast-overflow",
        "-fsanitize-undefined-trap-on-error",
    )
    library = build(module_text(), "checked operations", flags=flags)
    process = multiprocessing.get_context("fork").Process(target=run_all, args=(library,))
    process.start()
    process.join()
    assert process.exitcode == 0


def run_all(library: Path) -> None:
    for loop in LOOPS:
        run(library, loop, operands_for(loop))
