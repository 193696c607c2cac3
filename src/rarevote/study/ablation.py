"""How much of the gain is the class prior, and how much is the model?

Dawid–Skene learns its class prior and CC-Rasch does not, which alone moves the recall of rare classes. Each model is
therefore run with both priors, and CC-Rasch also with parts of it taken away: difficulty, difficulty per class,
ability per class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rarevote.methods.registry import method_title
from rarevote.study.cells import Outcomes, Variant
from rarevote.study.datasets import DatasetInfo
from rarevote.study.results import put_together
from rarevote.study.summaries import BINARY, MULTICLASS, members
from rarevote.study.tables import StudyTable, ranked

_METRICS = ("minority_recall", "balanced_accuracy", "macro_f1")
_GROUPS = {"binary": BINARY.regimes[0], "multiclass": MULTICLASS.regimes[0]}

ABLATION_COLUMNS = ("model", "method", "prior", "change", "sets_of", "sets", *_METRICS)


@dataclass(frozen=True)
class Ablation:
    """A row of the ablation: a method, its class prior, and what is taken away from it."""

    method: str
    prior: str
    change: str
    settings: tuple[tuple[str, object], ...] = ()

    @property
    def model(self) -> str:
        """The method as people write it."""
        return method_title(self.method)

    @property
    def variant(self) -> Variant:
        """The cells it needs; those with default settings are shared with the study."""
        return Variant(self.method, (("prior", self.prior), *self.settings))


ABLATIONS = (
    *(
        Ablation(method, prior, "")
        for method in ("dawid-skene", "glad", "cc-rasch")
        for prior in ("estimate", "uniform")
    ),
    Ablation("cc-rasch", "uniform", "no difficulty", (("difficulty", None),)),
    Ablation("cc-rasch", "uniform", "one difficulty for all classes", (("difficulty", "shared"),)),
    Ablation("cc-rasch", "uniform", "one ability for all classes", (("ability", "shared"),)),
)


@dataclass(frozen=True)
class AblationMean:
    """Mean scores of a row over the datasets of one kind."""

    ablation: Ablation
    sets_of: str
    sets: int
    minority_recall: float
    balanced_accuracy: float
    macro_f1: float

    def record(self) -> dict[str, object]:
        """As a row of ``ablation.csv``."""
        row: dict[str, object] = {name: getattr(self, name) for name in ("sets_of", "sets", *_METRICS)}
        return row | {name: getattr(self.ablation, name) for name in ("model", "method", "prior", "change")}


def ablation_means(
    outcomes: Outcomes, ablations: Sequence[Ablation], sets: Sequence[DatasetInfo]
) -> list[AblationMean]:
    """Means over binary and over multiclass datasets; a row that failed on a dataset has none."""
    found = []
    for ablation in ablations:
        for kind, regime in _GROUPS.items():
            results = [
                put_together(one.slug, ablation.method, outcomes[one.slug, ablation.variant])
                for one in members(regime, sets)
                if (one.slug, ablation.variant) in outcomes
            ]
            if results and all(result.status == "done" for result in results):
                means = (fmean(float(getattr(result, metric)) for result in results) for metric in _METRICS)
                found.append(AblationMean(ablation, kind, len(results), *means))
    return found


def ablation_text(means: Sequence[AblationMean]) -> StudyTable:
    """The ablation to read: one row per model, prior and change."""
    ablations = list(dict.fromkeys(one.ablation for one in means))
    place = {(one.ablation, one.sets_of): one for one in means}
    columns, notes = [], []
    for kind in _GROUPS:
        found = [place.get((ablation, kind)) for ablation in ablations]
        for metric in _METRICS:
            values = [getattr(one, metric) if one else None for one in found]
            columns.append(ranked(values))
        notes.append(f"{kind} sets: {max((one.sets for one in found if one), default=0)}")
    return StudyTable(
        ("Model", "Prior", "Change", *("Recall", "Bal.-Acc.", "F1") * len(_GROUPS)),
        [
            (one.model, "estimated" if one.prior == "estimate" else one.prior, one.change, *(c[row] for c in columns))
            for row, one in enumerate(ablations)
        ],
        caption="Class prior against model",
        groups=[(kind.capitalize(), len(_METRICS)) for kind in _GROUPS],
        notes=[f"Means over datasets ({', '.join(notes)})."],
        n_text_columns=3,
    )
