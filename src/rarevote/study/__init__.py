"""The experiments behind the method, as code that can be rerun."""
