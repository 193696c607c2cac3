"""Items without votes in tables, and the list of all items, in every form that a person may have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rarevote
from rarevote.cli import VERBS
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array
from rarevote.errors import ColumnsError, InputError, ParameterError, RarevoteWarning
from rarevote.io.read.crowd import read
from rarevote.io.read.items import _names_columns
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.sources import File, FileTable
from tests.command import rarevote as command

IDS = list(range(1, 41))
VOTED = [number for number in IDS if number % 5]
UNVOTED = [number for number in IDS if not number % 5]


def table(path: Path, tasks: list[Any]) -> Path:
    rows = [(task, worker, "yes" if number % 3 else "no") for number, task in enumerate(tasks) for worker in "abc"]
    if path.suffix == ".parquet":
        pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row").write_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps([dict(zip(("task", "worker", "label"), row, strict=True)) for row in rows]))
    else:
        path.write_text("task,worker,label\n" + "".join(f"{t},{w},{y}\n" for t, w, y in rows), encoding="utf-8")
    return path


def _csv(path: Path, ids: list[Any]) -> Path:
    (path / "i.csv").write_text("item,source\n" + "".join(f"{one},s\n" for one in ids), encoding="utf-8")
    return path / "i.csv"


def _only_column(path: Path, ids: list[Any]) -> Path:
    (path / "i.csv").write_text("ID\n" + "".join(f"{one}\n" for one in ids), encoding="utf-8")
    return path / "i.csv"


def _without_header(path: Path, ids: list[Any]) -> Path:
    (path / "i.csv").write_text("".join(f"{one}\n" for one in ids), encoding="utf-8")
    return path / "i.csv"


def _lines(path: Path, ids: list[Any]) -> Path:
    (path / "i.txt").write_text("\n\n".join(map(str, ids)) + "\n\n", encoding="utf-8")
    return path / "i.txt"


def _packed(path: Path, ids: list[Any]) -> Path:
    (path / "i.txt.gz").write_bytes(gzip.compress("\n".join(map(str, ids)).encode()))
    return path / "i.txt.gz"


def _parquet(path: Path, ids: list[Any]) -> Path:
    pl.DataFrame({"key": ids}).write_parquet(path / "i.parquet")
    return path / "i.parquet"


def _json(path: Path, ids: list[Any]) -> Path:
    (path / "i.json").write_text(json.dumps([{"text": "t", "id": one} for one in ids]), encoding="utf-8")
    return path / "i.json"


FILES: list[Callable[[Path, list[Any]], Path]] = [
    _csv, _only_column, _without_header, _lines, _packed, _parquet, _json
]  # fmt: skip


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("write", FILES)
def test_a_list_in_a_file(write: Callable[..., Path], ending: str, kind: type, tmp_path: Path) -> None:
    """Numbers against text, whichever side has which; unvoted ids come first, last and twice in the list."""
    votes = table(tmp_path / f"votes.{ending}", [kind(one) for one in VOTED])
    own = str if ending == "csv" else kind
    listed = [*UNVOTED[:3], *VOTED[::-1], *UNVOTED, UNVOTED[0]]
    for other in (int, str):
        crowd = read(votes, items=write(tmp_path, [other(one) for one in listed]))
        assert sorted(crowd.annotations.tasks.tolist(), key=int) == [own(one) for one in VOTED]
        assert sorted(crowd.annotations.unanswered.tolist(), key=int) == [own(one) for one in UNVOTED]
        assert crowd.notes == ("8 of 40 items have no votes",)


@pytest.mark.parametrize(
    "items",
    [
        IDS, tuple(IDS), set(IDS), np.array(IDS), [str(one) for one in IDS], pd.Series(IDS), pd.Index(IDS),
        pl.Series(IDS), pa.array(IDS), pa.array(IDS).dictionary_encode(), pa.chunked_array([IDS, IDS]),
        pd.DataFrame({"anything": IDS}), pl.DataFrame({"id": IDS, "x": 1}),
        pl.LazyFrame({"item": IDS}), pa.table({"task": IDS, "z": IDS}), iter(IDS),
    ],
)  # fmt: skip
def test_a_list_in_memory(items: Any) -> None:
    rows = [(str(one), worker, "x") for one in VOTED for worker in "ab"]
    crowd = read(rows, items=items)
    assert sorted(crowd.annotations.unanswered.tolist(), key=int) == [str(one) for one in UNVOTED]
    assert crowd.population.tolist() == [*crowd.annotations.tasks.tolist(), *crowd.annotations.unanswered.tolist()]


def test_where_the_list_goes() -> None:
    rows = [("a", "u", "x"), ("b", "u", "y"), ("b", "v", "y")]
    fitted = rarevote.fit(rows, "majority-vote", items=["c", "a", "b"])
    assert fitted.crowd.population.tolist() == ["a", "b", "c"]
    crowd = read(rows, ReadOptions(abstain=["x"]), items=None)
    assert crowd.notes == ("1 of 2 items has no votes",)
    # A crowd that was read already, and encoded votes.
    again = read(crowd, items=["a", "b", "d"])
    assert (again.annotations.unanswered.tolist(), again.notes) == (["a", "d"], ("2 of 3 items have no votes",))
    assert read(crowd) is crowd
    encoded = Annotations.from_arrays(["a"], ["u"], ["x"])
    assert read(encoded, items=["b", "a"]).n_unvoted == 1
    # Unvoted items that the data name stay, whether or not the list has them.
    assert read(crowd, items=["b"]).annotations.unanswered.tolist() == ["a"]


def test_what_is_shown_goes_along(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("image,text,ann,bob\nb,Bee,x,x\nd,Dee,,\na,Ay,y,y\n", encoding="utf-8")
    crowd = read(path, wide=True, show=["text"], items=["a", "b", "c", "d", "e"])
    assert crowd.population.tolist() == ["a", "b", "c", "d", "e"]
    assert crowd.shown["text"].tolist() == ["Ay", "Bee", "", "Dee", ""]
    rows = rarevote.fit(crowd, "majority-vote").decide().columns()
    assert rows["text"][:2].tolist() == ["Ay", "Bee"]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["a"], r"items: 1 of 2 items with votes is not in the list \('b'\): check the list"),
        (["q"], r"items: 2 of 2 items with votes are not in the list \('a', 'b'\)"),
        (["a", "b", None], "items: 1 id is missing"),
        ([], "items: no items"),
        (["a", "b", ["c"]], "items: row 2 holds .*, which cannot be an id or a label"),
    ],
)
def test_lists_that_do_not_fit(items: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read([("a", "u", "x"), ("b", "u", "y")], items=items)


def test_ids_are_not_lists() -> None:
    with pytest.raises(InputError, match=r"items: row 2 holds .*, which cannot be an id or a label"):
        read([(1, "u", "x"), (2, "u", "y")], items=[1, 2, [3]])


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    votes = table(tmp_path / "votes.csv", [f"image-{one}" for one in VOTED])
    path = tmp_path / "i.csv"
    path.write_text("task,x\n" + "".join(f"img-{one},1\n" for one in IDS), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(votes, items=path)
    assert str(caught.value) == (
        f"{path}: 32 of 32 items with votes are not in the list ('image-1', 'image-11', 'image-12', ...): check the "
        "list and the ids"
    )
    path.write_text("task,x\nimage-1,1\n,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"i\.csv: 1 row has no id \(line 3\)"):
        read(votes, items=path)
    path.write_text("picture,x\n1,1\n", encoding="utf-8")
    with pytest.raises(ColumnsError, match=r"no column for task; it has 'picture', 'x'\. Rename a column to task"):
        read(votes, items=path)
    path.write_text("item,image\n1,1\n", encoding="utf-8")
    with pytest.raises(ColumnsError, match="several columns that could be the task"):
        read(votes, items=path)
    with pytest.raises(InputError, match="no such file"):
        read(votes, items=tmp_path / "nothing.csv")
    with pytest.raises(ParameterError, match="items must be a file or a list of ids, got 5"):
        read(votes, items=5)


def test_the_first_line_of_a_list(tmp_path: Path) -> None:
    votes = table(tmp_path / "votes.csv", ["alpha", "beta"])
    path = tmp_path / "i.csv"
    # A word that is no id of the votes may be the name of the column or an item: what is done is said.
    path.write_text("picture\nalpha\nbeta\ngamma\n", encoding="utf-8")
    with pytest.warns(RarevoteWarning, match="the first line, 'picture', is read as the name of the column"):
        assert read(votes, items=path).annotations.unanswered.tolist() == ["gamma"]
    path.write_text("beta\nalpha\ngamma\n", encoding="utf-8")  # an id with votes is an id
    assert read(votes, items=path).annotations.unanswered.tolist() == ["gamma"]
    path.rename(tmp_path / "i.txt")
    (tmp_path / "i.txt").write_text("gamma\nbeta\nalpha\n", encoding="utf-8")
    assert read(votes, items=tmp_path / "i.txt").annotations.unanswered.tolist() == ["gamma"]
    # Where the votes have no header line, the list needs none.
    plain = tmp_path / "plain.csv"
    plain.write_text("alpha,u,x\nbeta,u,y\n", encoding="utf-8")
    path.write_text("gamma,1\nbeta,2\nalpha,3\n", encoding="utf-8")
    by_number = {"task": "1", "worker": "2", "label": "3"}
    crowd = read(plain, has_header=False, columns=by_number, items=path)
    assert crowd.annotations.unanswered.tolist() == ["gamma"]
    # The column may be called as that of the votes.
    named = tmp_path / "named.csv"
    named.write_text("picture,who,label\nalpha,u,x\nbeta,u,y\n", encoding="utf-8")
    path.write_text("item,picture\n1,gamma\n2,alpha\n3,beta\n", encoding="utf-8")
    crowd = read(named, columns={"task": "picture", "worker": "who"}, items=path)
    assert crowd.annotations.unanswered.tolist() == ["gamma"]


def test_a_first_line_that_may_be_an_item_is_said_to_be_a_name() -> None:
    source = FileTable((File("i.csv", "i.csv"),), "csv", "", (), ["picture"])
    voted = as_name_array(["alpha", "beta"])
    with pytest.warns(RarevoteWarning, match=r"i\.csv: the first line, 'picture', is read as the name of the column"):
        assert _names_columns(source, voted, None, has_header=True)
    assert not _names_columns(source, as_name_array(["picture"]), None, has_header=True)


def test_truth_and_gold_never_extend_the_population(tmp_path: Path) -> None:
    votes = table(tmp_path / "votes.csv", ["alpha", "beta"])
    crowd = read(votes)
    assert set(crowd.truth({"alpha": "yes", "gamma": "no"})) == {"alpha", "gamma"}
    with pytest.warns(RarevoteWarning, match="gold for 1 task without votes is left out"):
        fitted = rarevote.fit(votes, "gold-majority-vote", gold={"alpha": "yes", "gamma": "no"})
    assert fitted.crowd.population.tolist() == ["alpha", "beta"]


# -- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("wide", [True, False])
def test_rows_of_empty_cells_in_wide_tables(ending: str, wide: bool, tmp_path: Path) -> None:
    said = {"id": [7, 10, 9, 8], "ann": ["x", None, "y", None], "bob": ["y", None, None, " "], "cy": ["x", "", "y", ""]}
    path = tmp_path / f"w.{ending}"
    if ending == "parquet":
        pl.DataFrame(said).write_parquet(path)
    elif ending == "json":
        path.write_text(json.dumps(pl.DataFrame(said).to_dicts()), encoding="utf-8")
    else:
        pl.DataFrame(said).write_csv(path)
    crowd = read(path, wide=wide)
    own = str if ending == "csv" else int
    assert crowd.annotations.tasks.tolist() == [own(7), own(9)]
    assert crowd.annotations.unanswered.tolist() == sorted([own(10), own(8)])
    assert crowd.annotations.n_annotations == 5
    assert crowd.notes[-1] == "2 of 4 items have no votes"


def test_wide_tables_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,ann,bob\n1,x,y\n2,,\n3,,\n,,\n", encoding="utf-8")
    (tmp_path / "2.csv").write_text("id,ann,bob\n3,y,\n4,,\n", encoding="utf-8")
    crowd = read([tmp_path / "1.csv", tmp_path / "2.csv"], wide=True)
    assert (crowd.annotations.tasks.tolist(), crowd.annotations.unanswered.tolist()) == (["1", "3"], ["2", "4"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_without_a_label_in_long_tables(ending: str, tmp_path: Path) -> None:
    rows = {"task": ["a", "b", "b", "c", None, "d"], "worker": ["u", "u", "v", "u", "u", None]}
    frame = pl.DataFrame({**rows, "label": ["x", None, "y", None, "x", "x"], "text": ["A", "B", "", "C", "-", "D"]})
    path = tmp_path / f"l.{ending}"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    with pytest.raises(InputError, match="2 rows have no label"):
        read(path)
    crowd = read(path, missing="drop", show=["text"])
    assert (crowd.annotations.tasks.tolist(), crowd.annotations.unanswered.tolist()) == (["a", "b"], ["c", "d"])
    assert crowd.shown["text"].tolist() == ["A", "B", "C", "D"]
    assert crowd.annotations.n_dropped == 4
    assert read(frame, missing="drop").annotations.unanswered.tolist() == ["c", "d"]


# -- the command line ------------------------------------------------------------------------------------------------


def test_every_verb_that_reads_votes_takes_the_list() -> None:
    readers = ["aggregate", "annotators", "check", "compare", "explain", "plan", "predict", "report"]
    assert set(readers) <= set(VERBS)
    for verb in readers:
        assert "--items" in command(verb, "--help").stdout, verb
    assert "--items" in command("audit", "start", "--help").stdout


def test_the_list_on_the_command_line(tmp_path: Path) -> None:
    votes = table(tmp_path / "votes.csv", VOTED)
    items = _lines(tmp_path, IDS)
    done = command("aggregate", votes, "--items", items, "--method", "majority-vote", "--out", tmp_path / "r.csv")
    assert done.stderr.count("8 of 40 items have no votes") == 1
    items.write_text("1\n2\n")
    done = command("aggregate", votes, "--items", items, "--out", tmp_path / "r.csv", code=1)
    assert "30 of 32 items with votes are not in the list ('11', '12', '13', ...)" in done.stderr
    done = command("aggregate", votes, "--items", items, "--engine", "dask", "--out", tmp_path / "r", code=2)
    assert "--items is for a single machine" in done.stderr
