"""Random numbers from explicit keys, with JAX's names: the same bits on every machine.

::

    key = tinyfuse.random.key(7)

    @tinyfuse.jit
    def noisy(x, key):
        first, second = tinyfuse.random.split(key)
        return x + tinyfuse.random.normal(first, x.shape) * tinyfuse.random.uniform(second)

A key is an array uint32[2]. The numbers are a function of it and of their position alone, so that
they are computed wherever they are used, by any number of threads; one key gives the same numbers
each time, and `split` and `fold_in` give keys for others. Outside of a traced function each call
is a compiled program of its own, with the same bits.

Source: J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), Threefry-2x32 of 20
rounds. `split`, `fold_in`, `bits`, `uniform` and `randint` make of it what JAX makes. No other
numbers are JAX's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.control_flow import while_loop
from tinyfuse.graph.special_functions import special_function
from tinyfuse.keys import PRNGKey, bits, drawn, fold_in, key, shape_of, split
from tinyfuse.quantiles import normal_quantile
from tinyfuse.trace.operations import elementwise, is_traced
from tinyfuse.trace.stand_ins import NUMPY

__all__ = [
    "PRNGKey",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "weibull_min",
]


@drawn
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = int) -> Any:
    """Integers from minval on and below maxval, which are scalars or broadcast to the shape."""
    to = np.dtype(dtype)
    if to.kind not in "iu":
        raise errors.ArgumentTypeError(f"dtype of randint has to be of integers, not {to}")
    word = np.dtype(f"u{to.itemsize}")
    low, high = [NUMPY.asarray(each).astype(to) for each in (minval, maxval)]
    keys = split(key)
    first, second = [bits(keys[at], shape, word) for at in range(2)]
    span = NUMPY.where(high > low, (high - low).astype(word), word.type(1))
    half = word.type(2 ** (4 * to.itemsize)) % span
    offset = (first % span) * (half * half % span) + second % span
    return low + (offset % span).astype(to)


# -- floats


def _float_type(dtype: Any) -> np.dtype:
    to = np.dtype(dtype)
    if to not in (np.float32, np.float64):
        raise errors.ArgumentTypeError(f"dtype has to be float32 or float64, not {to}")
    return to


def _fraction(key: Any, shape: Any, dtype: Any) -> Any:
    """In [0, 1), all multiples of the smallest step from 1 upwards."""
    to = _float_type(dtype)
    digits, width = np.finfo(to).nmant, 8 * to.itemsize
    word = np.dtype(f"u{to.itemsize}")
    words = bits(key, shape_of(shape), word) >> word.type(width - digits)
    signed = words.astype(f"i{to.itemsize}")  # of these, processors convert vectors
    return signed.astype(to) * to.type(2.0**-digits)


def _positive(key: Any, shape: Any, dtype: Any) -> Any:
    """In (0, 1), in the middle between two fractions."""
    return _fraction(key, shape, dtype) + np.finfo(np.dtype(dtype)).eps.astype(dtype) / 2


@drawn
def uniform(
    key: Any, shape: Any = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """In [minval, maxval)."""
    to = _float_type(dtype)
    low, high = [NUMPY.asarray(each).astype(to) for each in (minval, maxval)]
    return np.maximum(low, _fraction(key, shape, to) * (high - low) + low)


@drawn
def normal(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Of mean 0 and deviation 1: the quantile of a fraction."""
    to = _float_type(dtype)
    return normal_quantile(_positive(key, shape, to) - to.type(0.5))


@drawn
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = float
) -> Any:
    """Of mean 0 and deviation 1, given that they are within bounds."""
    to = _float_type(dtype)
    low, high = [NUMPY.asarray(each).astype(to) for each in (lower, upper)]
    shape = _asked_shape(shape, low.shape, high.shape)
    first, last = _normal_mass(low), _normal_mass(high)
    middle = first + _positive(key, shape, to) * (last - first)
    return np.clip(normal_quantile(middle), low, high)


def _normal_mass(x: Any) -> Any:
    """How much of a normal distribution is below, less a half."""
    scaled = x * x.dtype.type(math.sqrt(0.5))
    erf = elementwise("erf", scaled) if is_traced(scaled) else special_function("erf", scaled)
    return x.dtype.type(0.5) * erf


@drawn
def exponential(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Of rate 1."""
    return -np.log1p(-_fraction(key, shape, dtype))


@drawn
def gumbel(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    return -np.log(-np.log(_positive(key, shape, dtype)))


@drawn
def logistic(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    fraction = _positive(key, shape, dtype)
    return np.log(fraction / (1 - fraction))


@drawn
def laplace(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    centred = _positive(key, shape, dtype) * 2 - 1
    return np.sign(centred) * -np.log1p(-np.abs(centred))


@drawn
def cauchy(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    to = _float_type(dtype)
    return np.tan((_positive(key, shape, to) - to.type(0.5)) * to.type(np.pi))


@drawn
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = float) -> Any:
    scale = NUMPY.asarray(scale).astype(_float_type(dtype))
    return np.sqrt(2 * exponential(key, _asked_shape(shape, scale.shape), dtype)) * scale


@drawn
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = float
) -> Any:
    to = _float_type(dtype)
    scale, power = [NUMPY.asarray(each).astype(to) for each in (scale, concentration)]
    return np.power(exponential(key, shape, to), 1 / power) * scale


@drawn
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = float) -> Any:
    power = NUMPY.asarray(b).astype(_float_type(dtype))
    return np.exp(exponential(key, _asked_shape(shape, power.shape), dtype) / power)


@drawn
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = float) -> Any:
    sigma = NUMPY.asarray(sigma).astype(_float_type(dtype))
    return np.exp(normal(key, _asked_shape(shape, sigma.shape), dtype) * sigma)


@drawn
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = float
) -> Any:
    to = _float_type(dtype)
    low, top, high = [NUMPY.asarray(each).astype(to) for each in (left, mode, right)]
    shape = _asked_shape(shape, low.shape, top.shape, high.shape)
    fraction = _fraction(key, shape, to)
    before = low + np.sqrt(fraction * (high - low) * (top - low))
    behind = high - np.sqrt((1 - fraction) * (high - low) * (high - top))
    return np.where(fraction < (top - low) / (high - low), before, behind)


def _asked_shape(shape: Any, *own: tuple[int, ...]) -> tuple[int, ...]:
    """Where none is asked for that of parameters, which broadcast."""
    return np.broadcast_shapes(*own) if shape is None else shape_of(shape)


# -- of some of their own parameters


@drawn
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Of scale 1. a: positive, of a shape that broadcasts.

    Source: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables (2000).
    """
    to = _float_type(dtype)
    a = NUMPY.asarray(a).astype(to)
    shape = _asked_shape(shape, a.shape)
    a = np.broadcast_to(a, shape)
    boosted, accepted = split(key)
    d = np.where(a < 1, a + 1, a) - to.type(1 / 3)
    c = 1 / np.sqrt(9 * d)

    def draw(carried: Any) -> Any:
        turn, done, found = carried
        keys = split(fold_in(accepted, turn))
        x = normal(keys[0], shape, to)
        v = (1 + c * x) ** 3
        limit = x * x / 2 + d - d * v + d * np.log(np.where(v > 0, v, 1))
        fits = (v > 0) & (np.log(_positive(keys[1], shape, to)) < limit)
        return turn + 1, done | fits, np.where(fits & ~done, d * v, found)

    begin = NUMPY.zeros((), np.int64), ~(a > 0), np.full_like(a, np.nan)
    found = while_loop(lambda carried: ~np.all(carried[1]), draw, begin)[2]
    return np.where(a < 1, found * np.power(_positive(boosted, shape, to), 1 / a), found)


@drawn
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = float) -> Any:
    to = _float_type(dtype)
    a, b = [NUMPY.asarray(each).astype(to) for each in (a, b)]
    shape = _asked_shape(shape, a.shape, b.shape)
    keys = split(key)
    first, second = gamma(keys[0], a, shape, to), gamma(keys[1], b, shape, to)
    return first / (first + second)


@drawn
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = float) -> Any:
    """alpha: (..., n). shape: that of the results, without their last axis."""
    alpha = NUMPY.asarray(alpha).astype(_float_type(dtype))
    batch = alpha.shape[:-1] if shape is None else shape_of(shape)
    drawn = gamma(key, alpha, (*batch, alpha.shape[-1]), dtype)
    return drawn / drawn.sum(axis=-1, keepdims=True)


@drawn
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Any:
    return 2 * gamma(key, NUMPY.asarray(df).astype(_float_type(dtype)) / 2, shape, dtype)


@drawn
def t(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Student's distribution."""
    degrees = NUMPY.asarray(df).astype(_float_type(dtype))
    shape = _asked_shape(shape, degrees.shape)
    keys = split(key)
    spread = gamma(keys[0], degrees / 2, shape, dtype)
    return normal(keys[1], shape, dtype) * np.sqrt(degrees / 2 / spread)


@drawn
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = float
) -> Any:
    """mean: (..., n). cov: (..., n, n), positive definite. shape: without the last axis."""
    to = _float_type(dtype)
    mean, cov = [NUMPY.asarray(each).astype(to) for each in (mean, cov)]
    batch = _asked_shape(shape, mean.shape[:-1], cov.shape[:-2])
    drawn = normal(key, (*batch, mean.shape[-1]), to)
    factor = np.linalg.cholesky(cov)
    return mean + np.matmul(factor, drawn[..., None])[..., 0]


# -- choices


@drawn
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability p."""
    chance = NUMPY.asarray(p).astype(float)
    return _fraction(key, _asked_shape(shape, chance.shape), float) < chance


@drawn
def rademacher(key: Any, shape: Any = (), dtype: Any = int) -> Any:
    """-1 or 1."""
    return (2 * bernoulli(key, 0.5, shape_of(shape)).astype(np.int8) - 1).astype(np.dtype(dtype))


@drawn
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = int) -> Any:
    """How many trials of probability p it takes."""
    chance = NUMPY.asarray(p).astype(float)
    steps = exponential(key, _asked_shape(shape, chance.shape)) / -np.log1p(-chance)
    return np.floor(steps).astype(np.dtype(dtype)) + np.dtype(dtype).type(1)


@drawn
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The positions of an axis, or an array along one, in a random order.

    x: an array, or how many positions. independent: whether each row has an order of its own.
    """
    if isinstance(x, int):
        return _order(key, x)
    array = NUMPY.asarray(x)
    if independent:
        return np.take_along_axis(array, np.argsort(bits(key, array.shape, np.uint64), axis), axis)
    return np.take(array, _order(key, array.shape[axis]), axis)


def _order(key: Any, count: int) -> Any:
    """Positions by random 64-bit numbers, of which hardly ever two are equal."""
    return np.argsort(bits(key, (count,), np.uint64), stable=True)


@drawn
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Elements along an axis, or of the first `a` integers. p: their probabilities, (n,)."""
    whole = NUMPY.arange(a) if isinstance(a, int) else NUMPY.asarray(a)
    shape, extent = shape_of(shape), whole.shape[axis]
    count = math.prod(shape)
    if not replace and count > extent:
        raise errors.InvalidArgumentError(
            "Cannot take a larger sample than population when 'replace=False'"
        )
    if p is None:
        places = randint(key, shape, 0, extent) if replace else _order(key, extent)[:count]
    elif replace:
        total = np.cumsum(NUMPY.asarray(p).astype(float))
        places = np.searchsorted(total, total[-1] * (1 - _fraction(key, shape, float)))
    else:
        scores = gumbel(key, (extent,)) + np.log(NUMPY.asarray(p).astype(float))
        places = np.argsort(-scores, stable=True)[:count]
    return np.take(whole, places.reshape(shape), axis)


@drawn
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Positions along an axis, by the logarithms of their weights.

    shape: that of the results, to which the logits without their axis broadcast.
    """
    logits = NUMPY.asarray(logits).astype(float)
    last = np.moveaxis(logits, axis, -1)
    batch = last.shape[:-1] if shape is None else shape_of(shape)
    return np.argmax(gumbel(key, (*batch, last.shape[-1])) + last, axis=-1)
