"""Direct calls in Python, for where the extension could not be built.

Each is a function of its own, written out for its arguments: that takes half the time of a loop
over a description of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType
from typing import Any

import numpy as np

from tinyfuse.direct import Direct, Kind, OutputKind, Result, ResultKind, Source
from tinyfuse.dispatch import MISS, PythonCall
from tinyfuse.runtime.declarations import ffi
from tinyfuse.runtime.library import scratch
from tinyfuse.runtime.pool import pool
from tinyfuse.tree import same_keys, typed

Variables = dict[str, Any]


def python_call(direct: Direct) -> PythonCall:
    """The direct call as a Python function."""
    variables: Variables = dict(_COMMON)
    variables.update(function=direct.entry.function, entry=direct.entry, threads=direct.threads)
    variables.update(build=direct.build)
    lines = [
        "def run(args, kwargs):",
        *_indented(_arguments(direct, variables)),
        *_indented(_computation(direct, variables)),
        *_indented(_result(direct, variables)),
    ]
    exec(compile("\n".join(lines), f"<tinyfuse: {direct.entry.symbol}>", "exec"), variables)
    return PythonCall(variables["run"])


def _indented(lines: Iterator[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _arguments(direct: Direct, variables: Variables) -> Iterator[str]:
    """Statements that find the arguments, and return MISS where they do not fit."""
    count, names = direct.form
    if names:
        variables["names"] = names
        yield "if tuple(kwargs) != names: return MISS"
        yield "args += tuple(kwargs.values())"
    else:
        yield "if kwargs: return MISS"
    places = [f"g{at}" for at in range(count + len(names))]
    yield f"try: [{', '.join(places)}] = args"
    yield "except ValueError: return MISS"  # there are more or fewer
    tests = []
    for at, argument in enumerate(direct.arguments):
        origin = argument.origin
        variables.update({f"h{at}": origin.holder, f"n{at}": origin.name, f"p{at}": origin.steps})
        variables.update({f"v{at}": argument.value, f"s{at}": argument.shape})
        found = _SOURCES[origin.source].format(at=at, given=origin.position)
        yield f"a{at} = " + (f"walked({found}, p{at})" if origin.steps else found)
        tests.append(_TESTS[argument.kind].format(at=at))
    if tests:
        yield f"if not ({' and '.join(tests)}): return MISS"


_SOURCES = {
    Source.GIVEN: "g{given}",
    Source.HELD: "h{at}",
    Source.GLOBAL: "h{at}.get(n{at}, MISS)",
    Source.CELL: "contents(h{at})",
}

# An array whose memory is its own is aligned; whether it is in C order cffi finds out.
_TESTS = {
    Kind.ARRAY: (
        "type(a{at}) is array and (a{at}.dtype is v{at} or a{at}.dtype == v{at}) and "
        "a{at}.shape == s{at} and (a{at}.base is None or a{at}.flags.aligned)"
    ),
    Kind.SCALAR: "type(a{at}) is v{at}",
    Kind.FLOAT: "type(a{at}) is float",
    Kind.INTEGER: "type(a{at}) is int and -(2**63) <= a{at} < 2**63",
    Kind.EQUAL: "(a{at} is v{at} or same(a{at}, v{at}))",
    Kind.IDENTICAL: "a{at} is v{at}",
    Kind.OF_TYPE: "type(a{at}) is v{at}",
    Kind.WITH_KEYS: "has_keys(a{at}, v{at})",
}


def _computation(direct: Direct, variables: Variables) -> Iterator[str]:
    """Statements that compute the outputs."""
    for at, output in enumerate(direct.outputs):
        shape = output.shape
        # numpy reads a number faster than a tuple of one
        variables.update({f"t{at}": shape[0] if len(shape) == 1 else shape, f"d{at}": output.dtype})
        yield f"o{at} = empty(t{at}, d{at})"
    operands = [_OPERANDS[direct.arguments[at].kind].format(at=at) for at in direct.operands]
    outputs = [f"address(o{at})" for at in range(len(direct.outputs))]
    buffers = "".join([f"{each}, " for each in (*operands, *outputs)])
    memory = f"address(scratch({direct.scratch_bytes}))" if direct.scratch_bytes else "NULL"
    threads = "NULL" if direct.threads == 1 else "pool(threads)"
    yield "try:"
    yield f"    if function(({buffers}), {memory}, {threads}): return MISS"
    yield "except ValueError: return MISS"  # an array is not in C order
    for at, output in enumerate(direct.outputs):
        if output.kind is OutputKind.CHECK:
            yield f"if o{at}: return MISS"


_OPERANDS = {
    Kind.ARRAY: "address(a{at})",
    Kind.SCALAR: "address(a{at})",
    Kind.FLOAT: "new(POINTER_TO_DOUBLE, a{at})",
    Kind.INTEGER: "new(POINTER_TO_INTEGER, a{at})",
}


def _result(direct: Direct, variables: Variables) -> Iterator[str]:
    leaves = []
    for at, result in enumerate(direct.results):
        variables[f"c{at}"] = result.constant
        leaves.append(_leaf(direct, at, result))
    listed = ", ".join(leaves)
    if direct.build is None:
        yield f"return {listed}"
    else:
        yield f"return build([{listed}])"


def _leaf(direct: Direct, at: int, result: Result) -> str:
    if result.kind is ResultKind.CONSTANT:
        return f"c{at}"
    if result.kind is ResultKind.ARGUMENT:
        return f"a{result.position}"
    return _FINISHES[direct.outputs[result.position].kind].format(at=result.position)


_FINISHES = {
    OutputKind.ARRAY: "o{at}",
    OutputKind.SCALAR: "o{at}[()]",
    OutputKind.FLOAT: "o{at}.item()",
    OutputKind.INTEGER: "o{at}.item()",
}


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return MISS


def _walked(value: Any, steps: tuple[tuple[bool, Any], ...]) -> Any:
    try:
        for to_attribute, key in steps:
            value = getattr(value, key) if to_attribute else value[key]
    except Exception:  # whatever reading an attribute or an item can raise
        return MISS
    return value


def _has_keys(value: Any, keys: tuple[Any, ...]) -> bool:
    return same_keys(tuple(value), keys) if type(value) is dict else len(value) == len(keys)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(typed(one) == typed(other))


_COMMON: Variables = {
    "MISS": MISS,
    "NULL": ffi.NULL,
    "POINTER_TO_DOUBLE": ffi.typeof("double *"),
    "POINTER_TO_INTEGER": ffi.typeof("int64_t *"),
    "address": ffi.from_buffer,
    "array": np.ndarray,
    "has_keys": _has_keys,
    "walked": _walked,
    "contents": _contents,
    "new": ffi.new,
    "empty": np.empty,
    "pool": pool,
    "same": _same,
    "scratch": scratch,
}
