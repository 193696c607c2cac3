"""The audit: prove a recall with few reviews by an expert, whatever the crowd or the model says."""
