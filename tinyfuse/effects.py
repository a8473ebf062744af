"""What has to be true of a call's arrays so that a program may write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tinyfuse.errors import InvalidArgumentError, OverlapError
from tinyfuse.graph.ir import Var
from tinyfuse.memory import layout, near_pairs, overlaps_itself, same_memory, share_elements
from tinyfuse.signature import Signature, StaleError
from tinyfuse.source import here
from tinyfuse.trace import Trace
from tinyfuse.trace.builder import place_text

Pair = tuple[int, int]


class Requirements:
    """What a program relies on beside the types of its arrays.

    It writes some of them, which may not be read-only and not overlap others; and tracing has used
    which of them are the same, and how some lie in memory.
    """

    __slots__ = (
        *("_function", "_given", "_layouts", "_messages", "_names", "_of_c_order", "_places"),
        *("_same", "_written"),
    )

    def __init__(self, trace: Trace, place_of: Mapping[Var, int], signature: Signature) -> None:
        inputs = trace.graph.inputs
        given = [
            name
            for name, spec in zip(signature.names, signature.specs, strict=True)
            if spec.kind != "static"
        ]
        self._function = trace.graph.name
        self._given = len(given)
        names = [*given, *[var.name or "an array" for var in inputs[len(given) :]]]
        self._places = [place_of[var] for var in inputs]
        self._names = names
        at = {var: at for at, var in enumerate(inputs)}
        self._written = frozenset([at[each.input] for each in trace.written])
        self._messages = [(place_of[each.input], each.message) for each in trace.written]
        self._same = _same_pairs(trace)
        self._layouts = _layouts(trace, at)
        self._of_c_order = all(
            expected == _layout_in_c_order(inputs[at]) and 0 not in inputs[at].shape
            for at, expected in self._layouts
        )

    @property
    def any(self) -> bool:
        """Whether there is anything to be checked at a call."""
        return bool(self._messages or self._same or self._layouts)

    @property
    def met_in_c_order(self) -> bool:
        """Whether all arrays being in C order is all that matters."""
        return self._of_c_order and not (self._messages or self._same)

    def check(self, args: Sequence[Any]) -> None:
        """Raises InvalidArgumentError, OverlapError, and StaleError if it is to be traced again."""
        for place, message in self._messages:
            if not args[place].flags.writeable:
                raise InvalidArgumentError(message)
            if overlaps_itself(args[place]):
                raise self._overlap(self._words_about_itself(place))
        arrays = [args[place] for place in self._places]
        for at, expected in self._layouts:
            array = arrays[at]
            if layout(array.shape, array.strides, array.itemsize) != expected:
                raise StaleError(f"{self._names[at]} lies in memory in another order")
        if self._written or self._same:
            self._check_pairs(list(map(_as_array, arrays)))

    def _check_pairs(self, arrays: Sequence[np.ndarray]) -> None:
        for i, j in self._same:
            if not same_memory(arrays[i], arrays[j]):
                raise StaleError(self._words(i, j, "are no longer the same array"))
        for i, j in near_pairs(arrays, self._written):
            if (i, j) in self._same:
                continue
            if same_memory(arrays[i], arrays[j]):
                if max(i, j) >= self._given:
                    raise self._overlap(self._words_about_captured(min(i, j), max(i, j)))
                raise StaleError(self._words(i, j, "are the same array"))
            if share_elements(arrays[i], arrays[j]):
                raise self._overlap(self._words_about_overlap(i, j))

    def _overlap(self, words: str) -> OverlapError:
        return OverlapError(f"{self._function}(): {words}{place_text(here())}")

    def _words(self, i: int, j: int, what: str) -> str:
        return f"{self._names[i]} and {self._names[j]} {what}"

    def _words_about_captured(self, i: int, j: int) -> str:
        return (
            f"the captured {self._names[j]} is also given as {self._names[i]}, and the function "
            f"writes it: pass a copy, {self._names[i]}.copy()"
        )

    def _words_about_overlap(self, i: int, j: int) -> str:
        written = i if i in self._written else j
        other = j if written == i else i
        return (
            f"{self._names[written]}, which the function writes, shares a part of its memory with "
            f"{self._names[other]}: pass a copy of one of them, as in {self._names[other]}.copy()"
        )

    def _words_about_itself(self, place: int) -> str:
        name = self._names[self._places.index(place)]
        return (
            f"{name}, which the function writes, has several elements in one place of memory: pass "
            f"a copy, {name}.copy()"
        )


def _as_array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else np.zeros(0)  # scalars have no memory


def _same_pairs(trace: Trace) -> frozenset[Pair]:
    """Pairs of inputs whose arrays tracing took for the same."""
    groups: dict[int, list[int]] = {}
    position = 0
    for at, spec in enumerate(trace.specs):
        if spec.kind == "static":
            continue
        groups.setdefault(at if spec.alias is None else spec.alias, []).append(position)
        position += 1
    return frozenset([pair for group in groups.values() for pair in combinations(group, 2)])


def _layouts(trace: Trace, at: Mapping[Var, int]) -> list[tuple[int, tuple[int, ...]]]:
    given = [spec.strides for spec in trace.specs if spec.kind != "static"]
    strides = [*given, *[found.array.strides for found in trace.captured]]
    return [
        (
            at[var],
            layout(var.shape, given_strides, var.dtype.itemsize)
            if (given_strides := strides[at[var]])
            else _layout_in_c_order(var),
        )
        for var in trace.layouts
        if var in at and var.shape  # one element lies in any order
    ]


def _layout_in_c_order(var: Var) -> tuple[int, ...]:
    return layout(var.shape, _in_c_order(var), var.dtype.itemsize)


def _in_c_order(var: Var) -> tuple[int, ...]:
    return np.lib.stride_tricks.as_strided(np.zeros(1, var.dtype), var.shape).strides
