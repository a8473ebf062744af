"""How far the mathematical functions of the prelude are from the exact values.

They are compiled as kernels are, and called by C (`math_checking.c`) that compares float32 with
double and float64 with __float128, which gcc and its libquadmath have.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT32, FLOAT64, FLOATING
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE, FMA, SCALAR_OPS
from tinyfuse.runtime.build import build
from tinyfuse.runtime.numerics import Loop, library_text

# Operations on floating-point numbers with numpy's bits, though their rows do not promise them.
_EXACT = ("maximum", "minimum", "fmax", "fmin", "float_power")
_SAME = (EXP_NONPOSITIVE,)  # as another function, where it is defined
_OTHERS = (*_EXACT, *_SAME, FMA)  # the last is an operation of C itself
_INEXACT = [name for name, op in SCALAR_OPS.items() if not op.exact and name not in _OTHERS]
FUNCTIONS = tuple(sorted(_INEXACT))
UNARY = tuple(name for name in FUNCTIONS if SCALAR_OPS[name].arity == 1)
BINARY = tuple(name for name in FUNCTIONS if SCALAR_OPS[name].arity == 2)

BOUND = 2.0  # in units of the last place of the result
# Near their zeros the results of these are differences: there the units are those of this value.
NEAR_ZERO = {"logaddexp": 1.0, "logaddexp2": 1.0, "gammaln": 1.0}


def loop(name: str, dtype: np.dtype) -> Loop:
    return Loop(name, (dtype,) * SCALAR_OPS[name].arity, dtype)


def loops() -> list[Loop]:
    return [loop(name, dtype) for name in FUNCTIONS for dtype in FLOATING]


@functools.cache
def loops_library(chosen: tuple[Loop, ...], flags: tuple[str, ...] = ()) -> Path:
    """The shared library of these loops, compiled as kernels are, or with more flags."""
    return build(library_text(chosen), "mathematics", flags=flags)


def functions_library(flags: tuple[str, ...] = ()) -> Path:
    """That of all functions."""
    return loops_library(tuple(loops()), flags)


# The checking C


class _Report(ctypes.Structure):
    _fields_ = (
        ("worst", ctypes.c_double),
        ("worst_at", ctypes.c_double * 2),
        ("wrong_at", ctypes.c_double * 2),
        ("count", ctypes.c_int64),
        ("over", ctypes.c_int64),
        ("wrong", ctypes.c_int64),
        ("backwards", ctypes.c_int64),
    )


class _Tolerance(ctypes.Structure):
    _fields_ = (("bound", ctypes.c_double), ("near_zero", ctypes.c_double))


@dataclasses.dataclass(frozen=True)
class Report:
    """What a check has found.

    worst: the largest error, in units of the last place, and worst_at the operands it is at.
    over: how many of `count` results are further off than `BOUND`. wrong: how many are NaN,
    infinite or zero, or have a sign, where the exact value does not; wrong_at: the first such.
    backwards: how many neighbouring results are in the wrong order.
    """

    name: str
    dtype: str
    worst: float
    worst_at: tuple[float, ...]
    count: int
    over: int
    wrong: int
    wrong_at: tuple[float, ...]
    backwards: int

    @property
    def failed(self) -> bool:
        return bool(self.over or self.wrong)

    def __str__(self) -> str:
        at = ", ".join(map(float.hex, self.worst_at))
        text = f"{self.name} {self.dtype}: {self.worst:.3f} ulp at {at}; {self.count} values"
        text += f", {self.over} over {BOUND}" if self.over else ""
        if self.wrong:
            text += f", {self.wrong} wrong, first at {', '.join(map(float.hex, self.wrong_at))}"
        return text + (f", {self.backwards} backwards" if self.backwards else "")


def can_check() -> bool:
    """Whether there is gcc, and libquadmath."""
    try:
        _checks()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@functools.cache
def _checks() -> Any:
    source = Path(__file__).with_name("math_checking.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "checks.so")
        command = [shutil.which("gcc") or "gcc", "-O2", "-shared", "-fPIC", str(source)]
        subprocess.run([*command, "-o", str(library), "-lquadmath", "-lm"], check=True)
        checks = ctypes.CDLL(str(library))
    checks.seconds.restype = ctypes.c_double
    return checks


def _function(name: str, dtype: np.dtype) -> Any:
    return getattr(ctypes.CDLL(str(functions_library())), loop(name, dtype).symbol)


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _reported(name: str, dtype: np.dtype, found: _Report) -> Report:
    arity = SCALAR_OPS[name].arity
    return Report(
        name,
        dtype.name,
        found.worst,
        tuple(found.worst_at[:arity]),
        found.count,
        found.over,
        found.wrong,
        tuple(found.wrong_at[:arity]),
        found.backwards,
    )


def check_every(name: str, step: int = 1) -> Report:
    """A function of one float32, for every float32, or one of `step`."""
    found = _Report()
    status = _checks().check_floats(
        _function(name, FLOAT32),
        name.encode(),
        *map(ctypes.c_uint64, (0, 1 << 32, step)),
        _Tolerance(BOUND, NEAR_ZERO.get(name, 0.0)),
        ctypes.byref(found),
    )
    assert status == 0, f"there is no reference for {name}"
    return _reported(name, FLOAT32, found)


def results(name: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The function of C-contiguous arrays."""
    out = np.empty_like(operands[0])
    _function(name, out.dtype)(_arrays(operands, out), None, None)
    return out


def _arrays(operands: Sequence[np.ndarray], out: np.ndarray) -> Any:
    # the array of the count lives as long as the pointers to it
    count = ctypes.c_int64(out.size)
    pointers = [ctypes.addressof(count), *[array.ctypes.data for array in (*operands, out)]]
    arrays = (ctypes.c_void_p * len(pointers))(*pointers)
    arrays.count = count  # type: ignore[attr-defined]
    return arrays


def check(name: str, operands: Sequence[np.ndarray]) -> Report:
    """A function of the elements of arrays, of either dtype."""
    out, found = results(name, operands), _Report()
    checks = _checks()
    status = (checks.check_float if out.dtype == FLOAT32 else checks.check_double)(
        name.encode(),
        ctypes.c_int64(out.size),
        *map(_address, (operands[0], operands[-1], out)),
        _Tolerance(BOUND, NEAR_ZERO.get(name, 0.0)),
        ctypes.byref(found),
    )
    assert status == 0, f"there is no reference for {name}"
    return _reported(name, out.dtype, found)


def seconds(name: str, operands: Sequence[np.ndarray], times: int) -> float:
    """What so many calls take."""
    out = np.empty_like(operands[0])
    arrays = _arrays(operands, out)
    return float(_checks().seconds(_function(name, out.dtype), arrays, ctypes.c_int(times)))


# What they are given

# Where most happens: beyond, results are infinite, zero, constant or NaN.
_RANGES = {
    FLOAT32: {"exp": 105, "exp2": 151, "sinh": 90, "gamma": 36, "erfc": 10.1},
    FLOAT64: {"exp": 746, "exp2": 1076, "sinh": 711, "gamma": 172, "erfc": 27},
}
_LIKE = {"expm1": "exp", "cosh": "sinh", "expit": "exp"}
_FIXED = {"arcsin": 1, "arccos": 1, "arctanh": 1, "tanh": 20, "erf": 6, "sin": 30, "cos": 30}


def _range(name: str, dtype: np.dtype) -> float:
    return _RANGES[dtype].get(_LIKE.get(name, name)) or _FIXED.get(name, 8)


def landmarks(dtype: np.dtype) -> np.ndarray:
    """Special values, and what is next to them."""
    limits = np.finfo(dtype)
    values = [0, 1, 0.5, 2, 3, 10, 1 / 3, np.pi, np.pi / 2, np.sqrt(0.5), np.sqrt(2), np.log(2)]
    values += [limits.max, limits.tiny, limits.smallest_subnormal, limits.eps, 2.0**24, 2.0**53]
    values += [
        88.7228,
        103.972,
        709.7827,
        745.133,
        127.99,
        1e5,
        1e15,
        1e30,
        171.62,
        35.04,
        1.5,
        2.5,
    ]
    values += [*range(4, 40), 150, 160, 1023, 1074, np.inf, np.nan]
    points = np.array(values, dtype)
    with np.errstate(over="ignore"):
        near = [points, *[np.nextafter(points, dtype.type(end)) for end in (0, np.inf)]]
    return np.concatenate([*near, *[-each for each in near]])


def samples(name: str, dtype: np.dtype, count: int, seed: int = 0) -> np.ndarray:
    """About so many operands: any bits, all exponents, near 0, near 1, where most happens."""
    random = np.random.default_rng(seed)
    part = count // 8
    largest, end = np.finfo(dtype).maxexp, _range(name, dtype)
    signs = random.choice([-1.0, 1.0], part)
    parts = [
        random.integers(0, 256, part * dtype.itemsize, dtype=np.uint8).view(dtype),
        signs * np.exp2(random.uniform(-largest - np.finfo(dtype).nmant, largest, part)),
        signs * np.exp2(random.uniform(-60, 20, part)),
        signs * (1 + random.standard_normal(part) * np.exp2(random.uniform(-60, 0, part))),
        random.standard_normal(part),
        random.uniform(-end, end, part),
        random.uniform(0, end, part),
        random.uniform(-60, 60, part),
        landmarks(dtype),
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([each.astype(dtype) for each in parts])


def pairs(name: str, dtype: np.dtype, count: int, seed: int = 0) -> list[np.ndarray]:
    """About so many pairs: unrelated ones, related ones, each landmark with each."""
    random = np.random.default_rng(seed)
    special = np.meshgrid(landmarks(dtype), landmarks(dtype))
    first = samples(name, dtype, count // 2, seed + 1)
    second = random.permutation(samples(name, dtype, count // 2, seed + 2))
    related = _related(name, dtype, first, random)
    return [
        np.concatenate([first, related[0], special[0].ravel()]),
        np.concatenate([second, related[1], special[1].ravel()]),
    ]


def _related(
    name: str, dtype: np.dtype, x: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose result is neither 0 nor infinite, nor one of them."""
    with np.errstate(all="ignore"):
        if name == "power":
            x = np.abs(x)
            y = random.uniform(-1, 1, x.size) * (np.finfo(dtype).maxexp + 52) / np.log2(x)
            return x, np.where(random.random(x.size) < 0.2, np.round(y), y).astype(dtype)
        if name.startswith("logaddexp"):
            return x, (x + random.standard_normal(x.size) * 8).astype(dtype)
        return x, (x * np.exp2(random.uniform(-14, 14, x.size))).astype(dtype)


def check_samples(name: str, dtype: np.dtype, count: int, seed: int = 0) -> Report:
    if SCALAR_OPS[name].arity == 1:
        return check(name, [samples(name, dtype, count, seed)])
    return check(name, pairs(name, dtype, count, seed))


# Thorough checks

FOUND = Path("build/mathematics.json")  # what they found
PAIRS = 16_000_000  # of float32
DOUBLES = 1_000_000  # or pairs of them


def thorough_checks(step: int, names: Sequence[str]) -> list[tuple[str, np.dtype, int]]:
    return [(name, dtype, step) for name in names for dtype in FLOATING]


def check_thoroughly(what: tuple[str, np.dtype, int]) -> Report:
    """Every float32 of a function of one, or one of `step`; else millions of samples, or a part."""
    name, dtype, step = what
    if name in UNARY and dtype == FLOAT32:
        return check_every(name, step)
    return check_samples(name, dtype, DOUBLES if dtype == FLOAT64 else PAIRS // min(step, 8))


def save(reports: Sequence[Report]) -> None:
    """Write the reports into the file, in place of what it has on the same functions."""
    found = json.loads(FOUND.read_text()) if FOUND.exists() else []
    found += [dataclasses.asdict(report) for report in reports]
    latest = {(report["name"], report["dtype"]): report for report in found}
    FOUND.parent.mkdir(parents=True, exist_ok=True)
    FOUND.write_text(json.dumps([latest[key] for key in sorted(latest)], indent=1))
