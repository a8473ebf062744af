"""A small language model writes text, one compiled call for each letter: python text.py

The blocks are those of GPT-like models: attention over all letters so far, whose keys and values
are kept, then a network of two layers. Their weights are random; only the last matrix is fitted, by
least squares, to a text that comes with Python. So it has learned that one by heart.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from timing import duration, medians, run_without_openblas_settings

import tinyfuse
from tinyfuse import nn

LAYERS, HEADS, SIZE = 2, 4, 256
Parameters = dict[str, Any]


def zen() -> str:
    """The Zen of Python."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


# --- the model ------------------------------------------------------------------------------------


def parameters(random: np.random.Generator, letters: int) -> Parameters:
    """Random ones; `readout` is fitted later."""

    def normal(*shape: int) -> np.ndarray:
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    blocks = [
        {
            "qkv": normal(SIZE, 3 * SIZE),
            "out": normal(SIZE, SIZE),
            "widen": normal(SIZE, 4 * SIZE),
            "narrow": normal(4 * SIZE, SIZE),
        }
        for _ in range(LAYERS)
    ]
    embedding = random.normal(size=(letters, SIZE)).astype(np.float32)
    return {
        "embedding": embedding,
        "blocks": blocks,
        "readout": np.zeros((SIZE, letters), np.float32),
    }


def split(block: Parameters, x):
    """Queries, keys and values of float32[n, size], each float32[heads, n, size / heads]."""
    qkv = nn.rms_norm(x, np.float32(1)) @ block["qkv"]
    return qkv.reshape(len(x), 3, HEADS, SIZE // HEADS).transpose(1, 2, 0, 3)


def joined(block: Parameters, x, attended):
    """What comes after attention: float32[n, size]."""
    x = x + attended.swapaxes(0, 1).reshape(len(x), SIZE) @ block["out"]
    wide = nn.gelu(nn.rms_norm(x, np.float32(1)) @ block["widen"])
    return x + wide @ block["narrow"]


def hidden(p: Parameters, letters):
    """What the model makes of each of the letters int64[n], from those before it:
    float32[n, size]."""
    x = p["embedding"][letters]
    for block in p["blocks"]:
        query, key, value = split(block, x)
        query, key = nn.rope(query), nn.rope(key)
        x = joined(block, x, nn.attention(query, key, value, causal=True))
    return nn.rms_norm(x, np.float32(1))


def decode(p: Parameters, letter, place, keys, values):
    """What follows one letter int64[1] at a place int64[], and its keys and values.

    keys, values: of each layer, float32[heads, all, size / heads]; those of the letters before it
    are there, and the caller puts its own beside them.
    """
    x, start, own = p["embedding"][letter], place.astype(np.float32), []
    seen = np.arange(keys[0].shape[1] + 1)
    seen = (seen < place) | (seen == keys[0].shape[1])  # those before it, and itself
    for block, old_keys, old_values in zip(p["blocks"], keys, values, strict=True):
        query, key, value = split(block, x)
        query, key = nn.rope(query, start), nn.rope(key, start)
        every_key = np.concatenate([old_keys, key], axis=1)
        every_value = np.concatenate([old_values, value], axis=1)
        x = joined(block, x, nn.attention(query, every_key, every_value, mask=seen))
        own.append((key[:, 0], value[:, 0]))
    return (nn.rms_norm(x, np.float32(1)) @ p["readout"]).argmax(axis=-1), own


def fitted(p: Parameters, letters: np.ndarray, made: np.ndarray) -> Parameters:
    """With the readout that tells the next letter from each, by least squares with a penalty."""
    x = made[:-1].astype(np.float64)
    wanted = np.eye(len(p["embedding"]))[letters[1:]]
    readout = np.linalg.solve(x.T @ x + 1e-3 * np.eye(SIZE), x.T @ wanted)
    return {**p, "readout": readout.astype(np.float32)}


# --- writing --------------------------------------------------------------------------------------


def empty(length: int) -> list[np.ndarray]:
    """Keys, or values, for so many letters."""
    return [np.zeros((HEADS, length, SIZE // HEADS), np.float32) for _ in range(LAYERS)]


def written(step: Any, p: Parameters, start: np.ndarray, length: int) -> np.ndarray:
    """The start, and what the model writes after it, up to so many letters."""
    keys, values = empty(length), empty(length)
    letters = np.zeros(length, np.int64)
    letters[: len(start)] = start
    for place in range(length - 1):
        letter = letters[place : place + 1]
        following, own = step(p, letter, np.array(place), keys, values)
        for layer, (key, value) in enumerate(own):
            keys[layer][:, place], values[layer][:, place] = key, value
        if place + 1 >= len(start):
            letters[place + 1] = following[0]
    return letters


def main(arguments: Sequence[str] = (), length: int = 240, seconds: float = 1.0) -> int:
    text = zen()[:length]
    alphabet = sorted(set(text))
    letters = np.array([alphabet.index(letter) for letter in text])
    p = parameters(np.random.default_rng(0), len(alphabet))
    p = fitted(p, letters, tinyfuse.jit(hidden)(p, letters))
    step = tinyfuse.jit(decode)
    start = letters[:20]
    result = written(step, p, start, length)
    print("".join(alphabet[letter] for letter in result))
    keys, values = empty(length), empty(length)
    one = (p, letters[:1], np.array(length // 2), keys, values)
    times = medians({"numpy": lambda: decode(*one), "compiled": lambda: step(*one)}, seconds)
    program = step.lower(*one)
    print(
        f"\n{(result == letters).mean():.1%} of the letters are those of the text;"
        f" one letter: numpy {duration(times['numpy'])}, compiled {duration(times['compiled'])},"
        f" {len(program.kernels)} kernels for {len(program.unfused().kernels)}"
    )
    return 0


if __name__ == "__main__":
    run_without_openblas_settings()
    sys.exit(main(sys.argv[1:]))
