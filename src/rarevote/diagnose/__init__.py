"""Diagnosis of a fitted crowd: annotators, items and classes, agreement, and whether the model fits."""
