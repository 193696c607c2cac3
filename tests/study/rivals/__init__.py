"""Rivals of the study of features, where their libraries are."""

WITHOUT = "the rivals jax and cleanlab are in an environment of their own (make prove-gp)"
