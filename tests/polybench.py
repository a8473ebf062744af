"""Kernels of the PolyBench suite in plain numpy, written from what they compute.

Arrays are written in place where the definition says so; names are those of the suite.
"""

# ruff: noqa: N803, N806

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


# -- stencils over time


def jacobi_1d(T: int, A: Array, B: Array) -> None:
    for _ in range(1, T):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_2d(T: int, A: Array, B: Array) -> None:
    for _ in range(1, T):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


def second_differences(A: Array) -> Array:
    """An eighth of the second differences along each axis, and the elements themselves."""
    inner = A[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * inner + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * inner + A[1:-1, :-2, 1:-1])
        + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * inner + A[1:-1, 1:-1, :-2])
        + inner
    )


def heat_3d(T: int, A: Array, B: Array) -> None:
    for _ in range(1, T):
        B[1:-1, 1:-1, 1:-1] = second_differences(A)
        A[1:-1, 1:-1, 1:-1] = second_differences(B)


def fdtd_2d(T: int, ex: Array, ey: Array, hz: Array, fict: Array) -> None:
    for t in range(T):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def seidel_2d(T: int, A: Array) -> None:
    N = A.shape[0]
    for _ in range(T - 1):
        for i in range(1, N - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:]
                + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )  # fmt: skip
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


def adi(T: int, u: Array) -> None:
    """Alternating directions: in each half step a tridiagonal system along one axis."""
    N = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    B1, B2 = 2.0, 1.0
    mul1, mul2 = B1 * (1.0 / T) * N * N, B2 * (1.0 / T) * N * N
    a = -mul1 / 2.0
    b = 1.0 + mul1
    d = -mul2 / 2.0
    e = 1.0 + mul2
    for _ in range(1, T + 1):
        v[0, 1 : N - 1] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = v[0, 1 : N - 1]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -a / (a * p[1 : N - 1, j - 1] + b)
            q[1 : N - 1, j] = (
                -d * u[j, : N - 2] + (1.0 + 2.0 * d) * u[j, 1 : N - 1] - d * u[j, 2:]
                - a * q[1 : N - 1, j - 1]
            ) / (a * p[1 : N - 1, j - 1] + b)  # fmt: skip
        v[N - 1, 1 : N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1 : N - 1] = p[1 : N - 1, j] * v[j + 1, 1 : N - 1] + q[1 : N - 1, j]
        u[1 : N - 1, 0] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = u[1 : N - 1, 0]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -d / (d * p[1 : N - 1, j - 1] + e)
            q[1 : N - 1, j] = (
                -a * v[: N - 2, j] + (1.0 + 2.0 * a) * v[1 : N - 1, j] - a * v[2:, j]
                - d * q[1 : N - 1, j - 1]
            ) / (d * p[1 : N - 1, j - 1] + e)  # fmt: skip
        u[1 : N - 1, N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            u[1 : N - 1, j] = p[1 : N - 1, j] * u[1 : N - 1, j + 1] + q[1 : N - 1, j]


def deriche(img: Array, alpha: float) -> Array:
    """An edge filter: recursive along rows both ways, then along columns both ways."""
    W, H = img.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1, b2 = 2.0**-alpha, -np.exp(-2.0 * alpha)
    y1, y2 = np.zeros_like(img), np.zeros_like(img)
    y1[:, 0] = a1 * img[:, 0]
    y1[:, 1] = a1 * img[:, 1] + a2 * img[:, 0] + b1 * y1[:, 0]
    for j in range(2, H):
        y1[:, j] = a1 * img[:, j] + a2 * img[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, H - 2] = a3 * img[:, H - 1]
    for j in range(H - 3, -1, -1):
        y2[:, j] = a3 * img[:, j + 1] + a4 * img[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[0, :] = a1 * out[0, :]
    y1[1, :] = a1 * out[1, :] + a2 * out[0, :] + b1 * y1[0, :]
    for i in range(2, W):
        y1[i, :] = a1 * out[i, :] + a2 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[W - 1, :] = 0.0
    y2[W - 2, :] = a3 * out[W - 1, :]
    for i in range(W - 3, -1, -1):
        y2[i, :] = a3 * out[i + 1, :] + a4 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


# -- graphs and sequences


def floyd_warshall(path: Array) -> None:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def nussinov(seq: Array) -> Array:
    """The most pairs of bases that a strand folds into, for each piece of it."""
    N = seq.shape[0]
    table = np.zeros((N, N), np.int64)
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < N:
                if i < j - 1:
                    match = 1 if seq[i] + seq[j] == 3 else 0
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


# -- linear algebra


def cholesky(A: Array) -> None:
    """The lower triangle becomes L of A = L @ L.T."""
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def lu(A: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp(A: Array, b: Array) -> tuple[Array, Array]:
    N = A.shape[0]
    x, y = np.zeros_like(b), np.zeros_like(b)
    for i in range(N):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(N):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(N - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def trisolv(L: Array, x: Array, b: Array) -> None:
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def durbin(r: Array) -> Array:
    """The solution of the Yule-Walker equations, by Levinson and Durbin."""
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gramschmidt(A: Array) -> tuple[Array, Array]:
    Q, R = np.zeros_like(A), np.zeros((A.shape[1], A.shape[1]))
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


class Kernel(NamedTuple):
    """function: of what `arguments` gives for a size and a generator."""

    function: Callable[..., Any]
    arguments: Callable[[int, np.random.Generator], tuple[Any, ...]]

    @property
    def name(self) -> str:
        return self.function.__name__


def _positive_definite(n: int, generator: np.random.Generator) -> Array:
    half = generator.random((n, n))
    return half @ half.T + n * np.eye(n)


KERNELS = (
    Kernel(jacobi_1d, lambda n, g: (n, g.random(4 * n), g.random(4 * n))),
    Kernel(jacobi_2d, lambda n, g: (n, g.random((n, n)), g.random((n, n)))),
    Kernel(heat_3d, lambda n, g: (n, g.random((n, n, n)), g.random((n, n, n)))),
    Kernel(
        fdtd_2d,
        lambda n, g: (
            n,
            g.random((n, n + 2)),
            g.random((n, n + 2)),
            g.random((n, n + 2)),
            g.random(n),
        ),
    ),
    Kernel(seidel_2d, lambda n, g: (n // 2, g.random((n, n)))),
    Kernel(adi, lambda n, g: (n // 2, g.random((n, n)))),
    Kernel(deriche, lambda n, g: (g.random((n, n + 3)), 0.25)),
    Kernel(floyd_warshall, lambda n, g: (g.integers(1, 99, (n, n)),)),
    Kernel(nussinov, lambda n, g: (g.integers(0, 4, n),)),
    Kernel(cholesky, lambda n, g: (_positive_definite(n, g),)),
    Kernel(lu, lambda n, g: (_positive_definite(n, g),)),
    Kernel(ludcmp, lambda n, g: (_positive_definite(n, g), g.random(n))),
    Kernel(trisolv, lambda n, g: (_positive_definite(n, g), np.zeros(n), g.random(n))),
    Kernel(durbin, lambda n, g: (g.random(n) + np.arange(n, 0.0, -1.0),)),
    Kernel(gramschmidt, lambda n, g: (g.random((n, n)) + np.eye(n),)),
)
