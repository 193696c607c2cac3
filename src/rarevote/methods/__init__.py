"""Aggregation methods, one file each; :mod:`rarevote.methods.registry` lists them."""
