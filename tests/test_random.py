"""tinyfuse.random: published vectors, the same bits everywhere, and distributions.

Statistics are of fixed keys, so that a test either always passes or never does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same
from tinyfuse import random
from tinyfuse.errors import ArgumentTypeError, InvalidArgumentError, SideEffectError
from tinyfuse.keys import threefry

stats = pytest.importorskip("scipy.stats", reason="needs scipy (extra: testing)")
KEY = random.key(42)
MANY = 20_000


# -- published vectors


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_vectors_of_random123(key: Any, counter: Any, expected: Any) -> None:
    def words(key: Any, counter: Any) -> Any:
        return np.stack(threefry(key, counter[0], counter[1]))

    arrays = np.array(key, np.uint32), np.array(counter, np.uint32)
    assert words(*arrays).tolist() == list(expected)
    assert tinyfuse.jit(words)(*arrays).tolist() == list(expected)


def test_what_jax_makes_of_the_same_key() -> None:
    """jax 0.10.2, with 64-bit types."""
    assert KEY.tolist() == [0, 42]
    assert random.key(-1).tolist() == [0xFFFFFFFF, 0xFFFFFFFF]
    assert random.split(KEY, 3).tolist() == [
        [1832780943, 270669613],
        [64467757, 2916123636],
        [2465931498, 255383827],
    ]
    assert random.fold_in(KEY, 7).tolist() == [2547012911, 1371500959]
    assert random.bits(KEY, (2,), np.uint64).tolist() == [7871734211187709741, 276886910877598708]
    assert random.bits(KEY, (3,), np.uint8).tolist() == [162, 217, 249]
    np.testing.assert_array_equal(
        random.uniform(KEY, (3,), np.float32),
        np.array([0.48870957, 0.6797972, 0.6162715], np.float32),
    )
    np.testing.assert_allclose(
        random.uniform(KEY, (3,)), [0.42672757, 0.01501007, 0.57414442], rtol=0, atol=5e-9
    )
    assert random.randint(KEY, (5,), 0, 10, np.int32).tolist() == [4, 4, 1, 9, 9]
    assert random.randint(KEY, (5,), -3, 1000).tolist() == [501, 907, 776, 679, 212]


# -- the same bits everywhere

PLAIN: dict[str, Callable[[Any], Any]] = {
    "split": lambda key: random.split(key, (2, 2)),
    "fold_in": lambda key: random.fold_in(key, 2**31),
    "bits": lambda key: random.bits(key, (3, 5), np.uint16),
    "uniform": lambda key: random.uniform(key, (3,), np.float32, -1.0, 1.0),
    "randint": lambda key: random.randint(key, (9,), -5, 6, np.int8),
    "normal": lambda key: random.normal(key, (2, 3)),
    "normal of float32": lambda key: random.normal(key, (7,), np.float32),
    "truncated_normal": lambda key: random.truncated_normal(key, -1.0, 2.0, (5,)),
    "exponential": lambda key: random.exponential(key, (5,)),
    "gamma": lambda key: random.gamma(key, np.array([0.5, 3.0])),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (9,)),
    "permutation": lambda key: random.permutation(key, 9),
    "rows": lambda key: random.permutation(key, np.arange(12).reshape(3, 4), 1, True),
    "choice": lambda key: random.choice(key, 10, (3,), False),
    "categorical": lambda key: random.categorical(key, np.zeros(5), -1, (4,)),
    "nothing": lambda key: random.normal(key, (0, 3)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_calls_and_parts_of_programs_have_the_same_bits(name: str) -> None:
    function = PLAIN[name]
    alone = function(KEY)
    assert_same(tinyfuse.jit(function)(KEY), alone)
    assert_same(tinyfuse.jit(function, fuse=False)(KEY), alone)
    with tinyfuse.disable_jit():
        plain = function(KEY)
    assert plain.dtype == alone.dtype
    if plain.dtype.kind == "f":
        np.testing.assert_allclose(plain, alone, rtol=1e-5 if plain.itemsize == 4 else 1e-13)
    else:
        assert_same(plain, alone)


def test_numbers_are_computed_where_they_are_used() -> None:
    """One kernel, without memory for the numbers: neither the words nor the noise are stored."""

    @tinyfuse.jit
    def noisy(x: Any, key: Any) -> Any:
        return x + 0.1 * random.normal(key, x.shape)

    lowered = noisy.lower(np.zeros((64, 256)), KEY)
    assert (len(lowered.cost), lowered.scratch_bytes) == (1, 0)


def test_threads_change_nothing() -> None:
    def noise(key: Any) -> Any:
        return random.normal(key, (1000, 100)).sum(axis=1)

    assert_same(tinyfuse.jit(noise, threads=1)(KEY), tinyfuse.jit(noise, threads=2)(KEY))


def test_keys_inside_of_programs() -> None:
    @tinyfuse.jit
    def keys(seed: Any, step: Any) -> Any:
        return random.split(random.fold_in(random.key(seed), step))

    expected = random.split(random.fold_in(random.key(5), 3))
    assert_same(keys(np.int64(5), np.int64(3)), expected)
    assert_same(keys(5, 3), expected)
    assert_same(random.key(np.int64(-2)), random.key(-2))
    assert_same(random.key(np.uint32(7)), random.key(7))


# -- distributions


def distributed_as(draws: Any, distribution: Any) -> None:
    assert stats.kstest(np.asarray(draws, np.float64), distribution.cdf).pvalue > 0.001


CONTINUOUS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "uniform": (lambda key, shape: random.uniform(key, shape, float, -2.0, 3.0), (-2, 5)),
    "normal": (random.normal, ()),
    "truncnorm": (lambda key, shape: random.truncated_normal(key, -0.5, 2.0, shape), (-0.5, 2)),
    "expon": (random.exponential, ()),
    "gumbel_r": (random.gumbel, ()),
    "logistic": (random.logistic, ()),
    "laplace": (random.laplace, ()),
    "cauchy": (random.cauchy, ()),
    "rayleigh": (lambda key, shape: random.rayleigh(key, 2.0, shape), (0, 2)),
    "weibull_min": (lambda key, shape: random.weibull_min(key, 3.0, 1.5, shape), (1.5, 0, 3)),
    "pareto": (lambda key, shape: random.pareto(key, 2.5, shape), (2.5,)),
    "lognorm": (lambda key, shape: random.lognormal(key, 0.5, shape), (0.5,)),
    "triang": (lambda key, shape: random.triangular(key, 0.0, 1.0, 4.0, shape), (0.25, 0, 4)),
    "gamma": (lambda key, shape: random.gamma(key, 2.5, shape), (2.5,)),
    "gamma below 1": (lambda key, shape: random.gamma(key, 0.3, shape), (0.3,)),
    "beta": (lambda key, shape: random.beta(key, 0.5, 3.0, shape), (0.5, 3)),
    "chi2": (lambda key, shape: random.chisquare(key, 3.0, shape), (3,)),
    "t": (lambda key, shape: random.t(key, 4.0, shape), (4,)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    draw, parameters = CONTINUOUS[name]
    family = getattr(stats, {"normal": "norm"}.get(name, name.split()[0]))
    draws = draw(KEY, (MANY,))
    assert draws.shape == (MANY,)
    distributed_as(draws, family(*parameters))


def test_floats_of_32_bits() -> None:
    distributed_as(random.normal(KEY, (MANY,), np.float32), stats.norm)
    distributed_as(random.uniform(KEY, (MANY,), np.float32), stats.uniform)
    draws = random.uniform(KEY, (200_000,), np.float32)
    assert (draws.dtype, draws.min() >= 0, draws.max() < 1) == (np.float32, True, True)


def as_expected(counts: Any, chances: Any) -> None:
    expected = np.asarray(chances) / np.sum(chances) * np.sum(counts)
    assert stats.chisquare(counts, expected).pvalue > 0.001


def test_integers_and_choices() -> None:
    draws = random.randint(KEY, (MANY,), -3, 4)
    as_expected(np.bincount(draws + 3, minlength=7), np.ones(7))
    as_expected(np.bincount(random.bits(KEY, (MANY,), np.uint8), minlength=256), np.ones(256))
    chances = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    weighted = random.choice(KEY, 5, (MANY,), True, chances)
    assert weighted.max() == 3
    as_expected(np.bincount(weighted, minlength=4), chances[:4])
    logits = np.log(np.array([1.0, 2, 5]))
    as_expected(np.bincount(random.categorical(KEY, logits, -1, (MANY,))), [1, 2, 5])
    as_expected(np.bincount(random.bernoulli(KEY, 0.3, (MANY,)).astype(int)), [0.7, 0.3])
    signs = random.rademacher(KEY, (MANY,))
    as_expected(np.bincount((signs + 1) // 2), [0.5, 0.5])
    trials = random.geometric(KEY, 0.4, (MANY,))
    counts = np.bincount(np.minimum(trials, 8), minlength=9)[1:]
    as_expected(counts, [*[0.4 * 0.6**at for at in range(7)], 0.6**7])


def test_orders() -> None:
    assert sorted(random.permutation(KEY, 100).tolist()) == list(range(100))
    first = [random.permutation(random.fold_in(KEY, at), 4)[0] for at in range(400)]
    as_expected(np.bincount(first, minlength=4), np.ones(4))
    x = np.arange(12).reshape(3, 4)
    mixed = random.permutation(KEY, x, 1)
    assert sorted(mixed[0].tolist()) == [0, 1, 2, 3]
    assert (mixed - mixed[0] == np.array([[0], [4], [8]])).all()
    sample = random.choice(KEY, x, (2,), False)
    assert sample.shape == (2, 4)
    assert len(set(sample[:, 0].tolist())) == 2
    weighted = random.choice(KEY, 5, (4,), False, np.array([0.1, 0.2, 0.3, 0.4, 0.0]))
    assert sorted(weighted.tolist()) == [0, 1, 2, 3]


def test_neighbours_are_independent() -> None:
    """Serial correlation along positions, along keys that are split, and along steps."""
    along = random.normal(KEY, (MANY,))
    keys = random.split(KEY, 2000)
    split = np.array([random.uniform(key) for key in keys])
    folded = np.array([random.uniform(random.fold_in(KEY, at)) for at in range(2000)])
    for draws in (along, split, folded):
        for lag in (1, 2, 7):
            found = np.corrcoef(draws[:-lag], draws[lag:])[0, 1]
            assert abs(found) < 4 / math.sqrt(len(draws))
    distributed_as(split, stats.uniform)
    distributed_as(folded, stats.uniform)
    assert len({tuple(key) for key in keys.tolist()}) == 2000


def test_vectors() -> None:
    cov = np.array([[2.0, 0.6], [0.6, 0.5]])
    draws = random.multivariate_normal(KEY, np.array([1.0, -1.0]), cov, (MANY,))
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.05)
    np.testing.assert_allclose(draws.mean(axis=0), [1, -1], atol=0.05)
    parts = random.dirichlet(KEY, np.array([1.0, 2.0, 5.0]), (2000,))
    np.testing.assert_allclose(parts.sum(axis=1), 1)
    np.testing.assert_allclose(parts.mean(axis=0), np.array([1, 2, 5]) / 8, atol=0.02)


def test_bounds_hold() -> None:
    draws = random.truncated_normal(KEY, 1.0, 1.5, (MANY,))
    assert draws.min() >= 1
    assert draws.max() <= 1.5
    assert np.isfinite(random.normal(KEY, (200_000,))).all()
    assert np.isfinite(random.gumbel(KEY, (MANY,), np.float32)).all()
    assert np.isnan(random.gamma(KEY, np.array([-1.0, np.nan, 0.0]))).all()
    assert random.randint(KEY, (100,), 3, 3).tolist() == [3] * 100
    whole = random.randint(KEY, (MANY,), np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    assert whole.min() < -(2**62) < 2**62 < whole.max()


# -- errors


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"a key is an array uint32\[2\]"):
        random.normal(np.zeros(2))
    with pytest.raises(ArgumentTypeError, match="dtype has to be float32 or float64, not int64"):
        random.uniform(KEY, (2,), int)
    with pytest.raises(ArgumentTypeError, match="dtype of bits has to be unsigned"):
        random.bits(KEY, (2,), int)
    with pytest.raises(ArgumentTypeError, match="dtype of randint has to be of integers"):
        random.randint(KEY, (2,), 0, 1, float)
    with pytest.raises(InvalidArgumentError, match="larger sample than population"):
        random.choice(KEY, 3, (4,), False)
    with pytest.raises(ArgumentTypeError, match="the seed of a key is an integer"):
        random.key(1.5)


GENERATOR = np.random.default_rng(0)


class Holder:
    def __init__(self) -> None:
        self.generator = GENERATOR


HOLDER = Holder()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x + np.random.uniform(size=3), "np.random.uniform"),
        (lambda x: x + np.random.default_rng(0).normal(size=3), "np.random.default_rng"),
        (lambda x: x + GENERATOR.normal(size=3), "GENERATOR.normal"),
        (lambda x: x + HOLDER.generator.normal(size=3), "generator.normal"),
        (lambda x: np.random.seed(3), "np.random.seed"),
    ],
)
def test_numpys_random_numbers_are_refused(function: Any, name: str) -> None:
    with pytest.raises(SideEffectError, match=rf"{name} draws while the function is traced.*key"):
        tinyfuse.jit(function)(np.ones(3))


def test_generators_among_arguments_are_refused() -> None:
    with pytest.raises(SideEffectError, match=r"rng\.shuffle draws .* tinyfuse\.random\.normal"):
        tinyfuse.jit(lambda x, rng: rng.shuffle(x))(np.ones(3), GENERATOR)


def test_asking_for_the_class_of_a_generator_draws_nothing() -> None:
    f = tinyfuse.jit(lambda x: x * isinstance(GENERATOR, np.random.Generator))
    assert f(np.ones(3)).tolist() == [1, 1, 1]
