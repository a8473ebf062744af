"""C programs and Python processes that the tests of the runtime share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

POOL = (ROOT / "runtime_c" / "entry.h").read_text()

TWICE = """\
int twice(void *const *arrays, void *scratch, const void *pool) {
  const float *x = arrays[0];
  float *y = arrays[1];
  for (long i = 0; i < 8; i++) y[i] = x[i] + x[i];
  (void)scratch, (void)pool;
  return 0;
}
"""


def answering(number: int) -> str:
    """The text of `int answer(...)`, which returns this number."""
    return f"""\
int answer(void *const *arrays, void *scratch, const void *pool) {{
  (void)arrays, (void)scratch, (void)pool;
  return {number};
}}
"""


def run_python(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process of its own; None takes a variable away."""
    changed = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in changed.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
    )
