"""Every scalar operation and cast in C, for every dtype, against numpy on nasty and random values."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tinyfuse.dtypes import BOOL, SUPPORTED
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.emit.scalar import CText, cast_text, op_text, type_text
from tinyfuse.graph.scalar_ops import SCALAR_OPS

FLAGS = "-std=c11 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fno-builtin"
LEVELS = {"O3": "-O3 -march=native", "O0": "-O0 -march=native", "avx2": "-O3 -march=x86-64-v3"}


class Loop(NamedTuple):
    """One operation on operands of these dtypes; a cast has the name `cast`."""

    name: str
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    @property
    def symbol(self) -> str:
        return "_".join([self.name, *(dtype.name for dtype in self.dtypes), self.dtype.name])


def ufunc_of(name: str) -> np.ufunc:
    return getattr(np, name.partition("_")[0] if name.startswith(("modf", "frexp")) else name)


def ufunc_loops(name: str) -> Iterator[Loop]:
    """Each combination of supported dtypes that the ufunc computes in."""
    ufunc = ufunc_of(name)
    for dtypes in itertools.product(SUPPORTED, repeat=ufunc.nin):
        try:
            resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
        except TypeError:
            continue
        output = resolved[ufunc.nin + (name == "frexp_exponent")]
        if all(dtype in SUPPORTED for dtype in resolved):
            yield Loop(name, resolved[: ufunc.nin], output)


def all_loops() -> list[Loop]:
    loops = [loop for name in SCALAR_OPS if name != "select" for loop in ufunc_loops(name)]
    loops += [Loop("select", (BOOL, dtype, dtype), dtype) for dtype in SUPPORTED]
    loops += [Loop("fma", (dtype,) * 3, dtype) for dtype in SUPPORTED]
    loops += [Loop("cast", (a,), b) for a in SUPPORTED for b in SUPPORTED if a != b]
    return list(dict.fromkeys(loops))


LOOPS = all_loops()


def loop_text(loop: Loop, used: dict[str, None]) -> str:
    operands = [CText(f"x{k}[i]") for k in range(len(loop.dtypes))]
    if loop.name == "cast":
        value = cast_text(operands[0], loop.dtypes[0], loop.dtype, used)
    else:
        value = op_text(loop.name, operands, loop.dtypes, loop.dtype, used)
    parameters = [f"const {type_text(dtype, used)} *restrict x{k}" for k, dtype in enumerate(loop.dtypes)]
    parameters.append(f"{type_text(loop.dtype, used)} *restrict y")
    body = f"  for (long i = 0; i < n; i++) y[i] = {value.text};\n"
    if any(parameter.split("*")[0] and f"x{k}[i]" not in value.text for k, parameter in enumerate(parameters[:-1])):
        body = "  (void)x0;\n" + body
    return f"void {loop.symbol}(long n, {', '.join(parameters)}) {{\n{body}}}\n"


def module_text(loops: list[Loop]) -> str:
    used: dict[str, None] = {}
    functions = [loop_text(loop, used) for loop in loops]
    return prelude_text(used) + "\n".join(functions)


def compiled(level: str, directory: Path, flags: str = "") -> ctypes.CDLL:
    source, library = directory / f"{level}.c", directory / f"{level}.so"
    source.write_text(module_text(LOOPS))
    command = f"gcc {FLAGS} {LEVELS[level]} {flags} -fPIC -shared -o".split()
    subprocess.run([*command, str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ctypes.CDLL]:
    directory = tmp_path_factory.mktemp("scalar")
    return {level: compiled(level, directory) for level in LEVELS}


def run(library: ctypes.CDLL, loop: Loop, operands: list[np.ndarray]) -> np.ndarray:
    out = np.empty(operands[0].shape, loop.dtype)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in [*operands, out]]
    getattr(library, loop.symbol)(ctypes.c_long(out.size), *pointers)
    return out
