"""Every compiled loop, one file a method. The only package that imports numba."""
