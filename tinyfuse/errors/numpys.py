"""What numpy refuses too, in its own words."""

from __future__ import annotations

import numpy as np

from tinyfuse.errors.base import TinyfuseError


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


class DtypeError(TinyfuseError, TypeError):
    """An operation that numpy does not define for these dtypes, in numpy's own words.

    ::

        x & y        # float32: ufunc 'bitwise_and' not supported for the input types, ...

    Convert before: `x.astype(np.int32) & y.astype(np.int32)`.
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
