"""Networks that read handwritten digits, trained here: python digits.py

The digits are those of scikit-learn. Training takes seconds: each step, with its hand-written
gradients, is one compiled call, and so is each forward pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from timing import duration, medians, run_without_openblas_settings

import tinyfuse
from tinyfuse import nn

Parameters = dict[str, np.ndarray]

HELD_OUT = 360  # digits that training does not see
BATCH = 50

# --- the networks ---------------------------------------------------------------------------------


def perceptron(p: Parameters, images):
    """images: float32[n, 1, 8, 8] -> float32[n, 10], the larger the likelier."""
    hidden = nn.relu(images.reshape(-1, 64) @ p["inner"] + p["inner_bias"])
    return hidden @ p["outer"] + p["outer_bias"]


def convolutional(p: Parameters, images):
    """The same, with two convolutions that are pooled."""
    y = nn.conv(images, p["first"], padding=1) + p["first_bias"][:, None, None]
    y = nn.max_pool(nn.relu(y), 2)
    y = nn.conv(y, p["second"], padding=1) + p["second_bias"][:, None, None]
    y = nn.max_pool(nn.relu(y), 2)
    return y.reshape(-1, 64) @ p["outer"] + p["outer_bias"]


def perceptron_parameters(random: np.random.Generator) -> Parameters:
    return {
        "inner": normal(random, 64, 64),
        "inner_bias": np.zeros(64, np.float32),
        "outer": normal(random, 64, 10),
        "outer_bias": np.zeros(10, np.float32),
    }


def convolutional_parameters(random: np.random.Generator) -> Parameters:
    return {
        "first": normal(random, 3, 3, 1, 16).transpose(3, 2, 0, 1).copy(),
        "first_bias": np.zeros(16, np.float32),
        "second": normal(random, 3, 3, 16, 16).transpose(3, 2, 0, 1).copy(),
        "second_bias": np.zeros(16, np.float32),
        "outer": normal(random, 64, 10),
        "outer_bias": np.zeros(10, np.float32),
    }


def normal(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights for inputs along all axes but the last: He et al., Delving Deep into Rectifiers."""
    deviation = np.sqrt(2 / np.prod(shape[:-1]))
    return (random.normal(size=shape) * deviation).astype(np.float32)


# --- training -------------------------------------------------------------------------------------


def error(logits, labels):
    """The gradient of the cross entropy, averaged over a batch."""
    return (nn.softmax(logits) - (labels[:, None] == np.arange(10))) / np.float32(len(labels))


def perceptron_gradients(p: Parameters, images, labels):
    x = images.reshape(-1, 64)
    hidden = nn.relu(x @ p["inner"] + p["inner_bias"])
    outer = error(hidden @ p["outer"] + p["outer_bias"], labels)
    inner = np.where(hidden > 0, outer @ p["outer"].T, np.float32(0))
    return {
        "inner": x.T @ inner,
        "inner_bias": inner.sum(axis=0),
        "outer": hidden.T @ outer,
        "outer_bias": outer.sum(axis=0),
    }


def convolutional_gradients(p: Parameters, images, labels):
    first = nn.relu(nn.conv(images, p["first"], padding=1) + p["first_bias"][:, None, None])
    half = nn.max_pool(first, 2)
    second = nn.relu(nn.conv(half, p["second"], padding=1) + p["second_bias"][:, None, None])
    quarter = nn.max_pool(second, 2)
    flat = quarter.reshape(-1, 64)
    outer = error(flat @ p["outer"] + p["outer_bias"], labels)
    of_second = unpooled((outer @ p["outer"].T).reshape(quarter.shape), second, quarter)
    turned = p["second"][:, :, ::-1, ::-1].swapaxes(0, 1)
    of_first = unpooled(nn.conv(of_second, turned, padding=1), first, half)
    return {
        "first": of_weights(images, of_first),
        "first_bias": of_first.sum(axis=(0, 2, 3)),
        "second": of_weights(half, of_second),
        "second_bias": of_second.sum(axis=(0, 2, 3)),
        "outer": flat.T @ outer,
        "outer_bias": outer.sum(axis=0),
    }


def unpooled(gradient, x, pooled):
    """The gradient goes to the largest of each window, where that is more than 0."""
    largest = (x == pooled.repeat(2, axis=2).repeat(2, axis=3)) & (x > 0)
    return np.where(largest, gradient.repeat(2, axis=2).repeat(2, axis=3), np.float32(0))


def of_weights(x, gradient):
    """What a convolution of x gives its 3 by 3 weights, of the gradient of its result."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("ncyxij,noyx->ocij", windows, gradient, optimize=True)


class Network(NamedTuple):
    forward: Callable[..., Any]
    gradients: Callable[..., Any]
    parameters: Callable[[np.random.Generator], Parameters]


NETWORKS = {
    "perceptron": Network(perceptron, perceptron_gradients, perceptron_parameters),
    "convolutional": Network(convolutional, convolutional_gradients, convolutional_parameters),
}


def trained(network: Network, images: np.ndarray, labels: np.ndarray, epochs: int) -> Parameters:
    """Stochastic gradient descent with momentum, one compiled call for each batch."""

    @tinyfuse.jit
    def step(p, velocity, images, labels, rate):
        gradients = network.gradients(p, images, labels)
        velocity = {name: 0.9 * velocity[name] + gradients[name] for name in p}
        return {name: p[name] - rate * velocity[name] for name in p}, velocity

    random = np.random.default_rng(0)
    p = network.parameters(random)
    velocity = {name: np.zeros_like(value) for name, value in p.items()}
    for epoch in range(epochs):
        rate = 0.05 * (1 - epoch / epochs)
        for batch in random.permutation(len(images))[: len(images) // BATCH * BATCH].reshape(
            -1, BATCH
        ):
            p, velocity = step(p, velocity, images[batch], labels[batch], rate)
    return p


# --- the digits, and the report -------------------------------------------------------------------


class Digits(NamedTuple):
    """images: float32[n, 1, 8, 8], from 0 to 1. labels: int64[n]."""

    images: np.ndarray
    labels: np.ndarray


def digits() -> tuple[Digits, Digits]:
    """Those to learn from, and those that are held out."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    images = (found.images[order, None] / 16).astype(np.float32)
    every = Digits(images, found.target[order].astype(np.int64))
    return (
        Digits(*[array[HELD_OUT:] for array in every]),
        Digits(*[array[:HELD_OUT] for array in every]),
    )


def accuracy(forward: Callable[..., Any], p: Parameters, held_out: Digits) -> float:
    return float((forward(p, held_out.images).argmax(axis=1) == held_out.labels).mean())


def report(name: str, seen: Digits, held_out: Digits, epochs: int, seconds: float) -> str:
    network = NETWORKS[name]
    p = trained(network, seen.images, seen.labels, epochs)
    compiled = tinyfuse.jit(network.forward)
    one = held_out.images[:1]
    times = medians(
        {"numpy": lambda: network.forward(p, one), "compiled": lambda: compiled(p, one)}, seconds
    )
    program = compiled.lower(p, one)
    return (
        f"{name:14s} {accuracy(compiled, p, held_out):6.1%} of {len(held_out.labels)} digits right"
        f" ({accuracy(network.forward, p, held_out):.1%} in numpy);"
        f" one digit: numpy {duration(times['numpy'])}, compiled {duration(times['compiled'])},"
        f" {len(program.kernels)} kernels for {len(program.unfused().kernels)},"
        f" {program.scratch_bytes} bytes of scratch memory"
    )


def main(names: Sequence[str] = (), epochs: int = 30, seconds: float = 1.0) -> int:
    seen, held_out = digits()
    for name in names or NETWORKS:
        print(report(name, seen, held_out, epochs, seconds))
    return 0


if __name__ == "__main__":
    run_without_openblas_settings()
    sys.exit(main(sys.argv[1:]))
