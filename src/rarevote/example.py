"""The example that comes with the package; see :mod:`rarevote.simulate.example`."""

from rarevote.simulate.example import ExampleFiles, example_files

__all__ = ["ExampleFiles", "example_files"]
