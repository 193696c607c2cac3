"""Writing of results to files, completely or not at all."""
