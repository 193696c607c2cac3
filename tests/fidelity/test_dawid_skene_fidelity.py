"""Dawid–Skene gives the paper's printed row on every dataset."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from rarevote.methods.dawid_skene.estimator import DawidSkene
from tests.benchmark_data import PRINTED, datasets, load, paper_row, scores


def test_dawid_skene_gives_every_printed_row(shared_folder: Path) -> None:
    rows = datasets(shared_folder)
    assert len(rows) == 31
    off = {}
    for row in rows:
        *votes, truth = load(shared_folder, row.slug)
        model = DawidSkene().fit(tuple(votes))
        ours = scores(truth, model.labels_.to_dict())
        paper = paper_row(shared_folder, row.paper_name, "Dawid-Skene")
        if max(abs(mine - printed) for mine, printed in zip(ours, paper, strict=True)) > PRINTED:
            off[row.slug] = (ours, paper)
        history = model.objective_history_
        assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(history))
    assert not off
