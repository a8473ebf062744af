"""Complex arrays: numpy's meaning, on parts that are real arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.dtypes import COMPLEX, COMPLEX64, COMPLEX128, part_dtype
from tinyfuse.errors import NonFiniteError
from tinyfuse.testing.compare import difference

RANDOM = np.random.default_rng(7)


def numbers(*shape: int, dtype: np.dtype = COMPLEX128) -> np.ndarray:
    parts = RANDOM.standard_normal((2, *shape)) * 10.0 ** RANDOM.integers(-3, 4, (2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def special(dtype: np.dtype) -> np.ndarray:
    """All pairs of values at which operations go wrong."""
    limits = np.finfo(part_dtype(dtype))
    some = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, limits.max, limits.tiny, -limits.eps]
    made = np.empty(len(some) ** 2, dtype)
    pairs = np.array(list(itertools.product(some, some)), part_dtype(dtype))
    made.real, made.imag = pairs[:, 0], pairs[:, 1]
    return made


def require_same(function: Callable[..., Any], *arguments: Any) -> None:
    """The result of the function, and what it leaves in its arguments, to the bit."""
    plain, given = ([each.copy() for each in arguments] for _ in range(2))
    with np.errstate(all="ignore"):
        expected = function(*plain)
    found = tinyfuse.jit(function)(*given)
    for want, have in zip((expected, *plain), (found, *given), strict=True):
        assert difference(want, have) is None


UNARY = "negative positive conjugate square reciprocal rint isnan isinf isfinite logical_not"
BINARY = (
    "add subtract multiply divide equal not_equal less less_equal greater greater_equal maximum "
    "minimum fmax fmin logical_and logical_or logical_xor"
)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", UNARY.split())
def test_unary_operations_have_numpys_bits(name: str, dtype: np.dtype) -> None:
    ufunc = getattr(np, name)
    for z in (numbers(300, dtype=dtype), special(dtype)):
        require_same(lambda z: ufunc(z), z)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", BINARY.split())
def test_binary_operations_have_numpys_bits(name: str, dtype: np.dtype) -> None:
    ufunc = getattr(np, name)
    require_same(lambda a, b: ufunc(a, b), numbers(300, dtype=dtype), numbers(300, dtype=dtype))
    some = special(dtype)
    require_same(lambda a, b: ufunc(a[:, None], b), some, some)


def test_scalars_are_multiplied_without_fused_operations() -> None:
    a, b = numbers(40), numbers(40)
    require_same(lambda a, b: a[3] * b[5] * (2 - 1j), a, b)
    require_same(lambda a, b: np.multiply(a[3], b[5]), a, b)


def _exact(name: str, z: np.ndarray) -> np.ndarray:
    if name != "log1p":
        exact: np.ndarray = getattr(np, name)(z)
        return exact
    size = np.log1p(z.real * (z.real + 2) + z.imag**2) / 2  # numpy's loses digits near 0
    return size + 1j * np.arctan2(z.imag, z.real + 1)


# Units in the last place of the larger part.
BOUNDS = {
    "exp": 6,
    "exp2": 40,
    "log": 4,
    "log2": 6,
    "log10": 6,
    "sqrt": 4,
    "sin": 8,
    "cos": 8,
    "tan": 12,
    "sinh": 8,
    "cosh": 8,
    "tanh": 12,
    "expm1": 8,
    "log1p": 8,
}


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", BOUNDS)
def test_functions_are_near_numpys_of_wider_numbers(name: str, dtype: np.dtype) -> None:
    random = np.random.default_rng(3)
    z = random.uniform(-8, 8, (2, 4000)) * 10.0 ** random.integers(-4, 1, (2, 4000))
    z = (z[0] + 1j * z[1]).astype(dtype)
    found = tinyfuse.jit(lambda z: getattr(np, name)(z))(z)
    exact = _exact(name, z.astype(np.clongdouble))
    unit = np.spacing(abs(exact).astype(part_dtype(dtype)))
    assert found.dtype == dtype
    assert (abs(found - exact) / unit).max() <= BOUNDS[name]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_sizes_are_within_two_units(dtype: np.dtype) -> None:
    """Of exact values: numpy's own are up to three away."""
    random = np.random.default_rng(5)
    parts = random.standard_normal((2, 4000)) * 10.0 ** random.integers(-4, 4, (2, 4000))
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    wide = z.astype(np.clongdouble)
    for function, exact in ((np.abs, abs(wide)), (np.angle, np.arctan2(wide.imag, wide.real))):
        found = tinyfuse.jit(lambda z: function(z))(z)  # noqa: B023
        assert found.dtype == part_dtype(dtype)
        assert (abs(found - exact) / np.spacing(abs(exact).astype(found.dtype))).max() <= 2


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "absolute"])
def test_special_values_are_numpys(name: str) -> None:
    z = special(COMPLEX128)
    z = z[(abs(z.real) != np.finfo(float).max) & (abs(z.imag) != np.finfo(float).max)]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    found = tinyfuse.jit(lambda z: getattr(np, name)(z))(z)
    for part in ("real", "imag"):
        want, have = getattr(expected, part), getattr(found, part)
        assert np.array_equal(np.isnan(want), np.isnan(have))
        known = ~np.isnan(want)
        assert np.array_equal(np.signbit(want[known]), np.signbit(have[known]))
        assert np.allclose(want[known], have[known], rtol=1e-15, atol=0)


# -- powers


def test_powers_of_arrays_that_numpy_computes_otherwise() -> None:
    z = numbers(100)
    for exponent in (0, 1, 2, -1):
        require_same(lambda z, n=exponent: z**n, z)


def test_other_powers() -> None:
    z, w = np.exp(numbers(50) / 100), numbers(50) / 100
    for function in (lambda z, w: z**w, lambda z, w: 2**w, lambda z, w: z**-7, lambda z, w: z**0.5):
        assert np.allclose(tinyfuse.jit(function)(z, w), function(z, w), rtol=1e-13)


# -- parts, views and writes


def write_parts(z: Any) -> Any:
    z.real[2:5] = 7
    z.imag += 1
    z[0] = 3 + 4j
    z[6:].real = z[:2].imag
    return z.imag


def write_new(z: Any) -> Any:
    w = np.zeros((2, 3), complex)
    w[0] = z[:3]
    w.T.real[1] = 4
    return w


def swap(z: Any, w: Any) -> Any:
    z, w = w, z
    z *= w
    return z.T.conj()


@pytest.mark.parametrize("function", [write_parts, write_new])
def test_writes_through_parts(function: Callable[..., Any]) -> None:
    require_same(function, numbers(8))


def test_augmented_products() -> None:
    require_same(swap, numbers(3, 4), numbers(3, 4))


def test_parts_of_an_argument_are_views() -> None:
    z = numbers(5)
    imaginary = tinyfuse.jit(lambda z: z.imag)(z)
    assert np.shares_memory(imaginary, z)
    assert imaginary.base is z


def test_strided_arguments() -> None:
    z = numbers(6, 8)
    for view in (z.T, z[::-1, ::3], np.broadcast_to(z[0], (4, 8)), np.asfortranarray(z)):
        require_same(lambda z: z * z.conj() + z.sum() * 0, view)


def test_arrays_from_outside_and_constants() -> None:
    table = numbers(6)
    fixed = tinyfuse.constant(table)
    require_same(lambda z: z * table, numbers(6))
    made = tinyfuse.jit(lambda z: np.exp(fixed) * 0 + fixed * z)(table)
    assert difference(np.exp(table) * 0 + table * table, made) is None


def test_python_numbers() -> None:
    def function(z: Any, c: complex, x: float) -> Any:
        return z * c + 1j * x

    z = numbers(5).astype(COMPLEX64)
    assert difference(function(z, 2 - 3j, 0.5), tinyfuse.jit(function)(z, 2 - 3j, 0.5)) is None


# -- reductions, products and sorting


def test_extremes_and_sorting_have_numpys_bits() -> None:
    z = np.round(numbers(5, 70) / 50)
    z[1, 3] = complex(np.nan, 1)
    z[2, 7] = complex(1, np.nan)
    z += 0  # no -0
    for name in ("max", "min", "argmax", "argmin"):
        require_same(lambda z, name=name: getattr(z, name)(axis=1), z)
        require_same(lambda z, name=name: getattr(z.T, name)(axis=0), z)
    require_same(lambda z: np.sort(z, axis=0), z)
    require_same(lambda z: np.argsort(z, axis=1, kind="stable"), z)
    require_same(lambda z: (z.max(), z.argmin())[0], z)
    require_same(lambda z: z.cumsum(axis=1), z)


PRODUCTS: list[Callable[..., Any]] = [
    lambda a, b: a @ b,
    lambda a, b: np.einsum("ij,jk->ki", a, b),
    lambda a, b: np.vdot(a, a) * np.dot(b[:, 0], b[:, 1]),
    lambda a, b: np.outer(a, b).sum(axis=0),
    lambda a, b: np.linalg.norm(a) + np.linalg.norm(b, axis=0).sum(),
    lambda a, b: a.var(axis=1) + a.std(axis=1) + a.mean(axis=1) + a.prod(axis=1),
    lambda a, b: np.correlate(a[0], b[:5, 0], "full") + np.convolve(a[0], b[:5, 0]),
    lambda a, b: np.trace(np.kron(a[:3, :3], b[:3, :3])),
]


@pytest.mark.parametrize("number", range(len(PRODUCTS)))
def test_sums_and_products_are_near_numpys(number: int) -> None:
    function = PRODUCTS[number]
    a, b = numbers(13, 70), numbers(70, 9)
    a, b = a / abs(a), b / abs(b)
    expected, found = function(a, b), tinyfuse.jit(function)(a, b)
    assert found.dtype == expected.dtype
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-12)


HERMITIAN: list[Callable[..., Any]] = [
    lambda a: [np.linalg.norm(a, order) for order in (2, -2, "nuc", 1, "fro")],
    lambda a: [
        np.linalg.svdvals(a),
        np.linalg.svdvals(a[..., :3]),
        np.linalg.svdvals(a[..., :2, :]),
    ],
    lambda a: [np.linalg.cond(a), np.linalg.cond(a, "fro"), np.linalg.cond(a, -2)],
    lambda a: np.linalg.matrix_rank(a * np.array([1, 1, 0, 1])),
    lambda a: np.linalg.matrix_norm(np.stack([a, a.T]), ord=2),
    lambda a: [np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, "U")],
    lambda a: [*np.linalg.slogdet(a), *np.linalg.slogdet(a * 0), *np.linalg.slogdet(a[::-1])],
    lambda a: [np.linalg.det(a), np.linalg.inv(a), np.linalg.solve(a, a[0])],
]


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("number", range(len(HERMITIAN)))
def test_matrices_are_near_numpys(number: int, dtype: type) -> None:
    function = HERMITIAN[number]
    a = (np.arange(16).reshape(4, 4) % 7 + 1j * (np.arange(16).reshape(4, 4) % 5)).astype(dtype)
    expected, found = function(a), tinyfuse.jit(function)(a)
    if not isinstance(expected, list):
        expected, found = [expected], [found]
    for one, other in zip(expected, found, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        eps = np.finfo(dtype).eps
        assert np.allclose(one, other, rtol=200 * eps, atol=200 * eps)


def test_a_product_is_four_real_ones_in_one_kernel_each_order_that_of_any() -> None:
    a, b = numbers(64, 300), numbers(300, 48)
    product = tinyfuse.jit(lambda a, b: a @ b)(a, b)
    real = tinyfuse.jit(lambda a, b: a @ b)
    parts = [np.ascontiguousarray(part) for part in (a.real, a.imag, b.real, b.imag)]
    re, im, other_re, other_im = parts
    assert difference(real(re, other_re) - real(im, other_im), product.real.copy()) is None
    assert difference(real(re, other_im) + real(im, other_re), product.imag.copy()) is None


# -- programs


def mandelbrot(c: Any) -> Any:
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(200):
        inside = abs(z) < 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def test_a_loop_carries_the_parts() -> None:
    y, x = np.mgrid[-1:1:20j, -2:1:30j]
    require_same(mandelbrot, x + 1j * y)
    text = tinyfuse.jit(mandelbrot).lower(x + 1j * y).as_text()
    assert "z_real[i]" in text
    assert len(tinyfuse.jit(mandelbrot).lower(x + 1j * y).kernels) == 2


def test_a_choice_carries_the_parts() -> None:
    def function(z: Any) -> Any:
        return tinyfuse.cond(z[0].real > 0, lambda z: z * z, lambda z: z.conj(), z)

    for z in (numbers(4), -numbers(4)):
        jitted = tinyfuse.jit(function)(z)
        assert difference(z * z if z[0].real > 0 else z.conj(), jitted) is None


def test_what_is_lost_is_warned_of_where_it_is() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary") as caught:
        tinyfuse.jit(lambda z: z.astype(float))(numbers(3))
    assert caught[0].filename == __file__


def test_threads_and_fusion_change_no_bit() -> None:
    def function(z: Any) -> Any:
        return np.exp(z) / (1 + z * z.conj())

    z = numbers(100, 300) / 1000
    results = [
        tinyfuse.jit(function, **options)(z)
        for options in ({}, {"fuse": False}, {"threads": 1}, {"threads": 2})
    ]
    assert [difference(results[0], each) for each in results[1:]] == [None] * 3


def test_finite_check_reads_parts() -> None:
    z = numbers(3)
    z[1] = 0
    with pytest.raises(NonFiniteError, match=r" is (inf|nan), at"):
        tinyfuse.jit(lambda z: 1 / z, check="nan")(z)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_products_that_alternate_are_rounded_before_they_are_added(dtype: np.dtype) -> None:
    """gcc 12 makes one instruction of them in any case, if it makes vectors of them."""

    def cube(z: Any) -> Any:
        return z**3

    def alternating(x: Any, y: Any) -> Any:
        out = np.empty((len(x), 2), x.dtype)
        out[:, 0], out[:, 1] = x * x - y, x * x + y
        return out

    z = numbers(48, dtype=dtype)
    x, y = z.real.copy(), z.imag.copy()
    even, odd = x * x - y * y, x * y + y * x
    expected = np.empty_like(z)
    expected.real, expected.imag = x * even - y * odd, x * odd + y * even
    for options in ({}, {"fuse": False}):
        assert difference(expected, tinyfuse.jit(cube, **options)(z)) is None
        assert difference(alternating(x, y), tinyfuse.jit(alternating, **options)(x, y)) is None


# -- complex numbers of Python's among the arguments

PYTHONS = (1j, 2 + 3j, complex(-0.5, -0.0), complex(-0.0, 1e300))


def put(x: Any, c: complex) -> Any:
    y = x.copy()
    y[1], y[2:] = c, c
    y += c
    return y


def turned(x: Any, c: complex) -> Any:
    for _ in range(100):
        x = x * c + 0.5
    return x


AT_RUN_TIME: dict[str, Callable[[Any, complex], Any]] = {
    "operators": lambda x, c: (x * c, c - x, c + x, -c + x, x == c),
    "single precision": lambda x, c: x.astype(np.complex64) + c,
    "real arrays": lambda x, c: x.real.astype(np.float32) * c,
    "scalars": lambda x, c: (x[1] * c, c * np.float32(2), np.complex64(1 + 1j) * c),
    "itself": lambda x, c: (x, c, c - c, -c),
    "an array": lambda x, c: (np.array([c, 1]), np.full(2, c), np.asarray(c)),
    "a choice": lambda x, c: np.where(x.real > 1, x, c),
    "its class": lambda x, c: x * 2 if isinstance(c, complex) else x,
    "put": put,
    "a loop": turned,
    "in a container": lambda x, c: x * {"a": (c, 2)}["a"][0],
}
BY_VALUE: dict[str, Callable[[Any, complex], Any]] = {
    "arithmetic": lambda x, c: x + c * 2,
    "a part": lambda x, c: x * c.real,
    "a test": lambda x, c: x if c == 1j else -x,
    "a size": lambda x, c: x * abs(c),
    "a product": lambda x, c: x + c * c,
}


@pytest.mark.parametrize("name", [*AT_RUN_TIME, *BY_VALUE])
@pytest.mark.filterwarnings("ignore")
def test_complex_numbers_of_pythons(name: str):
    function = AT_RUN_TIME.get(name) or BY_VALUE[name]
    jitted, x = tinyfuse.jit(function), np.arange(4.0) - 2j
    for c in PYTHONS:
        expected, found = function(x, c), jitted(x, c)
        if type(expected) is not tuple:
            expected, found = (expected,), (found,)
        for one, other in zip(found, expected, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other, strict=True)
    assert jitted.cache_info().misses == (1 if name in AT_RUN_TIME else len(PYTHONS))
    signature = jitted.explain_miss(x[:2], 1j).split(":")[0]
    assert signature.endswith("(complex128[2], complex)") == (name in AT_RUN_TIME)


def test_a_number_beside_an_array_in_a_loop() -> None:
    def powers(z, c):
        w = z * 0
        for _ in range(80):
            w = w * w + z * c
        return w

    z = np.full((4, 4), 0.1 + 0.2j)
    jitted = tinyfuse.jit(powers)
    for c in (0.5, 0.25, 2):
        np.testing.assert_array_equal(jitted(z, c), powers(z, c))
