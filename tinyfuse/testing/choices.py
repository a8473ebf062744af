"""Where a random construction takes its choices from: a seed, or hypothesis, which shrinks them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Answers to "which of n?". Smaller answers mean simpler things, for shrinking."""

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1."""
        raise NotImplementedError

    def choose(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, favourable: int, total: int) -> bool:
        """True in `favourable` of `total` cases; False is the simpler answer."""
        return self.below(total) >= total - favourable

    def subset(self, options: Sequence[T]) -> tuple[T, ...]:
        return tuple(option for option in options if self.below(2))

    def shuffled(self, options: Sequence[T]) -> tuple[T, ...]:
        rest, result = list(options), []
        while rest:
            result.append(rest.pop(self.below(len(rest))))
        return tuple(result)


class SeededChoices(Choices):
    """Choices that are a function of a seed; cheap, for runs of thousands."""

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)


class DrawnChoices(Choices):
    """Choices that hypothesis draws, by a function that draws an integer from 0 to `n - 1`."""

    def __init__(self, draw_below: Callable[[int], int]):
        self._draw_below = draw_below

    def below(self, n: int) -> int:
        return self._draw_below(n) if n > 1 else 0
