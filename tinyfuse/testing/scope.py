"""What a construct sees of the program that it adds an expression to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.dtypes import is_complex, is_half
from tinyfuse.testing.choices import Choices

Array = np.ndarray | np.generic


@dataclass(slots=True)
class Scope:
    """The values of a program under construction, by name.

    They are what a run has made of copies of the arguments so far: effects run on them.
    """

    choices: Choices
    values: dict[str, Any]
    largest: int  # number of elements that no value may exceed
    bound: frozenset[str] = frozenset()  # names that the function must not bind anew
    given: tuple[Any, ...] = ()  # the caller's arrays: copies of the arguments and captured ones
    composed: bool = True  # whether there may be what is computed otherwise than numpy does
    exact: bool = True  # whether there is nothing of that

    def array(self, accept: Callable[[Array], bool] = lambda value: True) -> str:
        """A name of an accepted array or numpy scalar, preferably a recent one; no 16-bit floats,
        and no complex numbers."""
        return self.any_array(lambda value: not _is_apart(value.dtype) and accept(value))

    def any_array(self, accept: Callable[[Array], bool]) -> str:
        """The same, those included."""
        names = [name for name, value in self.values.items() if is_array(value) and accept(value)]
        if not names:
            raise NotApplicable
        index = min(self.choices.below(len(names)), self.choices.below(len(names)))
        return names[-1 - index]

    def writable(self, accept: Callable[[np.ndarray], bool] = lambda value: True) -> str:
        """A name of an array that can be written."""
        return self.array(
            lambda value: isinstance(value, np.ndarray) and value.flags.writeable and accept(value)
        )

    def compose(self) -> None:
        """Note that numpy's bits can no longer be expected, where that is allowed."""
        if not self.composed:
            raise NotApplicable
        self.exact = False

    def raise_to_power(self, symbol: str, base: str) -> None:
        """Note a power of a numpy scalar: numpy computes those otherwise than powers of arrays."""
        if symbol == "**" and isinstance(self.values[base], np.generic):
            self.compose()

    def partner(self, name: str, accept: Callable[[Array], bool] = lambda value: True) -> str:
        """A name of an array that broadcasts with the named one."""
        shape = self.values[name].shape
        return self.array(
            lambda value: broadcasts(shape, value.shape, self.largest) and accept(value)
        )


def _is_apart(dtype: np.dtype) -> bool:
    """Whether only constructs of their own take such arrays."""
    return is_half(dtype) or is_complex(dtype)


class NotApplicable(Exception):  # noqa: N818
    """A construct finds no operands."""


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def broadcasts(first: tuple[int, ...], second: tuple[int, ...], largest: int) -> bool:
    """Whether two shapes broadcast to one of at most so many elements."""
    size = 1
    for position in range(1, max(len(first), len(second)) + 1):
        a = first[-position] if position <= len(first) else 1
        b = second[-position] if position <= len(second) else 1
        if a != b and a != 1 and b != 1:
            return False
        size *= b if a == 1 else a
    return size <= largest
