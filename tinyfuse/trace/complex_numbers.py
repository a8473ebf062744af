"""What is traced of complex numbers, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import is_complex
from tinyfuse.errors import UnsupportedDtypeError
from tinyfuse.trace.tracer import Tracer

# The functions, methods and attributes that are right for complex numbers.
_NAMES = """
    T __getitem__ __setitem__ all amax amin angle any append apply_along_axis apply_over_axes
    argmax argmin argsort around array_split astype atleast_1d atleast_2d atleast_3d average
    block broadcast_arrays broadcast_to can_cast choose column_stack common_type compress
    concatenate cond conj conjugate convolve copy copyto corrcoef correlate count_nonzero cov
    cross cumsum cumulative_sum delete det diag diag_indices_from diagflat diagonal diff dot
    dsplit dstack ediff1d eigvalsh einsum einsum_path empty_like expand_dims extract fft fft2
    fftn fftshift fill fill_diagonal flatten flip fliplr flipud full_like gradient hfft hsplit
    hstack ifft ifft2 ifftn ifftshift imag inner insert inv irfft irfft2 irfftn isclose
    iscomplex iscomplexobj isin isreal isrealobj kron mT matmul matrix_norm matrix_power
    matrix_rank matrix_transpose max mean min moveaxis multi_dot nancumsum nanmean nanprod
    nanstd nansum nanvar ndim nonzero norm ones_like outer pad piecewise place polyadd polyder
    polyint polysub polyval prod ptp put put_along_axis putmask ravel real real_if_close repeat
    reshape resize result_type roll rollaxis rot90 round select shape sinc size
    sliding_window_view slogdet solve sort sort_complex split squeeze stack std sum svdvals
    swapaxes take take_along_axis tensordot tensorinv tensorsolve tile trace transpose trapezoid
    tril tril_indices_from triu triu_indices_from unstack vander var vdot vecdot vector_norm
    view vsplit vstack where zeros_like
"""
_COVERED = frozenset(_NAMES.split())


def require_covered(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises UnsupportedDtypeError where a function is given complex numbers and not made for them.

    name: as a user writes it: `np.median`, `x.sum`.
    """
    if name.rpartition(".")[2] in _COVERED:
        return
    named = [value for key, value in kwargs.items() if key != "out"]
    if _holds_complex(args) or _holds_complex(named):
        raise UnsupportedDtypeError(
            f"{name} of complex numbers is not supported: call it with x.real, x.imag or abs(x), "
            "or compute with numpy outside of the traced function"
        )


def _holds_complex(values: Iterable[Any]) -> bool:
    for value in values:
        kind = type(value)
        if kind is Tracer or kind is np.ndarray:
            if is_complex(value.dtype):
                return True
        elif kind in (list, tuple) and _holds_complex(value):
            return True
    return False
