"""The base of all errors."""

from __future__ import annotations


class TinyfuseError(Exception):
    """Base of everything that tinyfuse raises on purpose."""

    located = False  # whether the message already ends with the user's file and line
