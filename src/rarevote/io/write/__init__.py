"""Results to files that appear whole or not at all, and to frames in kind."""
