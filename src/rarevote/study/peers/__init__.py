"""Code that runs in a separate process, in the Python that has the measured library."""
