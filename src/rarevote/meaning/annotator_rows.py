"""Who is good at what, as rows for a file and as figures for a summary."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.meaning.agreement import agreement_figures
from rarevote.meaning.diagnose import Diagnosis, Profile
from rarevote.meaning.workers import PROFILE_WORDS

SORTS = ("rare", "votes", "agreement", "name")
# Up to this many classes every one has its columns in the file; beyond, the rare and the most frequent one have.
_MAX_CLASSES = 50


def annotator_order(found: Diagnosis, sort: str) -> NDArray[Any]:
    """Numbers of the annotators in the order asked for; the busier first where that leaves it open."""
    workers = found.workers
    busy = -workers.n_votes
    if sort == "name":
        return np.arange(len(workers.names))
    if sort == "votes":
        return np.argsort(busy, kind="stable")
    # The lower end of the interval, so that one lucky vote leads no list.
    key = -workers.low[:, found.rare] if sort == "rare" else -workers.agreement
    return np.lexsort((busy, key))


def told_classes(found: Diagnosis, most: int) -> list[int]:
    """Numbers of the classes to speak of, the rare one first."""
    names = range(len(found.classes.names))
    if len(names) > most:
        return list(dict.fromkeys((found.rare, found.common)))
    return sorted(names, key=lambda k: k != found.rare)


def annotator_rows(found: Diagnosis, order: NDArray[Any]) -> dict[str, Any]:
    """One row per annotator, in this order: votes, agreement, profile, and the recall of each class with interval."""
    workers, names = found.workers, found.classes.names
    profile = np.empty(len(order), dtype=object)
    profile[:] = [PROFILE_WORDS[Profile(int(code))] for code in workers.profile[order]]
    columns: dict[str, Any] = {
        "worker": workers.names[order],
        "votes": workers.n_votes[order],
        "abstained": workers.n_abstentions[order],
        "agreement": workers.agreement[order],
        "profile": profile,
    }
    for k in told_classes(found, _MAX_CLASSES):
        columns[f"recall:{names[k]}"] = workers.accuracy[order, k]
        columns[f"recall_low:{names[k]}"] = workers.low[order, k]
        columns[f"recall_high:{names[k]}"] = workers.high[order, k]
        columns[f"seen:{names[k]}"] = workers.seen[order, k]
    return columns


def annotator_figures(found: Diagnosis, method: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Annotators, profiles and the jury condition in figures."""
    jury, names = found.classes.jury, found.classes.names
    lists = {name: values.tolist() for name, values in columns.items()}
    return {
        "rare_class": str(names[found.rare]),
        "common_class": str(names[found.common]),
        "method": method,
        "n_annotators": len(found.workers.names),
        "profiles": {words: found.workers.count(profile) for profile, words in PROFILE_WORDS.items()},
        "jury": {
            str(name): {
                "holds": bool(jury.holds[k]),
                "left_side": float(jury.left_side[k]),
                "mean_recall": float(jury.mean_margin[k] + 0.5),
                "n_specialists": int(jury.n_good[k]),
                # JSON has no infinity, which is the number where nobody is above one half.
                "missing_specialists": int(missing) if isfinite(missing := jury.missing_specialists[k]) else None,
            }
            for k, name in enumerate(names.tolist())
        },
        "agreement": agreement_figures(found.agreement),
        "errors_alike": found.alike.figures(),
        "annotators": [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)],
    }
