"""Constructs that change shapes: views, joins, reductions and contractions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import FLOAT64
from tinyfuse.testing.choices import Choices
from tinyfuse.testing.program import Expression, call, method, operator
from tinyfuse.testing.scope import NotApplicable, Scope


def _has_axes(value: np.ndarray | np.generic) -> bool:
    return value.ndim > 0


def _factors(choices: Choices, size: int) -> tuple[int, ...]:
    """A random shape with so many elements."""
    shape: list[int] = []
    rest = size
    while rest > 1 and len(shape) < 3 and choices.below(3):
        divisors = [d for d in range(2, min(rest, 64) + 1) if rest % d == 0]
        if not divisors:
            break
        shape.append(choices.choose(divisors))
        rest //= shape[-1]
    if rest != 1 or not shape:
        shape.append(rest)
    if choices.chance(1, 6):
        shape.insert(choices.below(len(shape) + 1), 1)
    return choices.shuffled(shape)


def reshape(scope: Scope) -> Expression:
    x = scope.array()
    value = scope.values[x]
    shape = list(
        _factors(scope.choices, value.size) if value.size else scope.choices.shuffled(value.shape)
    )
    if value.size and shape and scope.choices.chance(1, 3):
        shape[scope.choices.below(len(shape))] = -1
    text = ", ".join(map(str, shape))
    forms = (method(f"{{0}}.reshape({text})", x), call(f"np.reshape({{0}}, {tuple(shape)})", x))
    return scope.choices.choose(forms)


def transpose(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    rank = scope.values[x].ndim
    axes = scope.choices.shuffled(range(rank))
    first, second = scope.choices.below(rank), scope.choices.below(rank) - rank
    forms = (
        method("{0}.T", x),
        method(f"{{0}}.transpose({', '.join(map(str, axes))})", x),
        call(f"np.transpose({{0}}, {axes})", x),
        call(f"np.swapaxes({{0}}, {first}, {second})", x),
        call(f"np.moveaxis({{0}}, {first}, {second})", x),
    )
    return scope.choices.choose(forms)


def _end(choices: Choices, extent: int) -> str:
    return "" if choices.below(2) == 0 else str(choices.below(2 * extent + 3) - extent - 1)


def item(choices: Choices, extent: int) -> str:
    if extent and choices.chance(1, 5):
        return str(choices.below(2 * extent) - extent)
    step = choices.choose(("", "", ":-1", ":2", ":-2", ":3"))
    return f"{_end(choices, extent)}:{_end(choices, extent)}{step}"


def slices(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    shape = scope.values[x].shape
    taken = shape[: scope.choices.below(len(shape)) + 1]
    items = [item(scope.choices, extent) for extent in taken]
    if scope.choices.chance(1, 4):
        items.insert(scope.choices.below(len(items) + 1), "None")
    if scope.choices.chance(1, 4) and len(taken) == len(shape):
        items.insert(scope.choices.below(len(items) + 1), "...")
    return method(f"{{0}}[{', '.join(items)}]", x)


def flip(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    return method(f"{{0}}[{':, ' * scope.choices.below(scope.values[x].ndim)}::-1]", x)


def flat_step(scope: Scope) -> Expression:
    """A step through all elements: indices with quotients and remainders, of either sign."""
    x = scope.array(lambda value: value.ndim > 1)
    start, step = scope.choices.choose(("", "1", "-2")), scope.choices.choose((-1, 2, -3, -2, 3))
    return method(f"{{0}}.reshape(-1)[{start}::{step}]", x)


def new_axis(scope: Scope) -> Expression:
    x = scope.array()
    axis = scope.choices.below(scope.values[x].ndim + 1)
    forms = (
        method("{0}[..., None]", x),
        method("{0}[None]", x),
        call(f"np.expand_dims({{0}}, {axis})", x),
    )
    return scope.choices.choose(forms)


def broadcast(scope: Scope) -> Expression:
    x = scope.array()
    shape = scope.values[x].shape
    target = tuple(scope.choices.choose((2, 3)) if extent == 1 else extent for extent in shape)
    if scope.choices.below(2):
        target = (scope.choices.choose((2, 1, 3)), *target)
    return call(f"np.broadcast_to({{0}}, {target})", x)


def concatenate(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    shape = scope.values[x].shape
    axis = scope.choices.below(len(shape))
    y = scope.array(lambda value: value.ndim == len(shape) and _fits(value.shape, shape, axis))
    if scope.choices.chance(1, 4):
        return call(f"np.stack([{{0}}, {{1}}], axis={axis})", x, x)
    if scope.choices.chance(1, 4):
        return call(f"np.concatenate(({{0}}, {{1}}, {{2}}), axis={axis})", x, y, x)
    return call(f"np.concatenate([{{0}}, {{1}}], axis={axis})", x, y)


def _fits(first: Sequence[int], second: Sequence[int], axis: int) -> bool:
    return all(a == b for k, (a, b) in enumerate(zip(first, second, strict=True)) if k != axis)


def pieces(scope: Scope) -> Expression:
    """Short rows out of parts of others, in any order: compilers make moves within vectors of it.

    Of doubles where there are any: of those a vector holds few.
    """
    choices = scope.choices
    try:
        x = scope.array(lambda value: _has_rows(value) and value.dtype == FLOAT64)
    except NotApplicable:
        x = scope.array(_has_rows)
    extent = scope.values[x].shape[-1]
    width = choices.choose((8, 4, 5, 2, 3, 6, 16))
    join = choices.choose(("concatenate", "concatenate", "stack"))
    parts: list[str] = []
    while width and len(parts) < 8:
        length = 1 if join == "stack" else min(choices.below(4) + 1, extent, width)
        start = choices.below(extent - length + 1)
        parts.append(str(start) if join == "stack" else f"{start}:{start + length}")
        width -= length
    taken = ", ".join(f"{{{number}}}[..., {part}]" for number, part in enumerate(parts))
    return method(f"np.{join}([{taken}], axis=-1)", *[x] * len(parts))


def _has_rows(value: np.ndarray | np.generic) -> bool:
    return value.ndim > 0 and value.shape[-1] > 1


def pad(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    rank, kind = scope.values[x].ndim, scope.values[x].dtype.kind
    widths = tuple((scope.choices.below(3), scope.choices.below(3)) for _ in range(rank))
    text = scope.choices.choose(("1", str(widths)))
    fills = ("", ", constant_values=2", ", constant_values=-1.5")
    fill = scope.choices.choose(fills[:2] if kind == "u" else fills)  # what C leaves undefined
    return call(f"np.pad({{0}}, {text}{fill})", x)


def windows(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    shape = scope.values[x].shape
    axis = scope.choices.below(len(shape))
    width = scope.choices.below(min(max(shape[axis], 1), 4)) + 1
    if len(shape) == 2 and scope.choices.chance(1, 3):
        return call(
            f"sliding_window_view({{0}}, ({width}, {min(2, shape[1])}), axis=({axis}, {1 - axis}))",
            x,
        )
    return call(f"sliding_window_view({{0}}, {width}, axis={axis})", x)


def _axes_text(choices: Choices, rank: int) -> str:
    kind = choices.below(5)
    if kind == 0:
        return "-1"
    if kind == 1:
        return str(choices.below(rank))
    axes = choices.subset(range(rank))
    if kind == 2 or not axes:
        return "None"
    return str(choices.shuffled(tuple(axis - rank * choices.below(2) for axis in axes)))


def reduction(scope: Scope) -> Expression:
    x = scope.array()
    value = scope.values[x]
    name = scope.choices.choose(("sum", "max", "mean", "min", "prod", "any", "all"))
    if name in ("any", "all") and value.dtype.kind != "b" and scope.choices.below(2):
        name = "sum"
    keywords = (
        [f"axis={_axes_text(scope.choices, value.ndim)}"]
        if value.ndim and scope.choices.below(6)
        else []
    )
    if value.ndim and scope.choices.chance(1, 3):
        keywords.append("keepdims=True")
    if name in ("sum", "prod", "mean") and scope.choices.chance(1, 8):
        keywords.append(
            f"dtype=np.{scope.choices.choose(('float64', 'float32', 'int64', 'int16'))}"
        )
    if scope.choices.below(2):
        return method(f"{{0}}.{name}({', '.join(keywords)})", x, by_layout="C")
    return call(f"np.{name}({', '.join(['{0}', *keywords])})", x, by_layout="C")


def position(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    rank = scope.values[x].ndim
    name = scope.choices.choose(("argmax", "argmin"))
    axis = scope.choices.choose(("axis=-1", f"axis={scope.choices.below(rank)}", ""))
    keep = ", keepdims=True" if axis and scope.choices.chance(1, 4) else ""
    if scope.choices.below(2):
        return method(f"{{0}}.{name}({axis}{keep})", x)
    return call(f"np.{name}({{0}}{', ' if axis else ''}{axis}{keep})", x)


def product(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    shape = scope.values[x].shape
    y = scope.array(lambda value: value.ndim > 0 and value.shape[-2:][0] == shape[-1])
    dtypes = {scope.values[x].dtype, scope.values[y].dtype}
    if len(dtypes) > 1 and any(dtype.kind == "f" for dtype in dtypes):
        scope.compose()  # numpy converts into a layout of its own, and BLAS sums by the layout
    if scope.choices.below(3) == 0:
        return operator("{0} @ {1}", x, y, by_layout="C")
    name = scope.choices.choose(("matmul", "dot"))
    return call(f"np.{name}({{0}}, {{1}})", x, y, by_layout="C")


def gram(scope: Scope) -> Expression:
    x = scope.array(_has_axes)
    return operator("{0} @ {1}.T", x, x, by_layout="C F")  # so that both factors are in C order


def einsum(scope: Scope) -> Expression:
    scope.compose()
    x, y = scope.array(_has_axes), scope.array(_has_axes)
    first, second = scope.values[x].shape, scope.values[y].shape
    labels = "ijklmnop"
    left = labels[: len(first)]
    right = ""
    for extent in second:
        matching = [
            label
            for label, known in zip(left, first, strict=True)
            if known == extent and label not in right
        ]
        fresh = labels[len(left) + len(right)]
        right += scope.choices.choose([*matching, fresh])
    kept = "".join(scope.choices.shuffled(scope.choices.subset(tuple(dict.fromkeys(left + right)))))
    extents = dict(zip(left + right, first + second, strict=True))
    if math.prod(extents.values()) > 4 * scope.largest:
        raise NotApplicable
    return call(f"np.einsum('{left},{right}->{kept}', {{0}}, {{1}})", x, y)
