"""Programs in memory: found, forgotten, explained, logged, and shared by threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import tinyfuse
from tinyfuse.config import log_topics

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_cache_info_counts_calls():
    f = tinyfuse.jit(lambda x, a=1.0: x + a)
    f(X)
    f(X, 2.0)
    f(x=X)
    f(X[:2])
    assert f.cache_info() == (2, 2, 256, 2)
    everything = tinyfuse.cache_info()
    assert everything.hits >= 2
    assert everything.programs >= 2
    assert everything.disk.hits + everything.disk.misses >= 2
    f.clear_cache()
    assert f.cache_info() == (0, 0, 256, 0)


def test_what_was_used_longest_ago_is_forgotten():
    f = tinyfuse.jit(lambda x: x + 1, maxsize=2)
    for rows in (1, 2, 1, 3):  # 3 puts out 2
        f(X[:rows])
    assert f.cache_info() == (1, 3, 2, 2)
    f(X[:1])
    assert f.cache_info().misses == 3
    f(X[:2])
    assert f.cache_info() == (2, 4, 2, 2)


def test_a_forgotten_program_runs_on():
    f = tinyfuse.jit(lambda x: x + 1, maxsize=1)
    f(X)
    (executable,) = f._executables()
    f(X[:2])
    f.clear_cache()
    np.testing.assert_array_equal(executable((X,)), X + 1)


def test_values_of_static_floats_are_forgotten_too():
    f = tinyfuse.jit(lambda x, a: x + 1 if a > 1 else x, maxsize=2)
    for a in (1.0, 2.0, 3.0, 3.0, 1.0):
        np.testing.assert_array_equal(f(X, a), X + (a > 1))
    assert f.cache_info() == (1, 4, 2, 2)


def test_explain_miss():
    @tinyfuse.jit
    def f(x, params, axis=0):
        return (x + params["w"]).sum(axis)

    assert f.explain_miss(X, {"w": X}) == (
        "f(float32[3, 4], params['w']=float32[3, 4], axis=0): there is no program in memory yet."
    )
    f(X, {"w": X})
    f(X[:2], {"w": X[:2]}, -1)
    assert f.explain_miss(X, {"w": X}) == (
        "f(float32[3, 4], params['w']=float32[3, 4], axis=0) is in memory: such a call compiles "
        "nothing."
    )
    assert f.explain_miss(X, {"w": np.float64(1)}, axis=1) == (
        "f(float32[3, 4], params['w']=float64, axis=1): the nearest program is for "
        "(float32[3, 4], params['w']=float32[3, 4], axis=0); what differs:\n"
        "  params['w']: float64, was float32[3, 4]\n"
        "  axis: 1, was 0"
    )
    assert f.explain_miss(X, {"w": X, "b": 1.5}) == (
        "f(float32[3, 4], params['w']=float32[3, 4], params['b']=float, axis=0): the nearest "
        "program is for (float32[3, 4], params['w']=float32[3, 4], axis=0); what differs:\n"
        "  params['b']: float, was absent"
    )
    assert f.explain_miss([X], {"w": X}).endswith(
        "\n  x[0]: float32[3, 4], was absent\n  x: absent, was float32[3, 4]"
    )
    assert f.explain_miss(X.astype(">f4"), {"w": X}).endswith(
        "\n  the byte order or the class of an array"
    )
    assert f.cache_info().misses == 2


def test_containers_of_another_type_are_told_apart():
    f = tinyfuse.jit(lambda p: p[0] + 1)
    f([X])
    assert f.explain_miss((X,)).endswith("\n  the same leaves are in containers of other types")


def test_each_compilation_is_logged_with_its_reason(caplog):
    caplog.set_level("INFO", "tinyfuse.compile")

    @tinyfuse.jit
    def f(x, n):
        return x + n

    f(X, 1)
    f(X, 1)
    f(X, 2)
    ours = [message for message in caplog.messages if "float32[3, 4]" in message]
    first, reason, second = ours
    assert first.startswith("compile f(float32[3, 4], n=1): trace ")
    assert first.endswith(" ms, 1 kernel")
    assert reason == (
        "recompile f(float32[3, 4], n=2): the nearest program is for (float32[3, 4], n=1); what "
        "differs: n: 2, was 1"
    )
    assert second.startswith("compile f(float32[3, 4], n=2): trace ")


def test_the_first_copy_of_an_argument_is_told(caplog):
    f = tinyfuse.jit(lambda x: x + 1)
    f(X)
    assert caplog.messages == []
    f(X.T)
    f(X.T)
    assert caplog.messages == [
        "lambda: x is not in C order (or not aligned, or not in native byte order), so that each "
        "call copies it"
    ]


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_logging_is_asked_for_by_the_environment():
    script = "import numpy as np, tinyfuse; tinyfuse.jit(lambda x: x + 1)(np.ones(3))"
    assert run(script, TINYFUSE_LOG="").stderr == ""
    quiet = run(script, TINYFUSE_LOG="cache").stderr
    assert "tinyfuse: hit: lambda " in quiet
    assert "compile lambda" not in quiet
    assert (
        "tinyfuse: compile lambda(float64[3]): trace " in run(script, TINYFUSE_LOG="compile").stderr
    )


COPYING = "import numpy as np, tinyfuse; tinyfuse.jit(lambda x: x + 1)(np.ones((3, 4)).T)"
COPIES = (
    "lambda: x is not in C order (or not aligned, or not in native byte order), so that each call "
    "copies it\n"
)


def test_warnings_bear_the_name_of_tinyfuse():
    assert run(COPYING).stderr == f"tinyfuse: {COPIES}"
    assert run(COPYING, TINYFUSE_LOG="cache").stderr.count(COPIES) == 1
    assert run(COPYING, TINYFUSE_LOG="compile").stderr.count(f"tinyfuse: {COPIES}") == 1
    configured = f"import logging; logging.basicConfig(); {COPYING}"
    assert run(configured).stderr == f"WARNING:tinyfuse.compile:{COPIES}"


def test_topics_of_the_log():
    assert log_topics("cache, compile") == ("compile", "cache")
    assert log_topics("") == ()
    with pytest.warns(UserWarning, match=r"unknown topic 'all' \(known: compile, cache\)"):
        assert log_topics("all,cache") == ("cache",)


def test_importing_tinyfuse_imports_little():
    script = """
import sys, tinyfuse
heavy = ("cffi", "_cffi_backend", "pycparser", "hypothesis", "subprocess", "tinyfuse.trace",
         "tinyfuse.runtime", "tinyfuse.compilation", "tinyfuse.inspect", "tinyfuse.testing")
print([name for name in heavy if name in sys.modules])
tinyfuse.testing
tinyfuse.Lowered
print([name for name in tinyfuse.__all__ if not hasattr(tinyfuse, name)], "jit" in dir(tinyfuse))
"""
    assert run(script).stdout == "[]\n[] True\n"
    with pytest.raises(AttributeError, match="module 'tinyfuse' has no attribute 'git'"):
        _ = tinyfuse.git


def in_threads(count, action):
    failures = []
    barrier = threading.Barrier(count)

    def run(index):
        barrier.wait()
        try:
            action(index)
        except Exception:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_compile_a_program_once():
    f = tinyfuse.jit(lambda x, a: (x * a).sum(axis=0))

    def call(index):
        for _ in range(20):
            np.testing.assert_array_equal(f(X, float(index)), (X * float(index)).sum(axis=0))

    in_threads(8, call)
    assert f.cache_info().misses == 1


def test_threads_evict_what_others_run():
    f = tinyfuse.jit(lambda x: x * 2, maxsize=1)

    def call(index):
        x = X[: 1 + index % 3]
        for _ in range(5):
            np.testing.assert_array_equal(f(x), x * 2)

    in_threads(4, call)
    assert f.cache_info().currsize == 1


def test_threads_that_fail_to_compile_all_raise():
    @tinyfuse.jit
    def f(x):
        return x + np.ones(7)

    def call(index):
        with pytest.raises(ValueError, match="broadcast"):
            f(X)

    in_threads(4, call)


def test_functions_that_compile_one_another_in_two_threads_do_not_wait_for_ever():
    both = threading.Barrier(2)

    def meet():
        if both.n_waiting or not both.broken:
            both.wait(timeout=10)

    @tinyfuse.jit
    def f(x, deep):
        if deep:
            meet()
            return x + g(np.ones(4, np.float32), False)
        return x + 1

    @tinyfuse.jit
    def g(x, deep):
        if deep:
            meet()
            return x + f(np.ones(4, np.float32), False)
        return x + 2

    in_threads(2, lambda index: (f, g)[index](X, True))
    np.testing.assert_array_equal(f(X, True), X + 3)


def test_a_forked_child_compiles_and_runs():
    f = tinyfuse.jit(lambda x: np.exp(x).sum())
    f(X)
    child = os.fork()
    if child == 0:
        same = np.isclose(f(X), np.exp(X).sum()) and np.isclose(f(X[:2]), np.exp(X[:2]).sum())
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
