"""Columns whose names differ only in case: refused before the fit, by every verb that would write them by DuckDB."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rarevote as package
from rarevote.cluster import Dask
from rarevote.errors import InputError
from tests.command import rarevote

# Reading warns about such classes; these tests are about what is written.
pytestmark = pytest.mark.filterwarnings("ignore:classes that differ only in spelling")
VOTES = ["1,a,yes", "1,b,yes", "1,c,yes", "2,a,no", "2,b,no", "2,c,Yes", "3,a,Yes", "3,b,Yes", "3,c,yes"]
# Shares of the votes on each item, by hand.
SHARES = {"1": {"Yes": 0.0, "no": 0.0, "yes": 1.0}, "2": {"Yes": 1 / 3, "no": 2 / 3, "yes": 0.0},
          "3": {"Yes": 2 / 3, "no": 0.0, "yes": 1 / 3}}  # fmt: skip
CLASSES = "cannot have both columns 'p:Yes' and 'p:yes', which differ only in upper and lower case"
FIT = ("-m", "majority-vote")


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a fit fail, for what is refused before it."""

    def fit(*_given: Any, **_options: Any) -> None:
        raise AssertionError("a fit was started")

    monkeypatch.setattr("rarevote.methods.base.Estimator.fit_request", fit)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "v.csv").write_text("\n".join(["task,worker,label", *VOTES]) + "\n")
    plain = [row.replace("Yes", "yes") for row in VOTES]
    (tmp_path / "gold.csv").write_text("task,label\n3,YES\n")
    (tmp_path / "plain.csv").write_text("\n".join(["task,worker,label", *plain]) + "\n")
    shown = [f"{row},text,high" for row in plain]
    (tmp_path / "shown.csv").write_text("\n".join(["task,worker,label,Reason,Confidence", *shown]) + "\n")
    boxes = ["1,a,Cat|cat", "1,b,cat", "2,a,Cat", "2,b,Cat|cat"]
    (tmp_path / "boxes.csv").write_text("\n".join(["task,worker,label", *boxes]) + "\n")
    hits = [f"h{n // 3},s{n},{'abc'[n % 3]},{('yes', 'Yes', 'no')[n % 3]},{'xy'[n % 2]}" for n in range(12)]
    header = "HITId,AssignmentId,WorkerId,Answer.q1,Answer.q2"
    (tmp_path / "hits.csv").write_text("\n".join([header, *hits]) + "\n")
    return tmp_path


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("v.csv", f"standard output: {CLASSES}"),
        *((f"v.csv -o r.{ending}", f"r.{ending}: {CLASSES}")
          for ending in ("csv", "tsv", "csv.gz", "json", "ndjson.zst", "jsonl", "parquet")),
        ("v.csv -o r.arrow --soft-out s.parquet", f"s.parquet: {CLASSES}"),
        ("plain.csv -o r.csv --gold gold.csv -m dawid-skene", "both columns 'p:YES' and 'p:yes'"),
        ("plain.csv -o r.csv --class YES", "both columns 'p:YES' and 'p:yes'"),
        ("shown.csv -o r.csv --show Confidence", "both columns 'Confidence' and 'confidence'"),
        ("shown.csv -o r.arrow --show Reason --max-review 1 --review-out l.csv", "l.csv: cannot have both columns"),
        ("hits.csv --question all -o new", f"new/q1.csv: {CLASSES}"),
        ("boxes.csv --multilabel -o r.csv --sheet-out s.csv", "s.csv: cannot have both columns 'Cat' and 'cat'"),
    ],
)  # fmt: skip
def test_refused_by_aggregate(arguments: str, named: str, folder: Path) -> None:
    before = sorted(os.listdir(folder))  # noqa: PTH208
    done = rarevote("aggregate", *FIT, *arguments.split(), folder=folder, code=1)
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(folder)) == before  # noqa: PTH208


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("annotators v.csv --out a.csv", "a.csv: cannot have both columns 'recall:Yes' and 'recall:yes'"),
        ("watch v.csv --out w --every 1s --rounds 1", f"result.csv: {CLASSES}"),
    ],
)
def test_refused_by_other_verbs(arguments: str, named: str, folder: Path) -> None:
    verb, *others = arguments.split()
    assert named in rarevote(verb, *others, *FIT, folder=folder, code=1).stderr


def test_predict_says_it(folder: Path) -> None:
    for votes, said in (("v.csv", CLASSES), ("plain.csv", "")):
        rarevote("aggregate", "plain.csv", "-m", "dawid-skene", "--model-out", "m", "-o", "r.csv", folder=folder)
        done = rarevote("predict", "m", votes, "-o", "new.csv", folder=folder, code=1 if said else 0)
        assert said in done.stderr
        assert (folder / "new.csv").exists() != bool(said)


@pytest.mark.parametrize("ending", ["xlsx", "arrow", "feather"])
def test_formats_that_can_have_them(ending: str, folder: Path) -> None:
    path = folder / f"r.{ending}"
    rarevote("aggregate", "v.csv", *FIT, "-o", path.name, "--soft-out", "s.npz", folder=folder)
    if ending == "xlsx":
        header, *cells = importlib.import_module("openpyxl").load_workbook(path).active.iter_rows(values_only=True)
        rows = [dict(zip(header, row, strict=True)) for row in cells]
    else:
        rows = pl.read_ipc(path).to_dicts()
    expected = package.fit(folder / "v.csv", "majority-vote").decide().to_pandas().to_dict("records")
    assert [row["task"] for row in rows] == ["1", "2", "3"]
    for row, other in zip(rows, expected, strict=True):
        for name in ("Yes", "no", "yes"):
            assert row[f"p:{name}"] == pytest.approx(other[f"p:{name}"], abs=1e-6)


def test_posteriors_of_each_spelling(folder: Path) -> None:
    result = package.fit(folder / "v.csv", "majority-vote").decide()
    result.write(folder / "r.arrow", with_posterior=True)
    frames = [result.columns(with_posterior=True), pl.read_ipc(folder / "r.arrow").to_dict(as_series=False)]
    for frame in frames:
        for name in ("Yes", "no", "yes"):
            assert list(frame[f"posterior:{name}"]) == pytest.approx([SHARES[task][name] for task in "123"])
    with pytest.raises(InputError, match=r"r\.csv: cannot have both columns"):
        result.write(folder / "r.csv")


def test_an_audit_without_a_list_is_not_begun(folder: Path) -> None:
    table = "\n".join(["task,p,Label", *(f"{n},{n / 40},x" for n in range(40))])
    (folder / "s.csv").write_text(table + "\n")
    start = ["audit", "start", "s.csv", "--score", "p", "--find", "yes=0.5", "--plan", "p.json", "--show", "Label"]
    done = rarevote(*start, "--review-out", "l.csv", folder=folder, code=1)
    assert "l.csv: cannot have both columns 'Label' and 'label'" in done.stderr
    assert not (folder / "p.json").exists()
    rarevote(*start, "--review-out", "l.arrow", folder=folder)
    assert pl.read_ipc(folder / "l.arrow").columns == ["task", "Label", "label"]


def test_questions_and_summaries(folder: Path) -> None:
    done = rarevote("aggregate", "v.csv", *FIT, "--json", "-o", "r.arrow", folder=folder)
    assert set(json.loads(done.stdout)["classes"]) == {"Yes", "no", "yes"}


def test_dask_says_it_before_the_fit(folder: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=f"{CLASSES}.* or use a single machine"):
        Dask(folder / "out").fit(package.MajorityVote(), folder / "v.csv")
    assert not (folder / "out" / "summary.json").exists()
