"""Compiles three picture filters and runs them on a photograph: python photo.py [FOLDER]

Prints what `unsharp_mask` becomes on its way to C; then, for all three filters of `filters.py`, how
close they come to numpy and how long both take. Writes the pictures into FOLDER.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from filters import harris_response, tone_curve, unsharp_mask
from timing import duration, medians, run_without_openblas_settings

import tinyfuse
from tinyfuse.runtime.toolchain import find_compiler

WIDTH = 100  # columns of the terminal

Filter = Callable[..., np.ndarray]


class Example(NamedTuple):
    """tolerance: the largest difference from numpy, as a part of numpy's largest value."""

    function: Filter
    tolerance: float
    why: str


EXAMPLES = (
    Example(unsharp_mask, 0, "only + - * and comparisons: the same bits"),
    Example(harris_response, 1e-5, "sums are added up in another order"),
    Example(tone_curve, 1e-5, "other sums, power, exp and log"),
)


class Checked(NamedTuple):
    """difference: as `tolerance`. same_bits: with 1 thread, all threads, and unfused."""

    difference: float
    same_bits: bool


def main(arguments: list[str] | None = None, seconds: float = 1.0) -> int:
    """0 if every filter is as close to numpy as it has to be. seconds: to time each filter for."""
    options = _options(arguments)
    picture = photograph()
    print(f"A photograph: {' x '.join(map(str, picture.shape))} {picture.dtype} from scikit-learn.")
    print(f"{tinyfuse.num_threads()} threads; compiler: {' '.join(find_compiler().command)}")
    show(unsharp_mask, picture)
    results = [check(example.function, picture) for example in EXAMPLES]
    heading("The same as numpy?")
    for example, result in zip(EXAMPLES, results, strict=True):
        print(f"  {example.function.__name__:16s} {_verdict(example, result)}")
    heading("How fast? (median; both take turns; x: numpy's time over tinyfuse's)")
    for example in EXAMPLES:
        print(f"  {example.function.__name__:16s} {_speed(example.function, picture, seconds)}")
    heading(f"Pictures, in {options.folder}")
    for path in write_pictures(picture, options.folder):
        print(f"  {path.name}")
    passed = [_passes(*pair) for pair in zip(EXAMPLES, results, strict=True)]
    return 0 if all(passed) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Three picture filters, from numpy to C.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("photo-output"))
    return parser.parse_args(arguments)


def photograph() -> np.ndarray:
    """float32[427, 640, 3] from 0 to 1."""
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg").astype(np.float32) / 255


def show(function: Filter, picture: np.ndarray) -> None:
    """Print what becomes of a function on its way to C."""
    lowered = tinyfuse.jit(function).lower(picture)
    for level, title in (
        ("graph", "The graph: what the function did, operation by operation"),
        ("schedule", "The schedule: what is computed where"),
        ("loops", "The loop nests"),
        ("c", "The C"),
    ):
        heading(f"{title} ({function.__name__})")
        print(folded(lowered.as_text(level)))
    heading("What each kernel does")
    for name, cost in lowered.cost.items():
        moved = f"reads {_mib(cost.bytes_read)}, writes {_mib(cost.bytes_written)}"
        print(f"  {name:24s} {cost.flops / 1e6:6.2f} million operations, {moved}")
    print(f"  scratch memory: {_mib(lowered.scratch_bytes)}")


def _mib(count: int) -> str:
    return f"{count / 2**20:.2f} MiB"


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * min(len(text), WIDTH)}")


def folded(text: str) -> str:
    """The text with long lines broken at spaces."""
    return "\n".join(part for line in text.splitlines() for part in _fold(line))


def _fold(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    rest = indent + ("// " if line.startswith(indent + "//") else "    ")
    return wrap(line, WIDTH, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def check(function: Filter, picture: np.ndarray) -> Checked:
    """Run the filter in numpy and in three ways in tinyfuse."""
    expected = function(picture)
    ways = ({}, {"threads": 1}, {"fuse": False})
    results = [tinyfuse.jit(function, **options)(picture) for options in ways]
    difference = max(float(np.abs(result - expected).max()) for result in results)
    same_bits = len({result.tobytes() for result in results}) == 1
    largest = float(np.abs(expected).max()) or 1.0
    return Checked(difference / largest, same_bits)


def _passes(example: Example, result: Checked) -> bool:
    return result.difference <= example.tolerance and result.same_bits


def _verdict(example: Example, result: Checked) -> str:
    answer = "yes" if _passes(example, result) else "NO "
    within = f"within {result.difference:.0e} of the largest value"
    distance = within if result.difference else "equal"
    bits = "" if result.same_bits else "; NOT the same with 1 thread, all threads, unfused"
    return f"{answer} {distance} ({example.why}){bits}"


def _speed(function: Filter, picture: np.ndarray, seconds: float) -> str:
    one, many = tinyfuse.jit(function, threads=1), tinyfuse.jit(function)
    calls = {
        "numpy": lambda: function(picture),
        "1 thread": lambda: one(picture),
        f"{tinyfuse.num_threads()} threads": lambda: many(picture),
    }
    times = medians(calls, seconds)
    numpy = times.pop("numpy")
    cells = [f"numpy {duration(numpy)}"]
    cells += [
        f"{name} {duration(time)} {f'({numpy / time:.1f}x)':>7s}" for name, time in times.items()
    ]
    return "   ".join(cells)


def write_pictures(picture: np.ndarray, folder: Path) -> list[Path]:
    """Write the photograph and what the filters make of it as PNG; gives the files."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"photo": picture}
    for example in EXAMPLES:
        pictures[example.function.__name__] = tinyfuse.jit(example.function)(picture)
    pictures["harris_response"] = as_gray(pictures["harris_response"])
    paths = []
    for name, values in pictures.items():
        paths.append(folder / f"{name}.png")
        Image.fromarray((values * 255).round().astype(np.uint8)).save(paths[-1])
    return paths


def as_gray(response: np.ndarray) -> np.ndarray:
    """Values of both signs as shades from 0 to 1: gray for zero, small ones made visible."""
    visible = np.sign(response) * np.sqrt(np.abs(response))
    return 0.5 + 0.5 * visible / (np.abs(visible).max() or 1)


if __name__ == "__main__":
    run_without_openblas_settings()
    sys.exit(main())
