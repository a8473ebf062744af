"""Arrays whose elements never change: `tinyfuse.constant`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tinyfuse.dtypes import is_supported, native
from tinyfuse.errors import InPlaceWriteError, UnsupportedDtypeError
from tinyfuse.large_pages import copied
from tinyfuse.tree import ByIdentity


def constant(values: Any) -> Constant:
    """An array that a jitted function knows to stay as it is: weights, tables, filters.

    ::

        w = tinyfuse.constant(weights)  # float32[1024, 4096]

        @tinyfuse.jit
        def layer(x):
            return np.maximum(x @ w, 0)

    What a function computes of constants alone (transposes, scaled weights, the order in which a
    matrix product reads them) is computed at its first call and kept by the compiled program. The
    results are those of an array, bit for bit.

    Args:
        values: an array, or what `np.array` takes. It is copied: later writes to it change nothing.

    Returns:
        A `Constant` of the same shape and dtype, in C order and native byte order.

    Raises:
        UnsupportedDtypeError: tinyfuse does not compute with such elements.
    """
    return values if isinstance(values, Constant) else Constant(values)


class Constant(NDArrayOperatorsMixin, ByIdentity):
    """An array that cannot be written. numpy's functions, operators and indexing take it as one,
    and give plain arrays; it hashes by identity."""

    __slots__ = ("__weakref__", "_array")

    def __init__(self, values: Any) -> None:
        array = np.asarray(values)
        dtype = native(array.dtype)
        if not is_supported(dtype):
            raise UnsupportedDtypeError(
                f"constant: an array of dtype {array.dtype} cannot be computed with; convert it "
                "with astype"
            )
        self._array = copied(array, dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The elements: an array that cannot be written, or a copy."""
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if any(isinstance(each, Constant) for each in out):
            raise written()
        if not all(map(_is_plain, (*inputs, *out))):
            return NotImplemented
        if method == "at" and isinstance(inputs[0], Constant):
            raise written()
        kwargs = {name: _elements(value) for name, value in kwargs.items()}
        return getattr(ufunc, method)(*map(_elements, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(each, (np.ndarray, Constant)) for each in types):
            return NotImplemented
        args, kwargs = _elements(args), _elements(kwargs)
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise written() if "read-only" in str(error) else error from None

    def __getattr__(self, name: str) -> Any:
        """The attributes and methods of arrays; `__array__` is the one way to their memory."""
        if name.startswith("_"):
            raise AttributeError(f"a constant has no attribute {name!r}")
        return getattr(self._array, name)

    def __getitem__(self, key: Any) -> Any:
        return self._array[_elements(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise written()

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array)

    def __contains__(self, value: Any) -> bool:
        return value in self._array

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __complex__(self) -> complex:
        return complex(self._array)

    def __index__(self) -> int:
        return self._array.__index__()

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        text = np.array2string(self._array, separator=", ", prefix="constant(")
        return f"constant({text}, dtype={self._array.dtype.name})"

    def __str__(self) -> str:
        return str(self._array)

    def __format__(self, spec: str) -> str:
        return format(self._array, spec)

    def __copy__(self) -> Constant:
        return self

    def __deepcopy__(self, memo: Any) -> Constant:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return constant, (np.asarray(self),)


def written() -> InPlaceWriteError:
    return InPlaceWriteError(
        "a constant cannot be written: compute on a copy of it (np.array(w)), or pass a plain array"
    )


def _is_plain(value: Any) -> bool:
    """Whether no other class has a say in what numpy does with it."""
    own = getattr(type(value), "__array_ufunc__", np.ndarray.__array_ufunc__)
    return isinstance(value, Constant) or own is np.ndarray.__array_ufunc__


def _elements(value: Any) -> Any:
    """A value with the arrays of the constants in it, in containers too."""
    if isinstance(value, Constant):
        return value._array
    if type(value) in (list, tuple):
        return type(value)([_elements(each) for each in value])
    if type(value) is dict:
        return {key: _elements(each) for key, each in value.items()}
    return value
