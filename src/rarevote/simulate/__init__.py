"""Crowds whose truth is known: simulated, written to files, and the example in the package."""

from rarevote.simulate.crowds import (
    SimulatedCrowd,
    simulate_cc_rasch,
    simulate_chunks,
    simulate_crowd,
)
from rarevote.simulate.files import ExampleFiles, example_files
from rarevote.simulate.juries import SimulatedJury, simulate_jury

__all__ = [
    "ExampleFiles",
    "SimulatedCrowd",
    "SimulatedJury",
    "example_files",
    "simulate_cc_rasch",
    "simulate_chunks",
    "simulate_crowd",
    "simulate_jury",
]
