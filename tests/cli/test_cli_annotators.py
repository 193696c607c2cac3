"""``rarevote annotators``: who is good at what."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from rarevote import agreement
from rarevote.simulate.files import example_files
from tests.command import rarevote, rows

FILES = example_files()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotators")
    done = rarevote("annotators", FILES.labels, "-m", "majority-vote", "-o", folder / "a.csv", "--top", "3")
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    rarevote("aggregate", FILES.labels, "-m", "majority-vote", "-o", folder / "r.csv", "-q")
    return folder


def test_rows_are_what_the_votes_say(made: Path) -> None:
    table = {row["worker"]: row for row in rows((made / "a.csv").read_text())}
    result = {row["task"]: row["label"] for row in rows((made / "r.csv").read_text())}
    with Path(FILES.labels).open(newline="") as handle:
        votes = list(csv.DictReader(handle))
    counts = Counter(vote["worker"] for vote in votes)
    equal = Counter(vote["worker"] for vote in votes if result[vote["task"]] == vote["label"])
    assert {name: int(row["votes"]) for name, row in table.items()} == counts
    for name, row in table.items():
        assert float(row["agreement"]) == pytest.approx(equal[name] / counts[name], abs=1e-5)
        assert float(row["seen:defect"]) + float(row["seen:sound"]) == pytest.approx(counts[name], abs=0.01)
    words = {(True, True): "both classes", (True, False): "majority class only", (False, True): "rare class only",
             (False, False): "neither"}  # fmt: skip
    for row in table.values():
        assert row["profile"] == words[float(row["recall_low:sound"]) > 0.5, float(row["recall_low:defect"]) > 0.5]
        for name in ("sound", "defect"):
            assert float(row[f"recall_low:{name}"]) <= float(row[f"recall:{name}"]) <= float(row[f"recall_high:{name}"])


@pytest.mark.parametrize(
    "method",
    [
        "dawid-skene",
        pytest.param(
            "anchored-rasch",
            marks=pytest.mark.xfail(strict=True, reason="25 of 40 intervals hold the recall of the rare class"),
        ),
    ],
)
def test_recall_is_near_what_the_truth_says(method: str, tmp_path: Path) -> None:
    truth = {row["task"]: row["label"] for row in rows(Path(FILES.truth).read_text())}
    seen: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for vote in rows(Path(FILES.labels).read_text()):
        key = vote["worker"], truth[vote["task"]]
        seen[key] += 1
        right[key] += vote["label"] == key[1]
    rarevote("annotators", FILES.labels, "-m", method, "-o", tmp_path / "a.csv", "-q")
    table = rows((tmp_path / "a.csv").read_text())
    inside: defaultdict[str, int] = defaultdict(int)
    for row in table:
        for name in ("sound", "defect"):
            share = right[row["worker"], name] / seen[row["worker"], name]
            inside[name] += float(row[f"recall_low:{name}"]) <= share <= float(row[f"recall_high:{name}"])
    # The observed share scatters as the interval of the true accuracy does.
    assert inside["sound"] >= 0.8 * len(table)
    assert inside["defect"] >= 0.8 * len(table)


def test_a_person_sees_the_first_and_how_many_more(made: Path) -> None:
    said = (made / "stdout").read_text()
    table = rows((made / "a.csv").read_text())
    assert [line.split()[0] for line in said.splitlines()[2:5]] == [row["worker"] for row in table[:3]]
    assert f"... {len(table) - 3} more" in said
    assert "on “defect”, chance is not ruled out" in said
    assert "jury condition" in said or "cannot be promised" in said
    assert f"{len(table)} annotators" in (made / "stderr").read_text()


def test_orders(tmp_path: Path) -> None:
    orders = {}
    for sort in ("rare", "votes", "agreement", "name"):
        path = tmp_path / f"{sort}.csv"
        rarevote("annotators", FILES.labels, "-m", "majority-vote", "--sort", sort, "-o", path, "-q")
        orders[sort] = rows(path.read_text())
    for sort, column in (("rare", "recall_low:defect"), ("votes", "votes"), ("agreement", "agreement")):
        values = [float(row[column]) for row in orders[sort]]
        assert values == sorted(values, reverse=True)
    names = [row["worker"] for row in orders["name"]]
    assert names == sorted(names)
    assert {frozenset(row["worker"] for row in found) for found in orders.values()} == {frozenset(names)}


def test_the_jury_condition_is_that_of_the_recalls(tmp_path: Path) -> None:
    found = json.loads(rarevote("annotators", FILES.labels, "-m", "majority-vote", "--json", "-q").stdout)
    assert found["rare_class"] == "defect"
    assert found["n_annotators"] == len(found["annotators"]) == sum(found["profiles"].values())
    for name in ("sound", "defect"):
        recalls = [row[f"recall:{name}"] for row in found["annotators"]]
        bad = [value for value in recalls if value <= 0.5]
        # The best margin lies just below that of some annotator.
        best = max(
            sum(value >= good for value in recalls) * 2 * good + 2 * len(bad) * (min(bad) if bad else 0.5)
            for good in recalls
            if good > 0.5
        )
        assert found["jury"][name]["left_side"] == pytest.approx(best / len(recalls))
        assert found["jury"][name]["holds"] == (best > len(recalls))
        assert found["jury"][name]["mean_recall"] == pytest.approx(sum(recalls) / len(recalls))


def test_names_are_shown_never_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n1,\x1b[31mred,x\n1,=1+1,y\n2,\x1b[31mred,x\n")
    done = rarevote("annotators", path, "-o", tmp_path / "a.csv", "--spreadsheet-safe")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b[31mred" in done.stdout
    assert "'=1+1" in (tmp_path / "a.csv").read_text()


def test_mistakes_write_nothing(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    assert "--sort must be" in rarevote("annotators", FILES.labels, "--sort", "age", "-o", out, code=2).stderr
    assert "'x' is not a class" in rarevote("annotators", FILES.labels, "--rare", "x", "-o", out, code=2).stderr
    assert "no folder" in rarevote("annotators", FILES.labels, "-o", tmp_path / "no" / "a.csv", code=1).stderr
    assert "cannot write .doc" in rarevote("annotators", FILES.labels, "-o", tmp_path / "a.doc", code=1).stderr
    assert "no such file" in rarevote("annotators", tmp_path / "absent.csv", "-o", out, code=1).stderr
    assert not list(tmp_path.iterdir())


def test_agreement_and_who_errs_alike_stand_below(made: Path) -> None:
    found = agreement(FILES.labels)
    told = (made / "stdout").read_text()
    low, high = found.intervals["alpha"]
    assert re.search(rf"Krippendorff's alpha +{found.alpha:.3f} +{low:.3f} to {high:.3f}", told)
    assert re.search(rf"Gwet's AC1 +{found.ac1:.3f}", told)
    assert re.search(r"Judged by the votes of all others on [\d,]+ items, the \d+ annotators compared amount to", told)
