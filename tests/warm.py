"""Compile the kernels of every method once, into the cache on disk, before several workers need them at once."""

from __future__ import annotations

import warnings

from rarevote import simulate_crowd
from tests.tables import METHOD_ROWS


def main() -> None:
    # The loops are compiled for two classes apart from more.
    for n_classes in (2, 3):
        crowd = simulate_crowd(60, 9, n_classes=n_classes, random_state=1)
        gold = dict(enumerate(crowd.truth[:20].tolist()))
        for row in METHOD_ROWS:
            if n_classes == 2 or not row.binary:
                row.make().fit(crowd.arrays, *([gold] if row.needs_gold else []))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sixty tasks settle nothing, and need not
        main()
