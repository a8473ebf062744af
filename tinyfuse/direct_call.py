"""Direct calls as the extension makes them, or as Python does without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyfuse.direct import Direct, direct
from tinyfuse.dispatch import DirectCall, extension
from tinyfuse.executable import Executable
from tinyfuse.parameters import Form, Plan
from tinyfuse.runtime.library import Entry, drop_scratch
from tinyfuse.runtime.linking import address
from tinyfuse.runtime.pool import pool


def direct_call(
    executable: Executable, form: Form, plan: Plan, given: Sequence[Any]
) -> DirectCall | None:
    """What calls a program directly with arguments like these; None where that cannot be."""
    if not isinstance(executable.entry, Entry):  # nothing that an address stands for
        return None
    described = direct(executable, form, plan, given)
    if described is None:
        return None
    return _python_call(described) if extension is None else _compiled_call(described)


def _python_call(described: Direct) -> DirectCall:
    from tinyfuse.python_call import python_call  # only here: most have the extension

    return python_call(described)


def _compiled_call(described: Direct) -> DirectCall:
    drop_scratch()  # the extension has scratch memory of its own
    threads = pool(described.threads)  # made now if need be; those of the moment have an own place
    call: DirectCall = extension.DirectCall(
        address(described.entry.function),
        described.entry,
        *described.form,
        tuple([(*origin, *what) for origin, *what in described.arguments]),
        described.operands,
        described.outputs,
        described.results,
        described.build,
        described.scratch_bytes,
        None if described.threads is None else address(threads),
        described.releases,
    )
    return call
