"""doccano's ways of packing: tables, members who did nothing, files of early versions."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rarevote.errors import InputError
from rarevote.io.platforms import detect, read_export
from tests.io.platforms.exports import FIXTURES, zipped

LINE = '{"id": 1, "text": "a", "label": ["x"]}\n'


def test_one_table_for_each_annotator(tmp_path: Path) -> None:
    for path in (FIXTURES / "doccano_csv", zipped(FIXTURES / "doccano_csv", tmp_path / "export.zip")):
        with pytest.raises(InputError, match=r"bea\.csv: line 4 \(id 2\): several choices .*'neg', 'pos'"):
            read_export(path)
        export = read_export(path, multilabel=True, show=["text", "source"])
        yes = [row for row in zip(*export.columns().values(), strict=True) if row[2] == "yes"]
        assert yes == [
            ("1:neg", "ana@example.org", "yes", "Größe,\negal", "web", "1", "neg"),
            ("2:pos", "ana@example.org", "yes", "很好", "web", "2", "pos"),
            ("1:C#", "bea", "yes", "Größe,\negal", "web", "1", "C#"),  # one label: nothing follows the mark
            ("2:neg", "bea", "yes", "很好", "web", "2", "neg"),
            ("2:pos", "bea", "yes", "很好", "web", "2", "pos"),
            ("3:neg", "bea", "yes", "…", "web", "3", "neg"),
        ]
        assert export.left_out == {"no answer": 1}
        assert export.n_records == 6


@pytest.mark.parametrize("cell", ["C##Java", "Java#C#", "#a#b"])
def test_labels_that_contain_the_mark_between_labels(tmp_path: Path, cell: str) -> None:
    (tmp_path / "ana.csv").write_text(f"id,data,label,Comments\n1,A,x,\n2,B,{cell},\n")
    with pytest.raises(InputError, match=rf"ana.csv: line 3: '{cell}' can be split .* contains '#'; export as JSONL"):
        read_export(tmp_path, multilabel=True)


def test_tables_without_comments_are_known_by_being_several(tmp_path: Path) -> None:
    for name, label in (("ana", "x"), ("bo", "y")):
        (tmp_path / f"{name}.csv").write_text(f"id,data,label\n1,a,{label}\n")
    export = read_export(tmp_path, show=["text"])
    assert export.columns() == {"task": ["1", "1"], "worker": ["ana", "bo"], "label": ["x", "y"], "text": ["a", "a"]}
    assert detect(tmp_path / "bo.csv") is None
    # Tables that say who answered are no doccano export.
    for file in tmp_path.iterdir():
        file.write_text("id,text,label,worker\n1,a,x,w\n")
    assert detect(tmp_path) is None


@pytest.mark.parametrize("nothing", ["", "\n", "[]"])
def test_members_who_did_nothing(tmp_path: Path, nothing: str) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (("admin", nothing), ("bo", LINE), ("carl", nothing), ("di", LINE)):
            archive.writestr(f"{name}.jsonl", text)
    assert detect(path) == "doccano"
    assert read_export(path).worker == ["bo", "di"]


def test_tables_before_version_1(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(
        'annotation_approver,id,label,meta,text,user\n,1,7,{},a,2\n,1,8,{},a,3\n,2,7,{},"b\nc",2\n,2,9,{},"b\nc",2\n'
    )
    assert detect(path) == "doccano"
    export = read_export(path, multilabel=True, show=["text"])
    voted = zip(export.task, export.worker, export.label, strict=True)
    assert [row[:2] for row in voted if row[2] == "yes"] == [("1:7", "2"), ("1:8", "3"), ("2:7", "2"), ("2:9", "2")]
    with pytest.raises(InputError, match=r"line 4 \(id 2\): several choices"):
        read_export(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "all.csv",
            "id,text,label,Comments\n1,a,x,\n",
            "line 2 .id 1.: a shared project .* does not say who chose 'x'",
        ),
        (
            "project.jsonl",
            '{"id": 1, "text": "a", "meta": {}, "annotation_approver": null, "labels": ["x"]}',
            "labels of all annotators together.*Export as JSONL, not as JSONL with text labels",
        ),
        ("ana.csv", "id,text,Comments\n1,a,\n", "no column 'label' .the answer.*Export as JSONL"),
    ],
)
def test_files_that_do_not_say_who_chose_what(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_export(path, platform="doccano")
