"""Identifiers of stages and axes."""

from __future__ import annotations

import keyword
import subprocess

import pytest

from tests.graphs import GraphBuilder
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.names import RESERVED, AxisNames, Names, identifier


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x", "x"),
        ("x_1", "x_1"),
        ("_", "u"),
        ("__", "u"),
        ("_x", "_x"),
        ("_X", "u_X"),
        ("__x", "u_x"),
        ("_0", "u_0"),
        ("2d", "u_2d"),
        ("", "u"),
        ("tf_max", "u_tf_max"),
        ("<lambda>", "lambda"),
        ("α", "alpha"),
        ("Δx", "Deltax"),
        ("λ_0", "lambda_0"),
        ("ς", "sigma"),
        ("naïve", "naive"),
        ("ﬁt", "fit"),
        ("温度", "u6e29u5ea6"),
        ("a b", "a_b"),
    ],
)
def test_identifiers(text, name):
    assert identifier(text) == name


def test_every_reserved_word_is_an_identifier_that_is_not_handed_out():
    names = Names()
    assert all(identifier(word) == word for word in RESERVED)
    assert all(names.fresh(word) == f"{word}_1" for word in sorted(RESERVED))


@pytest.mark.parametrize(
    "word",
    ["int", "restrict", "exp", "y0", "j1f", "gamma", "main", "NULL", "pool", "int8_t", "new"],
)
def test_words_that_mean_something_in_c_are_reserved(word):
    assert word in RESERVED


def test_names_are_handed_out_once():
    names = Names()
    given = [names.fresh(text) for text in ("x", "x", "x_1", "x", "exp", "exp", "é", "e")]
    assert given == ["x", "x_1", "x_1_1", "x_2", "exp_1", "exp_2", "e", "e_1"]


def test_many_values_of_one_name():
    names = Names()
    assert [names.fresh("x") for _ in range(3000)][-1] == "x_2999"


def test_axes_are_i_j_k_then_numbered():
    axes = AxisNames(Names())
    assert axes.kept(0) == ()
    assert axes.kept(3) == ("i", "j", "k")
    assert axes.kept(4) == ("i0", "i1", "i2", "i3")
    assert axes.reduced(("i", "j", "k"), 2) == ["l", "m"]
    assert axes.reduced((), 1) == ["k"]
    assert axes.special("l", "lane", ()) == "l"


def test_axes_avoid_the_names_of_stages():
    names = Names()
    for name in ("i", "k", "l", "lane", "i2"):
        names.fresh(name)
    axes = AxisNames(names)
    assert axes.kept(3) == ("j", "m", "n")
    assert axes.kept(4) == ("m0", "m1", "m2", "m3")  # j0 is a function of the C library
    assert axes.reduced(("j",), 2) == ["m", "n"]
    assert axes.special("l", "lane", ()) == "lane_1"
    assert axes.special("b", "block", ("b",)) == "block"


def test_axes_where_every_letter_is_taken():
    names = Names()
    for letter in "ijklmnopqrstuvwxyz":
        names.fresh(letter)
    axes = AxisNames(names)
    assert axes.kept(2) == ("axis0", "axis1")
    assert axes.reduced(("axis0",), 2) == ["axis1", "axis2"]


def test_a_value_is_called_after_the_view_that_has_a_name():
    g = GraphBuilder()
    x = g.input("x", 3, 4)
    g.reshape(g.reduce("max", x, 1), 3, 1, name="largest")
    g.slice(g.op("exp", x), (slice(0, 1), slice(None)), name="first")
    stages = build_stages(g.graph(g.op("negative", x)))
    assert [(stage.name, stage.named) for stage in stages.stages] == [
        ("largest_rank", False),
        ("largest", True),
        ("exp_1", False),
        ("out", False),
    ]


def test_names_of_users_come_before_names_of_operations():
    g = GraphBuilder()
    x = g.input("x", 3)
    g.op("add", x, x)
    g.op("add", x, x, name="add")
    g.op("add", x, x, name="x")
    stages = build_stages(g.graph(g.op("add", x, x, name="out"), g.op("add", x, x)))
    assert [stage.name for stage in stages.stages] == ["add_1", "add", "x_1", "out", "out_1"]


def test_gcc_takes_the_names_that_users_could_choose():
    words = [*keyword.kwlist, *dir(__builtins__), *sorted(RESERVED), "α", "_", "__init__", "tf_x"]
    names = Names()
    declared = "".join(
        [f"  double {names.fresh(word)} = 0;\n" for word in words if word.isidentifier()]
    )
    text = f"#include <math.h>\n#include <stdlib.h>\nvoid f(void) {{\n{declared}}}\n"
    command = ["gcc", "-std=c11", "-Wshadow", "-Werror", "-Wno-unused", "-fsyntax-only", "-xc", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
