"""Scalar operations on complex numbers, by real operations on their parts.

`+ - * /`, comparisons and squares have numpy's bits: numpy's products are of arrays, which it
computes with fused multiply-add where the processor has it. Functions follow C99's for infinities,
NaN and signed zeros, as numpy's do.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.graph.parts import Complex, Real, choose, fma, select

Value = Complex | Real


def by_parts(op: str) -> Callable[..., Complex]:
    def rule(a: Complex, *others: Complex) -> Complex:
        re = a.re.apply(op, *[other.re for other in others])
        return Complex(re, a.im.apply(op, *[other.im for other in others]))

    return rule


def absolute(z: Complex) -> Real:
    return z.re.apply("hypot", z.im)


def conjugate(z: Complex) -> Complex:
    return Complex(z.re, -z.im)


def multiply(a: Complex, b: Complex) -> Complex:
    """numpy's `simd_cmul`."""
    return Complex(fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re))


def square(z: Complex) -> Complex:
    return multiply(z, z)


def divide(a: Complex, b: Complex) -> Complex:
    """By Smith's method (Algorithm 116, CACM 1962), as numpy writes it."""
    wide = abs(b.re) >= abs(b.im)
    large, small = select(wide, b.re, b.im), select(wide, b.im, b.re)
    ratio = small / large
    none = wide & large.is_(0)
    scale = select(none, float("inf"), large.like(1) / (large + small * ratio))
    re = select(wide, a.re, a.im) + select(wide, a.im, a.re) * ratio
    scaled_re, scaled_im = a.re * ratio, a.im * ratio
    im = select(wide, a.im, scaled_im) - select(wide, scaled_re, a.re)
    return Complex(select(none, a.re, re) * scale, select(none, a.im, im) * scale)


def reciprocal(z: Complex) -> Complex:
    wide = abs(z.im) <= abs(z.re)
    large, small = select(wide, z.re, z.im), select(wide, z.im, z.re)
    ratio = small / large
    size = large + small * ratio
    return Complex(select(wide, 1, ratio) / size, -select(wide, ratio, 1) / size)


# -- comparisons: numpy orders by the real part, then by the imaginary one


def truth(z: Complex) -> Real:
    return z.re.apply("not_equal", 0) | z.im.apply("not_equal", 0)


def is_nan(z: Complex) -> Real:
    return z.re.apply("isnan") | z.im.apply("isnan")


def comparison(of_real: str, of_imaginary: str) -> Callable[[Complex, Complex], Real]:
    def rule(a: Complex, b: Complex) -> Real:
        clear = a.re.apply(of_real, b.re) & ~(a.im.apply("isnan") | b.im.apply("isnan"))
        return clear | (a.re.is_(b.re) & a.im.apply(of_imaginary, b.im))

    return rule


def extreme(order: Callable[[Complex, Complex], Real], skips: bool) -> Callable[..., Complex]:
    """skips: whether a NaN gives way to a number."""

    def rule(a: Complex, b: Complex) -> Complex:
        return choose(order(a, b) | is_nan(b if skips else a), a, b)

    return rule


at_least = comparison("greater", "greater_equal")
at_most = comparison("less", "less_equal")


def logical(op: str) -> Callable[..., Real]:
    def rule(a: Complex, *others: Complex) -> Real:
        return truth(a).apply(op, *[truth(other) for other in others])

    return rule


def either(op: str, joined: str = "logical_or") -> Callable[[Complex], Real]:
    def rule(z: Complex) -> Real:
        return z.re.apply(op).apply(joined, z.im.apply(op))

    return rule


def equal(a: Complex, b: Complex) -> Real:
    return a.re.is_(b.re) & a.im.is_(b.im)


def sign(z: Complex) -> Complex:
    """z / |z|; of infinite z with a finite part the sign of the infinite one."""
    size = absolute(z)
    scale = select(size.is_(0), 1, size)
    infinite = size.apply("isinf")
    both = z.re.apply("isinf") & z.im.apply("isinf")

    def part(x: Real) -> Real:
        limit = select(x.apply("isinf"), x.like(1).apply("copysign", x), 0)
        nowhere = size.apply("isnan") | both
        return select(nowhere, float("nan"), select(infinite, limit, x / scale))

    return Complex(part(z.re), part(z.im))
