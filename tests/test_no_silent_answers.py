"""What once gave a wrong answer without a word: folders that replaced columns, names of another type, rows in another
order, half files of a killed writer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rarevote
from rarevote import Annotations, MajorityVote
from rarevote.cli.options.reading import Reading
from rarevote.crowd.names import find_name, in_kind, unmatched
from rarevote.errors import InputError, RarevoteWarning
from rarevote.io.duck import connection
from rarevote.io.read.frames import read_truth
from rarevote.io.read.results import read_result
from rarevote.io.read.votes import read_label_files, read_truth_file
from rarevote.io.write.columns import write_columns
from rarevote.scoring.metrics import confusion_matrix, log_loss, score
from tests.command import rarevote as command

FORMATS = ["csv", "tsv", "json", "ndjson", "parquet", "xlsx", "arrow"]
VOTES: dict[str, Any] = {
    "task": ["a", "a", "b", "b", "c"],
    "worker": ["x", "y", "x", "y", "x"],
    "label": ["no", "yes", "no", "no", "yes"],
}


def written(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, values in columns.items():
        arrays[name] = np.array(values, dtype=object if isinstance(values[0], str) else None)
    write_columns(arrays, path)
    return path


# --------------------------------------------------------------------------------------------------------------------
# folders on the way


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("folder", ["label=v2", "task=1", "worker=w", "label=v2/day=1"])
def test_a_folder_on_the_path_changes_no_votes(tmp_path: Path, ending: str, folder: str) -> None:
    path = written(tmp_path / folder / f"votes.{ending}", VOTES)
    crowd = read_label_files(path).annotations
    assert crowd.classes.tolist() == ["no", "yes"]
    assert crowd.tasks.tolist() == ["a", "b", "c"]
    assert crowd.workers.tolist() == ["x", "y"]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_folder_on_the_path_changes_no_known_labels_and_no_result(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path / "label=v2" / "task=q" / f"truth.{ending}", {"task": ["a", "b"], "label": ["no", "yes"]})
    assert read_truth_file(path) == {"a": "no", "b": "yes"}
    assert read_result(path).labels == {"a": "no", "b": "yes"}


@pytest.mark.parametrize("ending", ["csv", "json", "ndjson", "parquet"])
def test_folders_say_what_no_column_does_and_that_is_said(tmp_path: Path, ending: str) -> None:
    for label in ("no", "not%20sure"):
        rows = {"task": ["a", "b"], "worker": [f"x{label}", "y"]}
        written(tmp_path / "votes" / f"label={label}" / f"part.{ending}", rows)
    with pytest.warns(
        RarevoteWarning, match=r"no column 'label'; the label comes from the folder name \(label=\.\.\.\)"
    ):
        crowd = read_label_files(tmp_path / "votes").annotations
    assert crowd.classes.tolist() == ["no", "not sure"]
    assert crowd.n_annotations == 4


def test_wide_tables_take_no_folder_for_an_annotator(tmp_path: Path) -> None:
    path = written(tmp_path / "day=1" / "wide.csv", {"task": ["a", "b"], "ann": ["no", "yes"], "bob": ["no", "no"]})
    assert read_label_files(path, wide=True).annotations.workers.tolist() == ["ann", "bob"]


def test_names_on_disk_survive_a_temporary_folder_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from rarevote.io.read import encode as encode_files

    scratch = tmp_path / "name=x"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(encode_files, "OUT_OF_CORE_BYTES", 1)
    crowd = read_label_files(written(tmp_path / "votes.parquet", VOTES)).annotations
    assert not isinstance(crowd.tasks, np.ndarray)  # they are on disk
    assert crowd.tasks.tolist() == ["a", "b", "c"]
    assert crowd.tasks.find(["b", "x"]).tolist() == [1, -1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dask_reads_parts_as_one_machine_does(tmp_path: Path, ending: str) -> None:
    from rarevote.cluster.parts import find_parts

    path = written(tmp_path / "label=v2" / f"votes.{ending}", VOTES)
    (part,) = find_parts(path).readers
    assert part.compute(scheduler="synchronous").frame["label"].tolist() == VOTES["label"]
    path = written(tmp_path / "label=v2" / f"short.{ending}", {"task": ["a"], "worker": ["x"]})
    with pytest.warns(RarevoteWarning, match="the label comes from the folder name"):
        (part,) = find_parts(path).readers
    assert part.compute(scheduler="synchronous").frame["label"].tolist() == ["v2"]


# --------------------------------------------------------------------------------------------------------------------
# names of another type


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        (["0", "1"], [0, 1], [0, 1]),
        (["7"], [1, 2], [7]),
        ([0, 1], ["0", "1"], ["0", "1"]),
        (["true", "False"], [True, False], [True, False]),
        ([True], ["True", "False"], ["True"]),
        ([True], ["true", "false"], ["true"]),
        (["1", "0.5"], [1.0, 0.5], [1.0, 0.5]),
        ([1.0], ["1.0"], ["1.0"]),
        ([1.0], [1, 2], [1.0]),
        (["1"], [True, False], ["1"]),
        ([1], [1, "1"], [1]),
        (["1"], [1, "1"], ["1"]),
        (["x"], [1, 2], ["x"]),
        ([], [1], []),
        (["x"], [], ["x"]),
    ],
)
def test_names_meet_the_type_of_the_data(given: list[Any], known: list[Any], expected: list[Any]) -> None:
    from rarevote.crowd.names import as_name_array

    found = in_kind(given, as_name_array(known))
    assert found == expected
    if known and expected and expected[0] in known:
        assert [isinstance(name, bool) for name in found] == [isinstance(name, bool) for name in expected]


def test_what_matches_nothing_is_told() -> None:
    known = np.array([1, 2, 3])
    assert unmatched(["2", "x", 3.0], known) == ["x"]
    assert find_name("3", known) == 2
    assert find_name("true", known) is None


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("labels", [[0, 1, 0, 0, 9], ["0", "1", "0", "0", "9"]])
def test_classes_and_abstentions_by_text_in_every_format(tmp_path: Path, ending: str, labels: list[Any]) -> None:
    path = written(tmp_path / f"votes.{ending}", {**VOTES, "label": labels})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crowd = read_label_files(path, classes=["0", "1"], abstain=["9"]).annotations
    assert [str(name) for name in crowd.classes.tolist()] == ["0", "1"]
    assert crowd.abstentions == {"x": 1}
    assert crowd.unanswered.tolist() == ["c"]


def test_a_class_or_an_abstention_that_matches_nothing_is_a_warning(tmp_path: Path) -> None:
    reading = Reading([str(written(tmp_path / "votes.csv", VOTES))], classes=["no", "maybe"])
    with pytest.warns(RarevoteWarning, match=r"no vote is for 'maybe' \(classes\): the classes with votes are no, yes"):
        assert reading.read().annotations.n_classes == 3
    votes = (VOTES["task"], VOTES["worker"], VOTES["label"])
    with pytest.warns(RarevoteWarning, match=r"none of the answers is 'Skip' \(abstain\): the answers are no, yes"):
        assert Annotations.from_arrays(*votes, abstain=["Skip"]).n_annotations == 5


# --------------------------------------------------------------------------------------------------------------------
# rows in another order


def test_scores_pair_series_by_index() -> None:
    truth = pd.Series(["x", "y", "z"], index=["a", "b", "c"])
    again = truth.loc[["c", "a", "b"]]
    assert rarevote.score(truth, again).accuracy == 1.0
    assert score(truth, again).accuracy == 1.0
    assert confusion_matrix(truth, again).tolist() == np.eye(3, dtype=int).tolist()
    assert rarevote.score(truth.to_dict(), again).accuracy == 1.0
    assert rarevote.score(truth.tolist(), again.tolist()).accuracy == 0.0  # neither says whose they are


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("xyz")), min_size=1, max_size=12), st.randoms())
def test_scores_do_not_depend_on_the_order_of_rows(pairs: list[tuple[str, str]], draw: Any) -> None:
    tasks = [f"t{i}" for i in range(len(pairs))]
    truth, said = (pd.Series([pair[side] for pair in pairs], index=tasks) for side in (0, 1))
    expected = sum(one == other for one, other in pairs) / len(pairs)
    orders = [draw.sample(tasks, len(tasks)) for _ in range(2)]
    assert rarevote.score(truth.loc[orders[0]], said.loc[orders[1]]).accuracy == pytest.approx(expected)


def test_scores_of_a_fit_pair_by_task_whatever_kind_it_has() -> None:
    frame = pd.DataFrame(VOTES)
    truth = pd.Series(["yes", "no"], index=["c", "b"])
    for data in (frame, (frame["task"], frame["worker"], frame["label"])):
        fitted = MajorityVote().fit(data)
        found = rarevote.score(truth, fitted.labels_)
        assert (found.n_items, found.accuracy) == (2, 1.0)
        loss = log_loss(truth, fitted.probas_, classes=["no", "yes"])
        assert loss == pytest.approx(0.0, abs=1e-12)
        assert log_loss(truth, fitted.probas_, classes=["yes", "no"]) == pytest.approx(0.0, abs=1e-12)


def test_scores_that_cannot_be_paired_are_refused() -> None:
    truth = pd.Series(["x", "y"], index=["a", "b"])
    with pytest.raises(InputError, match="the other side does not"):
        rarevote.score(truth, ["x", "y"])
    with pytest.raises(InputError, match="the other side does not"):
        rarevote.score(["x", "y"], truth)
    with pytest.raises(InputError, match="no common task"):
        rarevote.score(truth, pd.Series(["x", "y"], index=[0, 1]))
    with pytest.raises(InputError, match="'a' more than once"):
        rarevote.score(truth, pd.Series(["x", "y"], index=["a", "a"]))
    with pytest.warns(RarevoteWarning, match="left out: 1 task of the truth without an answer"):
        assert rarevote.score(truth, truth[:1]).n_items == 1
    # Nobody indexed these: pandas only counted the rows.
    assert rarevote.score(pd.Series(["x", "y"]), ["x", "y"]).accuracy == 1.0


def test_columns_in_another_order_are_refused() -> None:
    frame = pd.DataFrame(VOTES)
    shuffled = frame["label"].iloc[::-1]
    with pytest.raises(InputError, match="the index of label is not that of task"):
        MajorityVote().fit((frame["task"], frame["worker"], shuffled))
    with pytest.raises(InputError, match="the index of label is not that of task"):
        read_truth((frame["task"], shuffled))


# --------------------------------------------------------------------------------------------------------------------
# half files


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "csv.gz"])
def test_a_writer_uses_no_visible_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    copies: list[str] = []

    class Listening:
        def __init__(self, database: Any) -> None:
            self.database = database

        def execute(self, query: str, *given: Any) -> Any:
            copies.extend([query] if query.startswith("COPY") else [])
            return self.database.execute(query, *given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.database, name)

    @contextmanager
    def listened(**options: Any) -> Iterator[Any]:
        with connection(**options) as database:
            yield Listening(database)

    monkeypatch.setattr("rarevote.io.write.columns.connection", listened)
    write_columns({"task": np.array(["a"], dtype=object)}, tmp_path / f"result.{ending}")
    assert len(copies) == 1
    assert "USE_TMP_FILE false" in copies[0]


def test_folders_are_read_without_what_a_killed_writer_left(tmp_path: Path) -> None:
    written(tmp_path / "votes.csv", VOTES)
    for name in ("tmp_.result.csv", ".hidden.csv", "_temporary.csv", "~$votes.csv"):
        (tmp_path / name).write_text("task,worker,label\nq,q,q\n")
    assert read_label_files(tmp_path).annotations.n_annotations == 5
    # Somebody's own file may be called so.
    (tmp_path / "tmp_votes.csv").write_text("task,worker,label\nq,q,q\n")
    assert read_label_files(tmp_path).annotations.n_annotations == 6


def test_class_options_of_the_command_line_meet_numbers(tmp_path: Path) -> None:
    crowd = rarevote.simulate_crowd(300, 20, random_state=1)
    task, worker, label = crowd.arrays
    rows = {"task": task.tolist(), "worker": worker.tolist(), "label": label.tolist()}
    truth = written(tmp_path / "truth.csv", {"task": list(range(300)), "label": crowd.truth.tolist()})
    for ending in ("parquet", "json"):
        path = written(tmp_path / f"sim.{ending}", rows)
        answers = []
        for extra in ([], ["--class", "0", "--class", "1"]):
            done = command("aggregate", path, "--truth", truth, "--json", "-o", tmp_path / "r.csv", *extra)
            summary = json.loads(done.stdout)
            answers.append((summary["classes"], summary["scores"]))
        assert answers[0] == answers[1]
        assert len(answers[0][0]) == 2
