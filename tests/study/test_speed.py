"""Fits in processes of their own: figures, time limits, failures, and what is said about them; and the verbs."""

from __future__ import annotations

import csv
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.errors import InputError
from rarevote.study import speed
from rarevote.study.peers import one_fit
from rarevote.study.speed import OURS, PEER, Installation, SpeedRow, SpeedStudy
from tests.command import rarevote


def row(library: str, method: str, size: int, seconds: float | None, status: speed.Status = "done") -> SpeedRow:
    memory = None if seconds is None else 100.0
    return SpeedRow(library, "1", method, size, size // 5, 50, status, seconds, memory, memory)


def ours() -> Installation:
    found = speed.find_installation(OURS, sys.executable)
    assert found is not None
    return found


def test_the_same_labels_for_all(tmp_path: Path) -> None:
    path = tmp_path / "labels.npz"
    n_annotations, n_tasks, n_workers = speed.draw_labels(2000, path)
    with np.load(path) as file:
        assert len(file["task"]) == len(file["worker"]) == len(file["label"]) == n_annotations
        assert file["task"].max() == n_tasks - 1
        assert set(np.unique(file["label"])) == {0, 1}
    assert (n_tasks, n_workers) == (400, 50)
    assert abs(n_annotations - 2000) < 200


FAKE_PEER = """
class MajorityVote:
    def fit(self, frame):
        self.votes = frame.groupby(["task", "label"]).size()

class DawidSkene:
    def fit(self, frame):
        raise RuntimeError("cannot fit this")
"""


@pytest.mark.prove
def test_a_study_with_a_peer_that_fails_at_one_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "peer" / "crowdkit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "aggregation.py").write_text(FAKE_PEER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "peer"))
    installations = [ours(), Installation(PEER, sys.executable, "9")]
    methods = ["majority-vote", "dawid-skene", "cc-rasch"]
    study = SpeedStudy(installations, methods=methods, sizes=[500], time_limit=60)
    section = study.run(tmp_path)
    with (tmp_path / "speed.csv").open(newline="") as handle:
        rows = {(line["library"], line["method"]): line for line in csv.DictReader(handle)}
    # CC-Rasch is not a method of the peer's.
    assert len(rows) == len(study.trials()) == 5
    for library, method in [(OURS, "majority-vote"), (OURS, "cc-rasch"), (PEER, "majority-vote")]:
        line = rows[library, method]
        assert line["status"] == "done"
        assert float(line["seconds"]) > 0
        assert float(line["peak_mb"]) >= float(line["before_mb"]) > 10
    failed = rows[PEER, "dawid-skene"]
    assert (failed["status"], failed["seconds"]) == ("failed", "")
    assert failed["reason"] == "RuntimeError: cannot fit this"
    assert (tmp_path / "speed_seconds.svg").is_file()
    assert [line[4] for line in section.tables[0].rows][:2] == ["has none", "failed"]
    assert "Speed and memory" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_what_exceeds_the_limit_is_marked_and_not_tried_again(tmp_path: Path) -> None:
    section = SpeedStudy([ours()], methods=["cc-rasch"], sizes=[200, 100], time_limit=0.05).run(tmp_path)
    with (tmp_path / "speed.csv").open(newline="") as handle:
        assert [one["status"] for one in csv.DictReader(handle)] == ["exceeded", "skipped"]
    assert any("exceeded 0.05 s" in sentence for sentence in section.findings)
    assert [line[2] for line in section.tables[0].rows] == ["> 0.05", "not tried"]


def test_ratios_and_sentences() -> None:
    rows = [
        row(OURS, "glad", 10, 0.5),
        row(PEER, "glad", 10, 20.0),
        row(OURS, "glad", 100, 2.0),
        row(PEER, "glad", 100, None, "exceeded"),
        row(OURS, "cc-rasch", 10, 0.25),
    ]
    first, exceeded, alone = speed.findings(rows, 60)
    assert first.startswith("GLAD, 10 annotations: 0.5 s and 100 MB against 20 s")
    assert "40.0 times as fast" in first
    assert exceeded == "crowd-kit's GLAD exceeded 60 s at 100 annotations."
    assert "no such method" in alone
    table = speed._table(rows, 60)
    assert [line[-1] for line in table.rows] == ["–", "40.0", "> 30"]
    marked = [mark for mark in speed.marks(rows, "seconds", 60) if "exceeded" in mark.series]
    assert [(mark.x, mark.y) for mark in marked] == [(100, 60)]


def test_axes_end_at_powers_of_ten() -> None:
    axis = speed._decades("annotations", [9_982, 10_001_408], format="~s")
    assert axis.domain == (1e4, 1e7)
    assert speed._decades("seconds", [0.3, 4.0], format="~g").ticks == pytest.approx([0.1, 1, 10])


def test_a_python_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a working Python"):
        speed.find_installation(PEER, str(tmp_path / "python"))


def test_a_peer_gets_a_frame_and_the_clock_covers_fit_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[Any] = []

    class MajorityVote:
        def fit(self, frame: Any) -> None:
            frames.append(frame)

    package, module = types.ModuleType("crowdkit"), types.ModuleType("crowdkit.aggregation")
    module.MajorityVote = MajorityVote  # type: ignore[attr-defined]
    package.aggregation = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "crowdkit", package)
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", module)
    speed.draw_labels(1000, tmp_path / "labels.npz")
    found = one_fit.measure(PEER, "majority-vote", str(tmp_path / "labels.npz"))
    assert found["seconds"] < 0.1
    # A first fit on a few votes, then up to three on all.
    assert [len(frame) for frame in frames[:2]] == [40, len(frames[1])]
    assert list(frames[1].columns) == ["task", "worker", "label"]
    assert len(frames) == 4


def test_memory_of_this_process_grows_with_what_it_holds() -> None:
    before = one_fit.resident_mb("VmRSS")
    block = np.ones(8_000_000)
    assert one_fit.resident_mb("VmRSS") - before > 40
    assert one_fit.resident_mb("VmHWM") >= before
    del block


# ---- the verbs ------------------------------------------------------------------------------------------------------


@pytest.mark.prove
def test_theory_from_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    size = ["--seeds", "1", "--items", "80", "--jobs", "1"]
    rarevote("study", "theory", "--out", out, *size, "--methods", "majority-vote")
    assert {"index.html", "theory.md", "theory_growth.csv", "theory_error.png"} <= {path.name for path in out.iterdir()}


@pytest.mark.parametrize("verb", ["synthetic", "theory", "gold", "speed"])
def test_unknown_methods_are_refused_with_the_nearest(tmp_path: Path, verb: str) -> None:
    done = rarevote("study", verb, "--out", tmp_path, "--methods", "cc-rash", code=2)
    assert "did you mean cc-rasch" in done.stderr


def test_bad_sizes_folders_and_methods_that_need_gold(tmp_path: Path) -> None:
    done = rarevote("study", "speed", "--out", tmp_path, "--sizes", "many", code=2)
    assert "whole numbers" in done.stderr
    done = rarevote("study", "gold", "--out", tmp_path, "--data", tmp_path / "absent", code=1)
    assert "no such folder" in done.stderr
    done = rarevote("study", "synthetic", "--out", tmp_path, "--methods", "gold-dawid-skene", code=1)
    assert "cannot run here" in done.stderr
    (tmp_path / "file").write_text("")
    done = rarevote("study", "theory", "--out", tmp_path / "file", code=1)
    assert "the folder cannot be created" in done.stderr
