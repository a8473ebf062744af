"""`tinyfuse.constant`: arrays that never change, and what is computed of them once."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.programs import PROGRAMS
from tinyfuse.compilation import Lowered
from tinyfuse.compiled import Compiled
from tinyfuse.errors import InPlaceWriteError, UnsupportedDtypeError
from tinyfuse.fixed import Constant
from tinyfuse.kept import Kept
from tinyfuse.lower.once import Parted
from tinyfuse.testing import Case, random_program
from tinyfuse.testing.case import program_case
from tinyfuse.testing.compare import difference
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.parting import run_parts
from tinyfuse.testing.variants import fused, lowered, lowered_with_constants, unfused

W = np.random.default_rng(5).standard_normal((48, 80)).astype(np.float32)
B = np.random.default_rng(6).standard_normal(80).astype(np.float32)
X = np.random.default_rng(7).standard_normal((20, 48)).astype(np.float32)
GLOBAL = tinyfuse.constant(W)
HOLDER = SimpleNamespace(w=tinyfuse.constant(W), others=[tinyfuse.constant(B)])


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def of_global(x: Any) -> Any:
    return layer(x, GLOBAL, HOLDER.others[0])


def of_attribute(x: Any) -> Any:
    return layer(x, HOLDER.w, HOLDER.others[0])


def same_bits(found: Any, expected: Any) -> None:
    assert difference(expected, found) is None


def once_kernels(lowered: Lowered) -> list[str]:
    return [] if lowered.once is None else [kernel.name for kernel in lowered.once.kernels]


# -- as an array


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w + 1,
        lambda w: 2 - w,
        lambda w: -w,
        lambda w: w.T @ w,
        lambda w: w[1:3, ::2],
        lambda w: w[np.array([0, 2])],
        lambda w: w[w > 0],
        lambda w: w == w,
        lambda w: np.concatenate([w, w]),
        lambda w: np.sum(w, axis=0, where=w > 0, initial=0),
        lambda w: np.add.reduce(w),
        lambda w: np.add.outer(w[0], w[1]),
        lambda w: np.where(w > 0, w, 0),
        lambda w: np.einsum("ij,ij->i", w, w),
        lambda w: np.linalg.norm(w),
        lambda w: w.reshape(-1).astype(np.float64).mean(),
        lambda w: (len(w), w.shape, w.dtype, w.ndim, w.size, w.nbytes, w.strides),
        lambda w: [row.sum() for row in w],
        lambda w: W[0, 0] in w,
        lambda w: f"{w[0, 0]:.2f} {w}",
        lambda w: np.asarray(w, np.float64),
        lambda w: np.array(w),
        lambda w: np.shares_memory(w, w),
    ],
)
def test_it_is_an_array_to_numpy(use: Callable[[Any], Any]):
    found, expected = use(tinyfuse.constant(W)), use(W)
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
    np.testing.assert_equal(found, expected)


def test_numbers_of_no_dimension():
    three = tinyfuse.constant(np.int64(3))
    assert (int(three), float(three), complex(three), bool(three)) == (3, 3.0, 3 + 0j, True)
    assert list(range(three)) == [0, 1, 2]
    with pytest.raises(ValueError, match="truth value"):
        bool(tinyfuse.constant(W))


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.__setitem__(0, 1),
        lambda w: w.__setitem__((slice(None), 2), W[:, 0]),
        lambda w: w.__iadd__(1),
        lambda w: np.add(W, W, out=w),
        lambda w: np.add.at(w, 0, 1),
        lambda w: np.copyto(w, 0),
        lambda w: np.put(w, 0, 0),
    ],
)
def test_writes_are_refused(write: Callable[[Any], Any]):
    w = tinyfuse.constant(W)
    with pytest.raises(InPlaceWriteError, match="a constant cannot be written"):
        write(w)
    np.testing.assert_equal(np.asarray(w), W)


@pytest.mark.parametrize("write", [lambda w: w.fill(0), lambda w: w.sort(), lambda w: w.T.fill(0)])
def test_methods_that_write_are_refused_by_numpy(write: Callable[[Any], Any]):
    with pytest.raises(ValueError, match="read-only"):
        write(tinyfuse.constant(W))


def test_its_array_cannot_be_made_writable():
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        np.asarray(tinyfuse.constant(W)).setflags(write=True)


def test_the_source_can_change_afterwards():
    source = W.copy()
    w = tinyfuse.constant(source)
    jitted = tinyfuse.jit(lambda x: x @ w)
    expected = jitted(X)
    source[...] = 0
    same_bits(jitted(X), expected)
    assert (np.asarray(w) == W).all()


def test_layouts_and_byte_orders_are_native():
    w = tinyfuse.constant(np.asfortranarray(W.astype(">f4")))
    assert w.dtype == np.float32
    assert w.dtype.isnative
    assert w.flags.c_contiguous
    np.testing.assert_equal(np.asarray(w), W)


def test_copies_are_itself_and_pickles_are_equal():
    w = tinyfuse.constant(W)
    assert tinyfuse.constant(w) is w
    assert copy.copy(w) is w
    assert copy.deepcopy([w])[0] is w
    loaded = pickle.loads(pickle.dumps(w))
    assert type(loaded) is Constant
    np.testing.assert_equal(np.asarray(loaded), W)
    assert {w: 1, loaded: 2}[w] == 1


def test_it_prints_as_an_array():
    assert repr(tinyfuse.constant(np.arange(3))) == "constant([0, 1, 2], dtype=int64)"
    assert len(repr(tinyfuse.constant(np.zeros(10**6)))) < 100


def test_dtypes_that_are_not_computed_with_are_refused():
    with pytest.raises(UnsupportedDtypeError, match="datetime64"):
        tinyfuse.constant(np.zeros(2, "datetime64[s]"))


# -- in jitted functions


def closed_over(x: Any) -> Any:
    w, b = tinyfuse.constant(W), tinyfuse.constant(B)
    return tinyfuse.jit(lambda x: layer(x, w, b))(x)


def in_a_list(x: Any) -> Any:
    weights = [tinyfuse.constant(a) for a in (W, B)]
    return tinyfuse.jit(lambda *acts: layer(*acts, *weights))(x)


def as_arguments(x: Any) -> Any:
    return tinyfuse.jit(layer)(x, tinyfuse.constant(W), tinyfuse.constant(B))


class Model:
    def __init__(self) -> None:
        self.w, self.b = tinyfuse.constant(W), tinyfuse.constant(B)

    def __call__(self, x: Any) -> Any:
        return layer(x, self.w, self.b)


@pytest.mark.parametrize(
    "way",
    [
        closed_over,
        in_a_list,
        as_arguments,
        tinyfuse.jit(of_global),
        tinyfuse.jit(of_attribute),
        tinyfuse.jit(Model()),
        tinyfuse.jit(of_global, fuse=False),
        tinyfuse.jit(of_global, threads=1),
        tinyfuse.jit(of_global, check="nan"),
    ],
)
def test_the_same_bits_as_of_arrays(way: Callable[[Any], Any]):
    expected = tinyfuse.jit(layer)(X, W, B)
    for _ in range(3):  # the third call goes directly
        same_bits(way(X), expected)


def test_writes_in_a_traced_function_are_refused():
    def write(x: Any) -> Any:
        GLOBAL[0] = x[0, 0]
        return GLOBAL + 1

    with pytest.raises(InPlaceWriteError, match="a constant cannot be written"):
        tinyfuse.jit(write)(X)


def test_a_constant_that_is_returned_is_a_new_array():
    found = tinyfuse.jit(lambda x: (x, GLOBAL))(X)[1]
    assert type(found) is np.ndarray
    assert found.flags.writeable
    np.testing.assert_equal(found, W)


def test_another_constant_in_its_place_is_another_program(monkeypatch: pytest.MonkeyPatch):
    jitted = tinyfuse.jit(of_global)
    jitted(X)
    monkeypatch.setitem(globals(), "GLOBAL", tinyfuse.constant(2 * W))
    for _ in range(2):
        same_bits(jitted(X), tinyfuse.jit(layer)(X, 2 * W, B))
    assert jitted.cache_info().misses == 2


def test_arguments_are_told_apart_by_identity():
    jitted, (one, other) = tinyfuse.jit(layer), map(tinyfuse.constant, (W, 2 * W))
    for w in (one, other, one, other):
        same_bits(jitted(X, w, B), jitted(X, np.array(w), B))
    assert jitted.cache_info().currsize == 3
    signature = jitted.lower(X, one, B).traced.signature
    assert str(signature) == "(float32[20, 48], w=constant float32[48, 80], float32[80])"


def test_elements_are_known_while_tracing():
    count, table = tinyfuse.constant(np.int64(3)), tinyfuse.constant(np.arange(4.0))

    def function(x: Any) -> Any:
        for _ in range(int(count)):
            x = x + 1 if table[1] > 0 else x - 1
        return x

    same_bits(tinyfuse.jit(function)(np.zeros(2)), np.full(2, 3.0))


def test_functions_of_jitted_functions_see_constants():
    inner = tinyfuse.jit(layer)
    outer = tinyfuse.jit(lambda x: inner(x, GLOBAL, B))
    same_bits(outer(X), inner(X, W, B))
    assert once_kernels(outer.lower(X))


# -- what runs once


def test_panels_are_packed_once():
    lowered = tinyfuse.jit(of_global).lower(np.tile(X, (8, 1)))
    assert once_kernels(lowered) == ["of_global_GLOBAL_copy"]
    assert [kernel.name for kernel in lowered.packs] == ["of_global_GLOBAL_copy"]
    assert len(lowered.loops.kernels) == 1
    assert lowered.scratch_bytes == 0


def normalized(x: Any) -> Any:
    w = (GLOBAL - GLOBAL.mean(axis=0)) / GLOBAL.std(axis=0)
    return x @ w + np.exp(GLOBAL[0])


@pytest.mark.parametrize("fuse", [True, False])
def test_what_constants_decide_alone_runs_once(fuse: bool):
    lowered = tinyfuse.jit(normalized, fuse=fuse).lower(X)
    loops = lowered.loops
    assert {name for kernel in loops.kernels for name in kernel.stages}.isdisjoint(
        {"w", "sum", "exp", "divide"}
    )
    assert lowered.once is not None
    assert {buffer.name for buffer in loops.inputs} >= {
        buffer.name for buffer in lowered.once.outputs
    }

    def plain(x: Any, g: Any) -> Any:
        w = (g - g.mean(axis=0)) / g.std(axis=0)
        return x @ w + np.exp(g[0])

    same_bits(tinyfuse.jit(normalized, fuse=fuse)(X), tinyfuse.jit(plain)(X, W))


def test_a_cheap_expansion_is_no_array():
    row = tinyfuse.constant(np.arange(512, dtype=np.float32))
    lowered = tinyfuse.jit(lambda x: x + (row[:, None] - row)).lower(
        np.zeros((512, 512), np.float32)
    )
    assert lowered.once is None


def test_an_expensive_expansion_is_an_array():
    row = tinyfuse.constant(np.arange(512, dtype=np.float32))
    lowered = tinyfuse.jit(lambda x: x + np.sin(row[:, None] * row)).lower(
        np.zeros((512, 512), np.float32)
    )
    assert lowered.kept_bytes == 512 * 512 * 4


def test_of_loops_too():
    """A product of constants inside a loop is computed before it, in all turns the same."""
    square = tinyfuse.constant(W[:, :48] / 16)

    def turns(x: Any) -> Any:
        for _ in range(100):
            x = x @ (square @ square) + 1
        return x

    def plain(x: Any, w: Any) -> Any:
        for _ in range(100):
            x = x @ (w @ w) + 1
        return x

    jitted = tinyfuse.jit(turns)
    assert once_kernels(jitted.lower(X))
    same_bits(jitted(X), tinyfuse.jit(plain)(X, W[:, :48] / 16))


def test_kernels_of_both_parts_can_be_one_function():
    """The kernel of each call does the same to other arrays as the one that runs once."""
    jitted = tinyfuse.jit(lambda x: np.exp(x) @ np.exp(GLOBAL))
    x = W.T.copy()
    lowered = jitted.lower(x)
    assert lowered.as_text("c").count("lambda_exp(") <= 3
    same_bits(jitted(x), tinyfuse.jit(lambda x, w: np.exp(x) @ np.exp(w))(x, W))


def test_memory_analysis_counts_constants():
    compiled = tinyfuse.jit(of_global).lower(np.tile(X, (8, 1))).compile()
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 8 * X.nbytes
    assert compiled.lowered.kept_bytes >= W.nbytes
    assert memory.constant_size_in_bytes == W.nbytes + B.nbytes + compiled.lowered.kept_bytes


def test_texts_say_so():
    lowered = tinyfuse.jit(of_global).lower(np.tile(X, (8, 1)))
    for level in ("graph", "stages", "loops"):
        assert "constant GLOBAL: float32[" in lowered.as_text(level)
    assert "int of_global_once(void *const *arrays" in lowered.as_text("c")
    report = str(tinyfuse.explain(of_global, np.tile(X, (8, 1))))
    kept = f"{lowered.kept_bytes / 1024:.3g} KiB"
    assert f"Once, before the first call, 1 kernel of constants alone; {kept} are kept." in report
    assert "once, at the first call: of_global_GLOBAL_copy" in report


def test_decisions_say_so():
    large = tinyfuse.constant(np.ones((512, 512), np.float32))
    lowered = tinyfuse.jit(lambda x: x @ tinyfuse.name(large * 2, "twice")).lower(np.ones(512))
    decisions = {each.producer: each for each in lowered.decisions}
    assert decisions["twice"].action == "store"
    assert decisions["twice"].reason.startswith(
        "constants decide it alone: it is computed once, at the first call"
    )


def test_profiles_are_of_calls():
    compiled = tinyfuse.jit(normalized).lower(X).compile()
    profile = compiled.profile(X, repeat=2)
    assert len(profile.kernels) == len(compiled.lowered.loops.kernels)


def test_two_threads_at_the_first_call_compute_it_once(monkeypatch: pytest.MonkeyPatch):
    computed: list[Kept] = []
    plainly = Kept._computed

    def counted(kept: Kept) -> Any:
        computed.append(kept)
        return plainly(kept)

    monkeypatch.setattr(Kept, "_computed", counted)
    compiled: Compiled = tinyfuse.jit(of_global).lower(X).compile()
    expected = tinyfuse.jit(layer)(X, W, B)
    computed.clear()
    barrier, found = threading.Barrier(4), []

    def call() -> None:
        barrier.wait()
        found.append(compiled(X))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert len(found) == 4
    for result in found:
        same_bits(result, expected)


# -- programs of all kinds


def check(cases: list[Case]) -> int:
    """Compare the C of programs in two parts with the C of the same programs without constants;
    how many have something that runs once."""
    parts: dict[Case, list[Parted]] = {
        case: [lowered_with_constants(case, way) for way in (fused, unfused)] for case in cases
    }
    for way in range(2):
        chosen = {case: each[way] for case, each in parts.items()}
        loops = [p for each in chosen.values() for p in (each.each, each.once) if p]
        library = Library(loops)
        plain = Library([case_loops(case) for case in cases])
        for case, each in chosen.items():
            expected = plain.run(case_loops(case), case.arrays)
            found = run_parts(each, case.arrays, library.run)
            for want, have in zip(expected, found, strict=True):
                assert difference(want, have) is None, case.text
    return sum(each[0].once is not None for each in parts.values())


def case_loops(case: Case) -> Any:

    return lowered(case, unfused)


@pytest.mark.parametrize("first", [0, 100])
def test_random_programs_in_two_parts(first: int):
    cases = [program_case(random_program(seed)) for seed in range(first, first + 60)]
    assert check(cases) > 15


def test_programs_in_two_parts():
    cases = [Case(each.function, each.arguments(), name) for name, each in PROGRAMS.items()]
    assert check(cases) > 5
