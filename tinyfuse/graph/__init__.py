"""The first level: a graph of typed equations over whole arrays."""
