"""Writes runtime_c/ACCURACY.md: `python -m tests.math_table [build/mathematics.json]`.

The errors are those that `python -m tests.thorough --math` has found and left in that file; the
times are measured here, beside numpy's (scipy's, for functions that only it has).
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.special

from tests.math_checking import FOUND, seconds
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.graph.scalar_ops import CONSTANT_POWERS, SCALAR_OPS
from tinyfuse.machine import cpu_features, cpu_info, vector_bytes
from tinyfuse.runtime.toolchain import find_compiler

COUNT = 16384
ROUNDS = 41
TIMES = 10  # calls a round
PASSES = 7  # over all functions; each one's best counts, since others may be busy meanwhile

PAGE = """\
# Mathematical functions: how exact, how fast

The functions in `math_*.h`, as `python -m tests.math_table` found them. Errors are in units in the
last place of the exact result; rounding alone makes 0.5. They are the largest of as many results as
the last column says; 2^32 are all that there are of one float32, the other numbers are samples.
Near the zeros of logaddexp, logaddexp2 and gammaln, the units are those of 1.

Times are nanoseconds per element, of {count} elements by one thread, and beside them how many times
as long numpy takes (for erf, erfc, expit, gamma and gammaln: scipy). Measured on
{machine}.

| function | dtype | ns | numpy's time | largest error | of results |
| --- | --- | ---: | ---: | ---: | ---: |
{rows}
"""


def operands(name: str, dtype: np.dtype) -> list[np.ndarray]:
    """Ordinary values: from 0.01 to 9.5, where the function allows it."""
    random = np.random.default_rng(0)
    x = random.uniform(0.01, 9.5, COUNT)
    if name in ("arcsin", "arccos", "arctanh"):
        x = x / 10
    if name == "arccosh":
        x = x + 1
    both = [x, random.uniform(-5, 5, COUNT)]
    return [each.astype(dtype) for each in both[: SCALAR_OPS[name].arity]]


def measured(name: str, dtype: np.dtype) -> tuple[float, float]:
    """Nanoseconds per element: of tinyfuse, of numpy. The lower quartiles of rounds in turn."""
    given, out = operands(name, dtype), np.empty(COUNT, dtype)
    theirs = _numpys(name)
    rounds = np.empty((ROUNDS, 2))
    for turn in rounds:
        turn[0] = seconds(name, given, TIMES)
        turn[1] = _elapsed(lambda: theirs(*given, out=out))
    first, second = np.quantile(rounds, 0.25, axis=0) / TIMES / COUNT * 1e9
    return first, second


def _numpys(name: str) -> Callable[..., object]:
    if name in CONSTANT_POWERS:
        return functools.partial(_power, CONSTANT_POWERS[name][0])
    found: Callable[..., object] = getattr(np, name, None) or getattr(scipy.special, name)
    return found


def _power(exponent: float, x: np.ndarray, out: np.ndarray) -> object:
    return np.power(x, x.dtype.type(exponent), out=out)


def _elapsed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(TIMES):
        call()
    return time.perf_counter() - start


def best(functions: Sequence[tuple[str, np.dtype]]) -> np.ndarray:
    """Nanoseconds per element of each, as `measured`: array (functions, 2), float64."""
    passes = [[measured(*function) for function in functions] for _ in range(PASSES)]
    return np.min(passes, axis=0)


def row(report: Mapping[str, Any], ours: float, theirs: float) -> str:
    name, dtype = report["name"], report["dtype"]
    count = "2^32" if report["count"] == 2**32 else f"{report['count'] / 1e6:.3g} million"
    times = f"{ours:.2f} | {theirs / ours:.1f} ×"
    return f"| {name} | {dtype} | {times} | {report['worst']:.2f} | {count} |"


def machine() -> str:
    processor = dict(cpu_info()).get("model name", "an unnamed processor")
    version = find_compiler().identity.rsplit(", '", 1)[-1].split("\\n")[0].strip("')")
    width = vector_bytes(cpu_features())
    return (
        f"an {processor} with vectors of {width} bytes,\n{version}, "
        f"numpy {np.__version__} and scipy {scipy.__version__}"
    )


def main(arguments: Sequence[str]) -> None:
    found = json.loads(Path(*arguments or [FOUND]).read_text())
    functions = [(report["name"], np.dtype(report["dtype"])) for report in found]
    rows = "\n".join(itertools.starmap(row, zip(found, *best(functions).T, strict=True)))
    page = PAGE.format(count=COUNT, machine=machine(), rows=rows)
    (runtime_c() / "ACCURACY.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main(sys.argv[1:])
