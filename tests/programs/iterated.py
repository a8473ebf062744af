"""Programs that go on until data says that they are done, or step by step through a recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.programs.known import Generator, known


def _system(random: Generator) -> tuple[Any, ...]:
    a = random.standard_normal((24, 24))
    return a @ a.T + 24 * np.eye(24), random.standard_normal(24)


@known(3, _system)
def conjugate_gradient(a, b):
    """M. Hestenes and E. Stiefel; until the residual is small."""
    x = np.zeros(b.shape[0])
    r = b - a @ x
    p = r.copy()
    square = r @ r
    for _ in range(200):
        product = a @ p
        step = square / (p @ product)
        x = x + step * p
        r = r - step * product
        following = r @ r
        if np.sqrt(following) < 1e-13:
            break
        p = r + (following / square) * p
        square = following
    return x


@known(3, lambda random: (random.uniform(0.5, 1.5, (16, 16)),))
def power_iteration(a):
    """The largest eigenvalue, R. von Mises; as long as it changes."""
    x = np.ones(a.shape[0])
    value, before = 1.0, 0.0
    while abs(value - before) > 1e-15 * value:
        y = a @ x
        before = value
        value = np.abs(y).max()
        x = y / value
    return value, x


@known(2, lambda random: (random.uniform(0.1, 100, 90),))
def newton_square_roots(c):
    roots = np.zeros(c.shape[0])
    for i in range(c.shape[0]):
        x = c[i]
        for _ in range(100):
            following = 0.5 * (x + c[i] / x)
            if abs(following - x) <= 1e-15 * x:
                break
            x = following
        roots[i] = x
    return roots


@known(2, lambda random: (random.uniform(0.1, 5, 80),))
def cube_roots_by_bisection(c):
    roots = np.zeros(c.shape[0])
    for i in range(c.shape[0]):
        low, high = 0.0, 8.0
        while high - low > 1e-12:
            middle = 0.5 * (low + high)
            if middle * middle * middle > c[i]:
                high = middle
            else:
                low = middle
        roots[i] = low
    return roots


def _sparse(random: Generator) -> tuple[Any, ...]:
    lengths = random.integers(0, 90, 100)
    rows = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.minimum(rows, 3000)
    return rows, random.integers(0, 40, 3000), *random.standard_normal((2, 3000))


@known(2, _sparse)
def sparse_matrix_vector(row, column, value, x):
    """Rows one after the other, each from where `row` says."""
    y = np.zeros(row.shape[0] - 1)
    for i in range(row.shape[0] - 1):
        begin, end = min(row[i], row[i + 1]), max(row[i], row[i + 1])
        y[i] = np.sum(value[begin:end] * x[column[begin:end]])
    return y


@known(2, lambda random: (random.integers(0, 2, (12, 12)),))
def game_of_life(board):
    """J. Conway, on a torus."""
    for _ in range(70):
        around = np.zeros_like(board)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy != 0 or dx != 0:
                    around += np.roll(board, (dy, dx), (0, 1))
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)
    return board


@known(4, lambda random: (np.concatenate([random.normal(at, 0.1, (30, 2)) for at in (0, 3, 9)]),))
def k_means(points):
    """S. Lloyd; until no centre moves."""
    centres = points[::30].copy()
    for _ in range(80):
        distances = ((points[:, None] - centres) ** 2).sum(axis=-1)
        belongs = (distances.argmin(axis=1)[:, None] == np.arange(3)).astype(points.dtype)
        following = belongs.T @ points / belongs.sum(axis=0)[:, None]
        moved = np.abs(following - centres).max()
        centres = following
        if moved < 1e-12:
            break
    return centres


def _cell(random: Generator) -> tuple[Any, ...]:
    shapes = (80, 4), (4, 20), (5, 20), (20,)
    return tuple([random.standard_normal(shape) * 0.5 for shape in shapes])


@known(2, _cell)
def long_short_term_memory(x, w, u, b):
    """S. Hochreiter and J. Schmidhuber, with forget gates."""

    def gate(value):
        return 1 / (1 + np.exp(-value))

    h, c = np.zeros(5), np.zeros(5)
    states = np.zeros((x.shape[0], 5))
    for t in range(x.shape[0]):
        z = x[t] @ w + h @ u + b
        c = gate(z[:5]) * c + gate(z[5:10]) * np.tanh(z[10:15])
        h = gate(z[15:]) * np.tanh(c)
        states[t] = h
    return states


@known(2, lambda random: (random.integers(0, 4, 40), random.integers(0, 4, 50)))
def smith_waterman(a, b):
    """The score of the best local alignment."""
    scores = np.zeros((a.shape[0] + 1, b.shape[0] + 1), np.int64)
    best = np.int64(0)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            same = scores[i, j] + (3 if a[i] == b[j] else -2)
            found = max(same, scores[i, j + 1] - 2, scores[i + 1, j] - 2, 0)
            scores[i + 1, j + 1] = found
            best = max(best, found)
    return scores, best


def _chain(random: Generator) -> tuple[Any, ...]:
    rows = random.uniform(0.1, 1, (6, 6))
    return np.log(rows / rows.sum(axis=1)[:, None]), np.log(random.uniform(0.1, 1, (100, 6)))


@known(4, _chain)
def viterbi(steps, seen):
    """A. Viterbi: the likeliest states, found backwards."""
    count = seen.shape[0]
    back = np.zeros(seen.shape, np.int64)
    score = seen[0].copy()
    for t in range(1, count):
        ways = score[:, None] + steps
        back[t] = ways.argmax(axis=0)
        score = ways.max(axis=0) + seen[t]
    path = np.zeros(count, np.int64)
    path[-1] = score.argmax()
    for t in range(count - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def _bands(random: Generator) -> tuple[Any, ...]:
    a, b, c, d = random.uniform(0.5, 1, (4, 90))
    return a, b + 3, c, d


@known(3, _bands)
def thomas(a, b, c, d):
    """L. Thomas: a system with three diagonals."""
    n = d.shape[0]
    upper, x = np.zeros(n), np.zeros(n)
    upper[0] = c[0] / b[0]
    x[0] = d[0] / b[0]
    for i in range(1, n):
        pivot = b[i] - a[i] * upper[i - 1]
        upper[i] = c[i] / pivot
        x[i] = (d[i] - a[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= upper[i] * x[i + 1]
    return x


@known(2, lambda random: (random.uniform(0, 1, (18, 20)),))
def floyd_steinberg(image):
    """R. Floyd and L. Steinberg: black and white, with errors passed on."""
    picture = image.copy()
    rows, columns = picture.shape
    for y in range(rows - 1):
        for x in range(1, columns - 1):
            old = picture[y, x]
            new = 1.0 if old > 0.5 else 0.0
            picture[y, x] = new
            error = (old - new) / 16
            picture[y, x + 1] += error * 7
            picture[y + 1, x - 1] += error * 3
            picture[y + 1, x] += error * 5
            picture[y + 1, x + 1] += error
    return picture


@known(6, lambda random: (random.uniform(-2, 1, 60), random.uniform(-1, 1, 60)))
def escape_times(real, imaginary):
    """B. Mandelbrot's set: turns until a point is far away, all points at once."""
    x, y = np.zeros(real.shape), np.zeros(real.shape)
    turns = np.zeros(real.shape, np.int64)
    for _ in range(100):
        inside = x * x + y * y < 4
        if not inside.any():
            break
        following = x * x - y * y + real
        y = np.where(inside, 2 * x * y + imaginary, y)
        x = np.where(inside, following, x)
        turns[inside] += 1
    return turns


@known(2, lambda random: (random.uniform(0.5, 1, 1),))
def cavity_flow(speed):
    """Velocities under a lid that moves, by projection; after L. Barba's steps."""
    n, dt, h = 12, 0.001, 2.0 / 11
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for _ in range(20):
        divergence = (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
        for _ in range(30):
            p[1:-1, 1:-1] = (
                p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - h * h / dt * divergence
            ) / 4
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u[1:-1, 1:-1] -= dt / (2 * h) * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] -= dt / (2 * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[-1, :] = speed[0]
    return u, v, p


@known(2, lambda random: (random.integers(1, 10_000, (90, 2)),))
def greatest_common_divisors(pairs):
    """Euclid."""
    found = np.zeros(pairs.shape[0], np.int64)
    for i in range(pairs.shape[0]):
        a, b = pairs[i, 0], pairs[i, 1]
        while b != 0:
            a, b = b, a % b
        found[i] = a
    return found


@known(3, lambda random: (random.standard_normal(200).cumsum(), random.uniform(3, 9, 1)))
def first_passage(path, level):
    """When a walk first leaves a band; -1 if it never does."""
    for t in range(path.shape[0]):
        if abs(path[t]) > level[0]:
            return np.zeros(1) + t
    return np.zeros(1) - 1
