"""Constructs that write: assignments, augmented operators, `out=`, through views and other names.

The written array is any that numpy lets be written: made by the program, an argument, a view of
either. What is written is a literal, another array, or the array's own elements from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tinyfuse.testing.elementwise_constructs import order_of, ufuncs_of
from tinyfuse.testing.memory import share_memory
from tinyfuse.testing.program import Expression, effect, method, operator, quietly
from tinyfuse.testing.scope import Array, NotApplicable, Scope
from tinyfuse.testing.shaped_constructs import item

LITERALS = ("0", "1", "2", "-1", "0.5", "True", "np.float32(2.5)", "np.int8(-3)", "np.int64(7)")
AUGMENTED = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
# Views by method or function, of arrays of at least one axis; a copy where numpy has to copy.
_VIEWS = (
    "{0}.T", "{0}[::-1]", "{0}[None]", "{0}[..., None]", "{0}[1:]", "{0}[..., ::2]", "{0}[0]",
    "{0}.reshape(-1)", "{0}.ravel()", "np.swapaxes({0}, 0, -1)", "np.expand_dims({0}, 0)",
    "{0}.squeeze()", "np.asarray({0})", "np.moveaxis({0}, 0, -1)",
)  # fmt: skip
_COPIES = ("{0}.copy()", "{0}.flatten()", "np.array({0})", "np.ascontiguousarray({0})")


def has_axes(value: np.ndarray | np.generic) -> bool:
    return value.ndim > 0


def key(scope: Scope, shape: tuple[int, ...]) -> str:
    """The text of a basic index into an array of this shape."""
    if not shape or not scope.choices.below(4):
        return "..."
    taken = shape[: scope.choices.below(len(shape)) + 1]
    items = [item(scope.choices, extent) for extent in taken]
    if scope.choices.chance(1, 8):
        items.insert(scope.choices.below(len(items) + 1), "None")
    if scope.choices.chance(1, 6):
        items.append("...")
    return ", ".join(items)


def value(scope: Scope, place: np.ndarray | np.generic, position: int) -> tuple[str, list[str]]:
    """What to write into a place of this shape: a text, and the operand that it needs if any."""
    kind = scope.choices.below(4)
    if kind == 0 and place.dtype.kind != "b":
        return scope.choices.choose(LITERALS), []
    shape = place.shape
    x = scope.array(lambda other: _stretches(other.shape, shape) and fits(other, place.dtype))
    hole = f"{{{position}}}"
    return scope.choices.choose((hole, hole, f"{hole} + 1", f"~({hole} > 0)")), [x]


def fits(value: np.ndarray | np.generic, dtype: np.dtype) -> bool:
    """Whether numpy converts all elements alike, wherever they stand.

    What no unsigned integer holds becomes one number in its loops over vectors, another elsewhere.
    """
    if dtype.kind != "u" or value.dtype.kind != "f":
        return True
    x: np.ndarray = np.asarray(value)
    with np.errstate(all="ignore"):
        return bool(np.all((x > -1) & (x < float(np.iinfo(dtype).max))))


def require_range(place: np.ndarray | np.generic, given: np.ndarray | np.generic) -> None:
    """Raise NotApplicable where what is computed of both may leave the range that `fits` knows."""
    if place.dtype.kind == "u" and np.result_type(place.dtype, given.dtype).kind == "f":
        raise NotApplicable


def is_mask(mask: np.ndarray | np.generic, target: np.ndarray | np.generic) -> bool:
    """Whether a value can say where a target is written.

    numpy reads a mask while it writes: where they overlap, it sees what it has written.
    """
    return mask.dtype.kind == "b" and (mask is target or not share_memory(mask, target))


def _stretches(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def part(scope: Scope, template: str, *operands: str) -> np.ndarray | np.generic:
    """The part of an array that a template names; raises what numpy raises."""
    found: np.ndarray = quietly(eval, template.format(*operands), {"np": np, **scope.values})
    return found


def assign(scope: Scope) -> Expression:
    """`y[1:, ::2] = x`."""
    y = scope.writable()
    place = f"{{0}}[{key(scope, scope.values[y].shape)}]"
    text, operands = value(scope, part(scope, place, y), 1)
    return effect(f"{place} = {text}", y, *operands)


def assign_through_views(scope: Scope) -> Expression:
    """`y.T[1:][0] = x`: nothing happens to y where one of the steps copies."""
    y = scope.writable(has_axes)
    view = scope.choices.choose(_VIEWS)
    if scope.choices.chance(1, 3):
        view = scope.choices.choose(_VIEWS[:-1]).replace("{0}", view)
    shape = np.shape(part(scope, view, y))
    place = f"{view}[{key(scope, shape)}]"
    text, operands = value(scope, part(scope, place, y), 1)
    symbol = scope.choices.choose(("=", "=", "+=", "*="))
    return effect(f"{place} {symbol} {text}", y, *operands)


def augment(scope: Scope) -> Expression:
    """`y += x`, of all operators; a numpy scalar is bound anew."""
    y = scope.array(_may_be_bound(scope))
    text, operands = value(scope, scope.values[y], 1)
    symbol = scope.choices.choose(AUGMENTED)
    scope.raise_to_power(symbol, y)
    if symbol == "**":
        _approximate(scope, np.power, scope.values[y])
    return effect(
        f"{{0}} {symbol}= {text}",
        y,
        *operands,
        by_layout=order_of("power") if symbol == "**" else "",
    )


def _approximate(scope: Scope, ufunc: np.ufunc, *places: np.ndarray | np.generic) -> None:
    """Note an approximated function that writes, or reads, elements in descending order.

    numpy has other loops for these than for ascending ones, and turns an array that is read and
    written, but not one that is read only: so the last bits depend on what `out` is.
    """
    descending = any(stride < 0 for place in places for stride in place.strides)
    if descending and order_of(ufunc.__name__):
        scope.compose()


def _may_be_bound(scope: Scope) -> Callable[[Array], bool]:
    """Accepts values that no name has which is global in the function."""
    return lambda value: all(scope.values[name] is not value for name in scope.bound)


def augment_part(scope: Scope) -> Expression:
    """`y[::2] += x`."""
    y = scope.writable()
    place = f"{{0}}[{key(scope, scope.values[y].shape)}]"
    chosen = part(scope, place, y)
    text, operands = value(scope, chosen, 1)
    symbol = scope.choices.choose(("+", "-", "*", *AUGMENTED))
    if symbol == "**":
        _approximate(scope, np.power, chosen)
    return effect(
        f"{place} {symbol}= {text}",
        y,
        *operands,
        by_layout=order_of("power") if symbol == "**" else "",
    )


_ON_ITSELF = (
    "{0}[1:] = {0}[:-1]", "{0}[:-1] = {0}[1:]", "{0}[...] = {0}[::-1]", "{0}[::-1] += {0}",
    "{0}[1:] += {0}[:-1]", "{0}[:-1] -= {0}[1:]", "{0}[..., 1:] = {0}[..., :-1]",
    "{0}[..., ::2] = {0}[..., :1]", "{0} += {0}[0]", "{0} -= {0}.max(axis=0)", "{0} += {0}.T",
    "{0}[...] = {0}.T", "{0} *= {0}[::-1]", "{0}[:2], {0}[-2:] = {0}[-2:], {0}[:2]",
    "{0}[0], {0}[-1] = {0}[-1].copy(), {0}[0].copy()", "np.add({0}[1:], {0}[:-1], out={0}[1:])",
)  # fmt: skip


def overlap(scope: Scope) -> Expression:
    """Elements from elsewhere in the same array: as if all were read first."""
    y = scope.writable(has_axes)
    if any(scope.values[name] is scope.values[y] for name in scope.bound):
        raise NotApplicable
    return effect(scope.choices.choose(_ON_ITSELF), y)


def output(scope: Scope) -> Expression:
    """`np.add(x, z, out=y)`, into a part of it or where a mask says."""
    y = scope.writable()
    place = f"{{0}}[{key(scope, scope.values[y].shape)}]" if scope.choices.chance(1, 3) else "{0}"
    chosen = part(scope, place, y)
    shape = np.shape(chosen)
    operands = [scope.array(lambda other: _stretches(other.shape, shape))]
    if scope.choices.below(2):
        operands.append(scope.array(lambda other: _stretches(other.shape, shape)))
    names = ufuncs_of(*(scope.values[name].dtype for name in operands))
    if not names:
        raise NotApplicable
    holes = ", ".join(f"{{{1 + at}}}" for at in range(len(operands)))
    function, masks = scope.choices.choose(names), []
    given = [scope.values[name] for name in operands]
    made = quietly(getattr(np, function), *given)
    if not fits(made, chosen.dtype):
        raise NotApplicable
    _approximate(scope, getattr(np, function), chosen, *given)
    if function == "negative" and share_memory(given[0], chosen) and not chosen.flags.forc:
        raise NotApplicable  # numpy 2.4 takes wrong elements in place, at strides of 16 or 64 bytes
    where = ""
    if scope.choices.chance(1, 4):
        masks = [scope.array(lambda m: m.dtype.kind == "b" and _stretches(m.shape, shape))]
        where = f", where={{{1 + len(operands)}}}"
        if made.dtype != chosen.dtype and any(share_memory(x, chosen) for x in given):
            raise NotApplicable  # numpy puts what the mask leaves alone through the dtype of made
    casting = ', casting="unsafe"' if scope.choices.chance(1, 4) else ""
    text = f"np.{function}({holes}, out={place}{where}{casting})"
    return effect(text, y, *operands, *masks, by_layout=order_of(function))


def reduced_output(scope: Scope) -> Expression:
    """`np.sum(x, axis=0, out=y)`."""
    x = scope.array(has_axes)
    shape = scope.values[x].shape
    axis = scope.choices.below(len(shape))
    y = scope.writable(lambda value: value.shape == (*shape[:axis], *shape[axis + 1 :]))
    name = scope.choices.choose(("max", "sum", "min", "prod"))
    if name in ("max", "min") and not np.can_cast(scope.values[x].dtype, scope.values[y].dtype):
        raise NotApplicable  # numpy puts the first element, and it alone, through the dtype of y
    return effect(f"np.{name}({{1}}, axis={axis}, out={{0}})", y, x, by_layout="C")


def copyto(scope: Scope) -> Expression:
    y = scope.writable()
    target = scope.values[y]
    text, operands = value(scope, target, 1)
    if scope.choices.chance(1, 3):
        mask = scope.array(lambda m: is_mask(m, target) and _stretches(m.shape, target.shape))
        return effect(
            f"np.copyto({{0}}, {text}, where={{{1 + len(operands)}}})", y, *operands, mask
        )
    casting = ', casting="unsafe"' if scope.choices.chance(1, 3) else ""
    return effect(f"np.copyto({{0}}, {text}{casting})", y, *operands)


def fill(scope: Scope) -> Expression:
    y = scope.writable()
    place = scope.choices.choose(("{0}", "{0}", "{0}[1:]", "{0}.T"))
    return effect(f"{place}.fill({scope.choices.choose(LITERALS)})", y)


def swap(scope: Scope) -> Expression:
    """Two names change places."""
    accept = _may_be_bound(scope)
    a = scope.array(accept)
    b = scope.array(lambda value: value is not scope.values[a] and accept(value))
    return effect("{0}, {1} = {1}, {0}", a, b, written=2)


def another_name(scope: Scope) -> Expression:
    return method("{0}", scope.writable())


def view(scope: Scope) -> Expression:
    return method(scope.choices.choose(_VIEWS), scope.writable(has_axes))


def copy(scope: Scope) -> Expression:
    """Written afterwards, it leaves its original alone."""
    if not scope.choices.below(5):
        return operator("+{0}", scope.array())
    return method(scope.choices.choose(_COPIES), scope.array())


def filled(scope: Scope) -> Expression:
    """Memory without values until it is written."""
    x = scope.array(lambda value: math.prod(value.shape) > 0)
    shape, dtype = scope.values[x].shape, scope.values[x].dtype
    name = "bool_" if dtype.kind == "b" else dtype.name
    made = scope.choices.choose(("np.empty_like({0})", f"np.empty({shape}, np.{name})"))
    puts = "{target}[...] = {0}", "{target}.fill(1)", "np.copyto({target}, {0})"
    put = scope.choices.choose(puts)
    if shape and not scope.choices.below(4):
        put = "{target}[:1] = {0}[:1]\n{target}[1:] = {0}[:-1]"
    return effect(f"{{target}} = {made}\n{put}", x, written=0)
