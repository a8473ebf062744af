"""Tracer: the stand-in for an array while a function is traced.

Its operators and methods are attached by the modules of this package, one for each chapter of
numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import describe
from tinyfuse.trace.builder import leaked, state
from tinyfuse.trace.cells import Cell
from tinyfuse.trace.elements import without_tracing
from tinyfuse.trace.operation import operate
from tinyfuse.trace.weak import COMPARED


class Tracer(Cell):
    """Stands for an ndarray, or for a numpy scalar.

    Attributes and methods are those of `numpy.ndarray`; what is our own starts with an underscore.
    """

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance(x, np.ndarray) is what it is without tracing
        return self._value.dtype.type if self._scalar else np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        words = "assigning to x.shape changes the array in place: write x = x.reshape(shape)"
        _fail(errors.InPlaceWriteError(words), self)

    @property
    def dtype(self) -> np.dtype:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self._value.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self._value.shape:
            size *= extent
        return size

    @property
    def itemsize(self) -> int:
        return self._value.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """This array: there is no other device. Raises numpy's ValueError for another name."""
        np.empty(0).to_device(device, stream=stream)
        return self

    def __len__(self) -> int:
        if not self._value.shape:
            name = (
                "object of type 'numpy.{}' has no len()"
                if self._scalar
                else "len() of unsized object"
            )
            raise TypeError(name.format(self.dtype.name))
        return self._value.shape[0]

    def __repr__(self) -> str:
        return f"Tracer({describe(self.shape, self.dtype)})"

    def __format__(self, spec: str) -> str:
        if spec:
            words = (
                f"format(x, {spec!r}) needs the value of a traced array, which is known only at "
            )
            _fail(errors.NumberConversionError(words + "run time"), self)
        return repr(self)

    def __copy__(self) -> Tracer:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _convert(self, errors.ArrayConversionError, "pickling", "pickle the function's result")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    def __iter__(self) -> Iterator[Tracer]:
        if not self._value.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[at] for at in range(self._value.shape[0]))  # type: ignore[index]

    # -- what has no value while tracing

    def __bool__(self) -> bool:
        if self.size > 1:
            words = (
                "The truth value of an array with more than one element is ambiguous. Use a.any() "
                "or a.all()"
            )
            _convert(self, errors.BoolConversionError, "truth test", "np.where or & | ~", words)
        _convert(
            self,
            errors.BoolConversionError,
            "`if`, `while`, `and`, `or`, `not` or bool()",
            "np.where(condition, a, b) in place of `if`, & | ~ in place of and, or, not",
        )

    def __int__(self) -> int:
        _convert(self, errors.NumberConversionError, "int()", "x.astype(np.int64)")

    def __float__(self) -> float:
        _convert(
            self,
            errors.NumberConversionError,
            "float() (or a function of `math`)",
            "x.astype(np.float64), and np.sqrt, np.exp ... in place of those of `math`",
        )

    def __complex__(self) -> complex:
        _convert(self, errors.NumberConversionError, "complex()", "a real dtype")

    def __index__(self) -> int:
        _convert(
            self,
            errors.NumberConversionError,
            "a Python integer (an index, a shape, range())",
            "a Python int argument, len(x) or x.shape",
        )

    def __round__(self, digits: int | None = None) -> NoReturn:
        _convert(self, errors.NumberConversionError, "round()", "np.round(x)")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        _convert(
            self,
            errors.ArrayConversionError,
            "code outside numpy's functions (or np.array in a method of a class)",
            "x itself, x.astype(dtype), or np.stack([x, y]) in place of np.array([x, y])",
        )

    def item(self, *args: Any) -> NoReturn:
        _convert(self, errors.NumberConversionError, "x.item()", "x itself")

    def tolist(self) -> NoReturn:
        _convert(self, errors.NumberConversionError, "x.tolist()", "x itself, or list(x)")

    def __hash__(self) -> int:
        kind = f"numpy.{self.dtype.name if self._scalar else 'ndarray'}"
        if self._scalar:
            error = errors.NumberConversionError(
                f"hash() needs the value of a traced {kind}, which is known only at run time: a "
                "dict or a set takes keys that Python knows, as i in place of x[i]"
            )
            _fail(error, self)
        raise TypeError(f"unhashable type: '{kind}'")

    def __contains__(self, value: Any) -> bool:
        _convert(self, errors.BoolConversionError, "`in`", "(x == value).any()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _WRITING_METHODS:
            words = f"x.{name} changes an array in place, which tinyfuse does not trace"
            _fail(errors.InPlaceWriteError(f"{words}: {_WRITING_METHODS[name]}"), self)
        if not hasattr(np.ndarray, name):
            _fail(errors.UnlistedAttributeError(_no_attribute(self, name)))
        words = f"x.{name} is not among the attributes of an array that tinyfuse traces"
        _fail(errors.UnlistedAttributeError(f"{words}, which dir(x) lists"), self)


def _no_attribute(tracer: Tracer, name: str) -> str:
    """numpy's words, and the name that was meant if there is hardly another one."""
    kind = tracer.dtype.type.__name__ if tracer._scalar else "ndarray"
    public = [each for each in dir(np.ndarray) if each[0] != "_"]
    import difflib  # only here: hardly any process needs it

    near = difflib.get_close_matches(name, public, 1, 0.75)
    hint = f". Did you mean: '{near[0]}'?" if near else ""
    return f"'numpy.{kind}' object has no attribute '{name}'{hint}"


# Methods that write into an array, and what to do instead.
_WRITING_METHODS = {
    "byteswap": "convert the array outside of the traced function",
    "flat": "write x.reshape(-1)[...] = value, or use x.ravel() to read",
    "itemset": "write x[index] = value",
    "put": "write x.reshape(-1)[indices] = values",
    "resize": "make a new array, with np.concatenate or a slice",
    "setfield": "convert the array outside of the traced function",
    "setflags": "set flags outside of the traced function",
}


COMPARED.append(lambda builder, atom: Tracer(builder, atom, True))


def _fail(error: Exception, tracer: Tracer | None = None) -> NoReturn:
    """Raise an error that ends with the user's place."""
    if tracer is not None:
        error = without_tracing(error, tracer)

    def fail() -> NoReturn:
        raise error

    operate(fail)
    raise AssertionError


def _convert(
    tracer: Tracer, error: type[errors.TinyfuseError], what: str, remedy: str, words: str = ""
) -> NoReturn:
    if tracer._builder is not state.builder:
        _fail(leaked())
    kind = describe(tracer.shape, tracer.dtype)
    message = f"{what} needs the value of a traced {kind}, which is known only when the compiled "
    message += f"function runs; use {remedy}"
    _fail(error(f"{words}: {message}" if words else message), tracer)
