"""Constructs of functions that numpy, and tinyfuse too, composes of others; and of further writes.

What they sum up depends on the order in memory, as sums do.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.testing.index_constructs import is_index
from tinyfuse.testing.program import Expression, call, effect, operator
from tinyfuse.testing.scope import Scope
from tinyfuse.testing.write_constructs import (
    LITERALS,
    fits,
    has_axes,
    is_mask,
    part,
    require_range,
    value,
)


def skipping_nan(scope: Scope) -> Expression:
    """`np.nansum(x, axis=0)` and its like."""
    x = scope.array()
    rank = scope.values[x].ndim
    name = scope.choices.choose(
        ("sum", "max", "mean", "min", "prod", "var", "std", "argmax", "argmin")
    )
    options = [f", axis={scope.choices.below(rank)}"] if rank and scope.choices.below(3) else []
    if rank and scope.choices.chance(1, 3):
        options.append(", keepdims=True")
    if name in ("var", "std") and scope.choices.chance(1, 3):
        options.append(", ddof=1")
    return call(f"np.nan{name}({{0}}{''.join(options)})", x, by_layout="C")


def special_values(scope: Scope) -> Expression:
    x = scope.array()
    y = scope.partner(x)
    forms = (
        call("np.nan_to_num({0})", x),
        call("np.nan_to_num({0}, nan=2, posinf=7, neginf=-7)", x),
        call("np.isclose({0}, {1})", x, y),
        call("np.isclose({0}, {1}, atol=1, equal_nan=True)", x, y),
        operator("np.isposinf({0}) | np.isneginf({0})", x),
        call("np.fix({0})", x),
        call("np.sinc({0})", x, by_layout="ascending"),
        call("np.angle({0})", x, by_layout="ascending"),
    )
    return scope.choices.choose(forms)


def rearranged(scope: Scope) -> Expression:
    """Parts left out, put in, repeated, moved."""
    x = scope.array(has_axes)
    shape = scope.values[x].shape
    axis = scope.choices.below(len(shape))
    extent = shape[axis]
    at = scope.choices.below(extent) if extent else 0
    literal = scope.choices.choose(LITERALS)
    y = scope.array(lambda other: other.shape == shape)
    forms = (
        call(f"np.delete({{0}}, {at}, axis={axis})", x),
        call(f"np.delete({{0}}, [{at}, -1], axis={axis})", x),
        call(f"np.delete({{0}}, slice(None, None, 2), axis={axis})", x),
        call(f"np.insert({{0}}, {at}, {literal}, axis={axis})", x),
        call(f"np.insert({{0}}, [{at}, 0], {literal}, axis={axis})", x),
        call(f"np.roll({{0}}, {at + 1}, axis={axis})", x),
        call(f"np.repeat({{0}}, 2, axis={axis})", x),
        call("np.block([[{0}, {1}]])", x, y),
        call("np.append({0}, {1})", x, y),
        call("np.resize({0}, (2, 5))", x),
        call("np.tile({0}, 2)", x),
        call("np.flip({0})", x),
        call("np.ediff1d({0}, to_end=1)", x),
    )
    return scope.choices.choose(forms)


def combined(scope: Scope) -> Expression:
    """Of two arrays, or along an axis."""
    x = scope.array(has_axes)
    shape = scope.values[x].shape
    axis = scope.choices.below(len(shape))
    y = scope.array(lambda other: other.ndim > 0 and other.size * x_size(scope, x) < scope.largest)
    z = scope.array(lambda other: other.shape == shape)
    forms = (
        call("np.kron({0}, {1})", x, y),
        call("np.cross({0}, {1})", x, z),
        call(f"np.gradient({{0}}, axis={axis})", x),
        call(f"np.trapezoid({{0}}, axis={axis})", x, by_layout="C"),
        call("np.interp({0}, [-1.0, 0.5, 2.0], [3.0, -np.inf, 1.0])", x),
        call("np.polyval([2, -1, 0.5], {0})", x),
        call(f"np.average({{0}}, axis={axis})", x, by_layout="C"),
        call(f"np.linalg.norm({{0}}, 1, axis={axis})", x, by_layout="C"),
        call(f"np.apply_along_axis(lambda r: r[::-1] + r, {axis}, {{0}})", x),
    )
    return scope.choices.choose(forms)


def x_size(scope: Scope, x: str) -> int:
    return max(scope.values[x].size, 1)


# --- further writes -------------------------------------------------------------------------------


def put(scope: Scope) -> Expression:
    """Elements replaced by their number, by a mask, on a diagonal, in place of NaN."""
    y = scope.writable(has_axes)
    target = scope.values[y]
    literal = scope.choices.choose(LITERALS)
    ids = scope.array(lambda other: is_index(other, max(target.size, 1)))
    mask = scope.array(lambda other: is_mask(other, target) and other.shape == target.shape)
    x = scope.array(lambda other: other.size > 0 and fits(other, target.dtype))
    forms = (
        effect(f"np.put({{0}}, {{1}}, {literal})", y, ids),
        effect("np.put({0}, {1}, {2})", y, ids, x),
        effect(f"np.putmask({{0}}, {{1}}, {literal})", y, mask),
        effect("np.putmask({0}, {1}, {2})", y, mask, x),
        effect(f"np.place({{0}}, {{1}}, [{literal}])", y, mask),
        effect(f"np.fill_diagonal({{0}}, {literal})", y),
        effect("np.nan_to_num({0}, copy=False)", y),
        effect(f"np.copyto({{0}}, {literal}, where={{1}}, casting='unsafe')", y, mask),
    )
    return scope.choices.choose(forms)


def accumulate_at(scope: Scope) -> Expression:
    """`np.add.at(y, (ids, :), x)`: along several axes, or not along the first one."""
    y = scope.writable(lambda target: target.ndim > 1)
    target = scope.values[y]
    axis = scope.choices.below(target.ndim)
    extent = max(target.shape[axis], 1)
    ids = scope.array(lambda other: is_index(other, extent) and other.ndim < 3)
    key = [":"] * axis + ["{1}"]
    names = [ids]
    if axis + 1 < target.ndim and scope.choices.below(2):
        shape = scope.values[ids].shape
        names.append(
            scope.array(
                lambda other: (
                    is_index(other, max(target.shape[axis + 1], 1)) and other.shape == shape
                )
            )
        )
        key.append("{2}")
    place = f"{{0}}[{', '.join(key)}]"
    text, operands = value(scope, part(scope, place, y, *names), 1 + len(names))
    given = np.asarray(part(scope, text, y, *names, *operands))
    require_range(target, given)
    name = scope.choices.choose(("add", "subtract", "multiply", "maximum", "bitwise_xor"))
    key_text = ", ".join(["slice(None)" if each == ":" else each for each in key])
    return effect(f"np.{name}.at({{0}}, ({key_text},), {text})", y, *names, *operands)


def write_what_is_masked(scope: Scope) -> Expression:
    """`y[m] = x[m] * 2`, `y[m] += x[m]`."""
    y = scope.writable(has_axes)
    target = scope.values[y]
    x = scope.array(lambda other: other.shape == target.shape and fits(other, target.dtype))
    mask = scope.array(
        lambda m: is_mask(m, target) and m.ndim > 0 and m.shape == target.shape[: m.ndim]
    )
    symbol = scope.choices.choose(("=", "+=", "*="))
    text = scope.choices.choose(("{2}[{1}]", "{2}[{1}] * 2", "np.abs({2}[{1}])"))
    return effect(f"{{0}}[{{1}}] {symbol} {text}", y, mask, x)
