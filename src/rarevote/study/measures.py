"""What methods are marked by in the study: names of the columns, headings, and which way is better."""

from __future__ import annotations

from typing import NamedTuple


class Measure(NamedTuple):
    """A figure of a method on a dataset.

    Attributes:
        title: its heading.
        better: 1 where larger is better, -1 where smaller is, 0 where neither can be said.
    """

    title: str
    better: int = 1

    @property
    def heading(self) -> str:
        """The title with an arrow that says which way is better."""
        return self.title + {1: " ↑", -1: " ↓", 0: ""}[self.better]


#: of the decision: the labels as the method gives them
DECISION = {
    "minority_recall": Measure("Recall"),
    "minority_precision": Measure("Precision"),
    "balanced_accuracy": Measure("Bal.-Acc."),
    "macro_f1": Measure("F1"),
    "flags_per_item": Measure("Flags per true item", 0),
}
#: of the ranking: probabilities alone, whatever is decided
RANKING = {
    "average_precision": Measure("AP"),
    "mean_average_precision": Measure("mAP"),
    "roc_auc": Measure("ROC-AUC"),
    "recall_at_ds": Measure("Recall @DS"),
    "r_precision": Measure("R-precision"),
    "flags_90_per_item": Measure("Flags for 90%", -1),
    "flags_95_per_item": Measure("Flags for 95%", -1),
}
#: of what the probabilities mean
CALIBRATION = {
    "log_loss": Measure("Log loss", -1),
    "ece": Measure("ECE", -1),
}
MEASURES = DECISION | RANKING | CALIBRATION

#: how to read the headings
MEASURE_NOTES = (
    "The rarest true class of each dataset against the others, on items with truth. AP: average precision, the area "
    "under precision against recall. mAP: its mean over all classes. Recall @DS: share of the class among as many of "
    "the highest-ranked items as Dawid–Skene labels with it. R-precision: among as many as truly have it. Flags for "
    "90%: how many of the highest-ranked items must be looked at to find so much of the class, per item that has it.",
    "Log loss counts probabilities below 0.000001 as that. ECE: expected calibration error of the likeliest class, ten "
    "bins. Anchored Rasch is judged by the probabilities that it reports, all others by their posterior.",
)
