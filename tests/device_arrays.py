"""A GPU that is none, and arrays on it as other libraries have them."""

from __future__ import annotations

import functools
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tinyfuse.runtime import device_entry
from tinyfuse.runtime.device_array import DeviceArray
from tinyfuse.runtime.device_entry import DeviceEntry
from tinyfuse.runtime.driver import Device, Stream
from tinyfuse.testing.fake_gpu import FakeDriver


def run_on(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Device:
    """Let there be a GPU, which has the kernels whatever is compiled, and registers enough."""
    device = Device(driver)
    entry = functools.partial(DeviceEntry, device=device, compiled=driver.image)
    monkeypatch.setattr(device_entry, "DeviceEntry", entry)
    monkeypatch.setattr("tinyfuse.runtime.driver.default_device", lambda: device)
    monkeypatch.setattr("tinyfuse.fitting.fitted_for_gpu", lambda lowered: lowered)
    return device


class Numba:
    """As numba has it: the interface alone."""

    def __init__(self, array: DeviceArray, **changes: Any) -> None:
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, **self.changes}


class Cupy(Numba):
    """Both protocols; the interface names the stream."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None) -> Any:
        return self.array.__dlpack__(stream=stream)


class Jax(Cupy):
    """Both; but the interface names no stream, and arrays never change."""

    __module__ = "jaxlib"
    asked: list[int | None]

    def __init__(self, array: DeviceArray) -> None:
        super().__init__(array, stream=None)
        self.asked = []

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.asked.append(stream)
        return super().__dlpack__(stream)


class Tensor(Cupy):
    """As PyTorch has it: the interface, which names no stream, is for those without gradients."""

    __module__ = "torch"
    requires_grad = False

    def __init__(self, array: DeviceArray) -> None:
        super().__init__(array, stream=None)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        return super().__cuda_array_interface__


LIBRARIES = (Numba, Cupy, Jax, Tensor, lambda array: array)


def with_torch(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be PyTorch, whose current stream that is."""
    torch: Any = ModuleType("torch")
    current = SimpleNamespace(cuda_stream=stream.number)
    torch.cuda = SimpleNamespace(current_stream=lambda: current)
    monkeypatch.setitem(sys.modules, "torch", torch)
