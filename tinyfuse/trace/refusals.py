"""Why functions of numpy, and attributes of its arrays, are not traced."""

from __future__ import annotations

from functools import cache

# Functions that read no elements: traced functions call numpy's.
NUMPYS_OWN = frozenset(
    (
        *("np.base_repr", "np.binary_repr", "np.broadcast_shapes", "np.isdtype", "np.isscalar"),
        *("np.issubdtype", "np.iterable", "np.mintypecode", "np.promote_types", "np.typename"),
        *("np.fft.fftfreq", "np.fft.rfftfreq"),
    )
)

_REASONS = {
    "it needs eigenvalues of matrices that are not symmetric: call it outside of the traced "
    "function": "np.linalg.eig np.linalg.eigvals np.roots",
    "data decide how long its result is: sort, and mark what is new by x[1:] != x[:-1]": """
        np.intersect1d np.setdiff1d np.setxor1d np.union1d np.unique np.unique_all np.unique_counts
        np.unique_inverse np.unique_values""",
    "data decide how long its result is: use np.where(mask, a, b), or np.count_nonzero(mask) for "
    "the number of elements": "np.argwhere np.flatnonzero np.nonzero x.nonzero",
    "data decide how long its result is, as leading zeros are left out: write np.convolve(a, b) "
    "for a product": "np.polymul np.polydiv np.trim_zeros",
    "it returns Python's True or False: write np.isclose(a, b).all(), or (a == b).all()": """
        np.allclose np.array_equal np.array_equiv""",
    "its coefficients are numpy's own: call it outside of the traced function": "np.i0",
    "it asks where elements lie in memory, which tinyfuse decides": """
        np.from_dlpack np.isfortran np.may_share_memory np.nested_iters np.require np.shares_memory
        x.base x.ctypes x.data x.flags x.getfield x.strides""",
    "it reads or writes files or text: call it outside of the traced function": """
        np.array2string np.array_repr np.array_str np.format_float_positional
        np.format_float_scientific np.fromfile np.fromregex np.genfromtxt np.load np.loadtxt np.save
        np.savetxt np.savez np.savez_compressed x.dump x.dumps x.tobytes x.tofile""",
    "it gives numbers of Python's, which are known at run time only: return x itself": """
        x.item x.tolist""",
    "it changes the array in place: write x = np.resize(x, shape) or x = x.view(dtype)": """
        x.byteswap x.resize x.setfield x.setflags""",
    "write x.reshape(-1)[...] = value, or x.ravel() to read": "x.flat",
    "it is about dates": """
        np.busday_count np.busday_offset np.datetime_as_string np.datetime_data np.is_busday
        np.isnat""",
    "it makes a matrix or a function of Python's": "np.asmatrix np.bmat np.frompyfunc",
    "it is about settings of numpy's, and no function of arrays": """
        np.get_include np.get_printoptions np.getbufsize np.geterr np.geterrcall np.info
        np.printoptions np.set_printoptions np.setbufsize np.seterr np.seterrcall np.show_config
        np.show_runtime""",
}


@cache
def _reasons() -> dict[str, str]:
    return {name: reason for reason, names in _REASONS.items() for name in names.split()}


def reason_of(name: str) -> str | None:
    """Why something is not traced, by its name: `np.fft.fft`, `x.tobytes`."""
    return _reasons().get(name)
