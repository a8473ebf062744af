"""einsum of one or two operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.creation import supported_dtype
from tinyfuse.trace.diagonals import diagonal
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.linear_algebra import contract, scalar_if_0d
from tinyfuse.trace.operations import broadcast, cast, reduce, traced, transpose, type_text
from tinyfuse.trace.tracer import Tracer


@listed(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Tracer:
    """Of more than two operands, the products of two, from the left."""
    dtype, casting = options.pop("dtype", None), options.pop("casting", "safe")
    for name, value in options.items():
        if (name, value) not in [("order", each) for each in (None, "K", "C")]:
            raise errors.UnsupportedArgumentError(
                f"np.einsum(..., {name}=) is not supported: leave it out"
            )
    subscripts, arrays = _subscripts(operands)
    terms, result = _parse(subscripts, arrays)
    to = supported_dtype(np.result_type(*[x.dtype for x in arrays]) if dtype is None else dtype)
    arrays = _stretched([_converted(x, to, casting) for x in arrays], terms, subscripts)
    while len(arrays) > 2:
        rest = "".join([*terms[2:], result])
        kept = "".join([label for label in dict.fromkeys(terms[0] + terms[1]) if label in rest])
        arrays = [_product(arrays[:2], terms[:2], kept), *arrays[2:]]
        terms = [kept, *terms[2:]]
    return _product(arrays, terms, result)


def _converted(x: Tracer, dtype: np.dtype, casting: Any) -> Tracer:
    if not np.can_cast(x.dtype, dtype, casting):
        raise errors.DtypeError(
            f"Cannot cast array data from {x.dtype!r} to {dtype!r} according to the rule "
            f"'{casting}'"
        )
    return cast(x, dtype)


def _product(arrays: Sequence[Tracer], terms: Sequence[str], result: str) -> Tracer:
    """Of one or two operands. terms, result: a label for each axis."""
    pairs = [_diagonal(x, term) for x, term in zip(arrays, terms, strict=True)]
    terms = [term for _, term in pairs]
    reduced = [
        _sum_lonely(x, term, result, [*terms[:at], *terms[at + 1 :]])
        for at, (x, term) in enumerate(pairs)
    ]
    if len(reduced) == 1:
        x, term = reduced[0]
        return scalar_if_0d(transpose(x, [term.index(label) for label in result]))
    (a, lhs), (b, rhs) = reduced
    numbers = {label: at for at, label in enumerate(dict.fromkeys(lhs + rhs))}
    left, right, kept = [tuple([numbers[each] for each in part]) for part in (lhs, rhs, result)]
    return contract(a, b, left, right, kept, "einsum")


def _diagonal(x: Tracer, term: str) -> tuple[Tracer, str]:
    """The elements where axes of one label have one index, with each label once."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            others = [each for at, each in enumerate(term) if at not in (first, second)]
            term = "".join([*others, label])
    return x, term


def _subscripts(operands: Sequence[Any]) -> tuple[str, list[Tracer]]:
    if not isinstance(operands[0], str):
        raise errors.UnsupportedArgumentError(
            "np.einsum with lists of labels is not supported: write the subscripts as a string"
        )
    return operands[0].replace(" ", ""), [traced(x) for x in operands[1:]]


def _parse(subscripts: str, arrays: Sequence[Tracer]) -> tuple[list[str], str]:
    """Labels for the axes of each operand and of the result; `...` becomes labels of its own."""
    inputs, arrow, result = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        more = "more" if len(terms) < len(arrays) else "fewer"
        raise errors.InvalidArgumentError(
            f"{more} operands provided to einstein sum function than specified in the subscripts "
            "string"
        )
    broadcast_axes = [
        x.ndim - len(term.replace("...", "")) if "..." in term else 0
        for x, term in zip(arrays, terms, strict=True)
    ]
    dots = "".join([chr(0x100 + at) for at in range(max(broadcast_axes))])
    terms = [
        term.replace("...", dots[len(dots) - count :])
        for term, count in zip(terms, broadcast_axes, strict=True)
    ]
    if not arrow:
        labels = "".join(terms)
        once = [
            label for label in sorted(set(labels)) if labels.count(label) == 1 and label not in dots
        ]
        result = dots + "".join(once)
    result = result.replace("...", dots)
    _require_labels(subscripts, terms, result, arrays)
    return terms, result


def _require_labels(
    subscripts: str, terms: list[str], result: str, arrays: Sequence[Tracer]
) -> None:
    for at, (term, x) in enumerate(zip(terms, arrays, strict=True)):
        if len(term) != x.ndim:
            few = len(term) < x.ndim
            words = (
                "operand has more dimensions than subscripts given in einstein sum, but no '...' "
                "ellipsis provided to broadcast the extra dimensions."
                if few
                else f"einstein sum subscripts string contains too many subscripts for operand {at}"
            )
            raise errors.InvalidArgumentError(f"{words} ({subscripts!r}, {type_text(x)})")
    for label in result:
        if result.count(label) > 1:
            raise errors.InvalidArgumentError(
                f"einstein sum subscripts string includes output subscript '{label}' multiple times"
            )
        if not any(label in term for term in terms):
            raise errors.InvalidArgumentError(
                f"einstein sum subscripts string included output subscript '{label}' which never "
                "appeared in an input"
            )


def _stretched(arrays: list[Tracer], terms: list[str], subscripts: str) -> list[Tracer]:
    """Axes of size 1 broadcast to the size that their label has elsewhere."""
    extents: dict[str, int] = {}
    for x, term in zip(arrays, terms, strict=True):
        for label, extent in zip(term, x.shape, strict=True):
            known = extents.get(label, 1)
            if extent not in (1, known) and known != 1:
                types = ", ".join(map(type_text, arrays))
                raise errors.ShapeError(
                    f"operands could not be broadcast together: np.einsum({subscripts!r}) of "
                    f"{types}, label '{label}' is both {known} and {extent}"
                )
            extents[label] = max(known, extent) if extent else 0
    return [
        broadcast(x, tuple([extents[label] for label in term]))
        for x, term in zip(arrays, terms, strict=True)
    ]


def _sum_lonely(x: Tracer, term: str, result: str, others: list[str]) -> tuple[Tracer, str]:
    """Sum over the labels that no other operand and not the result has."""
    lonely = [
        at
        for at, label in enumerate(term)
        if label not in result and not any(label in o for o in others)
    ]
    if not lonely:
        return x, term
    kept = "".join([label for at, label in enumerate(term) if at not in lonely])
    return reduce("sum", x, lonely, x.dtype), kept


@listed(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """numpy's own answer: it goes by shapes alone."""
    stand_ins = [
        np.broadcast_to(np.float64(0), each.shape) if type(each) is Tracer else each
        for each in operands
    ]
    return np.einsum_path(*stand_ins, optimize=optimize, einsum_call=einsum_call)  # type: ignore
