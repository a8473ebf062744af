"""What calls of compiled functions refuse, or find."""

from __future__ import annotations

from tinyfuse.errors.base import TinyfuseError


class ArgumentError(TinyfuseError, TypeError):
    """An argument of a jitted function is nothing that a program can be compiled for.

    Arrays, numbers, strings and other hashable values are, and tuples, lists, dicts and objects of
    them. Python's complex numbers, subclasses of `ndarray` with a meaning of their own
    (`np.matrix`, masked arrays), sets and other unhashable objects are not::

        f(np.ma.array(x, mask=m))    # ArgumentError: argument x: a MaskedArray ...

    Pass the parts: `f(x, m)`, and `np.where(m, 0, x)` in the function.
    """


class SignatureMismatchError(TinyfuseError, TypeError):
    """A compiled program was called with arguments of other types than it was lowered for.

    ::

        compiled = f.lower(x).compile()      # x: float32[3, 4]
        compiled(x[:2])                      # SignatureMismatchError

    Call the jitted function itself, which compiles for each new signature, or lower it again.
    """


class OverlapError(TinyfuseError, ValueError):
    """An array that the function writes shares a part of its memory with another one of the call.

    ::

        @tinyfuse.jit
        def shift(x, y):
            x[:] = y * 2

        shift(a[1:], a[:-1])         # OverlapError

    What numpy makes of that depends on the order of its loops. Pass a copy: `shift(a[1:],
    a[:-1].copy())`. The same array for both is no overlap, and neither are parts of one array that
    have no element in common: `shift(a[::2], a[1::2])`.
    """


class NonFiniteError(TinyfuseError, FloatingPointError):
    """A function under `jit(f, check="nan")` computed a NaN or an infinity from other numbers.

    The message has the operation that did so first, what it was given, and the user's line::

        @tinyfuse.jit(check="nan")
        def entropy(x):
            return -(x * np.log(x)).sum()

        entropy(np.array([0.5, 0.5, 0.0]))   # NonFiniteError: log(0.0) is -inf, at [2] of ...

    Values that are masked afterwards count too, as in numpy's own warnings: keep the operand away
    from where it has no value, `np.log(np.where(x > 0, x, 1))`. NaN and infinities among the
    arguments are no error, and neither is what is made of them.
    """
