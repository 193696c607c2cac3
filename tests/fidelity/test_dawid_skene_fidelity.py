"""Dawid–Skene gives the paper's printed row on every dataset; the large ones, which are compiled, are long proofs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from rarevote.methods.dawid_skene.estimator import DawidSkene
from tests.benchmark_data import PRINTED, datasets, load, paper_row, scores


@pytest.mark.filterwarnings("ignore:.* votes of .* are few for")  # so they are, on one dataset
def test_dawid_skene_gives_every_printed_row(shared_folder: Path) -> None:
    assert len(datasets(shared_folder)) == 31
    off = {}
    for row in datasets(shared_folder):
        *votes, truth = load(shared_folder, row.slug)
        model = DawidSkene().fit(tuple(votes))
        ours = scores(truth, model.labels_.to_dict())
        paper = paper_row(shared_folder, row.paper_name, "Dawid-Skene")
        if max(abs(mine - printed) for mine, printed in zip(ours, paper, strict=True)) > PRINTED:
            off[row.slug] = (ours, paper)
        history = model.objective_history_
        assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(history))
    assert not off
