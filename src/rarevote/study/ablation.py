"""How much of the gain is the class prior, and how much is the model?

Dawid–Skene learns its class prior and CC-Rasch does not, which alone moves the recall of rare classes. Each model is
therefore run with both priors, and CC-Rasch also with parts of it taken away: difficulty, difficulty per class,
ability per class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rarevote.methods.registry import method_title
from rarevote.study.cells import Outcomes, Variant
from rarevote.study.datasets import DatasetInfo
from rarevote.study.printed import METRIC_TITLES
from rarevote.study.results import Results, put_together
from rarevote.study.summaries import BINARY, MULTICLASS, SummaryRow, SummaryTable, mean_columns, summary_rows
from rarevote.study.tables import StudyTable

#: all datasets of two classes and all others, with every metric
ABLATION = SummaryTable(
    "ablation",
    "Class prior against model",
    tuple(METRIC_TITLES),
    tuple(table.regimes[0]._replace(key=table.key, title=table.key.capitalize()) for table in (BINARY, MULTICLASS)),
)
ABLATION_COLUMNS = ("model", "method", "prior", "change", "sets_of", "sets", *ABLATION.metrics)


@dataclass(frozen=True)
class Ablation:
    """A row of the ablation: a method, its class prior, and what is taken away from it."""

    method: str
    prior: str
    change: str
    settings: tuple[tuple[str, object], ...] = ()

    @property
    def variant(self) -> Variant:
        """The cells it needs; those with default settings are shared with the study."""
        return Variant(self.method, (("prior", self.prior), *self.settings))


ABLATIONS = (
    *(Ablation(name, prior, "") for name in ("dawid-skene", "glad", "cc-rasch") for prior in ("estimate", "uniform")),
    Ablation("cc-rasch", "uniform", "no difficulty", (("difficulty", None),)),
    Ablation("cc-rasch", "uniform", "one difficulty for all classes", (("difficulty", "shared"),)),
    Ablation("cc-rasch", "uniform", "one ability for all classes", (("ability", "shared"),)),
)

#: the rows of the ablation with their means over binary and over multiclass datasets
AblationRows = list[tuple[Ablation, SummaryRow]]


def ablation_rows(outcomes: Outcomes, ablations: Sequence[Ablation], sets: Sequence[DatasetInfo]) -> AblationRows:
    """The rows that have a mean; one that failed on a dataset has none over its kind."""
    found = []
    for ablation in ablations:
        results: Results = {
            (one.slug, ablation.method): put_together(one.slug, ablation.method, outcomes[one.slug, ablation.variant])
            for one in sets
            if (one.slug, ablation.variant) in outcomes
        }
        found += [(ablation, row) for row in summary_rows(ABLATION, results, sets, [ablation.method])]
    return found


def ablation_records(rows: AblationRows) -> list[dict[str, object]]:
    """The rows of ``ablation.csv``: one per ablation and kind of datasets."""
    records = []
    for ablation, row in rows:
        for regime in ABLATION.regimes:
            means = {metric: mean for metric in ABLATION.metrics if (mean := row.means[regime.key, metric])}
            for sets in {mean.n_sets for mean in means.values()}:
                record = {**vars(ablation), "model": method_title(ablation.method), "sets_of": regime.key, "sets": sets}
                records.append(record | {metric: mean.mean for metric, mean in means.items()})
    return records


def ablation_text(rows: AblationRows) -> StudyTable:
    """The ablation to read: one row per model, prior and change."""
    columns = mean_columns(ABLATION, [row for _, row in rows])
    counts = []
    for regime in ABLATION.regimes:
        sets = [mean.n_sets for _, row in rows if (mean := row.means[regime.key, "macro_f1"])]
        counts.append(f"{regime.key} sets: {max(sets, default=0)}")
    return StudyTable(
        ("Model", "Prior", "Change", *tuple(METRIC_TITLES.values()) * len(ABLATION.regimes)),
        [
            (method_title(one.method), "estimated" if one.prior == "estimate" else one.prior, one.change, *cells)
            for (one, _), cells in zip(rows, zip(*columns, strict=True), strict=True)
        ],
        caption=ABLATION.caption,
        groups=[(regime.title, len(ABLATION.metrics)) for regime in ABLATION.regimes],
        notes=[f"Means over datasets ({', '.join(counts)})."],
        n_text_columns=3,
    )
