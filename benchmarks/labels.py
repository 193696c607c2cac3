"""Several labels in one real crowd: each label by itself, all pairs in one fit, and annotators whose skill is shared.

    RAREVOTE_DATA=... python -m benchmarks.labels

Real crowds that were asked for several labels of the same items are written as one export with check boxes (Prodigy's
form, in which an annotator is asked for one label of an item at a time) and read again. Per label, against the truth:

* ``alone``: the label's own table of votes, as if there were no other label;
* ``each``: :func:`rarevote.fit_each` on the export; ``same_as_alone`` says whether labels and probabilities are those
  of ``alone`` to the last bit;
* ``pooled``: one fit and one decision for all pairs of item and label, as version 0.2 did;
* ``own skill`` and ``shared skill``: a Dawid-Skene of two classes with Beta priors, written here, whose prior mean for
  an annotator is that of the crowd on the label, or follows what the annotator shows on the other labels. Also with
  three votes per item drawn at random (the mean of ten draws), where a shared skill should help most.

The operating point of all is that of the default: a miss is weighted by how rare the class is.
"""

from __future__ import annotations

import csv
import json
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.crowd.annotations import Annotations
from rarevote.decide.balanced import DEFAULT_CAP, balance_weights

#: by crowd, the dataset of each label
CROWDS = {
    "medical relations": {"cause": "medical-cause", "treat": "medical-treat"},
    "amazon reviews": {"book": "amazon-sentiment-book", "negative": "amazon-sentiment-negative"},
    "loneliness papers": {
        "intervention": "loneliness-intervention",
        "older adults": "loneliness-older-adults",
        "technology": "loneliness-technology",
    },
}
_FEW, _DRAWS = 3, 10
_STRENGTH = 8.0  # votes that the prior of an annotator counts as
_FOLLOWED = 0.5  # how far the prior follows the other labels
_ROUNDS = 60

Row = dict[str, Any]
Floats = NDArray[np.float64]


def written(sets: Mapping[str, str], path: Path) -> Path:
    """The votes of all labels as one export."""
    with path.open("w", encoding="utf-8") as handle:
        for label, slug in sets.items():
            for vote in _table(slug, "labels.csv"):
                answer = "accept" if vote["label"] == "1" else "reject"
                asked = {"text": vote["task"], "label": label, "_input_hash": vote["task"], "_task_hash": label}
                handle.write(json.dumps({**asked, "answer": answer, "_annotator_id": vote["worker"]}) + "\n")
    return path


def _table(slug: str, name: str) -> list[dict[str, str]]:
    with (DATASETS / slug / name).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def truth_of(slug: str, tasks: list[str]) -> NDArray[np.int64]:
    """1 where the label is true, 0 where it is not, -1 where that is not known."""
    known = {row["task"]: int(row["label"] == "1") for row in _table(slug, "truth.csv")}
    return np.array([known.get(task, -1) for task in tasks])


def figures(p: Floats, codes: NDArray[np.int64], truth: NDArray[np.int64]) -> Row:
    """What an answer is worth, against the truth; ``p`` is the probability of yes."""
    known = truth >= 0
    p, yes, true = np.clip(p[known], 1e-6, 1 - 1e-6), codes[known] == 1, truth[known] == 1
    hits = int((yes & true).sum())
    recall, of_no = hits / max(int(true.sum()), 1), float((~yes & ~true).sum() / max(int((~true).sum()), 1))
    return {
        "flagged": int(yes.sum()),
        "recall": round(recall, 3),
        "precision": round(hits / max(int(yes.sum()), 1), 3),
        "balanced_accuracy": round((recall + of_no) / 2, 3),
        "log_loss": round(float(-np.where(true, np.log(p), np.log(1 - p)).mean()), 4),
    }


def decided(p: Floats) -> NDArray[np.int64]:
    """The default's decision on probabilities of yes."""
    both = np.stack([1 - p, p], axis=1)
    return np.asarray((both * balance_weights(both.mean(axis=0), DEFAULT_CAP)).argmax(axis=1))


# --------------------------------------------------------------------------------------------------------------------
# a skill that is shared


class Skills:
    """Dawid-Skene of two classes for several labels at once, with priors that may look at the other labels."""

    def __init__(self, votes: Mapping[str, Annotations], *, followed: float) -> None:
        names = sorted({name for one in votes.values() for name in one.workers.tolist()})
        place = {name: number for number, name in enumerate(names)}
        self._followed, self._n = followed, len(names)
        self._task = {label: one.task_of_annotation() for label, one in votes.items()}
        self._yes = {label: (one.classes[one.label] == "yes").astype(float) for label, one in votes.items()}
        self._worker = {
            label: np.array([place[name] for name in one.workers.tolist()])[one.worker] for label, one in votes.items()
        }
        self.p = {
            label: np.bincount(self._task[label], self._yes[label]) / np.bincount(self._task[label]) for label in votes
        }
        for _ in range(_ROUNDS):
            skills = {label: self._skill(label) for label in votes}
            self.p = {label: self._posterior(label, skills) for label in votes}

    def _skill(self, label: str) -> tuple[Floats, Floats, float, float]:
        """Right votes and all votes of each annotator on yes (row 0) and on no (row 1), and the means of the crowd."""
        p, yes, worker = self.p[label][self._task[label]], self._yes[label], self._worker[label]
        right, total = (
            np.array([np.bincount(worker, of, self._n) for of in weights], dtype=np.float64)
            for weights in ((p * yes, (1 - p) * (1 - yes)), (p, 1 - p))
        )
        mean = right.sum(axis=1) / np.maximum(total.sum(axis=1), 1e-9)
        return right, total, float(mean[0]), float(mean[1])

    def _posterior(self, label: str, skills: Mapping[str, tuple[Floats, Floats, float, float]]) -> Floats:
        right, total, *means = skills[label]
        prior = np.repeat(np.array(means)[:, None], self._n, axis=1)
        for other, (their_right, their_total, *their_means) in skills.items():
            if other != label and self._followed:
                crowd = np.array(their_means)[:, None]
                shown = (their_right + _STRENGTH * crowd) / (their_total + _STRENGTH) - crowd
                prior = prior + self._followed / (len(skills) - 1) * shown
        skill = (right + _STRENGTH * np.clip(prior, 0.05, 0.95)) / (total + _STRENGTH)
        recall, of_no = np.clip(skill, 0.01, 0.99)
        yes, worker, p = self._yes[label], self._worker[label], self.p[label]
        odds = np.where(
            yes == 1,
            np.log(recall[worker] / (1 - of_no[worker])),
            np.log((1 - recall[worker]) / of_no[worker]),
        )
        share = np.clip(p.mean(), 0.01, 0.99)
        total_odds = np.log(share / (1 - share)) + np.bincount(self._task[label], odds, len(p))
        return np.asarray(1 / (1 + np.exp(-total_odds)))


def thinned(votes: Annotations, rng: np.random.Generator) -> Annotations:
    """Three of the votes of each item, drawn at random."""
    order = np.lexsort((rng.random(votes.n_annotations), votes.task_of_annotation()))
    rank = np.arange(votes.n_annotations) - np.repeat(votes.task_ptr[:-1], np.diff(votes.task_ptr))
    rows = order[rank < _FEW]
    columns = (votes.tasks[votes.task_of_annotation()[rows]], votes.workers[votes.worker[rows]])
    return Annotations.from_arrays(*columns, votes.classes[votes.label[rows]], classes=["no", "yes"])


def shared_rows(votes: Mapping[str, Annotations], truth: Mapping[str, dict[str, int]]) -> Iterator[Row]:
    """Both kinds of skill, with all votes and with few."""
    rng = np.random.default_rng(20261118)
    crowds: dict[str, list[Mapping[str, Annotations]]] = {"all": [votes]}
    crowds[str(_FEW)] = [{k: thinned(v, rng) for k, v in votes.items()} for _ in range(_DRAWS)]
    for n_votes, drawn in crowds.items():
        for way, followed in (("own skill", 0.0), ("shared skill", _FOLLOWED)):
            found: dict[str, list[Row]] = {label: [] for label in votes}
            for one in drawn:
                for label, p in Skills(one, followed=followed).p.items():
                    known = np.array([truth[label].get(task, -1) for task in one[label].tasks.tolist()])
                    found[label].append(figures(p, decided(p), known))
            for label, rows in found.items():
                mean = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}
                yield {"label": label, "votes": n_votes, "way": way, **mean}


# --------------------------------------------------------------------------------------------------------------------


def rows_of(name: str, sets: Mapping[str, str], folder: Path) -> Iterator[Row]:
    """All ways on one crowd."""
    crowd = rarevote.read(written(sets, folder / "export.jsonl"), multilabel=True)
    each = rarevote.fit_each(crowd).decide()
    pooled = rarevote.fit(crowd.annotations).decide()
    item, choice = (crowd.shown[part][: crowd.annotations.n_tasks] for part in ("item", "choice"))
    truth: dict[str, dict[str, int]] = {}
    for label, slug in sets.items():
        one, alone = each[label], rarevote.fit(DATASETS / slug / "labels.csv").decide()
        tasks = alone.fitted.annotations.tasks.tolist()
        true = truth_of(slug, tasks)
        truth[label] = dict(zip(tasks, true.tolist(), strict=True))
        own = np.flatnonzero(choice == label)
        assert sorted(item[own].tolist()) == sorted(tasks)
        of_pairs = truth_of(slug, item[own].tolist())
        n = len(tasks)
        same = bool(
            one.tasks.tolist()[:n] == tasks
            and (one.codes[:n] == alone.codes).all()
            and np.array_equal(one.probabilities.p[:n], alone.probabilities.p)
        )
        about = {"crowd": name, "label": label, "items": n, "true": int((true == 1).sum()), "votes": "all"}
        yield {
            **about,
            "way": "alone",
            "same_as_alone": True,
            **figures(alone.probabilities.p[:, 1], alone.codes, true),
        }
        yield {
            **about,
            "way": "each",
            "same_as_alone": same,
            **figures(one.probabilities.p[:n, 1], one.codes[:n], true),
        }
        yield {
            **about,
            "way": "pooled",
            "same_as_alone": False,
            **figures(pooled.probabilities.p[own, 1], pooled.codes[own], of_pairs),
        }
    votes = {label: crowd.by_label[label].annotations for label in sets}
    for row in shared_rows(votes, truth):
        known = truth[row["label"]]
        about = {"crowd": name, "items": len(known), "true": sum(value == 1 for value in known.values())}
        yield {**about, "same_as_alone": "", **row}


_COLUMNS = ("crowd", "label", "items", "true", "votes", "way", "same_as_alone", "flagged", "recall", "precision",
            "balanced_accuracy", "log_loss")  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name, sets in CROWDS.items():
        with tempfile.TemporaryDirectory() as folder:
            for row in rows_of(name, sets, Path(folder)):
                rows.append({column: row[column] for column in _COLUMNS})
                print(*rows[-1].values(), sep=", ", flush=True)
    print(evidence.write("labels", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
