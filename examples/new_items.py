"""New items of people whose votes were fitted, and scoring a result.

How-to: docs/howto/new-items.md
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import rarevote
from rarevote import example_files


def main() -> None:
    """Keep what was learned about the inspectors, then label an item that came later."""
    files = example_files()
    fitted = rarevote.fit(files.labels, rare="defect")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rails.model"
        fitted.save(path)
        model = rarevote.load(path)
    people = fitted.annotations.workers[:2].tolist()
    print(model.predict((["new", "new"], people, ["defect", "defect"])).to_dict())
    print(f"balanced accuracy {fitted.decide().score(files.truth)['balanced_accuracy']:.3f}")


if __name__ == "__main__":
    main()
