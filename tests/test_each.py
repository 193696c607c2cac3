"""Several labels in one crowd: every verb, file, page and record says of each label what it says of that label alone.

The crowd is made here, with labels of very different shares, and written twice: as an export with check boxes, and as a
plain table of yes and no for each label, which is what the export is held against.
"""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from benchmarks import labels

import rarevote as rv
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.io.read.labels import known_by_label
from rarevote.page.each import worst_pair
from tests.command import rarevote, rows

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")

SHARES = {
    "crack": 0.08,
    "dent": 0.3,
    "rust: light": 0.6,
}  # a name with the mark that pairs have, and one that is common
N_ITEMS, N_WORKERS, N_VOTES = 60, 9, 5
UNVOTED = ["i90", "i91"]
TIMES = ("seconds", "n_iter")


class Made:
    """The answers, the truth, and both ways of writing them."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(3)
        self.folder = folder
        self.items = [f"i{number:02d}" for number in range(N_ITEMS)]
        self.true = {
            name: dict(zip(self.items, rng.random(N_ITEMS) < share, strict=True)) for name, share in SHARES.items()
        }
        skill = {name: 0.65 + 0.3 * rng.random(N_WORKERS) for name in SHARES}
        self.answers: list[tuple[str, str, list[str]]] = []
        for item in self.items:
            for worker in np.sort(rng.permutation(N_WORKERS)[:N_VOTES]):
                ticked = [
                    name
                    for name in SHARES
                    if self.true[name][item] == (rng.random() < skill[name][worker])
                ]  # fmt: skip
                self.answers.append((item, f"w{worker}", ticked))
        tasks: dict[str, dict[str, Any]] = {
            item: {"id": item, "data": {"text": f"part {item}"}, "annotations": []} for item in [*self.items, *UNVOTED]
        }
        for item, worker, ticked in self.answers:
            result = [{"from_name": "damage", "to_name": "t", "type": "choices", "value": {"choices": ticked}}]
            tasks[item]["annotations"].append({"id": 1, "completed_by": worker, "result": result if ticked else []})
        self.export = folder / "boxes.json"
        self.export.write_text(json.dumps(list(tasks.values())), encoding="utf-8")
        self.alone = {name: self._table(number, name) for number, name in enumerate(SHARES)}
        self.truth = self._write("truth.csv", [(f"{i}:{name}", v) for name in SHARES for i, v in self._yes_no(name)])
        self.truth_alone = {
            name: self._write(f"truth-{number}.csv", self._yes_no(name)) for number, name in enumerate(SHARES)
        }

    def _yes_no(self, name: str) -> list[tuple[str, str]]:
        return [(item, "yes" if is_true else "no") for item, is_true in self.true[name].items()]

    def _table(self, number: int, name: str) -> Path:
        path = self.folder / f"alone-{number}.csv"
        with path.open("w", newline="", encoding="utf-8") as handle:
            votes = [
                (item, worker, "yes" if name in ticked else "no", f"part {item}")
                for item, worker, ticked in self.answers
            ]
            csv.writer(handle).writerows([("task", "worker", "label", "text"), *votes])
        return path

    def _write(self, name: str, labels: list[tuple[str, str]]) -> Path:
        with (self.folder / name).open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows([("task", "label"), *labels])
        return self.folder / name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("labels"))


@pytest.fixture(scope="module")
def items(made: Made) -> Path:
    path = made.folder / "items.txt"
    path.write_text("\n".join([*made.items, *UNVOTED]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def each(made: Made) -> rv.ResultEach:
    return rv.fit_each(made.export, multilabel=True, show=["text"]).decide()


@pytest.fixture(scope="module")
def alone(made: Made, items: Path) -> dict[str, rv.Result]:
    return {name: rv.fit(path, show=["text"], items=items).decide() for name, path in made.alone.items()}


# --------------------------------------------------------------------------------------------------------------------
# the crowd


def test_the_crowd_of_each_label(made: Made) -> None:
    crowd = rv.read(made.export, multilabel=True)
    assert crowd.choices == tuple(SHARES)
    assert crowd.n_items == N_ITEMS + len(UNVOTED)
    assert "2 of 62 items have no votes" in crowd.notes
    assert list(crowd.by_label) == list(SHARES)
    for name, part in crowd.by_label.items():
        plain = rv.read(made.alone[name]).annotations
        for field in ("task_ptr", "worker", "label", "tasks", "workers", "classes"):
            assert getattr(part.annotations, field).tolist() == getattr(plain, field).tolist(), field
        # All items times all labels: also those that nobody answered.
        assert part.annotations.unanswered.tolist() == UNVOTED
        assert part.choice == name
        assert part.to_show["choice"].tolist() == [name] * 62
        assert part.to_show["text"].tolist() == [f"part {item}" for item in part.population.tolist()]
    one = rv.read(made.export, multilabel=True, choice="dent")
    assert one.annotations.label.tolist() == crowd.by_label["dent"].annotations.label.tolist()
    assert repr(crowd).endswith("3 labels)")


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_a_converted_export_is_several_problems_again(ending: str, made: Made, tmp_path: Path) -> None:
    """The task of its rows is the pair, which was read as an item, or pooled without a word."""
    out = tmp_path / f"rows.{ending}"
    rarevote("convert", made.export, "--multilabel", "--out", out)
    for options in ({}, {"multilabel": True}):
        crowd = rv.read(out, **options)  # type: ignore[arg-type]
        assert crowd.choices == tuple(SHARES)
        assert crowd.n_items == N_ITEMS
        for name, part in crowd.by_label.items():
            plain = rv.read(made.alone[name]).annotations
            assert part.annotations.tasks.tolist() == plain.tasks.tolist()
            assert part.annotations.label.tolist() == plain.label.tolist()
    assert not rv.read(out, multilabel=False).choices
    assert not rv.read(made.alone["dent"]).choices


def test_items_that_a_list_names_have_every_label(made: Made, tmp_path: Path) -> None:
    wanted = [*made.items, *UNVOTED, "i95"]
    path = tmp_path / "all.txt"
    path.write_text("\n".join(wanted), encoding="utf-8")
    crowd = rv.read(made.export, multilabel=True, items=path)
    assert crowd.n_items == 63
    assert {part.annotations.unanswered.tolist()[-1] for part in crowd.by_label.values()} == {"i95"}
    with pytest.raises(InputError, match="items with votes are not in the list"):
        rv.read(made.export, multilabel=True, items=["i00"])


def test_what_is_about_one_problem_is_refused(made: Made) -> None:
    with pytest.raises(ParameterError, match=r"3 labels .*rarevote.fit_each\(crowd\)"):
        rv.fit(made.export, multilabel=True)
    with pytest.raises(ParameterError, match="fit_each"):
        rv.compare(made.export, ["majority-vote"], multilabel=True)
    crowd = rv.read(made.export, multilabel=True)
    for refused in (rv.DawidSkene().fit, rv.agreement):
        with pytest.raises(ParameterError, match="each a separate problem"):
            refused(crowd)
    with pytest.raises(ParameterError, match="is one problem"):
        rv.fit_each(made.alone["dent"])
    with pytest.raises(ParameterError, match="checkpoint is about one problem"):
        rv.fit_each(made.export, multilabel=True, checkpoint="x")
    with pytest.raises(ParameterError, match="no such choice; the choices are crack, dent"):
        rv.read(made.export, multilabel=True, choice="scratch")
    with pytest.raises(ParameterError, match="several choices"):
        rv.read(made.alone["dent"], choice="dent")
    for option, value in (("--model-out", "m.model"), ("--checkpoint", "folder")):
        done = rarevote("aggregate", made.export, "--multilabel", "--out", "r.csv", option, value, code=2)
        assert "is for one choice: name it with --choice" in done.stderr
    done = rarevote("aggregate", made.alone["dent"], "--out", "r.csv", "--sheet-out", "s.csv", code=2)
    assert "--multilabel" in done.stderr


# --------------------------------------------------------------------------------------------------------------------
# the same as each label alone


def test_each_label_is_decided_as_alone(each: rv.ResultEach, alone: dict[str, rv.Result]) -> None:
    assert list(each) == list(SHARES)
    for name, one in each.items():
        ours, theirs = one, alone[name]
        assert ours.tasks.tolist() == theirs.tasks.tolist()
        assert ours.codes.tolist() == theirs.codes.tolist()
        assert np.array_equal(ours.probabilities.p, theirs.probabilities.p)
        assert ours.fitted.rare == theirs.fitted.rare
        assert ours.expect() == theirs.expect()
    html = each._repr_html_()
    assert all(f"{each.flagged(name)}" in html for name in SHARES)
    # The point of it: the labels have rare classes and shares of their own.
    assert [one.fitted.rare.name for one in each.values()] == ["yes", "yes", "no"]


def _without(record: Any) -> Any:
    """Without times, and without the labels that a proposed command reads."""
    if isinstance(record, dict):
        return {key: _without(value) for key, value in record.items() if key not in TIMES}
    if isinstance(record, str):
        return re.sub(r"(?<=audit start ).*?(?= --find)", "LABELS", record)
    return [_without(value) for value in record] if isinstance(record, list) else record


VERBS = {
    "aggregate": ["--out", "{out}", "--truth", "{truth}"],
    "aggregate by cost": ["--out", "{out}", "--cost", "no:yes=1,yes:no=9", "--max-review", "4", "--review-out",
                          "{list}"],
    "check": [],
    "annotators": [],
    "plan": ["--budget", "6"],
    "explain": ["--task", "i07", "--task", "i11"],
    "compare": ["--truth", "{truth}", "--methods", "majority-vote,dawid-skene"],
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_of_a_label_what_it_says_of_it_alone(
    verb: str, made: Made, items: Path, tmp_path: Path
) -> None:
    def said(labels: Path, truth: Path, *words: Any) -> Any:
        place = {"out": str(tmp_path / "r.csv"), "list": str(tmp_path / "l.csv"), "truth": str(truth)}
        given = [word.format(**place) for word in VERBS[verb]]
        return json.loads(rarevote(verb.split()[0], labels, *words, *given, "--json").stdout)

    # Without --show a review list shows what the export has; the plain table has nothing else.
    every = said(made.export, made.truth, "--multilabel", "--show", "text")
    assert list(every) == list(SHARES)
    for name, table in made.alone.items():
        one = said(table, made.truth_alone[name], "--show", "text", "--items", items)
        assert _without(every[name]) == _without(one), name
        if (verb, name) == ("check", "crack"):  # the command that it proposes reads this label
            assert re.search(r"boxes.json .*--multilabel .*--choice crack --find", json.dumps(every[name]))
        if verb != "aggregate":
            continue
        chosen = said(made.export, made.truth_alone[name], "--multilabel", "--choice", name, "--show", "text")
        assert _without(chosen) == _without(one), name


@pytest.fixture(scope="module")
def html(made: Made) -> str:
    """The page, without its charts, whose drawing takes seconds."""
    page = made.folder / "page.html"
    with mock.patch("rarevote.page.report.to_svg", return_value='<svg viewBox="0 0 1 1"></svg>'):
        rarevote("report", made.export, "--multilabel", "--show", "text", "--truth", made.truth, "--out", page)
    return page.read_text(encoding="utf-8")


def test_all_places_have_the_same_numbers(made: Made, each: rv.ResultEach, html: str, tmp_path: Path) -> None:
    long, sheet = tmp_path / "long.csv", tmp_path / "sheet.csv"
    done = rarevote("aggregate", made.export, "--multilabel", "--out", long, "--sheet-out", sheet, "--show", "text")
    terminal = {line.split("  ")[0]: line for line in done.stderr.splitlines()}
    summary = each.summary()
    by_label = {name: [row for row in rows(long.read_text()) if row["choice"] == name] for name in SHARES}
    wide = rows(sheet.read_text())
    assert [row["task"] for row in wide] == [*made.items, *UNVOTED]
    assert [row["text"] for row in wide] == [f"part {item}" for item in [*made.items, *UNVOTED]]
    overview = re.search(r'<section id="each">(.*?)</section>', html, re.S)
    assert overview is not None
    for name, one in each.items():
        table = by_label[name]
        assert [row["task"] for row in table] == [f"{row['item']}:{name}" for row in table]
        assert [row["item"] for row in table] == one.tasks.tolist()
        assert [row["label"] for row in table] == one.labels.tolist()
        assert [row[name] for row in wide] == one.labels.tolist()
        yes = one.probabilities.p[:, 1]
        assert [float(row["p:yes"]) for row in table] == pytest.approx(yes.tolist(), rel=1e-5)
        assert [float(row[f"p:{name}"]) for row in wide] == pytest.approx(yes.tolist(), rel=1e-5)
        flagged = [row["label"] for row in table].count("yes")
        n_votes = sum(int(row["votes"]) for row in table)
        assert flagged == each.flagged(name) == summary[name]["classes"]["yes"]["tasks"]
        assert n_votes == N_ITEMS * N_VOTES == summary[name]["n_annotations"]
        assert summary[name]["n_tasks"] == N_ITEMS + len(UNVOTED)
        line = terminal[name].removeprefix(name).split()
        assert line == ["300", "62", "yes", line[3], str(flagged), f"{100 * flagged / 62:.1f}%"]
        row = re.search(rf'<tr><th scope="row">{name}</th>(.*?)</tr>', overview[1])
        assert row is not None
        cells = re.findall("<td>(.*?)</td>", row[1])
        ticks = sum(name in ticked for _, _, ticked in made.answers)
        assert cells[:4] == ["62", "300", str(ticks), str(flagged)]
        expected = one.decision.expected[1].prevalence
        shown = [float(number) for number in re.findall(r"[\d.]+", cells[4])]
        wanted = [62 * expected.value, 62 * expected.low, 62 * expected.high]
        assert shown == pytest.approx(wanted, rel=0.05, abs=0.5)
    assert f"62 items, 3 choices: {each.flagged('crack')} “crack”" in unescape(html)


def test_the_page_has_a_section_for_each_label(html: str, each: rv.ResultEach) -> None:
    ids = re.findall(r'id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    for number, name in enumerate(SHARES, 1):
        assert f'<section id="choice-{number}-result" class="result">\n<h2>{name}</h2>' in html
        for part in ("look", "annotators", "trade-off", "truth", "fit"):
            assert f'<section id="choice-{number}-{part}">' in html
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])  # type: ignore[index]
    assert set(data["lists"]) <= set(ids)
    for number, one in enumerate(each.values(), 1):
        leading = one.fitted.diagnose(one).leading
        assert data["of"][f"choice-{number}-"] == {"classes": ["no", "yes"], "rare": -1 if leading is None else leading}
    assert {row[0] for row in data["lists"]["choice-2-items"]["rows"]} == set(each["dent"].tasks.tolist()) - set(
        UNVOTED
    )


def test_who_agrees_least() -> None:
    """By Cohen's kappa, written out; pairs with few items in common do not count."""
    rng = np.random.default_rng(5)
    said = {worker: rng.random(12) < 0.5 for worker in "uvwx"}
    votes = [(f"t{i:02d}", w, "yes" if said[w][i] else "no") for w in "uvwx" for i in range(12 if w != "x" else 9)]
    kappas = {}
    for one, other in (("u", "v"), ("u", "w"), ("v", "w")):
        a, b = said[one], said[other]
        chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
        kappas[one, other] = ((a == b).mean() - chance) / (1 - chance)
    (one, other), kappa = min(kappas.items(), key=lambda entry: entry[1])
    assert worst_pair(rv.fit(votes).diagnose()) == f"{one} and {other} (kappa {kappa:.2f} on 12 items)"
    assert worst_pair(rv.fit(votes[:3] + votes[-3:]).diagnose()) == "no two share 10 items"


@pytest.mark.prove
def test_charts_of_each_label_and_what_an_audit_proved(made: Made, each: rv.ResultEach, tmp_path: Path) -> None:
    audit = each.fitted.audit("crack", 0.8, confidence=0.8, seed=1)
    report = each.report(tmp_path / "page.html", charts=tmp_path / "charts", audits={"crack": audit})
    html = report.page.read_text(encoding="utf-8")
    assert '<section id="choice-1-proved">' in html
    assert '<section id="choice-2-proved">' not in html
    assert len({path.name for path in report.charts}) == len(report.charts)
    assert all(path.is_file() for path in report.charts)


def test_lists_for_people_are_of_each_label(
    made: Made, each: rv.ResultEach, alone: dict[str, rv.Result], tmp_path: Path
) -> None:
    plans = each.review(4, tmp_path / "list.csv")
    table = rows((tmp_path / "list.csv").read_text())
    assert [row["task"] for row in table] == [
        f"{item.task}:{name}" for name, plan in plans.items() for item in plan.items
    ]
    assert [row["text"] for row in table] == [f"part {row['item']}" for row in table]
    for name, plan in plans.items():
        assert plan == alone[name].review(4)
        assert [row["item"] for row in table if row["choice"] == name] == [item.task for item in plan.items]
    each.plan(5, tmp_path / "plan.json", form="label-studio")
    asked = json.loads((tmp_path / "plan.json").read_text())
    assert {task["data"]["choice"] for task in asked} == set(SHARES)
    assert all(task["data"]["task"] == f"{task['data']['item']}:{task['data']['choice']}" for task in asked)


def test_answers_to_a_review_list_are_gold_of_their_label(made: Made, tmp_path: Path) -> None:
    known = [("i03:crack", "yes"), ("i04:crack", "no"), ("i03:dent", "no")]
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n" + "".join(f"{task},{label}\n" for task, label in known), encoding="utf-8")
    each = rv.fit_each(made.export, multilabel=True, gold=gold)
    assert each["crack"].gold == {"i03": "yes", "i04": "no"}
    assert each["dent"].gold == {"i03": "no"}
    assert each["rust: light"].gold == {}
    by_label = rv.fit_each(made.export, multilabel=True, gold={"crack": {"i03": "yes", "i04": "no"}})
    assert np.array_equal(by_label["crack"].probabilities, each["crack"].probabilities)
    one = rv.fit(made.alone["crack"], gold={"i03": "yes", "i04": "no"}, items=[*made.items, *UNVOTED])
    assert np.array_equal(one.probabilities, each["crack"].probabilities)


def test_truth_scores_each_label(made: Made, each: rv.ResultEach, alone: dict[str, rv.Result], tmp_path: Path) -> None:
    scores = each.score(made.truth)
    for name, one in alone.items():
        assert scores[name] == one.score(made.truth_alone[name])
    each.write(tmp_path / "long.csv")
    told = json.loads(rarevote("score", tmp_path / "long.csv", "--truth", made.truth, "--json").stdout)
    assert list(told) == list(SHARES)
    for name in SHARES:
        assert told[name]["recall"] == pytest.approx(scores[name]["recall"])
        assert told[name]["n_items"] == N_ITEMS
    assert "crack\n=====" in rarevote("score", tmp_path / "long.csv", "--truth", made.truth).stdout


def test_truth_and_gold_as_a_sheet(made: Made, each: rv.ResultEach, tmp_path: Path) -> None:
    """A row for each item and a column for each label, as --sheet-out writes them."""
    sheet = tmp_path / "sheet.csv"
    with sheet.open("w", newline="", encoding="utf-8") as handle:
        cells = [[item, *("x" if made.true[name][item] else "0" for name in SHARES)] for item in made.items]
        csv.writer(handle).writerows([["item", *SHARES], *cells])
    assert each.score(sheet) == each.score(made.truth)
    done = rarevote("aggregate", made.export, "--multilabel", "--truth", sheet, "--out", tmp_path / "r.csv", "--json")
    assert json.loads(done.stdout)["dent"]["scores"]["recall"] == each.score(made.truth)["dent"]["recall"]
    sheet.write_text("task,crack,dent\ni00,yes,\ni01,,no\n", encoding="utf-8")
    gold = rv.fit_each(made.export, multilabel=True, gold=sheet)
    assert [one.gold for one in gold.values()] == [{"i00": "yes"}, {"i01": "no"}, {}]
    sheet.write_text("task,crack\ni00,perhaps\n", encoding="utf-8")
    with pytest.raises(InputError, match="column 'crack' has 'perhaps': values must be yes or no"):
        each.score(sheet)
    sheet.write_text("task,scratch\ni00,yes\n", encoding="utf-8")
    with pytest.raises(InputError, match="label"):
        each.score(sheet)


def test_a_recall_target_is_that_of_its_label(made: Made, each: rv.ResultEach, alone: dict[str, rv.Result]) -> None:
    aimed = each.fitted.decide(min_recall={"crack": 0.95})
    wanted = alone["crack"].fitted.decide(min_recall={"yes": 0.95})
    assert aimed["crack"].codes.tolist() == wanted.codes.tolist()
    assert aimed["crack"].target is not None
    assert aimed["dent"].codes.tolist() == each["dent"].codes.tolist()
    done = rarevote("aggregate", made.export, "--multilabel", "--min-recall", "crack=0.95", "--out", "r.csv", "--json")
    assert json.loads(done.stdout)["crack"]["classes"]["yes"]["tasks"] == aimed.flagged("crack")
    both = each.fitted.decide(min_recall={"yes": 0.9})
    assert all(one.target is not None for one in both.values())
    shares = each.fitted.decide(prevalence={"crack": 0.2})
    again = alone["crack"].fitted.decide(prevalence={"yes": 0.2, "no": 0.8})
    assert np.array_equal(shares["crack"].probabilities.p, again.probabilities.p)
    with pytest.raises(ParameterError, match="nothing is named 'scratch'; the names are crack"):
        each.fitted.decide(min_recall={"scratch": 0.9})


def test_labels_go_back_to_the_platform(made: Made, each: rv.ResultEach, tmp_path: Path) -> None:
    rarevote("aggregate", made.export, "--multilabel", "--out", tmp_path / "r.csv", "--back-out", tmp_path / "b.json")
    back = json.loads((tmp_path / "b.json").read_text())
    labels = {name: dict(zip(one.tasks.tolist(), one.labels.tolist(), strict=True)) for name, one in each.items()}
    for task in back:
        said = [c for p in task.get("predictions", []) for r in p["result"] for c in r["value"]["choices"]]
        assert sorted(said) == sorted(name for name in SHARES if labels[name].get(str(task["id"])) == "yes")
    with pytest.raises(InputError, match="all choices of an item together"):
        rv.fit(made.export, multilabel=True, choice="dent").decide().write_back(tmp_path / "c.json")


def test_new_items_of_one_label(made: Made, each: rv.ResultEach, tmp_path: Path) -> None:
    model, out = tmp_path / "dent.model", tmp_path / "r.csv"
    one = ("--multilabel", "--choice", "dent")
    rarevote("aggregate", made.export, *one, "--model-out", model, "--out", out)
    rarevote("predict", model, made.export, *one, "--out", out)
    voted = [row["label"] for row in rows(out.read_text())]
    ours = each["dent"].labels[:N_ITEMS].tolist()
    assert np.mean([a == b for a, b in zip(voted, ours, strict=True)]) > 0.9
    done = rarevote("predict", model, made.export, "--multilabel", "--out", out, code=2)
    assert "3 labels (crack, dent, rust: light), each a separate problem: name one: --choice crack" in done.stderr


@pytest.mark.usefixtures("short_chains")
def test_an_audit_is_that_of_one_label(made: Made, each: rv.ResultEach, tmp_path: Path) -> None:
    plan, listed = tmp_path / "audit.json", tmp_path / "round-1.csv"
    rarevote("audit", "start", made.export, "--multilabel", "--find", "dent=0.8", "--confidence", "0.8",
             "--plan", plan, "--review-out", listed)  # fmt: skip
    kept = json.loads(plan.read_text())
    assert kept["class"] == "yes"
    assert kept["source"]["reading"]["choice"] == "dent"
    asked = rows(listed.read_text())
    assert {row["choice"] for row in asked} == {"dent"}
    assert {row["task"] for row in asked} <= {*made.items, *UNVOTED}
    answers = tmp_path / "answers.csv"
    true = {item: "yes" if is_true else "no" for item, is_true in made.true["dent"].items()}
    answers.write_text("task,label\n" + "".join(f"{row['task']},{true.get(row['task'], 'no')}\n" for row in asked))
    rarevote("audit", "continue", plan, "--answers", answers, "--review-out", tmp_path / "round-2.csv")
    assert each.fitted.audit("crack", 0.8, confidence=0.8, seed=1).plan.name == "yes"


def test_features_are_those_of_the_items(made: Made) -> None:
    given = np.array([[float(made.true["dent"][item]), 1.0] for item in made.items])
    features = (made.items, given)
    each = rv.fit_each(made.export, multilabel=True, features=features)
    one = rv.fit(made.alone["dent"], features=features, items=[*made.items, *UNVOTED])
    assert np.array_equal(each["dent"].probabilities, one.probabilities)
    assert each["dent"].features_ is not None


def test_warnings_name_their_label() -> None:
    crowd = _pairs([("a", "u", ["x"]), ("b", "u", ["x"]), ("a", "v", ["x", "y"])])
    with pytest.warns(RarevoteWarning) as caught:
        rv.fit_each(crowd).decide()
    said = [str(one.message) for one in caught]
    assert any(words.startswith(("x: ", "y: ")) for words in said), said


def test_an_item_that_stands_twice_in_a_sheet(tmp_path: Path) -> None:
    crowd = _pairs([("a", "u", ["x"]), ("b", "u", ["y"])])
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("task,x,y\na,yes,\na,,no\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        known_by_label(crowd, sheet)
    assert str(caught.value) == f"{sheet}: task 'a' occurs twice (line 3); a row has all labels of an item"


def _pairs(answers: list[tuple[str, str, list[str]]]) -> rv.Crowd:
    from rarevote.crowd.names import as_name_array
    from rarevote.crowd.population import population

    names = sorted({name for _, _, ticked in answers for name in ticked})
    votes = [(f"{i}:{n}", w, "yes" if n in ticked else "no") for i, w, ticked in answers for n in names]
    plain = rv.Annotations.from_arrays(*(np.array(column, dtype=object) for column in zip(*votes, strict=True)))
    tasks = population(plain).tolist()
    shown = {part: as_name_array([task.split(":")[at] for task in tasks]) for at, part in enumerate(("item", "choice"))}
    return rv.Crowd(plain, shown=shown, choices=tuple(names))


def test_questions_are_problems_too(tmp_path: Path) -> None:
    fixture = Path(__file__).parent / "io" / "platforms" / "fixtures" / "toloka.tsv"
    each = rv.fit_each(fixture, "majority-vote", question="all")
    crowds = rv.read_each(fixture)
    wanted = {"result", *(f"tags: {name}" for name in crowds["tags"].choices)}
    assert set(each) == wanted
    assert each.by == "question"
    result = each.decide()
    out = tmp_path / "out"
    files = result.write_folder(out)
    assert {path.name for path in out.iterdir()} == {path.name for path in files.values()}
    rarevote("aggregate", fixture, "--question", "all", "-m", "majority-vote", "--out", tmp_path / "again")
    for path in out.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    sheet = result.sheet()
    assert sheet["result"].tolist() == [
        dict(zip(result["result"].tasks.tolist(), result["result"].labels.tolist(), strict=True)).get(task, "")
        for task in sheet["task"].tolist()
    ]
    with pytest.raises(ParameterError, match="one question"):
        result.write_back(tmp_path / "b.json")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("crowd", ["medical relations", "amazon reviews"])
def test_real_crowds_of_two_labels(crowd: str, shared_folder: Path, tmp_path: Path) -> None:
    """To the last bit what each label's own table gives, though they were asked of the same people."""
    sets = labels.CROWDS[crowd]
    with mock.patch.object(labels, "DATASETS", shared_folder / "datasets"):
        export = labels.written(sets, tmp_path / "export.jsonl")
    each = rv.fit_each(export, multilabel=True).decide()
    assert list(each) == list(sets)
    for label, slug in sets.items():
        alone = rv.fit(shared_folder / "datasets" / slug / "labels.csv").decide()
        one = each[label]
        assert one.tasks.tolist() == alone.tasks.tolist()
        assert one.codes.tolist() == alone.codes.tolist()
        assert np.array_equal(one.probabilities.p, alone.probabilities.p)
    sheet = each.sheet()
    assert len(sheet["task"]) == len({task for one in each.values() for task in one.tasks.tolist()})
