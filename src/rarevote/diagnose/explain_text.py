"""The text of an explanation, as the terminal prints it."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

from rarevote.crowd.words import aligned, counted, listed, percent, share
from rarevote.methods.registry import methods_that

if TYPE_CHECKING:
    from rarevote.diagnose.explain import Explanation


def explanation_text(one: Explanation) -> str:
    """Why an item has its label: its votes, who cast them, and what each contributed."""
    lines: list[str] = []
    label, rival, majority = (str(one.classes[k]) for k in (one.label, one.rival, one.majority))
    given = label if one.has_answer else "no answer"
    lines.append(f"{one.task}: {given}" + (" (given as gold)" if one.is_gold else f", by {one.method}"))
    for name, text in one.shown.items():
        lines.append(f"{name}: {text}")
    if one.majority < 0:
        lines.append("it has no votes: its label comes from its features alone")
    else:
        votes = f"{one.votes[one.majority]:,} of {counted(len(one.labels), 'vote')}"
        same = "the same" if majority == label else f"another label, {majority}"
        tied = [str(name) for name in one.classes[one.votes == one.votes.max()].tolist()]
        tie = f", tied between {listed(tied)}: the first class in sorted order" if len(tied) > 1 else ""
        lines.append(f"a majority vote says {same} ({votes}{tie})")
    lines.append("")
    if one.weighed is None:
        lines += _votes(one)
    else:
        lines += _evidence(one, label, rival)
    return "\n".join([*lines, "", *_classes(one)])


def _votes(one: Explanation) -> list[str]:
    lines: list[str] = []
    if one.is_gold:
        lines.append("Gold is not weighed. The votes were:")
    elif len(one.classes) == 1:
        lines.append("There is only one class, so there is nothing to weigh. The votes:")
    else:
        lines.append(
            f"The posterior of {one.method} is not a sum over votes, so there is no share of each vote to show "
            f"(methods that have one: {', '.join(methods_that('explain'))}). The votes:"
        )
    rows = [[str(worker), str(one.classes[k])] for worker, k in zip(one.workers.tolist(), one.labels, strict=True)]
    lines.append(aligned(["annotator", "vote"], rows))
    return lines


def _evidence(one: Explanation, label: str, rival: str) -> list[str]:
    lines: list[str] = []
    weighed = one.weighed
    assert weighed is not None
    rows = [["before any vote", "", "", "", _signed(weighed.prior)]]
    if weighed.features is not None:
        rows.append(["its features", "", "", "", _signed(weighed.features)])
    rows += [
        [
            str(one.workers[n]),
            str(one.classes[one.labels[n]]),
            percent(weighed.ability[n, one.label]),
            percent(weighed.ability[n, one.rival]),
            _signed(weighed.votes[n]),
        ]
        for n in sorted(range(len(one.labels)), key=lambda n: -weighed.votes[n])
    ]
    if abs(weighed.rest) >= 0.0005:  # the value shown with three decimals
        rows.append(["last step of the fit", "", "", "", _signed(weighed.rest)])
    rows.append(["together", "", "", "", _signed(weighed.total)])
    header = ["annotator", "vote", f"recognises {label}", f"recognises {rival}", f"for {label} against {rival}"]
    lines.append(aligned(header, rows))
    lines.append(
        f"\nThe last column is in log odds: +0.7 doubles the odds of {label} against {rival}, -0.7 halves them; "
        f"together they give {_odds(weighed.total)}."
    )
    return lines


def _signed(value: float) -> str:
    """The value with its sign and three decimals; zero is never negative."""
    return f"{round(float(value), 3) + 0.0:+.3f}"


def _odds(log_odds: float) -> str:
    if abs(log_odds) > 20:
        return "practical certainty"
    odds = exp(abs(log_odds))
    if odds < 1.05:
        return "even odds"
    return f"odds of {odds:,.1f} to 1" if log_odds >= 0 else f"odds of 1 to {odds:,.1f}"


def _classes(one: Explanation) -> list[str]:
    """Votes and probabilities of the label, its rival and all classes with votes."""
    lines: list[str] = []
    chosen = list(dict.fromkeys((one.label, one.rival, *np.argsort(-one.votes, kind="stable").tolist())))
    chosen = [k for k in chosen if one.votes[k] or k in (one.label, one.rival)]
    header, difficulty = ["class", "votes", "probability", "posterior"], one.weighed.difficulty if one.weighed else None
    if difficulty is not None:
        header.append("difficulty")
    rows = []
    for k in chosen:
        row = [str(one.classes[k]), f"{one.votes[k]:,}", share(one.p[k]), share(one.posterior[k])]
        if difficulty is not None:
            row.append(f"{difficulty[k]:+.2f}")
        rows.append(row)
    lines.append(aligned(header, rows))
    lines.append(
        "\nThe probability is how often such an item truly has the class; results, page and decisions use it. The "
        "posterior is what the votes add up to if people err independently."
    )
    return lines
