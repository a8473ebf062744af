"""Softmax, a layer and attention as CUDA, and whether threads do it right: python on_gpu.py

Names of functions as arguments print only those. No GPU is needed: an emulator runs every thread on
the CPU, and finds races and missing barriers. Where there is a GPU, it runs there too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from inspect import getsource
from typing import NamedTuple

import numpy as np

import tinyfuse
from tinyfuse.errors import TinyfuseError

START = 'extern "C" __global__'  # of a kernel, after its comment


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer(x, w, b):
    z = x @ w + b
    return 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))  # gelu


def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.float32(q.shape[-1] ** 0.5)
    return softmax(scores) @ v


class Example(NamedTuple):
    """shapes: of the float32 arguments. small: of those that the emulator is given."""

    function: Callable[..., np.ndarray]
    shapes: tuple[tuple[int, ...], ...]
    small: tuple[tuple[int, ...], ...]


EXAMPLES = (
    Example(softmax, ((512, 1024),), ((5, 100),)),
    Example(layer, ((512, 256), (256, 512), (512,)), ((48, 32), (32, 40), (40,))),
    Example(attention, ((4, 256, 64),) * 3, ((2, 24, 16),) * 3),
)


def numbers(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def kernels(text: str) -> str:
    """A text in CUDA without the functions that stand before its kernels."""
    return text[text.rindex("\n\n", 0, text.index(START)) :].strip()


def show(example: Example) -> None:
    lowered = tinyfuse.jit(example.function, target="cuda").lower(*numbers(example.shapes))
    count = len(lowered.kernels)
    print(f"== {example.function.__name__}\n\n{getsource(example.function)}")
    print(f"{count} kernel{'s' * (count != 1)}; registers: {registers(lowered)}\n")
    print(kernels(lowered.as_text("cuda")), end="\n\n")


def registers(lowered: tinyfuse.Lowered) -> str:
    """What each thread has of them on an H100, if there is a compiler to ask."""
    from tinyfuse.runtime.nvrtc import built_cubin

    try:
        cubin = built_cubin(lowered.cuda[0].text, "an example", "sm_90")
    except TinyfuseError:
        return "no compiler of NVIDIA's is here to ask"
    found = cubin.resources.values()
    spilled = sum(each.spilled for each in found)
    return f"{', '.join(str(each.registers) for each in found)}, {spilled} bytes spilled"


def verdict(example: Example, target: str) -> str:
    """Whether CUDA gives the bits of C."""
    arguments = numbers(example.small)
    expected = tinyfuse.jit(example.function)(*arguments)
    try:
        found = tinyfuse.jit(example.function, target=target)(*arguments)
    except TinyfuseError as error:
        return f"{type(error).__name__}: {error}"
    return "the bits of C" if found.tobytes() == expected.tobytes() else "NOT the bits of C"


def main(names: Sequence[str] = ()) -> int:
    chosen = [each for each in EXAMPLES if not names or each.function.__name__ in names]
    for example in chosen:
        show(example)
    right = True
    for example in chosen:
        found = verdict(example, "cuda-emulated")
        right = right and found == "the bits of C"
        print(f"{example.function.__name__}, emulated: {found}")
        print(f"{example.function.__name__}, on a GPU: {verdict(example, 'cuda')}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
