"""Labels and probabilities of new items without votes, from their features."""

from __future__ import annotations

from typing import Any

import numpy as np

from rarevote.crowd.names import as_name_array
from rarevote.decide.columns import result_rows
from rarevote.decide.decider import Decider
from rarevote.decide.decision import confidence_of
from rarevote.decide.rules import ABSTAINED, ItemBatch
from rarevote.decide.selection import parse_rule
from rarevote.errors import ParameterError, how, warn_user
from rarevote.features.source import FeatureSource


def predict_from_features(model: Any, source: FeatureSource) -> dict[str, Any]:
    """Rows for a file of items without votes, from their features alone.

    Args:
        model: a fitted method, or one that :func:`rarevote.load` returned.
        source: the features.

    Raises:
        ParameterError: the fit had no features, or different ones.
        InputError: the features cannot be used.
    """
    of_features, calibration = model.feature_model, model.calibration_
    if of_features is None or calibration is None:
        given = how("fit(votes, features=...)", "rarevote aggregate --features")
        raise ParameterError(f"the model was fitted without features, so it says nothing about items: use {given}")
    classes, shares = model.annotations_.classes, calibration.mean
    tasks, priors = of_features.priors(source, classes)
    if priors is None:
        warn_user("the fit left its features out, so all items get the class shares of the fit")
        priors = np.broadcast_to(shares, (len(tasks), len(shares)))
    p = (1.0 - model.lapse) * priors + model.lapse * shares
    nothing = np.full(len(p), ABSTAINED)
    part = ItemBatch(p, np.zeros(p.shape), nothing, nothing, p, np.ones(len(p), dtype=bool))
    codes, _ = Decider(parse_rule(model.own_decision), shares).codes(part)
    no_votes = np.zeros(len(p), dtype=np.int64)
    return result_rows(as_name_array(tasks), classes, classes[codes], p, confidence_of(p, codes), no_votes, {})
