"""The edges: frames, files, tables, weights."""
