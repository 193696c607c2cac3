"""The feature model of a fit: priors of new items, and its arrays in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import some_names
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError, ParameterError, how
from rarevote.features.join import centred_logs
from rarevote.features.scorer import LinearMap, Scorer
from rarevote.features.source import FeatureSource
from rarevote.features.table import FeatureTable
from rarevote.features.weight import Weight

_PREFIX = "features:"
_MAPS = {"values": "of_values", "predictions": "of_predictions"}


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """How features become a prior; empty for a fit that left them out.

    Attributes:
        kept: numbers of the classes that it covers, (k).
        scorer: computes scores; None if features were left out.
        weight: turns scores into priors; likewise.
    """

    kept: IntArray
    scorer: Scorer | None = None
    weight: Weight | None = None

    def priors(self, source: FeatureSource, classes: NDArray[Any]) -> tuple[list[str], FloatArray | None]:
        """Ids of new items and their priors over all classes, (n, K); None if features were left out.

        Raises:
            InputError: the columns are not those of the fit.
        """
        table, names = source.table(), classes.tolist()
        predictions = source.predictions(names)
        given = [one for one in (table, predictions) if one is not None]
        ids = [text for text in given[0].place if all(text in one.place for one in given[1:])]
        if self.scorer is None or self.weight is None:
            return ids, None
        self._check_kinds(table is not None, predictions is not None)
        values = None if table is None else _in_order(table, self.scorer.names)[table.rows(ids)]
        logs = None
        if predictions is not None:
            logs = centred_logs(predictions, [names[k] for k in self.kept], predictions.rows(ids))
        found = np.zeros((len(ids), len(names)))
        found[:, self.kept] = self.weight.priors(self.scorer.scores(values, logs))
        return ids, found

    def _check_kinds(self, features: bool, predictions: bool) -> None:
        assert self.scorer is not None
        wanted = (self.scorer.of_values is not None, self.takes_predictions)
        names = (how("features", "--features"), how("pred_probs", "--pred-probs"))
        if wanted != (features, predictions):
            needed = " and ".join(name for name, is_wanted in zip(names, wanted, strict=True) if is_wanted)
            raise ParameterError(f"the fit was given {needed}: give the same for new items, and nothing else")

    @property
    def takes_predictions(self) -> bool:
        """Whether it needs predicted probabilities."""
        return self.scorer is not None and (self.scorer.of_values is None or self.scorer.of_predictions is not None)

    # -- in a file ---------------------------------------------------------------------------------------------------

    def saved(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and notes for a file: some numbers for each column and class."""
        arrays: dict[str, NDArray[Any]] = {f"{_PREFIX}kept": self.kept}
        notes: dict[str, Any] = {"used": self.scorer is not None}
        if self.scorer is not None and self.weight is not None:
            notes |= {"names": list(self.scorer.names), "lam": self.weight.lam, "lapse": self.weight.lapse}
            arrays |= {f"{_PREFIX}offsets": self.weight.offsets, f"{_PREFIX}prior": self.weight.prior}
            for kind, name in _MAPS.items():
                found = getattr(self.scorer, name)
                if found is not None:
                    arrays |= {f"{_PREFIX}{kind}:{part}": array for part, array in vars(found).items()}
        return arrays, notes

    @classmethod
    def loaded(cls, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any], n_classes: int) -> FeatureModel:
        """The model from the arrays and notes of :meth:`saved`.

        Raises:
            ValueError: the shapes of the arrays do not match.
            KeyError: one is missing.
        """
        kept = _indices(arrays[f"{_PREFIX}kept"], n_classes)
        if not notes["used"]:
            return cls(kept)
        names, K = tuple(str(name) for name in notes["names"]), len(kept)
        offsets, prior = (_numbers(arrays[f"{_PREFIX}{name}"], (K,)) for name in ("offsets", "prior"))
        maps = {}
        for kind, name in _MAPS.items():
            if f"{_PREFIX}{kind}:slopes" in arrays:
                kind_kept = _indices(arrays[f"{_PREFIX}{kind}:kept"], len(names) if kind == "values" else K)
                shapes = {"mean": (len(kind_kept),), "sd": (len(kind_kept),), "slopes": (len(kind_kept), K)}
                parts = {part: _numbers(arrays[f"{_PREFIX}{kind}:{part}"], shape) for part, shape in shapes.items()}
                maps[name] = LinearMap(kept=kind_kept, **parts)
        lam, lapse = float(notes["lam"]), float(notes["lapse"])
        if not (np.isfinite(lam) and 0.0 <= lapse <= 1.0):
            raise ValueError("the weight of the features is out of range")
        scorer = Scorer(names, maps.get("of_values"), maps.get("of_predictions"))
        return cls(kept, scorer, Weight(None, lam, offsets, prior, lapse))


def _numbers(array: NDArray[Any], shape: tuple[int, ...]) -> FloatArray:
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError("the arrays of the features do not fit together")
    return array


def _indices(array: NDArray[Any], size: int) -> IntArray:
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() < size):
        raise ValueError("the columns of the features are out of range")
    return array


def _in_order(table: FeatureTable, names: tuple[str, ...]) -> NDArray[Any]:
    """The columns in the order of the fit."""
    if tuple(table.names) == names:
        return table.values
    place = {name: number for number, name in enumerate(table.names)}
    absent = [name for name in names if name not in place]
    if absent:
        raise InputError(
            f"{table.title}: the fit had {len(names):,} columns, of which {some_names(map(repr, absent))} "
            f"{'is' if len(absent) == 1 else 'are'} not here: give the columns of the fit"
        )
    return table.values[:, [place[name] for name in names]]
