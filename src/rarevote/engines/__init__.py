"""Ways to run a model's step over all tasks and add up what comes back."""
