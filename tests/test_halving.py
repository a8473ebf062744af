"""Rows of lanes halved to their sum: one statement of loops, one function of the prelude."""

from __future__ import annotations

import platform
import re
import subprocess
from typing import Any

import numpy as np
import pytest

from tests.graphs import GraphBuilder, PlainNumerics
from tests.test_emit import kernels_of
from tests.test_lower import lowered
from tinyfuse.emit.c import emit_c
from tinyfuse.errors import VerificationError
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import HalveRow, Loops, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.records import replace
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.stage.build import build_stages
from tinyfuse.testing.compiled import Library

FLAGS = [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]


def row_sums(dtype: Any, rows: int = 5, columns: int = 64, op: str = "sum") -> Loops:
    build = GraphBuilder(f"{op}s")
    x = build.input("x", rows, columns, dtype=dtype)
    return lowered(build_stages(build.graph(build.reduce(op, x, 1))))


def halvings(loops: Loops) -> list[HalveRow]:
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    return [statement for statement in statements if isinstance(statement, HalveRow)]


def test_a_row_of_lanes_reads_as_one_statement() -> None:
    loops = row_sums(np.float32)
    assert loops_text(loops).splitlines()[-3:] == [
        "        out_lanes[l] = out_lanes_acc[0]",
        "      halve 64 elements of out_lanes[0…] to their sum",
        "      out[i] = out_lanes[0]",
    ]
    assert "    tf_halve_64_float(out_lanes);\n    out[i] = out_lanes[0];\n" in kernels_of(
        emit_c(loops).text
    )
    assert loops.kernels[0].cost.flops == 5 * (64 + 63)


@pytest.mark.parametrize(
    ("dtype", "columns", "op", "expected"),
    [
        (np.float64, 64, "sum", 1),
        (np.float32, 3000, "sum", 1),
        (np.float32, 63, "sum", 1),
        (np.float32, 31, "sum", 0),  # one after the other
        (np.float32, 100, "prod", 0),
        (np.int32, 100, "sum", 0),
        (np.float32, 100, "max", 0),
    ],
)
def test_what_is_halved_so(dtype: Any, columns: int, op: str, expected: int) -> None:
    assert len(halvings(row_sums(dtype, 5, columns, op))) == expected


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lanes", [32, 64])
def test_the_same_bits_as_in_rounds(lanes: int, dtype: Any, flags: tuple[str, ...]) -> None:
    loops = row_sums(dtype, 300, lanes)
    random = np.random.default_rng(3)
    x = random.standard_normal((300, lanes)).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 4], dtype)
    x[100:200][random.random((100, lanes)) < 0.02] = special[2]
    x[200:] = random.choice(special, (100, lanes))
    expected = x + dtype(0)
    with np.errstate(invalid="ignore"):
        while expected.shape[1] > 1:
            half = expected.shape[1] // 2
            expected = expected[:, :half] + expected[:, half:]
    for found in (
        interpret_loops(loops, [x.reshape(-1)], PlainNumerics())[0],
        Library([loops], flags).run(loops, [x])[0],
    ):
        np.testing.assert_array_equal(found, expected[:, 0])
        assert (np.signbit(found) == np.signbit(expected[:, 0]))[~np.isnan(found)].all()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"extent": 16}, "out_lanes cannot be halved as a row"),
        ({"shift": 1}, r"out_lanes\[64\] runs from 64 to 64, of 64 elements"),
    ],
)
def test_the_verifier_knows_what_can_be_halved(fault: dict[str, int], message: str) -> None:
    loops = row_sums(np.float32)
    verify_loops(loops)
    (kernel,), (node,) = loops.kernels, halvings(loops)
    position = node.row.position + fault.get("shift", 0)
    broken = HalveRow(replace(node.row, position=position), fault.get("extent", node.extent))
    (loop,) = kernel.body
    body = tuple(broken if statement is node else statement for statement in loop.body)
    kernel = replace(kernel, body=(replace(loop, body=body),))
    with pytest.raises(VerificationError, match=message):
        verify_loops(replace(loops, kernels=(kernel,)))


def assembly(loops: Loops, march: str) -> str:
    compiler = find_compiler()
    if compiler.kind != "gcc" or platform.machine() != "x86_64":
        pytest.skip("counted in what gcc writes for x86-64")
    command = [*compiler.command, *compiler.arguments((f"-march={march}",)), "-S", "-o-", "-xc"]
    text = emit_c(loops).text
    run = subprocess.run([*command, "-"], input=text, capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("columns", [127, 65, 64, 63, 48, 33, 32])
def test_lanes_stay_in_vectors(columns: int, march: str) -> None:
    """Counted in what gcc writes: only the last addition is of single elements, in two copies."""
    text = assembly(row_sums(np.float32, columns=columns), march)
    assert len(re.findall(r"\bv?addss\b", text)) <= 2


@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v3"])
@pytest.mark.parametrize("columns", [33, 63, 65, 127, 129, 191])
def test_a_last_turn_of_one_lane_or_of_all_but_one_is_of_vectors(columns: int, march: str) -> None:
    """Counted in what gcc writes: the elements that there are, loaded as a part of a vector."""
    text = assembly(row_sums(np.float32, columns=columns), march)
    assert len(re.findall(r"\bvmov[au]ps\s.*\{%k|\bvmaskmovps\b", text)) == 1


@pytest.mark.parametrize("columns", [33, 63, 65, 127, 129])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_which_lanes_a_last_turn_leaves_alone(op: str, columns: int) -> None:
    loops = row_sums(np.float32, 40, columns, op)
    x = np.random.default_rng(3).standard_normal((40, columns)).astype(np.float32)
    x[20:, -1] = np.nan  # is to reach one lane of those rows, and nothing of others
    expected = interpret_loops(loops, [x.reshape(-1)], PlainNumerics())[0]
    assert np.isnan(expected).tolist() == [False] * 20 + [True] * 20
    for flags in FLAGS:
        np.testing.assert_array_equal(Library([loops], flags).run(loops, [x])[0], expected)
