"""What is wrong with a kernel is said exactly: by kernel, block, thread, line, and what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.cuda_kernels import (
    Launch,
    atomic_sum,
    attention,
    convolution,
    elementwise,
    gemm,
    histogram,
    layernorm,
    scan,
    softmax,
    source,
    stencil,
    tensor_cores,
    transpose,
    votes,
    warp_exchange,
)
from tinyfuse.runtime.emulator import ORDERS


class Bug(NamedTuple):
    """A kernel of which `right` reads `wrong`, and what is reported of it."""

    launch: Callable[[], Launch]
    right: str
    wrong: str
    report: str

    def text(self, launch: Launch) -> str:
        text = source(launch.file)
        assert text.count(self.right) == 1
        return text.replace(self.right, self.wrong)


SYNC = "  __syncthreads();\n"

BUGS = {
    "a buffer is written again before all have read it": Bug(
        softmax,
        f"{SYNC}  float sum = 0.0f;",
        "  float sum = 0.0f;",
        "kernel softmax, block (0,0,0), thread (0,0,0), line 16: "
        "it writes partial[0], which thread (24,0,0) read on line 11, with no barrier "
        "between",
    ),
    "a buffer is read before all have written it": Bug(
        softmax,
        f"{SYNC}  sum = partial[lane & 7];",
        "  sum = partial[lane & 7];",
        "kernel softmax, block (0,0,0), thread (8,0,0), line 18: "
        "it reads partial[0], which thread (0,0,0) wrote on line 17, with no barrier "
        "between",
    ),
    "one element too many is written": Bug(
        softmax,
        "j < columns; j += 256) y[row + j] = expf(x[row + j] - most)",
        "j <= columns; j += 256) y[row + j] = expf(x[row + (j < columns ? j : 0)] - most)",
        "kernel softmax, block (1,0,0), thread (0,0,0), line 21: "
        "it writes y[300], which block (0,0,0) wrote on line 21: no barrier orders blocks",
    ),
    "a barrier under a condition": Bug(
        softmax,
        "  for (int j = thread; j < columns; j += 256) y",
        "  if (thread < 200) __syncthreads();\n  for (int j = thread; j < columns; j += 256) y",
        "kernel softmax, block (0,0,0), thread (0,0,0), line 21: "
        "it waits at a barrier, and thread (200,0,0) has left the kernel",
    ),
    "different barriers for different threads": Bug(
        softmax,
        f"{SYNC}  float sum",
        "  if (thread < 32)\n    __syncthreads();\n  else\n    __syncthreads();\n  float sum",
        "kernel softmax, block (0,0,0), thread (32,0,0), line 16: "
        "it waits at this barrier, and other threads of its block at that of line 14",
    ),
    "a shuffle under a condition": Bug(
        softmax,
        "  float sum = 0.0f;",
        "  float sum = lane < 31 ? __shfl_xor_sync(0xffffffffu, 0.0f, 1) : 0.0f;",
        "kernel softmax, block (0,0,0), thread (31,0,0), line 16: "
        "it waits for its warp here, and lane 0 of it on line 14",
    ),
    "a shuffle from a lane that its mask does not name": Bug(
        votes,
        "int every =",
        "if (threadIdx.x < 8) __shfl_xor_sync(0xffu, flag, 8);\n  int every =",
        "kernel votes, block (0,0,0), thread (0,0,0), line 5: "
        "it asks for the value of lane 8, which mask 000000ff does not name",
    ),
    "a shuffle among lanes that have left": Bug(
        layernorm,
        "if (row >= rows) return;",
        "if (row >= rows || lane == 31) return;",
        "kernel layernorm, block (0,0,0), thread (0,0,0), line 13: "
        "it waits for lanes of its warp that do not come: mask ffffffff, arrived 7fffffff",
    ),
    "no barrier between tiles": Bug(
        gemm,
        f"  {SYNC}",
        "",
        "kernel gemm, block (0,0,0), thread (0,0,0), line 18: "
        "it reads a_tile[0][0][1], which has no value yet",
    ),
    "rows beyond the last are written": Bug(
        gemm,
        "if (row < m && column < n)",
        "if (column < n)",
        "kernel gemm, block (0,1,0), thread (16,0,0), line 32: "
        "it writes c[4760] (16 bytes), which is outside: there are 4760 elements",
    ),
    "no barrier between a tile and its transpose": Bug(
        transpose,
        SYNC,
        "",
        "kernel transpose, block (0,0,0), thread (0,0,0), line 8: "
        "it reads tile[0][8], which has no value yet",
    ),
    "no barrier after a halo is read": Bug(
        convolution,
        SYNC,
        "",
        "kernel convolution, block (0,0,0), thread (0,0,0), line 14: "
        "it reads tile[1], which has no value yet",
    ),
    "no barrier before keys are replaced": Bug(
        attention,
        f"first += 32) {{\n  {SYNC}",
        "first += 32) {\n",
        "kernel attention, block (0,0,0), thread (1,0,0), line 14: "
        "it writes values[0][1], which thread (0,0,0) read on line 38, with no barrier "
        "between",
    ),
    "an addition across blocks that is not atomic": Bug(
        atomic_sum,
        "atomicAdd(&sum[0], s)",
        "sum[0] += s",
        "kernel atomic_sum, block (1,0,0), thread (0,0,0), line 23: "
        "it reads sum[0], which block (0,0,0) wrote on line 23: no barrier orders blocks",
    ),
    "an addition within a block that is not atomic": Bug(
        histogram,
        "atomicAdd(&own[x[i]], 1)",
        "own[x[i]] += 1",
        "kernel histogram, block (0,0,0), thread (15,0,0), line 6: "
        "it reads own[225], which thread (0,0,0) wrote on line 6, with no barrier between",
    ),
    "a copy that is not waited for": Bug(
        tensor_cores,
        "    tf_cp_wait(0);\n",
        "",
        "kernel tensor_cores, block (0,0,0), thread (0,0,0), line 21: "
        "it reads a_tile[0][0][0], which a copy writes that thread (0,0,0) began on "
        "line 8 and has not waited for",
    ),
    "a shared array that is too short": Bug(
        stencil,
        "in, [20][21]",
        "in, [20][19]",
        "kernel stencil, block (0,0,0), thread (3,0,0), line 8: "
        "index 19 of axis 1 is outside shared array in[20][19]",
    ),
    "lanes exchange values and do not wait": Bug(
        warp_exchange,
        "    __syncwarp();\n",
        "",
        "kernel warp_exchange, block (0,0,0), thread (0,0,0), line 8: "
        "it reads halves[0][16], which has no value yet",
    ),
    "a vector that is not aligned": Bug(
        elementwise,
        "TF_LOAD(float4, &bias[i])",
        "TF_LOAD(float4, &bias[i + 1])",
        "kernel elementwise, block (0,0,0), thread (0,0,0), line 4: "
        "it reads 16 bytes at bias[1], which is not aligned to as many",
    ),
    "an output is read before it is written": Bug(
        scan,
        "if (t < n) y[at] =",
        "if (t < n) y[at] +=",
        "kernel scan, block (0,0,0), thread (0,0,0), line 11: "
        "it reads y[0], which has no value yet",
    ),
    "shared memory is read before it is written": Bug(
        histogram,
        "  own[threadIdx.x] = 0;\n  __syncthreads();\n",
        "",
        "kernel histogram, block (0,0,0), thread (0,0,0), line 4: "
        "it reads own[0], which has no value yet",
    ),
    "a block larger than its launch bound": Bug(
        votes,
        "__launch_bounds__(64)",
        "__launch_bounds__(32)",
        "kernel votes cannot be launched: its blocks have more threads than its launch bound says",
    ),
    "masks that differ": Bug(
        votes,
        "int every =",
        "__shfl_sync(threadIdx.x % 32 ? 0xffffffffu : 0x00000003u, flag, 0);\n  int every =",
        "kernel votes, block (0,0,0), thread (31,0,0), line 5: "
        "it waits for the lanes ffffffff of its warp, and lane 0 of them for 00000003",
    ),
    "a trap": Bug(
        votes,
        "int every =",
        "if (flag > 1 - (int)blockIdx.x) __trap();\n  int every =",
        "kernel votes, block (1,0,0), thread (17,0,0), line 5: it traps",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_reported(name: str):
    bug = BUGS[name]
    launch = bug.launch()
    assert launch.run(bug.text(launch)).error == bug.report


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_reported_in_every_order(name: str, order: str):
    bug = BUGS[name]
    launch = bug.launch()
    assert launch.run(bug.text(launch), order=order, seed=3).error is not None


def test_dynamic_shared_memory_that_is_too_small_is_reported():
    launch = convolution()
    assert launch.run(shared=launch.shared - 4).error == (
        "kernel convolution, block (0,0,0), thread (3,5,0), line 7: "
        "it writes tile[299] (4 bytes), which is outside: there are 299 elements"
    )
