"""Votes, gold, truth and results from files, frames and arrays."""
