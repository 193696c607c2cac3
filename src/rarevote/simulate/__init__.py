"""Crowds whose truth is known: drawn, written to files, and the example that comes with the package."""

from rarevote.simulate.crowds import (
    SimulatedCrowd,
    simulate_cc_rasch,
    simulate_chunks,
    simulate_crowd,
)

__all__ = ["SimulatedCrowd", "simulate_cc_rasch", "simulate_chunks", "simulate_crowd"]
