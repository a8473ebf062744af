"""Calls of compiled programs with arrays that are on a GPU already; they wait for nothing.

Arrays of numpy's among the arguments are copied there. What is computed stays there, numbers as
arrays without axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.executable import Executable, Leaf, Program, Site
from tinyfuse.graph.interpreter import VIEWS as NUMPY_VIEWS
from tinyfuse.graph.ir import Eqn, Var
from tinyfuse.graph.primitives import reshape
from tinyfuse.memory import OnDevice, as_given, placed
from tinyfuse.runtime.device_array import ALIGNMENT, DeviceArray, copied, empty
from tinyfuse.runtime.device_streams import current_stream
from tinyfuse.runtime.driver import Stream, copy_on_device
from tinyfuse.signature import Signature

if TYPE_CHECKING:
    from tinyfuse.runtime.device_entry import DeviceEntry

FROM_NUMPY = "lies in the memory of the CPU, and not on the GPU as other arguments"


class DeviceExecutable(Executable):
    """As its base, with arrays on a GPU among the arguments."""

    __slots__ = ("_constants", "_lasting", "_overwritten")

    entry: DeviceEntry | None

    def __init__(self, program: Program, site: Site, signature: Signature) -> None:
        super().__init__(program, site, signature)
        kept = {var for _, var in self.captured[len(program.trace.captured) :]}
        constants = [at for at, var in self.operands if var.constant or var in kept]
        self._lasting = frozenset(constants)  # places of operands that never change
        self._constants: dict[int, DeviceArray] = {}  # their copies, once they are there
        self._overwritten = {} if self.checks else self._alone_in_what_they_write()

    def _alone_in_what_they_write(self) -> dict[int, int]:
        """By the slots of results that go to the caller's arrays alone, the places of these."""
        uses = [*self.copies, *[operand for _, operand in self.steps]]
        uses += [position for position, _, _ in self.leaves if position is not None]
        uses += [slot for slot, _, _ in self.writes if slot is not None]
        return {
            slot: place
            for slot, _, place in self.writes
            if slot is not None and slot < len(self.results) and uses.count(slot) == 1
        }

    def __call__(self, args: Sequence[Any]) -> Any:
        """As the base's; but for NonFiniteError and the checks of traces nothing is waited for."""
        stream = current_stream()
        with stream.device.current():
            return self._called(args, stream)

    def _called(self, args: Sequence[Any], stream: Stream) -> Any:
        args = self._completed(args)
        if self.requirements is not None:
            self.requirements.check(list(map(placed, args)))
        operands = [self._operand(place, args[place], var, stream) for place, var in self.operands]
        if self.check is not None:
            self.check([operand.numpy() for operand in operands])
        values = [self._output(slot, args, operands, stream) for slot in range(len(self.results))]
        if self.entry is not None:
            self.entry.put(stream, operands, values)
        result = self._made(values, args, stream)
        _hand_back([arg for arg in args if isinstance(arg, DeviceArray)], stream)
        return result

    # -- what goes in

    def _operand(self, place: int, value: Any, var: Var, stream: Stream) -> DeviceArray:
        if isinstance(value, DeviceArray):
            return value
        if place not in self._lasting:
            if var.shape:
                self._site.copied(var.name or "an array", FROM_NUMPY)
            return copied(self._native(value, var), stream)
        if place not in self._constants:
            made = copied(self._native(value, var), stream.device.stream)
            made.stream.wait()  # from then on it is there for all streams
            self._constants[place] = made
        return self._constants[place]

    def _output(
        self, slot: int, args: Sequence[Any], operands: Sequence[DeviceArray], stream: Stream
    ) -> DeviceArray:
        """Memory for a result: the caller's own, if it is to be there and nothing reads that."""
        place = self._overwritten.get(slot)
        if place is not None:
            target = args[place]
            if isinstance(target, DeviceArray) and _is_free(target, operands):
                return target
        return empty(*self.results[slot], stream)

    # -- what comes out

    def _made(self, values: list[Any], args: Sequence[Any], stream: Stream) -> Any:
        for position, check in self.checks:
            if values[position].numpy():
                raise check.failure(self._graph, self._inputs(list(map(_as_numpy, args))))
        values += [_copy(values[slot], stream) for slot in self.copies]
        for slot, constant, place in self.writes:
            _write(args[place], constant if slot is None else values[slot], stream)
        values += [args[place] for _, place in self.roots]
        for eqn, operand in self.steps:
            values.append(_view(eqn, values[operand]))
        leaves = [_finished(leaf, values, stream) for leaf in self.leaves]
        return leaves[0] if self._alone else self.out_tree.unflatten(leaves)


def _is_free(target: DeviceArray, operands: Sequence[DeviceArray]) -> bool:
    """Whether kernels may write there while they read the operands."""
    end = target.address + target.nbytes
    return not target.address % ALIGNMENT and all(
        end <= each.address or each.address + each.nbytes <= target.address for each in operands
    )


def _as_numpy(value: Any) -> Any:
    return value.numpy() if isinstance(value, DeviceArray) else value


def _copy(array: DeviceArray, stream: Stream) -> DeviceArray:
    made = empty(array.shape, array.dtype, stream)
    if array.size:
        copy_on_device(made.address, array.address, array.nbytes, stream)
    return made


def _write(target: Any, value: Any, stream: Stream) -> None:
    """Put what has been computed, or a constant, into an array of the caller's."""
    if not isinstance(target, DeviceArray):
        np.copyto(target, _as_numpy(value))
        return
    if value is target or not target.size:
        return
    if not isinstance(value, DeviceArray):
        value = copied(np.full(target.shape, value, target.dtype), stream)
    copy_on_device(target.address, value.address, target.nbytes, stream)


def _view(eqn: Eqn, value: Any) -> Any:
    if not isinstance(value, DeviceArray):
        return NUMPY_VIEWS[eqn.primitive](eqn, np.asarray(value))
    place = value.place
    if eqn.primitive is reshape and not value.is_contiguous:  # elements for a copy are not here
        return value.view(place.reshape(eqn.params["shape"], copy=False))
    return value.view(NUMPY_VIEWS[eqn.primitive](eqn, place))


def _finished(leaf: Leaf, values: Sequence[Any], stream: Stream) -> Any:
    position, constant, finish = leaf
    value = constant if position is None else values[position]
    if isinstance(value, OnDevice):
        return as_given(value)
    made = value if finish is None else finish(value)
    return copied(made, stream) if position is None and isinstance(made, np.ndarray) else made


def _hand_back(arrays: Sequence[DeviceArray], stream: Stream) -> None:
    """Let the owners' later work come after ours: they may change them, or give them back."""
    producers = {each.producer.number: each.producer for each in arrays if each.producer}
    for producer in producers.values():
        producer.after(stream)
    stream.device.hold(stream, [each for each in arrays if each.producer is None])
