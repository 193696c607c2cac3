"""ASReview's exports, written by ASReview 3.0.8: three projects without accounts, and one of a server with accounts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rarevote.errors import InputError
from rarevote.io.platforms import read_export
from rarevote.io.read.crowd import read
from tests.command import rarevote
from tests.io.platforms.exports import FIXTURES

PEOPLE = FIXTURES / "asreview_people"

# What the three were made to say of records 100 to 115: how many they saw, and which are relevant.
SEEN = {"ana": 14, "bo": 16, "cy": 12}


def relevant(who: str, n: int) -> bool:
    return {"ana": n % 4 == 1, "bo": n % 4 == 1 or n == 6, "cy": n % 8 == 1}[who]


def expected() -> list[tuple[str, str, str]]:
    return sorted((str(100 + n), who, str(int(relevant(who, n)))) for who, seen in SEEN.items() for n in range(seen))


@pytest.mark.parametrize("given", ["folder", "files", "pattern"])
def test_a_file_for_each_person(given: str) -> None:
    files = sorted(map(str, PEOPLE.iterdir()))
    paths = {"folder": PEOPLE, "files": files, "pattern": str(PEOPLE / "*.csv")}[given]
    crowd = read(paths, worker_from="file", show=["title"])
    votes = crowd.annotations
    rows = zip(
        votes.tasks[votes.task_of_annotation()], votes.workers[votes.worker], votes.classes[votes.label], strict=True
    )
    assert sorted(rows) == expected()
    assert crowd.n_unvoted == 0  # bo saw all of them
    assert crowd.shown["title"].tolist()[:2] == ["Study 0 of loneliness", "Study 1 of loneliness"]


def test_rows_of_the_exports(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    rarevote("convert", PEOPLE, "--worker-from", "file", "--out", out)
    with out.open(newline="") as handle:
        assert sorted((row["task"], row["worker"], row["label"]) for row in csv.DictReader(handle)) == expected()


def test_accounts_say_who_it_was() -> None:
    export = read_export(FIXTURES / "asreview.csv")
    assert set(export.worker) == {"zoe@example.org"}
    assert sorted(zip(export.task, export.label, strict=True)) == [
        (str(100 + n), str(int(n % 4 == 1))) for n in range(10)
    ]
    assert sorted(export.unanswered) == [str(100 + n) for n in range(10, 16)]


def test_without_names_the_way_out_is_said() -> None:
    done = rarevote("aggregate", PEOPLE / "ana.csv", code=1)
    assert "none of the 14 answers has an annotator" in done.stderr
    assert "take the names of the files: --worker-from file" in done.stderr


def test_a_column_of_ones_and_gaps_that_pandas_wrote(tmp_path: Path) -> None:
    with (PEOPLE / "ana.csv").open(newline="") as handle:
        table = list(csv.DictReader(handle))
    for row in table:
        row["asreview_label"] += ".0" if row["asreview_label"] else ""
    path = tmp_path / "ana.csv"
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    crowd = read([path, PEOPLE / "bo.csv"], worker_from="file")
    assert crowd.annotations.classes.tolist() == ["0", "1"]
    assert crowd.annotations.n_annotations == SEEN["ana"] + SEEN["bo"]


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    path = tmp_path / "dee.csv"
    path.write_text("doi,asreview_group_id,asreview_label\n10.1,0,1\n")
    with pytest.raises(InputError, match="identify records by different columns"):
        read([PEOPLE / "ana.csv", path], worker_from="file")
    (tmp_path / "ana.csv").write_text((PEOPLE / "bo.csv").read_text())
    with pytest.raises(InputError, match=r"'ana' has a file already.*worker_from=\"folder\""):
        read([PEOPLE / "ana.csv", tmp_path / "ana.csv"], worker_from="file")


@pytest.mark.parametrize("column", ["question", "item"])
@pytest.mark.parametrize("values", [["RQ1"] * 3, ["RQ1", "", "RQ3"]])
def test_a_column_with_the_name_of_an_id_that_does_not_identify_records(
    tmp_path: Path, column: str, values: list[str]
) -> None:
    labels = {"ana": "101", "bo": "110"}
    for name, given in labels.items():
        # In one of the files the values are ids, which is not enough.
        own = values if name == "ana" else ["1", "2", "3"]
        lines = [f"T{n},{own[n]},{n + 7},{given[n]}" for n in range(3)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"title,{column},asreview_group_id,asreview_label", *lines]))
    crowd = read(tmp_path, worker_from="file")
    votes = crowd.annotations
    found = zip(
        votes.tasks[votes.task_of_annotation()], votes.workers[votes.worker], votes.classes[votes.label], strict=True
    )
    assert sorted(found) == sorted((str(n + 7), name, given[n]) for name, given in labels.items() for n in range(3))
    (tmp_path / "ana.csv").write_text(
        "\n".join([f"title,{column},asreview_label", *(f"T{n},{values[n]},1" for n in range(3))])
    )
    with pytest.raises(InputError, match=f"'{column}' does not identify the records.*asreview_group_id"):
        read(tmp_path / "ana.csv", worker_from="file")
