"""Elementary functions of complex numbers, by real functions of their parts.

Each part is within a few units in the last place of the exact value, but where a part of a product
nearly vanishes; README.md states the bounds. Signs, zeros, infinities and NaN are C99's (annex G).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tinyfuse.graph.complex_arithmetic import divide
from tinyfuse.graph.ir import Literal
from tinyfuse.graph.parts import Complex, Real, choose, fma, select

INF, NAN = math.inf, math.nan


def exp(z: Complex) -> Complex:
    """e^re (cos im, sin im); the exponential in two factors where it overflows by itself."""
    most = 88.0 if z.re.dtype == np.float32 else 709.0
    beyond = z.re > most
    size = select(beyond, z.re - most, z.re).apply("exp")
    more = select(beyond, math.exp(most), z.re.like(1))
    level = z.im.is_(0)
    turns = z.im.apply("isfinite")
    re = size * z.im.apply("cos") * more
    im = size * z.im.apply("sin") * more
    vanishes, explodes = z.re.is_(-INF) & ~turns, z.re.is_(INF) & ~turns
    re = select(vanishes, 0, select(explodes, INF, select(level, size * more, re)))
    none = z.im.like(0).apply("copysign", z.im)
    return Complex(re, select(vanishes, none, select(level, z.im, im)))


def log(z: Complex) -> Complex:
    return Complex(_log_of_size(z), z.im.apply("arctan2", z.re))


def _log_of_size(z: Complex) -> Real:
    """log |z|: near the unit circle by log1p of |z|^2 - 1, which is computed in twice the
    precision."""
    a, b = abs(z.re), abs(z.im)
    large, small = a.apply("maximum", b), a.apply("minimum", b)
    huge = large > float(np.finfo(z.re.dtype).max) / 4
    scale = select(huge, 0.25, large.like(1))
    size = (a * scale).apply("hypot", b * scale)
    plain = size.apply("log") + select(huge, math.log(4), large.like(0))
    square, other = large * large, small * small
    rest = fma(large, large, -square) + fma(small, small, -other)
    first, lost = _exact_sum(square, square.like(-1))
    total, more = _exact_sum(first, other)
    near = (total + (more + (lost + rest))).apply("log1p") * 0.5
    return select((size > 0.7) & (size < 1.4), near, plain)


def _exact_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """A rounded sum, and what rounding has lost (Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _scaled_log(factor: float) -> Callable[[Complex], Complex]:
    def rule(z: Complex) -> Complex:
        value = log(z)
        return Complex(value.re * factor, value.im * factor)

    return rule


def log1p(z: Complex) -> Complex:
    """As numpy: log|z + 1| and its angle; near 0 by log1p of |z + 1|^2 - 1."""
    above = z.re + 1
    near = (fma(z.re, z.re + 2, z.im * z.im)).apply("log1p") * 0.5
    small = (abs(z.re) < 0.5) & (abs(z.im) < 0.5)
    size = select(small, near, _log_of_size(Complex(above, z.im)))
    return Complex(size, z.im.apply("arctan2", above))


def exp2(z: Complex) -> Complex:
    return exp(Complex(z.re * math.log(2), z.im * math.log(2)))


def expm1(z: Complex) -> Complex:
    half = (z.im * 0.5).apply("sin")
    re = z.re.apply("expm1") * z.im.apply("cos") - half * half * 2
    return Complex(re, z.re.apply("exp") * z.im.apply("sin"))


def sqrt(z: Complex) -> Complex:
    """By the root of (|re| + |z|) / 2, of operands scaled by a power of 4 where squares leave the
    range (Kahan, "Branch cuts for complex elementary functions", 1987)."""
    info = np.finfo(z.re.dtype)
    a, b = abs(z.re), abs(z.im)
    large = a.apply("maximum", b)
    huge, tiny = large > float(info.max) / 4, large < float(info.tiny) * 4.0**12
    scale = select(huge, 1 / 16, select(tiny, 4.0**24, large.like(1)))
    back = select(huge, 4, select(tiny, 2.0**-24, large.like(1)))
    a, b = a * scale, b * scale
    root = ((a + a.apply("hypot", b)) * 0.5).apply("sqrt")
    other = select(large.is_(0), 0, b / (root * 2)) * back
    root = root * back
    infinite = z.im.apply("isinf")
    right = z.re >= 0
    re = select(infinite, INF, select(right, root, other))
    im = select(infinite, INF, select(right, other, root))
    nowhere = z.re.apply("isnan") & ~infinite
    return Complex(select(nowhere, NAN, re), select(nowhere, NAN, im).apply("copysign", z.im))


# -- circular and hyperbolic functions


def _times_i(z: Complex) -> Complex:
    return Complex(-z.im, z.re)


def _over_i(z: Complex) -> Complex:
    return Complex(z.im, -z.re)


def sinh(z: Complex) -> Complex:
    return Complex(_product(z.re, "sinh", z.im, "cos"), _product(z.re, "cosh", z.im, "sin"))


def cosh(z: Complex) -> Complex:
    return Complex(_product(z.re, "cosh", z.im, "cos"), _product(z.re, "sinh", z.im, "sin"))


def _product(x: Real, of_x: str, y: Real, of_y: str) -> Real:
    """f(x) g(y) for a hyperbolic f and a circular g, 0 where either is; in two factors where f
    alone overflows."""
    most = 88.0 if x.dtype == np.float32 else 709.0
    beyond = abs(x) > most
    moved = select(beyond, x - x.like(most).apply("copysign", x), x)
    far = moved.apply("absolute").apply("exp") * 0.5 * y.apply(of_y) * math.exp(most)
    if of_x == "sinh":
        far = select(x < 0, -far, far)
    value = select(beyond, far, select(beyond, 0, x).apply(of_x) * y.apply(of_y))
    if of_y == "sin":
        value = select(y.is_(0), y if of_x == "cosh" else y * x.like(1).apply("copysign", x), value)
    if of_x == "sinh":
        value = select(x.is_(0), x * _cosine_sign(y, of_y), value)
    return value


def _cosine_sign(y: Real, of_y: str) -> Real:
    """1 with the sign of cos y or sin y, and 1 where that is no number."""
    value = y.apply(of_y)
    return select(value < 0, -1, y.like(1))


def tanh(z: Complex) -> Complex:
    """Kahan's, as above."""
    x, y = z.re, z.im
    limit = 11.0 if x.dtype == np.float32 else 22.0
    far = abs(x) > limit
    near = select(far, 1, x)
    tangent, s = y.apply("tan"), near.apply("sinh")
    beta = tangent * tangent + 1
    below = beta * s * s + 1
    re = beta * (s * s + 1).apply("sqrt") * s / below
    im = tangent / below
    decay = (abs(x) * -2).apply("exp") * 4 * y.apply("sin") * y.apply("cos")
    turns = y.apply("isfinite")
    decay = select(turns, decay, select(x.apply("isinf"), 0, y))
    one = x.like(1).apply("copysign", x)
    re = select(far, one, re)
    im = select(far, decay, im)
    level = y.is_(0)
    re = select(level, x.apply("tanh"), select(x.is_(0) & turns, x, re))
    re = select(~turns & ~x.apply("isinf"), select(x.is_(0), x, NAN), re)
    im = select(~turns & ~x.apply("isinf"), NAN, im)
    return Complex(re, select(level, y, im))


def _turned(function: Callable[[Complex], Complex]) -> Callable[[Complex], Complex]:
    """The circular function f(z) = h(iz) / i for a hyperbolic h."""
    return lambda z: _over_i(function(_times_i(z)))


def cos(z: Complex) -> Complex:
    return cosh(_times_i(z))


# -- powers


def power(a: Complex, b: Complex) -> Complex:
    """By multiplications where the exponent is known to be a small whole number, as numpy's; else
    e^(b log a)."""
    times = _known_whole(b)
    if times is not None:
        return _multiplied(a, times)
    exponent = _plain_product(b, log(a))
    value = exp(exponent)
    none = a.re.is_(0) & a.im.is_(0)
    one, zero = Complex(a.re.like(1), a.re.like(0)), Complex(a.re.like(0), a.re.like(0))
    nowhere = Complex(a.re.like(NAN), a.re.like(NAN))
    rises = (b.re > 0) & b.im.is_(0)
    value = choose(none, choose(rises, zero, nowhere), value)
    return choose(b.re.is_(0) & b.im.is_(0), one, value)


def _known_whole(b: Complex) -> int | None:
    if not (isinstance(b.re.atom, Literal) and isinstance(b.im.atom, Literal)):
        return None
    re, im = float(b.re.atom.value), float(b.im.atom.value)
    return int(re) if im == 0 and re.is_integer() and abs(re) < 100 else None


def _multiplied(z: Complex, times: int) -> Complex:
    """numpy's `npy_cpow` for whole exponents."""
    if times == 0:
        return Complex(z.re.like(1), z.re.like(0))
    if times in (1, 2, 3):
        return _small_power(z, times)
    bit, left, result = 1, abs(times), Complex(z.re.like(1), z.re.like(0))
    while True:
        if left & bit:
            result = _plain_product(result, z)
        bit <<= 1
        if left < bit:
            break
        z = _plain_product(z, z)
    return result if times > 0 else divide(Complex(z.re.like(1), z.re.like(0)), result)


def _small_power(z: Complex, times: int) -> Complex:
    if times == 1:
        return z
    squared = _plain_product(z, z)
    return squared if times == 2 else _plain_product(z, squared)


def _plain_product(a: Complex, b: Complex) -> Complex:
    """Each product and sum rounded, as numpy's library of functions of one number multiplies."""
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


FUNCTIONS: dict[str, Callable[..., Complex]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": _scaled_log(1 / math.log(2)),
    "log10": _scaled_log(1 / math.log(10)),
    "log1p": log1p,
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": _turned(sinh),
    "cos": cos,
    "tan": _turned(tanh),
    "power": power,
}
