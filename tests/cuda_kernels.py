"""Kernels written by hand (`kernels/*.cu`), each with arguments and what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinyfuse.testing import ArraySpec, Emulation, emulate

FOLDER = Path(__file__).parent / "kernels"
F32 = np.float32


class Launch(NamedTuple):
    """A launch of a kernel; `expected` is by the places of its pointers."""

    file: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    expected: dict[int, np.ndarray]
    shared: int = 0
    tolerance: float = 0.0

    def run(self, text: str | None = None, **options: Any) -> Emulation:
        text = source(self.file) if text is None else text
        shared = options.pop("shared", self.shared)
        return emulate(
            *(text, self.kernel, self.grid, self.block, *self.arguments), shared=shared, **options
        )

    def difference(self, emulation: Emulation) -> float:
        """The largest difference from what is expected, NaN where there is one."""
        return max(
            float(np.max(np.abs(emulation.arrays[place].astype(np.float64) - value)))
            for place, value in self.expected.items()
        )


@cache
def source(file: str) -> str:
    return (FOLDER / f"{file}.cu").read_text()


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(F32)


def fresh(*shape: int, dtype: Any = F32) -> ArraySpec:
    return ArraySpec(dtype, shape)


def elementwise(n: int = 1000) -> Launch:
    x, bias = normal(n), normal(n)[::-1]
    t = (x * F32(1.5) + bias).astype(np.float64)
    expected = {2: t / (1 + np.exp(-t))}
    arguments = (x, bias, fresh(n), n, 1.5)
    return Launch(
        *("elementwise", "elementwise", (2,), (256,), arguments, expected), tolerance=1e-6
    )


def softmax(rows: int = 3, columns: int = 300) -> Launch:
    x = normal(rows, columns)
    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = {1: power / power.sum(1, keepdims=True)}
    arguments = (x, fresh(rows, columns), columns)
    return Launch("softmax", "softmax", (rows,), (256,), arguments, expected, tolerance=1e-7)


def layernorm(rows: int = 6, columns: int = 260) -> Launch:
    x, gain, bias = normal(rows, columns), normal(columns), normal(columns)[::-1]
    centred = x - x.astype(np.float64).mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    expected = {3: centred * scale * gain + bias}
    arguments = (x, gain, bias, fresh(rows, columns), rows, columns)
    grid = (-(-rows // 4),)
    return Launch("layernorm", "layernorm", grid, (32, 4), arguments, expected, tolerance=1e-5)


def gemm(m: int = 70, n: int = 68, k: int = 20) -> Launch:
    a, b, bias = normal(m, k), normal(k, n), normal(n)
    expected = {3: np.maximum(a.astype(np.float64) @ b + bias, 0)}
    grid = (-(-n // 64), -(-m // 64))
    arguments = (a, b, bias, fresh(m, n), m, n, k)
    return Launch("gemm", "gemm", grid, (256,), arguments, expected, tolerance=1e-5)


def transpose(rows: int = 40, columns: int = 70, name: str = "transpose") -> Launch:
    x = normal(rows, columns)
    height = 32 if name == "transpose" else 8
    grid = (-(-columns // 32), -(-rows // height))
    arguments = (x, fresh(columns, rows), rows, columns)
    return Launch(name, name, grid, (32, 8), arguments, {1: x.T})


def transpose_naive() -> Launch:
    return transpose(name="transpose_naive")


def partial_sums(n: int = 5000, blocks: int = 7) -> Launch:
    x = normal(n)
    part = [x[np.arange(n) // 256 % blocks == block].sum(dtype=np.float64) for block in range(7)]
    arguments = (x, fresh(blocks), n)
    expected = {1: np.array(part)}
    return Launch("sums", "partial_sums", (blocks,), (256,), arguments, expected, tolerance=1e-4)


def atomic_sum(n: int = 5000, blocks: int = 7) -> Launch:
    x = normal(n)
    expected = {1: x.sum(dtype=np.float64, keepdims=True)}
    arguments = (x, np.zeros(1, F32), n)
    return Launch("sums", "atomic_sum", (blocks,), (256,), arguments, expected, tolerance=1e-4)


def column_sums(rows: int = 37, columns: int = 50) -> Launch:
    x = normal(rows, columns).astype(np.float64)
    arguments = (x, fresh(columns, dtype=np.float64), rows, columns)
    grid = (-(-columns // 32),)
    expected = {1: x.sum(0)}
    return Launch("column_sums", "column_sums", grid, (32, 8), arguments, expected, tolerance=1e-13)


def neighbours(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, 1)
    sides = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return F32(0.25) * sides


def stencil(rows: int = 25, columns: int = 35) -> Launch:
    x = normal(rows, columns)
    arguments = (x, fresh(rows, columns), rows, columns)
    grid = (-(-columns // 16), -(-rows // 16))
    expected = {1: neighbours(neighbours(x))}
    return Launch("stencil", "stencil", grid, (256,), arguments, expected)


def gather(rows: int = 9, width: int = 150) -> Launch:
    table, ids = normal(rows, width), np.array([3, -1, 0, 8, 3])
    arguments = (table, ids, fresh(5, width), np.zeros(1, np.int32), rows, width)
    expected = {2: table[ids], 3: np.zeros(1)}
    return Launch("gather", "gather", (5,), (128,), arguments, expected)


def convolution(rows: int = 11, columns: int = 13, channels: int = 3, filters: int = 5) -> Launch:
    x, weights = normal(rows, columns, channels), normal(3, 3, channels, filters)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0))), (3, 3), (0, 1)
    )
    expected = {2: np.einsum("ijcab,abcf->ijf", windows, weights)}
    sizes = (rows, columns, channels, filters)
    return Launch(
        *("convolution", "convolution", (-(-columns // 8), -(-rows // 8)), (8, 8, 4)),
        *((x, weights, fresh(rows, columns, filters), *sizes), expected),
        shared=400 * channels,
        tolerance=1e-5,
    )


def scan(rows: int = 2, n: int = 500) -> Launch:
    x = np.arange(rows * n, dtype=np.int32).reshape(rows, n) % 37 - 5
    expected = {1: np.cumsum(x, 1)}
    return Launch("scan", "scan", (rows,), (512,), (x, fresh(rows, n, dtype=np.int32), n), expected)


def histogram(n: int = 3000) -> Launch:
    x = (np.arange(n) ** 2 % 251).astype(np.uint8)
    expected = {1: np.bincount(x, minlength=256)}
    arguments = (x, np.zeros(256, np.int32), n)
    return Launch("histogram", "histogram", (3,), (256,), arguments, expected)


def sort() -> Launch:
    x = normal(2, 256)
    return Launch("sort", "sort", (2,), (256,), (x, fresh(2, 256)), {1: np.sort(x, 1)})


def warp_exchange() -> Launch:
    x = np.arange(256, dtype=F32)
    expected = {1: x.reshape(8, 32).sum(1)}
    return Launch("warp_exchange", "warp_exchange", (2,), (128,), (x, fresh(8)), expected)


def votes() -> Launch:
    flags = np.ones((3, 64), np.uint8)
    flags[1, :17] = 0
    flags[2] = 0
    counts = [fresh(3, dtype=np.int32) for _ in range(3)]
    expected = {1: flags.sum(1), 2: np.array([1, 0, 0]), 3: np.array([0, 17, -1])}
    return Launch("votes", "votes", (3,), (64,), (flags, *counts), expected)


def attention(length: int = 70) -> Launch:
    q, k, v = (normal(3, length, 64)[i] for i in range(3))
    scores = q.astype(np.float64) @ k.T / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = {3: weights / weights.sum(1, keepdims=True) @ v}
    grid = (-(-length // 32),)
    arguments = (q, k, v, fresh(length, 64), length)
    return Launch("attention", "attention", grid, (128,), arguments, expected, tolerance=1e-5)


def bfloat16(x: np.ndarray) -> np.ndarray:
    """The upper halves of floats."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def tensor_cores(m: int = 64, n: int = 32, k: int = 96) -> Launch:
    a, b = bfloat16(normal(m, k)), bfloat16(normal(k, n))
    wide_a, wide_b = ((x.astype(np.uint32) << 16).view(F32).astype(np.float64) for x in (a, b))
    grid = (n // 32, m // 32)
    arguments = (a, b, fresh(m, n), n, k)
    return Launch(
        *("tensor_cores", "tensor_cores", grid, (128,), arguments, {2: wide_a @ wide_b}),
        tolerance=1e-4,
    )


LAUNCHES: tuple[Callable[[], Launch], ...] = (
    *(elementwise, softmax, layernorm, gemm, transpose, transpose_naive, partial_sums, atomic_sum),
    *(column_sums, stencil, gather, convolution, scan, histogram, sort, warp_exchange, votes),
    *(attention, tensor_cores),
)
