"""Kernels in blocks and threads of a device: what is shared, where barriers are, the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import PROGRAMS, DeviceProgram, array, softmax
from tests.fusion_programs import PROGRAMS as FUSED
from tests.fusion_programs import Fused
from tests.programs import PROGRAMS as OTHERS
from tests.test_fusion import arguments
from tinyfuse.compilation import Lowered
from tinyfuse.emit.cuda import emit_cuda
from tinyfuse.emit.launch import RepeatLaunches
from tinyfuse.loops.ir import Kernel, Loops, SortRow, Statement, Sync, walk_statements
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.machine import KIB, SM_90
from tinyfuse.records import replace
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.runtime.emulator import ORDERS
from tinyfuse.testing import Case, Ladder, program_case, random_program
from tinyfuse.testing.devices import device_loops, emitted
from tinyfuse.trace import loop_statements

BATCH = 25


def on_gpu(program: DeviceProgram) -> Lowered:
    return tinyfuse.jit(program.function).lower(*program.arguments).on("cuda")


def barriers(kernel: Kernel) -> int:
    return sum(isinstance(each, Sync) for each in walk_statements(kernel.body))


def flat(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.ascontiguousarray(each).reshape(-1) for each in arrays]


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_threads_and_barriers(name: str):
    kernels = on_gpu(PROGRAMS[name]).loops.kernels
    found = tuple((each.blocks, each.threads, barriers(each)) for each in kernels)
    assert found == PROGRAMS[name].kernels


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_of_c(name: str):
    program = PROGRAMS[name]
    expected = tinyfuse.jit(program.function)(*program.arguments)
    found = tinyfuse.jit(program.function, target="cuda-emulated")(*program.arguments)
    pairs = zip(np.atleast_1d(*_tuple(expected)), np.atleast_1d(*_tuple(found)), strict=True)
    for want, have in pairs:
        np.testing.assert_array_equal(have, want)


def _tuple(result: object) -> tuple[object, ...]:
    return result if isinstance(result, tuple) else (result, 0)


@pytest.mark.parametrize("name", ["softmax", "tiles", "smoothed", "columns"])
def test_threads_in_any_order(name: str):
    program = PROGRAMS[name]
    cuda, inputs = on_gpu(program).cuda[0], flat(program.arguments)
    results = [run_program(cuda, inputs, order=order).outputs for order in ORDERS]
    for other in results[1:]:
        for want, have in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(have, want)


# --- barriers -------------------------------------------------------------------------------------


def without_barrier(body: Sequence[Statement], number: int) -> tuple[Statement, ...]:
    left = [number]

    def dropped(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        kept = []
        for each in statements:
            if isinstance(each, Sync):
                left[0] -= 1
                if left[0] == -1:
                    continue
            kept.append(with_inside(each, dropped))
        return tuple(kept)

    return dropped(body)


def mutants(loops: Loops) -> list[Loops]:
    """The program without one of its barriers, for each; those that order sorts are not seen."""
    found = []
    for at, kernel in enumerate(loops.kernels):
        if any(isinstance(each, SortRow) for each in walk_statements(kernel.body)):
            continue
        for number in range(barriers(kernel)):
            changed = replace(kernel, body=without_barrier(kernel.body, number))
            kernels = [*loops.kernels[:at], changed, *loops.kernels[at + 1 :]]
            named = [replace(k, name=f"{k.name}_{len(found)}") for k in kernels]
            found.append(replace(loops, kernels=tuple(named)))
    return found


# Programs that fusion is for, in the first or second of their small sizes.
FIRST = (
    *("cross_entropy", "mean_cross_entropy", "embedding", "shallow_water", "four_upwind_steps"),
    *("batch_norm", "batch_norm_images", "harris", "blur"),
)
SECOND = (
    *("n_body_forces", "argmax_of_an_expression", "cumulative", "running_shares", "transposes"),
    *("unsharp", "reductions_in_reductions"),
)
SMALL = dict.fromkeys(FIRST, 0) | dict.fromkeys(SECOND, 1)


def small_case(program: Fused) -> Case:
    arrays = arguments(program, program.small[SMALL[program.name]])
    return Case(program.function, arrays, program.name)


CORPUS = {
    **{name: Case(each.function, each.arguments, name) for name, each in PROGRAMS.items()},
    **{name: Case(each.function, each.arguments(), name) for name, each in OTHERS.items()},
    **{f"{each.name} too": small_case(each) for each in FUSED if each.name in SMALL},
}


@pytest.mark.parametrize("name", CORPUS)
def test_every_barrier_is_needed(name: str):
    case = CORPUS[name]
    loops = device_loops(case, True, SM_90)
    if loops.steps is not None or any(kernel.again for kernel in loops.kernels):
        pytest.skip("its kernels are in loops, or called again")
    inputs = flat(case.arrays)
    assert run_program(emit_cuda(loops), inputs).error is None
    programs = emitted(mutants(loops))
    reported = [run_program(program, inputs).error is not None for program in programs]
    assert [number for number, told in enumerate(reported) if not told] == []


def test_a_while_loop_writes_what_others_have_read(monkeypatch: pytest.MonkeyPatch):
    """Two barriers: all threads multiply elements of v, then one of them changes an element."""

    def grown(v, w):
        for i in range(1, 4):
            w *= 2
            least = np.prod(v[i:])
            turns = 0
            while turns < 3 and least < 8:
                turns += 1
                v[i] += least
        return v, w

    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 1)
    case = Case(grown, (array(5, dtype=float), np.ones(5)), "grown")
    assert [barriers(kernel) for kernel in device_loops(case, True).kernels] == [0, 2, 0]
    Ladder((), lambda case: False, emulated_of=lambda case: True).climb([case]).check()


def test_the_corpus_has_enough_barriers():
    kernels = [each for case in CORPUS.values() for each in device_loops(case, True, SM_90).kernels]
    assert sum(barriers(kernel) > 0 for kernel in kernels) >= 40


# --- transfers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["elementwise", "softmax", "layernorm", "tiles", "transposed"])
def test_banks_of_shared_memory_have_no_conflicts(name: str):
    program = PROGRAMS[name]
    report = run_program(on_gpu(program).cuda[0], flat(program.arguments))
    shared = [each for launch in report.launches for each in launch.accesses if each.shared]
    wide = [each for each in shared if each.requests >= 32]
    assert max([each.worst for each in wide], default=1) == 1


def test_memory_is_transferred_in_whole_sectors():
    x = array(64, 1024)
    program = DeviceProgram(PROGRAMS["elementwise"].function, (x, x[::-1].copy()), ())
    across = DeviceProgram(PROGRAMS["transposed"].function, (x,), ())
    product = DeviceProgram(PROGRAMS["tiles"].function, (x, array(1024, 128), array(128)), ())
    for made in (program, DeviceProgram(softmax, (x,), ()), across, product):
        report = run_program(on_gpu(made).cuda[0], flat(made.arguments))
        for access in (each for launch in report.launches for each in launch.accesses):
            assert access.shared or access.efficiency >= 0.9


# --- room -----------------------------------------------------------------------------------------


def test_what_shared_memory_has_no_room_for():
    """A row of 80 KB is kept in the memory of the device, for each block apart."""
    x = array(400, 20000)
    loops = tinyfuse.jit(softmax).lower(x).on("cuda").loops
    (buffer,) = [each for each, _ in loops.scratch]
    assert (buffer.nbytes, loops.kernels[0].blocks) == (x.nbytes, 400)
    assert x.nbytes // 400 > 48 * KIB
    few = x[:2]
    np.testing.assert_array_equal(
        tinyfuse.jit(softmax, target="cuda-emulated")(few), tinyfuse.jit(softmax)(few)
    )


# --- numbers of steps that only a call knows ------------------------------------------------------


def test_steps_that_a_call_counts():
    def powers(x, n):
        total = 0.0
        for k in range(n):
            total = total * 0.5 + x[k % 4]
        return total

    emulated = tinyfuse.jit(powers, dynamic="n", target="cuda-emulated")
    for n in (0, 1, 7):
        np.testing.assert_array_equal(emulated(array(4), n), tinyfuse.jit(powers)(array(4), n))


def test_turns_that_a_call_counts_launch_kernels():
    def relaxed(x, n):
        for _ in range(n):
            x[1:-1] = 0.5 * (x[:-2] + x[2:])
        return x

    compiled = [
        tinyfuse.jit(relaxed, dynamic="n", target=target) for target in ("c", "cuda-emulated")
    ]
    for n in (0, 1, 4):
        expected, made = [each(array(10_000), n) for each in compiled]
        np.testing.assert_array_equal(made, expected)
    (program,) = compiled[1].lower(array(10_000), 4).cuda
    loops = [step for step in program.steps.body if isinstance(step, RepeatLaunches)]
    assert [program.buffers[each.counted].size for each in loops] == [1]


# --- the ladder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 20 * BATCH, BATCH))
def test_random_programs(first: int):
    seeds = range(first, first + BATCH)
    cases = [program_case(random_program(seed, effects=seed % 2 == 1)) for seed in seeds]
    Ladder((), lambda case: False, emulated_of=lambda case: True).climb(cases).check()


def test_example_programs():
    cases = [
        Case(each.function, each.arguments(), name, name != "batched")
        for name, each in OTHERS.items()
    ]
    Ladder((), lambda case: False, emulated_of=lambda case: True).climb(cases).check()


# --- vectors --------------------------------------------------------------------------------------


def test_elements_side_by_side_are_loaded_16_bytes_at_a_time():
    x, row = array(64, 512), array(512)
    lowered = tinyfuse.jit(lambda x, row: (x[:, 4:] + row[4:]) * 2).lower(x, row).on("cuda")
    report = run_program(lowered.cuda[0], flat([x, row]))
    (launch,) = report.launches
    sizes = sorted((each.array, each.kind, each.bytes) for each in launch.accesses)
    assert sizes == [("out", "write", 16), ("row", "read", 16), ("x", "read", 16)]
    np.testing.assert_array_equal(report.outputs[0].reshape(64, 508), (x[:, 4:] + row[4:]) * 2)


def test_elements_that_begin_elsewhere_are_loaded_one_by_one():
    x = array(64, 513)
    lowered = tinyfuse.jit(lambda x: x[:, 1:] * 2).lower(x).on("cuda")
    report = run_program(lowered.cuda[0], flat([x]))
    assert {each.bytes for each in report.launches[0].accesses} == {4}


def test_complex_arguments_are_emulated_too():
    def turned(z: Any) -> Any:
        z.imag[::2] = 1
        return np.fft.fft(z) * 1j

    z = np.arange(12) + 1j * np.arange(12)[::-1]
    emulated, compiled = z.copy(), z.copy()
    np.testing.assert_array_equal(
        tinyfuse.jit(turned, target="cuda-emulated")(emulated), tinyfuse.jit(turned)(compiled)
    )
    np.testing.assert_array_equal(emulated, compiled)
    assert (emulated.imag[::2] == 1).all()


# --- names ----------------------------------------------------------------------------------------


def sums(row: Any, step: Any, tx: Any) -> Any:
    return np.maximum(row @ step + tx, 0)


def turned(row: Any, column: Any, new: Any) -> Any:
    tile_0 = row.T
    return tile_0 + column.T * new


def shares(lane: Any, warp: Any, float4: Any) -> Any:
    partial_float = np.exp(lane - lane.max(axis=1, keepdims=True))
    return partial_float / partial_float.sum(axis=1, keepdims=True) * warp + float4


NAMED = {
    sums: (array(64, 40), array(40, 64), array(64)),
    turned: (array(64, 64), array(64, 64), np.float32(2)),
    shares: (array(64, 300), array(300), array(300)),
}


@pytest.mark.parametrize("function", NAMED, ids=lambda function: function.__name__)
def test_names_that_mean_something_in_the_text(function: Any):
    emulated = tinyfuse.jit(function, target="cuda-emulated")
    given = NAMED[function]
    np.testing.assert_array_equal(emulated(*given), tinyfuse.jit(function)(*given))


# --- integers -------------------------------------------------------------------------------------


def test_a_choice_of_an_element_or_a_short_literal_has_64_bits():
    x = np.array([2**62 + 5, -(2**62), 7])
    chosen = tinyfuse.jit(lambda x, m: np.where(m, x, 0), target="cuda-emulated")
    mask = np.array([True, True, False])
    np.testing.assert_array_equal(chosen(x, mask), [2**62 + 5, -(2**62), 0])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16"])
def test_sums_of_products_of_integers_wrap_around_by_the_text_itself(dtype: str):
    x = np.full((64, 64), np.iinfo(dtype).max, dtype)
    jitted = tinyfuse.jit(lambda x: x @ x, target="cuda-emulated")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(jitted(x), x @ x)
    bits = max(32, 8 * x.itemsize)
    assert f"({dtype}_t)((uint{bits}_t)tile_0" in jitted.lower(x).as_text("cuda")
