"""Constructs that index with arrays: gathers, scatters and masks; and arrays made inside.

Indices are integer arrays of the program whose values are in range, negative ones among them: the
program runs with these arguments only.
"""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.testing.program import Expression, call, effect, method, operator
from tinyfuse.testing.scope import NotApplicable, Scope
from tinyfuse.testing.shaped_constructs import item
from tinyfuse.testing.write_constructs import (
    LITERALS,
    has_axes,
    is_mask,
    part,
    require_range,
    value,
)

_MOST_AXES = 3  # of an array of indices


def is_index(value: np.ndarray | np.generic, extent: int) -> bool:
    if value.dtype.kind not in "iu" or value.ndim > _MOST_AXES:
        return False
    return not value.size or -extent <= int(value.min()) <= int(value.max()) < extent


def _indexed(scope: Scope, x: str) -> tuple[str, list[str]]:
    """The text of a subscript of `{0}` with one or several index arrays, and their names."""
    shape = scope.values[x].shape
    items: list[str] = []
    ids: list[str] = []
    for extent in shape[: scope.choices.below(len(shape)) + 1]:
        if (ids or items) and scope.choices.below(3) == 0:
            items.append(scope.choices.choose((":", item(scope.choices, extent))))
        else:
            items.append(_index(scope, extent, ids))
    if not ids:
        items[-1] = _index(scope, shape[len(items) - 1], ids)
    if scope.choices.chance(1, 8):
        items.insert(scope.choices.below(len(items) + 1), "None")
    if scope.choices.chance(1, 8):
        items.insert(scope.choices.below(len(items) + 1), "...")
    return f"{{0}}[{', '.join(items)}]", ids


def _index(scope: Scope, extent: int, ids: list[str]) -> str:
    """An index array for an axis; the names that its text needs are added."""
    if not extent or scope.choices.chance(1, 6):
        return scope.choices.choose(("[0, -1]", "[1]", "[[0], [1]]", "np.array([0, 1, 0])"))
    if scope.choices.chance(1, 8):
        return f"np.arange({min(extent, 3)})"
    if scope.choices.chance(1, 4):
        ids.append(scope.array(lambda other: other.dtype.kind in "iu" and other.ndim <= _MOST_AXES))
        return f"{{{len(ids)}}} % {extent}"
    ids.append(scope.array(lambda other: is_index(other, extent)))
    return f"{{{len(ids)}}}"


def gather(scope: Scope) -> Expression:
    """`x[ids]`, `x[ids, :, others]`, `x[..., ids]`."""
    x = scope.array(has_axes)
    text, ids = _indexed(scope, x)
    return method(text, x, *ids)


def take(scope: Scope) -> Expression:
    x = scope.array(has_axes)
    value = scope.values[x]
    axis = scope.choices.below(value.ndim)
    if scope.choices.chance(1, 3):
        ids = scope.array(lambda other: is_index(other, max(value.size, 1)))
        flat = call("np.take({0}, {1})", x, ids), method("{0}.take({1})", x, ids)
        return scope.choices.choose(flat)
    ids = scope.array(lambda other: is_index(other, value.shape[axis]))
    mode = scope.choices.choose(("", "", ", mode='wrap'", ", mode='clip'"))
    forms = (
        call(f"np.take({{0}}, {{1}}, axis={axis}{mode})", x, ids),
        method(f"{{0}}.take({{1}}, axis={axis - value.ndim}{mode})", x, ids),
    )
    return scope.choices.choose(forms)


def take_along_axis(scope: Scope) -> Expression:
    x = scope.array(has_axes)
    value = scope.values[x]
    axis = scope.choices.below(value.ndim)
    if scope.choices.below(2):
        name = scope.choices.choose(("argmax", "argmin"))
        ids = f"np.{name}({{1}}, axis={axis}, keepdims=True)"
        return call(f"np.take_along_axis({{0}}, {ids}, axis={axis})", x, x)
    ids = scope.array(lambda other: other.ndim == value.ndim and is_index(other, value.shape[axis]))
    return call(f"np.take_along_axis({{0}}, {{1}}, axis={axis})", x, ids)


def scatter(scope: Scope) -> Expression:
    """`y[ids] = x`, where the last of several wins, and `y[ids] += x`.

    Numpy takes them in the order in memory if all are in Fortran order; tinyfuse in C order.
    """
    y = scope.writable(has_axes)
    place, ids = _indexed(scope, y)
    text, operands = value(scope, part(scope, place, y, *ids), 1 + len(ids))
    symbol = scope.choices.choose(("=", "=", "+=", "-=", "*="))
    if symbol != "=":
        require_range(scope.values[y], np.asarray(part(scope, text, y, *ids, *operands)))
    return effect(f"{place} {symbol} {text}", y, *ids, *operands, by_layout="C")


def scatter_at(scope: Scope) -> Expression:
    """`np.add.at(y, ids, x)`: each of several counts."""
    y = scope.writable(has_axes)
    target = scope.values[y]
    ids = scope.array(lambda other: is_index(other, target.shape[0]))
    shape = (*scope.values[ids].shape, *target.shape[1:])
    text, operands = value(scope, np.empty(shape, target.dtype), 2)
    given = np.asarray(part(scope, text, y, ids, *operands))
    require_range(target, given)
    if target.ndim == given.ndim == 1 < scope.values[ids].ndim:
        raise NotApplicable  # numpy reads behind the end of what it should stretch
    name = scope.choices.choose(("add", "add", "maximum", "subtract", "minimum", "multiply"))
    return effect(f"np.{name}.at({{0}}, {{1}}, {text})", y, ids, *operands)


def put_along_axis(scope: Scope) -> Expression:
    y = scope.writable(has_axes)
    value = scope.values[y]
    axis = scope.choices.below(value.ndim)
    literal = scope.choices.choose(LITERALS)
    ids = f"np.argmax({{0}}, axis={axis}, keepdims=True)"
    return effect(f"np.put_along_axis({{0}}, {ids}, {literal}, {axis})", y)


def set_masked(scope: Scope) -> Expression:
    """`y[m] = 0`, `y[m] += 1`, `y[y > 0] = ...`."""
    y = scope.writable(has_axes)
    target = scope.values[y]
    literal = scope.choices.choose(LITERALS)
    symbol = scope.choices.choose(("=", "=", "+=", "-=", "*="))
    if scope.choices.below(3) == 0:
        test = scope.choices.choose(("> 0", "< 1", "== 2", "!= 0"))
        return effect(f"{{0}}[{{0}} {test}] {symbol} {literal}", y)
    mask = scope.array(
        lambda m: is_mask(m, target) and m.ndim > 0 and m.shape == target.shape[: m.ndim]
    )
    place = scope.choices.choose(("{0}[{1}]", "{0}[{1}]", "{0}[~{1}]"))
    rest = target.shape[scope.values[mask].ndim :]
    if rest and scope.choices.below(2):
        x = scope.array(lambda other: other.shape in (rest, rest[1:], (1, *rest)))
        return effect(f"{place} {symbol} {{2}}", y, mask, x)
    return effect(f"{place} {symbol} {literal}", y, mask)


def masked_reduction(scope: Scope) -> Expression:
    """`x.sum(where=m)`: what the mask leaves out takes no part."""
    x = scope.array(has_axes)
    value = scope.values[x]
    mask = scope.array(lambda m: m.dtype.kind == "b" and _broadcasts_to(m.shape, value.shape))
    name = scope.choices.choose(("sum", "max", "min", "any", "all", "prod"))
    if name in ("sum", "prod") and value.dtype.kind == "f":
        scope.compose()  # numpy sums each run of chosen elements by itself
    axis = scope.choices.choose((f"axis={scope.choices.below(value.ndim)}", "axis=None", "axis=-1"))
    initial = ", initial=1" if name in ("max", "min") else ""
    return call(f"np.{name}({{0}}, {axis}, where={{1}}{initial})", x, mask)


def _broadcasts_to(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


# --- arrays made inside ---------------------------------------------------------------------------

_DTYPES = ("", ", np.float32", ", 'int32'", ", np.int64", ", bool", ", np.uint8")


def make(scope: Scope) -> Expression:
    """Zeros, ones or another value, of the shape of something, to be written later."""
    shape = scope.values[scope.array()].shape
    dtype = scope.choices.choose(_DTYPES)
    size = str(shape[0]) if len(shape) == 1 and scope.choices.below(2) else str(shape)
    forms = (
        f"np.zeros({size}{dtype})",
        f"np.ones({size}{dtype})",
        f"np.full({size}, {scope.choices.choose(LITERALS)}{dtype})",
    )
    return call(scope.choices.choose(forms))


def make_like(scope: Scope) -> Expression:
    x = scope.array()
    name = scope.choices.choose(("zeros_like({0}", "ones_like({0}", "full_like({0}, 2"))
    return call(f"np.{name}{scope.choices.choose(('', ', dtype=np.float64', ', dtype=int'))})", x)


def sequence(scope: Scope) -> Expression:
    """A range along an axis of something, as itself or in place of that axis."""
    x = scope.array(has_axes)
    extent = scope.values[x].shape[-1]
    forms = (
        f"np.arange({extent})", f"np.arange({extent}, dtype=np.float32)", f"np.arange({extent}.0)",
        f"np.arange({extent}, 0, -1)", f"np.arange(-1, {2 * extent - 1}, 2)",
        f"np.linspace(0.0, 1.0, {extent})", f"np.linspace(-1, 3, {extent}, endpoint=False)",
    )  # fmt: skip
    if not scope.choices.below(8):
        return operator(f"np.arange({extent}) % 2 == 0")
    return call(scope.choices.choose(forms))


def matrix(scope: Scope) -> Expression:
    """Of ones on a diagonal, below it, or of indices."""
    x = scope.array(has_axes)
    rows, columns = (1, *scope.values[x].shape)[-2:]
    if rows * columns > scope.largest:
        raise NotApplicable
    diagonal = scope.choices.choose(("", ", k=1", ", k=-1"))
    forms = (
        f"np.eye({rows}, {columns}{diagonal})", f"np.tri({rows}, {columns}{diagonal})",
        f"np.identity({rows})", f"np.eye({columns}, dtype=np.int32)",
        f"np.arange({rows * columns}).reshape({rows}, {columns})",
    )  # fmt: skip
    return call(scope.choices.choose(forms))


def causal(scope: Scope) -> Expression:
    """Elements above the diagonal are replaced, as in attention."""
    x = scope.array(lambda value: value.ndim >= 2)
    rows, columns = scope.values[x].shape[-2:]
    mask = f"np.arange({rows})[:, None] >= np.arange({columns})"
    fill_value = scope.choices.choose(("0", "-1", "-np.inf"))
    if scope.choices.below(2):
        return call(f"np.where({mask}, {{0}}, {fill_value})", x)
    return operator(f"{{0}} * ({mask})", x)


def one_hot(scope: Scope) -> Expression:
    x = scope.array(lambda value: value.ndim <= 2 and value.dtype.kind in "iu")
    return operator(f"{{0}}[..., None] == np.arange({2 + scope.choices.below(4)})", x)


def listed(scope: Scope) -> Expression:
    """`np.array([x, z])`, of rows or of elements."""
    x = scope.array()
    shape = scope.values[x].shape
    z = scope.array(lambda other: other.shape == shape)
    if math.prod(shape) and len(shape) == 1 and scope.choices.below(2):
        return method("np.array([{0}[0], {1}[-1], 2])", x, z)
    dtype = scope.choices.choose(("", ", dtype=np.float64"))
    return call(f"np.array([{{0}}, {{1}}]{dtype})", x, z)
