"""Matrix products, and what a machine can do for them at most."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from timing import Call, duration, medians

import tinyfuse
from tinyfuse.constants import Constants
from tinyfuse.machine import Machine, host
from tinyfuse.schedule.cost import bandwidth, level_of

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def product(x, w):
    return x @ w


def transposed(x, w):
    return x @ w.swapaxes(-1, -2)


def activated(x, w):
    return np.maximum(x @ w, 0)


def across(x, y):
    return x.T @ y


def layer(x, w, b):
    z = x @ w + b
    return 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))  # gelu


def queries_keys_values(x, q, k, v):
    return x @ q, x @ k, x @ v


class Product(NamedTuple):
    """shapes: of the first factor, then of weights. length: of what is added up for each element,
    where that is not along the first factor's last axis."""

    name: str
    function: Callable[..., object]
    shapes: tuple[tuple[int, ...], ...]
    dtype: type = np.float32
    length: int | None = None

    def factors(self) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        return [generator.standard_normal(shape).astype(self.dtype) for shape in self.shapes]

    def multiplications(self) -> int:
        batch, length = math.prod(self.shapes[0][:-2]), self.length or self.shapes[0][-1]
        first, *others = [math.prod(shape[-2:]) for shape in self.shapes if len(shape) > 1]
        return batch * first * sum(others) // length


PRODUCTS = (
    Product("32", product, ((32, 32), (32, 32))),
    Product("64", product, ((64, 64), (64, 64))),
    Product("256", product, ((256, 256), (256, 256))),
    Product("512", product, ((512, 512), (512, 512))),
    Product("1024", product, ((1024, 1024), (1024, 1024))),
    Product("2048", product, ((2048, 2048), (2048, 2048))),
    Product("333x777x555", product, ((333, 777), (777, 555))),
    Product("512, w.T", transposed, ((512, 512), (512, 512))),
    Product("512, x.T", across, ((512, 512), (512, 512)), length=512),
    Product("gelu layer", layer, ((512, 1024), (1024, 1024), (1024,))),
    Product("q, k, v", queries_keys_values, ((512, 768), *[(768, 768)] * 3)),
    Product("16x1024x1024", product, ((16, 1024), (1024, 1024))),
    Product("64x1024x4096", product, ((64, 1024), (1024, 4096))),
    Product("4096x64x64", activated, ((4096, 64), (64, 64))),
    Product("64 of 32", product, ((64, 32, 32), (64, 32, 32))),
    Product("1x1024x4096", product, ((1, 1024), (1024, 4096))),
    Product("1x1024x4096, w.T", transposed, ((1, 1024), (4096, 1024))),
    Product("512, float64", product, ((512, 512), (512, 512)), np.float64),
    Product("1024, float64", product, ((1024, 1024), (1024, 1024)), np.float64),
)


def print_products(seconds: float) -> None:
    """A row for each product: numpy's time, then times, factors and shares of the peak."""
    if host().constants == Constants():
        tinyfuse.calibrate(quick=True)
    columns = ("tinyfuse", "constant w", *(["bfloat16 w"] if ml_dtypes else []))
    names = "".join(f" {name:>22s}" for name in columns)
    print(f"\n  {'':18s} {'numpy':>8s}{names}")
    for each in PRODUCTS:
        print(product_row(each, seconds), flush=True)


def product_row(each: Product, seconds: float) -> str:
    calls, least = calls_of(each)
    times = medians(calls, seconds)
    numpy = times.pop("numpy")
    cells = [
        f"{duration(time)} {f'({numpy / time:.2f})':>7s} {least[name] / time:>5.0%}"
        for name, time in times.items()
    ]
    return " ".join([f"  {each.name:18s} {duration(numpy)}", *cells])


def calls_of(each: Product) -> tuple[dict[str, Call], dict[str, float]]:
    """The product in each way, and the seconds that it takes at least."""
    x, *weights = each.factors()
    ways: dict[str, tuple[Callable[..., object], list[np.ndarray]]] = {
        "tinyfuse": (each.function, [x, *weights]),
        "constant w": (with_constants(each.function, weights), [x]),
    }
    if ml_dtypes and each.dtype is np.float32:
        halves = [w.astype(ml_dtypes.bfloat16) for w in weights]
        ways["bfloat16 w"] = with_constants(each.function, halves), [x]
    calls: dict[str, Call] = {"numpy": lambda: each.function(x, *weights)}
    least = {}
    for name, (function, arguments) in ways.items():
        compiled = tinyfuse.jit(function)
        calls[name] = lambda f=compiled, given=arguments: f(*given)
        read = nbytes(weights) // 2 if name == "bfloat16 w" else nbytes(weights)
        least[name] = seconds_at_least(each, x.nbytes + read + nbytes(compiled(*arguments)))
    return calls, least


def with_constants(
    function: Callable[..., object], weights: list[np.ndarray]
) -> Callable[[np.ndarray], object]:
    constants = [tinyfuse.constant(w) for w in weights]
    return lambda x: function(x, *constants)


def nbytes(arrays: object) -> int:
    """Bytes of an array, or of several together."""
    several = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    return sum(array.nbytes for array in several)


def seconds_at_least(each: Product, moved: int) -> float:
    """By the rate of fused multiply-adds of all cores, or by the bandwidth of the cache that holds
    so many bytes, whichever takes longer: as `tinyfuse.calibrate` has measured them."""
    machine = host()
    cores = tinyfuse.num_threads()
    rate = rate_of(machine, each.dtype) * cores
    level = level_of(moved, machine, cores)
    return max(each.multiplications() / rate, moved / bandwidth(machine, level, cores))


def rate_of(machine: Machine, dtype: type) -> float:
    """Fused multiply-adds per second of one core."""
    constants = machine.constants
    return constants.float64_rate if dtype is np.float64 else constants.float32_rate
