"""Tracebacks as users read them: with the frames of their own code."""

from __future__ import annotations

import os
import types

from tinyfuse.errors import TinyfuseError

_INTERNAL = (os.path.dirname(os.path.abspath(__file__)) + os.sep,)


def is_internal(frame: types.FrameType) -> bool:
    """Whether a frame runs code of tinyfuse's."""
    return frame.f_code.co_filename.startswith(_INTERNAL)


def without_internal_frames(error: BaseException) -> BaseException:
    """The same exception with a traceback that holds frames of the user's code only.

    The innermost frame is then the user's line. Returns `error`, to be raised by the caller, whose
    own frame Python adds again.
    """
    frames = []
    place = error.__traceback__
    while place is not None:
        if not is_internal(place.tb_frame):
            frames.append(place)
        place = place.tb_next
    kept: types.TracebackType | None = None
    for place in reversed(frames):
        kept = types.TracebackType(kept, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return error.with_traceback(kept)


def show_users_frames(error: Exception) -> None:
    """Take tinyfuse's frames out of the traceback, unless the error is a fault of tinyfuse's."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    ours = place is not None and is_internal(place.tb_frame)
    if not ours or isinstance(error, TinyfuseError):
        without_internal_frames(error)
