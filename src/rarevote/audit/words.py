"""Sentences about an audit, which the command line, the page and the certificate share."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import exp, factorial, floor
from typing import TYPE_CHECKING

from rarevote.audit.estimates import Interval
from rarevote.crowd.words import count, counted, percent, quoted
from rarevote.decide.floor import SMALL_POPULATION

if TYPE_CHECKING:
    from rarevote.audit.audit import Audit
    from rarevote.audit.plan_file import Plan


_HOPELESS = Fraction(7, 10)
_LESS_SURE = Fraction(4, 5)
# Strata with a base rate up to this value: the crowd is sure that items are not of the class.
_SURELY_NOT = 0.1
_USELESS_SLOPE = 0.5
_SURPRISING = 0.001
_CAVEAT = "Forecasts can be off by a factor of two."
#: What verification cannot show, for the page and the command line.
UNSEEN = (
    "No verification can see whether the expert's answers are true, or whether another seed, ranking or round size was "
    "tried elsewhere until one certified."
)


def start_words(audit: Audit) -> str:
    """What to expect, before the first review."""
    plan = audit.plan
    advice = advice_words(audit)
    if advice:
        return advice
    expected = plan.strata.mean_score * plan.strata.n_tasks
    said = [
        f"{population_words(plan)}, about {count(round(expected))} {quoted(plan.name)} expected.",
        f"No audit can certify {percent_words(plan.target)} of them with {percent_words(plan.confidence)} confidence "
        f"from fewer than about {counted(audit.floor, 'review')} of unflagged items; "
        f"expected here: {_expected(audit, plan.confidence)}.",
    ]
    if plan.confidence > _LESS_SURE:
        said.append(
            f"With {percent(float(_LESS_SURE))} confidence: at least about {count(audit.floor_at(_LESS_SURE)[0])}; "
            f"expected {_expected(audit, _LESS_SURE)}."
        )
    return " ".join([*said, _CAVEAT])


def _expected(audit: Audit, confidence: Fraction) -> str:
    forecast = audit.forecast_at_start(confidence)
    if forecast is None or not forecast.pays:
        return "reviews cost more than they save"
    return f"{counted(round(forecast.reviews), 'review')} and {counted(forecast.flagged, 'flagged item')}"


def advice_words(audit: Audit) -> str:
    """Why a full review, or the estimate, is better than this audit; empty if it is not."""
    plan = audit.plan
    n, expected = plan.strata.n_tasks, count(plan.strata.mean_score * plan.strata.n_tasks)
    if plan.target == 1:
        return f"Only a full review proves a recall of 1: review all {counted(n, 'item')}, or lower the target."
    if n < SMALL_POPULATION:
        return f"Only {counted(n, 'item')}: review all of them."
    least, unflagged = audit.floor_at(plan.confidence)
    if unflagged and least > _HOPELESS * unflagged:
        return (
            f"{expected} {quoted(plan.name)} expected in {counted(n, 'item')}: a certificate needs "
            f"{percent(least / unflagged)} of the rest reviewed. Review all of them, or use the estimate."
        )
    return ""


def status_words(audit: Audit) -> str:
    """The state of the audit: what is certified, what is supported, what further reviews would gain."""
    return " ".join(status_sentences(audit))


def status_sentences(audit: Audit) -> list[str]:
    """The sentences of :func:`status_words`, one claim each."""
    plan, estimate = audit.plan, audit.estimate
    name = quoted(plan.name)
    said = [f"After {counted(audit.n_reviewed, 'review')} ({count(audit.n_positives)} {name})."]
    if plan.population is not None:
        said.append(f"Population: {population_words(plan)}.")
    bound = audit.most_positives
    if bound is not None:
        said.append(
            f"No {name} was found, so there is no recall to certify. With {percent_words(plan.confidence)} "
            f"confidence there are at most {count(bound)} of them (no assumption about the crowd)."
        )
    else:
        said.append(f"CERTIFIED: {certified_words(audit)}")
        supported = audit.supported
        said.append(f"SUPPORTED: flag {counted(len(audit.final_list(supported)), 'item')} (by assumption, not proved).")
    said.append(f"{name}: {_interval(estimate.prevalence)} of all items.")
    if bound is None:
        said.append(f"Precision of the certified list {_plain(estimate.precision)}.")
    if plan.gold and bound is None:
        said.append(
            f"Estimated recall {_plain(estimate.recall)} with the gold, {_plain(estimate.recall_without_gold)} without."
        )
    return [*said, *_outlook(audit), *filter(None, [contradiction_words(audit)])]


def _outlook(audit: Audit) -> list[str]:
    if audit.pending:
        behind = audit.n_behind_a_gap
        waiting = [f"{counted(behind, 'answer')} will count once the items before them are answered."] if behind else []
        return [f"{counted(len(audit.pending), 'drawn item')} not answered yet.", *waiting]
    stopped = audit.stopped
    return [f"Stopped: {stopped}."] if stopped else forecast_words(audit)


def forecast_words(audit: Audit) -> list[str]:
    """A sentence on what more reviews would gain, or nothing."""
    forecast = audit.forecast
    if forecast is None:
        return []
    return [
        f"About {counted(round(forecast.reviews), 'more review')} would shorten the certified list to about "
        f"{count(forecast.flagged)}. {_CAVEAT}"
    ]


def population_words(plan: Plan) -> str:
    """A sentence on the population: how many items, how many of them have votes, and how many were left out."""
    items, people = counted(plan.strata.n_tasks, "item"), plan.population
    if people is None:
        return items
    if people.only_voted_items:
        return f"{items} with votes ({count(people.left_out)} without votes left out)"
    return f"{items} ({count(people.voted)} with votes, {count(people.unvoted)} without)"


def certified_words(audit: Audit) -> str:
    """The sentence that is proved."""
    plan = audit.plan
    if not audit.is_certified:
        return "nothing yet."
    gold = " with the gold counted as found" if plan.gold else ""
    among = " among items with votes" if plan.population is not None and plan.population.left_out else ""
    return (
        f"flag {counted(len(audit.final_list()), 'item')}, recall of {quoted(plan.name)}{_grades(plan)}{among} "
        f"at least {share_words(plan.target)}{gold} ({percent_words(plan.confidence)}, no assumption about the crowd)."
    )


def _grades(plan: Plan) -> str:
    return f" ({', '.join(map(str, plan.tail))})" if plan.tail else ""


def share_words(share: Fraction, form: str = ".2f") -> str:
    """A share in this form if that is exact, else all of its digits, or the fraction: a claim is never rounded up.

    >>> share_words(Fraction("0.9")), share_words(Fraction("0.8951")), share_words(Fraction("0.9"), "g")
    ('0.90', '0.8951', '0.9')
    >>> share_words(Fraction(2, 3))
    '2/3'
    """
    decimal = Decimal(share.numerator) / Decimal(share.denominator)
    if Fraction(decimal) != share:
        return str(share)
    text = f"{float(share):{form}}"
    return text if Fraction(text) == share else f"{decimal:f}"


def percent_words(share: Fraction) -> str:
    """A share in percent, as :func:`rarevote.crowd.words.percent`, but never rounded up.

    >>> percent_words(Fraction("0.95")), percent_words(Fraction("0.946")), percent_words(Fraction("0.99996"))
    ('95%', '94.6%', 'over 99.9%')
    """
    text = percent(float(share))
    if text[0].isdigit() and Fraction(text.rstrip("%")) > 100 * share:
        return f"{floor(share * 10**6) / 10**4:g}%"
    return text


def earlier_claim_words(plan: Plan) -> dict[str, str]:
    """Earlier wordings of parts of a claim, which rounded its shares and did not list the grades of a tail."""
    name, grades = quoted(plan.name), _grades(plan)
    return {
        **{f"recall of {name}{after}": f"recall of {name}{grades}{after}" for after in (" at least", " among items")},
        f"at least {float(plan.target):.2f} ": f"at least {share_words(plan.target)} ",
        f"({percent(float(plan.confidence))}, no assumption": f"({percent_words(plan.confidence)}, no assumption",
    }


def gold_words(audit: Audit) -> str:
    """A sentence that gold items are not on the final list; empty if there are none."""
    n_gold = audit.wealth.known_positives
    if not n_gold:
        return ""
    return (
        f"The final list does not include the {counted(n_gold, 'gold item')} known to be {quoted(audit.plan.name)}; "
        "the result lists them with the decision gold."
    )


def n_contradicted(audit: Audit) -> int:
    """Number of repeated items that got another answer."""
    first = audit.answers
    return sum(answer.label != first.get(task) for task, answer in audit.plan.repeats.items())


def relative_to(audit: Audit) -> str:
    """The assumptions of the proof."""
    said = "Relative to the expert's labels: where the expert errs, so does the certificate."
    if audit.plan.repeats:
        said += (
            f" Shown again, {n_contradicted(audit)} of {counted(len(audit.plan.repeats), 'item')} got another answer."
        )
    if audit.plan.earlier:
        said += (
            f" {counted(len(audit.plan.earlier), 'earlier audit')} of the same labels came before this one: "
            "the confidence holds for each audit alone, not for the best of several."
        )
    return said


def contradiction_words(audit: Audit) -> str:
    """A sentence if expert and crowd disagree on items that the crowd is sure about; empty if they do not."""
    wealth, curve = audit.wealth, audit.recalibration
    sure = audit.plan.strata.p0 <= _SURELY_NOT
    reviewed, positive = int(wealth.reviewed[sure].sum()), int(wealth.positives[sure].sum())
    expected = float((wealth.reviewed * audit.plan.strata.p0)[sure].sum())
    if curve.slope >= _USELESS_SLOPE or not positive or _poisson_tail(positive, expected) >= _SURPRISING:
        return ""
    return (
        f"Expert and crowd disagree where the crowd is sure ({positive} of {reviewed} that it does not call "
        f"{quoted(audit.plan.name)} are {quoted(audit.plan.name)}): the crowd's ranking helps little here "
        f"(slope {curve.slope:.2f})."
    )


def _poisson_tail(seen: int, expected: float) -> float:
    """Probability of at least this number if ``expected`` is the mean."""
    return 1.0 - sum(exp(-expected) * expected**i / factorial(i) for i in range(min(seen, 100)))


def _interval(interval: Interval) -> str:
    return f"{100 * interval.middle:.1f}% ({100 * interval.low:.1f} to {100 * interval.high:.1f})"


def _plain(interval: Interval) -> str:
    return f"{interval.middle:.2f} ({interval.low:.2f} to {interval.high:.2f})"
