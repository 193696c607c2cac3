"""Votes in folders of any name, beside what others left there: what is read must be what was written.

What once was wrong without a word stands behind it: a folder called ``label=v2`` replaced the column of that name, and
the half file of a killed writer was read as votes.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import rarevote
from rarevote.crowd.names import is_missing
from rarevote.errors import InputError
from rarevote.io.write.columns import write_columns

_COLUMNS = ("task", "worker", "label")
_ENDINGS = (".csv", ".ndjson", ".parquet")
_LEFT = (".votes.csv", "tmp_.votes.parquet", "_SUCCESS", "votes.csv.part", "~$votes.xlsx", ".votes.ndjson.tmp")
_MAX_NAME = 100


def some_crowds() -> list[bytes]:
    """What is laid out: rows, the folder they are in, the ending of their file, and what lies beside it."""
    rows = [["a", "x", "no"], ["a", "y", "yes"], ["b", "x", "no"], ["b", "y", "no"], ["c", "z", "yes"]]
    folders = ("label=v2", "task=1/worker=2", "day=2026-11-17/label=%20", "plain")
    return [
        json.dumps({"rows": rows, "folder": folder, "ending": ending, "left": list(_LEFT[place : place + 2])}).encode()
        for place, folder in enumerate(folders)
        for ending in _ENDINGS
    ]


class Folders:
    """Lays crowds out in a folder and reads them again.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._n = 0

    def enter(self, path: Path) -> None:
        """Write and read the crowd that a file describes.

        Raises:
            InputError: the file describes none.
        """
        rows, folder, ending, left = _described(path.read_bytes())
        shutil.rmtree(self._root, ignore_errors=True)
        place = self._root / folder
        place.mkdir(parents=True)
        votes = place / f"votes{ending}"
        columns = {
            name: np.array(values, dtype=object) for name, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
        }
        write_columns(columns, votes)
        for name in left:
            (place / name).write_bytes(b"task,worker,label\nleft,over,wrong\n")
        self._n += 1
        crowd = rarevote.read(self._root if self._n % 2 else votes).annotations
        found = zip(crowd.task_of_annotation(), crowd.worker, crowd.label, strict=True)
        read = Counter((crowd.tasks[t], crowd.workers[w], crowd.classes[y]) for t, w, y in found)
        assert read == Counter(map(tuple, rows)), (read, rows)


def _described(content: bytes) -> tuple[list[list[str]], str, str, list[str]]:
    try:
        record: Any = json.loads(content)
        rows = [[str(value) for value in row] for row in record["rows"]]
        parts = [part for part in str(record["folder"]).split("/") if part.strip(".")]
        left = [name for name in record["left"] if name in _LEFT]
        ending = record["ending"] if record["ending"] in _ENDINGS else ".csv"
        "".join([*parts, *(value for row in rows for value in row)]).encode()
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"no crowd: {error}") from None
    if not rows or any(len(row) != 3 or any(map(is_missing, row)) for row in rows):
        raise InputError("no crowd: a row without task, worker or label")
    named = all("\0" not in part and len(part.encode("utf-8", "replace")) < _MAX_NAME for part in parts)
    # A folder that is hidden or somebody's temporary one is left out on purpose.
    if not named or any(
        part.startswith((".", "_", "~$", "tmp_.")) or part.endswith((".tmp", ".part")) for part in parts
    ):
        raise InputError("no crowd: a folder that is not read")
    return rows, "/".join(parts) or "plain", ending, left
