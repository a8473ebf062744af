"""Which stream calls on arrays of a GPU are put into: the user's, or one of the calling thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tinyfuse.errors import DeviceArrayError
from tinyfuse.runtime import driver
from tinyfuse.runtime.driver import Stream


class _Chosen(threading.local):
    def __init__(self) -> None:
        self.streams: list[Stream] = []  # of the blocks that this thread is in


_chosen = _Chosen()


def current_stream() -> Stream:
    """That of the innermost `cuda_stream` which this thread is in, or its own one.

    Raises NoGpuError where there is no GPU.
    """
    return _chosen.streams[-1] if _chosen.streams else driver.default_device().stream


@contextmanager
def cuda_stream(stream: Any) -> Iterator[None]:
    """Inside this block calls of this thread are put into a stream, and wait for nothing.

    ::

        with tinyfuse.cuda_stream(torch.cuda.current_stream()):
            y = f(x)

    Outside of it they have a stream of their own, which waits for those that arguments are made in,
    as these do for the results.

    Args:
        stream: of PyTorch, CuPy, Numba or another library with `__cuda_stream__`, on GPU 0; or the
            number that the driver knows it by (0: the usual one).

    Raises:
        DeviceArrayError: it is no stream.
        NoGpuError: there is no GPU.
    """
    device = driver.default_device()
    _chosen.streams.append(Stream(device, _number(stream), stream))
    try:
        yield
    finally:
        _chosen.streams.pop()


def _number(stream: Any) -> int:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # of PyTorch, CuPy, Numba
        if hasattr(stream, name):
            found = getattr(stream, name)
            return int(getattr(found, "value", found) or 0)
    if type(stream) is int and stream >= 0:
        return stream
    raise DeviceArrayError(
        f"{stream!r:.60} is no stream of CUDA: pass one of CuPy or PyTorch, or its number"
    )
