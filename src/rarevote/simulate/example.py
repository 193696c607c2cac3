"""The example data that comes with the package: simulated rail inspectors, many of whom overlook defects.

3 000 images of rails, 120 of them (4%) with the label ``defect`` and the rest ``sound``, labelled by 40
inspectors, five or six of them an image. A majority vote finds three defects out of five. The data are
simulated; ``examples/make_rails.py`` in the source tree makes them.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import NamedTuple


class ExampleFiles(NamedTuple):
    """Paths of the two files of the example.

    Attributes:
        labels: CSV with the columns ``task``, ``worker`` and ``label``, one row a label.
        truth: CSV with the columns ``task`` and ``label``, one row a task.
    """

    labels: Path
    truth: Path


def example_files() -> ExampleFiles:
    """Return where the example's labels and truth are installed.

    Example:
        >>> files = example_files()
        >>> files.labels.read_text().splitlines()[:2]
        ['task,worker,label', 'rail-0001.jpg,inspector-01,sound']
    """
    folder = resources.files("rarevote") / "data" / "rails"
    return ExampleFiles(labels=Path(str(folder / "labels.csv")), truth=Path(str(folder / "truth.csv")))
