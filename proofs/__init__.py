"""Attacks on the package: fuzzing, faults, kills, contracts."""
