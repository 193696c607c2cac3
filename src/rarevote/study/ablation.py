"""How much of the gain comes from the class prior, from the decision rule, and from the model?

Dawid–Skene learns its class prior and CC-Rasch does not, which alone moves the recall of rare classes. Each model is
therefore run with both priors, and CC-Rasch also with parts removed: difficulty, difficulty per class,
ability per class. A uniform prior also makes the decision rule bolder: every row is also decided by the same balanced
rule (the posterior divided by the mean of its class, at most ten times), which makes all methods equally bold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rarevote.methods.registry import method_title
from rarevote.study.cells import CellOutcome, Outcomes, Variant
from rarevote.study.datasets import DatasetInfo
from rarevote.study.measures import MEASURES
from rarevote.study.results import ResultRow, Results, put_together
from rarevote.study.summaries import BINARY, MULTICLASS, SummaryRow, SummaryTable, mean_lines, summary_rows
from rarevote.study.tables import StudyTable

#: all datasets with two classes, and all others
ABLATION = SummaryTable(
    "ablation",
    "Class prior, rule of decision and model",
    ("minority_recall", "minority_precision", "balanced_accuracy", "macro_f1", "average_precision"),
    tuple(table.regimes[0]._replace(key=table.key, title=table.key.capitalize()) for table in (BINARY, MULTICLASS)),
)
#: the rules: the method's own labels, and the balanced rule on its probabilities
DECISIONS = ("own", "balanced")
ABLATION_COLUMNS = ("model", "method", "prior", "change", "decision", "sets_of", "sets", *ABLATION.metrics)


@dataclass(frozen=True)
class Ablation:
    """A row of the ablation: a method, its class prior, and the parts that are removed.

    Attributes:
        variant: the cells that it needs; cells with default settings are shared with the study.
        prior: "estimate" or "uniform", empty if the method has no such choice.
        change: a description of what is removed.
    """

    variant: Variant
    prior: str = ""
    change: str = ""

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.variant.method


def _varied(method: str, prior: str, change: str = "", *settings: tuple[str, object]) -> Ablation:
    return Ablation(Variant(method, (("prior", prior), *settings)), prior, change)


#: the methods that are run in several variants
ABLATIONS = (
    *(_varied(name, prior) for name in ("dawid-skene", "glad", "cc-rasch") for prior in ("estimate", "uniform")),
    _varied("cc-rasch", "uniform", "no difficulty", ("difficulty", None)),
    _varied("cc-rasch", "uniform", "one difficulty for all classes", ("difficulty", "shared")),
    _varied("cc-rasch", "uniform", "one ability for all classes", ("ability", "shared")),
)

#: the rows of the ablation with their decision rule and their means over binary and over multiclass datasets
AblationRows = list[tuple[Ablation, str, SummaryRow]]


def choose_ablations(variants: Sequence[Variant]) -> list[Ablation]:
    """All rows for the methods of a study, with default settings or in variants; none if no method has variants."""
    varied = {one.method for one in ABLATIONS} & {variant.method for variant in variants}
    if not varied:
        return []
    plain = [Ablation(variant) for variant in variants if variant.method not in varied]
    return [*plain, *(one for one in ABLATIONS if one.method in varied)]


def ablation_rows(outcomes: Outcomes, ablations: Sequence[Ablation], sets: Sequence[DatasetInfo]) -> AblationRows:
    """The rows that have a mean; a row that failed on a dataset has no mean over that kind of datasets."""
    found = []
    for ablation in ablations:
        for decision in DECISIONS:
            results: Results = {
                (one.slug, ablation.method): _decided(
                    one.slug, ablation, outcomes[one.slug, ablation.variant], decision
                )
                for one in sets
                if (one.slug, ablation.variant) in outcomes
            }
            found += [(ablation, decision, row) for row in summary_rows(ABLATION, results, sets, [ablation.method])]
    return found


def _decided(slug: str, ablation: Ablation, outcomes: Sequence[CellOutcome], decision: str) -> ResultRow:
    result = put_together(slug, ablation.method, outcomes)
    # The ranking does not depend on the decision.
    figures: dict[str, Any] = dict(result.balanced or {}) if decision == "balanced" else {}
    return replace(result, **figures)


def ablation_records(rows: AblationRows) -> list[dict[str, object]]:
    """The rows of ``ablation.csv``: one per ablation, rule and kind of datasets."""
    records = []
    for ablation, decision, row in rows:
        for regime in ABLATION.regimes:
            means = {metric: mean for metric in ABLATION.metrics if (mean := row.means[regime.key, metric])}
            for sets in {mean.n_sets for mean in means.values()}:
                record: dict[str, object] = {
                    "model": method_title(ablation.method),
                    "method": ablation.method,
                    "prior": ablation.prior,
                    "change": ablation.change,
                    "decision": decision,
                    "sets_of": regime.key,
                    "sets": sets,
                }
                records.append(record | {metric: mean.mean for metric, mean in means.items()})
    return records


def ablation_text(rows: AblationRows) -> StudyTable:
    """The table of the ablation: one row per model, prior, change and rule, grouped by rule."""
    ordered = sorted(rows, key=lambda row: DECISIONS.index(row[1]))
    lines = mean_lines(ABLATION, [row for _, _, row in ordered])
    counts = []
    for regime in ABLATION.regimes:
        sets = [mean.n_sets for _, _, row in rows if (mean := row.means[regime.key, "macro_f1"])]
        counts.append(f"{regime.key} sets: {max(sets, default=0)}")
    return StudyTable(
        ("Model", "Prior", "Change", "Decision", *[MEASURES[name].title for name in ABLATION.metrics] * 2),
        [
            (model, "estimated" if one.prior == "estimate" else one.prior, one.change, rule, *cells)
            for (one, rule, _), (model, *cells) in zip(ordered, lines, strict=True)
        ],
        caption=ABLATION.caption,
        groups=[(regime.title, len(ABLATION.metrics)) for regime in ABLATION.regimes],
        notes=[
            f"Means over datasets ({', '.join(counts)}). Decision “own”: the method's labels. “balanced”: one rule "
            "for all, the posterior divided by the mean of its class, at most ten times, among classes with a vote."
        ],
        n_text_columns=4,
        breaks=[place for place in range(1, len(ordered)) if ordered[place][1] != ordered[place - 1][1]],
    )
