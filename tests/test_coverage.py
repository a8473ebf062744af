"""What of numpy is traced: each function with every keyword that numpy documents.

A row of the table counts where calls with all keywords give numpy's bits (or are close, where that
is what is promised), or where a keyword is refused by its name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import coverage_cases
from tests.coverage_names import calls, parameters
from tests.coverage_table import FILE, page, rows
from tests.trace_checking import assert_same, replay, trace_call, twin
from tinyfuse import tree
from tinyfuse.dtypes import is_supported
from tinyfuse.errors import TinyfuseError, UnsupportedArgumentError, UnsupportedDtypeError

pytestmark = pytest.mark.filterwarnings("ignore")


def world(x: np.ndarray, y: np.ndarray) -> tuple[Any, ...]:
    """The arguments of a case: x, y, v, n, b, m, s, q, w."""
    v = y[-1].copy() if len(y) else np.zeros(4, y.dtype)
    b = np.arange(x.size).reshape(x.shape) % 3 != 1
    s = np.array(1.5)
    q = np.array([[4, 1, 0.5, 0], [1, 3, -0.5, 0.25], [0.5, -0.5, 2, 0.125], [0, 0.25, 0.125, 1]])
    n = np.array([2, 0, 1])
    return x, y, v, n, b, np.array([True, False, True]), s, q, np.array([1.0, -2, 0.5, 3])


_RANDOM = np.random.default_rng(4)
_PLAIN = [np.round(_RANDOM.standard_normal((3, 4)) * 2, 3) for _ in range(2)]
_HOSTILE = np.array(
    [[np.nan, -0.0, 1, 2], [np.inf, 0.25, -1, 0.5], [3, -np.inf, 7, -2.5]], np.float32
)
WORLDS = {
    "plain": world(*_PLAIN),
    "hostile": world(_HOSTILE, np.ascontiguousarray(_HOSTILE[:, ::-1])[::-1, ::-1]),
    "integers": world(*[(each * 9).astype(np.int16) for each in _PLAIN]),
    "empty": world(*[np.zeros((0, 4), np.float64)] * 2),
    "Fortran": world(*[np.asfortranarray(each) for each in _PLAIN]),
}
NAMES = "x, y, v, n, b, m, s, q, w"

# Sums in another order, or other steps, than numpy's.
CLOSE = (
    *("np.convolve", "np.correlate", "np.cov", "np.corrcoef", "np.poly", "np.histogram"),
    *("np.einsum", "np.linalg", "np.extract", "np.fft."),
)

SECTIONS = {
    name.lower(): text
    for name, text in vars(coverage_cases).items()
    if name.isupper() and name != "REFUSED"
}
CASES = [
    (section, line) for section, text in SECTIONS.items() for line in text.strip().splitlines()
]


def function_of(expression: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    exec(f"def f({NAMES}):\n    return {expression}\n", space)
    function: Callable[..., Any] = space["f"]
    return function


@pytest.mark.parametrize("where", WORLDS)
@pytest.mark.parametrize(("section", "line"), CASES, ids=[line[:40] for _, line in CASES])
def test_calls(section: str, line: str, where: str) -> None:
    if section in ("matrices", "creation", "questions") and where not in ("plain", "hostile"):
        return
    if section == "fourier" and where == "hostile":
        return  # which parts of a transform of infinities are no numbers is open
    close = any(name in line for name in CLOSE)
    close |= section in ("reductions", "methods") and "where=b" in line  # numpy skips elements
    compare(function_of(line), WORLDS[where], assert_close if close else assert_same)


def compare(function: Callable[..., Any], args: Any, same: Callable[[Any, Any], None]) -> None:
    """numpy's result and what it writes, or an error of the same kind."""
    there, here = twin(args), twin(args)
    with np.errstate(all="ignore"):
        try:
            expected = function(*there)
        except Exception as error:
            kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            with pytest.raises(kinds[0]) as raised:
                replay(trace_call(function, *here), *here)
            assert isinstance(raised.value, TinyfuseError)
            return
        try:
            actual = replay(trace_call(function, *twin(args)), *here)
        except UnsupportedDtypeError:
            leaves = tree.flatten(expected)[0]
            assert not all(is_supported(each.dtype) for each in leaves if hasattr(each, "dtype"))
            return
    same(actual, expected)
    assert_same(here, there)


def assert_close(actual: Any, expected: Any) -> None:
    leaves, structure = tree.flatten(expected)
    found, same_structure = tree.flatten(actual)
    assert same_structure == structure
    for a, b in zip(found, leaves, strict=True):
        assert (type(a), np.shape(a)) == (type(b), np.shape(b))
        if isinstance(b, np.ndarray | np.generic):
            assert a.dtype == b.dtype
            eps = np.finfo(b.dtype).eps if b.dtype.kind in "fc" else 0
            np.testing.assert_allclose(a, b, rtol=1e3 * eps, atol=1e3 * eps)


# -- keywords that are refused


REFUSED = coverage_cases.REFUSED.strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_keywords_that_are_refused(line: str) -> None:
    """Each by its name: the last keyword of the call."""
    name = line.rpartition("=")[0].rpartition(" ")[2].rpartition("(")[2]
    with pytest.raises(TinyfuseError, match=f"{name}\\b"):
        trace_call(function_of(line), *WORLDS["plain"])


def tested() -> dict[str, set[str]]:
    """The parameters that calls give, for each function and method."""
    found: dict[str, set[str]] = {}
    for line in [line for _, line in CASES] + REFUSED:
        for name, given in calls(line):
            found.setdefault(name, set()).update(given)
    return found


def test_every_keyword_is_tested() -> None:
    found = tested()
    missing = {
        row.name: sorted(parameters(row.name) - found.get(row.name, set()))
        for row in rows()
        if row.is_supported
        and not row.name.startswith("np.ufunc.")
        and not row.is_ufunc
        and not row.same_as
        and not (row.name in found and parameters(row.name) <= found[row.name])
    }
    assert missing == {}


# -- ufuncs


UFUNCS = {
    row.name: row.function
    for row in rows()
    if row.is_supported and row.is_ufunc and not row.same_as and row.function.signature is None
}


@pytest.mark.parametrize("name", UFUNCS)
def test_keywords_of_ufuncs(name: str) -> None:
    ufunc = UFUNCS[name]
    float_loop = any(each.count("d") for each in ufunc.types)
    x, y = _PLAIN if float_loop else [(each * 9).astype(int) for each in _PLAIN]
    if ufunc is np.ldexp:
        y = y.astype(np.int32)
    given = [x, y][: ufunc.nin]
    kinds = [each.dtype for each in given] + [None] * ufunc.nout
    dtypes = ufunc.resolve_dtypes(tuple(kinds))[ufunc.nin :]
    mask = np.arange(12).reshape(3, 4) % 2 == 0

    def outputs() -> Any:
        made = tuple([np.zeros((3, 4), dtype) for dtype in dtypes])
        return made if len(made) > 1 else made[0]

    def same(call: Callable[..., Any]) -> None:
        compare(call, tuple(given), assert_same)

    same(lambda *args: ufunc(*args, out=outputs(), where=mask))
    same(lambda *args: ufunc(*args, casting="same_kind", subok=True, order="K"))
    if dtypes[0] in (np.float64, np.int64) and len(set(dtypes)) == 1:
        same(lambda *args: ufunc(*args, dtype=dtypes[0], casting="unsafe"))
    for keyword, value in (("where", mask), ("order", "F"), ("signature", (None,) * ufunc.nargs)):
        with pytest.raises(UnsupportedArgumentError, match=keyword):
            trace_call(lambda *args: ufunc(*args, **{keyword: value}), *given)  # noqa: B023


def test_methods_of_ufuncs() -> None:
    compare(
        lambda x: (
            np.add.reduce(x, axis=1, dtype=np.float64, keepdims=True, initial=1),
            np.add.reduce(x, 1, out=np.zeros(3)),
            np.add.accumulate(x, axis=1, dtype=np.float64),
            np.add.accumulate(x, 1, out=np.zeros((3, 4))),
            np.add.reduceat(x, [0, 2], axis=1, dtype=np.float64),
            np.add.reduceat(x, [0, 2], out=np.zeros((2, 4))),
            np.add.outer(x, x[0]),
            np.add.at(x, [0, 0], 1),
            x,
        ),
        (_PLAIN[0],),
        assert_close,
    )


# -- the table


def test_the_table_is_what_is_traced(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        FILE.write_text(page())
    if f"numpy {np.__version__}" not in FILE.read_text():
        pytest.skip("the table is of another numpy")
    assert FILE.read_text() == page(), "pytest --update-golden tests/test_coverage.py accepts this"


def test_every_function_is_traced_or_refused_with_a_reason() -> None:
    assert [row.name for row in rows() if not row.is_supported and not row.reason] == []


def test_enough_is_traced() -> None:
    assert sum(row.is_supported for row in rows()) >= 350


def test_what_is_refused_says_the_reason() -> None:
    """The one of the table, where numpy asks tinyfuse at all."""
    checked = 0
    for row in rows():
        if row.reason and not row.name.startswith("x.") and not row.same_as:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                checked += _refusal_says(row.function, row.reason)
    assert checked > 10


def _refusal_says(function: Any, reason: str) -> bool:
    if not hasattr(function, "__wrapped__") and not isinstance(function, np.ufunc):
        return False
    given = [_PLAIN[0]] * (function.nin if isinstance(function, np.ufunc) else 1)
    try:
        trace_call(lambda *args: function(*args), *given)
    except TinyfuseError as error:
        return reason in str(error)
    except TypeError:
        return False
    return False
