"""Kernels that do the same to other arrays share one function: which do, and which must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_fusion import lowered
from tinyfuse.compilation import Lowered
from tinyfuse.errors import VerificationError
from tinyfuse.loops.printer import kernel_lines
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.records import replace
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stages

Two = Callable[[np.ndarray, np.ndarray], tuple[Any, ...]]

F32 = np.float32
X = np.linspace(-2, 3, 30, dtype=F32).reshape(5, 6)
Y = X[::-1] + F32(0.25)


def functions(program: Lowered) -> list[str]:
    return [kernel.function.name for kernel in program.loops.kernels]


def residual(x, weights):
    for weight in weights:
        x = x + np.tanh(x @ weight)
    return x


def test_layers_are_one_function_that_is_called_for_each() -> None:
    x = np.linspace(-1, 1, 640, dtype=F32).reshape(40, 16)
    weights = [np.eye(16, dtype=F32) * (number + 1) / 8 for number in range(9)]
    program = tinyfuse.jit(residual).lower(x, weights)
    assert len(program.kernels) == 9
    assert functions(program) == ["residual_x_1"] * 9
    text = program.as_text("c")
    assert text.count("void residual_x_1(") == 1
    assert text.count("  residual_x_1(") == 9
    assert "residual_x_2(" not in text
    assert text[text.index("; also called for") :].startswith(
        "; also called for x_2, x_3,\n//   x_4, x_5, x_6, x_7, x_8, x_9\n"
    )
    unfused = program.unfused().compile()(x, weights)
    np.testing.assert_array_equal(program.compile()(x, weights), unfused)
    report = str(tinyfuse.explain(residual, x, weights))
    assert report.count("  as residual_x_1, with ") == 8
    assert kernel_lines(program.kernels[1]) == [
        "kernel residual_x_2 computes matmul_1, tanh_2, x_2",
        "  as residual_x_1, with x_1 for x, weights_1 for weights_0, x_2 for x_1",
    ]


def test_each_caller_keeps_its_own_names_and_lines() -> None:
    def twice(x, y):
        rooted = np.sqrt(np.abs(x))
        other = np.sqrt(np.abs(y))
        return rooted, other

    program = lowered(twice, X, Y).unfused()
    again = [kernel for kernel in program.kernels if kernel.again]
    assert [kernel.stages for kernel in again] == [("absolute_1",), ("other",)]
    assert again[1].sources[0].statement == "other = np.sqrt(np.abs(y))"


def wide(x, y):
    return np.exp(x), np.exp(y)


def test_threads_share_the_steps_of_a_function_that_is_called_twice() -> None:
    x = np.linspace(-1, 1, 1 << 20, dtype=F32).reshape(1 << 10, -1)
    y = x[::-1] + F32(0.5)
    program = lowered(wide, x, y).unfused()
    assert len(set(functions(program))) == 1
    assert program.kernels[0].parallel
    text = program.as_text("c")
    assert text.count("tf_run(pool, ") == 2
    assert text.count("_task(void *const *buffers") == 1
    results = tinyfuse.jit(wide, fuse=False, threads=3)(x, y)
    for result, argument in zip(results, (x, y), strict=True):
        np.testing.assert_array_equal(result, tinyfuse.jit(np.exp, threads=1)(argument))


# --- which kernels are alike ----------------------------------------------------------------------

ALIKE: dict[str, Two] = {
    "names": lambda x, y: (np.sqrt(x), np.sqrt(y)),
    "operands in another order": lambda x, y: (x - y, y - x),
    "names of axes": lambda x, y: (x.sum(axis=1), y.sum(axis=1)),
    "nested": lambda x, y: (np.cumsum(x[:, ::-1], axis=1), np.cumsum(y[:, ::-1], axis=1)),
    "sorted": lambda x, y: (np.sort(x), np.sort(y)),
}

APART: dict[str, Two] = {
    "operation": lambda x, y: (np.exp(x), np.sqrt(y)),
    "dtype": lambda x, y: (np.exp(x), np.exp(y.astype(np.float64))),
    "result": lambda x, y: (x.astype(np.int32), y.astype(np.int64)),
    "constant": lambda x, y: (x * F32(0.5), y * F32(0.25)),
    "sign of zero": lambda x, y: (np.copysign(x, F32(0.0)), np.copysign(y, F32(-0.0))),
    "NaN": lambda x, y: (np.maximum(x, F32(np.nan)), np.maximum(y, F32(1))),
    "which operand": lambda x, y: (x - y, x - x),
    "shape": lambda x, y: (np.sqrt(x[:4]), np.sqrt(y)),
    "index": lambda x, y: (x[1:] + F32(1), y[:-1] + F32(1)),
    "direction": lambda x, y: (x[::-1] + F32(1), y[::-1, ::-1] + F32(1)),
    "remainder": lambda x, y: (
        np.tile(x, 2) + F32(1),
        np.repeat(y, 2, axis=1) + F32(1),
    ),
    "test": lambda x, y: (np.pad(x, 1), np.pad(y, ((2, 0), (1, 1)))),
    "reduced axis": lambda x, y: (x[:, :5].sum(axis=0), y[:, :5].sum(axis=1)),
    "start": lambda x, y: (x.max(axis=0, initial=0), y.max(axis=0, initial=1)),
    "scan": lambda x, y: (np.cumsum(x[:, :5], axis=0), np.cumsum(y[:, :5], axis=1)),
    "positions": lambda x, y: (np.argsort(x), np.sort(y)),
    "gather": lambda x, y: (x[[0, 2, 1]], y[:, [0, 2, 1]]),
    "layout": lambda x, y: (np.sqrt(x), np.sqrt(y.T)),
}


def names_of_functions(pair: Two) -> tuple[list[str], Lowered]:
    program = lowered(pair, X, Y).unfused()
    results = [output.name for output in program.stages.outputs]
    last = [k for k in program.loops.kernels if any(b.name in results for b in k.written)]
    return [kernel.function.name for kernel in last], program


@pytest.mark.parametrize("what", ALIKE)
def test_what_only_differs_in_names_is_one_function(what: str) -> None:
    names, program = names_of_functions(ALIKE[what])
    assert names == [names[0]] * 2
    same_bits(ALIKE[what], program)


@pytest.mark.parametrize("what", APART)
def test_what_differs_in_anything_else_is_not(what: str) -> None:
    names, program = names_of_functions(APART[what])
    assert len(set(names)) == 2
    same_bits(APART[what], program)


def same_bits(pair: Two, program: Lowered) -> None:
    """As each of the two computed alone, where there is nothing to share."""
    for number, result in enumerate(program.compile()(X, Y)):
        alone = tinyfuse.jit(lambda x, y, number=number: pair(x, y)[number], fuse=False)(X, Y)
        np.testing.assert_array_equal(result, alone)


DIRECTIVES: dict[str, Callable[[Schedule, Any], Schedule]] = {
    "split": lambda s, stage: s.split(stage, stage.axes[1], 2),
    "parallel": lambda s, stage: s.parallel(stage, stage.axes[0]),
    "reorder": lambda s, stage: s.reorder(stage, *stage.axes[::-1]),
    "vectorize": lambda s, stage: s.vectorize(stage, stage.axes[1]),
    "layout": lambda s, stage: s.layout(stage, *stage.axes[::-1]),
}


def stored(x, y):
    first, second = np.exp(x), np.exp(y)
    return first.sum(axis=1), second.sum(axis=1)


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_what_is_scheduled_otherwise_is_not_alike(directive: str) -> None:
    def schedule(stages: Stages) -> Schedule:
        first = next(stage for stage in stages.stages if stage.name == "first")
        return DIRECTIVES[directive](Schedule(stages), first)

    plain = tinyfuse.jit(stored, schedule=Schedule).lower(X, Y)
    changed = tinyfuse.jit(stored, schedule=schedule).lower(X, Y)
    assert len(set(functions(plain))) < len(plain.loops.kernels) == len(changed.loops.kernels)
    own = {kernel.name: kernel.function.name for kernel in changed.loops.kernels}
    assert own["stored_second"] != "stored_first"
    for mine, other in zip(plain.compile()(X, Y), changed.compile()(X, Y), strict=True):
        np.testing.assert_array_equal(mine, other)


# --- what the verifier refuses --------------------------------------------------------------------


def test_what_verify_loops_refuses() -> None:
    loops = lowered(wide, X, Y).unfused().loops
    first, second = loops.kernels
    assert second.again is first
    verify_loops(loops)
    x, out = second.parameters
    wrong = {
        "writes an input": {"parameters": (out, x), "written": frozenset([x])},
        "is given an array twice": {"parameters": (out, out)},
        "has a body of its own": {"body": (*second.body, *second.body)},
        "is of another type": {"parameters": (replace(x, dtype=np.dtype("i4")), out)},
        "writes {<buffer": {"written": frozenset([x, out])},
    }
    for message, changes in wrong.items():
        with pytest.raises(VerificationError, match=message):
            verify_loops(replace(loops, kernels=(first, replace(second, **changes))))
    with pytest.raises(VerificationError, match="calls a function that comes later"):
        verify_loops(replace(loops, kernels=(second, first)))
