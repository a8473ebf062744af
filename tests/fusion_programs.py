"""Plain numpy programs that fusion is for, with what becomes of each on the reference machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Fused:
    """A function and what is expected of it.

    shapes: of its arguments, for counting. small: the same, to compute with: rows of no round
    length, and of more than a block of a sum. kernels, scratch: of the program, in bytes. traffic:
    bytes that the unfused kernels read and write, over those of the fused ones. integers: which
    arguments are indices, and below what.
    """

    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    small: tuple[tuple[Shape, ...], ...]
    kernels: int
    scratch: int
    traffic: float
    integers: dict[int, tuple[int, int]]  # argument -> (below what for counting, when small)
    dtype: str
    note: str

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Fused] = []


def fused(
    *shapes: Shape,
    small: Sequence[tuple[Shape, ...]],
    kernels: int = 1,
    scratch: int = 0,
    traffic: float,
    integers: dict[int, tuple[int, int]] | None = None,
    dtype: str = "float32",
    note: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """List a function. note: why there are more kernels, or more memory, than one may expect."""

    def list_it(function: Callable[..., Any]) -> Callable[..., Any]:
        counts = (kernels, scratch, traffic, integers or {}, dtype, note)
        PROGRAMS.append(Fused(function, shapes, tuple(small), *counts))
        return function

    return list_it


# --- elementwise ----------------------------------------------------------------------------------

ROWS = ((512, 2048),)
SMALL_ROWS = (((5, 7),), ((3, 130),), ((2, 1100),))


@fused((512, 2048), (2048,), (512, 1), small=[((5, 67), (67,), (5, 1))], traffic=6.49)
def chain_with_broadcasts(x, weight, scale):
    y = (x - scale) * weight
    return np.tanh(y) + np.maximum(y, 0) / (1 + np.abs(scale))


@fused((512, 2048), (512, 2048), (), small=[((5, 67), (5, 67), ())], traffic=6.17)
def skip_connection(x, y, gain):
    hidden = np.sqrt(x * x + y * y)
    return hidden * gain + np.where(hidden > 1, x, y)


@fused((512, 2048), (512, 2048), small=[((5, 67), (5, 67))], traffic=3.2)
def stored_skip(x, y):
    """The root is worth storing; both that read it are in the same loop."""
    root = np.exp(x) * np.log(np.abs(y) + 1)
    return root, np.sin(root) + root


@fused((512, 2048), (512, 2048), small=[((5, 67), (5, 67))], traffic=1.57)
def several_outputs(x, y):
    difference = x - y
    return difference, difference * difference, np.abs(difference) < 1


@fused((512, 2048), (512, 2048), (), small=[((5, 67), (5, 67), ())], traffic=5.25)
def masks(x, y, limit):
    inside = (x > -limit) & (x < limit)
    outside = ~inside & (y > 0)
    return np.where(inside, x, np.where(outside, limit, -limit)) * (x == x)


def _step(p, g, m):
    m = np.float32(0.9) * m + np.float32(0.1) * g
    return p - np.float32(0.01) * m, m


@fused(*[(1000, 500)] * 24, small=[((7, 13),) * 24], traffic=2)
def eight_updates(*arrays):
    """Momentum for eight parameters."""
    return [_step(*arrays[at : at + 3]) for at in range(0, 24, 3)]


@fused((1 << 20,), (1 << 20,), (1 << 20,), (1 << 20,), small=[((1037,),) * 4], traffic=3.22)
def adam(p, g, m, v):
    m = np.float32(0.9) * m + np.float32(0.1) * g
    v = np.float32(0.999) * v + np.float32(0.001) * g * g
    return p - np.float32(0.001) * m / (np.sqrt(v) + np.float32(1e-8)), m, v


# --- rows -----------------------------------------------------------------------------------------


@fused(*ROWS, small=SMALL_ROWS, traffic=4)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@fused((512, 2048), (512, 2048), small=[((5, 7),) * 2, ((3, 1100),) * 2], traffic=3)
def softmax_backward(y, dy):
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


@fused(
    (512, 2048),
    (512,),
    small=[((5, 7), (5,)), ((2, 1100), (2,))],
    integers={1: (2048, 7)},
    kernels=2,
    traffic=7.99,
    note="the labels are checked apart",
)
def cross_entropy(logits, labels):
    """The loss of each row, by log-softmax."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -logs[np.arange(len(labels)), labels]


@fused(
    (512, 2048),
    (512, 3),
    small=[((5, 7), (5, 2)), ((2, 1100), (2, 3))],
    integers={1: (2048, 7)},
    kernels=2,
    traffic=7.98,
    note="the labels are checked apart",
)
def cross_entropy_of_several(logits, labels):
    """The mean over the labels of each row."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(logs, labels, axis=-1).mean(axis=-1)


@fused(
    (512, 2048),
    (512,),
    small=[((5, 7), (5,)), ((2, 1100), (2,))],
    integers={1: (2048, 7)},
    kernels=2,
    scratch=4096,
    traffic=7.98,
    note="the mean over the rows needs them all",
)
def mean_cross_entropy(logits, labels):
    return cross_entropy(logits, labels).mean()


@fused(
    (512, 2048),
    (512, 2048),
    small=[((5, 7),) * 2, ((2, 1100),) * 2],
    kernels=2,
    scratch=2048,
    traffic=3,
    note="the mean over the rows needs them all",
)
def cross_entropy_of_shares(logits, shares):
    """Log-softmax, and its mean against a distribution for each row."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs, -(shares * logs).sum(axis=-1).mean()


@fused((512, 2048), (512, 2048), small=[((5, 7),) * 2, ((2, 1100),) * 2], traffic=4.33)
def cross_entropy_backward(logits, shares):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True) - shares) / len(logits)


@fused(
    (512, 2048),
    (2048,),
    (2048,),
    small=[((5, 7), (7,), (7,)), ((2, 1100), (1100,), (1100,))],
    traffic=5.99,
)
def layer_norm(x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias


@fused(
    (512, 2048),
    (512, 2048),
    (2048,),
    small=[((5, 7), (5, 7), (7,)), ((2, 1100), (2, 1100), (1100,))],
    traffic=8,
)
def layer_norm_backward(x, dy, weight):
    """With respect to x; the row statistics are computed anew."""
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    normal, d = centred * scale, dy * weight
    along = (d * normal).mean(axis=-1, keepdims=True)
    return scale * (d - d.mean(axis=-1, keepdims=True) - normal * along)


@fused(
    (512, 2048),
    (512, 2048),
    (2048,),
    small=[((5, 7), (5, 7), (7,)), ((2, 1100), (2, 1100), (1100,))],
    kernels=4,
    scratch=4261888,
    traffic=4.11,
    note="sums of rows go through the rows anew, so that threads share them in blocks",
)
def layer_norm_weights_backward(x, dy, weight):
    """With respect to all three: sums along rows, and of rows."""
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    normal, d = centred * scale, dy * weight
    along = (d * normal).mean(axis=-1, keepdims=True)
    dx = scale * (d - d.mean(axis=-1, keepdims=True) - normal * along)
    return dx, (dy * normal).sum(axis=0), dy.sum(axis=0)


@fused((512, 2048), (2048,), small=[((5, 7), (7,)), ((2, 1100), (1100,))], traffic=3.5)
def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-6)) * weight


@fused(
    (512, 2048),
    (512, 2048),
    (2048,),
    small=[((5, 7), (5, 7), (7,)), ((2, 1100), (2, 1100), (1100,))],
    traffic=6,
)
def rms_norm_backward(x, dy, weight):
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-6))
    d = dy * weight
    return scale * d - x * scale**3 * (d * x).mean(axis=-1, keepdims=True)


@fused(
    (1024, 256),
    (256,),
    (256,),
    small=[((9, 7), (7,), (7,)), ((130, 67), (67,), (67,))],
    kernels=5,
    scratch=9216,
    traffic=2.97,
    note="sums of rows are complete only when all rows are through: three passes, two small ones",
)
def batch_norm(x, weight, bias):
    """Training, N × C."""
    mean = x.mean(axis=0)
    variance = ((x - mean) ** 2).mean(axis=0)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * weight + bias, mean, variance


@fused(
    (32, 64, 28, 28),
    (1, 64, 1, 1),
    (1, 64, 1, 1),
    small=[((3, 5, 4, 7), (1, 5, 1, 1), (1, 5, 1, 1))],
    kernels=5,
    scratch=8704,
    traffic=3,
    note="as batch_norm",
)
def batch_norm_images(x, weight, bias):
    """Training, N × C × H × W."""
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * weight + bias


@fused(
    (1024, 256),
    (1024, 256),
    (256,),
    small=[((9, 7), (9, 7), (7,))],
    kernels=7,
    scratch=19456,
    traffic=3.38,
    note="as batch_norm: four passes, three small ones",
)
def batch_norm_backward(x, dy, weight):
    mean = x.mean(axis=0)
    scale = 1 / np.sqrt(((x - mean) ** 2).mean(axis=0) + np.float32(1e-5))
    normal = (x - mean) * scale
    d_weight, d_bias = (dy * normal).sum(axis=0), dy.sum(axis=0)
    return weight * scale / len(x) * (len(x) * dy - d_bias - normal * d_weight), d_weight, d_bias


@fused(*ROWS, small=SMALL_ROWS, traffic=6)
def variance(x):
    return x.var(axis=-1)


@fused(
    *ROWS,
    small=SMALL_ROWS,
    kernels=4,
    scratch=4160,
    traffic=2.99,
    note="threads share the blocks of each sum: two passes, and a small kernel after each",
)
def whole_variance(x):
    return ((x - x.mean()) ** 2).mean()


@fused(*ROWS, small=SMALL_ROWS, traffic=6.99)
def norms(x):
    return np.linalg.norm(x, axis=-1), np.abs(x).sum(axis=-1), np.abs(x).max(axis=-1)


@fused(*ROWS, small=SMALL_ROWS, traffic=2.5)
def unit_rows(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@fused((512, 2048), (2048,), small=[((5, 7), (7,)), ((2, 1100), (1100,))], traffic=9.01)
def argmax_of_an_expression(x, weight):
    return np.argmax(np.abs(x * weight) - x, axis=-1)


@fused(*ROWS, small=SMALL_ROWS, traffic=4.99)
def row_statistics(x):
    return x.sum(axis=-1), x.max(axis=-1), (x * x).sum(axis=-1)


@fused(
    *ROWS,
    small=SMALL_ROWS,
    kernels=5,
    scratch=32768,
    traffic=1.65,
    note="the largest of a column is one chain, sums are made of blocks of rows: three passes",
)
def column_statistics(x):
    return x.sum(axis=0), x.max(axis=0), (x * x).sum(axis=0)


@fused(
    *ROWS,
    small=SMALL_ROWS,
    kernels=2,
    scratch=12288,
    traffic=4.97,
    note="one pass; then the blocks of each are combined",
)
def whole_statistics(x):
    return x.sum(), x.max(), (x * x).sum()


@fused((64, 512, 64), small=[((3, 5, 7),), ((2, 3, 70),)], traffic=3.08)
def reductions_in_reductions(x):
    """For each matrix the largest of the norms of its rows, relative to their sum."""
    rows = np.sqrt((x * x).sum(axis=-1))
    return rows.max(axis=-1) / rows.sum(axis=-1)


# --- outer products that are never stored ---------------------------------------------------------


@fused((1024, 3), (1024, 3), small=[((7, 3), (11, 3))], traffic=14.92)
def pairwise_distances(x, y):
    return np.sqrt(((x[:, None] - y[None]) ** 2).sum(axis=-1))


@fused((1024, 3), (1024, 3), (1024,), small=[((7, 3), (11, 3), (11,))], traffic=2561)
def radial_basis(x, y, weights):
    squares = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    return (np.exp(-squares) * weights).sum(axis=-1)


@fused((1024, 3), (1024,), small=[((7, 3), (7,)), ((70, 3), (70,))], traffic=3277.8)
def n_body_forces(position, mass):
    apart = position[None] - position[:, None]
    squares = (apart * apart).sum(axis=-1) + np.float32(1e-3)
    pull = mass / (squares * np.sqrt(squares))
    return (apart * pull[:, :, None]).sum(axis=1)


@fused((1024, 8), (64, 8), small=[((7, 3), (5, 3))], scratch=2048, traffic=195.87)
def nearest_centre(points, centres):
    return ((points[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)


# --- data, rows in order --------------------------------------------------------------------------


@fused(
    (1000, 512),
    (128,),
    (128, 512),
    (512,),
    (512,),
    small=[((9, 7), (5,), (5, 7), (7,), (7,))],
    integers={1: (1000, 9)},
    kernels=2,
    traffic=5.64,
    note="the tokens are checked apart, before anything is read",
)
def embedding(table, tokens, positions, weight, bias):
    """Rows of a table, with positions added, normalized."""
    return layer_norm(table[tokens] + positions, weight, bias)


@fused(*ROWS, small=SMALL_ROWS, traffic=6.5)
def cumulative(x):
    """Shares of a running total."""
    total = np.cumsum(x, axis=-1)
    return np.sqrt(np.abs(total)) / (1 + x * x)


@fused(*ROWS, small=SMALL_ROWS, traffic=3)
def running_shares(x):
    total = np.cumsum(np.exp(x), axis=-1)
    return total / total[:, -1:]


# --- arrays put together of others ----------------------------------------------------------------


@fused(*ROWS, small=SMALL_ROWS, traffic=4)
def padded(x):
    return np.pad(np.abs(x), ((1, 2), (3, 0))) * 2 - 1


@fused((512, 1024), (512, 1024), small=[((5, 7), (5, 7))], traffic=3)
def joined(x, y):
    return np.concatenate([x * 2, -y], axis=1) + 1


@fused(*ROWS, small=SMALL_ROWS, traffic=5)
def rolled_and_flipped(x):
    return np.roll(x, 3, axis=1) - np.flip(x, axis=1) * np.roll(x, -1, axis=0)


@fused((512, 512), small=[((7, 7),), ((67, 67),)], traffic=3.5)
def transposes(x):
    return np.exp((x.T - x).T) + x.reshape(-1)[::-1].reshape(x.shape)


# --- stencils -------------------------------------------------------------------------------------


@fused((2048, 2048), small=[((9, 7),), ((40, 67),)], traffic=7)
def blur(image):
    """3 × 3, separable."""
    across = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3


def _neighbours(image):
    """Sums of 3 × 3, of the inner ones."""
    rows = image[:-2] + image[1:-1] + image[2:]
    return rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]


@fused((1024, 1024), (), small=[((9, 11), ()), ((40, 37), ())], traffic=13.48)
def unsharp(image, amount):
    blurred = _neighbours(image) / 9
    return np.clip(image[1:-1, 1:-1] + amount * (image[1:-1, 1:-1] - blurred), 0, 1)


@fused((1024, 1024), small=[((9, 11),), ((40, 37),)], traffic=29.43)
def harris(image):
    dx = image[1:-1, 2:] - image[1:-1, :-2]
    dy = image[2:, 1:-1] - image[:-2, 1:-1]
    xx, xy, yy = _neighbours(dx * dx), _neighbours(dx * dy), _neighbours(dy * dy)
    return xx * yy - xy * xy - np.float32(0.04) * (xx + yy) ** 2


def _jacobi_step(u):
    inner = np.float32(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return np.pad(inner, 1)


@fused(
    (2048, 2048),
    small=[((7, 9),), ((40, 37),)],
    traffic=59.9,
)
def jacobi(u):
    for _ in range(10):
        u = _jacobi_step(u)
    return u


@fused((128, 128, 128), small=[((5, 6, 7),)], traffic=11.74)
def heat(u):
    inner = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    return inner + np.float32(0.1) * (around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * inner)


@fused(
    (516, 516, 64),
    (512, 512, 64),
    small=[((9, 8, 3), (5, 4, 3))],
    kernels=2,
    scratch=67634176,
    traffic=7.97,
    note="a few rows of the Laplacian are more than a stack holds: it is stored",
)
def horizontal_diffusion(field, coefficient):
    """With limited fluxes of the Laplacian."""
    inner = field[1:-1, 1:-1]
    laplacian = 4 * inner - (
        field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
    )
    along = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    along = np.where(along * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, along)
    across = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    across = np.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, across)
    return field[2:-2, 2:-2] - coefficient * (
        along[1:] - along[:-1] + across[:, 1:] - across[:, :-1]
    )


@fused(
    (1024, 1024),
    (1024, 1024),
    (1024, 1024),
    small=[((7, 9),) * 3],
    kernels=2,
    traffic=5.78,
    note="the new height is an output, of which the new speeds need rows around",
)
def shallow_water(height, u, v):
    """One step on a torus."""
    flux_x, flux_y = height * u, height * v
    spread = np.roll(flux_x, -1, 1) - np.roll(flux_x, 1, 1)
    spread = spread + np.roll(flux_y, -1, 0) - np.roll(flux_y, 1, 0)
    new = height - np.float32(0.05) * spread
    slope_x = np.roll(new, -1, 1) - np.roll(new, 1, 1)
    slope_y = np.roll(new, -1, 0) - np.roll(new, 1, 0)
    return new, u - np.float32(0.05) * slope_x, v - np.float32(0.05) * slope_y


@fused((1024, 1024), (), (), small=[((7, 9), (), ())], traffic=18)
def upwind(q, u, v):
    dx = np.where(u > 0, q - np.roll(q, 1, 1), np.roll(q, -1, 1) - q)
    dy = np.where(v > 0, q - np.roll(q, 1, 0), np.roll(q, -1, 0) - q)
    return q - u * dx - v * dy


@fused((1024, 1024), (), (), small=[((7, 9), (), ()), ((40, 37), (), ())], traffic=72)
def four_upwind_steps(q, u, v):
    """Strips of rows that go round."""
    for _ in range(4):
        q = upwind(q, u, v)
    return q


# --- few rows, which threads do not share ---------------------------------------------------------


@fused(
    (2, 100000),
    small=[((1, 9000),)],
    kernels=6,
    scratch=800896,
    traffic=1.33,
    note="threads share the blocks of each row: three passes",
)
def softmax_of_long_rows(x):
    return softmax(x)


@fused(
    (1, 1, 300),
    (300,),
    (300,),
    small=[((1, 1, 3), (3,), (3,)), ((1, 1, 0), (0,), (0,))],
    traffic=3.51,
)
def layer_norm_of_one_row(x, weight, bias):
    return layer_norm(x, weight, bias)


@fused((0, 2048), small=[((0, 7),), ((1, 1),)], kernels=0, traffic=0)
def softmax_of_no_rows(x):
    return softmax(x)
