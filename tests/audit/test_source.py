"""The files behind a plan: what they hash to, and what is said where they cannot be read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit import Audit
from rarevote.audit.source import earlier_audits, files_sha256, is_plan, labels_at_hand, read_again
from rarevote.errors import InputError
from tests.audit.worlds import started


def test_the_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("a")
    two.write_text("b")
    assert files_sha256([one]) == hashlib.sha256(b"a").hexdigest()
    lines = "".join(hashlib.sha256(text).hexdigest() + "\n" for text in (b"a", b"b"))
    assert files_sha256([one, two]) == files_sha256([tmp_path]) == hashlib.sha256(lines.encode()).hexdigest()


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("a")

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"labels.csv: cannot be read \(Permission denied\)"):
        files_sha256([labels])


def test_a_plan_from_python_names_no_labels(tmp_path: Path) -> None:
    audit, _ = started(60)
    with pytest.raises(InputError, match="the audit was not started by `rarevote audit start` and names no labels"):
        read_again(audit, tmp_path / "plan.json")


def test_a_plan_is_known_by_its_beginning(tmp_path: Path) -> None:
    audit, _ = started(60)
    plan, other = tmp_path / "plan.json", tmp_path / "other.json"
    audit.save(plan)
    assert is_plan(plan)
    for text in ('{"format":"other"}', '{"labels":[]}', "[]"):
        other.write_text(text)
        assert not is_plan(other)
    assert not is_plan(tmp_path)


def test_earlier_audits_are_those_of_the_same_labels_with_something_drawn(tmp_path: Path) -> None:
    for name, digest, drawn in (("a", "1" * 64, True), ("b", "1" * 64, False), ("c", "2" * 64, True)):
        audit, _ = started(60, labels_sha256=digest)
        if drawn:
            audit.round(10)
        audit.save(tmp_path / f"{name}.json")
    (tmp_path / "notes.json").write_text(f'{{"about": "{"1" * 64}"}}')
    found = earlier_audits(tmp_path / "d.json", "1" * 64)
    assert [audit.to_json() for audit in found] == [Audit.load(tmp_path / "a.json").to_json()]


def test_options_of_reading_that_are_not_known_are_named(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\n" + "".join(f"{i},w,defect\n" for i in range(60)))
    source = {"labels": ["labels.csv"], "reading": {"later": 1}}
    audit, _ = started(60, source=source, labels_sha256=files_sha256([labels]))
    with pytest.raises(InputError, match=r"options of reading that are not known \(later\)"):
        read_again(audit, tmp_path / "plan.json")
    at_hand = labels_at_hand(audit.plan, tmp_path / "plan.json", None)
    assert at_hand is not None
    assert "the labels cannot be read as the plan says" in str(at_hand.fault)


def test_labels_whose_path_is_too_long_are_not_at_hand(tmp_path: Path) -> None:
    audit, _ = started(60, source={"labels": ["a" * 5000]})
    assert labels_at_hand(audit.plan, tmp_path / "plan.json", None) is None


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes among the files")
def test_labels_that_never_end_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "labels.csv")
    for labels in ("labels.csv", os.devnull):
        audit, _ = started(60, source={"labels": [labels]})
        assert labels_at_hand(audit.plan, tmp_path / "plan.json", None) is None
    with pytest.raises(InputError, match="is a pipe"):
        files_sha256([tmp_path / "labels.csv"])


def test_options_of_reading_of_another_type_are_named(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("task,worker,label\n1,a,x\n2,a,y\n")
    audit, _ = started(60, source={"labels": ["labels.csv"], "reading": {"show": 5}})
    with pytest.raises(InputError, match=r"plan\.json: the labels cannot be read as the plan says"):
        read_again(audit, tmp_path / "plan.json")
