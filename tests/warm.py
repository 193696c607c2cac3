"""Compile what several test files need once, into the cache on disk, before several workers need it at once.

Small fits never compile anything, and the tests of a method's own kernels are in one file: CrowdFM is what is left.
"""

from __future__ import annotations

from rarevote import simulate_crowd
from tests.tables import METHOD_ROWS


def main() -> None:
    crowd = simulate_crowd(60, 9, n_classes=3, random_state=1)
    for row in METHOD_ROWS:
        if row.name == "crowdfm":
            row.make().fit(crowd.arrays)


if __name__ == "__main__":
    main()
