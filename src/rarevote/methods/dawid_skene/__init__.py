"""Dawid–Skene: a confusion matrix per annotator."""

from rarevote.methods.dawid_skene.estimator import DawidSkene, OneCoinDawidSkene

__all__ = ["DawidSkene", "OneCoinDawidSkene"]
