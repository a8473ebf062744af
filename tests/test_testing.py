"""What `tinyfuse.testing` offers to users: arrays, programs, comparison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from tinyfuse.dtypes import SUPPORTED, is_supported
from tinyfuse.graph import primitives as p
from tinyfuse.testing import (
    LAYOUTS,
    ArraySpec,
    Program,
    arrays,
    check_equivalence,
    difference,
    dtypes,
    programs,
    random_program,
    special_values,
    ulps,
)
from tinyfuse.testing.case import program_case
from tinyfuse.testing.choices import DrawnChoices, SeededChoices
from tinyfuse.testing.generate import CONSTRUCTS, EFFECTS, evaluate, perform
from tinyfuse.testing.half_constructs import halves
from tinyfuse.testing.memory import fresh
from tinyfuse.testing.program import (
    Expression,
    Statement,
    call,
    describe_value,
    effect,
    method,
    operator,
)
from tinyfuse.testing.values import draw_array, layouts_of

# --- choices --------------------------------------------------------------------------------------


def test_seeded_choices_are_a_function_of_the_seed():
    draws = [[SeededChoices(seed).below(1000) for _ in range(1)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_choices():
    zeros = DrawnChoices(lambda n: 0)
    assert zeros.choose("abc") == "a"
    assert zeros.chance(1, 2) is False
    assert zeros.subset("abc") == ()
    assert zeros.shuffled("abc") == ("a", "b", "c")
    assert sorted(SeededChoices(3).shuffled("abcd")) == list("abcd")


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_special_values(dtype: np.dtype):
    values = special_values(dtype)
    assert values.dtype == dtype
    if dtype.kind in "iu":
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1} <= set(values.tolist())
    if dtype.kind == "f":
        zeros = values[values == 0]
        assert (np.isnan(values).sum(), np.isinf(values).sum()) == (1, 2)
        assert set(np.signbit(zeros).tolist()) == {True, False}
        assert ((np.abs(values) < np.finfo(dtype).smallest_normal) & (values != 0)).any()


LAYOUT_FACTS = {
    "contiguous": lambda a: a.flags.c_contiguous,
    "read-only": lambda a: not a.flags.writeable and a.flags.c_contiguous,
    "misaligned": lambda a: not a.flags.aligned,
    "fortran": lambda a: a.flags.f_contiguous and not a.flags.c_contiguous,
    "reversed": lambda a: all(stride < 0 for stride in a.strides),
    "stepped": lambda a: a.strides[-1] == 3 * a.itemsize,
    "rolled axes": lambda a: a.strides[0] == a.itemsize,
    "inner": lambda a: not a.flags.c_contiguous and not a.flags.f_contiguous,
    "broadcast": lambda a: a.strides[0] == 0,
    "overlapping": lambda a: a.strides == (a.itemsize,) * a.ndim,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str):
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    laid_out = LAYOUTS[layout](array)
    assert (laid_out.shape, laid_out.dtype) == (array.shape, array.dtype)
    assert LAYOUT_FACTS[layout](laid_out)
    if layout not in ("broadcast", "overlapping"):
        np.testing.assert_array_equal(laid_out, array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 1)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_small_arrays(layout: str, shape: tuple[int, ...]):
    if layout in layouts_of(shape):
        assert LAYOUTS[layout](np.ones(shape)).shape == shape


@given(arrays())
def test_arrays(array: np.ndarray):
    assert is_supported(array.dtype)
    assert array.ndim <= 4


@given(arrays("int8", (2, 3), layouts=["reversed"]))
def test_arrays_of_a_kind(array: np.ndarray):
    assert (array.dtype, array.shape, array.strides) == (np.int8, (2, 3), (-3, -1))


@given(arrays(st.just("float32"), st.just(5), elements=st.floats(0, 1, width=32)))
def test_arrays_of_given_elements(array: np.ndarray):
    assert ((array >= 0) & (array <= 1)).all()


@pytest.mark.parametrize(
    "wanted",
    [
        lambda a: a.dtype.kind == "f" and np.isnan(a).any(),
        lambda a: a.dtype.kind == "f" and np.isinf(a).any(),
        lambda a: a.dtype.kind == "f" and (np.signbit(a) & (a == 0)).any(),
        lambda a: a.dtype == np.int64 and (a == np.iinfo(np.int64).min).any(),
        lambda a: not a.flags.aligned,
        lambda a: a.size > 1 and 0 in a.strides,
        lambda a: a.shape == (),
        lambda a: 0 in a.shape,
    ],
)
def test_arrays_that_occur(wanted):
    assert wanted(find(arrays(), wanted, settings=settings(max_examples=3000, database=None)))


@given(dtypes())
def test_dtypes(dtype: np.dtype):
    assert dtype in SUPPORTED


# --- programs -------------------------------------------------------------------------------------


def test_a_program_is_a_function_of_its_seed():
    first, again = random_program(11), random_program(11)
    assert str(first) == str(again)
    assert all(difference(a, again.arguments[name]) is None for name, a in first.arguments.items())


def statements(*pairs: tuple[str, Expression]) -> tuple[Statement, ...]:
    return tuple(Statement(target, expression, nested=True) for target, expression in pairs)


def test_source_of_a_program():
    program = Program(
        "by hand",
        {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "factor": 0.5},
        {"table": np.ones(3, np.int8)},
        statements(
            ("a", operator("{0} * {1}", "x", "factor")),
            ("b", operator("{0} + {1}", "a", "table")),
            ("c", method("{0}.sum(axis=0)", "b")),
            ("d", call("np.exp({0})", "c")),
            ("e", operator("{0} - {1}", "d", "d")),
        ),
        ("e", "d"),
    )
    assert str(program) == (
        "# by hand\n"
        "def program(x, factor):\n"
        "    # x: float32[2, 3]\n"
        "    # factor: float 0.5\n"
        "    # table: int8[3]\n"
        "    d = np.exp(((x * factor) + table).sum(axis=0))\n"
        "    e = d - d\n"
        "    return e, d\n"
    ).rstrip("\n")
    result, exponential = program()
    assert result.tolist() == [0, 0, 0]
    assert exponential.dtype == np.float32


def test_effects_in_the_source_of_a_program():
    """They stand in their place: what is inlined is not carried past a write."""
    program = Program(
        "by hand",
        {"x": np.arange(4)},
        {},
        statements(
            ("a", operator("{0} + 1", "x")),
            ("b", method("{0}[1:]", "x")),
            ("", effect("{0}[...] = 7", "x")),
            ("c", operator("{0} * {1}.sum()", "a", "b", by_layout="C")),
            ("d", operator("{0} + 1", "c")),
            ("", effect("{0} += {1}[1:]", "b", "d")),
        ),
        ("b",),
    )
    assert program.source == (
        "def program(x):\n"
        "    a = x + 1\n"
        "    b = x[1:]\n"
        "    x[...] = 7\n"
        "    b += ((a * b.sum()) + 1)[1:]\n"
        "    return b\n"
    )
    assert program().tolist() == program().tolist() == [50, 71, 92]
    assert program.arguments["x"].tolist() == [0, 1, 2, 3]
    assert program.compact()(np.arange(4)).tolist() == [50, 71, 92]


def test_perform():
    values = {"x": np.arange(3), "s": np.int64(1)}
    after = perform(effect("{0} += 1\n{target} = {0}[1:]", "s"), values | {"s": values["x"]}, "y")
    assert (after["s"] is values["x"], after["y"].tolist()) == (True, [2, 3])
    assert perform(effect("{0} += 1", "s"), values) == {"s": 2}
    with pytest.raises(IndexError):  # after the first element has been written
        perform(effect("np.add.at({0}, [0, 5], 1)", "x"), values)
    assert values["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fresh(layout: str):
    """Copies lie in memory like their originals, and share it like them."""
    x = LAYOUTS[layout](np.arange(12, dtype=np.float32).reshape(3, 4))
    first, again, part, other = fresh([x, x, x[1:], 5])
    assert (first.shape, first.strides, first.dtype) == (x.shape, x.strides, x.dtype)
    assert first.flags.num & ~4 == x.flags.num & ~4  # all but who owns the memory
    assert (first is again, other) == (True, 5)
    np.testing.assert_array_equal(first, x)
    assert np.shares_memory(first, part)
    assert not np.shares_memory(first, x)


@pytest.mark.parametrize("effects", [False, True])
def test_programs_run_without_raising_on_supported_dtypes(effects: bool):
    for seed in range(300):
        program = random_program(seed, effects=effects)
        results, again = program(), program()
        if not isinstance(results, tuple):
            results, again = (results,), (again,)
        for result, other in zip(results, again, strict=True):
            assert is_supported(result.dtype)
            assert difference(result, other) is None


def test_every_construct_occurs():
    sources = "".join(random_program(seed, effects=False).source for seed in range(600))
    wanted = [
        "@",
        "np.dot",
        "np.einsum",
        "np.pad",
        "np.where",
        "np.concatenate",
        "np.stack",
        "sliding_window_view",
    ]
    wanted += [
        ".astype(",
        ".reshape(",
        ".T",
        "np.transpose",
        "[::-1]",
        "None",
        "...",
        "keepdims=True",
        "axis=(",
    ]
    wanted += [
        ".mean(",
        "argmax",
        "argmin",
        ".any(",
        ".all(",
        ".prod(",
        "factor",
        "table",
        "np.divmod",
        "np.frexp",
    ]
    wanted += [
        "np.signbit",
        "np.copysign",
        "np.broadcast_to",
        "**",
        "//",
        "<<",
        "np.float32(1.5)",
        "return ",
    ]
    wanted += ["cumsum(", ".accumulate(", "np.sort(", "argsort(", "np.lexsort(", "np.median("]
    wanted += ["np.quantile(", "np.searchsorted(", "np.digitize(", "np.histogram("]
    assert [text for text in wanted if text not in sources] == []
    assert len(CONSTRUCTS) == 37


def test_short_rows_of_doubles_are_often_put_together():
    joins = [
        eqn.output.shape[-1]
        for seed in range(300)
        for eqn in program_case(random_program(seed)).trace.graph.eqns
        if eqn.primitive is p.concat
        and eqn.params["axis"] == len(eqn.output.shape) - 1
        and eqn.output.dtype == np.float64
    ]
    assert set(range(2, 9)) | {16} <= set(joins)
    assert sum(2 <= width <= 16 for width in joins) > 40
    assert joins.count(8) > 8


def test_every_effect_occurs():
    programs = [random_program(seed) for seed in range(900)]
    sources = "\n".join(program.source for program in programs)
    wanted = ["] = ", "] += ", ".T[", "][", "out=", "where=", "copyto", ".fill(", "[::-1] = "]
    wanted += [f" {symbol}= " for symbol in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<")]
    wanted += [".reshape(-1)[", ".ravel()", ".copy()", "np.empty", "np.zeros(", "np.full("]
    wanted += ["ids]", "rows", "np.add.at(", "np.maximum.at(", "np.take(", ".take(", "[mask"]
    wanted += ["take_along_axis", "put_along_axis", "== 2] = ", "np.arange(", "np.linspace("]
    wanted += ["np.eye(", "np.tri(", "zeros_like", "np.array([", "[:, None] >= np.arange(", "same"]
    wanted += ["np.nan", "np.insert(", "np.kron(", "np.put(", "np.putmask(", "(slice(None), ids,)"]
    wanted += [".sort("]
    assert [text for text in wanted if text not in sources] == []
    assert len(EFFECTS) == 37
    changed = [program for program in programs if program.writes]
    assert len(changed) > 350


def test_every_dtype_occurs():
    values = [value for seed in range(200) for value in random_program(seed).arguments.values()]
    found = {str(value.dtype) for value in values if isinstance(value, np.ndarray)}
    assert found == {str(dtype) for dtype in (*SUPPORTED, *halves())}


def test_programs_shrink():
    """To the one statement that matters, on a small array."""
    program = find(
        programs(effects=False),
        lambda program: "argmax" in program.source,
        settings=settings(max_examples=3000, database=None, derandomize=True),
    )
    assert len(program.source.splitlines()) <= 4, program
    assert all(np.size(value) <= 4 for value in program.arguments.values())


def test_programs_shrink_to_an_effect():
    """Others than the wanted one are left out."""
    program = find(
        programs(),
        lambda program: "] = " in program.source,
        settings=settings(max_examples=3000, database=None, derandomize=True),
    )
    assert len(program.source.splitlines()) <= 4, program


def test_evaluate_raises_what_numpy_raises():
    with pytest.raises(ValueError, match="could not be broadcast together"):
        evaluate(operator("{0} + {1}", "x", "y"), {"x": np.ones(2), "y": np.ones(3)})


def test_describe_value():
    assert describe_value(np.ones((2, 3), np.float32).T) == "float32[3, 2], strides (4, 12)"
    assert describe_value(np.int8(-3)) == "int8 scalar -3"
    assert describe_value(0.5) == "float 0.5"
    assert describe_value(LAYOUTS["read-only"](np.ones(2))) == "float64[2], read-only"


# --- comparison -----------------------------------------------------------------------------------

ONE = np.array([1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        (ONE, ONE.copy(), None),
        (np.array([np.nan]), np.array([-np.nan]), None),
        (np.float64(0.5), np.float64(0.5), None),
        (0.5, 0.5, None),
        (ONE, ONE.astype(np.float64), "expected float32[2], found float64[2]"),
        (ONE, ONE[None], "expected float32[2], found float32[1, 2]"),
        (np.float64(1), np.array(1.0), "expected a numpy scalar, found an array"),
        (np.float64(1), 1.0, "expected a numpy scalar, found a float"),
        (
            np.array([[0.0, -0.0]]),
            np.array([[0.0, 0.0]]),
            (
                "float64[1, 2] element [0, 1]: expected -0.0 (0x8000000000000000),"
                " found 0.0 (0x0000000000000000); 1 of 2 elements differ"
            ),
        ),
        (
            np.int8(-1),
            np.int8(1),
            "int8[] element []: expected -1 (0xff), found 1 (0x01); 1 of 1 elements differ",
        ),
        (
            ONE,
            np.nextafter(ONE, np.float32(3)),
            (
                "float32[2] element [0]: expected 1.0 (0x3f800000),"
                " found 1.0000001192092896 (0x3f800001); 2 of 2 elements differ"
            ),
        ),
    ],
)
def test_difference(expected, actual, message):
    assert difference(expected, actual) == message


def test_ulps():
    x = np.array([1.0, 0.0, np.inf, np.nan, 1e-45], np.float32)
    y = np.array([1.0000001, -0.0, np.finfo(np.float32).max, np.nan, -1e-45], np.float32)
    assert ulps(x, y).tolist() == [1, 0, 1, 0, 2]
    assert ulps(x[:1], x[3:4])[0] > 1e9


# --- check_equivalence ----------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_check_equivalence():
    report = check_equivalence(softmax, ArraySpec("float32", (3, 70)), examples=2, schedules=1)
    assert report.failures == []
    assert report.climbed["traced graph"] == 2
    assert report.climbed["fused C"] == 2
    assert report.climbed["C of random schedule 0, 2 threads"] == 2


def test_check_equivalence_with_arrays():
    def scaled(x, pair, factor):
        return {"sum": (x * factor).sum(), "shifted": pair[0] + x}

    report = check_equivalence(
        scaled, np.arange(5), (ArraySpec("int8", (5,)), 3), 0.5, examples=1, schedules=1
    )
    assert report.failures == []


def test_check_equivalence_fails(monkeypatch: pytest.MonkeyPatch):
    """With the place, both values and the source, where a level computes something else."""
    monkeypatch.setattr(
        "tinyfuse.testing.ladder.interpret_program",
        lambda stages, arrays, numerics: [arrays[0] * 0],
    )
    with pytest.raises(AssertionError) as caught:
        check_equivalence(softmax, np.zeros((1, 2), np.float32), schedules=0)
    assert str(caught.value).startswith(
        "stages: output 0: float32[1, 2] element [0, 0]: expected 0.5 (0x3f000000),"
        " found 0.0 (0x00000000); 2 of 2 elements differ\ndef softmax(x):\n    e = np.exp("
    )
    assert str(caught.value).endswith("# argument 0: float32[1, 2]")


def test_seeded_arrays():
    array = draw_array(SeededChoices(4), (2, 3), np.dtype("float32"))
    assert (array.shape, array.dtype) == ((2, 3), np.float32)
