"""Compilers, the disk cache, shared libraries and threads: what runs the C text."""
