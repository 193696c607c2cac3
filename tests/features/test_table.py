"""Feature tables: what can be read, and the sentence for what cannot."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rarevote
from rarevote.crowd.names import spelling
from rarevote.errors import ColumnsError, InputError, ParameterError, RarevoteWarning
from rarevote.features.settings import FeatureSettings
from rarevote.features.table import FeatureTable, WhichColumns, read_features, read_predictions
from tests.features.crowds import draw_crowd

VALUES = np.array([[0.5, 1.0, 0.0], [np.nan, -2.0, 1.0], [3.25, 4.0, 1.0]])
IDS = ["a", "b", "c"]
COLUMNS = {"task": IDS, "x": VALUES[:, 0], "y": VALUES[:, 1], "z": VALUES[:, 2] > 0}
VOTES = [(item, worker, "yes" if item == "a" else "no") for item in IDS for worker in ("ann", "bob")]


def same(table: FeatureTable) -> bool:
    rows = table.rows(IDS)
    return table.names == ["x", "y", "z"] and np.array_equal(table.values[rows], VALUES, equal_nan=True)


@pytest.mark.parametrize("frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)], ids=repr)
def test_frames(frame: Any) -> None:
    assert same(read_features(frame, WhichColumns()))


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_files(ending: str, tmp_path: Path) -> None:
    path, frame = tmp_path / f"f.{ending}", pd.DataFrame(COLUMNS)
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records")
    assert same(read_features(path, WhichColumns()))


GAPS = [0.5, None, 3.0]


@pytest.mark.parametrize(
    "column",
    [
        pd.array(GAPS, dtype="Float64"),
        pd.array(GAPS, dtype="double[pyarrow]"),
        np.array([0.5, np.nan, 3.0]),
        pd.array([Decimal("0.5"), None, Decimal("3")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    ],
    ids=lambda given: str(given.dtype),
)
def test_missing_numbers_of_pandas(column: Any) -> None:
    table = read_features(pd.DataFrame({"task": IDS, "x": column}), WhichColumns())
    assert np.array_equal(table.values, [[0.5], [np.nan], [3.0]], equal_nan=True)


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "int64[pyarrow]", "boolean", "bool[pyarrow]"])
def test_missing_integers_and_truth_values_of_pandas(kind: str) -> None:
    given = [True, None, False] if "bool" in kind else [1, None, 0]
    pandas = pd.DataFrame({"task": IDS, "x": pd.array(given, dtype=kind)})
    for frame in (pandas, pl.DataFrame({"task": IDS, "x": given}), pa.table({"task": IDS, "x": given})):
        table = read_features(frame, WhichColumns())
        assert np.array_equal(table.values, [[1.0], [np.nan], [0.0]], equal_nan=True)


GAPPED = np.array([[False, True], [True, False], [False, False]])
HIDDEN = np.ma.array([[0.5, 7e6], [7e6, -2.0], [3.25, 4.0]], mask=GAPPED)
SEEN = [[0.5, np.nan], [np.nan, -2.0], [3.25, 4.0]]


@pytest.mark.parametrize(
    "given",
    [
        (IDS, HIDDEN),
        (IDS, HIDDEN.astype(np.float32)),
        (IDS, list(HIDDEN)),
        pd.DataFrame({"task": IDS, "x": list(HIDDEN)}),
    ],
)
def test_masked_numbers_are_missing(given: Any) -> None:
    values = read_features(given, WhichColumns()).values
    assert np.array_equal(values, SEEN, equal_nan=True)


def test_masked_integers_are_missing() -> None:
    given = np.ma.array([[1, 2], [3, 4], [5, 6]], mask=GAPPED)
    values = read_features((IDS, given), WhichColumns()).values
    assert np.array_equal(values, np.array([[1, np.nan], [np.nan, 4], [5, 6]]), equal_nan=True)


def test_a_mask_of_nothing_changes_nothing() -> None:
    plain = np.array([[1, 2], [3, 4], [5, 6]])
    assert read_features((IDS, np.ma.array(plain)), WhichColumns()).values.dtype == plain.dtype


SAME_IDS: list[Any] = [
    pa.array([0.0, 1.0, 2.0]),
    pl.Series([0.0, 1.0, 2.0]),
    np.arange(3.0),
    pd.Series([0, 1, 2], dtype="Int64"),
    dict.fromkeys(range(3)).keys(),
    (number for number in range(3)),
    pd.Index([0, 1, 2]),
    ["0", "1", "2"],
]


@pytest.mark.parametrize("ids", SAME_IDS, ids=lambda given: type(given).__name__)
def test_ids_in_every_form(ids: Any) -> None:
    assert read_features((ids, np.zeros((3, 1))), WhichColumns()).place == {"0": 0, "1": 1, "2": 2}


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (None, "the ids of features must be a column, got None"),
        (5, "the ids of features must be a column, got 5"),
        ("abc", "the ids of features must be a column, got 'abc'"),
        ({"a", "b", "c"}, "the ids of features must be a column, got .*set"),
        (np.ma.array(IDS, mask=[False, True, False]), "1 row has no id .first: row 2"),
        (pa.array(["a", "b", None]), "1 row has no id .first: row 3"),
        (pd.Series(["a", pd.NA, "c"]), "1 row has no id .first: row 2"),
        (np.array(IDS)[:, None], "the ids of features must be one-dimensional"),
        (np.array(IDS, dtype="S1"), "the ids of features holds bytes"),
    ],
)
def test_ids_that_are_none(ids: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_features((ids, np.zeros((3, 2))), WhichColumns())
    with pytest.raises(InputError, match=sentence.replace("features", "pred_probs")):
        read_predictions((ids, np.full((3, 2), 0.5), ["no", "yes"]), WhichColumns(), ["no", "yes"])


MIXED = pd.Series(IDS).iloc[[2, 0, 1]]
FRAME = pd.DataFrame(COLUMNS)


@pytest.mark.parametrize(
    ("features", "groups"),
    [
        ((MIXED, pd.DataFrame(VALUES)), None),
        ((MIXED, VALUES), pd.Series([1, 1, 2])),
        ((IDS, pd.DataFrame(VALUES)), pd.Series([1, 1, 2]).iloc[::-1]),
        (FRAME, pd.Series([1, 1, 2]).iloc[::-1]),
    ],
)
def test_rows_in_another_order_are_not_paired(features: Any, groups: Any) -> None:
    with pytest.raises(InputError, match="rows in another order cannot be paired"):
        read_features(features, WhichColumns(), groups=groups)


def test_rows_with_the_same_index_are_paired() -> None:
    mixed = FRAME.iloc[[2, 0, 1]]
    table = read_features((mixed["task"], mixed[["x", "y", "z"]].astype(float)), WhichColumns(), groups=mixed["task"])
    assert np.array_equal(table.values[table.rows(IDS)], VALUES, equal_nan=True)
    assert table.groups == ["c", "a", "b"]


@pytest.mark.parametrize(
    "groups",
    [[1, None, 2], np.array([1, np.nan, 2]), pa.array([1, None, 2]), pd.Series([1, None, 2], dtype="Int64")],
    ids=lambda given: type(given).__name__,
)
def test_a_missing_group_is_the_same_in_every_form(groups: Any) -> None:
    table = read_features((IDS, VALUES), WhichColumns(), groups=groups)
    frame = read_features(pd.DataFrame({**COLUMNS, "doc": [1, None, 2]}), WhichColumns(group="doc"))
    assert table.groups == frame.groups == ["1", "", "2"]


@pytest.mark.parametrize("groups", [5, "abc", {1, 2, 3}, np.zeros((3, 1))], ids=str)
def test_groups_that_are_no_column(groups: Any) -> None:
    with pytest.raises(InputError, match="groups must be"):
        read_features((IDS, VALUES), WhichColumns(), groups=groups)


def test_two_groups_of_one_item() -> None:
    with pytest.raises(InputError, match="'a' has two different rows"):
        read_features((["a", "b", "a"], np.zeros((3, 1))), WhichColumns(), groups=[1, 1, 2])


def test_a_column_of_lists(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": IDS, "embedding": VALUES.tolist()})
    frame.write_parquet(tmp_path / "f.parquet")
    for given in (frame, frame.to_pandas(), frame.to_arrow(), tmp_path / "f.parquet"):
        table = read_features(given, WhichColumns())
        assert table.names == ["embedding[0]", "embedding[1]", "embedding[2]"]
        assert np.array_equal(table.values[table.rows(IDS)], VALUES, equal_nan=True)


def test_kinds_of_numbers_in_a_file(tmp_path: Path) -> None:
    kinds = [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(23, 2), pa.bool_()]
    columns = {f"c{k}": pa.array([0, 1, 1]).cast(kind) for k, kind in enumerate(kinds)}
    pq.write_table(pa.table({"task": IDS, **columns}), tmp_path / "f.parquet")
    table = read_features(tmp_path / "f.parquet", WhichColumns())
    assert table.values.tolist() == [[0.0] * 5, [1.0] * 5, [1.0] * 5]
    pq.write_table(pa.table({"task": IDS, "x": [{"a": 1}] * 3}), tmp_path / "s.parquet")
    with pytest.raises(InputError, match="'x' holds no numbers"):
        read_features(tmp_path / "s.parquet", WhichColumns())


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", VALUES.astype(np.float32))
    (tmp_path / "ids.txt").write_text("a\nb\nc\n")
    table = read_features(tmp_path / "f.npy", WhichColumns(), ids=tmp_path / "ids.txt")
    assert isinstance(table.values.base, np.memmap)
    assert np.array_equal(table.values, VALUES.astype(np.float32), equal_nan=True)
    with pytest.raises(ParameterError, match="file has no ids"):
        read_features(tmp_path / "f.npy", WhichColumns())
    (tmp_path / "ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="2 ids for 3 rows"):
        read_features(tmp_path / "f.npy", WhichColumns(), ids=tmp_path / "ids.txt")
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a readable"):
        read_features(tmp_path / "o.npy", WhichColumns(), ids=tmp_path / "ids.txt")


def test_large_tables_go_to_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarevote.features.table._IN_MEMORY", 10)
    pd.DataFrame(COLUMNS).to_parquet(tmp_path / "f.parquet")
    with pytest.warns(RarevoteWarning, match="3 rows of 3 numbers go to a temporary file"):
        table = read_features(tmp_path / "f.parquet", WhichColumns())
    assert isinstance(table.values, np.memmap)
    assert np.array_equal(table.values, VALUES.astype(np.float32), equal_nan=True)


def test_the_id_column() -> None:
    named = pd.DataFrame(COLUMNS).rename(columns={"task": "picture"})
    assert same(read_features(named, WhichColumns(id="picture")))
    assert same(read_features(named, WhichColumns(task="picture")))
    with pytest.raises(ColumnsError, match="no column"):
        read_features(named, WhichColumns())
    with pytest.raises(ColumnsError, match="has no column 'photo'"):
        read_features(named, WhichColumns(id="photo"))


def test_groups_are_no_feature() -> None:
    table = read_features(pd.DataFrame({**COLUMNS, "doc": [1, 1, 2]}), WhichColumns(group="doc"))
    assert same(table)
    assert table.groups == ["1", "1", "2"]


HOSTILE: list[tuple[Any, str]] = [
    (pd.DataFrame({**COLUMNS, "words": ["u", "v", "w"], "more": ["1", "2", "3"]}), "'words'.*'more' hold no numbers"),
    (pd.DataFrame({"task": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}), "'a' has two different rows"),
    (pd.DataFrame({"task": ["a", None, "c"], "x": [1.0, 2.0, 3.0]}), "1 row has no id"),
    (pd.DataFrame({"task": IDS, "x": [[1.0, 2.0], [1.0], [2.0, 3.0]]}), "lists of unequal length"),
    (pd.DataFrame({"task": IDS, "x": [[1.0, "u"], [1.0, 2.0], [2.0, 3.0]]}), "row 1 is not a list of numbers"),
    (pd.DataFrame({"task": IDS}), "no columns of numbers"),
    ((IDS, np.zeros((2, 3))), "3 ids for 2 rows"),
    ((IDS, np.array([["u"], ["v"], ["w"]])), "numbers in rows and columns are needed"),
    ((IDS, np.zeros((3, 3), dtype=complex)), "numbers in rows and columns are needed"),
    ((IDS, [[1.0], [2.0, 3.0], [4.0]]), "lists of unequal length"),
    ((IDS, np.zeros(3)), "numbers in rows and columns are needed"),
    (np.zeros((3, 3)), "an array does not say which row is which item"),
    ((IDS, np.zeros((3, 5000))), "5,000 columns, more than the 4,096 supported: project"),
    (7, "cannot read features from int"),
    (pa.table({"task": IDS, "x": [{"a": 1}, {"a": 2}, {"a": 3}]}), "'x' holds no numbers"),
    ((IDS, np.full((3, 2), "2020-01-01", dtype="M8[D]")), "numbers in rows and columns are needed"),
    ((["x", "y", "z"], np.zeros((3, 2))), "no id is one of the votes' tasks .its first is 'x', and the tasks look"),
]


@pytest.mark.parametrize(("features", "sentence"), HOSTILE, ids=lambda given: str(given)[:20])
def test_a_hostile_table_gets_a_sentence(features: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        rarevote.fit(VOTES, features=features)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("task,x\na,1\nb,red\nc,2\n", "'x' holds no numbers"),
        ("task,x\na,1\na,2\nb,3\n", "'a' has two different rows"),
        ("task,x\na,1,2\nb,3\n", "f.csv"),
        ('task,x\na,"[1, 2]"\nb,[3]\n', "lists of unequal length"),
        ('task,x\na,"[1, red]"\nb,"[3, 4]"\n', "row 1 is not a list of numbers"),
        ('task,x\na,"[[1], 2]"\nb,"[3, 4]"\n', "row 1 is not a list of numbers"),
        ("task,x\n", "no rows"),
    ],
)
def test_a_hostile_file_gets_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        rarevote.fit(VOTES, features=tmp_path / "f.csv")


def test_many_columns_of_text_are_read_at_once(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 300))
    values[1, 7], values[2, 40] = np.nan, np.inf
    frame = pd.DataFrame(values, columns=[f"f{k}" for k in range(300)]).assign(flag=["true", " False", ""], task=IDS)
    frame.to_csv(tmp_path / "f.csv", index=False, na_rep="NA")
    table = read_features(tmp_path / "f.csv", WhichColumns())
    assert table.values[:, :300] == pytest.approx(values, nan_ok=True)
    assert table.values[:, 300].tolist()[:2] == [1.0, 0.0]
    assert np.isnan(table.values[2, 300])


def test_too_many_columns_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.csv").write_text("task," + ",".join(f"f{k}" for k in range(5000)) + "\n" + "a" + ",0" * 5000 + "\n")
    pl.DataFrame({"task": IDS, "e": [[0.0] * 5000] * 3}).write_parquet(tmp_path / "f.parquet")
    monkeypatch.setattr("rarevote.features.table._room", lambda *_: pytest.fail("it is read"))
    for name in ("f.csv", "f.parquet"):
        with pytest.raises(InputError, match="5,000 columns, more than the 4,096 supported"):
            read_features(tmp_path / name, WhichColumns())


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarevote.io.unpacked._MAX_SMALL", 1 << 20)
    with gzip.open(tmp_path / "f.csv.gz", "wb") as packed:
        packed.write(b"task,x\n" + b"a,1\n" * 500_000)
    with pytest.raises(InputError, match=r"unpacks from .* to 12,000,000 bytes, too much for a table of items"):
        read_features(tmp_path / "f.csv.gz", WhichColumns())
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 100000000000), }".ljust(117) + b"\n"
    (tmp_path / "f.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(100))
    (tmp_path / "ids.txt").write_text("a\nb\nc\n")
    with pytest.raises(InputError, match=r"not a readable .npy file of numbers"):
        read_features(tmp_path / "f.npy", WhichColumns(), ids=tmp_path / "ids.txt")


def test_equal_rows_count_once() -> None:
    table = read_features(pd.DataFrame({"task": ["a", "b", "a"], "x": [1.0, 2.0, 1.0]}), WhichColumns())
    assert table.place == {"a": 0, "b": 1}


def test_numbers_are_joined_as_text() -> None:
    votes = [(item, worker, "yes" if item == 1 else "no") for item in (1, 2, 3) for worker in ("ann", "bob")]
    fitted = rarevote.fit(votes, features=(["1", "2", "3", "4"], np.zeros((4, 1))))
    assert fitted.decide().tasks.tolist() == [1, 2, 3, 4]
    assert "at least 50 voted items" in fitted.features_.reason  # type: ignore[union-attr]


PREDICTED = pd.DataFrame({"task": IDS, "yes": [0.9, 0.2, 0.1], "no": [0.1, 0.8, 0.9]})


def test_predicted_probabilities() -> None:
    table = read_predictions(PREDICTED, WhichColumns(), ["no", "yes"])
    assert table.classes == ["yes", "no"]
    with pytest.warns(RarevoteWarning, match="model is not a class: the column is left out"):
        read_predictions(PREDICTED.assign(model="v1"), WhichColumns(), ["no", "yes"])
    given = read_predictions((IDS, PREDICTED[["no", "yes"]].to_numpy(), ["no", "yes"]), WhichColumns(), ["no", "yes"])
    assert given.classes == ["no", "yes"]


@pytest.mark.parametrize("classes", [[False, True], [0.0, 1.0], [0, 1], [0.5, 1.0], ["0", "1"]], ids=str)
def test_predicted_probabilities_of_classes_that_are_no_text(classes: list[Any], tmp_path: Path) -> None:
    p = PREDICTED[["no", "yes"]].to_numpy()
    frame = pd.DataFrame({classes[1]: p[:, 1], "task": IDS, classes[0]: p[:, 0]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    for given in (
        frame,
        tmp_path / "p.csv",
        (IDS, p, classes),
        (IDS, p, pa.array(classes)),
        (IDS, p, np.array(classes)),
    ):
        table = read_predictions(given, WhichColumns(), classes)
        order = [table.classes.index(spelling(name)) for name in classes]
        assert np.array_equal(table.values[:, order], p)


def test_integers_as_floats_name_the_same_classes() -> None:
    frame = pd.DataFrame({"task": IDS, 0.0: PREDICTED["no"], 1.0: PREDICTED["yes"]})
    for classes in ([0, 1], ["0", "1"]):
        assert read_predictions(frame, WhichColumns(), classes).classes == ["0", "1"]


HALF = np.full((3, 2), 0.5)


@pytest.mark.parametrize(
    ("predicted", "sentence"),
    [
        ((IDS, HALF, {"no", "yes"}), "the classes of pred_probs must be a column, got .*set"),
        ((IDS, HALF, 3), "the classes of pred_probs must be a column, got 3"),
        ((IDS, HALF, None), "the classes of pred_probs must be a column, got None"),
        ((IDS, HALF, "ny"), "the classes of pred_probs must be a column, got 'ny'"),
        ((IDS, HALF, ["no", "no"]), "the class 'no' has 2 columns"),
        ((IDS, np.full((3, 3), 1 / 3), ["no", "no", "yes"]), "the class 'no' has 2 columns"),
        ((IDS, np.ma.array(HALF, mask=HALF * [0, 2]), ["no", "yes"]), r"not probabilities .*0.5, nan"),
        ((MIXED, pd.DataFrame(HALF), ["no", "yes"]), "rows in another order cannot be paired"),
        ((IDS, PREDICTED[["yes", "no"]], ["no", "yes"]), "the columns of the frame are yes, no, and the classes given"),
        ((IDS, pl.DataFrame({"yes": 3 * [0.5], "no": 3 * [0.5]}), ["no", "yes"]), "give them in one order"),
        ((IDS, pa.table({"yes": 3 * [0.5], "no": 3 * [0.5]}), ["no", "yes"]), "give them in one order"),
    ],
)
def test_predicted_probabilities_that_are_ambiguous(predicted: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        rarevote.fit(VOTES, pred_probs=predicted)


def test_a_masked_array_alone_is_not_probabilities() -> None:
    with pytest.raises(InputError, match="not probabilities"):
        rarevote.fit(VOTES, pred_probs=np.ma.array(HALF, mask=HALF * [0, 2]))


def test_classes_given_by_numbered_columns() -> None:
    for values in (pd.DataFrame(HALF), PREDICTED[["no", "yes"]], pl.DataFrame(HALF)):
        assert read_predictions((IDS, values, ["no", "yes"]), WhichColumns(), ["no", "yes"]).classes == ["no", "yes"]
    assert read_predictions((IDS, pd.DataFrame(HALF), [1, 0]), WhichColumns(), [0, 1]).classes == ["1", "0"]


@pytest.mark.parametrize(
    ("predicted", "sentence"),
    [
        (PREDICTED.rename(columns={"yes": "ja", "no": "nein"}), "no column is a class: its columns are"),
        (PREDICTED.assign(yes=[1.4, 0.2, 0.1]), "not probabilities between 0 and 1"),
        (PREDICTED.assign(yes=[np.nan, 0.2, 0.1]), "not probabilities between 0 and 1"),
        (PREDICTED.assign(yes=0.5), "do not sum to 1"),
        (PREDICTED.assign(yes="high"), "'yes' holds no numbers"),
        (PREDICTED[["yes", "no"]].to_numpy()[:2], r"shape \(2, 2\) for 3 items with votes and 2 classes"),
        (PREDICTED[["yes"]].to_numpy(), r"shape \(3, 1\) for 3 items with votes and 2 classes"),
    ],
)
def test_hostile_probabilities_get_a_sentence(predicted: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        rarevote.fit(VOTES, pred_probs=predicted)


def test_an_array_alone_is_in_the_order_of_the_votes(tmp_path: Path) -> None:
    drawn = draw_crowd(1, pool=0)
    order = np.random.default_rng(3).permutation(len(drawn.votes))
    votes = [drawn.votes[number] for number in order]
    first = list(dict.fromkeys(task for task, _, _ in votes))
    assert first != sorted(first)
    p = drawn.probabilities[[drawn.ids.index(task) for task in first]]
    frame = pd.DataFrame(votes, columns=["picture", "worker", "label"])
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet")
    wanted = rarevote.fit(votes, pred_probs=(first, p, ["c0", "c1"])).probabilities
    dicts = frame.to_dict("records")
    files: list[Any] = [tmp_path / "v.csv", str(tmp_path / "v.parquet")]
    for data in [frame, pl.from_pandas(frame), frame.to_dict("list"), dicts, *files]:
        found = rarevote.fit(data, columns={"task": "picture"}, pred_probs=p)
        assert found.features_ is not None
        assert found.features_.used
        assert np.array_equal(found.probabilities, wanted)
    for data in (votes, tuple(map(list, zip(*votes, strict=True)))):
        assert np.array_equal(rarevote.fit(data, pred_probs=p).probabilities, wanted)
    with pytest.raises(InputError, match="Crowd does not say in which order the items are: give"):
        rarevote.fit(rarevote.read(votes), pred_probs=p)
    with pytest.raises(InputError, match="an array does not say which row is which item"):
        rarevote.fit(votes, pred_probs=p).predict(pred_probs=p)


def test_options_without_what_they_are_about() -> None:
    with pytest.raises(ParameterError, match="features_group needs features"):
        rarevote.fit(VOTES, features_group="doc")
    with pytest.raises(ParameterError, match="pred_probs_id needs pred_probs"):
        rarevote.fit(VOTES, pred_probs_id="doc")


def test_columns_that_an_array_does_not_have(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", VALUES)
    (tmp_path / "ids.txt").write_text("a\nb\nc\n")
    pair, triple = (IDS, VALUES), (IDS, HALF, ["no", "yes"])
    arrays: list[tuple[Any, dict[str, Any]]] = [
        (pair, {}),
        (tmp_path / "f.npy", {"features_ids": tmp_path / "ids.txt"}),
    ]
    for features, more in arrays:
        for option in ("features_group", "features_id"):
            with pytest.raises(ParameterError, match="an array has no column 'doc': give a frame"):
                rarevote.fit(VOTES, features=features, **{**more, option: "doc"})
    with pytest.raises(ParameterError, match="pred_probs: an array has no column 'doc'"):
        rarevote.fit(VOTES, pred_probs=triple, pred_probs_id="doc")
    for given in (pair, FRAME):
        with pytest.raises(ParameterError, match=r"features_ids needs a \.npy file: features has its own ids"):
            rarevote.fit(VOTES, features=given, features_ids=tmp_path / "ids.txt")
    with pytest.raises(ParameterError, match=r"a \.npy file has no ids: give"):
        rarevote.fit(VOTES, features=tmp_path / "f.npy", features_ids=IDS)


@pytest.mark.parametrize("given", [5, {"folds": 3}, "x", FeatureSettings], ids=str)
def test_settings_that_are_none(given: Any) -> None:
    with pytest.raises(ParameterError, match="feature_settings must be FeatureSettings"):
        rarevote.fit(VOTES, features=(IDS, VALUES), feature_settings=given)


@pytest.mark.parametrize("given", [0.5, "12", {0.1, 1.0}, {0.1: 1}, None], ids=str)
def test_candidates_that_are_no_list(given: Any) -> None:
    with pytest.raises(ParameterError, match="tau2 must be a list of numbers"):
        FeatureSettings(tau2=given)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, iter])
def test_candidates_in_every_form(kind: Any) -> None:
    assert FeatureSettings(tau2=kind([0.1, 1.0])) == FeatureSettings(tau2=(0.1, 1.0))
