"""New tasks with a fitted method: whatever a person has, read, matched to the names of the fit, and labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rarevote.crowd.names import as_name_array, in_kind
from rarevote.io.read.crowd import read
from rarevote.meaning.result_rows import result_rows
from rarevote.methods.new_tasks import NewTasks


def predict(model: Any, data: Any, **reading: Any) -> tuple[NewTasks, dict[str, Any]]:
    """New tasks of people that a model knows, and their rows for a file.

    Args:
        model: a fitted method that labels new tasks, such as :func:`rarevote.load` gives.
        data: whatever :func:`read` takes.
        **reading: how to read it.
    """
    crowd = read(data, **reading)
    votes, fitted = crowd.annotations, model.annotations_
    # Text says "7" where Parquet or JSON says 7.
    workers = as_name_array(in_kind(votes.workers.tolist(), fitted.workers))
    classes = as_name_array(in_kind(votes.classes.tolist(), fitted.classes))
    found = model.label_new(replace(votes, workers=workers, classes=classes))
    labels = found.annotations.classes[found.codes]
    reports = getattr(model, "reports_probabilities", False)
    confidence = np.take_along_axis(found.posterior, found.codes[:, None], axis=1)[:, 0] if reports else None
    return found, result_rows(found.annotations, labels, found.posterior, confidence, crowd.shown)
