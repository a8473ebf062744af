"""trace, lower, compile: what can be looked at on the way."""

from __future__ import annotations

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import ScheduleError, SignatureMismatchError
from tinyfuse.lower.lower import lower
from tinyfuse.schedule.schedule import Schedule

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@tinyfuse.jit
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@tinyfuse.jit
def scaled(x, a, n=2):
    y = x * a
    return y**n, x


def test_a_graph_prints_what_the_function_does():
    assert str(tinyfuse.make_graph(lambda x, a: x * a + x)(X, 2.5)) == (
        "lambda(x: float32[3, 4], a: float64[]) {\n"
        "  cast: float32[] = cast a\n"
        "  broadcast: float32[3, 4] = broadcast cast\n"
        "  multiply: float32[3, 4] = multiply x broadcast\n"
        "  add: float32[3, 4] = add multiply x\n"
        "  return add\n"
        "}"
    )
    assert tinyfuse.make_graph(softmax)(X).name == "softmax"
    assert tinyfuse.make_graph(softmax).__name__ == "softmax"


def test_traced():
    traced = scaled.trace(X, 1.5)
    assert traced.name == "scaled"
    assert repr(traced) == "<traced scaled(float32[3, 4], float, n=2)>"
    assert traced.as_text() == str(traced.graph)
    assert [var.name for var in traced.graph.inputs] == ["x", "a"]
    np.testing.assert_array_equal(traced.lower().compile()(X, 1.5)[0], (X * np.float32(1.5)) ** 2)


def test_lowered_has_a_text_at_each_level():
    lowered = softmax.lower(X)
    assert lowered.as_text() == lowered.as_text("c") == lowered.compile().as_text()
    first_lines = {
        level: lowered.as_text(level).splitlines()[0]
        for level in ("graph", "stages", "schedule", "loops")
    }
    assert first_lines["graph"] == "softmax(x: float32[3, 4]) {"
    assert all("softmax" in text or "max" in text for text in first_lines.values())
    assert "// e = np.exp(x - x.max(axis=-1, keepdims=True))" in lowered.as_text("c")
    with pytest.raises(ValueError) as raised:
        lowered.as_text("hlo")
    levels = "graph, stages, schedule, loops, c, cuda"
    assert str(raised.value) == f"there is no level 'hlo', only {levels}"


def test_what_a_lowered_program_costs():
    lowered = tinyfuse.jit(lambda x: (x + 1) * x).lower(X)
    (kernel,) = lowered.kernels
    assert lowered.cost == {kernel.name: kernel.cost}
    assert (kernel.cost.flops, kernel.cost.bytes_read, kernel.cost.bytes_written) == (24, 48, 48)
    assert lowered.scratch_bytes == 0
    assert lowered.packs == ()
    assert [decision.action for decision in lowered.decisions] == ["inline", "store"]
    assert repr(lowered) == "<lowered lambda(float32[3, 4]), 1 kernels>"


def test_unfused_stores_everything_and_gives_the_same_bits():
    fused, unfused = softmax.lower(X), softmax.lower(X).unfused()
    assert len(unfused.kernels) > len(fused.kernels)
    result = fused.compile()(X)
    assert result.tobytes() == unfused.compile()(X).tobytes()
    assert result.tobytes() == tinyfuse.jit(softmax.__wrapped__, fuse=False)(X).tobytes()
    assert result.tobytes() == tinyfuse.jit(softmax.__wrapped__, threads=2)(X).tobytes()


def test_a_schedule_of_ones_own():
    f = tinyfuse.jit(lambda x: (x + 1) * 2, schedule=Schedule)
    lowered = f.lower(X)
    assert len(lowered.kernels) == 2
    assert lowered.decisions == ()
    assert lowered.schedule == Schedule(lowered.stages)
    np.testing.assert_array_equal(f(X), (X + 1) * 2)

    def wrong(stages):
        schedule = Schedule(stages)
        (total,) = stages.outputs
        return schedule.inline(total)

    with pytest.raises(ScheduleError, match="it is an output, which has to be stored"):
        tinyfuse.jit(lambda x: x + 1, schedule=wrong)(X)


def test_shapes_can_stand_for_arrays():
    spec = tinyfuse.ShapeDtypeStruct([3, 4], "float32")
    assert repr(spec) == "ShapeDtypeStruct((3, 4), float32)"
    assert softmax.lower(spec).as_text() == softmax.lower(X).as_text()
    compiled = softmax.lower(spec).compile()
    np.testing.assert_allclose(compiled(X).sum(axis=-1), 1, rtol=1e-6)


def test_compiled_takes_arguments_of_its_types_only():
    compiled = scaled.lower(X, 1.5).compile()
    assert repr(compiled) == "<compiled scaled(float32[3, 4], float, n=2), 1 kernels>"
    squares, same = compiled(X, a=2.0)
    np.testing.assert_array_equal(squares, (X * 2) ** 2)
    assert same is X
    with pytest.raises(SignatureMismatchError) as raised:
        compiled(X[:2], 2, 3)
    assert str(raised.value) == (
        "scaled was compiled for (float32[3, 4], float, n=2), not for (float32[2, 4], a=2, n=3); "
        "what differs:\n"
        "  x: float32[2, 4], was float32[3, 4]\n"
        "  a: 2, was float\n"
        "  n: 3, was 2"
    )
    assert (compiled.kernels, compiled.cost) == (compiled.lowered.kernels, compiled.lowered.cost)
    assert compiled.schedule == compiled.lowered.schedule
    assert (compiled.decisions, compiled.packs) == (compiled.lowered.decisions, ())
    assert compiled.scratch_bytes == 0


def test_compiled_for_the_value_of_a_float():
    f = tinyfuse.jit(lambda x, a: x + 1 if a > 1 else x - 1)
    compiled = f.lower(X, 2.0).compile()
    np.testing.assert_array_equal(compiled(X, 2.0), X + 1)
    with pytest.raises(SignatureMismatchError, match=r"a: 0\.5, was 2\.0"):
        compiled(X, 0.5)
    np.testing.assert_array_equal(compiled(X, 2.0), X + 1)


def test_compiled_for_a_captured_array():
    table = np.ones(4)
    compiled = tinyfuse.jit(lambda x: x + table).lower(X).compile()
    table = np.arange(4.0)
    np.testing.assert_array_equal(compiled(X), X + table)
    table = np.ones(1)
    with pytest.raises(SignatureMismatchError) as raised:
        compiled(X)
    assert str(raised.value) == (
        "lambda was compiled for other arrays: the captured table: float64[1], was float64[4]"
    )


def test_stages_of_a_method():
    class Model:
        def __init__(self, weight):
            self.weight = weight

        @tinyfuse.jit
        def scale(self, x):
            return x * self.weight

    model = Model(X)
    assert repr(model.scale.lower(X)) == (
        "<lowered scale(self.weight=float32[3, 4], float32[3, 4]), 1 kernels>"
    )
    assert [var.name for var in model.scale.trace(X).graph.inputs] == ["self_weight", "x"]
    assert model.scale.explain_miss(X).endswith("there is no program in memory yet.")
    assert str(tinyfuse.make_graph(model.scale)(X)).startswith("scale(self_weight: float32[3, 4]")


def test_a_faulty_schedule_of_the_planner_is_not_used(caplog, monkeypatch):
    def broken(schedule, machine):
        if any(plan.inlined for plan in schedule.places.plans.values()):
            raise ScheduleError("inline(add): planted")
        return lower(schedule, machine)

    monkeypatch.setattr("tinyfuse.lower.program.lower", broken)
    lowered = tinyfuse.jit(lambda x: x * 2 + 1).lower(X)
    assert [str(decision.action) for decision in lowered.decisions] == ["store", "store"]
    assert caplog.messages == [
        "lambda is not fused: the planner made a schedule that is refused (inline(add): planted)"
    ]
