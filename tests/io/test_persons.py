"""One file per person: the name of the file, or of its folder, says who voted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.read.crowd import Crowd, read
from tests.command import rarevote

VOTES = {"ana": {"1": "yes", "2": "no"}, "bo": {"1": "yes", "2": "yes"}, "o'neil": {"1": "no", "2": "no"}}


def found(crowd: Crowd) -> dict[str, dict[str, str]]:
    votes = crowd.annotations
    told: dict[str, dict[str, str]] = {}
    for task, worker, label in zip(votes.task_of_annotation(), votes.worker, votes.label, strict=True):
        told.setdefault(votes.workers[worker], {})[str(votes.tasks[task])] = votes.classes[label]
    return told


def written(folder: Path, kind: str) -> list[Path]:
    paths = []
    for who, votes in VOTES.items():
        path = folder / f"{who}.{kind}"
        text = "\n".join(["task,label,user", *(f"{task},{label},someone" for task, label in votes.items())]) + "\n"
        if kind == "csv.gz":
            path.write_bytes(gzip.compress(text.encode()))
        elif kind == "json":
            path.write_text(json.dumps([{"task": task, "label": label} for task, label in votes.items()]))
        else:
            path.write_text(text)
        paths.append(path)
    return paths


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "json"])
def test_the_name_of_the_file(tmp_path: Path, kind: str) -> None:
    paths = written(tmp_path, kind)
    assert found(read(paths, worker_from="file")) == VOTES
    assert found(read(tmp_path, worker_from="file")) == VOTES
    assert found(read(str(tmp_path / "*"), worker_from="file")) == VOTES


def test_the_name_of_the_folder(tmp_path: Path) -> None:
    for who, votes in VOTES.items():
        (tmp_path / who).mkdir()
        lines = "".join(f"{task},{label}\n" for task, label in votes.items())
        (tmp_path / who / "votes.csv").write_text("task,label\n" + lines)
    with pytest.raises(InputError, match=r"'votes' has a file already"):
        read(tmp_path, worker_from="file")
    assert found(read(tmp_path, worker_from="folder")) == VOTES


def test_check_boxes_of_each_person(tmp_path: Path) -> None:
    (tmp_path / "ana.csv").write_text("task,rust,dent\n1,1,0\n2,0,0\n")
    (tmp_path / "bo.csv").write_text("task,rust,dent\n1,1,1\n2,0,1\n")
    crowd = read(tmp_path, worker_from="file", multilabel=True)
    assert found(crowd) == {
        "ana": {"1:dent": "no", "1:rust": "yes", "2:dent": "no", "2:rust": "no"},
        "bo": {"1:dent": "yes", "1:rust": "yes", "2:dent": "yes", "2:rust": "no"},
    }


def test_the_command_and_mistakes(tmp_path: Path) -> None:
    paths = written(tmp_path, "csv")
    done = rarevote("aggregate", *paths, "--worker-from", "file", "-m", "majority-vote")
    assert "6 annotations, 2 tasks, 3 workers" in done.stderr
    with pytest.raises(ParameterError, match="drop one of them"):
        read(paths, worker_from="file", columns={"worker": "user"})
    with pytest.raises(ParameterError, match="not one column per annotator"):
        read(paths, worker_from="file", wide=True)
    with pytest.raises(ParameterError, match="worker_from must be file, folder"):
        read(paths, worker_from="name")  # type: ignore[arg-type]
    assert "the name has no person" in rarevote("aggregate", "-", "--worker-from", "file", code=1, stdin=b"a").stderr
    export = Path(__file__).parent / "platforms" / "fixtures" / "label_studio.json"
    with pytest.raises(ParameterError, match="an export of Label Studio names its annotators"):
        read(export, worker_from="file", question="damage")
