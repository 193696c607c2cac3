"""Grades: Anchored Ordered beside the default, Dawid-Skene, median and mean of the votes, on real ordered crowds.

    RAREVOTE_DATA=... python -m benchmarks.ordinal

Writes docs/evidence/ordinal.csv, a row for each dataset and way to label. The datasets are those of RAREVOTE_DATA whose
classes have an order: relevance (web, nist-trec-relevance), ratings (movie-reviews-4class) and the sentiment of tweets
about the weather (cf, cf-star, weather-sentiment-amt: 0 negative, 1 neutral, 2 positive). Their other classes (a broken
link, not about the weather, can't tell) are outside the scale, and so are the items whose truth is one of them:
accuracy and balanced accuracy count all items with a truth, everything else the items whose truth is a grade. There, a
label outside the scale is as far off as the far end of it, and probabilities are those inside the scale.

mae: mean distance of label and truth in grades; quadratic_kappa: Cohen's kappa with quadratic weights, of items whose
label is a grade; log_loss and rps (ranked probability score) of the reported probabilities; tail_ap: mean over the cuts
of the average precision of the side with fewer items. Median and mean have labels only, and their shares of the votes
stand in for probabilities in the ranking of tails. Anchored Rasch is also fitted with the discount of Anchored Ordered
(rho 0.3), so that log losses compare.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import evidence, pages
from benchmarks.datasets import DATASETS
from rarevote import AnchoredRasch, fit, read
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import Grades
from rarevote.errors import RarevoteWarning
from rarevote.io.read.frames import read_truth
from rarevote.scoring.metrics import score
from rarevote.scoring.ranking import average_precision

SETS = {
    "web": "0..4",
    "movie-reviews-4class": "0..3",
    "nist-trec-relevance": "0..2",
    "cf": "0..2",
    "cf-star": "0..2",
    "weather-sentiment-amt": "0..2",
}
# The same tweets as cf, with other votes.
SAME_SOURCE = ("cf-star", "weather-sentiment-amt")
FloatArray = NDArray[np.float64]


class Labelled(NamedTuple):
    """What one way to label makes of a crowd.

    Attributes:
        codes: class number of each task, (n).
        p: probability of every class, (n, K).
        are_probabilities: whether those are probabilities, and not shares of the votes.
    """

    codes: NDArray[np.int64]
    p: FloatArray
    are_probabilities: bool = True


def by_votes(votes: Annotations, grades: Grades, rule: str) -> Labelled:
    """The median or the rounded mean of the votes on the scale; votes outside it where there is no other."""
    counts, x = votes.votes(), grades.positions(votes.classes)
    scale = np.array(grades.codes(votes.classes))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    inside = counts[:, scale]
    total = inside.sum(axis=1)
    if rule == "median":
        # Of an even number of votes the lower one of the two in the middle.
        place = (np.cumsum(inside, axis=1) >= 0.5 * total[:, None]).argmax(axis=1)
    else:
        mean = (inside * x[scale]).sum(axis=1) / np.maximum(total, 1)
        place = np.abs(x[scale] - np.floor(mean + 0.5)[:, None]).argmin(axis=1)
    return Labelled(np.where(total > 0, scale[place], counts.argmax(axis=1)), shares, are_probabilities=False)


def ways(votes: Annotations, grades: Grades) -> dict[str, Labelled]:
    """Every way to label these votes."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        fits = {
            "anchored-ordered": fit(votes, ordered=list(grades.names)),
            "anchored-rasch": fit(votes),
            "anchored-rasch, rho=0.3": fit(votes, AnchoredRasch(rho=0.3)),
            "dawid-skene": fit(votes, "dawid-skene"),
        }
        for name, fitted in fits.items():
            found[name] = Labelled(fitted.decide().codes, fitted.probabilities)
    return found | {f"{rule} of the votes": by_votes(votes, grades, rule) for rule in ("median", "mean")}


def figures(votes: Annotations, grades: Grades, truth: dict[Any, Any], made: Labelled) -> dict[str, Any]:
    """All scores of one way to label."""
    tasks = votes.tasks.tolist()
    rows = np.array([i for i, task in enumerate(tasks) if task in truth])
    true = [str(truth[tasks[i]]) for i in rows]
    found = score(true, [str(name) for name in votes.classes[made.codes[rows]].tolist()])
    scale = grades.codes(votes.classes)
    place = {str(votes.classes[k]): rank for rank, k in enumerate(scale)}
    graded = np.array([name in place for name in true])
    some, y = rows[graded], np.array([place[name] for name in true if name in place])
    K = len(scale)
    rank_of = np.full(votes.n_classes, -1)
    rank_of[scale] = np.arange(K)
    label = rank_of[made.codes[some]]
    far = np.maximum(y, K - 1 - y)
    p = made.p[some][:, scale]
    p = p / np.maximum(p.sum(axis=1, keepdims=True), 1e-12)
    tails = []
    for cut in range(1, K):
        high = y >= cut
        few = 2 * high.sum() <= len(y)
        tail = made.p[some][:, scale[cut:] if few else scale[:cut]].sum(axis=1)
        tails.append(average_precision(tail, high if few else ~high))
    made_up = {"log_loss": "", "rps": ""}
    if made.are_probabilities:
        below = np.cumsum(p, axis=1) - (np.arange(K) >= y[:, None])
        made_up = {
            "log_loss": f"{-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean():.5f}",
            "rps": f"{(below**2).sum(axis=1).mean() / (K - 1):.5f}",
        }
    return {
        "accuracy": f"{found.accuracy:.5f}",
        "balanced_accuracy": f"{found.balanced_accuracy:.5f}",
        "mae": f"{np.where(label < 0, far, np.abs(label - y)).mean():.5f}",
        "quadratic_kappa": f"{quadratic_kappa(y[label >= 0], label[label >= 0], K):.5f}",
        **made_up,
        "tail_ap": f"{np.mean(tails):.5f}",
    }


def quadratic_kappa(true: NDArray[Any], label: NDArray[Any], K: int) -> float:
    """Cohen's kappa with quadratic weights."""
    table = np.zeros((K, K))
    np.add.at(table, (true, label), 1)
    distance = (np.arange(K)[:, None] - np.arange(K)) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
    return float(1 - (distance * table).sum() / (distance * chance).sum())


def page_table() -> str:
    """Means over the datasets, every source once, for the page of grades."""
    measured = ["accuracy", "balanced_accuracy", "mae", "quadratic_kappa", "log_loss", "rps", "tail_ap"]
    sums: dict[str, dict[str, list[float]]] = {}
    for row in evidence.read("ordinal"):
        if row["dataset"] not in SAME_SOURCE:
            of_way = sums.setdefault(row["labels"], {})
            for name in measured:
                of_way.setdefault(name, []).append(float(row[name] or "nan"))
    cells = [
        [way, *("" if np.isnan(np.mean(of_way[name])) else f"{np.mean(of_way[name]):.3f}" for name in measured)]
        for way, of_way in sums.items()
    ]
    names = {"mae": "MAE", "rps": "RPS", "tail_ap": "AP of tails"}
    return pages.table(["labels", *(names.get(name, name.replace("_", " ")) for name in measured)], cells)


def main() -> None:
    rows = []
    for slug, order in SETS.items():
        votes = read(DATASETS / slug / "labels.csv").annotations
        truth = read_truth(DATASETS / slug / "truth.csv")
        grades = Grades.of(order)
        for name, made in ways(votes, grades).items():
            rows.append({"dataset": slug, "ordered": order, "labels": name, **figures(votes, grades, truth, made)})
            print(rows[-1], flush=True)
    print(evidence.write("ordinal", rows))


if __name__ == "__main__":
    main()
