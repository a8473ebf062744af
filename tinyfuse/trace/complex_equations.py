"""Equations on complex numbers: those that have no meaning on parts, and what casts lose."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.dtypes import BOOL, is_complex
from tinyfuse.errors import UnsupportedDtypeError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Primitive
from tinyfuse.source import Source

LOOKED_AT = frozenset((p.cast, p.cumulative, p.reduce, p.scatter))
_ADDING = ("add", "subtract", "set")
_REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")


def look_at_complex(
    primitive: Primitive,
    atoms: tuple[Atom, ...],
    params: Mapping[str, Any],
    dtype: np.dtype,
    source: Source | None,
) -> None:
    """Raises UnsupportedDtypeError for what is not computed; warns as numpy where parts are lost.

    primitive: one of `LOOKED_AT`.
    """
    if not (is_complex(dtype) or any(is_complex(atom.dtype) for atom in atoms)):
        return
    op = params.get("op")
    if primitive is p.cast:
        if not (is_complex(dtype) or dtype == BOOL):
            _warn_of_loss(source)
    elif primitive is p.reduce:
        if op not in _REDUCTIONS:
            _refuse(f"np.{op}.reduce")
    elif op not in _ADDING:
        _refuse(f"np.{op}.{'accumulate' if primitive is p.cumulative else 'at'}")


def _refuse(what: str) -> None:
    raise UnsupportedDtypeError(
        f"{what} of complex numbers is not supported: write a loop over the elements"
    )


def _warn_of_loss(source: Source | None) -> None:
    """numpy's warning, once, when the function is traced."""
    warnings.warn_explicit(
        "Casting complex values to real discards the imaginary part",
        np.exceptions.ComplexWarning,
        source.file if source else "<traced>",
        source.line if source else 1,
    )
