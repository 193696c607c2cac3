"""One question, one answer: every verb and option that shows or uses a probability, a label, a count or an expectation
reads the same one, on crowds of every kind; and no option that only adds output changes a number.

The reference is written here from the formulas of docs/how-it-works.md: the probability by loops over items, the labels
from the estimator, so that two places that agree on a wrong number do not pass either.
"""

from __future__ import annotations

import csv
import html
import json
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

import rarevote as rv
from rarevote.api import Fitted, Result
from rarevote.crowd.words import percent
from rarevote.decide.expectations import Expected
from rarevote.diagnose import check as check_module
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.errors import RarevoteWarning
from tests.command import rarevote

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")

Floats = NDArray[np.float64]
TOLERANCE = 1e-12
Rows = list[tuple[Any, Any, Any]]


# --------------------------------------------------------------------------------------------------------------------
# crowds


def simulated(n_tasks: int, n_classes: int, votes: float, seed: int, **more: Any) -> Rows:
    made = rv.simulate_crowd(n_tasks, 12, n_classes=n_classes, votes_per_task=votes, random_state=seed, **more)
    task, worker, label = made.arrays
    return [(f"t{t:04d}", f"w{w}", f"c{k}") for t, w, k in zip(task, worker, label, strict=True)]


def long_table(rows: Rows, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("task", "worker", "label"), *rows])
    return path


@dataclass(frozen=True)
class Kind:
    """A kind of crowd: how to write it to a folder, and the words that read it."""

    write: Callable[[Path], tuple[Path, ...]]
    method: str = "anchored-rasch"
    words: Callable[[Path], tuple[str, ...]] = lambda _folder: ()


def plain(rows: Callable[[], Rows]) -> Callable[[Path], tuple[Path, ...]]:
    return lambda folder: (long_table(rows(), folder / "labels.csv"),)


def with_gold(folder: Path) -> tuple[Path, ...]:
    rows = simulated(150, 3, 4, 5)
    tasks = sorted({task for task, _, _ in rows})
    (folder / "gold.csv").write_text("task,label\n" + "".join(f"{t},c{i % 3}\n" for i, t in enumerate(tasks[:30])))
    return (long_table(rows, folder / "labels.csv"),)


def with_items(folder: Path) -> tuple[Path, ...]:
    rows = simulated(120, 2, 5, 6)
    names = [*sorted({task for task, _, _ in rows}), *(f"unseen-{i}" for i in range(40))]
    (folder / "items.txt").write_text("\n".join(names) + "\n")
    return (long_table(rows, folder / "labels.csv"),)


def wide_table(folder: Path, judges: str = "ann") -> tuple[Path, ...]:
    rng = np.random.default_rng(8)
    names = [f"{judges}-{i}" for i in range(5)]
    with (folder / "wide.csv").open("w", newline="", encoding="utf-8") as handle:
        out = csv.writer(handle)
        out.writerow(["task", *names])
        for task in range(90):
            truth = rng.random() < 0.25
            said = ["yes" if (rng.random() < 0.8) == truth else "no" for _ in names]
            out.writerow([f"item{task}", *(word if rng.random() < 0.8 else "" for word in said)])
        out.writerow(["unlabelled", *([""] * len(names))])
    return (folder / "wide.csv",)


def typed(folder: Path) -> tuple[Path, ...]:
    rows = simulated(140, 3, 5, 9)
    columns = {"task": [int(t[1:]) for t, _, _ in rows], "worker": [w for _, w, _ in rows]}
    columns["label"] = [int(k[1:]) for _, _, k in rows]
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "labels.parquet")
    return (folder / "labels.parquet",)


def label_studio(folder: Path) -> tuple[Path, ...]:
    rows = simulated(100, 2, 4, 10)
    by_task: dict[str, list[tuple[str, str]]] = {}
    for task, worker, label in rows:
        by_task.setdefault(task, []).append((worker, label))
    tasks: list[dict[str, Any]] = []
    for number, task in enumerate([*by_task, *(f"open{i}" for i in range(15))], 1):
        annotations = [
            {
                "id": 1000 * number + i,
                "completed_by": {"id": int(worker[1:]) + 1, "email": f"{worker}@example.org"},
                "was_cancelled": False,
                "ground_truth": False,
                "result": [
                    {"from_name": "quality", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
                ],
            }
            for i, (worker, label) in enumerate(by_task.get(task, []))
        ]
        tasks.append({"id": number, "data": {"text": f"item {task}"}, "annotations": annotations, "predictions": []})
    (folder / "export.json").write_text(json.dumps(tasks))
    return (folder / "export.json",)


KINDS: dict[str, Kind] = {
    "two classes": Kind(plain(lambda: simulated(200, 2, 5, 1))),
    "three classes": Kind(plain(lambda: simulated(200, 3, 5, 2))),
    "nine classes": Kind(plain(lambda: simulated(220, 9, 5, 3))),
    "sparse": Kind(plain(lambda: simulated(250, 2, 1.6, 4))),
    "dense": Kind(plain(lambda: simulated(80, 2, 11, 11))),
    "one annotator": Kind(plain(lambda: [(t, "ann", k) for t, _, k in simulated(60, 2, 1, 12)])),
    "gold": Kind(with_gold, words=lambda folder: ("--gold", str(folder / "gold.csv"))),
    "items without votes": Kind(with_items, words=lambda folder: ("--items", str(folder / "items.txt"))),
    "models": Kind(lambda folder: wide_table(folder, "model:judge"), words=lambda _folder: ("--wide",)),
    "typed labels": Kind(typed),
    "label studio": Kind(label_studio),
    "wide table": Kind(wide_table, words=lambda _folder: ("--wide",)),
    "readme": Kind(plain(lambda: simulated(300, 2, 8, 1, imbalance=7.0))),
    "dawid-skene": Kind(plain(lambda: simulated(200, 3, 5, 13)), "dawid-skene"),
    "dawid-skene with gold": Kind(with_gold, "dawid-skene", words=lambda folder: ("--gold", str(folder / "gold.csv"))),
    "cc-rasch": Kind(plain(lambda: simulated(200, 2, 5, 14)), "cc-rasch"),
    "majority vote": Kind(with_items, "majority-vote", words=lambda folder: ("--items", str(folder / "items.txt"))),
    "glad": Kind(plain(lambda: simulated(150, 4, 4, 15)), "glad"),
}


# --------------------------------------------------------------------------------------------------------------------
# the reference


def probability_by_hand(fitted: Fitted) -> tuple[Floats, list[float]]:
    """The probability of every class from the formulas, item by item, and the mean before lapses."""
    votes, method = fitted.annotations, fitted.method
    K, ptr = votes.n_classes, votes.task_ptr.tolist()
    if method.method_name == "anchored-rasch":
        return np.asarray(method.reported_), method.fitted_parameters["shares"].tolist()
    share = [count / votes.n_annotations for count in votes.class_votes.tolist()]
    log_prior = method.fitted_parameters.get("log_prior", np.full(K, -math.log(K))).tolist()
    gold = method.gold_codes_.tolist()
    before = []
    for i, q in enumerate(method.posterior_.tolist()):
        v = ptr[i + 1] - ptr[i]
        if gold[i] >= 0:
            before.append([float(k == gold[i]) for k in range(K)])
        elif method.has_posterior:
            power = 1 / (1 + 0.2 * (v - 1))
            weight = [share[k] * math.exp(power * (math.log(max(q[k], 1e-12)) - log_prior[k])) for k in range(K)]
            before.append([one / sum(weight) for one in weight])
        else:
            before.append([(v * q[k] + share[k]) / (v + 1) for k in range(K)])
    mean = [sum(column) / len(before) for column in zip(*before, strict=True)]
    lapse = 0.05 if method.has_posterior else 0.0
    found = [
        row if gold[i] >= 0 else [(1 - lapse) * row[k] + lapse * mean[k] for k in range(K)]
        for i, row in enumerate(before)
    ]
    return np.array(found), mean


@dataclass(frozen=True, eq=False)
class Case:
    """A crowd in files, and what is to be found wherever one looks."""

    folder: Path
    files: tuple[Path, ...]
    method: str
    words: tuple[str, ...]
    fitted: Fitted
    result: Result

    @property
    def reads(self) -> list[str]:
        """The words of a verb that reads and fits this crowd."""
        return [*map(str, self.files), *self.words, "--method", self.method, "-q"]

    @cached_property
    def p(self) -> Floats:
        found, mean = probability_by_hand(self.fitted)
        unvoted = len(self.fitted.annotations.unanswered)
        return np.concatenate([found, np.tile(mean, (unvoted, 1))])

    @cached_property
    def tasks(self) -> list[str]:
        votes = self.fitted.annotations
        return [str(name) for name in [*votes.tasks.tolist(), *votes.unanswered.tolist()]]

    @cached_property
    def classes(self) -> list[str]:
        return [str(name) for name in self.fitted.annotations.classes.tolist()]

    @cached_property
    def labels(self) -> list[str]:
        """By hand: the method's own label where it has a vote, else the most probable class that has; gold; none."""
        votes = self.fitted.annotations.votes()
        gold, own = self.fitted.method.gold_codes_, self.fitted.method.label_codes()
        found = []
        for i in range(len(votes)):
            voted = [k for k in range(votes.shape[1]) if votes[i, k] > 0]
            if gold[i] >= 0:
                k = int(gold[i])
            elif len(self.fitted.annotations.workers) == 1:
                k = int(votes[i].argmax())
            else:
                k = int(own[i]) if own[i] in voted else max(voted, key=lambda k: (self.p[i, k], votes[i, k]))
            found.append(self.classes[k])
        return found + [""] * len(self.fitted.annotations.unanswered)

    @property
    def truth(self) -> dict[str, str]:
        """A made-up truth: every class in turn."""
        return {task: self.classes[i % len(self.classes)] for i, task in enumerate(self.tasks)}

    def truth_file(self) -> Path:
        path = self.folder / "truth.csv"
        path.write_text("task,label\n" + "".join(f"{task},{label}\n" for task, label in self.truth.items()))
        return path


# Crowds that differ from another one only in size, names or file: with the long proofs.
ALIKE = {"three classes", "sparse", "dense", "typed labels", "wide table", "readme", "dawid-skene with gold", "glad"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.prove] if name in ALIKE else []) for name in KINDS],
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    kind = KINDS[request.param]
    folder = tmp_path_factory.mktemp("crowd")
    files = kind.write(folder)
    words = kind.words(folder)
    reading: dict[str, Any] = {"wide": True} if "--wide" in words else {}
    if "--items" in words:
        reading["items"] = words[words.index("--items") + 1]
    gold = words[words.index("--gold") + 1] if "--gold" in words else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        fitted = rv.fit(str(files[0]), kind.method, gold=gold, **reading)
        return Case(folder, files, kind.method, words, fitted, fitted.decide())


@pytest.fixture(autouse=True)
def _few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """``check`` casts the votes again many times, which no probability depends on."""
    defaults = dict(check_module.check_fit.__kwdefaults__ or {}, n_replicates=3)
    monkeypatch.setattr(check_module.check_fit, "__kwdefaults__", defaults)


def table_of(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pyarrow.parquet.read_table(path).to_pydict()
    return found


def check_table(case: Case, table: Mapping[str, list[Any]], n: int | None = None) -> None:
    """A result is about every item, with the one probability, its label and its votes."""
    n = len(case.tasks) if n is None else n
    assert list(map(str, table["task"])) == case.tasks[:n]
    p = np.column_stack([table[f"p:{name}"] for name in case.classes])
    np.testing.assert_allclose(p, case.p[:n], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    assert ["" if label is None else str(label) for label in table["label"]] == case.labels[:n]
    for label, confidence, row in zip(case.labels, table["confidence"], p, strict=False):
        assert confidence == (row[case.classes.index(label)] if label else row.max())
    votes = np.diff(case.fitted.annotations.task_ptr).tolist()
    assert table["votes"] == votes + [0] * (n - len(votes))


# --------------------------------------------------------------------------------------------------------------------
# the matrix


def test_python(case: Case) -> None:
    np.testing.assert_allclose(case.fitted.probabilities, case.p, rtol=0, atol=TOLERANCE)
    assert list(map(str, case.result.labels.tolist())) == case.labels
    check_table(case, {name: np.asarray(column).tolist() for name, column in case.result.columns().items()})
    n = case.fitted.annotations.n_tasks
    soft = case.result.soft_labels()
    np.testing.assert_allclose(soft.probabilities, case.p[:n], rtol=0, atol=TOLERANCE)
    assert list(map(str, soft.tasks.tolist())) == case.tasks[:n]
    again = case.fitted.diagnose()
    np.testing.assert_allclose(again.items.probabilities, case.p[:n], rtol=0, atol=TOLERANCE)


OUTPUT_ONLY: dict[str, Callable[[Path], list[str]]] = {
    "plain": lambda _: [],
    "--calibrate": lambda _: ["--calibrate"],
    "--max-review": lambda folder: ["--max-review", "5", "--review-out", str(folder / "review.csv")],
    "--soft-out": lambda folder: ["--soft-out", str(folder / "soft.npz")],
    "--json": lambda _: ["--json"],
    "--with-posterior": lambda _: ["--with-posterior"],
    "--truth": lambda folder: ["--truth", str(folder / "truth.csv")],
    "--strict": lambda _: ["--strict", "--verbose"],
}


@pytest.mark.parametrize("option", OUTPUT_ONLY)
def test_aggregate_with_any_option_that_only_adds_output(case: Case, option: str) -> None:
    case.truth_file()
    out = case.folder / "result.parquet"
    out.unlink(missing_ok=True)
    more = OUTPUT_ONLY[option](case.folder)
    code = 3 if option == "--strict" and case.result.cannot_answer else 0
    done = rarevote("aggregate", *case.reads, "-o", out, *more, code=code)
    table = table_of(out)
    check_table(case, table)
    n = case.fitted.annotations.n_tasks
    if option == "--soft-out":
        soft = np.load(case.folder / "soft.npz")
        np.testing.assert_allclose(soft["p"], case.p[:n], atol=1e-7)  # single precision
        assert list(map(str, soft["task"].tolist())) == case.tasks[:n]
    if option == "--with-posterior":
        posterior = np.column_stack([table[f"posterior:{name}"][:n] for name in case.classes])
        assert np.array_equal(posterior, case.fitted.method.posterior_)
    if option == "--max-review":
        text = (case.folder / "review.csv").read_text(encoding="utf-8")
        check_review(case, list(csv.DictReader(text.splitlines())))
    if option == "--json":
        check_summary(case, json.loads(done.stdout))


def check_review(case: Case, rows: list[dict[str, str]]) -> None:
    """Every mistake costs 1: the gain of a look is the probability of being wrong."""
    assert rows
    for row in rows:
        i = case.tasks.index(row["task"])
        assert row["decided"] == case.labels[i]
        right = case.p[i, case.classes.index(case.labels[i])] if case.labels[i] else case.p[i].max()
        assert float(row["expected_gain"]) == pytest.approx(1.0 - right, abs=1e-5)
        if case.labels[i]:
            assert f"(probability {right:.2f})" in row["reason"]


def check_summary(case: Case, summary: Mapping[str, Any]) -> None:
    assert summary["n_tasks"] == len(case.tasks)
    assert summary["n_without_votes"] == len(case.fitted.annotations.unanswered)
    for name in case.classes:
        assert summary["classes"][name]["tasks"] == case.labels.count(name)
    check_expectations(case, summary["decision"])


def check_expectations(case: Case, decision: Mapping[str, Any], *, on_dask: bool = False) -> None:
    """The figures of Python, which follow from the probabilities alone; on dask, those of shared errors."""
    worlds = ["shared"] if on_dask else ["independent", "shared"]
    assert list(decision["worlds"]) == worlds
    assert decision["only_shared"] == ("the votes are not in memory" if on_dask else None)

    def check_figures(where: Callable[[Mapping[str, Any]], Mapping[str, Any]], what: str, found: Expected) -> None:
        places = [(where(decision), found.worlds["shared"] if on_dask else found)]
        places += [(where(decision["worlds"][world]), found.worlds[world]) for world in worlds]  # type: ignore[index]
        for told, wanted in places:
            check_figure(told[what], told[f"{what}_interval"], wanted)

    for one in case.result.decision.expected:
        figures = {"share": one.prevalence, "expected_recall": one.recall, "expected_precision": one.precision}
        for what, found in figures.items():
            check_figures(lambda part: part["classes"][str(one.name)], what, found)  # noqa: B023
    check_figures(lambda part: part, "expected_accuracy", case.result.decision.accuracy)
    assert on_dask or decision["leans_to"] == case.result.leaning.world


def check_figure(value: float | None, interval: list[float | None], found: Expected) -> None:
    if math.isnan(found.value):
        assert (value, interval) == (None, [None, None])
    else:
        assert [value, *interval] == pytest.approx([found.value, found.low, found.high])


def worlds_by_hand(case: Case) -> list[str]:
    """What is said of both worlds, from the draws: the recall of the rare class as counted item by item."""
    decision, rare = case.result.decision, case.result.expect()
    draws = case.fitted.independent.classes
    number = case.classes.index(str(rare.name))
    said = []
    for world, begins in (
        ("independent", "if annotators err independently"),
        ("shared", "if they share errors as real crowds do"),
    ):
        figures = [rare.recall, rare.precision, rare.prevalence, decision.accuracy]
        of_world = [figure.worlds[world] for figure in figures]  # type: ignore[index]
        names = (f"recall of {rare.name}", "precision", "share", "accuracy of all labels")
        words = [
            "-" if math.isnan(one.value) else f"{percent(one.value)} ({percent(one.low)} to {percent(one.high)})"
            for one in of_world
        ]
        said.append(f"{begins}: " + ", ".join(f"{name} {word}" for name, word in zip(names, words, strict=True)))
    shares = [sum(code == number for code in draw) / len(draw) for draw in draws.tolist()]
    low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95])
    assert f"share {percent(middle)} ({percent(low)} to {percent(high)})" in said[0]
    codes = case.result.codes.tolist()
    n_labels = sum(code >= 0 for code in codes)
    right = [sum(map(int.__eq__, draw, codes)) / n_labels for draw in draws.tolist()]
    assert f"labels {percent(float(np.median(right)))} (" in said[0]
    return said


def test_both_worlds_are_said_alike_everywhere(case: Case) -> None:
    wanted = worlds_by_hand(case)
    assert list(case.result.worlds[:2]) == wanted
    reads = [word for word in case.reads if word != "-q"]
    said = rarevote("aggregate", *reads, "-o", case.folder / "r.csv", "--calibrate").stderr
    assert wanted == [line for line in said.splitlines() if line.startswith("if ")]
    checked = rarevote("check", *case.reads).stdout.splitlines()
    assert [f"   {words.capitalize()[:2]}{words[2:]}." for words in wanted] == [
        line for line in checked if line.startswith("   If ")
    ]
    assert json.loads(rarevote("check", *case.reads, "--json").stdout)["expected"]["words"][:2] == wanted
    page = case.folder / "page.html"
    rarevote("report", *case.reads, "-o", page)
    text = html.unescape(page.read_text(encoding="utf-8"))
    for words in (*wanted, case.result.leaning.description):
        assert f"<li>{words[0].upper()}{words[1:]}.</li>" in text
        assert f"   {words[0].upper()}{words[1:]}." in checked
        assert words in said.splitlines()


def test_report(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Diagnosis] = []
    from rarevote.page import report

    build = report.build_page

    def watched(found: Diagnosis, *more: Any) -> str:
        seen.append(found)
        return build(found, *more)

    monkeypatch.setattr(report, "build_page", watched)
    page = case.folder / "page.html"
    done = rarevote("report", *case.reads, "-o", page, "--json")
    (found,) = seen
    n = case.fitted.annotations.n_tasks
    np.testing.assert_allclose(found.items.probabilities, case.p[:n], rtol=0, atol=TOLERANCE)
    assert [case.classes[k] for k in found.items.label.tolist()] == case.labels[:n]
    assert found.n_items == len(case.tasks)
    rare = case.result.expect()
    assert found.expected[found.rare] == rare
    # The page itself, as a browser gets it.
    text = page.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert data is not None
    lists = json.loads(data.group(1).replace("\\u003c", "<"))
    items = next(one for one in (lists["lists"].values() if isinstance(lists["lists"], dict) else lists["lists"])
                 if one["columns"][0]["title"] == "Item")  # fmt: skip
    titles = [column["title"] for column in items["columns"]]
    of_label = case.p[np.arange(n), [case.classes.index(label) for label in case.labels[:n]]]
    for title, wanted in ((f"P({rare.name})", case.p[:, found.rare]), ("P(label)", of_label)):
        if (title == "P(label)") == (found.leading is None):
            for row in items["rows"]:
                assert row[titles.index(title)] == pytest.approx(wanted[case.tasks.index(str(row[0]))], abs=6e-4)
    labelled = case.labels.count(str(rare.name))
    headline = json.loads(done.stdout)["headline"]
    if found.leading is not None:
        assert headline.startswith((f"{len(case.tasks):,} items: {labelled:,} ", "These votes cannot show"))


def test_check(case: Case) -> None:
    found = json.loads(rarevote("check", *case.reads, "--json").stdout)
    rare, decision = case.result.expect(), case.result.decision
    assert found["rare_class"] == str(rare.name)
    for what in ("recall", "precision", "prevalence"):
        told, wanted = found["expected"][what], getattr(rare, what)
        assert told["value"] == (None if math.isnan(wanted.value) else pytest.approx(wanted.value))
        assert told["interval"] == (
            [None, None] if math.isnan(wanted.low) else pytest.approx([wanted.low, wanted.high])
        )
        for world, one in wanted.worlds.items():
            check_figure(told["worlds"][world]["value"], told["worlds"][world]["interval"], one)
    assert found["expected"]["accuracy"]["value"] == pytest.approx(decision.accuracy.value)
    assert found["expected"]["leans_to"] == case.result.leaning.world
    if not found["cannot_answer"]:
        share = decision.accuracy.value
        usable = share >= 0.9 and not case.fitted.crowd.models
        assert found["verdict"] == ("do not use" if share < 0.65 else "can be used" if usable else "use with care")
    assert found["n_tasks"] == len(case.tasks)
    assert found["cannot_answer"] or not case.result.cannot_answer
    # What deciding warns of is among the findings, in the same words.
    said = " ".join(one["words"].lower() for one in found["findings"])
    for note in case.result.notes:
        if note.kind != "target":
            # How to do better is said in Python's words here, and in the command line's there.
            assert note.description.lower().partition(" compare with the default")[0].rstrip(".") in said


def test_explain(case: Case) -> None:
    chosen = [0, len(case.fitted.annotations.tasks) // 2]
    words = [word for i in chosen for word in ("--task", case.tasks[i])]
    for i, one in zip(chosen, json.loads(rarevote("explain", *case.reads, *words, "--json").stdout), strict=True):
        assert one["label"] == case.labels[i]
        np.testing.assert_allclose([one["p"][name] for name in case.classes], case.p[i], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(
            [one["posterior"][name] for name in case.classes], case.fitted.method.posterior_[i], atol=TOLERANCE
        )


def test_plan(case: Case) -> None:
    if "--gold" in case.words:
        pytest.skip("plan takes no gold file of its own: covered by the crowds without")
    found = json.loads(rarevote("plan", *case.reads, "--budget", "6", "--json").stdout)
    mean = np.array(probability_by_hand(case.fitted)[1])
    weight = np.ones(len(mean))
    if case.method == "anchored-rasch":
        weight = np.minimum(mean.max() / np.maximum(mean, 1e-300), 10.0)
    costs = weight[:, None] * (1 - np.eye(len(mean)))
    for item in found["tasks"]:
        i = case.tasks.index(str(item["task"]))
        assert item["decided"] == case.labels[i]
        table = case.p[i] @ costs
        own = table[case.classes.index(case.labels[i])] if case.labels[i] else table.min()
        assert item["expected_gain"] == pytest.approx(own, abs=2e-6)


def test_annotators(case: Case) -> None:
    found = json.loads(rarevote("annotators", *case.reads, "--json").stdout)
    votes = case.fitted.annotations
    of_vote = case.p[np.repeat(np.arange(votes.n_tasks), np.diff(votes.task_ptr))]
    for row in found["annotators"]:
        mine = votes.workers[votes.worker] == row["worker"]
        for k, name in enumerate(case.classes):
            assert row[f"seen:{name}"] == pytest.approx(of_vote[mine, k].sum(), abs=1e-9)
        labels = np.array([case.classes.index(label) for label in case.labels[: votes.n_tasks]])
        of_item = labels[np.repeat(np.arange(votes.n_tasks), np.diff(votes.task_ptr))]
        assert row["agreement"] == pytest.approx((votes.label == of_item)[mine].mean())


def log_loss_by_hand(case: Case, chosen: list[int]) -> float:
    place = {name: k for k, name in enumerate(case.classes)}
    return -sum(math.log(max(case.p[i, place[case.truth[case.tasks[i]]]], 1e-6)) for i in chosen) / len(chosen)


def recall_by_hand(case: Case, chosen: list[int], name: str) -> float:
    of_class = [i for i in chosen if case.truth[case.tasks[i]] == name]
    return sum(case.labels[i] == name for i in of_class) / len(of_class)


def test_score_and_compare_and_truth(case: Case) -> None:
    truth, out = case.truth_file(), case.folder / "scored.parquet"
    done = rarevote("aggregate", *case.reads, "-o", out, "--truth", truth, "--json")
    told = json.loads(done.stdout)["scores"]
    everything = list(range(len(case.tasks)))
    for name in case.classes:
        assert told["recall"][name] == pytest.approx(recall_by_hand(case, everything, name))
    scored = json.loads(rarevote("score", out, "--truth", truth, "--json").stdout)
    assert scored["probabilities"]["p"]["log_loss"] == pytest.approx(log_loss_by_hand(case, everything), abs=1e-9)
    assert {name: scored["recall"][name] for name in case.classes} == pytest.approx(told["recall"])
    words = [word for word in case.reads[:-3] if word not in ("--method", case.method)]
    if "--gold" in words:  # what a method learned from is not scored
        return
    compared = json.loads(
        rarevote("compare", *words, "--methods", f"{case.method},majority-vote", "--truth", truth, "--json").stdout
    )
    mine = compared["scores"][case.method]
    assert mine["log_loss"] == pytest.approx(log_loss_by_hand(case, everything), abs=1e-9)
    for name in case.classes:
        assert mine["recall"][name] == pytest.approx(recall_by_hand(case, everything, name))


def test_predict_of_the_same_votes(case: Case) -> None:
    """The default weighs the votes of known people exactly as the fit did; others settle within its tolerance."""
    if "--gold" in case.words or not case.fitted.method.capabilities.predict:
        pytest.skip("gold is not remembered, or the method cannot label new items")
    model, out = case.folder / "model", case.folder / "new.parquet"
    rarevote("aggregate", *case.reads, "-o", case.folder / "r.csv", "--model-out", model)
    reading = [word for word in case.reads if word not in ("--method", case.method)]
    rarevote("predict", model, *reading, "-o", out)
    table = table_of(out)
    n = case.fitted.annotations.n_tasks
    if case.method == "anchored-rasch":
        if case.result.cannot_answer:
            pytest.skip("a model knows the annotators, where a crowd of one cannot")
        check_table(case, table, n)
        return
    p = np.column_stack([table[f"p:{name}"] for name in case.classes])
    np.testing.assert_allclose(p, case.p[:n], atol=0.02)
    same = sum(label == wanted for label, wanted in zip(table["label"], case.labels, strict=False))
    assert same >= 0.97 * n


def test_back_out(case: Case) -> None:
    if case.fitted.crowd.export is None:
        pytest.skip("not an export")
    back = case.folder / "back.json"
    rarevote("aggregate", *case.reads, "-o", case.folder / "r.csv", "--back-out", back)
    written = json.loads(back.read_text())
    n = case.fitted.annotations.n_tasks
    told = {str(one["id"]): one["predictions"][0] for one in written if one.get("predictions")}
    assert sorted(told) == sorted(case.tasks[:n])
    for i in range(n):
        prediction = told[case.tasks[i]]
        assert prediction["result"][0]["value"]["choices"] == [case.labels[i]]
        assert prediction["score"] == pytest.approx(case.p[i, case.classes.index(case.labels[i])], abs=1e-6)


@pytest.mark.parametrize(
    "words",
    [
        ["--decide", "argmax"],
        ["--decide", "balanced:3"],
        ["--abstain-below", "0.7"],
    ],
)
def test_other_decisions_read_the_same_probability(case: Case, words: list[str]) -> None:
    out = case.folder / "other.parquet"
    rarevote("aggregate", *case.reads, "-o", out, *words)
    table = table_of(out)
    p = np.column_stack([table[f"p:{name}"] for name in case.classes])
    np.testing.assert_allclose(p, case.p, rtol=0, atol=TOLERANCE)
    with_list = case.folder / "listed.parquet"
    more = ["--max-review", "3", "--review-out", str(case.folder / "review.csv"), "--calibrate", "--json"]
    rarevote("aggregate", *case.reads, "-o", with_list, *words, *more)
    assert table_of(with_list) == table


def test_a_review_list_does_not_change_what_costs_decide(tmp_path: Path) -> None:
    """On the README's crowd a list of 50 items once changed 1,222 labels."""
    path = long_table(simulated(300, 2, 8, 1, imbalance=7.0), tmp_path / "labels.csv")
    words = ["aggregate", str(path), "--cost", "c0:c1=1,c1:c0=20", "-q"]
    rarevote(*words, "-o", tmp_path / "a.csv")
    rarevote(*words, "-o", tmp_path / "b.csv", "--max-review", "50", "--review-out", tmp_path / "r.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_the_page_is_about_the_class_that_was_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(f"t{i}", f"w{j}", "ab"[int((i % 4 == 0) != (rng.random() < 0.1))]) for i in range(120) for j in range(4)]
    rows += [("t0", "w8", "c"), ("t1", "w8", "c")]
    path = long_table(rows, tmp_path / "labels.csv")
    done = rarevote("report", path, "-o", tmp_path / "p.html", "--rare", "c", "--json")
    assert "“c”" in json.loads(done.stdout)["headline"]


# --------------------------------------------------------------------------------------------------------------------
# the same in processes of their own, and on dask


@pytest.mark.prove
def test_in_a_process_of_its_own(case: Case) -> None:
    out = case.folder / "process.parquet"
    words = [sys.executable, "-m", "rarevote", "aggregate", *case.reads, "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_table(case, table_of(out))
    explained = subprocess.run(
        [sys.executable, "-m", "rarevote", "explain", *case.reads, "--task", case.tasks[0], "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    (one,) = json.loads(explained.stdout)
    np.testing.assert_allclose([one["p"][name] for name in case.classes], case.p[0], rtol=0, atol=TOLERANCE)


@pytest.mark.prove
def test_on_dask(case: Case) -> None:
    """The votes, the gold and the labels of a long table; on dask, only items with votes have rows."""
    path = case.files[0]
    if not case.fitted.method.capabilities.dask or path.name not in ("labels.csv", "labels.parquet"):
        pytest.skip("not a method, or not a file, for dask")
    folder = case.folder / "dask"
    gold = case.words[case.words.index("--gold") :][:2] if "--gold" in case.words else ()
    words = ["aggregate", str(path), *gold, "--method", case.method, "--engine", "dask", "-o", str(folder), "--json"]
    done = subprocess.run([sys.executable, "-m", "rarevote", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = [table_of(one) for one in sorted((folder / "tasks").glob("*.parquet"))]
    table = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    n = case.fitted.annotations.n_tasks
    order = np.argsort([case.tasks.index(str(task)) for task in table["task"]])
    check_table(case, {name: [column[i] for i in order] for name, column in table.items()}, n)
    summary = json.loads(done.stdout)
    assert summary["cannot_answer"] == case.result.cannot_answer
    if n == len(case.tasks):
        check_expectations(case, summary["decision"], on_dask=True)
    for name in case.classes:
        assert summary["classes"][name]["tasks"] == case.labels.count(name)


# --------------------------------------------------------------------------------------------------------------------
# ranking, and names of version 0.2


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin", "glad", "mace", "cc-rasch", "majority-vote", "wawa"])
def test_of_two_classes_p_ranks_items_as_the_method_does_but_for_the_number_of_votes(method: str) -> None:
    fitted = rv.fit(simulated(300, 2, 4, 16), method)
    n_votes = np.diff(fitted.annotations.task_ptr)
    p, q = fitted.probabilities[:, 1], fitted.method.posterior_[:, 1]
    for number in np.unique(n_votes):
        mine = np.flatnonzero((n_votes == number) & (q > 1e-11) & (q < 1 - 1e-11))
        order = mine[np.argsort(q[mine], kind="stable")]
        assert (np.diff(p[order]) >= -1e-12).all()


def test_names_of_0_2_warn_and_give_the_guarded_answer() -> None:
    from rarevote.compat.version_0_2 import calibrated, explain, plan_review
    from rarevote.decide import decide

    fitted = rv.fit(simulated(120, 4, 2, 17), "dawid-skene")
    wanted = fitted.decide()
    with pytest.warns(DeprecationWarning, match="use Fitted.probabilities") as found:
        old = fitted.calibrate()
    assert found[0].filename == __file__
    np.testing.assert_array_equal(old.posterior, fitted.probabilities)
    with pytest.warns(DeprecationWarning, match=r"use Fitted.decide\(\)"):
        assert decide(old).codes.tolist() == wanted.codes.tolist()
    voted = fitted.annotations.votes() > 0
    with pytest.warns(DeprecationWarning, match="0.4"):
        by_cost = decide(old, costs=1 - np.eye(4)).codes
    assert voted[np.arange(len(by_cost)), by_cost].all()
    with pytest.warns(DeprecationWarning, match=r"use Result.review\(\)"):
        listed = plan_review(old, wanted.decision, fitted.annotations, max_review=4)
    assert listed == wanted.review(4)
    with pytest.warns(DeprecationWarning, match=r"Result.explain\(\)"):
        assert explain(fitted.method, "t0003").label == wanted.explain("t0003").label
    with pytest.raises(rv.errors.ParameterError, match=r"rarevote.fit\(votes, method\).probabilities"):
        calibrated(fitted.method.posterior_)
