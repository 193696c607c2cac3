"""Answering in the browser: what the workbench writes down, answer by answer, and how an audit takes it up.

The workbench itself is a command (``rarevote audit review audit.json``); here a program answers in its place.

How-to: docs/howto/workbench.md
"""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

import rarevote
from rarevote import Audit
from rarevote.audit.journal import Entry, writing


def main() -> None:
    """The first round of an audit, answered into the journal beside the plan."""
    crowd = rarevote.simulate_crowd(400, imbalance=3, shared_errors="real", random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "audit.json"
        audit = rarevote.fit(crowd.arrays).audit(1, target=0.8)
        asked = audit.round()
        audit.save(plan)
        with writing(plan) as journal:  # one writer at a time; every answer is on the disk before the next
            for task in asked:
                when = datetime.datetime.now(datetime.UTC).isoformat()
                journal.append(Entry(task=task, label=int(crowd.truth[task]), who="anna", when=when))
        print(f"{len(asked)} asked, {Audit.load(plan).n_reviewed} answered")


if __name__ == "__main__":
    main()
