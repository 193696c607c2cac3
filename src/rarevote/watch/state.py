"""The saved state of a watch: what the last round saw, in one file, so that an interrupted watch can resume.

It is written last in a round: an interrupted round is repeated from the start, and nothing of it is
counted twice.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError
from rarevote.io.json_text import parse_json
from rarevote.io.write.atomic import replacing

FILE = "watch.json"
_FORMAT = "rarevote watch 1"


@dataclass
class WatchState:
    """What a round saw.

    Attributes:
        source: what is watched.
        rounds: number of rounds.
        seen: fingerprint of votes, gold and settings.
        n_votes: number of votes.
        workers: number of votes of each annotator.
        labels: label of each item, empty for no answer.
        votes: fingerprint of the votes on each item.
        stand_out: annotators who stood out.
    """

    source: str
    rounds: int = 0
    seen: str = ""
    n_votes: int = 0
    workers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    votes: dict[str, str] = field(default_factory=dict)
    stand_out: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, folder: Path, source: str) -> WatchState:
        """The state of the last round in a folder; empty if there was none.

        Raises:
            InputError: the file is damaged, or the folder belongs to another watch.
        """
        path = folder / FILE
        if not path.exists():
            return cls(source)
        try:
            record = parse_json(path.read_bytes())
            if record.pop("format") != _FORMAT:
                raise ValueError("another format")
            state = cls(**record)
            kinds = {"source": str, "rounds": int, "seen": str, "n_votes": int, "stand_out": list}
            if not all(isinstance(getattr(state, one.name), kinds.get(one.name, dict)) for one in fields(cls)):
                raise ValueError("another kind of value")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                f"{path}: not a state file of rarevote watch; remove it to start again, or choose another --out"
            ) from None
        if state.source != source:
            raise InputError(f"{folder}: belongs to another watch ({state.source}); choose another --out")
        return state

    def save(self, folder: Path) -> None:
        """Write it, completely or not at all."""
        with replacing(folder / FILE) as temporary:
            text = json.dumps({"format": _FORMAT, **asdict(self)}, ensure_ascii=False)
            temporary.write_text(text, encoding="utf-8")


def votes_by_task(votes: Annotations) -> dict[str, str]:
    """A fingerprint of the votes on each item, independent of their order."""
    workers, classes = list(map(str, votes.workers.tolist())), list(map(str, votes.classes.tolist()))
    starts, found = votes.task_ptr.tolist(), {}
    worker, label = votes.worker.tolist(), votes.label.tolist()
    for row, task in enumerate(votes.tasks.tolist()):
        cast = range(starts[row], starts[row + 1])
        found[str(task)] = _hash(sorted((workers[worker[i]], classes[label[i]]) for i in cast))
    return found


def votes_by_worker(votes: Annotations) -> dict[str, int]:
    """Number of votes of each annotator."""
    names = list(map(str, votes.workers.tolist()))
    return {names[code]: count for code, count in sorted(Counter(votes.worker.tolist()).items())}


def fingerprint(by_task: Mapping[str, str], gold: Mapping[Any, Any], n_unvoted: int, settings: str) -> str:
    """A fingerprint of everything that the labels depend on."""
    known = sorted((str(task), str(label)) for task, label in gold.items())
    return _hash([sorted(by_task.items()), known, n_unvoted, settings])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
