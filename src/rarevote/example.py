"""The example that comes with the package; see :mod:`rarevote.simulate.files`."""

from rarevote.simulate.files import ExampleFiles, example_files

__all__ = ["ExampleFiles", "example_files"]
