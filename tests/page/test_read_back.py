"""Every number of the page, read back and compared with ``result.csv``, ``summary()``, ``check`` and ``annotators``.

What a section should say is put together here from the votes and from what the other verbs say; it has to be on the
page, and when all of it is taken away, no digit may be left. Charts are drawn from the same records and not read.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.crowd.words import count, percent
from rarevote.decide.floor import floor_reviews
from rarevote.diagnose.jury import jury_sentences
from tests.command import rarevote
from tests.page.crowds import random_crowd

# What stands on every page: intervals, the pace, the rule of the piles.
CONSTANTS = ("95% interval", "90% interval", "10 seconds per item", "0% unanimous", "1 for full", "0 for agreement")


@dataclass
class Case:
    """A crowd: its votes by item, how it is read, and what all verbs say of it."""

    votes: dict[str, list[str]]
    reads: tuple[str | Path, ...]
    folder: Path
    truth: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.page, out = self.folder / "page.html", self.folder / "result.csv"
        known: tuple[str | Path, ...] = ()
        if self.truth:
            path = self.folder / "truth.csv"
            write(path, ["task", "label"], list(map(list, self.truth.items())))
            known = ("--truth", path)
        rarevote("report", *self.reads, *known, "-q", "-o", self.page)
        said = rarevote("aggregate", *self.reads, *known, "-q", "-o", out, "--json").stdout
        self.summary = json.loads(said)
        self.check = json.loads(rarevote("check", *self.reads, "-q", "--json").stdout)
        self.people = json.loads(rarevote("annotators", *self.reads, "-q", "--json").stdout)
        with out.open(encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.label = {row["task"]: row["label"] for row in self.rows}
        self.classes = [name.removeprefix("p:") for name in self.rows[0] if name.startswith("p:")]
        self.html = self.page.read_text(encoding="utf-8")

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def rare(self) -> str:
        return str(self.summary["rare"]["class"])

    @property
    def leads(self) -> bool:
        """A class that is named or rare: at most a fifth of the votes, clearly below an equal share, ten of it."""
        rare, by_class = self.summary["rare"], Counter(vote for given in self.votes.values() for vote in given)
        if rare["named"]:
            return True
        is_rare = rare["is_rare"] and rare["share_of_votes"] <= 0.2
        enough = len(self.classes) == 2 or min(by_class[self.rare], self.labelled(self.rare)) >= 10
        return bool(is_rare and enough)

    def labelled(self, name: str) -> int:
        return sum(label == name for label in self.label.values())

    def majority(self, task: str) -> str:
        counts = Counter(self.votes[task])
        return max(self.classes, key=lambda name: counts[name])  # of equals the first

    def expected(self, name: str, what: str) -> tuple[float, float, float]:
        one = self.summary["decision"]["classes"][name]
        return one[what], *one[f"{what}_interval"]

    @property
    def look(self) -> list[dict[str, str]]:
        """The pile: what a review of equal costs lists, as long as a look pays."""
        doubt = np.array([1 - float(row["confidence"]) for row in self.rows])
        return [row for row, one in zip(self.rows, doubt, strict=True) if one > doubt.mean() + 1e-6 and one >= 0.1]

    def section(self, name: str) -> str | None:
        pattern = r"<header>(.*?)</header>" if name == "top" else rf'<section id="{name}">(.*?)</section>'
        found = re.search(pattern, self.html, re.S)
        return None if found is None else words_of(found.group(1))

    def data(self, name: str) -> dict[str, Any]:
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.html, re.S)
        assert found is not None
        made: dict[str, Any] = json.loads(found.group(1))["lists"][name]
        return made


def words_of(markup: str) -> str:
    markup = re.sub(r"<(svg|script|style|select|figure|noscript|nav)\b.*?</\1>", " ", markup, flags=re.S)
    markup = re.sub(r'<p class="eyebrow">.*?</p>', " ", markup)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def assert_all_read(text: str, expected: list[str]) -> None:
    """All of it is there, and no digit beside it."""
    for one in sorted(expected, key=len, reverse=True):
        wanted = " ".join(one.split())
        assert wanted in text, f"not on the page: {wanted!r} in {text!r}"
        text = text.replace(wanted, " ~ ", 1)
    for one in CONSTANTS:
        text = text.replace(one, " ")
    assert not re.search(r"\d", text), f"a number from nowhere: {text!r}"


def write(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def crowd_case(
    folder: Path, seed: int, *options: str | Path, with_truth: bool = False, workers: str = "", **shape: Any
) -> Case:
    """A random crowd in a file; ``workers`` are the only ones whose votes stay."""
    crowd, truth = random_crowd(seed, **shape)
    rows = [
        [crowd.tasks[i], crowd.workers[r], crowd.classes[k]]
        for i, r, k in zip(crowd.task_of_annotation(), crowd.worker, crowd.label, strict=True)
        if not workers or crowd.workers[r] in workers.split()
    ]
    votes: dict[str, list[str]] = {}
    for task, _, label in rows:
        votes.setdefault(task, []).append(label)
    path = write(folder / "labels.csv", ["task", "worker", "label"], rows)
    return Case(votes, (path, *options), folder, truth if with_truth else {})


def thin(folder: Path) -> Case:
    """About 1.1 votes an item, by people who vote on some of the same items."""
    rows = [[f"t{i}", f"w{i % 7}x", "yes" if i % 9 == 0 else "no"] for i in range(300)]
    rows += [[f"t{i}", f"w{(i + 3) % 7}x", "yes" if i % 9 == 0 and i % 2 else "no"] for i in range(0, 300, 10)]
    votes: dict[str, list[str]] = {}
    for task, _, label in rows:
        votes.setdefault(str(task), []).append(str(label))
    return Case(votes, (write(folder / "labels.csv", ["task", "worker", "label"], rows),), folder)


def judges(folder: Path) -> Case:
    draw = np.random.default_rng(4)
    rows = []
    for i in range(200):
        is_toxic = draw.random() < 0.1
        given = [is_toxic if draw.random() < 0.85 else not is_toxic for _ in range(4)]
        rows.append([f"t{i}", *("toxic" if one else "fine" for one in given)])
    path = write(folder / "wide.csv", ["task", "judge a", "judge b", "judge c", "judge d"], rows)
    return Case({row[0]: row[1:] for row in rows}, (path, "--wide"), folder)


def large(folder: Path) -> Case:
    simulated = ("--tasks", "200000", "--workers", "2000", "--votes", "3", "--imbalance", "30", "--seed", "1")
    rarevote(
        "simulate", "--out", folder / "crowd", *simulated, "--shared-errors", "real", "--prevalence-effect", "real"
    )
    votes: dict[str, list[str]] = {}
    with (folder / "crowd" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = [[row["task"], row["worker"], "no" if row["label"] == "0" else "yes"] for row in csv.DictReader(file)]
    for task, _, label in rows:
        votes.setdefault(task, []).append(label)
    return Case(votes, (write(folder / "labels.csv", ["task", "worker", "label"], rows),), folder)


FEW, MANY = ("a", "b", "c", "d", "rare"), tuple("abcdefghi")
CASES: dict[str, Callable[[Path], Case]] = {
    "two classes": lambda folder: crowd_case(folder, 1, n_tasks=150),
    "named, with truth": lambda folder: crowd_case(folder, 2, "--rare", "yes", n_tasks=120, with_truth=True),
    "alike": lambda folder: crowd_case(folder, 3, n_tasks=120, classes=("a", "b", "c")),
    "five classes": lambda folder: crowd_case(folder, 4, n_tasks=400, classes=FEW),
    "nine classes": lambda folder: crowd_case(folder, 5, n_tasks=300, classes=MANY, n_workers=12),
    "one annotator": lambda folder: crowd_case(folder, 6, workers="w1"),
    "1.1 votes": thin,
    "models": judges,
    "ten items": lambda folder: crowd_case(folder, 7, n_tasks=10),
    "majority vote": lambda folder: crowd_case(folder, 8, "--method", "majority-vote", n_tasks=150),
    "200 000 items": large,
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.prove) if CASES[name] is large else name for name in CASES],
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return CASES[request.param](tmp_path_factory.mktemp("case"))


def share(figure: tuple[Any, Any, Any]) -> str:
    """A share with its interval, or that it says nothing."""
    value, low, high = figure
    if value is None:
        return "none"
    return f"{percent(value)} ({percent(low)} to {percent(high)})" if high - low <= 0.75 else "unknown without an audit"


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def first_line(case: Case) -> str:
    if not case.leads:
        labelled = {name: case.labelled(name) for name in case.classes}
        most = [f"{count(n)} “{name}”" for name, n in sorted(labelled.items(), key=lambda one: -one[1]) if n]
        rest = f" and {len(most) - 5} more" if len(most) > 5 else ""
        listed = ", ".join(most[:5]) + rest if rest else " and ".join(filter(None, [", ".join(most[:-1]), most[-1]]))
        return f"{count(case.n)} items in {len(case.classes)} classes: {listed}."
    n = case.labelled(case.rare)
    start = f"{count(case.n)} items: {count(n)} {'is' if n == 1 else 'are'} flagged as “{case.rare}”"
    if case.truth:
        return f"{start}; the truth has {sum(one == case.rare for one in case.truth.values())}."
    value, low, high = case.expected(case.rare, "share")
    if high - low > 0.75:
        return f"{start}; how many are is unknown without an audit."
    ends = f"{count(case.n * low)} to {count(case.n * high)}"
    return f"{start}; about {count(case.n * value)} are expected (90% interval: {ends})."


def second_line(case: Case) -> str:
    if case.check["cannot_answer"]:
        return f"These votes cannot show which labels are right: {case.check['words'].partition(': ')[2]}."
    if case.truth:
        right = np.mean([case.label[task] == true for task, true in case.truth.items()])
        vote = np.mean([case.majority(task) == true for task, true in case.truth.items()])
        rare = [task for task, true in case.truth.items() if true == case.rare]
        found, by_vote = (np.mean([of(t) == case.rare for t in rare]) for of in (case.label.get, case.majority))
        return (
            f"By the truth of {len(case.truth)} items, {percent(float(right))} of the labels are right and "
            f"{percent(float(found))} of all “{case.rare}” are found; with a majority vote {percent(float(vote))} and "
            f"{percent(float(by_vote))}."
        )
    said = capital(case.check["words"])
    if not case.leads:
        return f"{said}."
    told = share(case.expected(case.rare, "expected_recall"))
    if told.startswith("unknown"):
        return f"{said}; what share of all “{case.rare}” is flagged is {told}."
    return f"{said}; {told} of all “{case.rare}” are expected to be among the flagged."


def third_line(case: Case) -> list[str]:
    given = " ".join(str(one) if one != case.reads[0] else Path(one).name for one in case.reads)
    doubted = sum(float(row["confidence"]) < 1 for row in case.rows)
    n = len(case.look)
    if case.leads and n > 360 and share(case.expected(case.rare, "expected_recall")).startswith("unknown"):
        flagged = case.labelled(case.rare)
        n = floor_reviews(flagged, case.n - flagged, target=0.9)
        start = f"Have an expert audit the result, to prove that 90% of all “{case.rare}” are found"
        command = f"rarevote audit start {given} --find {case.rare}=0.9 --plan audit.json --review-out round-1.csv"
        return [
            f"{start}: at least {n} items drawn at random ({round(n / 6)} minutes at 10 seconds per item).",
            command,
        ]
    if case.check["cannot_answer"]:
        n = min(doubted, 200)
        start = f"Have another person answer {n} items"
    elif case.n < 50:
        n = doubted
        start = f"Look at {'all' if n == case.n else 'the'} {n} items"
    else:
        start = f"Look at these {min(n, 360)} items first" + (f", of {count(n)} worth a look" if n > 360 else "")
        n = min(n, 360)
    time = "under a minute" if 10 * n < 45 else f"{round(n / 6)} minute{'' if round(n / 6) == 1 else 's'}"
    given += " --truth truth.csv" if case.truth else ""
    command = f"rarevote aggregate {given} --max-review {n} --review-out look.csv --out result.csv"
    return [f"{start} ({time} at 10 seconds per item), then ", command]


def class_tiles(case: Case) -> list[str]:
    order = sorted(case.classes, key=lambda name: (name != case.rare or not case.leads, -case.labelled(name)))
    votes = Counter(case.majority(task) for task in case.votes)
    made = []
    for name in order[:6]:
        n = case.labelled(name)
        made += [f"{name} {count(n)} {percent(n / case.n)} of the items", f"{count(votes[name])} by majority vote"]
        value, low, high = case.expected(name, "share")
        if high - low <= 0.75:
            made.append(f"about {count(case.n * value)} expected ({count(case.n * low)} to {count(case.n * high)})")
    return made


def cautions(case: Case) -> list[str]:
    """What the other verbs warn of, and what follows from their figures."""
    said = [f"{capital(one).rstrip('.')}." for one in case.summary["warnings"] if ", so no method" not in one]
    votes = sum(map(len, case.votes.values())) / len(case.votes)
    if len(case.classes) >= 5 and votes < 3:
        said.append(f"{votes:.1f} votes per item for {len(case.classes)} classes")
    precision = case.summary["decision"]["classes"][case.rare]["expected_precision"]
    if case.truth:
        flagged = [task for task in case.truth if case.label[task] == case.rare]
        precision = float(np.mean([case.truth[task] == case.rare for task in flagged]))
    if f"items flagged as “{case.rare}” are false alarms" in case.html:
        assert precision < 0.5
        said.append(f"{percent(1 - precision)} of the items flagged as “{case.rare}” are false alarms")
    return said


def test_the_top(case: Case) -> None:
    text = case.section("top")
    assert text is not None
    worlds = [f"{capital(words)}." for words in case.check["expected"]["words"]]
    expected = [first_line(case), second_line(case), *third_line(case), *worlds, *cautions(case)]
    if not case.check["cannot_answer"]:
        expected += class_tiles(case)
        if len(case.classes) > 6:
            expected.append(f"{5 if case.leads else 6} largest of {len(case.classes)} classes")
    assert_all_read(text, expected)
    headline = second_line(case) if case.check["cannot_answer"] else first_line(case)
    h1 = re.search(r"<h1>(.*?)</h1>", case.html)
    assert h1 is not None
    assert unescape(h1.group(1)) == headline


def test_the_piles(case: Case) -> None:
    text = case.section("piles")
    assert text is not None
    sure = [row for row in case.rows if float(row["confidence"]) >= 0.9]
    if case.check["cannot_answer"] or not sure:
        assert text.count("No label can be taken without a look") == 1
        assert_all_read(text.replace("90% or more", ""), [])
        return
    look = case.look
    looked_at = {row["task"] for row in look}
    rest = [row for row in case.rows if row["task"] not in looked_at]
    piles = {"worth a look": look, "take as labelled": rest}
    if case.leads:
        del piles["take as labelled"]
        piles[f"take as {case.rare}"] = [row for row in rest if row["label"] == case.rare]
        piles[f"take as not {case.rare}"] = [row for row in rest if row["label"] != case.rare]
    expected = []
    for name, rows in piles.items():
        expected.append(f"{name} {count(len(rows))} {percent(len(rows) / case.n)} of the items")
        if rows:
            ends = [percent(end(float(row["confidence"]) for row in rows)) for end in (min, max)]
            expected.append(f"probability of their labels: {ends[0]} to {ends[1]}")
        if case.truth:
            right = sum(case.truth[row["task"]] == row["label"] for row in rows)
            expected.append(f"{right} of {len(rows)} label{'' if len(rows) == 1 else 's'} right, by the truth")
    if 2 * len(look) > case.n:
        single = np.mean([len(given) == 1 for given in case.votes.values()])
        split = np.mean([len(set(given)) > 1 for given in case.votes.values()])
        expected.append(f"because {percent(float(max(single, split)))} of the items" if single > split else
                        f"annotators disagree on {percent(float(split))} of the items")  # fmt: skip
    assert_all_read(text, expected)


def test_the_list_of_items(case: Case) -> None:
    made = case.data("items")
    titles = [column["title"] for column in made["columns"]]
    given = {row["task"]: row for row in case.rows}
    assert len(made["rows"]) == min(case.n, 5000)
    order = [float(given[row[0]]["confidence"]) for row in made["rows"]]
    assert all(a <= b + 2e-6 for a, b in pairwise(order)), "the least sure first: equal costs"
    for row in made["rows"]:
        cells, votes = dict(zip(titles, row, strict=False)), Counter(case.votes[row[0]])
        assert case.classes[cells["Label"]] == given[row[0]]["label"]
        assert case.classes[cells["Majority"]] == case.majority(row[0])
        if case.leads:
            assert cells[f"P({case.rare})"] == pytest.approx(float(given[row[0]][f"p:{case.rare}"]), abs=1e-4)
        else:
            assert not any(title.startswith("P(") for title in titles if title != "P(label)")
        if "P(label)" in cells:
            assert cells["P(label)"] == pytest.approx(float(given[row[0]]["confidence"]), abs=1e-4)
        told = {case.classes[k] if k >= 0 else "": n for k, n in cells["Votes"]}
        assert sum(told.values()) == sum(votes.values())
        assert all(votes[name] == n for name, n in told.items() if name)
        shares = [n / votes.total() for n in votes.values()]
        entropy = -sum(one * log(one) for one in shares) / log(len(case.classes))
        assert cells["Split"] == pytest.approx(entropy, abs=1e-4)


def test_what_a_majority_vote_would_label_differently(case: Case) -> None:
    text = case.section("lost")
    moved = Counter((case.majority(t), case.label[t]) for t in case.votes if case.majority(t) != case.label[t])
    if case.summary["method"] == "majority-vote":
        assert text is None
        return
    assert text is not None
    expected = [f"{a} → {b} {count(n)}" for (a, b), n in moved.most_common(8)]
    if len(moved) > 8:
        expected = [f"all others {count(sum(n for _, n in moved.most_common()[8:]))}"]
        text = re.sub(r"\S+ → \S+ \d+", " ", text)  # of equals any eight
    total = moved.total()
    if total:
        noun = "item" if total == 1 else "items"
        expected.append(f"{count(total)} {noun} differently ({percent(total / len(case.votes))} of the items)")
    gained = sum(n for (_, b), n in moved.items() if b == case.rare)
    if case.leads and gained and gained < total:
        expected.append(f"{count(gained)} of them are flagged as “{case.rare}”")
    if case.truth:
        rare = [task for task, true in case.truth.items() if true == case.rare]
        ours, theirs = (sum(of(t) == case.rare for t in rare) for of in (case.label.__getitem__, case.majority))
        expected.append(f"a majority vote finds {theirs} of {len(rare)} true “{case.rare}” items, this result {ours}.")
    elif case.leads and "is expected to find" in text:
        expected.append(f"this result is expected to find {share(case.expected(case.rare, 'expected_recall'))}")
        vote = re.search(r"a majority vote ([^;]*?\))\.", text)
        assert vote is not None
        of_class = table_row(case.section("trade-off") or "", f"{case.rare} (expected)")
        assert of_class.endswith(vote.group(1)), "the same in the table of recalls"
        expected.append(vote.group(0))
    assert_all_read(text, expected)


def table_row(text: str, start: str) -> str:
    """A row of the table of recalls, up to the next class."""
    found = re.search(rf"{re.escape(start)} (.*?)(?= \S+ \((?:expected|truth)\)| How many| “Expected)", text)
    assert found is not None, text
    return found.group(1)


def test_recall_and_precision(case: Case) -> None:
    text = case.section("trade-off") or ""
    for name in case.classes:
        if f" {name} (expected) " not in text:
            assert len(case.classes) > 8
            continue
        row = table_row(text, f"{name} (expected)")
        recall, precision = (share(case.expected(name, f"expected_{what}")) for what in ("recall", "precision"))
        assert row.startswith(f"{count(case.labelled(name))} {recall} {precision} "), row
    if "--min-recall" in text:
        for wanted in ("0.8", "0.9", "0.95"):
            out = case.folder / "target.csv"
            given = ("--min-recall", f"{case.rare}={wanted}", "-q", "--json", "-o", out)
            said = json.loads(rarevote("aggregate", *case.reads, *given).stdout)
            one = said["decision"]["classes"][case.rare]
            figures = [(one[f"expected_{w}"], *one[f"expected_{w}_interval"]) for w in ("recall", "precision")]
            assert f"{percent(float(wanted))} {count(said['rare']['tasks'])} {' '.join(map(share, figures))}" in text


def test_the_classes(case: Case) -> None:
    text = case.section("classes")
    assert text is not None
    by_class = Counter(vote for given in case.votes.values() for vote in given)
    votes = Counter(case.majority(task) for task in case.votes)
    expected = []
    for name in case.classes:
        told = share(case.expected(name, "share"))
        row = f"{name} {percent(case.labelled(name) / case.n)} {percent(votes[name] / case.n)}"
        row += f" {told} {percent(by_class[name] / by_class.total())}"
        if case.truth:
            row += f" {percent(sum(one == name for one in case.truth.values()) / len(case.truth))}"
        expected.append(row)
    assert_all_read(text, expected)


def test_agreement(case: Case) -> None:
    text = case.section("agreement")
    assert text is not None
    figures = case.check["agreement"]

    def number(value: float | None) -> str:
        return "unknown" if value is None or value != value else f"{value:.2f}"

    def ends(low: float | None, high: float | None) -> str:
        return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"

    assert f"Agreement on {count(figures['n_tasks'])} items" in text
    names = {"alpha": "Krippendorff's alpha", "ac1": "Gwet's AC1", "raw": "raw agreement"}
    for name, words in names.items():
        assert f"{words} {number(figures[name])} {ends(*figures['intervals'][name])}".strip() in text
    for name in case.classes:
        one = figures["per_class"][name]
        raw = percent(one["raw"] if one["raw"] is not None else float("nan"))
        assert f"{name} {raw} {number(one['alpha'])} {ends(one['alpha_low'], one['alpha_high'])}".strip() in text


def test_annotators(case: Case) -> None:
    text = case.section("annotators")
    assert text is not None
    if case.leads or len(case.classes) == 2:
        for profile, people in case.people["profiles"].items():
            pattern = rf"{profile}: .*? {count(people)} {re.escape(percent(people / case.people['n_annotators']))}"
            assert re.search(pattern, text), profile
    else:
        assert "both classes" not in text
    from rarevote import fit

    check = fit(case.reads[0], *method(case), wide="--wide" in case.reads).check()
    for sentence in jury_sentences(check.jury, np.array(check.classes)):
        assert sentence in text
    made = case.data("workers")
    assert sum(row[1] for row in made["rows"]) == sum(map(len, case.votes.values()))


def method(case: Case) -> tuple[str, ...]:
    return ("majority-vote",) if case.summary["method"] == "majority-vote" else ()


def test_data_and_method(case: Case) -> None:
    text = case.section("fit")
    assert text is not None
    votes = sum(map(len, case.votes.values()))
    summary = case.summary
    iterations = f"{summary['n_iter']} iteration{'' if summary['n_iter'] == 1 else 's'}"
    made = re.search(r"Made \S+ by rarevote \S+", text)
    assert made is not None
    each = f"({votes / len(case.votes):.1f} per item)"
    counted = f"{votes:,} on {len(case.votes):,} items by {summary['n_workers']:,} annotators {each}"
    assert_all_read(text, [counted, iterations, summary["decided_by"], made.group(0)])
