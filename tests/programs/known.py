"""Programs after well-known methods, as people write them, from seven fields.

Each is a function of arrays, listed with a maker of its arguments from a generator and a scale, and
with how many kernels it is compiled to for the machine `REFERENCE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Generator = np.random.Generator


class Known(NamedTuple):
    function: Callable[..., Any]
    arguments: Callable[[Generator], tuple[Any, ...]]
    kernels: int


KNOWN: dict[str, Known] = {}


def known(kernels: int, arguments: Callable[[Generator], tuple[Any, ...]]) -> Any:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        KNOWN[function.__name__] = Known(function, arguments, kernels)
        return function

    return register


def _matrix(rows: int, columns: int) -> Callable[[Generator], tuple[Any, ...]]:
    return lambda random: (random.standard_normal((rows, columns)),)


def _positive(count: int) -> Callable[[Generator], tuple[Any, ...]]:
    return lambda random: (np.exp(random.standard_normal(count) * 0.1).cumprod() * 100,)


# -- finance


def _options(random: Generator) -> tuple[Any, ...]:
    spot, strike = random.uniform(50, 150, (2, 300))
    return spot, strike, random.uniform(0.1, 3, 300), random.uniform(0.1, 0.6, 300)


@known(1, _options)
def black_scholes(spot, strike, years, volatility):
    """F. Black and M. Scholes, with the logistic approximation of the normal distribution."""
    spread = volatility * np.sqrt(years)
    upper = (np.log(spot / strike) + (0.02 + volatility**2 / 2) * years) / spread
    lower = upper - spread

    def below(x):
        return 1 / (1 + np.exp(-1.5976 * x - 0.07056 * x**3))

    discounted = strike * np.exp(-0.02 * years)
    call = spot * below(upper) - discounted * below(lower)
    return call, call - spot + discounted


@known(1, lambda random: (random.standard_normal((40, 60)) * 0.01, np.full(40, 100.0)))
def price_paths(shocks, start):
    """Geometric Brownian motion, one path in each row."""
    return start[:, None] * np.exp(np.cumsum(shocks - 0.00005, axis=1))


@known(1, _positive(250))
def drawdown(prices):
    """The deepest fall from a peak, and where it ends."""
    fall = prices / np.maximum.accumulate(prices) - 1
    return fall.min(), fall.argmin()


@known(1, lambda random: (random.standard_normal((250, 8)) * 0.01,))
def sharpe_ratio(returns):
    excess = returns - 0.0001
    return excess.mean(axis=0) / excess.std(axis=0, ddof=1) * np.sqrt(252)


@known(1, lambda random: (random.uniform(0, 10, (30, 12)), random.uniform(0.01, 0.1, 30)))
def bond_duration(flows, rate):
    """Present values, and Macaulay's duration."""
    years = np.arange(1, flows.shape[1] + 1)
    present = flows / (1 + rate[:, None]) ** years
    value = present.sum(axis=1)
    return value, (present * years).sum(axis=1) / value


# -- physics


def _bodies(random: Generator) -> tuple[Any, ...]:
    return random.standard_normal((20, 3)), random.uniform(1, 2, 20)


@known(1, _bodies)
def gravity(places, masses):
    """Accelerations, softened."""
    apart = places[None, :, :] - places[:, None, :]
    distance = np.sqrt((apart**2).sum(axis=-1) + 0.01)
    return (masses[None, :, None] * apart / distance[:, :, None] ** 3).sum(axis=1)


@known(1, lambda random: (random.standard_normal((30, 40)), random.standard_normal((30, 40))))
def wave_step(now, before):
    """One explicit step of the wave equation with fixed edges."""
    after = now.copy()
    around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4 * now[1:-1, 1:-1]
    after[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * around
    return after


@known(1, lambda random: (random.integers(0, 2, (24, 24)) * 2.0 - 1,))
def ising_energy(spins):
    """Of a torus."""
    return -(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))).sum(), spins.mean()


@known(1, lambda random: (random.uniform(0.9, 2, (12, 12)),))
def lennard_jones(distances):
    inverse = (1 / distances) ** 6
    return np.triu(4 * (inverse**2 - inverse), 1).sum()


# -- images


def _image(random: Generator) -> tuple[Any, ...]:
    return (random.integers(0, 256, (32, 48)).astype(np.uint8),)


@known(1, _image)
def gaussian_blur(image):
    weights = np.array([1, 4, 6, 4, 1]) / 16
    padded = np.pad(image.astype(float), 2, mode="edge")
    rows = sum(weights[k] * padded[k : k + image.shape[0]] for k in range(5))
    return sum(weights[k] * rows[:, k : k + image.shape[1]] for k in range(5))


@known(3, _image)
def equalized(image):
    """Histogram equalization."""
    counts = np.bincount(image.ravel(), minlength=256)
    levels = np.cumsum(counts)
    scaled = (levels - levels[0]) / np.maximum(levels[-1] - levels[0], 1) * 255
    return np.round(scaled).astype(np.uint8)[image]


@known(3, _image)
def otsu_threshold(image):
    """N. Otsu's threshold between two classes of brightness."""
    counts = np.bincount(image.ravel(), minlength=256) / image.size
    values = np.arange(256)
    weight, mean = np.cumsum(counts), np.cumsum(counts * values)
    between = (mean[-1] * weight - mean) ** 2 / np.maximum(weight * (1 - weight), 1e-12)
    return between[:-1].argmax()


@known(1, _image)
def eroded(image):
    return sliding_window_view(np.pad(image, 1, mode="edge"), (3, 3)).min(axis=(2, 3))


@known(1, lambda random: (random.uniform(0, 1, (20, 30, 3)),))
def luminance(picture):
    linear = np.where(picture <= 0.04045, picture / 12.92, ((picture + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


# -- signals


def _signal(random: Generator) -> tuple[Any, ...]:
    return (random.standard_normal(200),)


@known(1, _signal)
def low_pass(x):
    """A windowed sinc of 21 taps."""
    taps = np.sinc(0.2 * np.arange(-10, 11)) * np.hamming(21)
    return np.convolve(x, taps / taps.sum(), mode="valid")


@known(1, _signal)
def autocorrelation(x):
    centred = x - x.mean()
    lags = np.stack([(centred[: x.size - k] * centred[k:]).sum() for k in range(8)])
    return lags / (centred * centred).sum()


@known(1, _signal)
def median_filter(x):
    return np.median(sliding_window_view(np.pad(x, 2, mode="edge"), 5), axis=-1)


@known(2, _signal)
def power_spectrum(x):
    """By the definition of the discrete Fourier transform."""
    count = x.size
    angles = 2 * np.pi * (np.outer(np.arange(count // 2), np.arange(count)) % count) / count
    windowed = x * np.hanning(count)
    return (np.cos(angles) @ windowed) ** 2 + (np.sin(angles) @ windowed) ** 2


@known(1, lambda random: (np.angle(np.exp(1j * random.uniform(0, 2, 150).cumsum())),))
def frequencies(phases):
    return np.diff(np.unwrap(phases)) / (2 * np.pi)


# -- statistics


def _observed(random: Generator) -> tuple[Any, ...]:
    x = random.standard_normal((60, 4))
    return x, x @ np.array([1.0, -2, 0.5, 3]) + 0.1 * random.standard_normal(60)


@known(7, _observed)
def regression(x, y):
    """Least squares by the normal equations, and the coefficient of determination."""
    weights = np.linalg.solve(x.T @ x, x.T @ y)
    rest = y - x @ weights
    return weights, 1 - (rest**2).sum() / ((y - y.mean()) ** 2).sum()


@known(1, lambda random: (random.standard_normal(80), np.linspace(-3, 3, 50)))
def kernel_density(samples, places):
    distance = (places[:, None] - samples[None, :]) / 0.4
    return np.exp(-(distance**2) / 2).sum(axis=1) / (samples.size * 0.4 * np.sqrt(2 * np.pi))


@known(5, lambda random: (random.permutation(70) * 1.0, random.permutation(70) * 1.0))
def rank_correlation(x, y):
    """Spearman's, without ties."""
    a, b = np.argsort(np.argsort(x)), np.argsort(np.argsort(y))
    return 1 - 6 * ((a - b) ** 2).sum() / (x.size * (x.size**2 - 1))


@known(3, lambda random: (random.standard_normal(40), random.integers(0, 40, (50, 40))))
def bootstrap(x, picks):
    """The deviation of the mean, and an interval of 90 %."""
    means = x[picks].mean(axis=1)
    return means.std(ddof=1), np.quantile(means, [0.05, 0.95])


# -- learning


def _labelled(random: Generator) -> tuple[Any, ...]:
    x = random.standard_normal((50, 6))
    return x, (x[:, 0] > 0).astype(float), random.standard_normal(6)


@known(1, _labelled)
def logistic_gradient(x, y, weights):
    chance = 1 / (1 + np.exp(-(x @ weights)))
    return x.T @ (chance - y) / y.size


@known(1, lambda random: (*_matrix(30, 5)(random), *_matrix(40, 5)(random)))
def nearest_neighbour(x, y):
    distance = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
    return distance.argmin(axis=1), distance.min(axis=1)


@known(1, _matrix(30, 10))
def cross_entropy(logits):
    """Against the class of each row's number, modulo the classes."""
    labels = np.arange(logits.shape[0]) % logits.shape[1]
    top = logits.max(axis=1, keepdims=True)
    normal = np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0]
    return (normal - logits[np.arange(labels.size), labels]).mean()


@known(1, lambda random: tuple(random.standard_normal((4, 500)) ** 2))
def adam_step(weights, gradient, mean, square):
    """D. P. Kingma and J. Ba, at step 10."""
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    step = 0.01 * (mean / (1 - 0.9**10)) / (np.sqrt(square / (1 - 0.999**10)) + 1e-8)
    return weights - step, mean, square


# -- the earth


def _towns(random: Generator) -> tuple[Any, ...]:
    return random.uniform(-80, 80, 25), random.uniform(-180, 180, 25)


@known(1, _towns)
def great_circles(latitude, longitude):
    """Haversine distances between all towns, in kilometres."""
    phi, theta = np.radians(latitude), np.radians(longitude)
    across = np.sin((phi[:, None] - phi) / 2) ** 2
    along = np.cos(phi[:, None]) * np.cos(phi) * np.sin((theta[:, None] - theta) / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(np.minimum(across + along, 1)))


@known(1, lambda random: (random.uniform(0, 500, (30, 40)),))
def hillshade(heights):
    rise, run = np.gradient(heights, 30.0)
    slope, aspect = np.arctan(np.hypot(rise, run)), np.arctan2(-run, rise)
    light = np.cos(np.radians(45)) * np.cos(slope)
    light = light + np.sin(np.radians(45)) * np.sin(slope) * np.cos(np.radians(315) - aspect)
    return np.clip(255 * light, 0, 255).astype(np.uint8)


@known(
    1,
    lambda random: (
        random.uniform(-1, 1, (60, 2)),
        np.array([[0, 0.9], [-0.8, -0.6], [0.8, -0.5]]),
    ),
)
def inside_polygon(points, corners):
    """By the crossings of a ray."""
    x, y = points[:, :1], points[:, 1:]
    begin, end = corners, np.roll(corners, -1, axis=0)
    crosses = (begin[:, 1] > y) != (end[:, 1] > y)
    level = np.where(end[:, 1] == begin[:, 1], 1, end[:, 1] - begin[:, 1])
    at = (end[:, 0] - begin[:, 0]) * (y - begin[:, 1]) / level + begin[:, 0]
    return (crosses & (x < at)).sum(axis=1) % 2 == 1


@known(1, _towns)
def web_mercator(latitude, longitude):
    x = 6378137 * np.radians(longitude)
    return x, 6378137 * np.log(np.tan(np.pi / 4 + np.radians(latitude) / 2))
