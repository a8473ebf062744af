"""Three picture filters in plain numpy. Nothing here knows of tinyfuse; `photo.py` compiles them.

A picture is a float32[height, width, 3] array: red, green and blue, each from 0 to 1.
"""

import numpy as np

BINOMIAL = (0.0625, 0.25, 0.375, 0.25, 0.0625)  # a small Gaussian: 1 4 6 4 1, divided by 16
LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)  # how bright red, green and blue look


def unsharp_mask(image, amount=1.5):
    """Sharpen: add what a blur takes away. Gives a picture of the same shape."""
    height, width, _ = image.shape
    padded = np.pad(image, ((2, 2), (2, 2), (0, 0)), mode="edge")
    rows = sum(weight * padded[k : k + height] for k, weight in enumerate(BINOMIAL))
    blurred = sum(weight * rows[:, k : k + width] for k, weight in enumerate(BINOMIAL))
    return np.clip(image + amount * (image - blurred), 0, 1)


def harris_response(image, k=0.05):
    """How much each pixel looks like a corner (> 0) or an edge (< 0): float32[height, width].

    C. Harris, M. Stephens: A combined corner and edge detector, 1988; with 3 x 3 windows.
    """
    gray = np.pad(image @ LUMINANCE, 2, mode="edge")
    dx = gray[1:-1, 2:] - gray[1:-1, :-2]
    dy = gray[2:, 1:-1] - gray[:-2, 1:-1]
    xx, yy, xy = [window_sums(product) for product in (dx * dx, dy * dy, dx * dy)]
    return xx * yy - xy * xy - k * (xx + yy) ** 2


def window_sums(values):
    """The sum of the 3 x 3 window around each inner element: float32[height - 2, width - 2]."""
    return np.lib.stride_tricks.sliding_window_view(values, (3, 3)).sum(axis=(-2, -1))


def tone_curve(image, key=0.3):
    """Even out light and shade, so that the average pixel gets the brightness `key`.

    E. Reinhard et al.: Photographic tone reproduction for digital images, 2002, the global curve.
    """
    linear = image**2.2
    luminance = linear @ LUMINANCE + 0.001
    average = np.exp(np.log(luminance).mean())
    exposed = key / average * luminance
    mapped = exposed * (1 + exposed / exposed.max() ** 2) / (1 + exposed)
    return np.clip(linear * (mapped / luminance)[..., np.newaxis], 0, 1) ** (1 / 2.2)
