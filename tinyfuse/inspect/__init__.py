"""Looking at programs: what they compile to and why, and where the time of a call goes."""

from __future__ import annotations

from tinyfuse.inspect.profile import Profile, profile
from tinyfuse.inspect.report import Report, explain

__all__ = ["Profile", "Report", "explain", "profile"]
