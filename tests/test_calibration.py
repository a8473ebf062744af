"""Constants of this machine: measured, stored, found again, and refused where they are spoilt."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tinyfuse
from tests.runtime_programs import run_python
from tinyfuse import calibration
from tinyfuse.cache_directory import sha256
from tinyfuse.calibration import MEASURED, Progress, all_probes, as_constants, store
from tinyfuse.constants import Constants, parse, path_in, stored_constants, text_of
from tinyfuse.errors import CacheError
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.machine import REFERENCE, available_cores, host, processor
from tinyfuse.records import replace
from tinyfuse.runtime import cache

MEASURED_ONCE = Constants(
    bandwidth=(4e11, 2e11, 1e11, 1e10),
    shared_bandwidth=(8e11, 4e11, 1.5e11, 1.2e10),
    float32_rate=1e11,
    float64_rate=5e10,
    costs=(("exp", 17.0, 25.0), ("log", 30.0, 40.0)),
    latency=1e-9,
    launch=2e-9,
    wake=3e-6,
)


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    host.cache_clear()
    yield tmp_path / "cache"
    host.cache_clear()


# --- the file -------------------------------------------------------------------------------------


def test_without_a_file_the_constants_are_those_of_the_reference(directory: Path):
    assert host().constants == REFERENCE.constants
    assert not directory.exists()  # looking makes no directory


def test_what_was_stored_is_found_again(directory: Path):
    path = cache.written(lambda where: store(MEASURED_ONCE, where))
    assert path == path_in(directory, this_processor())
    assert path.name == f"{sha256(this_processor().encode())}.json"
    assert list((directory / "building").iterdir()) == []
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert host().constants == stored_constants(this_processor()) == MEASURED_ONCE
    assert replace(host(), constants=Constants()).constants != MEASURED_ONCE


def test_the_file_can_be_read_by_a_person():
    read = json.loads(text_of(MEASURED_ONCE, "a processor"))
    assert read["processor"] == "a processor"
    assert read["bandwidth"] == [4e11, 2e11, 1e11, 1e10]
    assert read["costs"] == [["exp", 17.0, 25.0], ["log", 30.0, 40.0]]
    assert parse(text_of(MEASURED_ONCE, "a processor").encode(), "a processor") == MEASURED_ONCE


def this_processor() -> str:
    return processor(available_cores())


def changed(**values: object) -> bytes:
    read = json.loads(text_of(MEASURED_ONCE, this_processor()))
    return json.dumps({**read, **values}).encode()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"processor": "another"}, "it is of another processor"),
        ({"more": 1}, "it has not the constants that this version of tinyfuse needs"),
        ({"launch": True}, "True is no number"),
        ({"launch": "1"}, "'1' is no number"),
        ({"launch": -1.0}, "-1.0 is no positive number"),
        ({"launch": 0}, "0 is no positive number"),
        ({"launch": math.inf}, "inf is no positive number"),
        ({"launch": math.nan}, "nan is no positive number"),
        ({"launch": 10**400}, f"{'1' + '0' * 39} is no positive number"),
        ({"bandwidth": [1, 2]}, "[1, 2] is no bandwidth for each of L1, L2, L3, memory"),
        ({"shared_bandwidth": 5}, "5 is no bandwidth for each of L1, L2, L3, memory"),
        ({"bandwidth": [1, 2, 3, None]}, "None is no number"),
        ({"costs": "exp"}, "'exp' is no list of costs"),
        ({"costs": [["exp", 1]]}, "[['exp', 1]] is no list of costs"),
        ({"costs": [[1, 1, 1]]}, "[[1, 1, 1]] is no list of costs"),
        ({"costs": [["exp", 1, -1]]}, "-1 is no positive number"),
    ],
)
def test_a_file_with_other_contents_is_left_aside(
    directory: Path, caplog: pytest.LogCaptureFixture, values: dict[str, object], reason: str
):
    path = cache.written(lambda where: store(MEASURED_ONCE, where))
    path.write_bytes(changed(**values))
    assert host().constants == REFERENCE.constants
    assert caplog.messages == [
        f"{path} is left aside ({reason}): tinyfuse.calibrate() measures the machine anew"
    ]


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x81", b"[" * 100000, b"[1]", b'{"processor": ', b"null"]
)
def test_a_spoilt_file_is_left_aside(
    directory: Path, caplog: pytest.LogCaptureFixture, content: bytes
):
    path = cache.written(lambda where: store(MEASURED_ONCE, where))
    path.write_bytes(content)
    assert host().constants == REFERENCE.constants
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name == "tinyfuse.cache"


def test_constants_of_another_processor_or_number_of_cores_are_others(directory: Path):
    cache.written(lambda where: store(MEASURED_ONCE, where))
    cores = host().cores
    assert stored_constants(processor(cores)) == MEASURED_ONCE
    assert stored_constants(processor(cores + 1)) is None
    assert stored_constants("another") is None


def test_a_directory_that_others_can_write_is_not_read(directory: Path):
    cache.written(lambda where: store(MEASURED_ONCE, where))
    directory.chmod(0o777)
    assert host().constants == REFERENCE.constants
    with pytest.raises(CacheError):  # as soon as something is to be compiled
        cache.directory()


# --- measuring ------------------------------------------------------------------------------------


def bounded(constants: Constants) -> bool:
    """Within bounds that no computer leaves, however busy it is."""
    rates = (*constants.bandwidth, *constants.shared_bandwidth)
    rates = (*rates, constants.float32_rate, constants.float64_rate)
    times = (constants.latency, constants.launch, constants.wake)
    costs = [cost for _, *both in constants.costs for cost in both]
    return (
        all(1e5 < rate < 1e15 for rate in rates)
        and all(1e-12 < time < 10 for time in times)
        and all(1e-4 < cost < 1e7 for cost in costs)
    )


def test_calibrate_measures_stores_and_takes_effect(
    directory: Path, capsys: pytest.CaptureFixture[str]
):
    before = host()
    measured = tinyfuse.calibrate(quick=True)
    assert measured is host()
    assert measured == replace(before, constants=measured.constants)
    assert bounded(measured.constants)
    assert [name for name, *_ in measured.constants.costs] == list(MEASURED)
    assert list(measured.constants.bandwidth) == sorted(measured.constants.bandwidth)[::-1]
    stored = path_in(directory, this_processor()).read_bytes()
    assert parse(stored, this_processor()) == measured.constants
    assert capsys.readouterr() == ("", "")  # which is no terminal
    lowered = tinyfuse.jit(lambda x: x + 1).lower(np.ones(3))
    assert lowered.machine is measured
    assert lowered.predicted_seconds > measured.constants.launch


def test_where_nothing_can_be_written_constants_last_as_long_as_the_process(directory: Path):
    directory.mkdir(mode=0o700)
    code = """\
import os
access, refused = os.access, os.environ["TINYFUSE_CACHE_DIR"]
os.access = lambda where, mode: access(where, mode) and str(where) != refused
from tinyfuse.calibration import store
from tinyfuse.constants import Constants
from tinyfuse.machine import host
from tinyfuse.runtime import cache
path = cache.written(lambda where: store(Constants(launch=1.0), where))
print(host().constants.launch, path.parent.parent == cache.temporary_directory())
"""
    outcome = run_python(code, TINYFUSE_CACHE_DIR=str(directory))
    assert outcome.stdout.split() == ["1.0", "True"]
    assert list(directory.iterdir()) == []


def test_what_is_measured_covers_all_that_needs_it():
    assert set(MEASURED) == {op.like for op in SCALAR_OPS.values()} - {""}
    names = list(all_probes(calibration.Bench(host(), calibration.QUICK)))
    assert len(names) == len(set(names))
    assert "add float32" in names
    assert "exp float64" in names
    assert "memory, one core" in names


def found(**values: float) -> dict[str, float]:
    names = [f"{name} {dtype}" for name in ("add", *MEASURED) for dtype in ("float32", "float64")]
    levels = [f"{level}, one core" for level in ("L1", "L2", "L3", "memory")]
    return {**dict.fromkeys((*names, *levels, "chain", "call"), 2.0), **values}


def test_constants_come_from_times():
    one_core = {"L1, one core": 50.0, "L2, one core": 10.0, "L3, one core": 20.0}
    constants = as_constants(found(**{"add float32": 4e-10, "exp float32": 5e-10}, **one_core))
    assert constants.bandwidth == constants.shared_bandwidth == (50.0, 10.0, 10.0, 2.0)
    assert constants.float32_rate == 4e10
    assert {name: cost for name, cost, _ in constants.costs}["exp"] == 20
    assert constants.wake == Constants().wake  # which one core has no use for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_leaves_nothing():
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.show("exp float32", 5, 10)
    lines = terminal.getvalue().split("\r\033[K")
    assert lines == ["", f"calibrating [{'#' * 15}{' ' * 15}] exp float32", ""]


def test_progress_says_nothing_elsewhere():
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.show("exp float32", 5, 10)
    with Progress(None) as progress:
        progress.show("exp float32", 5, 10)
    assert stream.getvalue() == ""
