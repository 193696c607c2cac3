"""The page: one HTML file for the person who has to decide.

How-to: docs/howto/reading-the-page.md
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import rarevote
from rarevote import example_files


def main() -> None:
    """The rails of the demo."""
    result = rarevote.fit(example_files().labels, rare="defect").decide()
    with tempfile.TemporaryDirectory() as folder:
        made = result.report(Path(folder) / "rails.html", source="rails")
        print(made.headline)
        print(made.page.name, made.page.stat().st_size > 50_000)


if __name__ == "__main__":
    main()
