"""What tracing cannot make a program of."""

from __future__ import annotations

from tinyfuse.errors.base import TinyfuseError


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


class UnsupportedDtypeError(TinyfuseError, TypeError):
    """A dtype that tinyfuse does not compute with.

    Supported are bool, int8 to int64, uint8 to uint64, float16, bfloat16 (of ml_dtypes), float32
    and float64 in native byte order. What looks at the bits of 16-bit floats, or rounds to them at
    each of many steps, is not::

        np.cumsum(x)                             # float16: UnsupportedDtypeError
        np.cumsum(x.astype(np.float32))          # works

    Convert before the operation, or the argument before the call.
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
