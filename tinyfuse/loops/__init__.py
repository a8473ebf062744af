"""The third level: loop nests over flat buffers, one step above C."""
