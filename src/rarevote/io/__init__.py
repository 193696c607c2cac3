"""Files and frames to a crowd and back. Nothing here knows a method."""
