"""Random programs of nested Python loops: writes at the places of indices, rebinding, exchanges,
views and second names of arrays, numbers that are counted, jumps and slices that data or a dynamic
argument decides."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tinyfuse.errors import (
    BoolConversionError,
    InPlaceWriteError,
    NumberConversionError,
    ShapeError,
)
from tinyfuse.testing.case import Case

EXTENT = 5

_INDICES = (
    "{i}",
    "{i}",
    "{i} - 1",
    "4 - {i}",
    "({i} + 1) % 5",
    "({i} * {j}) % 5",
    "-1",
    "2",
    "k % 5",
    "T % 5",
)
_SCALARS = (
    *("A[{p}, {q}]", "B[{p}, {q}]", "v[{p}]", "w[{p}]", "s", "0.5", "k", "{i}", "v.sum()", "T"),
    *(
        "C[{p}].sum()",
        "np.sqrt(abs(s))",
        "e",
        "e * 0.5",
        "r[{p}]",
        "n[{p}]",
        "np.float32({i})",
        "{i} * 0.25",
    ),
)
_ROWS = (
    *("A[{p}]", "B[{p}, :]", "A[:, {p}]", "C[:, {p}]", "v", "w", "v * 0.5", "r", "t"),
    *("A[{p}] * 0.5 + w", "np.zeros(5) + s", "v[::-1]", "C[{p}] - v", "np.arange(5.0) * {i}"),
)
_ARRAYS = ("A", "B", "C", "A * 0.5", "B.T", "A + B", "np.outer(v, w) * 0.1", "C.copy()", "A - s")
_STATEMENTS = (
    *("s = {scalar}", "s += {scalar}", "s = s * 0.5 + {scalar}", "k += 1", "k = (k * 3 + {i}) % 7"),
    *("k = {i}", "w[{p}] = {scalar}", "v[{p}] += {scalar}", "n[{p}] += k", "r[{p}] = {scalar}"),
    *(
        "v = {row}",
        "w = ({row}) + 0.5",
        "v += {row}",
        "v[1:] = ({row} + 0)[:-1]",
        "w *= 0.5",
        "t = {row}",
    ),
    *(
        "A[{p}] = ({row} + 0)",
        "B[{p}, :] = ({row} + 0)",
        "A[:, {p}] = ({row} + 0)",
        "C[:, {p}] = ({row}) * 0.5",
    ),
    *("A[{p}, {q}] = {scalar}", "B[{p}, {q}] += {scalar}", "C[{p}, 1:-1] = ({row} + 0)[:3]"),
    *("A[1:-1, {p}] = ({row} + 0)[1:-1]", "A[1:-1, 1:-1] = B[:-2, 1:-1] * 0.5 + C[2:, 1:-1]"),
    *(
        "B[1:, :] = ({array} + 0)[:-1, :]",
        "A, B = B, A",
        "v, w = w, v",
        "A = {array}",
        "C = {array}",
    ),
    *("B *= 0.5", "a2 = {array}", "t2 = A[{p}]\nt2[{q}] = {scalar}", "A[{p}] += {row}"),
    *("C = B", "v = A[{p}]", "s, k = s * 0.5, k + 1", "if {i} % 2 == 0:\n    w[{p}] = {scalar}"),
    *("if s > 1:\n    v = v * 0.5", "if v[{p}] > 0:\n    n[{q}] += 1\nelse:\n    k = k + 1"),
    *("v[:{i}] += w[:{i}] * 0.5", "w[{i}:] = v[{i}:] + s", "A[{p}, :{i}] = B[:{i}, {q}] * 0.5"),
    *("w[:{i}] = np.flip(v[:{i}])", "s = s * 0.5 + (v[:{i}] * A[{p}, :{i}]).sum()"),
    *("C[{p}] = np.where(v > w, v, w)", "A[{p}, {q}:] = v[{q}:] + 0"),
    *("w[1 : {i} + 1] = w[:{i}] * 0.5", "A[{p}, 1 : {i} + 1] += A[{p}, :{i}]"),
    *("v[:{i}] = v[:{i}] + s", "n[{p}] = np.argmax(v[: {i} + 1])", "w[:{i}] = np.cumsum(v[:{i}])"),
    *("s = s * 0.5 + A[{p}, {i}:].max() - v[: {i} + 1].min()", "w[{i}:T] = v[{i}:T] * 0.5"),
    "s = s * 0.25 + np.prod(v[{i}:]) + B[:{i}, {q}].mean()",
    *("w[{p}] = (A[{p}, :{i}] > s).any() + np.all(v[{i}:])", "v[:T] += w[:T] * 0.5", "k = T"),
    "r[:{i}] = np.where(v[:{i}] > 0, 1.0, r[:{i}])",
    *("v[{i}::2] += s", "w[:{i}:2] = v[:{i}:2] * 0.5", "v[{i}::-1] = w[{i}::-1] + 0", "s = s + T"),
    *("s = s * 0.5 + v[{i}::-2].sum()", "w[::T % 3 + 1] *= 0.5", "r[T::-1] = A[{p}, T::-1] + s"),
    "s = s * 0.5 + np.max(v[{i}:T], initial=s) + A[{p}, T : {i} : -1].sum(initial=0.5)",
)
# What data decides: jumps, the ends of slices and of ranges.
_DECIDED = (
    *("if {scalar} > 1:\n    break", "if {scalar} < 0:\n    continue", "if k > 4:\n    break"),
    *("if v[{p}] > w[{q}]:\n    s = s + 1\n    break", "if {scalar} > 2:\n    return {results}"),
    "if {scalar} > 0:\n    if {scalar} < 1:\n        continue\n    w[{p}] = {scalar}",
    "if {scalar} > 1:\n    {statement}\n    continue\nelse:\n    k += 1",
    "if {scalar} > 0:\n    for y in range(3):\n        w[y] += {scalar}",
    "m = 0\nwhile m < 4 and {scalar} < 1:\n    m += 1\n    {statement}",
    "m = 0\nwhile True:\n    m += 1\n    {statement}\n    if m > 3 or {scalar} > 1:\n        break",
    *("s = s * 0.5 + v[d[{p}]:d[{q}]].sum()", "w[{p}] = A[{q}, d[{p}]:d[{q}]] @ v[d[{p}]:d[{q}]]"),
    *("v[d[{p}]:d[{q}]] += s", "v[d[{p}]:d[{q}]] = w[d[{p}]:d[{q}]] * 0.5", "v[: d[{p}]] = s"),
    "s = s * 0.5 + (r[d[{p}] :] * w[n[d[{p}] :] % 5]).sum()",
    *("v[1 : d[{p}]] = v[: d[{p}] - 1] + s", "w[: d[{p}]] = np.cumsum(v[: d[{p}]]) * 0.25"),
    *("s = s * 0.5 + v[d[{p}] :].min()", "n[{p}] = v[: d[{p}] + 1].argmin()"),
    *("v[d[{p}] :] += w[-1:]", "w[: d[{p}]] = A[1, : d[{q}]]", "v[T:] = w[d[{p}] :] + k"),
    "s = s * 0.5 + v[d[{p}] : d[{p}] + 2] @ w[d[{q}] : d[{q}] + 2]",
    "A[{p}, : d[{q}]] = np.maximum(A[{p}, : d[{q}]], np.arange(5)[: d[{q}]] * v[{p}])",
    "for y in range(T):\n    w[y % 5] += s\n    {statement}",
    "for y in range(T, -1, -1):\n    v[y % 5] = v[y % 5] * 0.5 + w[T % 5]",
    "if T > {i}:\n    {statement}",
    "for y in range(d[{p}]):\n    w[y] = w[y] * 0.5 + v[y]",
    "for y in range(d[{p}]):\n    if v[y] > s:\n        break\nelse:\n    k += 1",
    "y = 2\nfor y in range(T):\n    {statement}\nk = (k + y) % 7",
    "y = k\nfor y in range(4, T, -1):\n    if v[y] > s:\n        break\nk = (k + y) % 7",
)
RESULTS = "A, B, C, v, w, n, s, k, r, a2, t, o0, o1, o2"
_BEFORE = (
    *("r = A[1]", "r = v", "r = np.zeros(5)", "a2 = B", "a2 = C", "t = w", "C = A", "C = B.copy()"),
    *("w = np.zeros(5)", "n = np.arange(5)", "v = v + 1", "w = np.ones(5) * s"),
)
# What a list gets, and what is done with it after the loop that has filled it.
_APPENDED = (
    *("v", "v", "w", "t", "v * 0.5", "A[{p}]", "A[{p}] + w", "C[:, {p}] * 2", "v.copy()", "s", "k"),
    *("{i}", "e", "(v, s)", "[k, w + 1]", "r", "A", "B.T", "v[1:] * 0.5"),
)
_AFTER_LIST = (
    *("v = {o}[-1] + 0", "{o}[-1][2] = s", "{o}[0][1] = 7.0", "v[1] = 9.0", "w = {o}[0]"),
    *("s = s + len({o})", "w = sum({o})", "C = np.stack({o})", "t = np.array({o})[-1]"),
    *("{o}.append(v)", "for x in {o}:\n    w = w + x", "w[0] = 5.0", "a2 = {o}[1:]"),
)


class LoopProgram:
    """A function of two matrices, a vector and a dynamic integer, and what to call it with."""

    def __init__(self, seed: int, longest: int = 5) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.longest = longest
        lines = ["s = 0.0", "k = 1", "n = np.arange(5)", "w = np.zeros(5)", "C = A.copy()"]
        lines += ["r = A[2]", "a2 = B", "t = v", "t2 = v", "e = 0.5", "o0 = o1 = o2 = []"]
        lines += ["d = (v * 4).astype(int) % 6"]
        for _ in range(self.random.randrange(3)):
            lines.append(self.random.choice(_BEFORE))
        for _ in range(self.random.choice((1, 1, 2))):
            lines += self._loop([])
        lines.append(f"return {RESULTS}")
        body = "".join([f"    {line}\n" for text in lines for line in text.splitlines()])
        self.source = f"def program(A, B, v, T):\n{body}"

    def _loop(self, around: list[str]) -> list[str]:
        variable = ("i", "j", "l")[len(around)]
        made, appended, after = self._list(variable, around)
        head = self._head(variable, around)
        lines = [*made, f"for {head}:"]
        inside = [*around, variable]
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 4))):
            if len(inside) < 3 and self.random.random() < 0.2:
                lines += [f"    {line}" for line in self._loop(inside)]
            else:
                lines += [f"    {line}" for line in self._statement(inside).splitlines()]
        lines += [f"    {line}" for line in appended]
        if self.random.random() < 0.4:
            lines += [f"    {line}" for line in self._decided(inside).splitlines()]
        if self.random.random() < 0.3:
            lines += [f"    {line}" for line in self._statement(inside).splitlines()]
        if self.random.random() < 0.1:
            lines += ["else:", *[f"    {x}" for x in self._statement(around or ["2"]).splitlines()]]
        return [*lines, *after]

    def _list(self, variable: str, around: list[str]) -> tuple[list[str], list[str], list[str]]:
        """What stands before a loop, in it, and after it, for a list that it appends to; often
        nothing."""
        if self.random.random() < 0.6:
            return [], [], []
        name, inside = f"o{len(around)}", [*around, variable]
        first = self.random.choice(("", "", "v", "w + 1"))
        value = self._filled(self.random.choice(_APPENDED), inside)
        after = [self.random.choice(_AFTER_LIST).format(o=name) for _ in range(2)]
        after = [line for text in after for line in text.splitlines()]
        return [f"{name} = [{first}]"], [f"{name}.append({value})"], after

    def _head(self, variable: str, around: list[str]) -> str:
        """What a loop binds, and what it goes through."""
        start = self.random.choice((0, 0, 0, 1, 2))
        stop = self.random.randint(start + 1, self.longest)
        kind = self.random.randrange(12)
        if around and kind < 4:
            outer = self.random.choice(around)
            ends = (f"{outer}", f"{outer} + 1, {stop}", f"{stop}, {outer}, -1", f"1, {outer}, 2")
            numbers = f"range({self.random.choice(ends)})"
            return f"{variable} in " + (f"reversed({numbers})" if kind == 3 else numbers)
        if kind < 7:
            more = (
                "e in enumerate({})",
                "e in zip(range(5), {})",
                "e in zip(range(4, -1, -1), {})",
            )
            values = self.random.choice(("v", "w", "r"))
            return f"{variable}, " + self.random.choice(more).format(values)
        if kind == 11 and self.random.random() < 0.6:  # as many as only a call knows
            ends = ("T", "T % 5", "min(T, 5)", "1, T, 2", "4, T, -1", "T % 4, 5", "T % 3, T, 3")
            return f"{variable} in range({self.random.choice(ends)})"
        if kind == 7:
            return f"{variable} in reversed(range({start}, {stop}))"
        if kind == 8:
            return f"{variable} in range({stop - 1}, {start - 1}, -1)"
        step = self.random.choice(("", "", "", ", 2"))
        return f"{variable} in range({start}, {stop}{step})"

    def _statement(self, indices: list[str]) -> str:
        return self._filled(self.random.choice(_STATEMENTS), indices)

    def _decided(self, indices: list[str]) -> str:
        template = self.random.choice(_DECIDED).replace("{results}", RESULTS)
        at = next((line for line in template.splitlines() if "{statement}" in line), "")
        inner = self._statement(indices).splitlines()
        indent = at[: len(at) - len(at.lstrip())]
        return self._filled(template.replace("{statement}", f"\n{indent}".join(inner)), indices)

    def _filled(self, template: str, indices: list[str]) -> str:
        for hole, choices in (("{scalar}", _SCALARS), ("{row}", _ROWS), ("{array}", _ARRAYS)):
            while hole in template:
                template = template.replace(hole, self.random.choice(choices), 1)
        for hole in ("{p}", "{q}"):
            while hole in template:
                template = template.replace(hole, self.random.choice(_INDICES), 1)
        for hole in ("{i}", "{j}"):
            while hole in template:
                template = template.replace(hole, self.random.choice(indices), 1)
        return template

    @property
    def arguments(self) -> tuple[Any, ...]:
        generator = np.random.default_rng(self.seed)
        shapes = ((EXTENT, EXTENT), (EXTENT, EXTENT), (EXTENT,))
        arrays = [generator.integers(-4, 5, shape) / 4 for shape in shapes]
        return *arrays, int(generator.integers(-2, 7))

    @property
    def function(self) -> Callable[..., Any]:
        file = f"<loop program {self.seed}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.source, file, "exec"), namespace)
        made: Callable[..., Any] = namespace["program"]
        made.__name__ = f"program_{self.seed}"  # many are compiled together
        return made

    def __str__(self) -> str:
        return f"# loop program {self.seed}\n{self.source}"


def loop_case(seed: int) -> Case | None:
    """A program that numpy runs, and that tinyfuse does not refuse for what data decides. Nor is a
    number in it one of Python's where one of numpy's comes from other turns or parts."""
    program = LoopProgram(seed)
    case = Case(program.function, program.arguments, str(program), dynamic=("T",))
    try:
        _ = case.expected
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
        return None
    try:
        _ = case.trace
    except (BoolConversionError, InPlaceWriteError, NumberConversionError):
        return None
    except ShapeError:  # of turns and branches that do not run
        jumps = any(word in program.source for word in ("break", "continue", "while", "if"))
        if jumps or program.source.count("return") > 1:
            return None
        raise
    at = RESULTS.split(", ").index("s")
    is_either = type(case.expected[at]) is float and case.trace.outputs[at].is_scalar
    return None if is_either else case
