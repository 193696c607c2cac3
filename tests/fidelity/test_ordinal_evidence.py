"""Scores of grades in the evidence, against scikit-learn and loops; and the evidence against known values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from benchmarks import evidence, ordinal
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

from rarevote import Annotations
from rarevote.crowd.grades import Grades
from tests.fidelity.test_ordered_fidelity import CHECKS

NAMES = ["bad", "good", "fair", "skip"]
GRADES = Grades.of("bad,fair,good")


def made(seed: int) -> tuple[Annotations, dict[int, str], ordinal.Labelled]:
    rng = np.random.default_rng(seed)
    truth = dict(enumerate(rng.choice(NAMES, 50, p=[0.3, 0.3, 0.3, 0.1]).tolist()))
    rows = [(i, w, str(rng.choice([truth[i], *NAMES]))) for i in truth for w in range(5)]
    votes = Annotations.from_arrays(*map(list, zip(*rows, strict=True)))
    p = rng.dirichlet(np.ones(4), 50)
    return votes, truth, ordinal.Labelled(rng.integers(0, 4, 50), p)


@pytest.mark.parametrize("seed", range(3))
def test_scores_against_loops(seed: int) -> None:
    votes, truth, labels = made(seed)
    found = {name: float(value) for name, value in ordinal.figures(votes, GRADES, truth, labels).items()}
    classes, place = votes.classes.tolist(), {"bad": 0, "fair": 1, "good": 2}
    said = [classes[k] for k in labels.codes]
    true = [truth[i] for i in votes.tasks.tolist()]
    assert found["accuracy"] == pytest.approx(np.mean([a == b for a, b in zip(said, true, strict=True)]), abs=1e-5)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, said), abs=1e-5)
    distance, loss, ranked, pairs = [], [], [], []
    for i, name in enumerate(true):
        if name not in place:
            continue
        y = place[name]
        distance.append(abs(place[said[i]] - y) if said[i] in place else max(y, 2 - y))
        if said[i] in place:
            pairs.append((y, place[said[i]]))
        inside = [labels.p[i][classes.index(one)] for one in place]
        q = [value / sum(inside) for value in inside]
        loss.append(-np.log(q[y]))
        ranked.append(sum((sum(q[: k + 1]) - (k >= y)) ** 2 for k in range(3)) / 2)
    assert found["mae"] == pytest.approx(np.mean(distance), abs=1e-5)
    assert found["log_loss"] == pytest.approx(np.mean(loss), abs=1e-5)
    assert found["rps"] == pytest.approx(np.mean(ranked), abs=1e-5)
    kappa = cohen_kappa_score(*zip(*pairs, strict=True), weights="quadratic")
    assert found["quadratic_kappa"] == pytest.approx(kappa, abs=1e-5)


def test_median_and_mean_of_votes() -> None:
    said = {0: ["bad", "bad", "good"], 1: ["fair", "good", "good"], 2: ["skip", "skip"], 3: ["bad", "good"]}
    rows = [(i, w, name) for i, names in said.items() for w, name in enumerate(names)]
    votes = Annotations.from_arrays(*map(list, zip(*rows, strict=True)))
    classes = votes.classes.tolist()
    median, mean = (ordinal.by_votes(votes, GRADES, rule).codes for rule in ("median", "mean"))
    assert [classes[k] for k in median] == ["bad", "good", "skip", "bad"]
    assert [classes[k] for k in mean] == ["fair", "good", "skip", "fair"]


@pytest.mark.parametrize("name", CHECKS)
def test_the_evidence_has_the_values_of_the_specification(name: str) -> None:
    """To the tolerance of a fit that stops at 1e-4, where the values are those of 1e-9."""
    rows = {row["labels"]: row for row in evidence.read("ordinal") if row["dataset"] == name}
    ours, check = rows["anchored-ordered"], CHECKS[name]
    columns = ("accuracy", "balanced_accuracy", "mae", "quadratic_kappa", "log_loss", "rps", "tail_ap")
    found = [float(ours[column]) for column in columns]
    np.testing.assert_allclose(found, [*check.labels, *check.chances], atol=5e-4)
    rasch = float(rows["anchored-rasch, rho=0.3"]["log_loss"])
    assert rasch == pytest.approx(check.rasch_log_loss, abs=5e-4)
    assert float(ours["log_loss"]) < rasch


def test_the_evidence_is_of_all_ordered_sets() -> None:
    rows = evidence.read("ordinal")
    assert list(dict.fromkeys(row["dataset"] for row in rows)) == list(ordinal.SETS)
    of_set = [i for i, (a, b) in enumerate(pairwise(rows), 1) if a["dataset"] != b["dataset"]]
    assert len(set(np.diff([0, *of_set, len(rows)]))) == 1
