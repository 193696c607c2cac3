"""Scores of answers against a known truth, for one method or several."""
