"""Functions of numpy on the arrays of PyTorch or CuPy, on their GPU: python interop.py

Nothing is copied: results are taken over through DLPack, and what the function writes is written
into the library's own memory. Without a GPU, or without one of the libraries, it says so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinyfuse


class Library(NamedTuple):
    """put: a numpy array on the GPU. taken: from what has `__dlpack__`. numpy: back. stream: that
    which it works in now."""

    name: str
    put: Callable[[np.ndarray], Any]
    taken: Callable[[Any], Any]
    numpy: Callable[[Any], np.ndarray]
    stream: Callable[[], Any]


def pytorch() -> Library | None:
    torch = imported("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return Library(
        f"PyTorch {torch.__version__}",
        lambda array: torch.from_numpy(array).cuda(),
        torch.from_dlpack,
        lambda tensor: tensor.cpu().numpy(),
        torch.cuda.current_stream,
    )


def cupy() -> Library | None:
    found = imported("cupy")
    if found is None or not found.is_available():
        return None
    return Library(
        f"CuPy {found.__version__}",
        found.asarray,
        found.from_dlpack,
        found.asnumpy,
        found.cuda.get_current_stream,
    )


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@tinyfuse.jit(target="cuda")
def normalized(x, scale, shift):
    """Layer normalization, as one kernel."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * scale + shift


@tinyfuse.jit(target="cuda")
def descend(weights, gradient, momentum, rate):
    """A step that changes two arrays where they are."""
    momentum[:] = momentum * np.float32(0.9) + gradient
    weights -= momentum * rate


def layers(library: Library, random: np.random.Generator) -> bool:
    """A result, and one of its own as the next argument."""
    arrays = [random.standard_normal(s).astype(np.float32) for s in ((64, 256), (256,), (256,))]
    x, scale, shift = map(library.put, arrays)
    first = normalized(x, scale, shift)
    second = library.taken(normalized(library.taken(first), scale, shift))
    plain = normalized.__wrapped__
    return close(library.numpy(second), plain(plain(*arrays), *arrays[1:]))


def steps(library: Library, random: np.random.Generator) -> bool:
    """Arrays that change, in the library's own stream: no call waits for anything."""
    arrays = [random.standard_normal((64, 256)).astype(np.float32) for _ in range(3)]
    weights, gradient, momentum = map(library.put, arrays)
    with tinyfuse.cuda_stream(library.stream()):
        for _ in range(3):
            descend(weights, gradient, momentum, 0.1)
            descend.__wrapped__(*arrays, np.float32(0.1))
    return close(library.numpy(weights), arrays[0]) and close(library.numpy(momentum), arrays[2])


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(found, expected, rtol=1e-4, atol=1e-5)


def main() -> int:
    libraries = [library for library in (pytorch(), cupy()) if library]
    if not libraries:
        print("neither PyTorch nor CuPy is here with a GPU: there is nothing to show")
        return 0
    right = True
    for library in libraries:
        for example in (layers, steps):
            close_enough = example(library, np.random.default_rng(0))
            right = right and close_enough
            print(f"{library.name}, {example.__name__}: {'as numpy' if close_enough else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
