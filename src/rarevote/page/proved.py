"""The section "What was proved": the certificate of an audit, what more reviews would have gained, and the estimates.

>>> from rarevote.audit import Audit
>>> audit = Audit.start(range(90), [0.9 - 0.009 * i for i in range(90)], name="defect", target=0.9, seed=1)
>>> proved_section(audit).values["claims"].header
['', 'certified', 'supported']
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import altair as alt

from rarevote.audit import Audit
from rarevote.audit.estimates import Estimate, Interval
from rarevote.audit.planning import Step
from rarevote.audit.words import (
    UNSEEN,
    certified_words,
    contradiction_words,
    percent_words,
    population_words,
    relative_to,
    share_words,
)
from rarevote.charts.svg import Chart, Key, colours, described_by_words, dressed, light, scaled
from rarevote.crowd.words import capital, count, counted, percent, quoted
from rarevote.page.lines import pace
from rarevote.page.report import Section, check_page_path, plain_page, write_page
from rarevote.page.sentences import About, Action
from rarevote.page.tables import SmallTable

_SO_FAR, _AHEAD, _HERE = (
    Key("certified so far", "good", "line"),
    Key("forecast", "common", "dashes"),
    Key("now", "rare", "circle"),
)


_RANKED_BY = {
    "sampler": "probabilities sampled from the votes",
    "posterior": "the method's posterior",
    "reported": "the probabilities that the method reports",
}


def write_proved_page(audit: Audit, path: str | Path, *, source: str = "your data") -> Path:
    """Write a page with only this section; :func:`rarevote.page.report.write_report` accepts it as ``extra``.

    Raises:
        InputError: the file cannot be written.
    """
    made = check_page_path(Path(path))
    about = About(source, method=f"audit of {quoted(audit.plan.name)}", n_gold=len(audit.plan.gold))
    return write_page(made, plain_page(about, _headline(audit), [proved_section(audit)]))


def proved_section(audit: Audit, *, anonymous: bool = False) -> Section:
    """The section of an audit, at any stage; without the experts' names if it is anonymous."""
    values = {
        "claim": _claim(audit),
        "proved": audit.is_certified,
        "notes": [relative_to(audit), *filter(None, [contradiction_words(audit)])],
        "claims": _claims(audit),
        "facts": _facts(audit, anonymous=anonymous),
        "unseen": UNSEEN,
    }
    return Section("proved", "What was proved", values, [_curve(audit)])


def audit_action(audit: Audit) -> Action:
    """The next step of an audit."""
    name = quoted(audit.plan.name)
    if audit.pending and not audit.is_certified:
        n = len(audit.pending)
        return Action(
            f"Answer the {counted(n, 'open item')} of the audit of {name} ({pace(n)}).",
            ("rarevote audit review PLAN",),
        )
    if audit.is_certified:
        n = len(audit.final_list())
        return Action(
            f"Use the certified list: {counted(n, 'item')}.",
            ("rarevote audit finish PLAN --out result.csv --certificate certificate.json",),
        )
    return Action(
        f"Continue the audit of {name}: nothing is certified yet.",
        ("rarevote audit continue PLAN --review-out next.csv",),
    )


def _headline(audit: Audit) -> str:
    plan = audit.plan
    if not audit.is_certified:
        return f"Nothing is proved about {quoted(plan.name)} yet"
    found, items = percent_words(plan.target), counted(len(audit.final_list()), "item")
    return (
        f"At least {found} of {quoted(plan.name)} are among {items}, with {percent_words(plan.confidence)} confidence"
    )


def _claim(audit: Audit) -> str:
    if not audit.n_reviewed and not audit.plan.gold:
        return "Nothing has been reviewed yet."
    bound = audit.most_positives
    if bound is None:
        return capital(certified_words(audit))
    return (
        f"No {quoted(audit.plan.name)} was found: with {percent_words(audit.plan.confidence)} confidence there are at "
        f"most {count(bound)} of them (no assumption on the crowd)."
    )


def _claims(audit: Audit) -> SmallTable:
    """A table of the two claims, kept separate."""
    plan = audit.plan
    both = [audit.estimate, audit.estimate_of(audit.supported)]
    looked_at = [audit.wealth.unreviewed(one.set_index) for one in both]
    proof = f"at least {share_words(plan.target)}" if audit.is_certified else "nothing"
    rows = [
        ["items on the list", *(count(one.n_flagged) for one in both)],
        ["of these not reviewed", *map(count, looked_at)],
        [f"recall, proved with {percent_words(plan.confidence)}", proof, "nothing"],
        ["recall, estimated", *(_share(one.recall) for one in both)],
        *_without_gold(audit, both),
        ["precision, estimated", *(_share(one.precision) for one in both)],
        [f"share of {quoted(plan.name)} among all items", *(_share(one.prevalence) for one in both)],
        ["based on", "the random draws", "an assumption"],
    ]
    return SmallTable("Two claims, with 95% intervals of the estimates", ["", "certified", "supported"], rows)


def _without_gold(audit: Audit, both: Sequence[Estimate]) -> list[list[str]]:
    if not audit.plan.gold:
        return []
    return [["the same without the gold", *(_share(one.recall_without_gold) for one in both)]]


def _share(interval: Interval) -> str:
    if not isfinite(interval.middle):
        return "–"
    return f"{percent(interval.middle)} ({percent(interval.low).rstrip('%')}–{percent(interval.high)})"


def _facts(audit: Audit, *, anonymous: bool = False) -> list[tuple[str, str]]:
    plan = audit.plan
    worst, experts = int(audit.wealth.worst.sum()), _experts(audit)
    facts = [
        ("Asked", f"recall of {quoted(plan.name)} at least {share_words(plan.target, 'g')}"),
        ("Population", population_words(plan)),
        ("Ranked by", _RANKED_BY.get(plan.score or "", "")),
        ("Gold before the audit", counted(len(plan.gold), "item") if plan.gold else ""),
        ("Reviewed", f"{counted(audit.n_reviewed, 'item')} in {counted(len(plan.rounds), 'round')}"),
        ("Found among them", counted(audit.n_positives, "item")),
        ("Counted as the worst case", counted(worst, "item") if worst else ""),
        ("Experts", count(len(experts)) if anonymous and experts else ", ".join(experts)),
        ("State", audit.stopped or ("waiting for answers" if audit.pending else "more reviews would help")),
        ("Started", plan.started),
        ("Seed", f"{plan.seed:016x}"),
        ("SHA-256 of the labels", plan.labels_sha256 or ""),
        ("SHA-256 of the plan", audit.sha256),
    ]
    return [(name, value) for name, value in facts if value]


def _experts(audit: Audit) -> list[str]:
    answers = [answer for one in audit.plan.rounds for answer in one.answers if answer is not None]
    return list(dict.fromkeys(answer.who for answer in answers if answer.who))


def _curve(audit: Audit) -> Chart:
    """Flagged items without a review, by number of reviews: so far, and as forecast."""
    steps, ahead = audit.bought, audit.to_be_bought
    keys = (_SO_FAR, _AHEAD, _HERE) if len(ahead) > 1 else (_SO_FAR, _HERE)
    series = [(_SO_FAR, [*steps, ahead[0]]), (_AHEAD, ahead)]
    rows = [_point(key, step) for key, points in series if len(points) > 1 for step in points]
    x = alt.X("reviews:Q", title="reviews", axis=alt.Axis(tickMinStep=1, format=",d"))
    y = alt.Y("flagged:Q", title="flagged items not reviewed", axis=alt.Axis(format=",d"))
    dashes = scaled("series", keys, [[5, 3] if key is _AHEAD else [1, 0] for key in keys], alt.StrokeDash)
    lines = described_by_words(
        rows, x=x, y=y, color=colours("series", keys), strokeDash=dashes, order=alt.Order("reviews:Q")
    )
    so_far, forecast = (lines.transform_filter(f"datum.series == '{key.description}'") for key in (_SO_FAR, _AHEAD))
    layers = alt.layer(
        so_far.mark_line(interpolate="step-after", strokeWidth=2),
        forecast.mark_line(strokeWidth=2),
        described_by_words([_point(_HERE, ahead[0])], x=x, y=y).mark_point(
            filled=True, size=95, opacity=1, color=light("rare")
        ),
    )
    words = "How many flagged items of the certified set are not reviewed, after each review."
    if len(ahead) > 1:
        words += " Dashed: the forecast, which can be wrong by a factor of two."
    return Chart("proved", "What more reviews would give", words, keys, dressed(layers, 240))


def _point(key: Key, step: Step) -> dict[str, Any]:
    reviews, flagged = counted(step.reviews, "review"), counted(step.flagged, "flagged item")
    words = f"{key.description}: {reviews}, {flagged} not reviewed"
    return {"reviews": step.reviews, "flagged": step.flagged, "series": key.description, "words": words}
