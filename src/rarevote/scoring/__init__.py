"""Scores of answers against a known truth, of one method or of several side by side."""
