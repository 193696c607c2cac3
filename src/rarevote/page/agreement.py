"""How far annotators agree and who errs alike: the tables of that section of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from rarevote.crowd.words import count, percent
from rarevote.meaning.agreement import COEFFICIENTS
from rarevote.meaning.diagnose import Diagnosis
from rarevote.page.small_tables import SmallTable

_MAX_CLASSES = 12
_MAX_PAIRS = 8


def agreement_values(found: Diagnosis) -> dict[str, Any]:
    """What the template of the section asks for."""
    return {
        "agreement": agreement_table(found),
        "by_class": class_table(found),
        "alike": found.alike.sentences(),
        "pairs": alike_table(found),
    }


def number(value: float) -> str:
    """A coefficient between -1 and 1."""
    return f"{value:.2f}" if np.isfinite(value) else "unknown"


def interval(ends: tuple[float, float]) -> str:
    """Both ends, or nothing where they are not known."""
    return f"{ends[0]:.2f} to {ends[1]:.2f}" if np.isfinite(ends).all() else ""


def agreement_table(found: Diagnosis) -> SmallTable:
    """The coefficients of the whole crowd."""
    agreement = found.agreement
    rows = [
        [words, number(getattr(agreement, name)), interval(agreement.intervals[name])]
        for name, words in COEFFICIENTS.items()
    ]
    return SmallTable(f"Agreement on {count(agreement.n_tasks)} items", ["coefficient", "value", "95% interval"], rows)


def class_table(found: Diagnosis) -> SmallTable:
    """Agreement class by class, the rare one first, then those with the most votes."""
    table = found.agreement.per_class
    order = sorted(range(len(found.classes.names)), key=lambda k: (k != found.rare, -table["votes"][k]))
    rows = [
        [str(found.classes.names[k]), percent(table["raw"][k]), number(table["alpha"][k]),
         interval((table["alpha_low"][k], table["alpha_high"][k]))]
        for k in order[:_MAX_CLASSES]
    ]  # fmt: skip
    header = ["class", "where one votes so, others do", "alpha against the rest", "95% interval"]
    return SmallTable("Agreement by class", header, rows)


def alike_table(found: Diagnosis) -> SmallTable | None:
    """The pairs whose errors correlate most."""
    closest = found.alike.closest(_MAX_PAIRS)
    if not closest:
        return None
    rows = [[f"{a} and {b}", number(correlation), count(common)] for a, b, correlation, common in closest]
    return SmallTable("Who errs alike: the closest pairs", ["annotators", "correlation of errors", "items"], rows)
