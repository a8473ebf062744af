"""The last level: C text."""
