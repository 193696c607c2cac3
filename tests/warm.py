"""Compile what several tests need once, on two cores, into the cache on disk, before several workers need it."""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rarevote import simulate_crowd
from rarevote.kernels import plain
from tests.tables import METHOD_ROWS

# Every number of classes is compiled on its own; these are those of most tests. What takes longest comes first.
FITS = [
    *(("cc-rasch", n_classes) for n_classes in (3, 2)),
    ("crowdfm", 3),
    *(("anchored-rasch", n_classes) for n_classes in (3, 2)),
    ("glad", 3),
    *(("dawid-skene", n_classes) for n_classes in (3, 2)),
    ("mace", 3),
]


def fit(name: str, n_classes: int) -> None:
    """Fit a small crowd as a large one is fitted: compiled."""
    plain.MAX_PLAIN_CELLS = -1
    crowd = simulate_crowd(60, 9, n_classes=n_classes, random_state=1)
    (row,) = (row for row in METHOD_ROWS if row.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row.make().fit(crowd.arrays)


def main() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(fit, *zip(*FITS, strict=True)))


if __name__ == "__main__":
    main()
