"""Numpy programs as people write them, after textbook methods: loops, buffers, heavy mutation.

Nothing in them knows of tinyfuse. They write into their arguments, into arrays that they make, or
into views of either. `PROGRAMS` lists them with arguments to call them with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A function with what makes its arguments, of a seeded generator.

    steps: None where numpy rounds as tinyfuse does, so that all bits are equal; else how many
    roundings to allow, of the largest magnitude in a result (sums in other orders, fused
    multiply-add in products, exp).
    """

    function: Function
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    steps: int | None = None


PROGRAMS: dict[str, Program] = {}


def program(
    arguments: Callable[[np.random.Generator], tuple[Any, ...]], steps: int | None = None
) -> Callable[[Function], Function]:
    def list_it(function: Function) -> Function:
        PROGRAMS[function.__name__] = Program(function, arguments, steps)
        return function

    return list_it


# --- linear algebra -------------------------------------------------------------------------------


def positive_definite(random: np.random.Generator, n: int) -> np.ndarray:
    a = random.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


@program(lambda random: (positive_definite(random, 6),))
def lu_by_rows(a):
    """Doolittle's factors in place of the matrix."""
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


@program(lambda random: (positive_definite(random, 6),), steps=64)
def cholesky(a):
    n = len(a)
    lower = np.zeros_like(a)
    for j in range(n):
        lower[j, j] = np.sqrt(a[j, j] - np.sum(lower[j, :j] ** 2))
        for i in range(j + 1, n):
            lower[i, j] = (a[i, j] - np.sum(lower[i, :j] * lower[j, :j])) / lower[j, j]
    return lower


@program(
    lambda random: (np.tril(positive_definite(random, 6)), random.standard_normal(6)), steps=64
)
def solve_triangular(lower, b):
    """L (L.T x) = b; b becomes x."""
    n = b.size
    for i in range(n):
        b[i] -= lower[i, :i] @ b[:i]
        b[i] /= lower[i, i]
    upper = lower.T
    for i in range(n - 1, -1, -1):
        b[i] = (b[i] - upper[i, i + 1 :] @ b[i + 1 :]) / upper[i, i]


@program(
    lambda random: (positive_definite(random, 5), random.standard_normal(5), np.zeros(5)), steps=64
)
def gauss_seidel(a, b, x):
    for _ in range(3):
        for i in range(x.shape[0]):
            rest = a[i, :i] @ x[:i] + a[i, i + 1 :] @ x[i + 1 :]
            x[i] = (b[i] - rest) / a[i, i]
    return np.abs(b - a @ x).max()


@program(lambda random: (random.standard_normal((6, 4)),), steps=64)
def gram_schmidt(a):
    """Columns made orthonormal in place; the triangular factor is returned."""
    n = a.shape[1]
    r = np.zeros((n, n))
    for j in range(n):
        column = a[:, j]
        for k in range(j):
            r[k, j] = np.dot(a[:, k], column)
            column -= r[k, j] * a[:, k]
        r[j, j] = np.sqrt((column * column).sum())
        column /= r[j, j]
    return r


@program(lambda random: (random.integers(0, 100, (6, 6)),))
def rotate_in_place(matrix):
    """By a quarter: reflect in the diagonal, then each row in its middle."""
    n = matrix.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            matrix[i, j], matrix[j, i] = matrix[j, i], matrix[i, j]
    matrix[:, : n // 2], matrix[:, : n // 2 - 1 : -1] = (
        matrix[:, : n // 2 - 1 : -1].copy(),
        matrix[:, : n // 2].copy(),
    )
    return matrix


# --- fields and images ----------------------------------------------------------------------------


@program(lambda random: (random.standard_normal((8, 9)), np.zeros((8, 9))))
def jacobi(u, scratch):
    """Two buffers that change places."""
    now, after = u, scratch
    for _ in range(5):
        after[0], after[-1] = 0.0, 1.0
        after[:, 0] = after[:, -1] = 0.5
        after[1:-1, 1:-1] = 0.25 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        now, after = after, now
    return now


@program(lambda random: (random.standard_normal(12).astype(np.float32),))
def heat(u):
    for _ in range(6):
        u[1:-1] += np.float32(0.1) * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[1]
        u[-1] = 0
    return u.max()


def _water(random: np.random.Generator) -> tuple[Any, ...]:
    return 1 + 0.1 * random.random((7, 8)), np.zeros((7, 8)), np.zeros((7, 8)), 0.05


@program(_water)
def shallow_water(h, u, v, dt):
    """Leapfrog on a staggered grid with closed sides; h, u and v are the caller's."""
    for _ in range(3):
        u[:-1] -= dt * 9.81 * (h[1:] - h[:-1])
        v[:, :-1] -= dt * 9.81 * (h[:, 1:] - h[:, :-1])
        u[-1, :] = 0
        v[:, -1] = 0
        divergence = np.empty_like(h)
        divergence[0, :] = u[0, :]
        divergence[1:, :] = u[1:, :] - u[:-1, :]
        divergence[:, 0] += v[:, 0]
        divergence[:, 1:] += v[:, 1:] - v[:, :-1]
        h -= dt * divergence
    return h


@program(lambda random: (random.integers(0, 2, (9, 11)).astype(np.uint8),))
def game_of_life(cells):
    padded = np.zeros((cells.shape[0] + 2, cells.shape[1] + 2), cells.dtype)
    for _ in range(4):
        padded[1:-1, 1:-1] = cells
        neighbours = np.zeros_like(cells)
        for i in range(3):
            for j in range(3):
                if (i, j) != (1, 1):
                    neighbours += padded[i : i + cells.shape[0], j : j + cells.shape[1]]
        cells[...] = (neighbours == 3) | ((cells == 1) & (neighbours == 2))
    return int(cells.shape[0]), cells.sum()


@program(lambda random: (random.integers(0, 256, (9, 12)).astype(np.uint8),))
def sobel(image):
    height, width = image.shape
    padded = np.empty((height + 2, width + 2), np.int32)
    padded[1:-1, 1:-1] = image
    padded[0, 1:-1], padded[-1, 1:-1] = image[0], image[-1]
    padded[:, 0] = padded[:, 1]
    padded[:, -1] = padded[:, -2]
    across = np.zeros((height, width), np.int32)
    down = np.zeros((height, width), np.int32)
    for k, weight in enumerate((1, 2, 1)):
        across += weight * (padded[k : k + height, 2:] - padded[k : k + height, :-2])
        down += weight * (padded[2:, k : k + width] - padded[:-2, k : k + width])
    edges = np.sqrt((across**2 + down**2).astype(np.float64))
    np.clip(edges, 0, 255, out=edges)
    return edges.astype(np.uint8)


@program(lambda random: (random.standard_normal((5, 6)), 8, 9))
def resize_bilinear(image, height, width):
    rows = np.linspace(0, image.shape[0] - 1, height)
    columns = np.linspace(0, image.shape[1] - 1, width)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    bottom = np.minimum(top + 1, image.shape[0] - 1)
    right = np.minimum(left + 1, image.shape[1] - 1)
    y, x = (rows - top)[:, None], columns - left
    above = image[top[:, None], left] * (1 - x) + image[top[:, None], right] * x
    below = image[bottom[:, None], left] * (1 - x) + image[bottom[:, None], right] * x
    return above * (1 - y) + below * y


# --- tables ---------------------------------------------------------------------------------------


@program(lambda random: (random.standard_normal(6), random.standard_normal(7)))
def dynamic_time_warping(a, b):
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            best = min_of_three(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = abs(a[i - 1] - b[j - 1]) + best
    return cost[-1, -1], cost


def min_of_three(a, b, c):
    return np.minimum(np.minimum(a, b), c)


def _roads(random: np.random.Generator) -> tuple[Any, ...]:
    distance = random.integers(1, 50, (6, 6)).astype(np.float64)
    distance[random.random((6, 6)) < 0.4] = np.inf
    return (distance,)


@program(_roads)
def floyd_warshall(distance):
    np.fill_diagonal(distance, 0)
    for k in range(len(distance)):
        np.minimum(distance, distance[:, k, None] + distance[k], out=distance)


@program(lambda random: (random.integers(1, 20, 6), [3, 1, 4, 2, 5, 2], 9))
def knapsack(values, weights, capacity):
    best = np.zeros(capacity + 1, dtype=values.dtype)
    taken = np.zeros((len(weights), capacity + 1), dtype=bool)
    for item, weight in enumerate(weights):
        candidate = best[:-weight] + values[item]
        taken[item, weight:] = candidate > best[weight:]
        best[weight:] = np.maximum(best[weight:], candidate)
    return best[-1], taken


@program(lambda random: (random.integers(-50, 50, 13),))
def prefix_sums(x):
    """By doubling: each step adds what lies a power of two before."""
    step = 1
    while step < x.size:
        x[step:] += x[:-step]
        step *= 2
    return x


@program(lambda random: (random.standard_normal(9),))
def transposition_sort(x):
    """Odd and even neighbours change places until all are in order."""
    for turn in range(x.size):
        first = x[turn % 2 : -1 : 2]
        second = x[turn % 2 + 1 :: 2]
        low, high = np.minimum(first, second), np.maximum(first, second)
        first[:], second[:] = low, high
    return x


# --- signals and series ---------------------------------------------------------------------------


@program(lambda random: (random.standard_normal(5), random.standard_normal((3, 4))))
def horner(coefficients, x):
    value = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        np.multiply(value, x, out=value)
        np.add(value, c, out=value)
    return value


@program(lambda random: (random.standard_normal(16), 4), steps=64)
def moving_average(x, width):
    """One running total, updated at each step."""
    averages = np.empty(x.size - width + 1)
    total = x[:width].sum()
    averages[0] = total / width
    for i in range(1, averages.size):
        total += x[i + width - 1] - x[i - 1]
        averages[i] = total / width
    return averages


def bit_reversed(n: int) -> np.ndarray:
    width = n.bit_length() - 1
    return np.array([int(f"{i:0{width}b}"[::-1], 2) for i in range(n)])


REVERSED = bit_reversed(16)


@program(lambda random: (random.standard_normal(16), random.standard_normal(16)), steps=64)
def fast_fourier_transform(real, imaginary):
    """Radix 2, in place, on pairs of reals."""
    real[:], imaginary[:] = real[REVERSED], imaginary[REVERSED]
    half = 1
    while half < real.size:
        angle = -np.pi * np.arange(half) / half
        c, s = np.cos(angle), np.sin(angle)
        a, b = real.reshape(-1, 2, half), imaginary.reshape(-1, 2, half)
        x, y = a[:, 1] * c - b[:, 1] * s, a[:, 1] * s + b[:, 1] * c
        a[:, 1], b[:, 1] = a[:, 0] - x, b[:, 0] - y
        a[:, 0] += x
        b[:, 0] += y
        half *= 2


@program(lambda random: (random.random(40), 8))
def histogram(samples, bins):
    counts = np.zeros(bins, dtype=np.int64)
    places = np.minimum((samples * bins).astype(np.int64), bins - 1)
    np.add.at(counts, places, 1)
    total = np.zeros(bins)
    np.add.at(total, places, samples)
    return counts, total


# --- learning -------------------------------------------------------------------------------------


def _points(random: np.random.Generator) -> tuple[Any, ...]:
    points = random.integers(-8, 8, (20, 2)).astype(np.float64)
    return points, points[:3].copy()


@program(_points, steps=64)
def k_means(points, centres):
    """The caller's centres move."""
    for _ in range(2):
        offsets = points[:, None] - centres
        nearest = (offsets**2).sum(axis=2).argmin(axis=1)
        for k in range(len(centres)):
            mine = nearest == k
            count = mine.sum()
            total = np.where(mine[:, None], points, 0).sum(axis=0)
            centres[k] = np.where(count > 0, total / np.maximum(count, 1), centres[k])
    return nearest


def _links(random: np.random.Generator) -> tuple[Any, ...]:
    return random.integers(0, 7, 15), random.integers(0, 7, 15), np.full(7, 1 / 7)


@program(_links, steps=64)
def page_rank(source, target, rank):
    degree = np.zeros(rank.size)
    np.add.at(degree, source, 1)
    for _ in range(3):
        share = rank / np.maximum(degree, 1)
        received = np.zeros_like(rank)
        np.add.at(received, target, share[source])
        lost = np.sum(rank, where=degree == 0)
        rank[:] = 0.15 / rank.size + 0.85 * (received + lost / rank.size)
    return rank


def _words(random: np.random.Generator) -> tuple[Any, ...]:
    return random.integers(-6, 6, (2, 5)), random.standard_normal((6, 4)).astype(np.float32)


@program(_words)
def embed(words, table):
    """Rows of a table, and each word as a row with a single one."""
    embedded = table[words]
    embedded[:, 0] = 0
    ones = np.zeros((*words.shape, len(table)), dtype=np.int8)
    ones[np.arange(2)[:, None], np.arange(5), words] = 1
    return embedded, ones, words[..., None] == np.arange(len(table))


@program(
    lambda random: tuple(random.standard_normal((5, 4)).astype(np.float32) for _ in range(3)),
    steps=64,
)
def causal_attention(queries, keys, values):
    scores = queries @ keys.T / np.float32(np.sqrt(queries.shape[1]))
    places = np.arange(len(queries))
    scores[places[:, None] < places] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores @ values
