"""In which order numpy lays out new arrays: it decides whether what follows is a view or a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import check

STRIDES = {
    "C order": (12, 4),
    "Fortran order": (4, 12),
    "every second": (24, 8),
    "columns of a larger array": (4, 40),
    "reversed": (-12, -4),
    "rows reversed": (-4, 12),
    "columns reversed": (4, -12),
    "equal rows": (0, 4),
    "equal columns": (4, 0),
    "overlapping": (4, 4),
}

MADE = """
np.zeros_like(z); np.full_like(z, 3); np.full_like(z, 2, dtype=int); np.ones_like(z, order="C")
np.ones_like(z, order="F"); np.ones_like(z, order="A"); np.ones_like(z, shape=(4, 2))
np.ones_like(z, shape=(2, 2, 2)); np.zeros_like(z.T); np.ones_like(z[::-1])
np.zeros_like(np.zeros_like(z.T)); np.ones_like(z) + 1; np.ones_like(z)[::-1] + z
np.array(z); np.array(z, order="C"); np.array(z, order="F"); np.array(z, order="A")
np.array(z, dtype=float); np.array(z, dtype=float, order="C"); np.array(z, dtype=float, order="F")
np.asarray(z + 0, order="C"); np.asarray(z + 0, order="F"); np.asarray(z + 0, order="A")
np.ascontiguousarray(z + 0); np.asfortranarray(z + 0); np.array(z + 0, copy=False, order="K")
np.copy(z); np.copy(z, order="C"); np.copy(z, order="F"); np.copy(z, order="A")
z.copy(); z.copy("K"); z.copy("F"); z.copy("A"); z.astype(float); z.astype(float, order="C")
z.astype(float, order="F"); z.astype(z.dtype); z.astype(z.dtype, order="C")
z.astype(z.dtype, order="F"); (z + 0).astype(z.dtype, copy=False, order="F")
z + 1; z * z.T; -z; z > 0; np.where(z > 0, z, 0); np.where(z > 0, z, z.T); z.clip(0, 1)
np.ascontiguousarray(z + 0).T - 1; np.asarray(z, order="F").T * 2; z.ravel().reshape(3, 3).T + 1
z * np.float64(2) + np.ones((3, 3), order="F"); np.ones((3, 3), order="F") + z; z * z.max()
np.trace(z) * z; z[:, :, None] + z; np.arange(3)[:, None] + z
np.round(z, 1); np.round(z, -1); np.floor(z); np.modf(z)[0]; np.divmod(z, 2)[0]
np.pad(z, 1); np.concatenate([z, z]); np.concatenate([z, z], axis=1); np.stack([z, z])[0]
np.stack([z, z], axis=-1)[..., 0]; np.roll(z, 1); np.roll(z, 1, axis=0); np.tile(z, (2, 1))
np.repeat(z, 2, axis=0); np.array([z, z])[0]; np.dstack([z, z])[..., 0]
np.take(z, [0, 1], axis=0); np.take(z, [0, 1], axis=1); z.take([0, 1], axis=0); z[[0, 1]]
z[:, [0, 1]]; z[np.ix_([0, 1], [1, 2])]; np.take(z.T, [0, 1], axis=0); np.take(z, 1, axis=0)[None]
np.choose((z > 0).astype(int), [z, z]); np.select([z > 0], [z], 0); np.searchsorted([0.0, 1.0], z)
z.cumsum(axis=0, dtype=float); z.cumprod(axis=1)
np.broadcast_to(z, (2, 3, 3)) + 0; np.diff(z); np.tril(z); np.flip(z).copy()
""".replace("\n", ";").split(";")


WRITES = """
t.ravel()[::2] = -3
t.T.reshape(-1)[1::2] = -4
t.swapaxes(0, -1)[::-1].ravel()[:1] = 5
"""


def writing(made: str) -> Callable[..., Any]:
    lines = [f"t = {made}", *WRITES.split("\n"), "return t"]
    space: dict[str, Any] = {"np": np}
    exec("def f(z):\n" + "\n".join([f"    {line}" for line in lines]), space)
    function: Callable[..., Any] = space["f"]
    return function


@pytest.mark.parametrize("made", [text.strip() for text in MADE if text.strip()])
def test_writes_go_into_views_and_copies_where_numpy_makes_them(made: str) -> None:
    memory = np.linspace(-2, 2, 200, dtype=np.float32)
    for strides in STRIDES.values():
        z: np.ndarray = np.ndarray((3, 3), memory.dtype, memory, 4 * 100, strides)
        check(writing(made), z)


WRITTEN = """
z[[0, 2]] = 1
z[z > 0] += 1
z[z > 0] = z[z > 0] * 2
z[np.argmax(z[0])] = 5
z *= 2
z[...] = z[::-1]
z[::2, 1:] = 3
z.T[:, :2] -= 1
np.copyto(z, 1, where=z > 0)
np.add.at(z, [0, 0], 1)
np.add(z, 1, out=z)
z.fill(2)
np.put(z, [1, 2], 7)
np.fill_diagonal(z, 0)
z.reshape(3, 3)[0] = 1
""".strip().splitlines()


@pytest.mark.parametrize("write", WRITTEN)
def test_what_is_made_of_written_arrays_lies_like_them(write: str) -> None:
    space: dict[str, Any] = {"np": np}
    lines = write, "t = z * 1", "t.ravel()[::2] = 8", "return t, z + 0"
    exec("def f(z):\n" + "".join([f"    {line}\n" for line in lines]), space)
    memory = np.linspace(-2, 2, 200, dtype=np.float32)
    for strides in [each for each in STRIDES.values() if 0 not in each and each != (4, 4)]:
        z: np.ndarray = np.ndarray((3, 3), memory.dtype, memory.copy(), 4 * 100, strides)
        check(space["f"], z)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("layout", ["C", "F", "reversed", "repeated row", "repeated column"])
def test_what_is_indexed_lies_as_the_index_does(dtype: type, layout: str) -> None:
    plain = (np.arange(21, dtype=dtype) % 9).reshape(3, 7)
    index = {
        "C": plain,
        "F": np.asfortranarray(plain),
        "reversed": np.asfortranarray(plain)[::-1],
        "repeated row": np.broadcast_to(plain[0], (3, 7)),
        "repeated column": np.broadcast_to(plain[:, :1], (3, 7)),
    }[layout]

    def fill(x, index):
        taken = x[index]
        taken.ravel()[:] = 5  # of a copy, where numpy does not lay it out in C order
        return taken

    x = np.arange(9.0)
    np.testing.assert_array_equal(tinyfuse.jit(fill)(x, index), fill(x, index))
