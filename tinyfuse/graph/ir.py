"""Graphs: typed equations in the order they run, each defining one array from earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.records import dataclass

if TYPE_CHECKING:
    from tinyfuse.source import Source


@dataclass(frozen=True, eq=False, slots=True)
class Var:
    """An array value: defined once, as an input of the graph or as the output of an equation."""

    shape: tuple[int, ...]
    dtype: np.dtype
    name: str | None = None  # the user's variable that it was bound to, where known
    given: bool = False  # whether the user has asked for that very name
    constant: bool = False  # whether it is an input with the same elements at every call


@dataclass(frozen=True, eq=False, slots=True)
class Literal:
    """A scalar constant; where equations take arrays of one shape, it stands for a filled one."""

    value: np.generic

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype


Atom = Var | Literal


@dataclass(frozen=True, slots=True)
class Primitive:
    """A kind of equation. What it means stands in tables, one for each transformation."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Eqn:
    """`output, *others = primitive[params](*inputs)`; only loops and choices have others."""

    primitive: Primitive
    inputs: tuple[Atom, ...]
    params: Mapping[str, Any]
    output: Var
    source: Source | None = None
    others: tuple[Var, ...] = ()

    @property
    def outputs(self) -> tuple[Var, ...]:
        return (self.output, *self.others)


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """A function of arrays. Inputs are the arguments' arrays, then the captured ones."""

    name: str
    inputs: tuple[Var, ...]
    eqns: tuple[Eqn, ...]
    outputs: tuple[Atom, ...]
