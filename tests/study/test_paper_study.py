from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.methods.registry import METHODS as METHODS_BY_NAME
from rarevote.study.cells import StudyProgress
from rarevote.study.paper import PaperStudy, choose_datasets, choose_methods, run_paper_study
from rarevote.study.results import RESULT_COLUMNS
from rarevote.study.summaries import PAPER_METHODS
from tests.benchmark_data import PRINTED
from tests.command import rarevote
from tests.study.small_data import read_rows, register_fakes, write_dataset, write_rows

# Two-class and other datasets; what is written under their names is simulated.
SLUGS = {"rte": 2, "sp": 2, "product": 2, "cf": 3}
METHODS = ["majority-vote", "cc-rasch"]

RUN = """
import sys
from pathlib import Path
from rarevote.study.paper import run_paper_study

if __name__ == "__main__":
    run_paper_study(Path(sys.argv[2]), data=sys.argv[1], methods=["majority-vote", "cc-rasch"], n_jobs=2)
"""


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAREVOTE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for seed, (slug, n_classes) in enumerate(SLUGS.items()):
        write_dataset(folder, slug, n_classes=n_classes, seed=seed)
    return folder


def without_seconds(path: Path) -> list[dict[str, str]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in read_rows(path)]


def study_of(data: Path, out: Path, methods: list[str] | None = None) -> PaperStudy:
    return run_paper_study(out, data=data, methods=methods or METHODS, n_jobs=1)


def test_results_and_tables(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study = study_of(data, out)
    rows = read_rows(out / "results.csv")
    assert tuple(rows[0]) == RESULT_COLUMNS
    assert len(rows) == 33 * len(METHODS)
    here = [row for row in rows if row["dataset"] in SLUGS]
    assert all(0 <= float(row["minority_recall"]) <= 1 and row["seeds"] == "1" for row in here)
    assert all(not row["minority_recall"] and row["seeds"] == "0" for row in rows if row["dataset"] not in SLUGS)
    assert set(study.absent) == {row["dataset"] for row in rows} - set(SLUGS)
    written = {path.name for path in out.iterdir()}
    tables = ("per_dataset", "table_binary", "table_multiclass", "table_large_scale")
    assert written >= {f"{name}{ending}" for name in tables for ending in (".md", ".csv", ".tex")}
    assert written >= {"deviation.csv", "deviation_summary.csv", "deviation.md", "paired.csv", "paired.md"}
    assert written >= {"ablation.csv", "ablation.md", "cells"}
    assert not [name for name in written if name.startswith(".")]


def test_ranking_columns_equal_plain_loops_over_the_votes(data: Path, tmp_path: Path) -> None:
    """A majority vote's ranking is the share of votes for the class, which the files themselves tell."""
    study_of(data, tmp_path / "out", ["majority-vote", "dawid-skene"])
    rows = {(row["dataset"], row["method"]): row for row in read_rows(tmp_path / "out" / "results.csv")}
    for slug in SLUGS:
        truth = {row["task"]: row["label"] for row in read_rows(data / slug / "truth.csv")}
        votes: dict[str, list[str]] = {}
        for row in read_rows(data / slug / "labels.csv"):
            votes.setdefault(row["task"], []).append(row["label"])
        true = [truth[task] for task in votes]
        rare = min(sorted(set(true)), key=true.count)
        pairs = [(labels.count(rare) / len(labels), truth[task] == rare) for task, labels in votes.items()]
        found, total = rows[slug, "majority-vote"], true.count(rare)
        before = hits = 0
        precision = wins = 0.0
        reached: list[tuple[int, int]] = [(0, 0)]
        for level in sorted({share for share, _ in pairs}, reverse=True):
            tied = [own for share, own in pairs if share == level]
            p, n = sum(tied), len(tied) - sum(tied)
            precision += sum((hits + t) / (before + t + n * t / p) for t in range(1, p + 1))
            wins += n * (hits + p / 2)
            before, hits = before + len(tied), hits + p
            reached.append((before, hits))

        def at(flags: int, reached: list[tuple[int, int]] = reached) -> float:
            low = max(pair for pair in reached if pair[0] <= flags)
            high = min(pair for pair in reached if pair[0] >= flags)
            width = high[0] - low[0]
            return low[1] + ((high[1] - low[1]) * (flags - low[0]) / width if width else 0)

        flagged = int(float(rows[slug, "dawid-skene"]["flagged"]))
        expected = {
            "minority_items": total,
            "average_precision": precision / total,
            "roc_auc": wins / (total * (len(pairs) - total)),
            "r_precision": at(total) / total,
            "recall_at_ds": at(flagged) / total,
            "flags_90": next(flags for flags, n in reached if n >= 0.9 * total),
            "flags_95": next(flags for flags, n in reached if n >= 0.95 * total),
        }
        for name, value in expected.items():
            assert float(found[name]) == pytest.approx(value, abs=1e-5), (slug, name)


def test_without_dawid_skene_nothing_is_said_of_its_flags(data: Path, tmp_path: Path) -> None:
    study_of(data, tmp_path / "out")
    assert not any(row["recall_at_ds"] for row in read_rows(tmp_path / "out" / "results.csv"))


def test_operating_points_start_at_nothing_and_end_with_what_labels_find(data: Path, tmp_path: Path) -> None:
    study = study_of(data, tmp_path / "out")
    points = read_rows(tmp_path / "out" / "operating_points.csv")
    binary = [row for row in points if (row["sets_of"], row["method"]) == ("binary", "cc-rasch")]
    curve = [float(row["recall"]) for row in binary if row["kind"] == "ranking"]
    assert curve[0] == 0
    assert curve == sorted(curve)
    (own,) = (row for row in binary if row["kind"] == "own")
    results = [study.results[slug, "cc-rasch"] for slug, n_classes in SLUGS.items() if n_classes == 2]
    recalls = [row.minority_recall or 0.0 for row in results]
    assert float(own["recall"]) == pytest.approx(sum(recalls) / 3, abs=1e-6)
    flags = [(row.flagged or 0.0) / (row.minority_items or 1) for row in results]
    assert float(own["flags_per_item"]) == pytest.approx(sum(flags) / 3, abs=1e-6)


def test_the_ablation_decides_everything_by_one_rule_too(data: Path, tmp_path: Path) -> None:
    study_of(data, tmp_path / "out", ["majority-vote", "cc-rasch", "anchored-rasch"])
    rows = read_rows(tmp_path / "out" / "ablation.csv")
    assert {row["method"] for row in rows} == {"majority-vote", "cc-rasch", "anchored-rasch"}
    by_rule = {(row["method"], row["prior"], row["change"], row["sets_of"], row["decision"]): row for row in rows}
    assert {place[-1] for place in by_rule} == {"own", "balanced"}
    for place, row in by_rule.items():
        other = by_rule[*place[:-1], "balanced"]
        assert row["average_precision"] == other["average_precision"], "the ranking is the same whatever is decided"
    # Anchored Rasch decides by the balanced rule itself.
    ours = [by_rule["anchored-rasch", "", "", "binary", rule]["minority_recall"] for rule in ("own", "balanced")]
    assert ours[0] == ours[1]


def test_absent_datasets_appear_as_absent(data: Path, tmp_path: Path) -> None:
    study = study_of(data, tmp_path / "out")
    assert study.absent["jigsaw"] == "rarevote datasets import jigsaw FILE"
    lines = (tmp_path / "out" / "per_dataset.md").read_text(encoding="utf-8").splitlines()
    assert "| Jigsaw | absent | 6.13 | 19.93 | – | – |" in lines
    assert sum(line.startswith("| RTE |") for line in lines) == 1
    assert "Jigsaw" in (tmp_path / "out" / "table_binary.tex").read_text(encoding="utf-8")
    assert not {row["dataset"] for row in read_rows(tmp_path / "out" / "deviation.csv")} - set(SLUGS)


def test_deviations_are_ours_less_the_papers(data: Path, tmp_path: Path) -> None:
    study = study_of(data, tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "deviation.csv")
    assert len(rows) == len(SLUGS) * len(METHODS) * 2
    one = next(row for row in rows if (row["dataset"], row["method"], row["metric"]) == ("cf", "cc-rasch", "macro_f1"))
    ours = study.results["cf", "cc-rasch"].macro_f1
    assert ours is not None
    assert float(one["paper"]) == 0.754
    assert float(one["difference"]) == pytest.approx(ours - 0.754, abs=1e-6)


def test_ablation_rows(data: Path, tmp_path: Path) -> None:
    study = study_of(data, tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "ablation.csv")
    assert {row["change"] for row in rows} >= {"", "no difficulty", "one ability for all classes"}
    default = next(
        row for row in rows if (row["prior"], row["change"], row["sets_of"]) == ("uniform", "", "multiclass")
    )
    assert float(default["macro_f1"]) == pytest.approx(study.results["cf", "cc-rasch"].macro_f1, abs=1e-6)
    assert (default["sets"], default["method"]) == ("1", "cc-rasch")
    # The default variant of the ablation is the cell of the study.
    assert len(list((tmp_path / "out" / "cells").iterdir())) == len(SLUGS) * (1 + 5)


def test_rerunning_reads_finished_cells(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study_of(data, out)
    before = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    results = (out / "results.csv").read_text(encoding="utf-8")
    study_of(data, out)
    assert {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()} == before
    assert (out / "results.csv").read_text(encoding="utf-8") == results


@pytest.mark.prove
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_study_goes_on_where_it_was(tmp_path: Path) -> None:
    data, out, script = tmp_path / "data", tmp_path / "out", tmp_path / "run.py"
    for seed, one in enumerate(choose_datasets(None)[:12]):
        write_dataset(data, one.slug, n_tasks=300, n_classes=one.n_classes, seed=seed)
    script.write_text(RUN, encoding="utf-8")
    command = [sys.executable, str(script), str(data), str(out)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while len(list(out.glob("cells/[!.]*.json"))) < 3 and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "results.csv").exists(), "it was too fast to be killed half-way"
    _wait_for_group_to_end(process.pid, limit)

    kept = {path: path.read_text(encoding="utf-8") for path in out.glob("cells/[!.]*.json")}
    assert 3 <= len(kept) < 12 * 6
    seen: list[StudyProgress] = []
    run_paper_study(out, data=data, methods=METHODS, n_jobs=1, report=seen.append)
    assert (seen[0].done, seen[0].total) == (len(kept), 12 * 6)
    assert {path: path.read_text(encoding="utf-8") for path in kept} == kept
    run_paper_study(tmp_path / "fresh", data=data, methods=METHODS, n_jobs=1)
    assert without_seconds(out / "results.csv") == without_seconds(tmp_path / "fresh" / "results.csv")


def _wait_for_group_to_end(group: int, limit: float) -> None:
    """Workers notice that their parent is gone, instead of waiting for work for ever."""
    while time.monotonic() < limit:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("workers outlive the study that was killed")


def test_failures_and_methods_that_cannot_run_are_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_fakes(monkeypatch)
    study = study_of(data, tmp_path / "out", ["broken", "needs-weights", "two-classes", "chance", "majority-vote"])
    assert study.not_run == {"needs-weights": "no weights file"}
    assert study.methods == ["majority-vote", "broken", "two-classes", "chance"]
    assert sorted(study.failures) == sorted(f"{slug}, broken: ZeroDivisionError: no such luck" for slug in SLUGS)
    assert study.results["cf", "two-classes"].status == "not applicable"
    chance = study.results["rte", "chance"]
    assert chance.seeds == 4
    assert chance.minority_recall_sd is not None
    assert chance.minority_recall_sd > 0
    table = (tmp_path / "out" / "per_dataset.md").read_text(encoding="utf-8")
    assert "broken (failed)" in table
    assert not study.ablation


def test_no_method_that_can_run(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_fakes(monkeypatch)
    with pytest.raises(InputError, match="none of the methods can run here: no weights file"):
        study_of(data, tmp_path / "out", ["needs-weights"])


# --------------------------------------------------------------------------------------------------------------------
# bad input


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(ParameterError, match="did you mean cc-rasch"):
        choose_methods(["cc-rash"])
    with pytest.raises(ParameterError, match="did you mean rte"):
        choose_datasets(["rtee"])


def test_the_order_is_the_papers() -> None:
    assert choose_methods(["cc-rasch", "majority-vote", "cc-rasch"]) == ["majority-vote", "cc-rasch"]
    assert [one.slug for one in choose_datasets(["rte", "CF*", "cf"])] == ["cf", "cf-star", "rte"]


def test_anchored_rasch_stands_beside_the_papers_once_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS_BY_NAME, "anchored-rasch", METHODS_BY_NAME["cc-rasch"])
    assert choose_methods(None) == [*PAPER_METHODS, "anchored-rasch"]
    assert choose_methods(["anchored-rasch", "mace", "glad"]) == ["glad", "anchored-rasch", "mace"]


def test_data_folders_without_the_expected_files(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        study_of(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"labels\.csv"):
        study_of(tmp_path / "empty", tmp_path / "out")
    (data / "rte" / "truth.csv").unlink()
    with pytest.raises(InputError, match=r"has no truth\.csv"):
        study_of(data, tmp_path / "out")


def test_a_dataset_that_was_asked_for_must_be_there(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cifar10h"):
        run_paper_study(tmp_path / "out", data=data, methods=METHODS, datasets=["rte", "cifar10h"], n_jobs=1)


def test_truth_without_labels_is_counted_and_told(data: Path, tmp_path: Path) -> None:
    truth = [(row["task"], row["label"]) for row in read_rows(data / "rte" / "truth.csv")]
    write_rows(data / "rte" / "truth.csv", ("task", "label"), [*truth, ("x", "0"), ("y", "1")])
    study = study_of(data, tmp_path / "out")
    (note,) = study.notes
    assert "the truth of 2 of 62 tasks is left out" in note


def test_out_that_is_a_file(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="the folder cannot be created"):
        study_of(data, tmp_path / "out")


# --------------------------------------------------------------------------------------------------------------------
# command line


@pytest.mark.prove
def test_the_command_line(data: Path, tmp_path: Path) -> None:
    arguments = ["paper", "--data", str(data), "--out", str(tmp_path / "out"), "--jobs", "1", "--no-ablation"]
    shown = rarevote("study", *arguments, "--methods", "cc-rasch, majority-vote")
    assert "binary" in shown.stdout
    assert "absent datasets: loneliness-older-adults" in shown.stderr
    summary = rarevote("study", *arguments, "--methods", "majority-vote", "--datasets", "rte", "--json")
    found = json.loads(summary.stdout)
    assert found["datasets"] == ["rte"]
    assert found["absent"] == {}
    assert {one["method"] for one in found["means"]} == {"majority-vote"}
    quiet = rarevote("study", *arguments, "--methods", "majority-vote", "--quiet")
    assert quiet.stdout == quiet.stderr == ""


def test_the_command_line_fails_if_a_cell_did(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_fakes(monkeypatch)
    arguments = ["paper", "--data", str(data), "--out", str(tmp_path / "out"), "--jobs", "1", "--methods"]
    shown = rarevote("study", *arguments, "broken,majority-vote", code=1)
    assert "rte, broken: ZeroDivisionError" in shown.stderr
    assert (tmp_path / "out" / "results.csv").exists()


def test_names_that_say_nothing(tmp_path: Path) -> None:
    shown = rarevote("study", "paper", "--out", tmp_path, "--methods", " , ", code=2)
    assert "rarevote: error: " in shown.stderr


# --------------------------------------------------------------------------------------------------------------------
# real data


@pytest.mark.prove
def test_real_data(shared_folder: Path, tmp_path: Path) -> None:
    study = run_paper_study(tmp_path, data=shared_folder / "datasets", methods=METHODS, ablation=False, n_jobs=1)
    assert not study.failures
    assert set(study.absent) == {"jigsaw", "cifar10h"}
    means = [one for one in study.means() if one.against == "rows"]
    assert {one.sets for one in means if (one.table, one.regime) == ("binary", "all")} == {21}
    assert {one.sets for one in means if (one.table, one.regime) == ("multiclass", "all")} == {10}
    assert {(one.regime, one.sets) for one in means if one.table == "large-scale"} == {("annotations", 7), ("items", 3)}
    main = [one for one in means if one.regime in ("all", "annotations", "items")]
    assert max(abs(one.difference) for one in main) < 0.01
    exact: dict[str, int] = {}
    rows = read_rows(tmp_path / "deviation.csv")
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert (first["dataset"], first["method"]) == (second["dataset"], second["method"])
        near = all(abs(float(row["difference"])) < PRINTED for row in (first, second))
        exact[first["method"]] = exact.get(first["method"], 0) + near
    assert exact["majority-vote"] == 31
    assert exact["cc-rasch"] >= 21


def test_any_folder_of_datasets(tmp_path: Path) -> None:
    """Folders that the registry does not name are run under their names, and compared among themselves."""
    for seed, slug in enumerate(("north", "south", "west")):
        write_dataset(tmp_path / "data", slug, n_classes=3 if slug == "west" else 2, seed=seed)
    write_rows(tmp_path / "data" / "index.csv", ("slug", "source_group"), [("north", "shores"), ("south", "shores")])
    study = study_of(tmp_path / "data", tmp_path / "out")
    assert [(one.slug, one.n_classes, one.source_group) for one in study.sets] == [
        ("north", 2, "shores"), ("south", 2, "shores"), ("west", 3, "west"),
    ]  # fmt: skip
    assert not study.absent
    assert not study.means()  # the paper has no figures of these
    rows = {(row["dataset"], row["method"]): row for row in read_rows(tmp_path / "out" / "results.csv")}
    assert len(rows) == 3 * len(METHODS)
    truth = [row["label"] for row in read_rows(tmp_path / "data" / "north" / "truth.csv")]
    sizes = [truth.count(name) for name in set(truth)]
    assert study.sets[0].imbalance == max(sizes) / min(sizes)
    assert int(rows["north", "cc-rasch"]["minority_items"]) == min(sizes)
    of_binary = {row["method"]: row for row in read_rows(tmp_path / "out" / "table_binary.csv")}
    for method in METHODS:
        mean = sum(float(rows[slug, method]["minority_recall"]) for slug in ("north", "south")) / 2
        assert float(of_binary[method]["all_recall"]) == pytest.approx(mean)
    (paired,) = [
        one for one in study.paired()
        if (one.method, one.rival, one.sets_of, one.metric) == ("cc-rasch", "majority-vote", "all", "macro_f1")
    ]  # fmt: skip
    assert (paired.sets, paired.source_groups) == (3, 2)


def test_own_datasets_beside_the_papers_and_by_name(data: Path, tmp_path: Path) -> None:
    write_dataset(data, "mine", seed=9)
    assert [one.slug for one in choose_datasets(None, data)][-1] == "mine"
    assert len(choose_datasets(None, data)) == 34
    assert [one.slug for one in choose_datasets(["mine", "rte"], data)] == ["rte", "mine"]
    with pytest.raises(ParameterError, match="did you mean mine"):
        choose_datasets(["mimne"], data)
    done = rarevote(
        "study", "paper", "--data", data, "--datasets", "mine", "--methods", "majority-vote", "--out", tmp_path / "o"
    )
    (line,) = [line for line in done.stdout.split("\n") if line.startswith("mine")]
    (row,) = read_rows(tmp_path / "o" / "results.csv")
    assert f"{float(row['minority_recall']):.3f}" in line
    listed = json.loads(rarevote("datasets", "list", "--data", data, "--json").stdout)
    assert listed[-1]["slug"] == "mine"
    assert listed[-1]["here"] == str(data / "mine")
    assert json.loads(rarevote("datasets", "--data", data, "--json").stdout) == listed
    assert json.loads(rarevote("datasets", "--data", data, "--json", "list").stdout) == listed
