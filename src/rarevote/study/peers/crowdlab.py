"""CROWDLAB by cleanlab: the probability of every class, computed from the weights that cleanlab reports.

cleanlab reports the weights of model and annotators and how well annotators agree with the consensus, and for each item
the probability of one class only. By its authors' definition (Goh et al., 2022), the probability of any class is the
mean, weighted by the model's and the annotators' weights, of the model's probability and of the annotators' votes, each
of which counts ``P`` for its own class and ``(1 - P) / (K - 1)`` for any other; ``P`` is the mean agreement over items
with several votes.
"""

from __future__ import annotations

import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError, RarevoteError, need_library

NEEDS = "CROWDLAB needs cleanlab: pip install cleanlab"


def crowdlab(votes: tuple[IntArray, IntArray, IntArray], model: FloatArray) -> FloatArray:
    """Probabilities of every item with votes, (n, K).

    Args:
        votes: numbers of item, annotator and class, (V) each.
        model: out-of-sample probabilities of a classifier, (n, K).

    Raises:
        MissingExtraError: cleanlab is not installed.
        InputError: cleanlab cannot use these votes; it needs items with several votes.
    """
    rater = need_library("cleanlab.multiannotator", NEEDS)
    item, worker, label = votes
    n, K = model.shape
    table = np.full((n, int(worker.max()) + 1), np.nan)
    table[item, worker] = label
    try:
        found = rater.get_label_quality_multiannotator(
            table,
            model,
            return_detailed_quality=False,
            return_annotator_stats=False,
            return_weights=True,
            verbose=False,
        )
    except ValueError as error:
        raise InputError(f"cleanlab: {error}") from None
    quality = found["label_quality"]
    several = quality["num_annotations"].to_numpy() > 1
    own = float(quality["annotator_agreement"].to_numpy()[several].mean())
    other = (1.0 - own) / (K - 1)
    weight = np.asarray(found["annotator_weight"], dtype=np.float64)[worker]
    p = float(found["model_weight"]) * model
    total = float(found["model_weight"]) + np.bincount(item, weight, minlength=n)
    np.add.at(p, item, (other * weight)[:, None])
    np.add.at(p, (item, label), (own - other) * weight)
    p /= total[:, None]
    reported = p[np.arange(n), quality["consensus_label"].to_numpy().astype(np.int64)]
    if not np.allclose(reported, quality["consensus_quality_score"].to_numpy(), atol=1e-6):
        raise RarevoteError("this version of cleanlab computes CROWDLAB in another way: install cleanlab 2.9")
    return p
