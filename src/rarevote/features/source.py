"""The user's features, before they are read and joined with the items."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rarevote.crowd.annotations import Annotations
from rarevote.errors import ParameterError, how, shown
from rarevote.features.join import ItemFeatures, join_features
from rarevote.features.settings import FeatureSettings
from rarevote.features.table import FeatureTable, PredictionTable, WhichColumns, read_features, read_predictions


@dataclass(frozen=True, eq=False)
class FeatureSource:
    """Features and predicted probabilities as given by the user.

    Attributes:
        features: a frame with a column of ids, ``(ids, array)``, or a path.
        pred_probs: a frame with a column of ids and one for each class, ``(ids, array, classes)``, or a path.
        groups: the group of each row of the features (document, patient): a group is in a single fold.
        features_id: the column of ids in the features.
        features_ids: a file with the ids of a ``.npy`` file, one per line.
        features_group: the column of groups in the features.
        pred_probs_id: the column of ids in the predicted probabilities.
        settings: the constants.
    """

    features: Any = None
    pred_probs: Any = None
    groups: Any = None
    features_id: str | None = None
    features_ids: Any = None
    features_group: str | None = None
    pred_probs_id: str | None = None
    settings: FeatureSettings = field(default_factory=FeatureSettings)

    def __post_init__(self) -> None:
        if not isinstance(self.settings, FeatureSettings):
            raise ParameterError(f"feature_settings must be FeatureSettings(...), got {shown(self.settings)}")
        for name in ("groups", "features_id", "features_ids", "features_group"):
            if self.features is None and getattr(self, name) is not None:
                option = how(name, "--" + name.replace("_", "-"))
                raise ParameterError(f"{option} needs {how('features', '--features')}")
        if self.pred_probs is None and self.pred_probs_id is not None:
            option = how("pred_probs_id", "--pred-probs-id")
            raise ParameterError(f"{option} needs {how('pred_probs', '--pred-probs')}")
        if self.groups is not None and self.features_group is not None:
            raise ParameterError("groups and features_group contradict each other: choose one")

    @property
    def is_given(self) -> bool:
        """Whether any are given."""
        return self.features is not None or self.pred_probs is not None

    @property
    def files(self) -> list[str]:
        """The files of these features."""
        return [str(one) for one in (self.features, self.features_ids, self.pred_probs) if isinstance(one, (str, Path))]

    def table(self, task: str | None = None) -> FeatureTable | None:
        """The features; ``task`` is the name of the task column in the votes."""
        if self.features is None:
            return None
        which = WhichColumns(self.features_id, task, self.features_group)
        return read_features(self.features, which, ids=self.features_ids, groups=self.groups)

    def predictions(self, classes: Any, task: str | None = None) -> PredictionTable | None:
        """The predicted probabilities for these classes."""
        if self.pred_probs is None:
            return None
        return read_predictions(self.pred_probs, WhichColumns(self.pred_probs_id, task), classes)

    def join(self, votes: Annotations, task: str | None = None) -> tuple[Annotations, ItemFeatures]:
        """The votes in a population that has all items with features, and the features of its items."""
        return join_features(votes, self.table(task), self.predictions(votes.classes.tolist(), task), self.settings)
