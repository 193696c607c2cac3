"""Shared compiled loops. The only package that imports numba."""
