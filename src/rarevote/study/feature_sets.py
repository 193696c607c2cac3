"""Datasets with features: votes, truth and one row of numbers for each item, with all votes or fewer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import some_names
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError
from rarevote.features.columns import Columns
from rarevote.features.table import WhichColumns, read_features
from rarevote.io.read.votes import read_annotations_file, read_truth_file
from rarevote.study.datasets import source_groups

_LABELS, _TRUTH, _FEATURES = "labels.csv", "truth.csv", ("features.parquet", "features.csv")


@dataclass(frozen=True)
class FeatureSetInfo:
    """A dataset in a folder.

    Attributes:
        slug: its name, which is the name of its folder.
        source_group: datasets of one group are not independent evidence.
        folder: its folder.
    """

    slug: str
    source_group: str
    folder: Path

    @property
    def features(self) -> Path:
        """Its file of features."""
        return next(path for name in _FEATURES if (path := self.folder / name).is_file())


@dataclass(frozen=True, eq=False)
class FeaturedCrowd:
    """A crowd whose items have features, with numbers instead of names.

    Attributes:
        tasks: names of the items, (n).
        classes: names of the classes; classes that only the truth has come last, (K).
        votes: numbers of item, worker and class of each vote, (V) each.
        features: features of each item, (n, D).
        truth: number of the true class of each item, -1 if it is not known, (n).
    """

    tasks: NDArray[Any]
    classes: list[str]
    votes: tuple[IntArray, IntArray, IntArray]
    features: FloatArray
    truth: IntArray

    @property
    def n_workers(self) -> int:
        """Number of workers, with or without votes."""
        return int(self.votes[1].max()) + 1

    @property
    def rare(self) -> int:
        """Number of the rarest true class."""
        counts = np.bincount(self.truth[self.truth >= 0], minlength=len(self.classes))
        return int(np.where(counts > 0, counts, counts.sum() + 1).argmin())

    @property
    def counts(self) -> FloatArray:
        """Votes of each item for each class, (n, K)."""
        found = np.zeros((len(self.tasks), len(self.classes)))
        np.add.at(found, (self.votes[0], self.votes[2]), 1.0)
        return found

    @cached_property
    def standardised(self) -> FloatArray:
        """The columns that vary, centred and scaled to unit variance; missing cells are 0, (n, d)."""
        names = [str(number) for number in range(self.features.shape[1])]
        columns = replace(Columns.of(self.features, np.arange(len(self.tasks)), names), axes=None)
        return columns.standard(self.features).astype(np.float64)

    @cached_property
    def digest(self) -> str:
        """A digest that changes if any vote, name, feature or true label changes."""
        found = hashlib.sha256()
        for array in (*self.votes, self.truth):
            found.update(array.astype("<i8").tobytes())
        found.update(self.features.astype("<f8").tobytes())
        found.update(repr((self.tasks.tolist(), self.classes)).encode())
        return found.hexdigest()

    def most_votes(self) -> int:
        """The largest number of votes on any item."""
        return int(np.bincount(self.votes[0]).max())

    def thinned(self, n_votes: int, seed: int) -> FeaturedCrowd:
        """The crowd with at most ``n_votes`` votes per item, drawn at random."""
        item = self.votes[0]
        order = np.lexsort((np.random.default_rng(seed).random(len(item)), item))
        first = np.searchsorted(item[order], np.arange(len(self.tasks)))
        kept = np.sort(order[np.arange(len(item)) - first[item[order]] < n_votes])
        task, worker, label = (column[kept] for column in self.votes)
        return replace(self, votes=(task, np.unique(worker, return_inverse=True)[1], label))


def find_feature_sets(data: Path, names: Sequence[str] | None = None) -> list[FeatureSetInfo]:
    """The datasets in a folder, or only those that are named.

    Raises:
        InputError: there is none, or a named one is not there.
    """
    if not data.is_dir():
        raise InputError(f"{data}: not a folder. {_what_is_needed()}")
    groups = source_groups(data / "index.csv")
    found = {
        folder.name: FeatureSetInfo(folder.name, groups.get(folder.name, folder.name), folder)
        for folder in sorted(data.iterdir())
        if all((folder / name).is_file() for name in (_LABELS, _TRUTH))
        and any((folder / name).is_file() for name in _FEATURES)
    }
    if not found:
        raise InputError(f"{data}: no dataset with features. {_what_is_needed()}")
    absent = [name for name in names or () if name not in found]
    if absent:
        raise InputError(f"{data}: no dataset {some_names(absent)} with features; there are {', '.join(found)}")
    return [found[name] for name in names or found]


def _what_is_needed() -> str:
    return f"Give a folder that has a folder for each dataset, with {_LABELS}, {_TRUTH} and {' or '.join(_FEATURES)}"


def load_feature_set(info: FeatureSetInfo) -> FeaturedCrowd:
    """Read a dataset.

    Raises:
        InputError: its files are not valid, or an item with votes has no features.
    """
    crowd = read_annotations_file(info.folder / _LABELS)
    truth = read_truth_file(info.folder / _TRUTH)
    table = read_features(info.features, WhichColumns())
    tasks = [str(task) for task in crowd.tasks.tolist()]
    absent = [task for task in tasks if task not in table.place]
    if absent:
        raise InputError(f"{info.features}: no row for {some_names(absent)}: this study needs one for every voted item")
    voted = [str(name) for name in crowd.classes.tolist()]
    known = {str(task): str(label) for task, label in truth.items()}
    classes = [*voted, *sorted({known[task] for task in tasks if task in known}.difference(voted))]
    code = {name: number for number, name in enumerate(classes)}
    return FeaturedCrowd(
        np.array(tasks),
        classes,
        (crowd.task_of_annotation().astype(np.int64), crowd.worker.astype(np.int64), crowd.label.astype(np.int64)),
        np.asarray(table.values[table.rows(tasks)], dtype=np.float64),
        np.array([code[known[task]] if task in known else -1 for task in tasks], dtype=np.int64),
    )
