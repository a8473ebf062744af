"""Kernels that fit the registers of a GPU, as NVIDIA's compiler tells: it has the last word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tinyfuse.config import compile_log as log
from tinyfuse.errors import CudaCompilerNotFoundError
from tinyfuse.lower.device_registers import WORDS, Remedies, Remedy
from tinyfuse.runtime.nvrtc import built_cubin, require_compiler

if TYPE_CHECKING:
    from tinyfuse.compilation import Lowered

MOST = max(Remedy)


def fitted(lowered: Lowered, architecture: str) -> Lowered:
    """The same function, where its kernels spill registers lowered again: see `Lowered.fitted`."""
    found: dict[str, dict[Remedy, int]] = {}  # bytes that each kernel spills, by what was done
    made = lowered
    while True:
        spilled = _spilled(made, architecture)
        for name, nbytes in spilled.items():
            found.setdefault(name, {})[made.remedies.get(name, Remedy.NONE)] = nbytes
        left = {name: max(found[name]) for name, nbytes in spilled.items() if nbytes}
        again = {name: Remedy(done + 1) for name, done in left.items() if done < MOST}
        if not again:
            return _with_best(lowered, made, found)
        made = made.remedied({**made.remedies, **again})


def fitted_for_gpu(lowered: Lowered) -> Lowered:
    """The same for the GPU of this computer; as it is where there is no compiler to ask.

    Raises NoGpuError where there is none.
    """
    from tinyfuse.runtime.driver import default_device  # only who has a GPU

    device = default_device()
    try:
        require_compiler()
    except CudaCompilerNotFoundError:
        return lowered
    return fitted(lowered, device.architecture)


def _spilled(lowered: Lowered, architecture: str) -> dict[str, int]:
    """Bytes that kernels spill, by the names they have before they are mapped to a device."""
    if not lowered.origins:
        return {}
    cubin = built_cubin(lowered.cuda[0].text, lowered.traced.name, architecture)
    spilled = dict.fromkeys(lowered.origins.values(), 0)
    for name, taken in cubin.resources.items():
        spilled[lowered.origins[name]] += taken.spilled
    return spilled


def _with_best(
    lowered: Lowered, made: Lowered, found: Mapping[str, Mapping[Remedy, int]]
) -> Lowered:
    """The program with what is best for each kernel, and told so."""
    best = {name: min(tried, key=lambda done: (tried[done], done)) for name, tried in found.items()}
    chosen: Remedies = {name: remedy for name, remedy in best.items() if remedy}
    for name, remedy in chosen.items():
        before, after = found[name][Remedy.NONE], found[name][remedy]
        log.info("%s spilled %d bytes, now %d: %s", name, before, after, WORDS[remedy])
    if chosen != made.remedies:
        made = lowered.remedied(chosen)
    made.spilled = {name: found[name][Remedy.NONE] for name in chosen}
    return made
