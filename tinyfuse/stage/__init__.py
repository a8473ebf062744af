"""The second level: stages, each one scalar expression per element of an array."""
