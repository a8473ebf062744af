"""What stands for an array of which only a call knows how many elements there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinyfuse.trace.operation import operate
from tinyfuse.tree import Leaf


class UnknownLength(np.lib.mixins.NDArrayOperatorsMixin, Leaf):
    """What needs the elements one by one, or their number, is refused.

    _words: what the errors say of each such operation.
    """

    __slots__ = ()

    _takes_over = True  # operations with traced arrays
    _words: ClassVar[Mapping[str, str]]

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplementedError

    def _ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        raise NotImplementedError

    def _function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _attribute(self, name: str) -> Any:
        raise NotImplementedError

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return operate(self._ufunc, ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        return operate(self._function, function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._attribute(name)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        self._refused("setitem")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._refused("array")

    def __len__(self) -> NoReturn:
        self._refused("len")

    def __iter__(self) -> NoReturn:
        self._refused("iter")

    def __bool__(self) -> NoReturn:
        self._refused("bool")

    def _refused(self, operation: str) -> NoReturn:
        operate(self._refuse, self._words[operation])
        raise AssertionError
