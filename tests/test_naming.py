"""tinyfuse.name: stages have the names that the user's code gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse import errors
from tinyfuse.executable import simplified_in_parts
from tinyfuse.graph.ir import Eqn, Graph, Var
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.testing import difference, program_case, random_program
from tinyfuse.testing.compiled import Library

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def names(function: Any, *args: Any) -> list[str]:
    lowered = tinyfuse.jit(function).lower(*args)
    return [stage.name for stage in lowered.stages.stages]


def test_a_named_value_has_that_name_in_all_texts() -> None:
    @tinyfuse.jit
    def f(x: Any) -> Any:
        e = tinyfuse.name(np.exp(x), "weights")
        return e / e.sum()

    lowered = f.lower(X)
    stage = next(stage for stage in lowered.stages.stages if stage.name == "weights")
    assert stage.named
    for level in ("graph", "stages", "schedule", "loops", "c"):
        assert "weights" in lowered.as_text(level), level
    assert f(X).tobytes() == tinyfuse.jit(f.__wrapped__, fuse=False)(X).tobytes()


def test_a_name_goes_before_that_of_the_variable() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        tinyfuse.name(y, "doubled")
        return y + 1

    assert names(f, X) == ["doubled", "out"]


def test_the_last_name_of_a_value_counts() -> None:
    assert names(lambda x: tinyfuse.name(tinyfuse.name(x + 1, "a"), "b"), X) == ["b"]


def test_a_name_survives_simplification() -> None:
    def merged(x: Any) -> Any:
        first = np.exp(x)
        second = tinyfuse.name(np.exp(x), "asked_for")
        return first * 2, second + 1

    def converted(x: Any) -> Any:
        y = x + 1
        return tinyfuse.name(y.astype(np.float32), "same_dtype") * 2

    def seen(x: Any) -> Any:
        y = x + 1
        return np.sum(tinyfuse.name(y.T, "turned"), axis=1)

    assert names(merged, X)[:1] == ["asked_for"]
    assert names(converted, X) == ["same_dtype", "out"]
    assert names(seen, X)[0] == "turned"


def test_of_two_names_of_one_value_the_first_counts() -> None:
    def f(x: Any) -> Any:
        return tinyfuse.name(np.exp(x), "a") * 2, tinyfuse.name(np.exp(x), "b") + 1

    assert names(f, X) == ["a", "out", "out_1"]


def test_names_are_made_unique() -> None:
    def f(x: Any) -> Any:
        same = np.sqrt(x)
        first = tinyfuse.name(same + 1, "same")
        second = tinyfuse.name(first * first, "same")
        return tinyfuse.name(second * 3, "x")

    assert names(f, X) == ["same_2", "same", "same_1", "x_1"]
    lines = str(tinyfuse.jit(f).lower(X).graph).splitlines()[1:-2]
    assert [line.split(":")[0].strip() for line in lines] == ["same_2", "same", "same_1", "x_1"]


def test_what_is_written_in_place_keeps_its_name() -> None:
    def f(x: Any) -> Any:
        total = tinyfuse.name(np.zeros(4, np.float32), "total")
        for row in x:
            total += row
        return total

    assert [name for name in names(f, X) if name.startswith("total")][:1] == ["total"]


def test_arguments_captured_arrays_and_numbers_can_be_named() -> None:
    table = np.ones(4, np.float32)

    def f(x: Any, a: Any) -> Any:
        return tinyfuse.name(x, "image") * tinyfuse.name(table, "weights") + tinyfuse.name(a, "b")

    lowered = tinyfuse.jit(f).lower(X, 2.0)
    assert [stage.name for stage in lowered.stages.inputs] == ["image", "b", "weights"]


def test_outside_of_tracing_the_array_comes_back() -> None:
    assert tinyfuse.name(X, "image") is X
    scalar = np.float32(1)
    assert tinyfuse.name(scalar, "s") is scalar
    assert tinyfuse.name(2, "n") == 2
    with tinyfuse.disable_jit():
        assert tinyfuse.jit(lambda x: tinyfuse.name(x, "image"))(X) is X


def test_a_view_that_is_named_stays_a_view() -> None:
    @tinyfuse.jit
    def f(x: Any) -> Any:
        row = tinyfuse.name(x[1], "row")
        row[:] = 0
        return tinyfuse.name(x, "x_after")

    x = X.copy()
    assert f(x) is x
    assert not x[1].any()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (3, errors.ArgumentTypeError, "tinyfuse.name takes a name as a string, not a int"),
        *[
            (text, errors.StageNameError, f"{text!r} is no C identifier (letters, digits and _)")
            for text in ("blur x", "", "2d", "größe", "a-b", "x\n")
        ],
        *[
            (
                text,
                errors.StageNameError,
                f"{text!r} is a word of C or of its library: write {text}_ or another",
            )
            for text in ("double", "exp", "float32", "scratch")
        ],
        *[
            (
                text,
                errors.StageNameError,
                f"{text!r} begins as names do that C or tinyfuse keep for themselves",
            )
            for text in ("__x", "_X", "tf_exp")
        ],
    ],
)
def test_a_name_is_a_c_identifier(text: Any, error: type[Exception], message: str) -> None:
    def named(x: Any) -> Any:
        return tinyfuse.name(x, text)

    for call in (named, tinyfuse.jit(named).lower):
        with pytest.raises(error) as caught:
            call(X)
        assert str(caught.value).split("\n")[0] == message
        assert "return tinyfuse.name(x, text)" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda x: [x], "list"), (lambda x: (x, x), "tuple"), (lambda x: "x", "str")],
)
def test_only_arrays_have_names(make: Any, kind: str) -> None:
    def named(x: Any) -> Any:
        return tinyfuse.name(make(x), "parts")

    for call in (named, tinyfuse.jit(named).lower):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            call(X)
        message = f"tinyfuse.name takes an array, not a {kind}: name its parts"
        assert str(caught.value).split("\n")[0] == message


class Keeper:
    """Keeps what passes by, unseen by tracing."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def keep(self, x: Any) -> Any:
        self.seen.append(x)
        return x


def test_a_leaked_value_cannot_be_named() -> None:
    keeper = Keeper()
    tinyfuse.jit(lambda x: keeper.keep(x + 1))(X)
    with pytest.raises(errors.LeakedTracerError):
        tinyfuse.name(keeper.seen[0], "late")


def with_names(graph: Graph) -> Graph:
    """The graph with a name asked for of every computed value."""
    new: dict[Any, Any] = {}
    for at, eqn in enumerate(graph.eqns):
        new[eqn.output] = Var(eqn.output.shape, eqn.output.dtype, f"named_{at}", True)
    eqns = []
    for eqn in graph.eqns:
        inputs = tuple([new.get(atom, atom) for atom in eqn.inputs])
        eqns.append(Eqn(eqn.primitive, inputs, eqn.params, new[eqn.output], eqn.source))
    outputs = tuple([new.get(atom, atom) for atom in graph.outputs])
    return Graph(graph.name, graph.inputs, tuple(eqns), outputs)


def lowered(graph: Graph, name: str) -> Loops:
    graph = simplified_in_parts(Graph(name, graph.inputs, graph.eqns, graph.outputs))
    return lower(default_schedule(build_stages(graph), REFERENCE)[0], REFERENCE)


def test_names_change_neither_fusion_nor_bits() -> None:
    cases = [program_case(random_program(seed)) for seed in range(60)]
    graphs = [case.trace.graph for case in cases]
    plain = [lowered(graph, f"f{at}") for at, graph in enumerate(graphs)]
    named = [lowered(with_names(graph), f"f{at}") for at, graph in enumerate(graphs)]
    found = 0
    libraries = Library(plain), Library(named)
    for case, *programs in zip(cases, plain, named, strict=True):
        stages = [[kernel.stages for kernel in program.kernels] for program in programs]
        assert [list(map(len, kernels)) for kernels in stages[:1]] == [
            list(map(len, kernels)) for kernels in stages[1:]
        ]
        found += sum("named_" in name for kernel in stages[1] for name in kernel)
        results = [
            library.run(program, case.arrays)
            for library, program in zip(libraries, programs, strict=True)
        ]
        for one, other in zip(*results, strict=True):
            assert difference(one, other) is None
    assert found > 300, found
