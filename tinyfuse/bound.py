"""Jitted methods of an instance."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tinyfuse.tree import Leaf

if TYPE_CHECKING:
    from tinyfuse.compilation import Lowered, Traced


# Instances with attributes of equal types share a program.
class BoundFunction(Leaf):
    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Any, instance: Any) -> None:
        self.__func__ = function
        self.__self__ = instance

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        doc: str | None = self.__func__.__doc__
        return doc

    @property
    def __signature__(self) -> inspect.Signature:
        whole = inspect.signature(self.__func__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundFunction):
            return NotImplemented
        return self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunction, (self.__func__, self.__self__)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """As `JittedFunction.trace`."""
        traced: Traced = self.__func__.trace(self.__self__, *args, **kwargs)
        return traced

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """As `JittedFunction.lower`."""
        return self.trace(*args, **kwargs).lower()

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str:
        """As `JittedFunction.explain_miss`."""
        words: str = self.__func__.explain_miss(self.__self__, *args, **kwargs)
        return words
