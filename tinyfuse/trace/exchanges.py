"""Names that exchange what they have: `found` tells whose value each has after a turn."""

from __future__ import annotations

import math
from collections.abc import Mapping


def comes_back(start: int, found: Mapping[int, int | None]) -> bool:
    """Whether an array goes from name to name until the first has it again."""
    at = found[start]
    for _ in found:
        if at is None or at == start:
            break
        at = found[at]
    return at == start


def end_of(start: int, found: Mapping[int, int | None]) -> int:
    """The name whose array comes to another one in the end."""
    at = start
    for _ in found:
        following = found.get(at)
        if following is None:
            break
        at = following
    return at


def order_of(tied: Mapping[int, int]) -> int:
    """After how many turns all names have their own arrays again."""
    order = 1
    for start in tied:
        length, at = 1, tied[start]
        while at != start:
            length, at = length + 1, tied[at]
        order = math.lcm(order, length)
    return order
