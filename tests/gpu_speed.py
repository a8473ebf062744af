"""How fast compiled programs are on a GPU, beside CuPy, PyTorch and JAX where those are installed.

Times are those of many calls in a row, with all that a call does on the CPU. Nothing is asserted.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

import tinyfuse

CALLS, ROUNDS = 10, 7


def elementwise(x, y):
    return np.exp(x) * y + x


def softmax(x):
    e = np.exp(x - np.amax(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layernorm(x, scale, shift):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return (
        centred
        / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
        * (scale + shift)
    )


def columns(x):
    return np.sum(x, axis=0)


def turned(x):
    return x.T + 1


def layer(x, w, b):
    return np.tanh(x @ w + b)


class Workload(NamedTuple):
    """shapes: of float32 arrays, that do not fit into caches. flops: of a call."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    flops: int

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(0)
        return [random.standard_normal(shape, np.float32) for shape in self.shapes]


N = 8192
WORKLOADS = (
    Workload(elementwise, ((N, N), (N, N)), 8 * N * N),
    Workload(softmax, ((N, N),), 5 * N * N),
    Workload(layernorm, ((N, N), (N,), (N,)), 8 * N * N),
    Workload(columns, ((N, N),), N * N),
    Workload(turned, ((N, N),), N * N),
    Workload(layer, ((N // 2, N // 2), (N // 2, N // 2), (N // 2,)), 2 * (N // 2) ** 3),
)


class Peer(NamedTuple):
    """np: what takes numpy's place in functions. put: an array on the GPU. compiled: what is called
    in place of a function. wait: until a result is there. numpy: a result, back."""

    name: str
    np: Any
    put: Callable[[np.ndarray], Any]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
    wait: Callable[[Any], object]
    numpy: Callable[[Any], np.ndarray]


TINYFUSE = Peer(
    "tinyfuse",
    np,
    lambda array: tinyfuse.device_put(array),
    lambda function: tinyfuse.jit(function, target="cuda"),
    lambda result: result.stream.wait(),
    lambda result: result.numpy(),
)


def installed() -> Iterator[Peer]:
    """Those of the others that find a GPU."""
    cupy, torch, jax = map(_module, ("cupy", "torch", "jax"))
    if cupy and cupy.is_available():
        wait = cupy.cuda.runtime.deviceSynchronize
        yield Peer("CuPy", cupy, cupy.asarray, _itself, lambda result: wait(), cupy.asnumpy)
    if torch and torch.cuda.is_available():
        for name, compiled in (("PyTorch", _itself), ("torch.compile", torch.compile)):
            yield Peer(
                *(name, torch, lambda array: torch.from_numpy(array).cuda(), compiled),
                lambda result: torch.cuda.synchronize(),
                lambda result: result.cpu().numpy(),
            )
    if jax and jax.default_backend() == "gpu":
        yield Peer(
            "JAX",
            jax.numpy,
            jax.device_put,
            jax.jit,
            jax.block_until_ready,
            lambda r: np.asarray(r),
        )


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def call_of(peer: Peer, workload: Workload) -> tuple[Callable[[], Any], np.ndarray]:
    """A call on the GPU, and its first result."""
    function = workload.function
    if peer.np is not np:
        function = FunctionType(function.__code__, {**function.__globals__, "np": peer.np})
    compiled, arrays = peer.compiled(function), list(map(peer.put, workload.arrays()))
    return lambda: compiled(*arrays), peer.numpy(compiled(*arrays))


def seconds(peer: Peer, call: Callable[[], Any]) -> float:
    """The median time of a call."""
    peer.wait(call())
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            result = call()
        peer.wait(result)
        found.append((time.perf_counter() - start) / CALLS)
    return float(np.median(found))


def row(peer: Peer, workload: Workload) -> str:
    """What a peer makes of a workload; an error of its own is no error of ours."""
    try:
        call, result = call_of(peer, workload)
        spent = seconds(peer, call)
    except Exception as error:
        if peer is TINYFUSE:
            raise
        return f"    {peer.name:14} {type(error).__name__}: {str(error).splitlines()[0]:.60}"
    moved = result.nbytes + sum(array.nbytes for array in workload.arrays())
    rates = f"{moved / spent / 1e9:8.0f} GB/s {workload.flops / spent / 1e12:7.2f} TFLOP/s"
    expected = workload.function(*workload.arrays())
    error = float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))
    return f"    {peer.name:14} {spent * 1e6:8.0f} us {rates}   {error:.0e} from numpy"


def report(workloads: Sequence[Workload] = WORKLOADS) -> None:
    """Prints a table."""
    peers = [TINYFUSE, *installed()]
    if len(peers) == 1:
        print("None of CuPy, PyTorch and JAX is here with a GPU.")
    for workload in workloads:
        print(f"  {workload.function.__name__} {' '.join(map(str, workload.shapes))}")
        for peer in peers:
            print(row(peer, workload))
