"""Occupancy against what NVIDIA's `cuda_occupancy.h` computes."""

from __future__ import annotations

import pytest

from tinyfuse.occupancy import MULTIPROCESSORS, Occupancy, occupancy

# threads, registers, shared bytes; blocks on sm_80, sm_86, sm_89, sm_90
ROWS = [
    (32, 16, 17000, (9, 5, 5, 12)),
    (32, 33, 17000, (9, 5, 5, 12)),
    (32, 64, 17000, (9, 5, 5, 12)),
    (32, 101, 17000, (9, 5, 5, 12)),
    (32, 128, 17000, (9, 5, 5, 12)),
    (32, 255, 17000, (8, 5, 5, 8)),
    (96, 16, 17000, (9, 5, 5, 12)),
    (96, 33, 17000, (9, 5, 5, 12)),
    (96, 64, 17000, (9, 5, 5, 10)),
    (96, 101, 17000, (5, 5, 5, 5)),
    (96, 128, 17000, (5, 5, 5, 5)),
    (96, 255, 17000, (2, 2, 2, 2)),
    (256, 16, 17000, (8, 5, 5, 8)),
    (256, 33, 17000, (6, 5, 5, 6)),
    (256, 64, 17000, (4, 4, 4, 4)),
    (256, 101, 17000, (2, 2, 2, 2)),
    (256, 128, 17000, (2, 2, 2, 2)),
    (256, 255, 17000, (1, 1, 1, 1)),
    (1000, 16, 17000, (2, 1, 1, 2)),
    (1000, 33, 17000, (1, 1, 1, 1)),
    (1000, 64, 17000, (1, 1, 1, 1)),
    (1000, 101, 17000, (0, 0, 0, 0)),
    (1000, 128, 17000, (0, 0, 0, 0)),
    (1000, 255, 17000, (0, 0, 0, 0)),
    (1024, 16, 17000, (2, 1, 1, 2)),
    (1024, 33, 17000, (1, 1, 1, 1)),
    (1024, 64, 17000, (1, 1, 1, 1)),
    (1024, 101, 17000, (0, 0, 0, 0)),
    (1024, 128, 17000, (0, 0, 0, 0)),
    (1024, 255, 17000, (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("threads", "registers", "shared", "blocks"), ROWS)
def test_blocks(threads: int, registers: int, shared: int, blocks: tuple[int, ...]):
    found = [occupancy(name, threads, registers, shared).blocks for name in MULTIPROCESSORS]
    assert tuple(found) == blocks


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [
        (256, 32, 0, Occupancy(8, 1.0, "threads")),
        (256, 128, 0, Occupancy(2, 0.25, "registers")),
        (256, 32, 100_000, Occupancy(2, 0.25, "shared memory")),
        (1024, 96, 0, Occupancy(0, 0.0, "registers")),
    ],
)
def test_what_limits_the_blocks(threads: int, registers: int, shared: int, expected: Occupancy):
    assert occupancy("sm_90", threads, registers, shared) == expected


def test_shared_memory_of_a_block():
    most = {name: of.most_shared // 1024 for name, of in MULTIPROCESSORS.items()}
    assert most == {"sm_80": 163, "sm_86": 99, "sm_89": 99, "sm_90": 227}
