"""A result of ours is refused as votes in every format that we write; tables of real annotators are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import rarevote
from rarevote.errors import InputError
from rarevote.io.write.columns import ENDINGS
from rarevote.result import Result
from tests.command import rarevote as command

VOTES = [
    (f"t{n}", f"w{w}", "yes" if (n % 3 == 0) != ((n + w) % 11 == 0) else "no") for n in range(40) for w in range(5)
]
pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")  # these crowds are made up
WORDS = r"a result of rarevote, not votes.*use the votes that it was made from.*rarevote score"


@pytest.fixture(scope="module")
def result() -> Result:
    return rarevote.fit(VOTES, "dawid-skene").decide()


@pytest.mark.parametrize("ending", [*ENDINGS, ".csv.gz", ".ndjson.zst"])
def test_results_in_every_format(ending: str, result: Result, tmp_path: Path) -> None:
    path = tmp_path / f"labels{ending}"  # the name says nothing
    result.write(path)
    for options in ({}, {"wide": True}, {"columns": {"task": "task"}}):
        with pytest.raises(InputError, match=WORDS):
            rarevote.read(path, **options)
    with pytest.raises(InputError, match=WORDS):
        rarevote.read([path, path])


def test_results_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for votes in (
        VOTES,
        [(task, worker, int(label == "yes")) for task, worker, label in VOTES],  # classes that are numbers
        [(task, worker, label == "yes") for task, worker, label in VOTES],
        [(task, worker, "only") for task, worker, _ in VOTES],  # one class
        [(task, worker, f"={label}") for task, worker, label in VOTES],  # escaped for spreadsheets
        VOTES[:5],  # one task
    ):
        for method in ("majority-vote", "dawid-skene", "anchored-rasch"):
            fitted = rarevote.fit(votes, method)
            fitted.decide().write(path, spreadsheet_safe=True)
            with pytest.raises(InputError, match=WORDS):
                rarevote.read(path)
    rarevote.fit(VOTES, "dawid-skene").decide(abstain_below=0.99).write(path)  # calibrated, some without a label
    with pytest.raises(InputError, match=WORDS):
        rarevote.read(path)


def test_soft_labels(result: Result, tmp_path: Path) -> None:
    result.soft_labels().write(tmp_path / "soft.parquet")
    with pytest.raises(InputError, match=WORDS):
        rarevote.read(tmp_path / "soft.parquet")


def test_every_verb_that_reads_votes(result: Result, tmp_path: Path) -> None:
    result.write(tmp_path / "r.csv")
    for verb in (["aggregate"], ["check"], ["compare"], ["plan", "--budget", "5"], ["annotators"], ["report"]):
        said = command(*verb, "r.csv", folder=tmp_path, code=1).stderr
        assert "r.csv: a result of rarevote, not votes" in said
    # What can be done with it.
    (tmp_path / "truth.csv").write_text("task,label\n" + "".join(f"t{n},no\n" for n in range(40)))
    command("score", "r.csv", "--truth", "truth.csv", folder=tmp_path)
    command("aggregate", "r.csv", folder=tmp_path, code=1)


# --------------------------------------------------------------------------------------------------------------------
# what is no result


def table(path: Path, header: str, rows: Sequence[str]) -> Path:
    path.write_text("\n".join([header, *rows, ""]))
    return path


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        # Annotators with such names, and words or numbers as votes.
        ("task,label,p:ann,p:bob,p:cy", [f"t{n},{n % 2},{n % 2},{n % 3 % 2},{n % 2}" for n in range(9)]),
        ("task,p:ann,p:bob", [f"t{n},{n % 2},{n % 3 % 2}" for n in range(9)]),
        ("task,label,p:ann,p:bob", [f"t{n},yes,yes,{'yes' if n % 2 else 'no'}" for n in range(9)]),
        # Two who never agree: the numbers sum to one, and the expected answer is no name of theirs.
        ("task,label,p:ann,p:bob", [f"t{n},{n % 2},{n % 2},{1 - n % 2}" for n in range(9)]),
        # One column of a judge's probability beside the votes.
        ("task,label,ann,bob,confidence", [f"t{n},a,a,{'ab'[n % 2]},0.5" for n in range(9)]),
        ("task,ann,bob,p:defect", [f"t{n},a,{'ab'[n % 2]},0.{n}" for n in range(9)]),
        ("item,confidence,decision", [f"t{n},{'ab'[n % 2]},{'ab'[n % 3 % 2]}" for n in range(9)]),
    ],
)
def test_wide_tables_of_annotators(header: str, rows: list[str], tmp_path: Path) -> None:
    path = table(tmp_path / "result.csv", header, rows)  # nor does the name of the file decide
    assert rarevote.read(path).annotations.n_workers >= 2
    assert rarevote.read(path, wide=True).annotations.n_workers >= 2


def test_votes_with_probabilities_of_judges(tmp_path: Path) -> None:
    rows = [f"t{n},{judge},{'yes' if n % 2 else 'no'},0.{n},0.{10 - n}" for n in range(1, 10) for judge in "ab"]
    path = table(tmp_path / "votes.csv", "task,worker,label,p:yes,p:no", rows)
    assert rarevote.read(path).annotations.n_annotations == 18
