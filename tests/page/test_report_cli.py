"""``rarevote report`` and the example's page: files in, one file out, and a clear word where that cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from rarevote.errors import InputError
from rarevote.page.report import check_page_path
from rarevote.simulate.files import example_files
from tests.command import rarevote, rows

ROWS = "task,worker,label,text\n1,a,yes,one <b>\n1,b,no,\n1,c,no,\n2,a,yes,two\n2,b,yes,\n3,a,no,three\n3,c,no,\n"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(ROWS)
    return path


def test_one_file_comes_out(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = rarevote("report", labels, "--out", out, "--rare", "yes", "--show", "text", "--method", "majority-vote")
    assert done.stdout == ""
    assert f"wrote {out}" in done.stderr
    assert "3 items: 1 is flagged as “yes”" in done.stderr
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "one \\u003cb\\u003e" in text
    assert str(tmp_path) not in text, "the page names no folder of the machine that made it"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "page.html"]


def test_truth_gold_charts_and_json(labels: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    known.write_text("task,label\n1,no\n2,yes\n3,no\n")
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n3,no\n")
    out, folder = tmp_path / "page.html", tmp_path / "deep" / "charts"
    done = rarevote(
        "report", labels, "-o", out, "--truth", known, "--gold", gold, "--charts", folder, "--json", "--quiet"
    )
    said = json.loads(done.stdout)
    assert said["page"] == str(out)
    assert said["bytes"] == out.stat().st_size
    assert {Path(path).suffix for path in said["charts"]} == {".svg", ".png"}
    assert all(Path(path).is_file() for path in said["charts"])
    text = out.read_text(encoding="utf-8")
    assert "Against the truth" in text
    assert "1 true label not counted: the fit was given them as gold" in text


def test_settings_are_told(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    rarevote("report", labels, "-o", out, "-m", "cc-rasch", "--set", "sigma_alpha=0.7", "--set", "prior=estimate")
    text = out.read_text(encoding="utf-8")
    assert "sigma_alpha=0.7, prior=&#39;estimate&#39;" in text
    assert "the method&#39;s own labels" in text


def failure(*arguments: str | Path, code: int = 1) -> str:
    return rarevote("report", *arguments, code=code).stderr


def test_pages_that_cannot_be_written(labels: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert "no folder" in failure(labels, "-o", tmp_path / "absent" / "page.html")
    assert "ends in .html" in failure(labels, "-o", tmp_path / "page.pdf")
    folder = tmp_path / "folder.html"
    folder.mkdir()
    assert "is a folder" in failure(labels, "-o", folder)
    folder.rmdir()
    assert "is the input" in failure(labels, "-o", tmp_path / "page.html", "--charts", labels, code=2)
    assert "cannot be written" in failure(labels, "-o", tmp_path / "page.html", "--charts", labels / "below")
    other = tmp_path / "other"
    other.touch()
    assert "is a file" in failure(labels, "-o", tmp_path / "page.html", "--charts", other)
    other.unlink()
    assert sorted(tmp_path.iterdir()) == before, "nothing half-written"


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The user who runs the tests may be allowed everything, so the answer of the system is played.
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="no permission"):
        check_page_path(tmp_path / "page.html")


def test_input_that_does_not_fit(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert "'maybe' is not a class" in failure(labels, "-o", out, "--rare", "maybe", code=2)
    assert "no column 'absent'" in failure(labels, "-o", out, "--show", "absent")
    assert "nonsense" in failure(labels, "-o", out, "--method", "nonsense", code=2)
    other = tmp_path / "truth.csv"
    other.write_text("task,label\nelsewhere,yes\n")
    assert "none of the tasks" in failure(labels, "-o", out, "--truth", other)
    empty = tmp_path / "empty.csv"
    empty.write_text("task,worker,label\n")
    assert "no annotations" in failure(empty, "-o", out)
    assert not out.exists()


def test_an_older_page_survives_a_failure(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    out.write_text("older")
    failure(labels, "-o", out, "--rare", "maybe", code=2)
    assert out.read_text() == "older"


def test_the_page_of_the_example(tmp_path: Path) -> None:
    path = tmp_path / "rails.html"
    rarevote("report", example_files().labels, "--truth", example_files().truth, "-o", path, "-q")
    text = path.read_text(encoding="utf-8")
    assert re.search(r"<h1>3,000 items: \d+ are flagged as “defect”; the truth has 120\.</h1>", text)
    assert str(example_files().labels.parent) not in text
    assert path.stat().st_size < 1_000_000


def test_the_page_shows_the_decision(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    # Where missing a "yes" costs a million times a false alarm, everything is called "yes".
    done = rarevote("report", labels, "-o", out, "--rare", "yes", "--cost", "no:yes=1,yes:no=1000000", "--json")
    said = json.loads(done.stdout)
    # ... but for an item that nobody called so.
    assert said["headline"].startswith("3 items: 2 are flagged as “yes”")
    assert said["decision"]["rule"] == "least expected cost"
    cost, flag_all = said["decision"]["expected_cost"], said["decision"]["cost_of_flagging_all"]
    text = out.read_text(encoding="utf-8")
    assert (
        f"<dd>least expected cost; expected cost of these decisions: {cost:,.1f}; of labelling every item yes: " in text
    )
    # The item without a vote for yes may be one all the same, at a million: to label it so would cost less.
    assert flag_all < cost
    assert "Labelling every item yes is expected to cost less than these decisions</dd>" in text


def test_a_recall_that_cannot_be_promised_is_a_caution(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = rarevote("report", labels, "-o", out, "--min-recall", "yes=0.9")
    assert "warning: the recall of yes is not promised" in done.stderr
    text = out.read_text(encoding="utf-8")
    assert "<dd>recall of yes at least 0.9</dd>" in text
    assert "The recall of yes is not promised" in text[: text.index("What a majority vote")]


def test_items_without_an_answer(labels: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    known.write_text("task,label\n1,no\n2,yes\n3,no\n")
    out = tmp_path / "page.html"
    rarevote("report", labels, "-o", out, "--rare", "yes", "--abstain-below", "1", "--truth", known)
    text = out.read_text(encoding="utf-8")
    assert "<dt>No answer</dt><dd>3 items" in text
    assert text.count('"no answer"') == 3
    assert '<th scope="col">no answer</th>' in text


def test_the_truth_of_items_without_votes_is_missed_as_in_a_score(tmp_path: Path) -> None:
    """Every third item of the rare class has no votes: no figure by the truth may leave it out."""
    truth = {f"t{n:02d}": "yes" if n % 4 == 0 else "no" for n in range(60)}
    unvoted = [task for task, label in truth.items() if label == "yes"][::3]
    votes = [
        (task, f"w{w}", truth[task] if (n + w) % 5 else "no")
        for n, task in enumerate(truth)
        for w in range(3)
        if task not in unvoted
    ]
    (tmp_path / "votes.csv").write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in votes))
    (tmp_path / "items.txt").write_text("\n".join(truth))
    (tmp_path / "truth.csv").write_text("task,label\n" + "".join(f"{t},{y}\n" for t, y in truth.items()))
    given = (tmp_path / "votes.csv", "--items", tmp_path / "items.txt", "--truth", tmp_path / "truth.csv")
    scores = json.loads(rarevote("aggregate", *given, "-o", tmp_path / "r.csv", "--json").stdout)["scores"]
    said = json.loads(rarevote("report", *given, "-o", tmp_path / "page.html", "--json").stdout)
    labels = {row["task"]: row["label"] for row in rows((tmp_path / "r.csv").read_text())}
    recall = sum(labels[task] == "yes" for task in truth if truth[task] == "yes") / 15
    assert recall <= 10 / 15
    assert scores["recall"]["yes"] == pytest.approx(recall)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    flagged = list(labels.values()).count("yes")
    assert said["headline"] == f"60 items: {flagged} are flagged as “yes”; the truth has 15; 5 items have no label."
    assert "By the truth of 60 items" in page
    assert f" and {100 * recall:.0f}% of all “yes” are found" in page
    assert "Against 60 true labels" in page
    shown = {words: f"{scores[name]:.3f}" for words, name in (("balanced accuracy", "balanced_accuracy"),
             ("macro-F1", "macro_f1"), ("accuracy", "accuracy"))}  # fmt: skip
    for words, figure in shown.items():
        assert re.search(rf">{words}</t[dh]>\s*<td[^>]*>{re.escape(figure)}<", page), words
    assert '<th scope="col">no answer</th>' in page
    assert "<dt>Without votes</dt><dd>5 items have no votes</dd>" in page


def test_decisions_share_their_options_with_aggregate() -> None:
    from rarevote.cli import app

    options: dict[str, set[str]] = {}
    for name in ("aggregate", "report"):
        command = app.get_command(click.Context(app), name)
        assert command is not None
        options[name] = {option for one in command.params for option in one.opts}
    only_there = options["aggregate"] - options["report"]
    assert only_there == {
        "--calibrate", "--with-posterior", "--with-prior", "--model-out", "--back-out", "--soft-out", "--engine",
            "--sheet-out",
        "--scheduler", "--checkpoint", "--checkpoint-every", "--strict", "--spreadsheet-safe", "--verbose", "-v",
    }  # fmt: skip
    assert options["report"] - options["aggregate"] == {"--charts", "--audit", "--anonymous"}


def test_a_mistaken_decision_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    wrong = failure(tmp_path / "absent.csv", "-o", out, "--cost", "a:b=1", "--min-recall", "a=0.5", code=2)
    assert "cannot be used together" in wrong
    assert not out.exists()
