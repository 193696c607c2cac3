"""Files of every kind: one reader for CSV, packed CSV, a folder, a wide table and plain Python rows.

How-to: docs/howto/files.md
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import rarevote


def main() -> None:
    """Read the same three votes in four ways."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = "image,rater,answer\n1.png,ann,crack\n1.png,bob,fine\n2.png,ann,fine\n"
        (folder / "votes.csv").write_text(plain)
        with gzip.open(folder / "packed.csv.gz", "wt") as handle:
            handle.write(plain.replace(",", ";"))
        (folder / "wide.csv").write_text("image,ann,bob\n1.png,crack,fine\n2.png,fine,\n")
        rows = [("1.png", "ann", "crack"), ("1.png", "bob", "fine"), ("2.png", "ann", "fine")]
        for data, options in (
            (folder / "votes.csv", {}),
            (folder / "packed.csv.gz", {}),
            (folder / "wide.csv", {"wide": True}),
            (rows, {}),
        ):
            crowd = rarevote.read(data, **options).annotations
            print(crowd.n_tasks, "tasks,", crowd.n_annotations, "votes,", crowd.classes.tolist())


if __name__ == "__main__":
    main()
