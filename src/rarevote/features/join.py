"""The join of features with the items of a crowd: by ids as text, in the order of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array, in_kind, some_names, spelling, unmatched
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.population import population, with_items
from rarevote.errors import InputError, shown, warn_user
from rarevote.features.ridge import folds_of
from rarevote.features.settings import FeatureSettings
from rarevote.features.table import FeatureTable, PredictionTable

_LEAST = 1e-6  # lower limit of a predicted probability, before its logarithm


@dataclass(frozen=True, eq=False)
class ItemPredictions:
    """Predicted probabilities of items.

    Attributes:
        table: the probabilities.
        row: row of each item in the table, (n).
    """

    table: PredictionTable
    row: IntArray

    def scores(self, classes: Sequence[Any]) -> FloatArray:
        """Log probabilities of these classes, centred over them, (n, K)."""
        return centred_logs(self.table, classes, self.row)


def centred_logs(table: PredictionTable, classes: Sequence[Any], row: IntArray) -> FloatArray:
    """Log probabilities of these classes, centred over them, (n, K); a class without a column has a tiny one."""
    place = {name: number for number, name in enumerate(table.classes)}
    logs = np.full((len(row), len(classes)), np.log(_LEAST))
    for k, name in enumerate(classes):
        if spelling(name) in place:
            logs[:, k] = np.log(np.maximum(table.values[row, place[spelling(name)]], _LEAST))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Features of items, in the order of the population.

    Attributes:
        item: number of each item in the population, increasing, (n).
        codes: CRC-32 of its id, (n).
        texts: its id as text, (n).
        fold: its fold, (n).
        names: names of the columns.
        values: the numbers, (N, D), can be a memory map; None if there are only predicted probabilities.
        row: row of each item in ``values``, (n).
        predictions: predicted probabilities; None without.
        settings: the constants.
        gold: known class of items without votes, by number of the item.
    """

    item: IntArray
    codes: NDArray[np.uint32]
    texts: NDArray[Any]
    fold: IntArray
    names: list[str]
    values: NDArray[Any] | None
    row: IntArray
    predictions: ItemPredictions | None
    settings: FeatureSettings
    gold: Mapping[int, Any] = field(default_factory=dict)

    def with_gold(self, known: Mapping[Any, Any], votes: Annotations) -> tuple[dict[Any, Any] | None, ItemFeatures]:
        """Gold of items with votes, by name, and the features with the gold of items without votes.

        Args:
            known: class by name of the item.
            votes: the votes.
        """
        has_row = set(self.item.tolist())
        place = {name: number for number, name in enumerate(votes.unanswered.tolist(), votes.n_tasks)}
        pool = {place[name]: label for name, label in known.items() if place.get(name, -1) in has_row}
        voted = {name: label for name, label in known.items() if place.get(name, -1) not in has_row}
        strange = unmatched(list(pool.values()), as_name_array([*votes.classes.tolist(), *voted.values()]))
        if strange:
            names = some_names(map(repr, strange))
            warn_user(f"gold of items without votes names {names}, which has no votes: left out")
        return voted or None, replace(self, gold=pool)

    def by_code(self, rows: IntArray) -> IntArray:
        """These rows sorted by the CRC-32 of their ids: a sample that does not depend on the order of a file."""
        return rows[np.lexsort((self.texts[rows], self.codes[rows]))]


def join_features(
    annotations: Annotations,
    features: FeatureTable | None,
    predictions: PredictionTable | None,
    settings: FeatureSettings,
) -> tuple[Annotations, ItemFeatures]:
    """The votes in a population that has all items with features, and the features of its items.

    Args:
        annotations: the votes.
        features: columns of numbers.
        predictions: predicted probabilities; an item needs a row in both if both are given.
        settings: the constants.

    Raises:
        InputError: no item with votes has features.
    """
    tables = [table for table in (features, predictions) if table is not None]
    voted = {spelling(name) for name in annotations.tasks.tolist()}
    for table in tables:
        if not table.place:
            raise InputError(f"{table.title}: no rows: give one for each item")
        if not any(text in voted for text in table.place):
            own, other = next(iter(table.place), None), annotations.tasks[:1].tolist()[0]
            raise InputError(
                f"{table.title}: no id is one of the votes' tasks (its first is {shown(own)}, and the tasks look like "
                f"{shown(spelling(other))}): is it the right file, and are the ids the same?"
            )
    common = [text for text in tables[0].place if all(text in table.place for table in tables[1:])]
    new = [text for text in common if text not in voted]
    if new:
        annotations = with_items(annotations, in_kind(new, annotations.tasks))
    texts = [spelling(name) for name in population(annotations).tolist()]
    shared = set(common)
    item = np.array([number for number, text in enumerate(texts) if text in shared], dtype=np.int64)
    named = np.array([texts[number] for number in item], dtype=object)
    codes = np.array([crc32(text.encode()) for text in named], dtype=np.uint32)
    grouped = codes
    if features is not None and features.groups is not None:
        groups = features.groups
        grouped = np.array([crc32(groups[features.place[text]].encode()) for text in named], dtype=np.uint32)
    return annotations, ItemFeatures(
        item,
        codes,
        named,
        folds_of(grouped, settings.folds),
        [] if features is None else features.names,
        None if features is None else features.values,
        np.empty(0, dtype=np.int64) if features is None else features.rows(named),
        None if predictions is None else ItemPredictions(predictions, predictions.rows(named)),
        settings,
    )
