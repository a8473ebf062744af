"""Arrays whose axes have labels, as of contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Labels = tuple[int, ...]


def aligned(x: Any, labels: Labels, wanted: Sequence[int]) -> np.ndarray:
    """x with one axis for each wanted label, of size 1 where it does not have the label."""
    present = [label for label in labels if label in wanted]
    absent = tuple([axis for axis, label in enumerate(labels) if label not in wanted])
    x = np.squeeze(x, absent)  # contracted axes of size 1
    order = [present.index(label) for label in wanted if label in present]
    return np.expand_dims(
        np.transpose(x, order), [at for at, label in enumerate(wanted) if label not in present]
    )
