"""A real Label Studio beside the live verbs."""
