"""Make the example data that rarevote ships: a crowd of rail inspectors, half of whom overlook defects.

    python examples/make_rails.py [FOLDER]

3 000 images of rails, 120 of them with a defect, each seen by five or six of 40 inspectors. Hardly anybody
reports a defect where there is none. Half of the inspectors, though, overlook three defects out of four, and
so a majority vote loses two out of five. The crowd is simulated: no rail, image or inspector exists. The same
call gives the same files, byte for byte.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from rarevote import simulate_crowd, write_crowd

SHIPPED = Path(__file__).resolve().parents[1] / "src" / "rarevote" / "data" / "rails"


def make_rails(folder: Path) -> None:
    """Write ``labels.csv`` and ``truth.csv`` into the folder."""
    crowd = simulate_crowd(
        n_tasks=3000,
        n_workers=40,
        imbalance=24,  # 2 880 sound, 120 with a defect
        exact_counts=True,
        votes_per_task=5.5,
        p_good=0.20,
        p_majority=0.50,
        p_minority=0.20,
        p_bad=0.10,
        accuracies={  # on images of sound rails, on images with a defect
            "good": (0.99, 0.90),
            "majority": (0.99, 0.25),
            "minority": (0.98, 0.93),
            "bad": (0.97, 0.15),
        },
        hard_share=0.2,
        hard_penalty=0.03,
        random_state=2,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as desk:
        files = write_crowd(
            desk,
            [crowd],
            task_name=lambda number: f"rail-{number + 1:04d}.jpg",
            worker_name=lambda number: f"inspector-{number + 1:02d}",
            class_names=["sound", "defect"],
        )
        # workers.csv stays behind: the example is for finding out who overlooks what.
        for path in (files.labels, files.truth):
            shutil.copyfile(path, folder / path.name)


if __name__ == "__main__":
    make_rails(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED)
