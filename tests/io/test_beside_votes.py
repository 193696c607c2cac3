"""What stands beside the votes, or instead of them: weights that are not used, files that are not there or no votes."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

from rarevote.errors import InputError
from rarevote.io.read.crowd import read
from rarevote.io.read.detect import ZIP, _refuse_other_kinds
from tests.command import rarevote

TABLE = {"task": ["1", "1"], "worker": ["a", "b"], "label": ["yes", "no"], "confidence": [0.9, 0.2]}
IGNORED = "column 'confidence' looks like a weight of the votes and is ignored: all votes count equally"


def written(folder: Path, header: str = "task,worker,label,confidence") -> Path:
    path = folder / "votes.csv"
    path.write_text(f"{header}\n1,a,yes,0.9\n1,b,no,0.2\n")
    return path


def test_a_column_of_weights_is_named_as_ignored(tmp_path: Path) -> None:
    assert IGNORED in read(written(tmp_path)).notes
    assert f"note: {IGNORED}" in rarevote("aggregate", written(tmp_path), "-m", "majority-vote").stderr
    assert read(written(tmp_path), show=["confidence"]).notes == ()
    assert read(written(tmp_path, "task,worker,label,seconds")).notes == ()
    several = read(written(tmp_path, "task,worker,Vote Weight,label"), columns={"label": "Vote Weight"})
    assert several.notes == ()
    assert IGNORED in read(written(tmp_path), multilabel=True).notes


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, dict])
def test_weights_in_memory(make: Any) -> None:
    assert read(make(TABLE)).notes == (IGNORED,)


def test_weights_of_a_wide_table(tmp_path: Path) -> None:
    lines = [f"{n},{'yn'[n % 2]},{'yn'[n % 3 % 2]},0.{n}" for n in range(9)]
    (tmp_path / "x.csv").write_text("\n".join(["id,ana,bo,trust", *lines]) + "\n")
    assert any("column 'trust' looks like a weight" in note for note in read(tmp_path / "x.csv").notes)


@pytest.mark.parametrize("options", [{"question": "q"}, {"ground_truth": "gold"}, {"include_predictions": True}])
def test_a_file_that_is_not_there_is_said_to_be(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"nothing\.json: no such file"):
        read(tmp_path / "nothing.json", **options)
    assert "no such file" in rarevote("aggregate", tmp_path / "nothing.json", "--question", "q", code=1).stderr


def test_a_zip_for_fasttext_is_no_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ana.txt", "__label__pos Good stuff\n")
        archive.writestr("bo.txt", "__label__neg Good stuff\n")
    for verb in ("aggregate", "convert"):
        message = rarevote(verb, path, code=1).stderr
        assert "a zip of texts for fastText, as doccano exports them: they have no ids" in message
        assert "Export as JSONL" in message
        assert "spreadsheet" not in message


def test_a_zip_of_pictures_is_no_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.png", b"\x89PNG")
    with pytest.raises(InputError, match=r"the zip has no \.jsonl"):
        read(path)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("x.csv", ZIP + b"word/document.xml", "a Word document"),
        ("x.docx", ZIP + b"docProps/core.xml", "a Word document"),
        ("x.csv", b"%PDF-1.7", "a PDF document"),
    ],
)
def test_documents_are_called_what_they_are(name: str, head: bytes, kind: str) -> None:
    with pytest.raises(InputError, match=f"^{name}: this is {kind}, not votes; use a table"):
        _refuse_other_kinds(Path(name), name, head)


def test_gold_of_several_choices_is_not_a_weight(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,trust\n1,a,x|y,x\n1,b,x,x\n")
    crowd = read(path, multilabel=True, gold_column="trust")
    assert crowd.gold == {"1:x": "yes", "1:y": "no"}
    assert not [note for note in crowd.notes if "weight" in note]
