"""Random programs of views and writes, as text, each statement tried on numpy first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.trace_checking import twin

VIEWS = """\
{0}.T
{0}[::-1]
{0}.reshape(-1)
{0}.ravel()
np.transpose({0})
{0}[..., None]
{0}.swapaxes(0, -1)
np.atleast_2d({0})
np.flip({0})
{0}.copy()
{0}.real
np.expand_dims({0}, 0)
{0}.reshape(2, -1)
np.squeeze({0})
{0}.flatten()
np.split({0}, 2)[1]
{0}[()]
{0}[...]
np.broadcast_to({0}, (2, 4, 4))
{0} + 0
{0}.reshape(-1, 2)
{0}.reshape({0}.shape[::-1])
np.moveaxis({0}, 0, -1)
{0}.astype({0}.dtype, copy=False)
np.rot90({0})
np.array_split({0}, 3)[1]
np.diagonal({0})
{0}.view()
np.repeat({0}, 1, axis=0)
np.tile({0}, (1, 1))
np.roll({0}, 0)
np.zeros_like({0})
{0}.reshape(-1, order='F')
{0}.T.copy(order='K')
np.concatenate([{0}])
np.atleast_3d({0})[..., 0]
{0}.transpose()[1:]
""".splitlines()
VALUES = """\
2
-1.0
True
{0}
{0} + 1
{0} * {1}
{0}[{i}]
{0}.sum(axis=0)
{0}.T
""".splitlines()
WRITES = """\
{0}[{i}] = {v}
{0}[{i}] = {v}
{0} += {v}
{0} -= {v}
{0} *= {v}
{0}[{i}] += {v}
{0}[{i}] *= {v}
np.add({0}, {v}, out={1})
{0}.fill({v})
np.copyto({0}, {v})
np.add({0}, 1, out={1}, where={1} > 0)
{0} **= 2
np.sum({0}, axis=0, out={1}[0])
np.negative({0}, out={0}[::-1])
""".splitlines()
STEPS = """\
{0}, {1} = {1}, {0}
{0} = {1}
{0} = {1}[{i}]
{0} = {1}[{i}]
{0} = {1} + {v}
""".splitlines()


def slices(draw: Any) -> str:
    ends = ("", "1", "-1", "2", "-2", "0", "3")
    parts = [draw(st.sampled_from(ends)) for _ in range(2)]
    return ":".join([*parts, draw(st.sampled_from(("", "", "", "2", "-1", "-2")))])


def index(draw: Any) -> str:
    items = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 9))
        single = st.sampled_from(("0", "-1", "...", "None"))
        items.append(slices(draw) if kind < 5 else draw(single))
    return ", ".join(items)


def statement(draw: Any, names: Sequence[str]) -> str:
    def name() -> str:
        return str(draw(st.sampled_from(names)))

    first, second = name(), name()
    kind = draw(st.integers(0, 9))
    if kind < 3:
        return f"{first} = {draw(st.sampled_from(VIEWS)).format(second)}"
    value = draw(st.sampled_from(VALUES)).format(name(), name(), i=index(draw))
    form = draw(st.sampled_from(STEPS if kind < 5 else WRITES))
    return str(form.format(first, second, i=index(draw), v=value))


def compiled(lines: Sequence[str], names: Sequence[str], arguments: Sequence[str]) -> Any:
    text = [f"def f({', '.join(arguments)}):", *lines, f"    return {', '.join(names)}"]
    space: dict[str, Any] = {"np": np}
    exec("\n".join(text), space)
    return space["f"]


def runs(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", np.exceptions.VisibleDeprecationWarning)
        try:
            results = function(*twin(list(arguments)))
        except Exception:
            return False
    arrays = [each for each in results if isinstance(each, (np.ndarray, np.generic))]
    return all(array.size < 200 for array in arrays)


@st.composite
def programs(draw: Any, arguments: Any, statements: int = 10) -> tuple[str, Any, list[Any]]:
    """(text, function, arguments); the function returns all its variables."""
    given = draw(arguments)
    parameters = [f"x{at}" for at in range(len(given))]
    names = [*parameters, "a", "b"]
    lines = ["    a, b = x0, x0.T + 1"]
    for _ in range(draw(st.integers(2, statements))):
        line = f"    {statement(draw, names)}"
        if runs(compiled([*lines, line], names, parameters), given):
            lines.append(line)
    function = compiled(lines, names, parameters)
    return "\n".join(lines), function, given
