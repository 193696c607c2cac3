"""The HTML page of a result."""
