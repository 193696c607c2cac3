"""Votes, known labels and results from files, frames and arrays."""
