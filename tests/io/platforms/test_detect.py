"""Platforms are known by what their files hold, not by their names."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms import PLATFORMS, detect, read_export
from rarevote.io.platforms.containers import open_export
from rarevote.io.read.crowd import _may_be_export, read
from rarevote.io.read.detect import FileInfo
from tests.io.platforms.exports import FIXTURES, MAIN, PLATFORM_OF, zipped


@pytest.mark.parametrize("name", PLATFORM_OF)
def test_each_fixture_is_recognised_as_itself_only(name: str) -> None:
    beginning = open_export(FIXTURES / name).beginning
    found = [platform.name for platform in PLATFORMS.values() if platform.module().recognises(beginning)]
    assert found == ([PLATFORM_OF[name]] if PLATFORM_OF[name] else [])
    assert detect(FIXTURES / name) == PLATFORM_OF[name]


def test_all_fixtures_are_in_the_matrix() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == set(PLATFORM_OF)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("other", PLATFORMS)
def test_a_wrong_platform_is_named(platform: str, other: str) -> None:
    name, question = MAIN[platform]
    if platform != other:
        with pytest.raises(InputError, match=f"this is an export of .*: platform='{platform}'"):
            read_export(FIXTURES / name, platform=other, question=question)


def test_names_and_packing_do_not_matter(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "toloka.tsv", tmp_path / "x.csv")
    assert detect(tmp_path / "x.csv") == "toloka"
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress((FIXTURES / "label_studio.json").read_bytes()))
    assert detect(packed) == "label-studio"
    assert (
        read_export(packed, question="damage").task
        == read_export(FIXTURES / "label_studio.json", question="damage").task
    )
    assert detect(zipped(FIXTURES / "doccano", tmp_path / "d.zip")) == "doccano"


def test_which_tables_may_be_exports() -> None:
    def may_be(text: bytes, kind: str = "csv") -> bool:
        return _may_be_export(FileInfo(Path(f"x.{kind}"), "x", "none", kind, text, True))

    assert not may_be(b"task,worker,label\n1,a,x\n")
    assert may_be(b"INPUT:text\tOUTPUT:result\n")
    assert may_be(b'{"task": 1}', "json")
    # Excel saves Unicode text as UTF-16: an export in it is read, a plain table is not.
    assert may_be("INPUT:text\tOUTPUT:result\n".encode("utf-16"))
    assert may_be(b'"INPUT:text\tOUTPUT:result\n')


def test_an_export_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "toloka.csv"
    path.write_text((FIXTURES / "toloka.tsv").read_text(encoding="utf-8"), encoding="utf-16")
    found, own = (read(one, question="result").annotations for one in (path, FIXTURES / "toloka.tsv"))
    assert (found.tasks.tolist(), found.label.tolist()) == (own.tasks.tolist(), own.label.tolist())


def test_tables_in_a_zip(tmp_path: Path) -> None:
    # Appen packs each report this way.
    path = tmp_path / "f123.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(FIXTURES / "appen.csv", "f123.csv")
    assert detect(path) == "appen"
    assert (
        read_export(path, question="relevant").worker == read_export(FIXTURES / "appen.csv", question="relevant").worker
    )


@pytest.mark.parametrize(
    ("platform", "record"),
    [
        ("label-studio", {"text": "t", "labels": ["x"], "id": 1, "annotator": 1, "annotation_id": 1, "lead_time": 1}),
        ("argilla", {"id": 1, "text": "t", "labels": ["x"], "q.responses": ["a"], "q.responses.users": ["u"]}),
        ("prodigy", {"id": 1, "text": "t", "label": ["x"], "_input_hash": 1, "_task_hash": 2, "answer": "accept"}),
    ],
)
def test_data_that_looks_like_doccano(tmp_path: Path, platform: str, record: dict[str, object]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([record]))
    assert detect(path) == platform


def test_a_dataset_of_argilla_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "dataset.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(FIXTURES / "argilla_disk" / "records.json", "dataset/records.json")
        archive.writestr("dataset/.argilla/settings.json", "{}")
        archive.writestr("dataset/.argilla/version.json", "{}")
    assert detect(path) == "argilla"
    assert len(read_export(path, question="severity")) == 2


def test_a_header_with_a_name_twice_is_still_of_its_platform(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,Input.x,Input.x,Answer.q\nh,w,1,2,a\n")
    assert detect(path) == "mturk"
    with pytest.raises(InputError, match=r"the header names 'Input\.x' more than once; rename or delete one"):
        read_export(path)


@pytest.mark.parametrize(
    "text",
    [
        "", " \n", "[]", "{}", "[1, 2]", '"text"', "not json", "task,worker,label\n",
        '{"task": 1, "worker": "a", "label": "x"}\n', '[{"id": 1, "text": "a", "label": "x"}]', "worker,answer\na,b\n",
    ],
)  # fmt: skip
def test_other_files_are_no_export(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert detect(path) is None
    with pytest.raises(InputError, match=r"not recognised as an export of label-studio, .*rarevote.read"):
        read_export(path)


def test_the_registry_is_the_only_list() -> None:
    # A platform is a module with a way to know and to read its files, a fixture and a section of docs.
    page = (Path(__file__).parents[3] / "docs" / "howto" / "platforms.md").read_text(encoding="utf-8")
    table, _, sections = page.partition("## Label Studio")
    for name, platform in PLATFORMS.items():
        assert callable(platform.module().recognises)
        assert callable(platform.module().read)
        for way_back in ("check", "labelled"):
            assert hasattr(platform.module(), way_back) == platform.takes_labels
        assert f"| {platform.title} | `{name}` |" in table
        assert f"## {platform.title.split(' (')[0]}\n" in f"## Label Studio{sections}"
        assert name in MAIN


def test_a_plain_table_loads_no_platform() -> None:
    code = (
        "import sys; from rarevote.io.platforms import PLATFORMS, detect\n"
        "assert detect(sys.argv[1]) is None\n"
        "own = {'rarevote.io.platforms.' + name.replace('-', '_') for name in PLATFORMS}\n"
        "print(*sorted(own & set(sys.modules)), *({'numpy', 'duckdb'} & set(sys.modules)))"
    )
    given = [sys.executable, "-c", code, str(FIXTURES / "plain.csv")]
    assert subprocess.run(given, capture_output=True, text=True, check=True).stdout.split() == []


@pytest.mark.parametrize(
    ("name", "options", "most"), [("plain.csv", {}, 2), ("label_studio.json", {"question": "damage"}, 2)]
)
def test_an_input_is_looked_at_once(name: str, options: dict[str, Any], most: int) -> None:
    # Once to see what it is, and once for its lines or its records; DuckDB opens a table besides.
    opened: list[str] = []
    watched = [True]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watched[0] and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    read(FIXTURES / name, **options)
    watched[0] = False
    assert 1 <= opened.count(str(FIXTURES / name)) <= most


def test_nothing_there(tmp_path: Path) -> None:
    assert detect(tmp_path / "absent") is None
    assert detect(tmp_path) is None
    with pytest.raises(InputError, match="no such file"):
        read_export(tmp_path / "absent")
    with pytest.raises(ParameterError, match="no platform is called 'excel'; the platforms are label-studio, argilla"):
        read_export(FIXTURES / "plain.csv", platform="excel")


def test_a_huge_file_of_nothing_is_told_apart_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    path.touch()
    os.truncate(path, 2 << 30)
    begin = time.process_time()
    assert detect(path) is None
    for platform in PLATFORMS:
        with pytest.raises(InputError):
            read_export(path, platform=platform)
    assert time.process_time() - begin < 10  # of the processor, whatever else the machine does
