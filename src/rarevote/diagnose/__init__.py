"""A fitted crowd examined: its annotators, items and classes, whether they agree, whether the model fits."""
