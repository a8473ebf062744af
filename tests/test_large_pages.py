"""Memory for arrays that stay: one after the other, aligned, and nobody can write a copy."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import tinyfuse
from tinyfuse import large_pages
from tinyfuse.large_pages import ALIGNMENT, BLOCK, LEAST, PAGE, copied, lasting


@pytest.fixture
def new_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of the block before."""
    monkeypatch.setattr(large_pages, "_free", np.empty(0, np.uint8))


@pytest.mark.parametrize("nbytes", [0, 1, LEAST - 1, LEAST, LEAST + 1, BLOCK - PAGE, BLOCK])
def test_memory_has_the_bytes_that_were_asked_for(nbytes: int):
    found = lasting(nbytes)
    assert found.shape == (nbytes,)
    assert found.dtype == np.uint8
    assert found.ctypes.data % ALIGNMENT == 0 or not nbytes


@pytest.mark.usefixtures("new_block")
def test_weights_lie_one_after_the_other_in_blocks_that_begin_with_a_page():
    first, *others = [lasting(PAGE // 2 + 4) for _ in range(5)]
    assert first.ctypes.data % PAGE == 0
    distances = [other.ctypes.data - first.ctypes.data for other in others]
    assert distances == [at * (PAGE // 2 + ALIGNMENT) for at in range(1, 5)]


def test_threads_share_no_memory():
    found: list[np.ndarray] = []

    def take() -> None:
        found.extend([lasting(LEAST + 17 * at) for at in range(40)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = sorted((each.ctypes.data, each.ctypes.data + each.size) for each in found)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ends))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (3, 5), (300, 200)])
@pytest.mark.parametrize("dtype", ["bool", ">i4", "float16", "float64"])
def test_a_copy_is_in_c_order_and_cannot_be_made_writable(shape: tuple[int, ...], dtype: str):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype).T
    found = copied(array, array.dtype.newbyteorder("="))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.flags.c_contiguous
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
        found.flags.writeable = True


@pytest.mark.usefixtures("new_block")
def test_constants_lie_there():
    first, second = (tinyfuse.constant(np.ones((512, 512), np.float32)) for _ in range(2))
    assert second.ctypes.data - first.ctypes.data == first.nbytes
