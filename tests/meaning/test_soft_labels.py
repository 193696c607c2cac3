"""Soft labels as files that training code takes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import rarevote
from rarevote.errors import InputError
from rarevote.meaning import soft_labels
from tests.command import rarevote as command

VOTES = [("b", "ann", "yes"), ("b", "bob", "yes"), ("a", "ann", "no"), ("a", "bob", "no"), ("a", "cy", "yes")]
# Shares of the votes, counted by hand; tasks a, b and classes no, yes in sorted order.
EXPECTED = np.array([[2 / 3, 1 / 3], [0, 1]])


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
    soft = rarevote.fit(([7, 7, 3], ["a", "b", "a"], [1, 0, 1]), "majority-vote").decide().soft_labels()
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
