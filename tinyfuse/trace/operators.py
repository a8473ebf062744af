"""Python's operators on traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex
from tinyfuse.trace.eagerly import tried
from tinyfuse.trace.elementwise import COMPOSED_UFUNCS, NUMBERS, apply
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import filled
from tinyfuse.trace.outputs import write_ufunc_output
from tinyfuse.trace.selection import converted, of_parts, promoting
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak_complex import TracedComplex


def _binary(ufunc: np.ufunc, reflected: bool = False) -> Callable[[Tracer, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        if _declines(other):
            return NotImplemented
        return operate(tried, call, ufunc, (other, self) if reflected else (self, other), {})

    def call(*operands: Any) -> Any:
        if ufunc is np.multiply and _are_complex_scalars(operands):
            return _product_of_scalars(*operands)
        implementation = COMPOSED_UFUNCS.get(ufunc)
        return implementation(*operands) if implementation else apply(ufunc, operands)

    return method


def _are_complex_scalars(values: Sequence[Any]) -> bool:
    """Whether all are numbers, of numpy's or of Python's, and some of them complex."""
    numbers = [
        value._scalar if type(value) is Tracer else isinstance(value, _NUMBERS) for value in values
    ]
    return all(numbers) and any(map(_is_complex, values))


_NUMBERS = (int, float, complex, np.generic)


def _is_complex(value: Any) -> bool:
    if type(value) in (complex, TracedComplex):
        return True
    return hasattr(value, "dtype") and is_complex(value.dtype)


def _product_of_scalars(a: Any, b: Any) -> Any:
    """Every product is rounded by itself: only numpy's arrays have fused multiply-add."""
    to = np.result_type(promoting(a), promoting(b))
    one, other = [converted(value, to) for value in (a, b)]
    re = one.real * other.real - one.imag * other.imag
    return of_parts(re, one.real * other.imag + one.imag * other.real)


def _power_operator(self: Tracer, other: Any, modulo: Any = None) -> Any:
    used = None if self._scalar else _of_arrays(self, other)
    return operate(apply, used, (self,)) if used else _power_of(self, other)


def _of_arrays(x: Tracer, exponent: Any) -> np.ufunc | None:
    """What numpy's arrays compute a power by, of numbers only by the operator, other than np.power:
    squares of bool are int8, and the root of -0.0 is -0.0."""
    if type(exponent) is int and exponent == 2:
        return np.square
    if type(exponent) is float and exponent == 0.5 and x.dtype.kind == "f":
        return np.sqrt
    return None


_power_of = _binary(np.power)


def _equality(ufunc: np.ufunc, answer_for_none: bool) -> Callable[[Tracer, Any], Any]:
    compare = _binary(ufunc)

    def method(self: Tracer, other: Any) -> Any:
        if other is not None:
            return compare(self, other)
        if self._scalar:
            return answer_for_none
        answer = filled(self.shape, np.bool_(answer_for_none))  # no element is None
        answer._scalar = not self.shape
        return answer

    return method


def _declines(other: Any) -> bool:
    """Whether the other operand asks numpy's arrays to leave the operation to it."""
    kind = type(other)
    if kind is Tracer or kind in NUMBERS or other is None:
        return False
    if getattr(kind, "_takes_over", False):
        return True
    return getattr(kind, "__array_ufunc__", other) is None


def _unary(ufunc: np.ufunc) -> Callable[[Tracer], Any]:
    def method(self: Tracer) -> Any:
        return operate(apply, ufunc, (self,))

    return method


def _in_place(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        if self._scalar or _declines(other):
            return NotImplemented  # numpy's scalars are immutable: x += y binds x to x + y
        return operate(update, self, other)

    def update(self: Tracer, other: Any) -> Any:
        used, value = _computed(ufunc, self, other)
        return write_ufunc_output(used, (self,), value)

    return method


def _computed(ufunc: np.ufunc, x: Tracer, other: Any) -> tuple[np.ufunc, Tracer]:
    """What an augmented operator computes, and the ufunc that numpy does it by."""
    power = _of_arrays(x, other) if ufunc is np.power else None
    if power:
        return power, apply(power, (x,))
    if ufunc is np.matmul:
        _require_matrices(x, other)
    implementation = COMPOSED_UFUNCS.get(ufunc)
    return ufunc, implementation(x, other) if implementation else apply(ufunc, (x, other))


def _require_matrices(x: Tracer, other: Any) -> None:
    if not x.ndim or np.ndim(other) < 2:
        raise errors.InvalidArgumentError(
            "inplace matrix multiplication requires the first operand to have at least one and the "
            "second at least two dimensions."
        )


_OPERATORS = [
    ("add", np.add),
    ("sub", np.subtract),
    ("mul", np.multiply),
    ("truediv", np.divide),
    ("floordiv", np.floor_divide),
    ("mod", np.remainder),
    ("pow", np.power),
    ("lshift", np.left_shift),
    ("rshift", np.right_shift),
    ("and", np.bitwise_and),
    ("or", np.bitwise_or),
    ("xor", np.bitwise_xor),
    ("matmul", np.matmul),
]
for _name, _ufunc in _OPERATORS:
    setattr(Tracer, f"__{_name}__", _binary(_ufunc))
    setattr(Tracer, f"__r{_name}__", _binary(_ufunc, reflected=True))
    setattr(Tracer, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in [
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
]:
    setattr(Tracer, f"__{_name}__", _binary(_ufunc))
for _name, _ufunc in [
    ("neg", np.negative),
    ("pos", np.positive),
    ("abs", np.absolute),
    ("invert", np.invert),
]:
    setattr(Tracer, f"__{_name}__", _unary(_ufunc))
for _name, _method in [
    ("eq", _equality(np.equal, False)),
    ("ne", _equality(np.not_equal, True)),
    ("pow", _power_operator),
    ("divmod", _binary(np.divmod)),
    ("rdivmod", _binary(np.divmod, reflected=True)),
]:
    setattr(Tracer, f"__{_name}__", _method)
