"""`make gpu` itself: on the fake device it finds all as it should be, and on none it says so."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import gpu, gpu_speed
from tests.cuda_kernels import LAUNCHES, source
from tests.device_arrays import run_on
from tests.device_programs import PROGRAMS
from tinyfuse.errors import NoGpuError
from tinyfuse.runtime.driver import Device, Module
from tinyfuse.testing.fake_gpu import FakeDriver


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """That which `make gpu` runs on."""
    driver = FakeDriver()
    made = run_on(driver, monkeypatch)
    module = functools.lru_cache(lambda file: Module(made, driver.image_of(source(file))))
    monkeypatch.setattr(gpu, "module", module)
    monkeypatch.setattr(gpu, "default_device", lambda: made)
    return made


def test_everything_is_right_on_the_fake_device(device: Device, capsys: pytest.CaptureFixture[str]):
    assert gpu.check(device)
    printed = capsys.readouterr().out
    assert printed.startswith("<GPU 0: emulated GPU 0>, sm_90\nKernels written by hand, against")
    assert printed.count("the same bits") == len(PROGRAMS)
    assert len(printed.splitlines()) == 3 + len(LAUNCHES) + len(PROGRAMS)


def test_what_is_wrong_is_said(device: Device, capsys: pytest.CaptureFixture[str]):
    """A function that numpy runs as another one: it is not traced what the second call does."""
    calls: list[int] = []

    def changing(x):
        calls.append(0)
        return x + len(calls)

    assert not gpu.check_program("changing", changing, (np.ones(3),))
    assert "NOT what numpy gives" in capsys.readouterr().out


SHAPES = (
    *(((9, 40), (9, 40)), ((9, 40),), ((9, 40), (40,), (40,)), ((9, 40),), ((9, 40),)),
    ((8, 16), (16, 24), (24,)),
)
SMALL = [
    each._replace(shapes=shapes) for each, shapes in zip(gpu_speed.WORKLOADS, SHAPES, strict=True)
]


def test_all_of_it(
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
):
    """Times of all kernels and programs, beside another library and one that fails."""
    numpys = gpu_speed.TINYFUSE._replace(
        name="numpy",
        np=sys.modules["numpy"],
        put=np.asarray,
        compiled=lambda function: function,
        wait=lambda result: None,
        numpy=np.asarray,
    )
    failing = numpys._replace(name="failing", put=lambda array: 1 / 0)
    monkeypatch.setattr(gpu_speed, "installed", lambda: [numpys, failing])
    monkeypatch.setattr(gpu_speed, "WORKLOADS", SMALL)
    monkeypatch.setattr(gpu_speed.report, "__defaults__", (SMALL,))
    monkeypatch.setattr(gpu_speed, "CALLS", 2)
    monkeypatch.setattr(gpu_speed, "ROUNDS", 1)
    monkeypatch.setattr(gpu, "ROUNDS", 2)
    monkeypatch.setattr(gpu, "measured", lambda: [gpu.Measured("one", LAUNCHES[0](), 1000, 1000)])
    monkeypatch.setattr(gpu, "check", lambda device: True)
    monkeypatch.setattr(sys, "argv", ["gpu", "--sanitize"])
    written = sanitizer(tmp_path, monkeypatch, status=0)
    assert gpu.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Times of kernels written by hand:"
    assert lines[1].split()[0::2][:2] == ["one", "us"]
    assert lines[2:4] == [
        "Times of calls of compiled programs:",
        "  elementwise (9, 40) (9, 40)",
    ]
    names = [line.split()[0] for line in lines[3:]]
    rows = [[each.function.__name__, "tinyfuse", "numpy", "failing"] for each in SMALL]
    assert names == [name for row in rows for name in row]
    assert lines[6] == "    failing        ZeroDivisionError: division by zero"
    for line in lines:
        if line.startswith("    tinyfuse"):
            assert line.split()[2:8:2] == ["us", "GB/s", "TFLOP/s"]
            assert float(line.split()[7]) < 1e-5
    tools = [line.split()[:4] for line in written.read_text().splitlines()]
    assert tools == [["--tool", tool, "--error-exitcode", "1"] for tool in gpu.SANITIZERS]


def sanitizer(place: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> Path:
    """A program that is called as NVIDIA's checker; the file to which it writes how."""
    program, written = place / "compute-sanitizer", place / "calls"
    program.write_text(f'#!/bin/sh\necho "$@" >> {written}\nexit {status}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return written


def test_what_the_checker_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written = sanitizer(tmp_path, monkeypatch, status=1)
    assert not gpu.sanitize()
    assert written.read_text().endswith("-m tests.gpu --check-only\n")


def test_without_the_checker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.sanitize()
    assert capsys.readouterr().out.startswith("compute-sanitizer is not on PATH")


def test_a_machine_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def none() -> Device:
        raise NoGpuError("there is no GPU to run on: …")

    monkeypatch.setattr(gpu, "default_device", none)
    monkeypatch.setattr(sys, "argv", ["gpu"])
    assert gpu.main() == 1
    assert capsys.readouterr().out == "there is no GPU to run on: …\n"
