"""Settings from the environment, read once when tinyfuse is imported.

TINYFUSE_EXTENSION   0: call compiled code by way of Python, as where the extension was not built
TINYFUSE_KEPT_BYTES  bytes of large results, dropped by now, that are kept for the next; 0: none
TINYFUSE_LOG         topics to log on standard error, comma-separated: compile, cache
TINYFUSE_VERIFY      1: check each intermediate program for well-formedness (slow; for tests)
"""

from __future__ import annotations

import logging
import os
import sys
import warnings

LOG_TOPICS = ("compile", "cache")

compile_log = logging.getLogger("tinyfuse.compile")

extension = os.environ.get("TINYFUSE_EXTENSION", "") != "0"


def _number(setting: str) -> int | None:
    if setting.isdecimal():
        return int(setting)
    if setting:
        warnings.warn(f"TINYFUSE_KEPT_BYTES={setting!r} is no number of bytes", stacklevel=2)
    return None


kept_bytes = _number(os.environ.get("TINYFUSE_KEPT_BYTES", ""))
verify = os.environ.get("TINYFUSE_VERIFY", "") not in ("", "0")


class StandardErrorHandler(logging.Handler):
    """Writes to what `sys.stderr` is at that moment, so that redirecting it works."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


class LastResort(StandardErrorHandler):
    """Shows warnings, with tinyfuse's name before them, where nobody has set up any logging."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.root.handlers and not logging.getLogger(record.name).handlers:
            super().emit(record)


def log_topics(setting: str) -> tuple[str, ...]:
    """The topics that a value of TINYFUSE_LOG names; warns of unknown ones."""
    named = [topic.strip() for topic in setting.split(",") if topic.strip()]
    for topic in named:
        if topic not in LOG_TOPICS:
            known = ", ".join(LOG_TOPICS)
            warnings.warn(f"TINYFUSE_LOG: unknown topic {topic!r} (known: {known})", stacklevel=2)
    return tuple(topic for topic in LOG_TOPICS if topic in named)


def log_to_standard_error(topics: tuple[str, ...]) -> None:
    """Show the messages of these topics; of the others, only warnings are shown."""
    for topic in topics:
        logger = logging.getLogger(f"tinyfuse.{topic}")
        _add(logger, StandardErrorHandler())
        logger.setLevel(logging.DEBUG)
    _add(logging.getLogger("tinyfuse"), LastResort(logging.WARNING))


def _add(logger: logging.Logger, handler: logging.Handler) -> None:
    handler.setFormatter(logging.Formatter("tinyfuse: %(message)s"))
    logger.addHandler(handler)


log_to_standard_error(log_topics(os.environ.get("TINYFUSE_LOG", "")))
