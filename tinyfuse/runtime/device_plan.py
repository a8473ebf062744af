"""CUDA programs on a device: all launches of a call in one call of C (`runtime_c/cuda_plan.c`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from tinyfuse.emit.launch import (
    ChoiceLaunches,
    CudaProgram,
    Launch,
    LaunchStep,
    LaunchSteps,
    RepeatLaunches,
    WhileLaunches,
)
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import CudaError
from tinyfuse.runtime.build import build
from tinyfuse.runtime.driver import Device, Graph, Memory, Module, Stream
from tinyfuse.runtime.driver_declarations import ffi
from tinyfuse.runtime.linking import open_library, symbol

# The driver's functions that C calls, in its order.
_CALLED = ("cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize")

LAUNCH, REPEAT, WHILE, CHOICE, BRANCH, MOVES = range(6)  # kinds of steps, as in cuda_plan.c


class DevicePlan:
    """A program, loaded on a device and ready to be put into streams.

    Args:
        program: what is launched.
        device: where.
        image: its text, compiled for the device.
    """

    def __init__(self, program: CudaProgram, device: Device, image: bytes) -> None:
        self.program, self.device = program, device
        self._module = Module(device, image)
        self._steps = _Steps(self._module)
        self._steps.add_all(program.steps)
        functions = device.driver.functions
        self._driver = ffi.new(
            "tf_driver *",
            [ffi.cast("void *", ffi.addressof(functions, name)) for name in _CALLED],
        )
        self._c_steps = ffi.new("tf_plan_step[]", self._steps.steps)
        self._c_places = ffi.new("int[]", self._steps.places)

    def put(self, stream: Stream, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Put all launches into a stream.

        Args:
            stream: which.
            inputs: addresses on the device, in the order of the program's inputs.
            outputs: likewise.

        Raises:
            CudaError: the driver refused a launch.
            DeviceMemoryError: there is no memory for intermediate arrays.
        """
        scratch = self._scratch(stream)
        self._run(stream, self._addresses(inputs, outputs, scratch))

    def capture(self, stream: Stream, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
        """A graph of all launches on these addresses, to be launched again and again.

        Raises CudaError where launches depend on numbers that the device computes.
        """
        if self._steps.waits:
            raise CudaError(
                f"{self.program.name} can be no graph: what it launches depends on numbers that "
                "it computes; call it instead"
            )
        scratch = self._scratch(stream)
        with stream.capture() as graph:
            self._run(stream, self._addresses(inputs, outputs, scratch))
        graph.memory = scratch
        return graph

    def _scratch(self, stream: Stream) -> Memory | None:
        size = self.program.scratch_bytes
        return Memory(stream, size) if size else None

    def _addresses(
        self, inputs: Sequence[int], outputs: Sequence[int], scratch: Memory | None
    ) -> list[int]:
        given = {"input": iter(inputs), "output": iter(outputs)}
        start = 0 if scratch is None else scratch.address
        return [
            start + buffer.offset if buffer.role == "scratch" else next(given[buffer.role])
            for buffer in self.program.buffers
        ]

    def _run(self, stream: Stream, addresses: Sequence[int]) -> None:
        memory = ffi.new("unsigned long[]", list(addresses))
        plan = ffi.new(
            "tf_plan *",
            [self._driver, self._c_steps, self._c_places, memory, stream.handle, -1],
        )
        code = _run_plan()(plan, len(self._steps.steps))
        if code:
            self.device.driver.check(code, f"launching kernel {self._steps.names[plan.failed]}")


class _Steps:
    """A program's steps as C has them: each before those inside of it."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.steps: list[dict[str, Any]] = []
        self.names: list[str] = []  # of the kernel of each; of others what they are
        self.places: list[int] = []
        self.waits = False  # for numbers that the device has computed

    def add_all(self, steps: LaunchSteps) -> None:
        for step in steps.body:
            self._add(step)
        if steps.moves:
            flat = [place for move in steps.moves for place in move]
            self._append("(moves)", kind=MOVES, **self._places(flat))

    def _add(self, step: LaunchStep) -> None:
        if isinstance(step, Launch):
            self._add_launch(step)
        elif isinstance(step, RepeatLaunches):
            place = -1 if step.turn is None else step.turn
            counted = [] if step.counted is None else [step.counted]
            self.waits = self.waits or bool(counted)
            loop = {"kind": REPEAT, "count": step.count, "place": place, **self._places(counted)}
            with self._around("(loop)", **loop):
                self.add_all(step.steps)
        elif isinstance(step, WhileLaunches):
            self.waits = True
            with self._around("(loop)", kind=WHILE, place=step.test):
                self.add_all(step.steps)
        else:
            self._add_choice(step)

    def _add_choice(self, step: ChoiceLaunches) -> None:
        self.waits = True
        with self._around("(choice)", kind=CHOICE, place=step.index):
            for branch in step.branches:
                with self._around("(branch)", kind=BRANCH):
                    self.add_all(branch)

    def _add_launch(self, step: Launch) -> None:
        self._append(
            step.kernel,
            kind=LAUNCH,
            function=self.module.function(step.kernel, step.shared),
            grid=step.grid,
            block=step.block,
            shared=step.shared,
            **self._places(step.arguments),
        )

    def _places(self, places: Sequence[int]) -> dict[str, int]:
        first = len(self.places)
        self.places.extend(places)
        return {"first": first, "arguments": len(places)}

    @contextmanager
    def _around(self, name: str, **fields: Any) -> Iterator[None]:
        """Steps that are added meanwhile are inside of this one."""
        self._append(name, **fields)
        own, before = self.steps[-1], len(self.steps)
        yield
        own["inside"] = len(self.steps) - before

    def _append(self, name: str, **fields: Any) -> None:
        self.names.append(name)
        self.steps.append(fields)


@lru_cache(maxsize=1)
def _run_plan() -> Any:
    text = (runtime_c() / "cuda_plan.c").read_text()
    library = open_library(build(text, "launches of plans"))
    return ffi.cast("tf_run_plan *", symbol(library, "tf_run_plan"))
