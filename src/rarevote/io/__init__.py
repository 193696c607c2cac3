"""From files and frames to a crowd and back, independent of any method."""
