"""Jitted functions in other processes: pickled, copied, hashed, sent by what sends functions."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinyfuse
from tests.runtime_programs import ROOT

X = np.arange(6.0).reshape(2, 3)


@tinyfuse.jit
def decorated(x):
    return x + 1


@tinyfuse.jit(static_argnames="axis", fuse=False, threads=3, maxsize=5)
def with_options(x, axis):
    return x.sum(axis)


def plain(x, axis=None):
    return x.max(axis)


made = tinyfuse.jit(plain, static_argnames="axis", threads=2, maxsize=7)


class Model:
    def __init__(self, weight):
        self.weight = weight

    @tinyfuse.jit
    def scale(self, x):
        return x * self.weight


PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_can_be_found_by_name_is_pickled_by_name(protocol: int):
    for function in (decorated, with_options, Model.scale):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert len(pickle.dumps(decorated, protocol)) < 100


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_others_are_made_anew_with_their_options(protocol: int):
    pickled = pickle.dumps(made, protocol)
    remade = pickle.loads(pickled)
    assert remade is pickle.loads(pickled)  # so that what it compiles is compiled once
    assert remade.__wrapped__ is plain
    assert remade._options == made._options
    assert remade.cache_info().maxsize == 7
    np.testing.assert_array_equal(remade(X, (1,)), X.max(1))
    again = pickle.loads(pickle.dumps(remade, protocol))
    np.testing.assert_array_equal(again(X, axis=0), X.max(0))


def test_methods_of_an_instance_are_pickled_with_it():
    bound = pickle.loads(pickle.dumps(Model(3.0).scale))
    np.testing.assert_array_equal(bound(X), X * 3)
    assert bound.__func__ is Model.scale
    assert bound.__self__.weight == 3.0


def test_functions_that_cannot_be_found_are_refused_as_plain_ones_are():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(tinyfuse.jit(lambda x: x))


def test_copies_are_the_same_object():
    for function in (decorated, made, tinyfuse.jit(lambda x: x)):
        assert copy.copy(function) is function
        assert copy.deepcopy([function])[0] is function
        assert {function: 1}[function] == 1


def test_a_method_of_an_instance_can_be_jitted():
    model = Model(2.0)
    f = tinyfuse.jit(model.scale)
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X * 2)
        np.testing.assert_array_equal(f(x=X), X * 2)
    assert f.cache_info().misses == 1
    model.weight = 5.0
    np.testing.assert_array_equal(f(X), X * 5)
    with pytest.raises(TypeError, match=r"scale\(\): missing a required argument: 'x'"):
        f()


SCRIPT = """
import pickle, subprocess, sys
import numpy as np
import tinyfuse

SHIFT = 5

@tinyfuse.jit(threads=1)
def shifted(x, by=2):
    return x * by + SHIFT

def plain(x):
    return shifted(x) - 1

outer = tinyfuse.jit(plain)
X = np.arange(4.0)
"""

SENT = """
import pickle, sys
import numpy as np
X = np.arange(4.0)
for function in pickle.load(sys.stdin.buffer):
    print(function.__name__, function.__qualname__, function(X), function(X), function.__module__)
    print(function._options.threads, function.cache_info().misses)
"""


def run_script(path: Path, text: str) -> str:
    path.write_text(text)
    outcome = subprocess.run(
        [sys.executable, path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def test_functions_of_the_main_module_are_found_by_name(tmp_path: Path):
    text = f"""{SCRIPT}
for protocol in range(6):
    assert pickle.loads(pickle.dumps(shifted, protocol)) is shifted
print(pickle.loads(pickle.dumps(outer))(X))
"""
    assert run_script(tmp_path / "script.py", text) == "[ 4.  6.  8. 10.]\n"


def test_functions_of_the_main_module_are_sent_by_value(tmp_path: Path):
    """To a process that has another main module, as those that work for dask."""
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    text = f"""{SCRIPT}
import cloudpickle
sent = cloudpickle.dumps([shifted, outer, tinyfuse.jit(lambda x: x / 2)])
subprocess.run([sys.executable, "-c", {SENT!r}], input=sent, check=True)
"""
    assert run_script(tmp_path / "script.py", text).splitlines() == [
        "shifted shifted [ 5.  7.  9. 11.] [ 5.  7.  9. 11.] __main__",
        "1 1",
        "plain plain [ 4.  6.  8. 10.] [ 4.  6.  8. 10.] __main__",
        "None 1",
        "<lambda> <lambda> [0.  0.5 1.  1.5] [0.  0.5 1.  1.5] __main__",
        "None 1",
    ]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_dask_calls_them(scheduler: str, tmp_path: Path):
    pytest.importorskip("dask", reason="dask is not installed")
    text = f"""{SCRIPT}
import dask
if __name__ == "__main__":
    parts = [dask.delayed(function)(X + n) for n in range(4) for function in (shifted, outer)]
    results = dask.compute(*parts, scheduler={scheduler!r}, num_workers=2)
    print([float(result[0]) for result in results])
"""
    expected = [value for n in range(4) for value in (2.0 * n + 5, 2.0 * n + 4)]
    assert run_script(tmp_path / "script.py", text) == f"{expected}\n"
