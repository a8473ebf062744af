"""What of a call's arguments a compiled program depends on.

That is their structure, the shape and dtype of each array, which numbers are run-time scalars, and
the value of everything else.
"""

from __future__ import annotations

import array
import types
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinyfuse.dtypes import (
    COMPLEX,
    COMPLEX128,
    FLOAT16,
    FLOAT64,
    SUPPORTED,
    SUPPORTED_TEXT,
    describe,
    is_supported,
)
from tinyfuse.errors import (
    ArgumentError,
    DeviceArrayError,
    TinyfuseError,
    UnsupportedDtypeError,
)
from tinyfuse.fixed import Constant
from tinyfuse.memory import OnDevice, as_given, is_on_device, near_pairs, placed, same_memory
from tinyfuse.parameters import Arguments, Parameters
from tinyfuse.records import replace
from tinyfuse.tree import Leaf, TreeDef, compared_keys, flatten, parts_of, typed

SHOWN_LEAVES = 8  # of a signature, in messages
SHOWN_CHARACTERS = 40  # of a static value, in messages

Key = tuple[Any, ...]

if TYPE_CHECKING:
    from tinyfuse.trace import ArgumentSpec


class ShapeDtypeStruct(Leaf):
    """The type of an array without its elements: stands for one in `trace` and `lower`.

    ::

        softmax.lower(tinyfuse.ShapeDtypeStruct((64, 1024), np.float32)).as_text("c")
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape = tuple([int(extent) for extent in shape])
        self.dtype = np.dtype(dtype)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct({self.shape}, {self.dtype.name})"


class StaleError(Exception):
    """Something captured is not any more what a program was compiled for."""


class TracedArgumentError(ArgumentError):
    """An argument, or what is captured, is traced: the call is part of what is being traced."""


class Static(Leaf):
    """A leaf that stands for a whole argument whose value is part of the signature."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, key: Any) -> None:
        self.value = value
        self.key = key


def static(value: Any) -> Any:
    """Raises ArgumentError for a value that cannot be compared with that of another call."""
    if type(value) in BY_VALUE or (type(value) is tuple and not value):
        return value  # it is so anyway
    key = typed(value)
    try:
        hash(key)
    except TypeError:
        raise ArgumentError(
            f"static arguments must be hashable, and a {type(value).__name__} is not: pass a "
            "tuple, "
            "or leave it out of static_argnames"
        ) from None
    return Static(value, key)


def _type_of_array(value: Any) -> Any:
    return value.dtype, value.shape


# Python's numbers that are known at run time only, where tracing needs no more than that.
WEAK = {float: FLOAT64, complex: COMPLEX128}
NOT_A_LEAF = object()  # in the key of a call that has to be taken apart

BY_VALUE = (type(None), bool, int, str, bytes, types.FunctionType, Constant)

# What a leaf of this very type contributes to the key of a call. An entry costs a fraction of a
# microsecond, `leaf` much more.
LEAF_KEYS: dict[type, Callable[[Any], Any]] = {
    np.ndarray: _type_of_array,
    float: type,
    complex: type,
    **dict.fromkeys([dtype.type for dtype in (*SUPPORTED, *COMPLEX, FLOAT16)], type),
    **dict.fromkeys(BY_VALUE, typed),
}


def _not_a_leaf(value: Any) -> Any:
    return NOT_A_LEAF


def quick_key(args: Sequence[Any]) -> Key:
    """The key of a call with leaves only; one with `NOT_A_LEAF` in it belongs to no program."""
    keys, array = LEAF_KEYS, np.ndarray
    return tuple(
        [
            (arg.dtype, arg.shape) if type(arg) is array else keys.get(type(arg), _not_a_leaf)(arg)
            for arg in args
        ]
    )


def leaf(value: Any) -> tuple[Any, Any]:
    """(key, value) of a leaf of a rarer type; array-likes become arrays.

    Raises ArgumentError where it is neither an array nor something that can be compared by value.
    """
    from tinyfuse.trace import is_traced

    if is_traced(value):
        raise TracedArgumentError("a traced array has no elements")
    if isinstance(value, Static):
        return value.key, value
    if isinstance(value, ShapeDtypeStruct):
        return (value.dtype, value.shape, ShapeDtypeStruct), value
    if isinstance(value, np.generic):
        return (value.dtype, ()), value
    if isinstance(value, np.ndarray):
        return _type_of_array(value), _plain(value)
    if is_on_device(value):
        from tinyfuse.runtime.device_array import as_argument  # only who has a GPU

        array = as_argument(value)
        return (array.dtype, array.shape, OnDevice), array  # programs are called in another way
    seen = _array_of(value)
    if seen is not None:
        return _type_of_array(seen), seen
    return typed(value), _hashable(value)


_BUFFERS = (memoryview, array.array)
_ARRAY_LIKE = ("__array__", "__array_interface__")


def _array_of(value: Any) -> np.ndarray | None:
    """The array that numpy sees in an array-like, a buffer or a DLPack object; None in others."""
    if isinstance(value, type):
        return None
    if isinstance(value, _BUFFERS) or any(hasattr(value, name) for name in _ARRAY_LIKE):
        return _writable_in_place(np.asarray(value), value)
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else None


def _writable_in_place(array: np.ndarray, value: Any) -> np.ndarray:
    """The elements of an array-like: read-only where they are a copy, whose writes are lost."""
    if np.may_share_memory(array, np.asarray(value)):
        return array
    copied = array.view()
    copied.flags.writeable = False
    return copied


def _plain(value: np.ndarray) -> np.ndarray:
    if isinstance(value, np.memmap):
        return value
    raise ArgumentError(
        f"a {type(value).__name__} has a meaning of its own, which would be lost: pass np.asarray "
        "of it"
    )


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"a {type(value).__name__} is neither an array nor hashable, so that tinyfuse cannot "
            "tell whether two calls mean the same: pass arrays, numbers, strings, or tuples, lists "
            "and dicts of them"
        ) from None
    return value


def spec_of(value: Any, by_value: bool) -> ArgumentSpec:
    """The spec of a leaf. by_value: whether its value is part of the signature.

    Raises:
        UnsupportedDtypeError: it is an array or scalar of a dtype that is not computed with.
    """
    from tinyfuse.trace import ArgumentSpec

    if isinstance(value, Static):
        return ArgumentSpec(kind="static", value=value.value)
    if isinstance(value, np.ndarray | OnDevice | ShapeDtypeStruct):
        strides = getattr(value, "strides", None)
        return ArgumentSpec(value.shape, supported(value), "array", strides=strides)
    if isinstance(value, np.generic):
        return ArgumentSpec((), supported(value), "scalar")
    if type(value) in WEAK and not by_value:
        return ArgumentSpec((), WEAK[type(value)], "weak")
    return ArgumentSpec(kind="static", value=value)


def with_aliases(specs: Sequence[ArgumentSpec], leaves: Sequence[Any]) -> tuple[ArgumentSpec, ...]:
    """The specs of a call, with those of arrays that are the same as an earlier one marked."""
    marked = list(specs)
    for first, at in same_arrays(leaves):
        if marked[at].alias is None:
            identical = as_given(leaves[first]) is as_given(leaves[at])
            marked[at] = replace(marked[at], alias=first, identical=identical)
    return tuple(marked)


def same_arrays(values: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Pairs of positions of arrays whose elements are in the very same memory."""
    kinds = (np.ndarray, OnDevice)
    places = [at for at, value in enumerate(values) if isinstance(value, kinds)]
    if len(places) < 2:
        return ()
    arrays = [placed(values[at]) for at in places]
    near = near_pairs(arrays, range(len(arrays)))
    same = [(i, j) for i, j in near if same_memory(arrays[i], arrays[j])]
    return tuple([(places[i], places[j]) for i, j in same])


def supported(value: Any) -> np.dtype:
    """The dtype of a leaf in native byte order."""
    dtype = value.dtype.newbyteorder("=")
    if is_supported(dtype):
        return np.dtype(dtype.name)  # of two types of one size (long, long long) always the same
    raise UnsupportedDtypeError(
        f"{describe(value.shape, dtype)} is not supported; tinyfuse computes with "
        f"{SUPPORTED_TEXT}: convert it with astype"
    )


class Call:
    """The arguments of a call, taken apart.

    key: equal for calls that one program can serve, but for what Python floats it has to know.
    values: what a program is given: all that is no container, each None included.
    """

    __slots__ = ("_arguments", "_in_tree", "key", "values")

    def __init__(self, key: Key, values: Sequence[Any], arguments: Arguments) -> None:
        self.key = key
        self.values = values
        self._arguments = arguments
        self._in_tree: TreeDef | None = None

    @property
    def given(self) -> list[Any]:
        """All arguments, whole."""
        args, kwargs = self._arguments
        return [*args, *kwargs.values()]

    @property
    def in_tree(self) -> TreeDef:
        """The structure of (args, kwargs)."""
        if self._in_tree is None:
            self._in_tree = flatten(self._arguments)[1]
        return self._in_tree

    @property
    def leaves(self) -> list[Any]:
        """Those of `in_tree`."""
        return [value for value in self.values if value is not None]

    @property
    def places(self) -> list[int]:
        """For each leaf its position in `values`."""
        return [at for at, value in enumerate(self.values) if value is not None]


def take_apart(parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The call of a function with these parameters; args and kwargs are as `bind` gives them.

    Raises:
        ArgumentError: an argument is nothing that a program can be compiled for.
        TracedArgumentError: one is a stand-in of the trace of another function.
        ValueError: a container contains itself.
    """
    if parameters.static:
        args = tuple([_static(parameters, name, arg) for name, arg in _named(parameters, args)])
        kwargs = {name: _static(parameters, name, arg) for name, arg in kwargs.items()}
    if parameters.dynamic:
        args = tuple([_dynamic(parameters, name, arg) for name, arg in _named(parameters, args)])
        kwargs = {name: _dynamic(parameters, name, arg) for name, arg in kwargs.items()}
    values: list[Any] = []
    try:
        key = tuple([_part(arg, values) for arg in args])
        if kwargs:
            key += (tuple(kwargs), *[_part(arg, values) for arg in kwargs.values()])
    except (ArgumentError, DeviceArrayError) as error:
        at = sum(value is not None for value in values)  # it did not get so far as to be among them
        name = argument_names(flatten((args, kwargs))[1], parameters)[at]
        raise refusal(error, parameters, name) from None
    except RecursionError:
        flatten((args, kwargs))
        raise
    return Call(key, values, (args, kwargs))


def _part(value: Any, values: list[Any]) -> Any:
    """The key of a value; adds what is in it and no container to `values`."""
    simple = LEAF_KEYS.get(type(value))
    if simple is not None:
        values.append(value)
        return simple(value)
    parts = parts_of(value)
    if parts is None:
        key, value = leaf(value)
        values.append(value)
        return key
    kind, static, keys, items = parts
    return (kind, static, compared_keys(kind, keys), *[_part(item, values) for item in items])


def _named(parameters: Parameters, args: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(parameters.position_name(at), arg) for at, arg in enumerate(args)]


def _dynamic(parameters: Parameters, name: str, value: Any) -> Any:
    """An integer whose value is no part of the signature as a scalar of numpy's."""
    if name not in parameters.dynamic or type(value) is bool or not isinstance(value, _INTEGERS):
        return value
    try:
        return np.int64(value)
    except OverflowError:
        error = ArgumentError("integers that are dynamic are those of int64")
        raise refusal(error, parameters, name) from None


_INTEGERS = (int, np.integer)


def _static(parameters: Parameters, name: str, value: Any) -> Any:
    if name not in parameters.static:
        return value
    try:
        return static(value)
    except ArgumentError as error:
        raise refusal(error, parameters, name) from None


def refusal(error: TinyfuseError, parameters: Parameters, name: str) -> TinyfuseError:
    """An error about an argument, with the function, the argument, and the place of the call."""
    from tinyfuse.source import here
    from tinyfuse.trace.builder import place_text

    place = place_text(here())
    return type(error)(f"{parameters.name}(): argument {name}: {error}{place}")


def argument_names(in_tree: TreeDef, parameters: Parameters) -> list[str]:
    """How a user writes each leaf of (args, kwargs): `x`, `params["w"]`, `self.b`, `args[1]`."""
    positional, keyword = in_tree.children
    names: list[str] = []
    for index, child in zip(positional.keys, positional.children, strict=True):
        names += _leaf_names(child, parameters.position_name(index))
    for name, child in zip(keyword.keys, keyword.children, strict=True):
        names += _leaf_names(child, name)
    return names


def _leaf_names(tree: TreeDef, name: str) -> list[str]:
    if tree.kind == "leaf":
        return [name]
    by_attribute = tree.kind in ("object", "namedtuple")
    found: list[str] = []
    for key, child in zip(tree.keys, tree.children, strict=True):
        found += _leaf_names(child, f"{name}.{key}" if by_attribute else f"{name}[{key!r}]")
    return found


class Signature(NamedTuple):
    """The types of a call's arguments; `names` are those of the leaves, as a user writes them."""

    in_tree: TreeDef
    specs: tuple[ArgumentSpec, ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        shown = [*map(_leaf_text, self.names[:SHOWN_LEAVES], self.specs)]
        more = len(self.names) - len(shown)
        return f"({', '.join(shown)}{f', and {more} more' if more else ''})"


def signature_of(parameters: Parameters, call: Call, by_value: Collection[int]) -> Signature:
    """The signature of a call, with the values of those Python floats whose indices are by_value.

    Raises UnsupportedDtypeError where an array or scalar is of a dtype that is not computed with.
    """
    names = argument_names(call.in_tree, parameters)
    specs = []
    for at, value in enumerate(call.leaves):
        try:
            spec = spec_of(value, at in by_value)
            integer = names[at] in parameters.dynamic and type(value) is np.int64
            specs.append(replace(spec, kind="integer") if integer else spec)
        except UnsupportedDtypeError as error:
            raise refusal(error, parameters, names[at]) from None
    return Signature(call.in_tree, tuple(specs), tuple(names))


def _leaf_text(name: str, spec: ArgumentSpec) -> str:
    return (
        spec_text(spec)
        if spec.kind != "static" and name.isidentifier()
        else f"{name}={spec_text(spec)}"
    )


def spec_text(spec: ArgumentSpec) -> str:
    if type(spec.value) is Constant:
        return f"constant {describe(spec.value.shape, spec.value.dtype)}"
    if spec.kind == "static":
        text = getattr(spec.value, "__qualname__", None) or repr(spec.value)
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
    if spec.kind == "integer":
        return "int"
    if spec.kind == "weak" or spec.dtype is None:
        return "complex" if spec.dtype == COMPLEX128 else "float"
    return spec.dtype.name if spec.kind == "scalar" else describe(spec.shape, spec.dtype)
