"""profile: the same bits, nothing of the caller's changed, and figures that add up."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tinyfuse
from tests.programs import PROGRAMS, softmax
from tests.runtime_programs import run_python
from tinyfuse.emit.c import emit_c, kernel_texts
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import SignatureMismatchError
from tinyfuse.graph.complex_parts import parts_array
from tinyfuse.inspect import counters as counting
from tinyfuse.inspect import measure
from tinyfuse.inspect.limits import UNMEASURED, bytes_per_second, note, operations_per_second
from tinyfuse.inspect.profile import KernelTime, Profile
from tinyfuse.inspect.watch import Watched
from tinyfuse.loops.cost import Cost
from tinyfuse.loops.ir import Kernel
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2
from tinyfuse.runtime.library import loaded, scratch
from tinyfuse.runtime.toolchain import find_compiler

X = np.linspace(-3, 3, 1200, dtype=np.float32).reshape(4, 300)


def compiled(function: Any, *args: Any) -> Any:
    """With a kernel for each array, whatever the planner would do."""
    return tinyfuse.jit(function, fuse=False).lower(*args).compile()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_watched_program_computes_the_same_bits(name: str):
    example = PROGRAMS[name]
    args = example.arguments()
    lowered = tinyfuse.jit(example.function).lower(*args)
    args = [parts_array(np.asarray(each)) for each in args]
    dtypes = [(var.shape, var.dtype) for var in lowered.graph.inputs]
    inputs = [np.require(a, d, "C").reshape(s) for (s, d), a in zip(dtypes, args, strict=False)]
    inputs += [np.ones(shape, dtype) for shape, dtype in dtypes[len(inputs) :]]
    outputs = [[np.zeros(v.shape, v.dtype) for v in lowered.graph.outputs] for _ in range(2)]
    watched = Watched(name, lowered.loops, [*inputs, *outputs[0]], None)
    seconds = watched.seconds()
    assert seconds.shape == (len(lowered.loops.kernels),)
    assert (seconds >= 0).all()
    entry = loaded(lowered.module.text, name, lowered.module.entry)
    assert entry([*inputs, *outputs[1]], scratch(lowered.scratch_bytes)) == 0
    assert [a.tobytes() for a in outputs[0]] == [b.tobytes() for b in outputs[1]]


def test_a_watched_entry_runs_the_same_kernels():
    loops = tinyfuse.jit(softmax, fuse=False).lower(X).loops
    text = emit_c(loops, watched=True).text
    assert all(kernel in text for kernel in kernel_texts(loops))
    entry = text[text.index("int softmax(") :]
    calls = [line.strip() for line in entry.splitlines() if line.startswith(("  tf_", "  softmax"))]
    assert [call.partition("(")[0] for call in calls[1::2]] == [k.name for k in loops.kernels]
    assert calls[0::2] == [f"tf_moment(arrays[2], {number});" for number in range(6)]


def test_a_profile_has_every_kernel():
    program = compiled(softmax, X)
    profile = program.profile(X, repeat=3)
    assert [each.kernel for each in profile.kernels] == list(program.kernels)
    assert all(each.predicted > 0 for each in profile.kernels)
    assert (profile.repeat, profile.threads) == (3, 1)
    assert profile.kernel_seconds == sum(each.seconds for each in profile.kernels)
    assert profile.call_seconds > 0
    assert 0 <= profile.dispatch_share <= 1
    assert all(each.kernel.name in str(profile) for each in profile.kernels)
    ElementTree.fromstring(profile.html())
    assert profile._repr_html_() in profile.html()


KERNEL = Kernel("f_out", (), (), frozenset(), ("out",), Cost(2_000_000, 3_000_000, 1_000_000))
FIGURES = """\
f(float64[9])
medians of 20 calls, 2 threads

kernel                time  share  predicted  GB/s  at most  Gop/s  at most
f_out                 1 ms    50%     900 µs     4       38      2        2
f_out               500 µs    25%     900 µs     8       38      4        2
all kernels         1.5 ms    75%     1.8 ms
beside the kernels  500 µs    25%
call                  2 ms   100%

kernel  instructions per cycle  page faults
f_out                      2.5           12
f_out                        2            0
not counted: cache misses (no)
so it is
"""


def test_the_text_of_a_profile():
    first = {"cycles": 2.0, "instructions": 5.0, "page faults": 12.0}
    second = {"cycles": 1e6, "instructions": 2e6, "page faults": 0.0}
    times = (
        KernelTime(KERNEL, 1e-3, 0.9e-3, 38e9, 2e9, first),
        KernelTime(KERNEL, 0.5e-3, 0.9e-3, 38e9, 2e9, second),
    )
    profile = Profile(
        "f(float64[9])", 2, 20, times, 2e-3, ("not counted: cache misses (no)", "so it is")
    )
    assert str(profile) == FIGURES
    assert repr(profile) == "<profile of f(float64[9]), 2 ms>"
    cells = [e.text for e in ElementTree.fromstring(profile.html()).iter() if e.tag == "td"]
    assert cells[:4] == ["f_out", "1 ms", "50%", "900 µs"]


def test_what_was_not_counted_is_not_shown():
    text = str(Profile("f()", 1, 1, (KernelTime(KERNEL, 1e-3, 1e-3, 1e9, 1e9),), 2e-3))
    assert "page faults" not in text
    assert text.endswith("call                2 ms   100%\n")


def test_the_most_that_a_machine_can_do_is_for_what_the_kernel_works_on():
    lowered = tinyfuse.jit(lambda x: x + 1, fuse=False).lower(np.ones(1 << 22))
    narrow = tinyfuse.jit(lambda x: x + 1).lower(np.ones(8, np.float32))
    (wide_kernel,), (narrow_kernel,) = lowered.kernels, narrow.kernels
    constants = REFERENCE.constants
    assert bytes_per_second(wide_kernel, REFERENCE, 1) == constants.bandwidth[-1]
    assert bytes_per_second(wide_kernel, REFERENCE, 2) == constants.shared_bandwidth[-1]
    assert bytes_per_second(narrow_kernel, REFERENCE, 2) == constants.bandwidth[0]
    assert operations_per_second(wide_kernel, REFERENCE, 2) == 2 * constants.float64_rate
    assert operations_per_second(narrow_kernel, REFERENCE, 2) == constants.float32_rate
    assert note(REFERENCE) == UNMEASURED
    assert note(REFERENCE_AVX2) == ""


def test_a_call_that_takes_no_time_has_no_shares():
    profile = Profile("f()", 1, 1, (KernelTime(KERNEL, 0.0, 0.0, 0.0, 0.0),), 0.0)
    assert profile.dispatch_share == profile.kernels[0].bytes_per_second == 0
    assert "call" in str(profile)


# -- the caller's arrays

GLOBAL = np.arange(4.0)


def update(x, y):
    x += y
    GLOBAL[1:] *= 2
    return x[::-1]


def test_arrays_are_as_before():
    x, y = np.arange(6.0)[::2], np.ones(3)
    profile = compiled(update, x, y).profile(x, y, repeat=2)
    assert len(profile.kernels) == 3
    np.testing.assert_array_equal(x, [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(y, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(GLOBAL, [0.0, 1.0, 2.0, 3.0])


def test_arrays_are_as_before_after_an_interruption(monkeypatch: pytest.MonkeyPatch):
    x, y = np.arange(3.0), np.ones(3)

    def interrupted(run: Any, args: Any, kwargs: Any) -> float:
        run(*args, **kwargs)
        np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])
        raise KeyboardInterrupt

    program = compiled(update, x, y)
    monkeypatch.setattr(measure, "_seconds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.profile(x, y)
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(GLOBAL, [0.0, 1.0, 2.0, 3.0])


def picked(x, i):
    x += 1
    return x[i]


def test_what_a_call_raises_is_raised():
    x, outside = np.zeros(3), np.array([7])
    with pytest.raises(IndexError):
        compiled(picked, x, outside).profile(x, outside)
    np.testing.assert_array_equal(x, np.zeros(3))


def test_arguments_of_all_kinds():
    def function(tree, scale, mode, *, offset):
        return {mode: tree["a"].T * scale + offset}, tree["b"]

    tree = {"a": np.asfortranarray(np.ones((3, 4))), "b": np.arange(3)}
    swapped = np.ones((3, 4)).astype(">f8")
    for a in (tree["a"], swapped):
        args, offset = ({"a": a, "b": tree["b"]}, 2.5, "sum"), np.float32(1)
        program = tinyfuse.jit(function).lower(*args, offset=offset).compile()
        assert len(program.profile(*args, offset=offset, repeat=1).kernels) == 1


def test_a_function_with_nothing_to_compute():
    profile = compiled(lambda x: x.T, X).profile(X, repeat=2)
    assert profile.kernels == ()
    assert profile.kernel_seconds == 0
    assert "all kernels" in str(profile)
    empty = np.empty((0, 3))
    assert compiled(lambda x: x + 1, empty).profile(empty, repeat=1).kernels == ()


def test_what_cannot_be_profiled_is_refused():
    program = compiled(softmax, X)
    with pytest.raises(ValueError, match="repeat must be positive, not 0"):
        program.profile(X, repeat=0)
    with pytest.raises(SignatureMismatchError):
        program.profile(X[:2])


def test_another_thread_can_profile():
    program = compiled(softmax, X)
    found: list[Profile] = []
    thread = threading.Thread(target=lambda: found.append(program.profile(X, repeat=2)))
    thread.start()
    thread.join()
    assert len(found[0].kernels) == 5


@pytest.mark.parametrize("extension", ["0", None])
def test_with_and_without_the_extension(extension: str | None):
    code = """
import numpy as np, tinyfuse
x = np.ones((4000, 300), np.float32)
program = tinyfuse.jit(lambda x, y: (x * y).sum(axis=0)).lower(x, x).compile()
profile = program.profile(x, x, repeat=2)
print(profile.threads, len(profile.kernels) == len(program.kernels) > 0)
"""
    run = run_python(code, TINYFUSE_EXTENSION=extension, TINYFUSE_NUM_THREADS="2")
    assert (run.stdout, run.stderr) == ("2 True\n", "")


# -- counters


def test_counters_count_or_say_why_not():
    with counting.counters() as found:
        files = [file for file, _ in found.files]
        places = {place for _, place in found.files}
    assert len(places) + len(found.missing) == len(counting.EVENTS)
    assert all(reason in found.missing_text() for reason in found.missing.values())
    for file in files:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)


def test_page_faults_are_counted_in_the_kernel_that_has_them():
    lowered = tinyfuse.jit(lambda x: (x.sum(), x + 1)).lower(np.ones(1 << 18))
    fresh = np.frombuffer(mmap.mmap(-1, 8 << 18))  # pages that the system has not made yet
    watched = Watched("f", lowered.loops, [np.ones(1 << 18), np.zeros(1), fresh], 1)
    with counting.counters() as found:
        if counting.FAULTS in found.missing:
            pytest.skip(found.missing_text())
        first, again = [watched.counts(found.files) for _ in range(2)]
    (stores,) = [at for at, k in enumerate(lowered.kernels) if k.name.endswith("out_1")]
    place = counting.PLACES[counting.FAULTS]
    assert first[stores, place] >= 1
    assert again[:, place].tolist() == [0] * len(lowered.kernels)


REFUSALS = {
    errno.EACCES: "the system does not permit it: see kernel.perf_event_paranoid",
    errno.ENOENT: "this processor, or the virtual machine, does not have them",
    errno.EMFILE: "Too many open files",
}


@pytest.mark.parametrize("number", REFUSALS)
def test_what_is_not_permitted_is_said(number: int, monkeypatch: pytest.MonkeyPatch):
    def refused(kind: int, config: int, thread: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(counting, "_opened", refused)
    profile = compiled(softmax, X).profile(X, repeat=1)
    names = "cycles, instructions, cache misses, page faults"
    assert profile.notes[0] == f"not counted: {names} ({REFUSALS[number]})"
    assert "page faults  " not in str(profile)


def test_a_thread_that_has_ended_is_left_out(monkeypatch: pytest.MonkeyPatch):
    def gone(kind: int, config: int, thread: int) -> int:
        raise ProcessLookupError(errno.ESRCH, "no such process")

    monkeypatch.setattr(counting, "_opened", gone)
    with counting.counters() as found:
        assert (found.files, found.missing) == ([], {})


def test_another_system_has_no_counters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting.platform, "machine", lambda: "riscv64")
    with counting.counters() as found:
        assert found.missing == dict.fromkeys(counting.EVENTS, "Function not implemented")


def test_watch_c_has_no_warnings(tmp_path: Path):
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-c", "-o", "watch.o"]
    outcome = subprocess.run(
        [*find_compiler().command, *options, str(runtime_c() / "watch.c")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
