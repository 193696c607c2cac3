"""The experiments behind the method, as code that anyone can rerun."""
