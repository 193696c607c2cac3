"""A file of votes that grows, watched round by round: what is new, which labels flipped, who stands out.

A project of Label Studio is watched in the same way, with ``LabelStudioProject(Project(url, 7), out)`` for ``Files``.

How-to: docs/howto/live.md
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import rarevote
from rarevote.watch import Files, LabelsWatch


def main() -> None:
    """Half of the votes, nothing new, then all of them."""
    crowd = rarevote.simulate_crowd(200, 9, imbalance=3, random_state=0)
    rows = [f"{task},{worker},{label}\n" for task, worker, label in zip(*crowd.arrays, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        votes, out = Path(folder) / "votes.csv", Path(folder) / "watched"
        out.mkdir()
        watch = LabelsWatch(Files([str(votes)]), out)
        for part in (rows[: len(rows) // 2], [], rows[len(rows) // 2 :]):
            if not votes.exists():
                votes.write_text("task,worker,label\n")
            with votes.open("a") as handle:
                handle.writelines(part)
            found = watch.poll()
            print("\n".join(found.changes.sentences()) if found is not None else "nothing new")


if __name__ == "__main__":
    main()
