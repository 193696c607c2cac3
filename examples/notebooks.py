"""Votes from a frame, the result as a frame, and the page's charts as altair objects.

How-to: docs/howto/notebooks.md
"""

from __future__ import annotations

import polars as pl

import rarevote
from rarevote import example_files


def main() -> None:
    """The inspectors of the demo: the least certain defects, and what an annotator recognises."""
    result = rarevote.fit(pl.read_csv(example_files().labels), rare="defect").decide()
    frame = pl.DataFrame(result)
    print(frame.filter(pl.col("label") == "defect").sort("confidence").head(5))
    print(result.plot.annotators().to_dict()["title"]["text"])


if __name__ == "__main__":
    main()
