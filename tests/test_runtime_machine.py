"""What the computer tells of itself, read from files made up for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyfuse import machine
from tinyfuse.machine import KIB, MIB, REFERENCE, REFERENCE_AVX2, Machine


def test_the_reference_machines_are_what_the_goldens_were_made_for():
    assert Machine("reference", 64, 48 * KIB, MIB, 32 * MIB, 2, ("-march=x86-64-v4",)) == REFERENCE
    assert (REFERENCE_AVX2.vector_bytes, REFERENCE_AVX2.flags) == (32, ("-march=x86-64-v3",))
    assert (REFERENCE.vector_registers, REFERENCE_AVX2.vector_registers) == (32, 16)


@pytest.mark.parametrize(
    ("features", "width"),
    [
        ("sse2 avx2 avx512f", 64),
        ("sse2 avx avx2 fma", 32),
        ("sse2", 16),
        ("asimd fp", 16),
        ("", 16),
    ],
)
def test_vector_width_is_that_of_the_widest_instructions(features: str, width: int):
    assert machine.vector_bytes(features.split()) == width


@pytest.mark.parametrize(
    ("width", "architecture", "registers"),
    [(64, "x86_64", 32), (32, "x86_64", 16), (16, "x86_64", 16), (16, "aarch64", 32)],
)
def test_arm_and_the_widest_vectors_have_more_registers(
    width: int, architecture: str, registers: int
):
    assert machine.vector_registers(width, architecture) == registers


@pytest.mark.parametrize(
    ("text", "size"),
    [("48K", 49152), ("2048K", 2 * MIB), ("1M", MIB), ("7", 7), ("", 0), ("big", 0), ("K", 0)],
)
def test_sizes_are_read_as_linux_writes_them(text: str, size: int):
    assert machine.parse_size(text) == size


def write(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text + "\n")


def test_caches_of_instructions_do_not_count(tmp_path: Path):
    write(tmp_path / "index0", level="1", type="Data", size="32K")
    write(tmp_path / "index1", level="1", type="Instruction", size="64K")
    write(tmp_path / "index2", level="2", type="Unified", size="512K")
    assert machine.data_caches(tmp_path) == {1: 32 * KIB, 2: 512 * KIB}
    assert machine.data_caches(tmp_path / "absent") == {}


def test_host_has_caches_and_at_least_one_core():
    host = machine.host()
    assert host.vector_bytes in (16, 32, 64)
    assert 0 < host.l1 < host.l2 <= host.l3
    assert host.cores == machine.available_cores() >= 1
    assert host.flags == ("-march=native",)


def test_cpu_identity_names_the_features(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    first = "vendor_id\t: X\ncpu MHz\t\t: 2100.0\nflags\t\t: fma avx2\n\n"
    (tmp_path / "cpuinfo").write_text(first + "vendor_id\t: Y\nflags\t\t: other\n")
    monkeypatch.setattr(machine, "CPU_INFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    machine.cpu_info.cache_clear()
    try:
        assert machine.cpu_identity.__wrapped__() == "x86_64\nvendor_id: X\nflags: fma avx2"
        assert machine.cpu_features() == ["fma", "avx2"]
    finally:
        machine.cpu_info.cache_clear()


def test_quota_of_version_2_is_looked_for_in_every_group_above(tmp_path: Path):
    root = tmp_path / "fs"
    write(root / "jobs", cpu__max="150000 100000")
    write(root / "jobs" / "mine", cpu__max="max 100000")
    (tmp_path / "own").write_text("0::/jobs/mine\n")
    quotas = machine.control_group_quotas(tmp_path / "own", root)
    assert quotas == [(150000, 100000)]
    assert [machine._rounded_up(quota) for quota in quotas] == [2]


def test_quota_of_version_1_is_read_too(tmp_path: Path):
    root = tmp_path / "fs"
    write(root / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(root / "cpu" / "job", cpu__cfs_quota_us="300000", cpu__cfs_period_us="100000")
    (tmp_path / "own").write_text("5:memory:/job\n2:cpu,cpuacct:/job\n")
    assert machine.control_group_quotas(tmp_path / "own", root) == [(300000, 100000)]


def test_no_control_groups_no_quota(tmp_path: Path):
    assert machine.control_group_quotas(tmp_path / "absent", tmp_path) == []
