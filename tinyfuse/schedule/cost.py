"""The cost model: how long kernels take, `max(compute, memory) + launch`, on a machine.

Kernels are predicted from what their loop nests do, stages from what each would do as a kernel of
its own: both are a `Cost`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tinyfuse.dtypes import FLOAT64
from tinyfuse.graph.scalar_ops import SCALAR_OPS, cost
from tinyfuse.loops.cost import Cost, Operation, flops, widest
from tinyfuse.loops.ir import Kernel
from tinyfuse.machine import Machine
from tinyfuse.stage.analysis import comparisons, is_operation, operation_name
from tinyfuse.stage.expr import Expr, loads, walk
from tinyfuse.stage.ir import Order, Stage

WIDE = 8  # bytes of an element from which on half as many fit a vector
ITEMSIZE = 4  # bytes of those that `float32_rate` is for


def predicted_seconds(kernel: Kernel, machine: Machine, threads: int = 1) -> float:
    """How long a run of a kernel takes, with all that it reads in the caches that are large enough.

    threads: how many there are; those that find no work take no part.
    """
    return seconds(kernel.cost, machine, sharing(kernel, machine, threads))


def sharing(kernel: Kernel, machine: Machine, threads: int) -> int:
    """How many threads take part in a kernel, of so many that there are."""
    return min(threads, _parts(kernel), machine.cores)


def _parts(kernel: Kernel) -> int:
    """How many threads a kernel has work for."""
    loop = kernel.parallel
    return max(1, loop.variable.extent // kernel.grain) if loop else 1


def seconds(spent: Cost, machine: Machine, threads: int = 1) -> float:
    """How long that takes, shared evenly by so many threads of which each has a core."""
    threads = min(threads, machine.cores)
    constants = machine.constants
    busy = max(compute_seconds(spent, machine) / threads, memory_seconds(spent, machine, threads))
    return busy + constants.launch + (constants.wake if threads > 1 else 0.0)


def compute_seconds(spent: Cost, machine: Machine) -> float:
    """How long one core computes, or waits for one result after the other."""
    waiting = spent.chain * machine.constants.latency
    working = [
        times * operation_seconds(operation, machine) for operation, times in spent.operations
    ]
    return max(waiting, math.fsum(working))


def memory_seconds(spent: Cost, machine: Machine, threads: int = 1) -> float:
    """How long it takes to move every element once, or to load and store all from the L1.

    Lines that hold one element at a time come from where the arrays are.
    """
    moved = spent.bytes_read + spent.bytes_written
    outer = bandwidth(machine, level_of(moved, machine, threads), threads)
    inner = bandwidth(machine, 0, threads)
    return max(moved / outer, spent.lines / outer + spent.accesses / inner)


def level_of(footprint: int, machine: Machine, threads: int = 1) -> int:
    """The nearest of L1, L2, L3 and memory, counted from 0, that so many bytes fit into."""
    sizes = (machine.l1 * threads, machine.l2 * threads, machine.l3)
    return next((level for level, size in enumerate(sizes) if footprint <= size), len(sizes))


def bandwidth(machine: Machine, level: int, threads: int = 1) -> float:
    """Bytes per second that so many threads read and write, together, at one of these levels."""
    one = machine.constants.bandwidth[level]
    if threads == 1:
        return one
    return min(threads * one, max(one, machine.constants.shared_bandwidth[level]))


def operation_seconds(operation: Operation, machine: Machine) -> float:
    """How long one operation takes on one core, among many that do not wait for each other."""
    itemsize = WIDE if operation.dtype.itemsize >= WIDE else ITEMSIZE
    lanes = 1 if operation.vector else machine.vector_bytes // itemsize
    return operation_cost(operation, machine) * lanes / rate(operation, machine)


def rate(operation: Operation, machine: Machine) -> float:
    """How many additions per second one core does in vectors, of the operation's dtype."""
    constants = machine.constants
    wide = operation.dtype.itemsize >= WIDE
    return constants.float64_rate if wide else constants.float32_rate


def operation_cost(operation: Operation, machine: Machine) -> float:
    """What an operation takes in additions: as measured, or in proportion to what was.

    Operations on integers of any size are nearer to those on float32, in their additions.
    """
    usual = cost(operation.name)
    row = SCALAR_OPS.get(operation.name)
    for like, single, double in machine.constants.costs:
        if row is not None and row.like == like:
            measured = double if operation.dtype == FLOAT64 else single
            return measured * usual / cost(like)
    return usual


def stage_cost(stage: Stage) -> Cost:
    """What a kernel does that computes one stage, each element once; chains are not known yet."""
    operations: dict[Operation, int] = {}
    for operation, times in _operations(stage):
        operations[operation] = operations.get(operation, 0) + times
    return Cost(
        sum([flops(operation.name) * times for operation, times in operations.items()]),
        _bytes_read(stage),
        stage_bytes(stage),
        operations=tuple(operations.items()),
    )


def bytes_saved(stage: Stage, readers: int) -> int:
    """What storing a stage moves: one write, and a read for each kernel that needs it."""
    return stage_bytes(stage) * (1 + readers)


def stage_bytes(stage: Stage) -> int:
    return math.prod(stage.shape) * stage.dtype.itemsize


def _operations(stage: Stage) -> Iterator[tuple[Operation, int]]:
    for expression, points in _evaluated(stage):
        for node in filter(is_operation, walk(expression)):
            yield Operation(operation_name(node), widest(node)), points
    if stage.sort:
        compared = math.prod(stage.shape) * comparisons(stage.axes[-1].extent)
        yield Operation("sort", stage.dtype, False), compared


def _evaluated(stage: Stage) -> list[tuple[Expr, int]]:
    """The expressions of a stage, and how often each is evaluated."""
    *others, body = stage.expressions
    size = math.prod(stage.shape)
    along = math.prod([axis.extent for axis in stage.reduce_axes])
    if stage.scatter:
        updated = along * math.prod([axis.extent for axis in stage.updated_axes])
        start, *targets = others
        return [(start, size), *[(target, along) for target in targets], (body, updated)]
    # A tree has one node less than leaves.
    return [(body, size * along - (0 if stage.order is Order.SERIAL else size))]


def _bytes_read(stage: Stage) -> int:
    """What a stage reads of others, each element at most once."""
    read: dict[Stage, int] = {}
    for expression, points in _evaluated(stage):
        for load in loads(expression):
            if load.source is not stage:
                read[load.source] = read.get(load.source, 0) + points
    return sum([min(points * s.dtype.itemsize, stage_bytes(s)) for s, points in read.items()])
