"""``rarevote explain``: why an item got its label, vote by vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, tell_records
from rarevote.cli.options.fit import FitOptions, with_fit
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import verb
from rarevote.cli.show import say, tell

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
    """Explain the label of an item: its votes, who cast them, and how much each counted."""
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
        if not fit_options.has_features:  # otherwise they can name further tasks
            names = crowd.annotations.tasks[[find_task(crowd.annotations, one, crowd.title) for one in names]].tolist()
        result = fit_options.fit(crowd, estimator).decide()
        by_label[""] = [(result.fitted, result.explain(name)) for name in names]
    if as_json:
        method = fit_options.method
        tell_records(
            {
                label: [{**_summary(one, method), **fit.feature_figures} for fit, one in found]
                for label, found in by_label.items()
            }
        )
        return
    for place, (label, found) in enumerate(by_label.items()):
        tell() if place else say()
        begin(label)
        for number, (_, one) in enumerate(found):
            if number:
                tell()
            tell(str(one))


def _summary(one: Explanation, method: str) -> dict[str, Any]:
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
        "shown": dict(one.shown),
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
