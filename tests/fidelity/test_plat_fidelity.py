"""PLAT against the paper's table."""

from __future__ import annotations

from pathlib import Path

from rarevote.methods.plat import PLAT
from tests.benchmark_data import PRINTED, datasets, load, paper_row, scores

# The paper's row for `bird` carries the figures of the other release, `Bird`.
MISPRINTED = {"bird"}


def test_plat_gives_the_paper_rows(shared_folder: Path) -> None:
    off, checked = set(), 0
    for row in datasets(shared_folder):
        try:
            printed = paper_row(shared_folder, row.paper_name, "PLAT")
        except KeyError:
            continue
        task, worker, label, truth = load(shared_folder, row.slug)
        reached = scores(truth, PLAT().fit((task, worker, label)).labels_.to_dict())
        checked += 1
        if max(abs(ours - paper) for ours, paper in zip(reached, printed, strict=True)) > PRINTED:
            off.add(row.paper_name)
    assert checked == 20
    assert off <= MISPRINTED
