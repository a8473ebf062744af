"""Mathematical functions against exact values: a sample of what `tests.thorough --math` checks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import math_checking
from tests.math_checking import BINARY, FUNCTIONS, UNARY, check_every, check_samples
from tinyfuse.dtypes import FLOAT32, FLOAT64

pytestmark = pytest.mark.skipif(
    not math_checking.can_check(), reason="needs gcc and libquadmath, which have __float128"
)

STEP = 9973  # a prime, so that all exponents and low bits come by


@pytest.mark.parametrize("name", UNARY)
def test_one_float32_of_many(name: str) -> None:
    report = check_every(name, STEP)
    assert report.count == 2**32 // STEP + 1
    assert not report.failed, report


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_where_most_happens(name: str) -> None:
    report = check_samples(name, FLOAT32, 100_000)
    assert not report.failed, report


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64(name: str) -> None:
    report = check_samples(name, FLOAT64, 30_000)
    assert not report.failed, report


def test_which_functions_there_are() -> None:
    assert len(UNARY) == 31
    assert BINARY == ("arctan2", "hypot", "logaddexp", "logaddexp2", "power")


def test_an_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a function that is off by a little, and has a special value wrong."""
    real = math_checking.results

    def off(name: str, operands: list[np.ndarray]) -> np.ndarray:
        y = real(name, operands)
        y[0] += 3 * np.spacing(y[0])
        y[1] = -y[1]
        return y

    monkeypatch.setattr(math_checking, "results", off)
    report = math_checking.check("exp", [np.array([0.5, 1.0, 2.0])])
    assert 2.5 < report.worst < 3.5
    assert (report.count, report.over, report.wrong) == (3, 1, 1)
    assert (report.worst_at, report.wrong_at) == ((0.5,), (1.0,))
    assert "1 over 2.0, 1 wrong, first at 0x1.0000000000000p+0" in str(report)


def test_reports_replace_those_on_the_same_functions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(math_checking, "FOUND", tmp_path / "build" / "found.json")
    report = check_samples("exp", FLOAT64, 1000)
    math_checking.save([report, replace(report, name="cos")])
    math_checking.save([replace(report, worst=1.5)])
    found = json.loads(math_checking.FOUND.read_text())
    assert [(each["name"], each["worst"]) for each in found] == [
        ("cos", report.worst),
        ("exp", 1.5),
    ]
