"""Schedules: how the loops of each stage run, and where each stage is computed."""
