"""``rarevote explain``: why an item got its label, vote by vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, tell_records
from rarevote.cli.options.fit import FitOptions, with_fit
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import verb
from rarevote.cli.show import aligned, say, share, tell

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.diagnose.explain import Explanation


@verb(
    "rarevote explain labels.csv --task rail-17",
    "rarevote explain labels.csv --task rail-17 --task rail-18 --method dawid-skene --json",
    "rarevote explain project-3.json --from label-studio --show image --task 4711",
)
@with_reading
@with_fit
@click.option("--task", metavar="ID", multiple=True, required=True, help="The item to explain. Repeatable.")
@talk_options
def explain(reading: Reading, fit_options: FitOptions, *, task: tuple[str, ...], as_json: bool) -> None:
    """Why an item got its label: its votes, who cast them, and what each added, up to the posterior."""
    from rarevote.diagnose.explain import find_task

    estimator = fit_options.make()
    crowd = reading.read()
    names = list(dict.fromkeys(task))
    by_label: dict[str, list[tuple[Fitted, Explanation]]] = {}
    if crowd.choices:
        every = fit_options.fit_each(crowd, estimator).decide()
        for name in names:
            for label, one in every.explain(name).items():
                by_label.setdefault(label, []).append((every[label].fitted, one))
    else:
        if not fit_options.has_features:  # else they may name further tasks
            names = crowd.annotations.tasks[[find_task(crowd.annotations, one, crowd.title) for one in names]].tolist()
        result = fit_options.fit(crowd, estimator).decide()
        by_label[""] = [(result.fitted, result.explain(name)) for name in names]
    if as_json:
        method = fit_options.method
        tell_records(
            {
                label: [{**_summary(one, _shown(fit, one), method), **fit.feature_figures} for fit, one in found]
                for label, found in by_label.items()
            }
        )
        return
    for place, (label, found) in enumerate(by_label.items()):
        tell() if place else say()
        begin(label)
        for number, (fit, one) in enumerate(found):
            if number:
                tell()
            _tell(one, _shown(fit, one), fit_options.method)


def _shown(fit: Fitted, one: Explanation) -> dict[str, str]:
    """What is shown of an item, also of one that only features name."""
    return {name: str(texts[one.number]) for name, texts in fit.crowd.shown.items()}


def _summary(one: Explanation, texts: dict[str, str], method: str) -> dict[str, Any]:
    names = [str(name) for name in one.classes.tolist()]
    weighed = one.weighed
    votes: list[dict[str, Any]] = [
        {"worker": worker, "label": names[label]}
        for worker, label in zip(one.workers.tolist(), one.labels.tolist(), strict=True)
    ]
    if weighed is not None:
        for number, vote in enumerate(votes):
            vote["recognises"] = dict(zip(names, weighed.ability[number].tolist(), strict=True))
            vote["log_odds"] = float(weighed.votes[number])
    return {
        "task": one.task,
        "shown": texts,
        "method": method,
        "label": names[one.label] if one.has_answer else "",
        "rival": names[one.rival],
        "majority": names[one.majority] if one.majority >= 0 else "",
        "is_gold": one.is_gold,
        "votes": votes,
        "prior_log_odds": None if weighed is None else weighed.prior,
        **({} if weighed is None or weighed.features is None else {"features_log_odds": weighed.features}),
        "rest_log_odds": None if weighed is None else weighed.rest,
        "posterior_log_odds": None if weighed is None else weighed.total,
        "difficulty": None
        if weighed is None or weighed.difficulty is None
        else dict(zip(names, weighed.difficulty.tolist(), strict=True)),
        "p": dict(zip(names, one.p.tolist(), strict=True)),
        "posterior": dict(zip(names, one.posterior.tolist(), strict=True)),
    }


# --------------------------------------------------------------------------------------------------------------------
# what a person sees


def _tell(one: Explanation, texts: dict[str, str], method: str) -> None:
    from rarevote.crowd.words import listed

    label, rival, majority = (str(one.classes[k]) for k in (one.label, one.rival, one.majority))
    given = label if one.has_answer else "no answer"
    tell(f"{one.task}: {given}" + (" (given as gold)" if one.is_gold else f", by {method}"))
    for name, text in texts.items():
        tell(f"{name}: {text}")
    if one.majority < 0:
        tell("it has no votes: its features alone speak")
    else:
        votes = f"{one.votes[one.majority]:,} of {len(one.labels):,} votes"
        same = "the same" if majority == label else f"another label, {majority}"
        tied = [str(name) for name in one.classes[one.votes == one.votes.max()].tolist()]
        tie = f", tied between {listed(tied)}: the first class in sorted order" if len(tied) > 1 else ""
        tell(f"a majority vote says {same} ({votes}{tie})")
    tell()
    if one.weighed is None:
        _tell_votes(one, method)
    else:
        _tell_evidence(one, label, rival)
    tell()
    _tell_classes(one)


def _tell_votes(one: Explanation, method: str) -> None:
    from rarevote.methods.registry import methods_that

    if one.is_gold:
        tell("Gold is not weighed. The votes were:")
    elif len(one.classes) == 1:
        tell("There is only one class, so there is nothing to weigh. The votes:")
    else:
        tell(
            f"The posterior of {method} is no sum over votes, so there is no share of each vote to show "
            f"(methods that have one: {', '.join(methods_that('explain'))}). The votes:"
        )
    rows = [[str(worker), str(one.classes[k])] for worker, k in zip(one.workers.tolist(), one.labels, strict=True)]
    tell(aligned(["annotator", "vote"], rows))


def _tell_evidence(one: Explanation, label: str, rival: str) -> None:
    weighed = one.weighed
    assert weighed is not None
    rows = [["before any vote", "", "", "", _signed(weighed.prior)]]
    if weighed.features is not None:
        rows.append(["its features", "", "", "", _signed(weighed.features)])
    rows += [
        [
            str(one.workers[n]),
            str(one.classes[one.labels[n]]),
            share(weighed.ability[n, one.label]),
            share(weighed.ability[n, one.rival]),
            _signed(weighed.votes[n]),
        ]
        for n in sorted(range(len(one.labels)), key=lambda n: -weighed.votes[n])
    ]
    if abs(weighed.rest) >= 0.0005:  # what three decimals would show
        rows.append(["last step of the fit", "", "", "", _signed(weighed.rest)])
    rows.append(["together", "", "", "", _signed(weighed.total)])
    header = ["annotator", "vote", f"recognises {label}", f"recognises {rival}", f"for {label} against {rival}"]
    tell(aligned(header, rows))
    tell(
        f"\nThe last column is in log odds: +0.7 doubles the odds of {label} against {rival}, -0.7 halves them; "
        f"together they give {_odds(weighed.total)}."
    )


def _signed(value: float) -> str:
    """With its sign and three decimals; nothing is never negative."""
    return f"{round(float(value), 3) + 0.0:+.3f}"


def _odds(log_odds: float) -> str:
    from math import exp

    if abs(log_odds) > 20:
        return "practical certainty"
    odds = exp(abs(log_odds))
    if odds < 1.05:
        return "even odds"
    return f"odds of {odds:,.1f} to 1" if log_odds >= 0 else f"odds of 1 to {odds:,.1f}"


def _tell_classes(one: Explanation) -> None:
    """Votes and probabilities of the classes in question and of those with votes."""
    import numpy as np

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
    tell(aligned(header, rows))
    tell(
        "\nThe probability is how often such an item truly has the class; results, page and decisions use it. The "
        "posterior is what the votes add up to if people err independently."
    )
