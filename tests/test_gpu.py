"""`make gpu` itself: on the fake device it finds all as it should be, and on none it says so."""

from __future__ import annotations

import functools
import sys

import pytest

from tests import gpu
from tests.cuda_kernels import LAUNCHES, source
from tests.device_programs import PROGRAMS
from tinyfuse.errors import NoGpuError
from tinyfuse.runtime.device_entry import DeviceEntry
from tinyfuse.runtime.driver import Device, Module
from tinyfuse.testing.fake_gpu import FakeDriver


def test_everything_is_right_on_the_fake_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    driver = FakeDriver()
    device = Device(driver)
    monkeypatch.setattr(gpu, "module", lambda file: Module(device, driver.image_of(source(file))))
    entry = functools.partial(DeviceEntry, device=device, compiled=driver.image)
    monkeypatch.setattr(gpu, "DeviceEntry", entry)
    assert gpu.check(device)
    printed = capsys.readouterr().out
    assert printed.startswith("<GPU 0: emulated GPU 0>, sm_90\nKernels written by hand, against")
    assert printed.count("the same bits") == len(PROGRAMS)
    assert len(printed.splitlines()) == 3 + len(LAUNCHES) + len(PROGRAMS)


def test_a_machine_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def none() -> Device:
        raise NoGpuError("there is no GPU to run on: …")

    monkeypatch.setattr(gpu, "default_device", none)
    monkeypatch.setattr(sys, "argv", ["gpu"])
    assert gpu.main() == 1
    assert capsys.readouterr().out == "there is no GPU to run on: …\n"
