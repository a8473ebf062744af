"""The names of what is traced."""

from __future__ import annotations

from tinyfuse.trace.dispatch import FUNCTIONS, REFUSED, function_name
from tinyfuse.trace.elementwise import COMPOSED_UFUNCS
from tinyfuse.trace.promotion import OPERATIONS
from tinyfuse.trace.stand_ins import originals


def supported_functions() -> tuple[str, ...]:
    """The functions of numpy that can be called with traced arrays, by name: `np.sum`, sorted.

    What numpy makes of values that are known while tracing is not limited to them.
    """
    traced = [each for each in FUNCTIONS if each not in REFUSED]
    functions = [*traced, *OPERATIONS, *COMPOSED_UFUNCS, *originals()]
    names = {function_name(each) for each in functions if callable(each)}
    return tuple(sorted([name for name in names if not name.rpartition(".")[2].startswith("_")]))
