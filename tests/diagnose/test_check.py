"""Whether labels may be used: crowds of which the answer is known, in Python and on the command line."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote as library
from rarevote.crowd.rare import RareClass
from rarevote.crowd.words import percent
from rarevote.decide.expectations import Expected
from rarevote.diagnose.check import QUESTIONS, Check, Finding, _of_fit, reliability
from rarevote.diagnose.model_fit import Statistic
from rarevote.diagnose.verdict import VERDICTS
from rarevote.errors import InputError, RarevoteWarning
from rarevote.simulate.files import example_files
from tests.command import rarevote
from tests.diagnose.test_model_fit import anchored_crowd, copying_crowd

pytestmark = pytest.mark.usefixtures("short_chains")

Rows = list[tuple[Any, Any, Any]]


def checked(data: Any, method: str = "anchored-rasch", **options: Any) -> Check:
    return library.fit(data, method, **options).check()


def crowd(
    n_tasks: int = 300, n_workers: int = 12, per_task: int = 5, accuracy: float = 0.9, share: float = 0.3, seed: int = 0
) -> Rows:
    """Everybody right with the same chance."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for task in range(n_tasks):
        truth = rng.random() < share
        for worker in rng.choice(n_workers, per_task, replace=False).tolist():
            said = truth if rng.random() < accuracy else not truth
            rows.append((f"t{task}", f"w{worker}", "defect" if said else "sound"))
    return rows


def shorts(found: Check) -> list[str]:
    return [one.short for one in found.findings if one.weight != "note"]


# --------------------------------------------------------------------------------------------------------------------
# verdicts


def test_a_crowd_that_never_disagrees_is_too_good() -> None:
    """A public crowd agrees on every item and is wrong on a third of them."""
    assert "annotators never disagree" in shorts(checked(crowd(accuracy=1.0)))
    assert "annotators never disagree" not in shorts(checked(crowd(accuracy=0.99)))
    assert "annotators never disagree" not in shorts(checked(crowd(n_tasks=40, accuracy=1.0)))


def test_a_good_crowd_can_be_used() -> None:
    found = checked(crowd())
    share = found.accuracy
    assert share.value >= 0.9
    assert found.verdict == (
        f"can be used: {100 * share.value:.0f}% of the labels are expected to be right "
        f"({100 * share.low:.0f}% to {100 * share.high:.0f}%)"
    )
    assert found.reasons == ()
    assert not found.cannot_answer
    assert {one.question for one in found.findings} == set(QUESTIONS)
    assert {one.weight for one in found.findings} == {"note"}


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_of_the_model_is_not_accused_of_misfit(seed: int) -> None:
    found = checked(anchored_crowd(seed))
    assert not [one for one in found.answers("fit") if one.weight != "note"]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(f"t{i}", "ann", "ab"[i % 2]) for i in range(40)], "all votes are by one annotator (ann)"),
        ([(f"t{i}", f"w{i % 7}", "ab"[i % 2]) for i in range(40)], "no two annotators voted on the same item"),
        (
            [("t0", "w9", "a"), *((f"t{i}", f"w{i % 7}", "ab"[i % 2]) for i in range(100))],
            "only 1 of 100 items has votes of more than one annotator",
        ),
    ],
)
def test_crowds_that_cannot_answer(rows: Rows, why: str) -> None:
    found = checked(rows)
    assert found.cannot_answer
    assert found.verdict == f"do not use: {why}"
    assert found.fit is None
    assert {one.question for one in found.findings} == {"crowd"}


def test_guesses_are_not_used() -> None:
    rng = np.random.default_rng(0)
    rows = [(i, f"w{r}", int(rng.integers(2))) for i in range(400) for r in range(5)]
    found = checked(rows)
    assert found.agreement.alpha < 0.05
    assert found.verdict.startswith("do not use: annotators agree hardly more than by chance")


def test_little_agreement_needs_care_unless_there_are_many_votes() -> None:
    assert "annotators agree little" in shorts(checked(crowd(400, accuracy=0.68, share=0.5, per_task=3)))
    assert "annotators agree little" not in shorts(checked(crowd(400, 30, accuracy=0.68, share=0.5, per_task=20)))


def test_reliability_is_the_correlation_of_two_means_of_votes() -> None:
    """Spearman and Brown's formula against simulated votes: a true score and independent errors."""
    rng = np.random.default_rng(0)
    alpha, n_votes = 0.3, 6
    truth = np.sqrt(alpha) * rng.standard_normal(200_000)

    def mean() -> Any:
        return truth + np.sqrt((1 - alpha) / n_votes) * rng.standard_normal(200_000)

    assert np.corrcoef(mean(), mean())[0, 1] == pytest.approx(reliability(alpha, n_votes), abs=0.01)


def test_who_votes() -> None:
    seldom = [(f"t{i}", f"p{i}-{j}", "ab"[i % 2]) for i in range(60) for j in range(3)]
    assert "most votes are by people with few votes" in shorts(checked(seldom))
    busy = [(f"t{i}", name, "ab"[i % 2]) for i in range(200) for name in ["ann", f"w{i % 2}"][: 1 + (i % 5 == 0)]]
    assert "ann cast 83% of the votes" in shorts(checked(busy))
    assert "most items have one vote" in shorts(checked(busy))
    nameless = [(task, {"w0": "anonymous"}.get(worker, worker), label) for task, worker, label in crowd(n_workers=6)]
    assert "annotators without a name" in shorts(checked(nameless))


def test_answers_that_are_no_votes_and_classes_that_are_hardly_there() -> None:
    rows = [*crowd(), *((f"t{i}", "w99", "not sure") for i in range(20)), ("t0", "w98", "other")]
    found = checked(rows)
    assert "not sure counts as a class" in shorts(found)
    assert any("abstain=" in one.description for one in found.answers("crowd"))
    assert any("other (1)" in one.description for one in found.answers("crowd"))


def test_models_that_err_alike_and_outvote_the_rest() -> None:
    rng = np.random.default_rng(0)
    rows: Rows = []
    gold: dict[int, int] = {}
    for task in range(400):
        truth = int(rng.random() < 0.4)
        if task < 100:
            gold[task] = truth
        shared = truth if rng.random() < 0.7 else 1 - truth
        rows += [(task, f"model-{j}", shared) for j in range(4)]
        rows += [(task, f"w{j}", truth if rng.random() < 0.85 else 1 - truth) for j in range(3)]
    found = checked(rows, gold=gold)
    assert found.alike.warnings
    assert "a few who make the same mistakes outvote the rest" in shorts(found)


def test_copies_are_found_by_one_way_or_the_other() -> None:
    assert "some annotators agree more than independent ones would" in shorts(checked(copying_crowd(0.85)))


def test_a_rare_class_that_votes_tell_little_about_points_to_an_audit() -> None:
    found = checked(example_files().labels, rare="defect")
    words = " ".join(one.description for one in found.answers("trust"))
    assert found.reasons == ("the recall of defect is unknown without an audit",)
    assert "rarevote audit start LABELS --find defect=0.9" in words
    assert "“defect” that cannot be promised" in words


def test_the_command_that_is_named_is_one(tmp_path: Path) -> None:
    rows = [(task, worker, {"sound": "all fine"}.get(label, label)) for task, worker, label in crowd(200, share=0.8)]
    found = checked(rows, rare="all fine")
    (words,) = [one.description for one in found.findings if "rarevote audit" in one.description]
    command = shlex.split(words.partition("rarevote ")[2])
    assert "all fine=0.9" in command
    votes = write(tmp_path / "votes.csv", rows)
    rarevote(*(str(votes) if word == "LABELS" else word for word in command), folder=tmp_path)
    assert (tmp_path / "audit.json").exists()


def test_a_tiny_class_is_told_and_does_not_decide() -> None:
    good = crowd()
    found = library.fit(good).check()
    assert found.fit is not None
    off = Statistic("joined", "other", 0.5, 0.2, 0.1, 0.3, is_off=True)
    share = Statistic("share", "other", 0.02, 0.02, 0.01, 0.03, is_off=False)
    tiny = replace(found.fit, statistics=(share, off))
    method = library.fit(good).method
    assert [one.weight for one in _of_fit(method, tiny, 0.6, "defect")] == ["note"]
    assert [one.weight for one in _of_fit(method, tiny, 0.6, "other")] == ["care"]
    large = replace(found.fit, statistics=(replace(share, observed=0.2), off))
    assert [one.weight for one in _of_fit(method, large, 0.6, "defect")] == ["care"]
    assert [one.weight for one in _of_fit(method, large, 0.95, "defect")] == ["note"]


def test_labels_far_from_the_votes() -> None:
    rng = np.random.default_rng(0)
    rows = [(i, f"w{rng.integers(30)}-{j}", int(rng.integers(6))) for i in range(300) for j in range(2)]
    with pytest.warns(RarevoteWarning):
        found = library.fit(rows, "dawid-skene").check()
    assert found.weight != "note"


def test_methods_without_chances_get_the_rest() -> None:
    found = checked(crowd(), "majority-vote")
    (said,) = found.answers("fit")
    assert said.weight == "note"
    assert "majority-vote cannot say how likely a vote is" in said.description
    assert found.figures()["fit"] is None
    assert found.answers("trust")


def test_a_fit_that_did_not_settle() -> None:
    estimator = library.AnchoredRasch(1)
    with pytest.warns(RarevoteWarning):
        found = library.fit(crowd(accuracy=0.75), estimator).check()
    assert "the fit did not converge" in shorts(found)


def test_nothing_to_check() -> None:
    from rarevote.diagnose.check import check_fit

    estimator = library.MajorityVote().fit(([], [], []))
    with pytest.raises(InputError, match="there is nothing to check"):
        check_fit(estimator, None, None, (), rare=RareClass((), None))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["anchored-rasch", "cc-rasch", "dawid-skene", "majority-vote"])
def test_a_crowd_of_one_class(method: str) -> None:
    found = checked([(i, f"w{j}", "fine") for i in range(30) for j in range(3)], method)
    assert any("All votes are for one class" in one.description for one in found.answers("crowd"))
    assert json.dumps(found.figures(), allow_nan=False)


def test_a_verdict_goes_by_the_expected_accuracy_and_the_rest_are_reasons() -> None:
    found = checked(crowd())
    for value, words in ((0.9, "can be used"), (0.89, "use with care"), (0.65, "use with care"), (0.64, "do not use")):
        other = replace(found, accuracy=Expected(value, 0.5, 1.0), findings=(Finding("fit", "care", "A.", "a"),))
        assert other.verdict == f"{words}: {100 * value:.0f}% of the labels are expected to be right (50% to 100%)"
        assert other.figures()["verdict"] == words
        assert other.reasons == ("a",)
        assert not other.cannot_answer
    stopped = replace(found, findings=(Finding("crowd", "stop", "B.", "b"),))
    assert (stopped.verdict, stopped.cannot_answer) == ("do not use: b", True)


def jury(n_tasks: int = 300) -> Rows:
    return [(task, f"model:{worker}", label) for task, worker, label in crowd(n_tasks, 5, 5, accuracy=0.97)]


def test_a_jury_of_models_cannot_be_used_without_gold() -> None:
    of_models, of_people = checked(jury()), checked([(t, w.removeprefix("model:"), k) for t, w, k in jury()])
    assert of_people.weight == "note"
    assert of_models.weight == "care"
    assert "no gold and no audit shows" in of_models.verdict
    assert "most votes are by models" in of_models.reasons
    # The labels' curve is moved by one on the scale of log odds: fewer are expected to be right.
    share = {name: of_people.accuracy.worlds[name].value for name in ("shared", "independent")}
    assert of_models.accuracy.worlds["shared"].value < share["shared"] - 0.02
    assert of_models.accuracy.worlds["independent"].value == pytest.approx(share["independent"], abs=0.02)
    with_gold = checked(jury(), gold={"t0": "defect", "t1": "sound"})
    assert "most votes are by models" not in with_gold.reasons
    mixed = [(t, w if w in ("model:w0", "model:w1") else w.removeprefix("model:"), k) for t, w, k in jury()]
    assert "most votes are by models" not in checked(mixed).reasons


def test_a_class_that_is_explained_away() -> None:
    """Thirteen judges say "bad" now and then: 18% of the votes, and the method takes almost all for errors."""
    rng = np.random.default_rng(0)
    rows = [
        (i, f"m{j}", "bad" if rng.random() < (0.9 if i < 12 else 0.15) else "ok") for i in range(300) for j in range(13)
    ]
    with pytest.warns(RarevoteWarning, match=r"almost all votes for bad are explained as errors \(18% of the votes"):
        result = library.fit(rows, "dawid-skene").decide()
    assert result.probabilities.mean[0] < 0.35 * sum(label == "bad" for _, _, label in rows) / len(rows)
    assert "a class whose votes are explained as errors" in result.fitted.check(result).reasons
    # A share that was given is not the method's doing.
    assert not library.fit(rows, "dawid-skene").decide(prevalence={"bad": 0.04}).notes
    assert not library.fit(rows).decide().notes


def test_the_evidence_leans_to_shared_errors_where_some_err_alike() -> None:
    alike, apart = checked(copying_crowd(0.85)), checked(crowd(600, 8, 6, accuracy=0.8))
    assert alike.alike.clusters
    assert (alike.leaning.world, apart.leaning.world) == ("shared", "independent")
    assert alike.worlds[-1].startswith("the evidence leans to shared errors")
    nothing = checked([(f"t{i}", f"p{i}-{j}", "ab"[i % 2]) for i in range(60) for j in range(3)])
    assert nothing.leaning.world is None


def test_both_worlds_are_said_with_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(crowd(), rare="defect")
    independent, shared, _ = found.worlds
    for world, words in (("independent", independent), ("shared", shared)):
        recall = found.expected.recall.worlds[world]  # type: ignore[index]
        assert f"recall of defect {percent(recall.value)} ({percent(recall.low)} to {percent(recall.high)})" in words
        accuracy = found.accuracy.worlds[world]  # type: ignore[index]
        interval = f"{percent(accuracy.low)} to {percent(accuracy.high)}"
        assert words.endswith(f"labels {percent(accuracy.value)} ({interval})")
    monkeypatch.setattr("rarevote.decide.sampled.MAX_VOTES", 100)
    alone = checked(crowd(), rare="defect")
    assert alone.worlds == (alone.worlds[0], "independent errors are left out: there are more than 100 votes")
    assert alone.worlds[0].startswith("if they share errors")
    assert alone.expected.recall == found.expected.recall.worlds["shared"]


def test_no_warning_is_said_twice_and_none_is_raised() -> None:
    rows = [(f"t{i}", "ann", "ab"[i % 2]) for i in range(40)]
    library.fit(rows).check()  # warnings are errors here


def test_gold_and_another_decision_take_part() -> None:
    fitted = library.fit(crowd(), gold={"t0": "defect", "t1": "sound"}, rare="defect")
    with_costs = fitted.check(fitted.decide(costs="sound:defect=1,defect:sound=50"))
    assert with_costs.expected.recall.value >= fitted.check().expected.recall.value


def test_most_items_with_a_single_vote_are_told_as_by_the_decision() -> None:
    rows = [(f"t{i}", f"w{j}", "ab"[i % 3 == 0]) for i in range(40) for j in range(3)]
    rows += [(f"s{i}", "w0", "ab"[i % 3 == 0]) for i in range(50)]
    fitted = library.fit(rows)
    with pytest.warns(RarevoteWarning, match="50 of 90 items have a single vote"):
        (note,) = [note for note in fitted.decide().notes if note.kind == "single"]
    assert any("50 of 90 items have a single vote" in one.description for one in fitted.check().findings)
    assert note.description.startswith("50 of 90 items have a single vote")


def test_progress_is_told() -> None:
    seen: list[library.ProgressStep] = []
    library.fit(crowd(60)).check(progress=seen.append)
    simulated = [step for step in seen if step.what == "simulating votes from the model"]
    assert [(step.done, step.total) for step in simulated] == [(done, 200) for done in range(201)]


@pytest.mark.parametrize(
    ("slug", "reason", "fits"),
    [
        ("rte", None, True),
        ("dog", None, True),
        ("sp", None, True),
        ("face", "the votes differ from what anchored-rasch predicts", False),
        ("trec", "annotators agree little", True),
    ],
)
def test_real_crowds_are_not_condemned_for_trifles(
    shared_folder: Path, slug: str, reason: str | None, fits: bool
) -> None:
    found = checked(str(shared_folder / "datasets" / slug / "labels.csv"))
    assert found.weight in ("note", "care")
    assert reason is None or reason in found.reasons
    assert found.fit is not None
    assert (found.fit.off == ()) == fits


@pytest.mark.prove
def test_no_real_crowd_is_called_useless(shared_folder: Path) -> None:
    verdicts = [checked(str(path)).weight for path in sorted((shared_folder / "datasets").glob("*/labels.csv"))]
    assert verdicts.count("stop") <= len(verdicts) / 5
    assert verdicts.count("note") >= len(verdicts) / 5


# --------------------------------------------------------------------------------------------------------------------
# the command line


def write(path: Path, rows: Rows) -> Path:
    path.write_text("task,worker,label\n" + "".join(f"{t},{w},{label}\n" for t, w, label in rows))
    return path


def test_the_verb_says_what_python_says(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", crowd())
    done = rarevote("check", path)
    found = checked(str(path))
    told = done.stdout.splitlines()
    assert told[told.index(f"verdict: {found.verdict}") :] == [
        f"verdict: {found.verdict}",
        *map("   {}".format, found.reasons),
    ]
    assert "What to expect" in told
    for words in found.worlds:
        assert f"   {words[0].upper()}{words[1:]}." in told
    for title in QUESTIONS.values():
        assert title in done.stdout.splitlines()
    for one in found.findings:
        # The command that is named says which file it is about.
        assert one.description.split("--")[0].partition("rarevote audit")[0] in done.stdout
    assert "1,500 annotations" in done.stderr
    assert rarevote("check", path, "--quiet").stderr == ""


def test_the_figures(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", crowd())
    figures = json.loads(rarevote("check", path, "--json", "-q", "--rare", "defect").stdout)
    assert set(figures) == {
        "verdict", "words", "reasons", "cannot_answer", "method", "rare_class", "n_tasks", "n_without_votes",
        "n_workers", "n_annotations", "votes_per_task", "tasks_with_one_vote", "converged", "findings", "agreement",
        "fit", "errors_alike", "jury", "expected",
    }  # fmt: skip
    assert figures["verdict"] in VERDICTS.values()
    assert figures["rare_class"] == "defect"
    assert (figures["n_tasks"], figures["n_annotations"], figures["votes_per_task"]) == (300, 1500, 5.0)
    assert {one["question"] for one in figures["findings"]} == set(QUESTIONS)
    assert all(set(one) == {"question", "weight", "words", "short"} for one in figures["findings"])
    names = [(one["name"], one["class"]) for one in figures["fit"]["statistics"]]
    assert names == [("unanimous", None), ("top_share", None), ("agreement", None), ("share", "defect"),
                     ("joined", "defect"), ("joined", "sound")]  # fmt: skip
    for one in figures["fit"]["statistics"]:
        assert one["interval"][0] <= one["predicted"] <= one["interval"][1]
    assert set(figures["jury"]) == {"defect", "sound"}
    assert figures["expected"]["recall"]["is_told"] in (True, False)


def test_strict(tmp_path: Path) -> None:
    alone = write(tmp_path / "alone.csv", [(f"t{i}", "ann", "ab"[i % 2]) for i in range(40)])
    assert "verdict: do not use" in rarevote("check", alone).stdout
    done = rarevote("check", alone, "--strict", code=3)
    assert "verdict: do not use: all votes are by one annotator (ann)" in done.stdout
    assert json.loads(rarevote("check", alone, "--strict", "--json", "-q", code=3).stdout)["cannot_answer"] is True
    rarevote("check", write(tmp_path / "votes.csv", crowd()), "--strict")
    unsettled = ("--set", "n_iter=1", "--strict")
    rarevote("check", write(tmp_path / "hard.csv", crowd(accuracy=0.75)), *unsettled, code=3)


@pytest.mark.usefixtures("all_sweeps")
def test_the_how_to_shows_what_is_said(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "check.md").read_text(encoding="utf-8")
    shutil.copy(example_files().labels, tmp_path / "labels.csv")
    said = rarevote("check", "labels.csv", "--rare", "defect", "-q", folder=tmp_path).stdout
    assert f"```text\n{said}```" in page


def test_bad_input(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", crowd(30))
    assert "no such file" in rarevote("check", tmp_path / "absent.csv", code=1).stderr
    assert "'x' is not a class" in rarevote("check", path, "--rare", "x", code=2).stderr
    assert "unknown method" in rarevote("check", path, "-m", "x", code=2).stderr
    (tmp_path / "empty.csv").write_text("task,worker,label\n")
    done = rarevote("check", tmp_path / "empty.csv", code=1)
    assert done.stderr.count("\n") <= 2
    assert done.stdout == ""


def test_names_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    rows = [(task, "w\x1b[2J" if worker == "w0" else worker, label) for task, worker, label in crowd(60, 3, 3)]
    assert "\x1b" not in rarevote("check", write(tmp_path / "v.csv", rows), "-q").stdout
