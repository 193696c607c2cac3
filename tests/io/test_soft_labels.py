"""Soft labels as files that training code takes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import rarevote
from rarevote.errors import InputError
from rarevote.io.write import soft_labels
from tests.command import rarevote as command

VOTES = [("b", "ann", "yes"), ("b", "bob", "yes"), ("a", "ann", "no"), ("a", "bob", "no"), ("a", "cy", "yes")]
# By hand: votes 2:1 and 0:2, and one more vote split as all votes are, 2/5 : 3/5; tasks a, b and classes no, yes.
EXPECTED = np.array([[(2 + 2 / 5) / 4, (1 + 3 / 5) / 4], [(2 / 5) / 3, (2 + 3 / 5) / 3]])


def test_arrays_and_files(tmp_path: Path) -> None:
    soft = rarevote.fit(VOTES, "majority-vote").decide().soft_labels()
    soft.write(tmp_path / "soft.npz")
    with np.load(tmp_path / "soft.npz", allow_pickle=False) as found:
        assert found["task"].tolist() == ["a", "b"]
        assert found["classes"].tolist() == ["no", "yes"]
        assert found["p"].dtype == np.float32
        np.testing.assert_allclose(found["p"], EXPECTED, atol=1e-6)
    soft.write(tmp_path / "soft.parquet")
    table = duckdb.sql(f'SELECT task, "p:no", "p:yes" FROM \'{tmp_path}/soft.parquet\'').fetchall()
    assert [row[0] for row in table] == ["a", "b"]
    np.testing.assert_allclose([row[1:] for row in table], EXPECTED, atol=1e-6)


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    soft = rarevote.fit(([7, 7, 3, 3], ["a", "b", "a", "b"], [0, 0, 1, 1]), "majority-vote").decide().soft_labels()
    soft.write(tmp_path / "soft.npz")
    with np.load(tmp_path / "soft.npz", allow_pickle=False) as found:
        assert found["task"].tolist() == [3, 7]
        assert found["classes"].dtype.kind == "i"


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\n" + "".join(f"{t},{w},{c}\n" for t, w, c in VOTES))
    done = command(
        "aggregate", "votes.csv", "-m", "majority-vote", "-o", "r.csv", "--soft-out", "soft.npz", folder=tmp_path
    )
    assert "wrote soft.npz" in done.stderr
    with np.load(tmp_path / "soft.npz") as found:
        np.testing.assert_allclose(found["p"], EXPECTED, atol=1e-6)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    soft = soft_labels.SoftLabels(["a"], ["x"], np.ones((1, 1)))
    with pytest.raises(InputError, match=r"soft labels are written as .npz or .parquet"):
        soft.write(tmp_path / "soft.pkl")


def test_items_without_votes_have_no_soft_label() -> None:
    fitted = rarevote.fit([*VOTES, ("c", "ann", "?")], "majority-vote", abstain=["?"])
    soft = fitted.decide().soft_labels()
    assert list(soft.tasks) == ["a", "b"]
    np.testing.assert_allclose(soft.probabilities, EXPECTED)
    np.testing.assert_allclose(fitted.probabilities[2], EXPECTED.mean(axis=0))
