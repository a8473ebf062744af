"""What can go wrong, one class for each cause: why, an example, and what to write instead.

Every message says what was attempted and where in the user's file. A class also derives from what
numpy (or Python) raises in the same place, so that `except ValueError` works as it does without
tracing.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np


class TinyfuseError(Exception):
    """Base of everything that tinyfuse raises on purpose."""

    located = False  # whether the message already ends with the user's file and line


class BoolConversionError(TinyfuseError, ValueError):
    """Python asked whether a traced array is true.

    A traced function runs once, on stand-ins that have a shape and a dtype but no elements, so
    `if`, `while`, `and`, `or`, `not`, `assert`, chained comparisons (`0 < x < 1`), `max(x, y)` and
    `in` have nothing to decide on::

        @tinyfuse.jit
        def clipped(x):
            if x.sum() > 1:          # BoolConversionError
                return x / x.sum()
            return x

    Choose between values instead of between statements::

        return np.where(x.sum() > 1, x / x.sum(), x)

    For conditions on arrays use `&`, `|`, `~`, `np.logical_and`; for the greater of two arrays
    `np.maximum`. A condition on a Python argument needs nothing: Python ints, bools and strings are
    known while tracing.
    """


class NumberConversionError(TinyfuseError, TypeError):
    """Python asked for the value of a traced array: `int(x)`, `float(x)`, `range(x)`, `a[x:]`.

    The value exists only when the compiled function runs::

        @tinyfuse.jit
        def first(x, n):
            return x[: int(n[0])]    # NumberConversionError

    What decides shapes and Python's loops must be a Python number: pass it as an argument of its
    own (`first(x, 3)`), or take it from a shape (`len(x)`, `x.shape[0]`). In place of
    `math.sqrt(x)` write `np.sqrt(x)`, in place of `float(x)` `x.astype(np.float64)`, in place of
    `round(x)` `np.round(x)`.
    """


class ArrayConversionError(TinyfuseError, TypeError):
    """A traced array reached code that needs a real one: a method of an object, a C extension.

    numpy's functions know traced arrays; what is not among them asks for the elements::

        @tinyfuse.jit
        def shuffled(x):
            return generator.permutation(x)         # ArrayConversionError

    Call it outside the traced function, and pass what it gives as an argument. Methods of classes
    see numpy itself: there `np.array([x.min(), y.max()])` asks for elements too, and
    `np.stack([x.min(), y.max()])` does not.
    """


class LeakedTracerError(TinyfuseError, RuntimeError):
    """A stand-in for an array was used after the tracing that it belongs to had ended.

    It was kept in a global variable, an attribute, a default argument or a cache::

        seen = []

        @tinyfuse.jit
        def f(x):
            seen.append(x * 2)       # a stand-in, not an array
            return x

        f(a)
        seen[0] + 1                  # LeakedTracerError

    Return the value from the function and keep what the call gives back.
    """


class UnlistedFunctionError(TinyfuseError, TypeError):
    """A numpy function that tinyfuse does not trace was called with a traced array.

    ::

        @tinyfuse.jit
        def f(x):
            return np.fft.fft(x)             # UnlistedFunctionError

    Compose it from listed functions, or split the function: jit what comes before and after, and
    call numpy in between on real arrays.
    """


class UnlistedAttributeError(TinyfuseError, AttributeError):
    """A method or attribute of `numpy.ndarray` that a traced array does not have.

    `x.tolist()`, `x.tobytes()`, `x.ctypes`, `x.strides` and others need the elements in
    memory. Use them on the result, outside the traced function.
    """


class UnsupportedArgumentError(TinyfuseError, TypeError):
    """A listed function was called with an argument that is not supported there.

    ::

        np.add(x, y, where=mask)     # UnsupportedArgumentError: the other elements have no value

    Say the same through other functions: `np.where(mask, x + y, 0)`.
    """


class ShapeError(TinyfuseError, ValueError):
    """Shapes do not fit, in numpy's own words.

    ::

        x + y        # operands could not be broadcast together with shapes (3,) (4,)
    """


class AxisError(TinyfuseError, np.exceptions.AxisError):
    """An axis that the array does not have, in numpy's own words.

    ::

        x.sum(axis=2)            # float32[3, 4]: axis 2 is out of bounds for array of dimension 2
    """


class IndexingError(TinyfuseError, IndexError):
    """An index that the array does not have, in numpy's own words.

    ::

        x[7]                         # float32[3]: index 7 is out of bounds for axis 0 with size 3
    """


class DataDependentShapeError(TinyfuseError, TypeError):
    """The shape of a result would depend on the elements of an array.

    ::

        return x[x > 0]              # DataDependentShapeError
        np.nonzero(x)
        np.where(x > 0)

    The compiled function has fixed shapes. Keep the full shape and mask: `np.where(x > 0, a, b)`,
    `np.count_nonzero(x)`. What a mask chooses can be reduced (`x[x > 0].mean()`), and put back
    where the same mask chooses (`x[mask] = np.sqrt(y[mask])`).
    """


class DtypeError(TinyfuseError, TypeError):
    """An operation that numpy does not define for these dtypes, in numpy's own words.

    ::

        x & y        # float32: ufunc 'bitwise_and' not supported for the input types, ...

    Convert before: `x.astype(np.int32) & y.astype(np.int32)`.
    """


class UnsupportedDtypeError(TinyfuseError, TypeError):
    """A dtype that tinyfuse does not compute with.

    Supported are bool, int8 to int64, uint8 to uint64, float16, bfloat16 (of ml_dtypes), float32
    and float64 in native byte order. What looks at the bits of 16-bit floats, or rounds to them at
    each of many steps, is not::

        np.cumsum(x)                             # float16: UnsupportedDtypeError
        np.cumsum(x.astype(np.float32))          # works

    Convert before the operation, or the argument before the call.
    """


class InvalidArgumentError(TinyfuseError, ValueError):
    """An argument with a value that numpy refuses, in numpy's own words.

    ::

        x.max()      # float32[0]: zero-size array to reduction operation maximum ...
    """


class ArgumentTypeError(TinyfuseError, TypeError):
    """An argument of a type that numpy refuses, in numpy's own words.

    ::

        x.sum(axis="rows")           # 'str' object cannot be interpreted as an integer
    """


class IntegerRangeError(TinyfuseError, OverflowError):
    """A Python integer that the array's dtype cannot hold, in numpy's own words.

    ::

        x + 300                      # uint8: Python integer 300 out of bounds for uint8

    Convert before: `x.astype(np.int32) + 300`.
    """


class NegativePowerError(TinyfuseError, ValueError):
    """An integer to a negative integer power, which numpy refuses.

    ::

        x ** -1                      # int64: Integers to negative integer powers are not allowed.

    Convert before: `x.astype(np.float64) ** -1`.
    """


class ZeroWeightsError(TinyfuseError, ZeroDivisionError):
    """Weights of an average that add up to zero.

    ::

        np.average(x, weights=w)     # w of zeros: Weights sum to zero, can't be normalized

    Divide where they do not: `np.where(w.sum() != 0, (x * w).sum() / w.sum(), 0)`.
    """


class MatrixError(TinyfuseError, np.linalg.LinAlgError):
    """A matrix that a function of np.linalg cannot take, in numpy's own words.

    ::

        np.linalg.inv(x)             # float64[3, 4]: Last 2 dimensions of the array must be square
        np.linalg.cholesky(x)        # Matrix is not positive definite

    The second is found out by the call. Add to the diagonal what keeps it away from zero, or take
    np.linalg.lstsq or np.linalg.pinv in place of np.linalg.solve and np.linalg.inv.
    """


class StageNameError(TinyfuseError, ValueError):
    """A name for a value that C cannot have.

    The name stands in the C, in schedules and in reports, so it has to be one there::

        tinyfuse.name(y, "blur x")   # StageNameError
        tinyfuse.name(y, "double")   # StageNameError

    Write letters, digits and `_`, beginning with a letter, and no word of C: `blur_x`, `doubled`.
    """


class InPlaceWriteError(TinyfuseError, TypeError):
    """A write in place that tinyfuse does not trace.

    Assignments, `x += y`, `out=`, np.copyto, `fill` and `sort` are traced. What changes an array's
    shape or flags is not::

        x.shape = (3, 4)             # write x = x.reshape(3, 4)
        x.resize(20)                 # write x = np.concatenate([x, np.zeros(8)])

    Neither can a traced value be written into an array that tracing does not know, one that comes
    from a function outside numpy::

        table = load_table()
        table[0] = x.sum()           # pass the table as an argument, or write table = np.array(...)

    What `tinyfuse.constant` gives is never written, inside a traced function or outside: compiled
    programs keep what they have computed of its elements::

        w[0] = 1                     # make a new constant of a copy, or pass a plain array
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


class CarryError(TinyfuseError, TypeError):
    """A turn of a loop makes something else than it was given, or two branches disagree.

    A loop is one piece of compiled code: what it carries from turn to turn keeps its structure, its
    shapes and its dtypes. So does what the branches of a choice return::

        tinyfuse.fori_loop(0, 9, lambda i, x: x[:-1], x)       # CarryError

    Carry an array of the largest shape and write into it; convert to the carried dtype with
    `astype`. Only a Python number may become a number of numpy, which it then is from the start.
    """


class SideEffectError(TinyfuseError, RuntimeError):
    """The traced function changed an argument, a global or enclosing variable, or what is in one.

    A traced function runs once; what it does to Python objects would happen at that time only and
    then never again::

        @tinyfuse.jit
        def step(state):
            state["x"] = state["x"] + 1          # SideEffectError
            return state["x"]

    Return the new value: `return {**state, "x": state["x"] + 1}`. `global` and `nonlocal` variables
    that the function assigns are refused alike, and so is what is another whenever it is traced.
    The generators of np.random are such objects too: take `tinyfuse.random`, with explicit keys.
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


_INTERNAL = (os.path.dirname(os.path.abspath(__file__)) + os.sep,)


def is_internal(frame: types.FrameType) -> bool:
    """Whether a frame runs code of tinyfuse's."""
    return frame.f_code.co_filename.startswith(_INTERNAL)


def without_internal_frames(error: BaseException) -> BaseException:
    """The same exception with a traceback that holds frames of the user's code only.

    The innermost frame is then the user's line. Returns `error`, to be raised by the caller, whose
    own frame Python adds again.
    """
    frames = []
    place = error.__traceback__
    while place is not None:
        if not is_internal(place.tb_frame):
            frames.append(place)
        place = place.tb_next
    kept: types.TracebackType | None = None
    for place in reversed(frames):
        kept = types.TracebackType(kept, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return error.with_traceback(kept)


class ScheduleError(TinyfuseError, ValueError):
    """A directive would change what the program means, or names a loop that is not there.

    A schedule moves and cuts loops; it cannot reorder a sum, let threads share a loop whose steps
    depend on one another, or store what other stages need whole inside a loop.

    Example::

        schedule.parallel(total, k)  # k is the axis that `total` sums over

    What to do: the message names the stage, its loops and what is legal. Sums are made parallel
    over the elements they are computed for, or over the blocks of a long sum, which are a stage of
    their own.
    """

    def __init__(self, message: str = "", details: Callable[[], str] | None = None) -> None:
        """details: what follows the message, found when somebody reads it."""
        super().__init__(message)
        self._details = details

    def __str__(self) -> str:
        return super().__str__() + (self._details() if self._details else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class CompilerNotFoundError(TinyfuseError):
    """There is no C compiler, or the environment variable CC names none.

    tinyfuse looks for what CC says (a program and perhaps arguments, quoted as for a shell), then
    for gcc, clang and cc on PATH, then for the compiler in the `ziglang` wheel::

        $ CC=gcc-42 python program.py
        CompilerNotFoundError: CC='gcc-42': there is no program 'gcc-42'.

    Install one: `apt install gcc`, or, without any rights on the system, `pip install ziglang`.
    Without a compiler, functions still run as they are under `tinyfuse.disable_jit()`.
    """


class CudaCompilerNotFoundError(CompilerNotFoundError):
    """There is no nvcc, or the environment variable NVCC names none.

    tinyfuse looks for what NVCC says (a program and perhaps arguments, quoted as for a shell), then
    for nvcc on PATH, in CUDA_HOME and in /usr/local/cuda. It comes with NVIDIA's CUDA toolkit.
    Without one, `target="cuda-emulated"` runs the same kernels on the CPU.
    """


class CompilationError(TinyfuseError):
    """The C compiler failed on the C of a function, or what it made cannot be loaded.

    The message has the compiler's words, the line of C that they are about, and the place where the
    C was kept. Likely causes are a compiler that is old (tinyfuse needs C11 with the vector types
    of gcc and clang), half installed (`cannot find -lm`, no `as`: `apt install gcc libc6-dev`) or
    asked for what it does not know::

        $ CC='gcc -march=pentium9' python program.py
        CompilationError: gcc failed on the C of softmax (exit status 1).

    Try another compiler through CC. If a current one refuses the C, tinyfuse is wrong: please
    report it together with the file that was kept.
    """


class EmulationError(TinyfuseError):
    """A CUDA text was run on the CPU in a way that it does not allow for, or did what it must not.

    ::

        emulate(text, "softmax", (4, 1, 1), (256, 1, 1), x)
        EmulationError: kernel softmax takes 3 arguments (x, y, c), and was given 1

    The message says what does not fit. Faults of the text itself are in `Emulation.errors`.
    """


class ThreadCountError(TinyfuseError, ValueError):
    """TINYFUSE_NUM_THREADS, or the argument of a call that sets it, is no number of threads.

    ::

        $ TINYFUSE_NUM_THREADS=all python program.py
        ThreadCountError: TINYFUSE_NUM_THREADS='all' is no number of threads, such as 4

    Write a whole number from 1. Without any, tinyfuse uses the cores that the process may use.
    """


class CacheError(TinyfuseError):
    """The directory for compiled code cannot be used, or its settings make no sense.

    Code from that directory runs in the user's processes, so it has to belong to that user and
    nobody else may write into it::

        $ TINYFUSE_CACHE_DIR=/tmp/shared python program.py
        CacheError: other users can write into the cache directory /tmp/shared (mode 0777), …

    Set TINYFUSE_CACHE_DIR to a directory of your own, or, where the directory was only created too
    openly, `chmod 700` it. Such a directory can be deleted at any time: it fills itself again.
    """


class VerificationError(TinyfuseError, AssertionError):
    """One of tinyfuse's own levels (graph, stages, loops) is malformed: a fault in tinyfuse.

    The verifiers run in tests, and wherever a graph, stages or loops are built by hand::

        verify_graph(Graph("f", (), (), (Var((3,), np.dtype("float32")),)))
        VerificationError: graph f, an output: a variable: float32[3] is not defined before

    If it comes from a function under `tinyfuse.jit`, tinyfuse is wrong: please report it together
    with that function. `tinyfuse.disable_jit()` runs the function as it is.
    """


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
