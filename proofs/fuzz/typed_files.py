"""Votes in several Parquet or Arrow files, whose columns may differ in type: the values must be those of the columns.

What once was wrong without a word stands behind it: the values of later files were cast to the types of the first.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import rarevote
from proofs.fuzz.oracles import ROLES, WrongAnswerError
from rarevote.errors import InputError

_EXACT = 1e15  # below it, the text of a whole number is beyond doubt


def some_files() -> list[bytes]:
    """Files of which one has another type in one role than the other."""
    one = {"task": [1, 2, 2], "worker": ["a", "a", "b"], "label": [0, 1, 1]}
    others = (
        {"task": [2.0, 3.5], "worker": ["b", "c"], "label": [1.0, 0.5]},
        {"task": ["2", "007"], "worker": ["b", "c"], "label": ["1", "no"]},
        {"task": [2, 3], "worker": ["b", "1"], "label": [True, False]},
        {"task": [2**53, 2**53 + 1], "worker": ["b", "c"], "label": [300, -1]},
    )
    return [json.dumps({"files": files}).encode() for other in others for files in ([one, other], [other, one])]


class TypedFiles:
    """Writes files and reads them again.

    Args:
        root: a folder for them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def enter(self, path: Path) -> None:
        """Write the files that a JSON file describes, and compare the votes that are read with their columns.

        Raises:
            InputError: no files can be made of it, or our own refusal.
            WrongAnswerError: the votes are not those of the columns.
        """
        content = path.read_bytes()
        try:
            files = json.loads(content)["files"]
            self._write(files, content)
        except Exception as error:  # the library's word on what is no table
            raise InputError(f"no files: {type(error).__name__}") from None
        crowd = rarevote.read(str(self._root)).annotations
        expected = expected_votes(files)
        found = zip(crowd.task_of_annotation(), crowd.worker, crowd.label, strict=True)
        read = Counter((crowd.tasks[t], crowd.workers[w], crowd.classes[y]) for t, w, y in found)
        if expected is not None and read != expected:
            raise WrongAnswerError(f"{sorted(map(str, read))[:9]} instead of {sorted(map(str, expected))[:9]}")

    def _write(self, files: list[dict[str, list[Any]]], content: bytes) -> None:
        import pyarrow as pa
        from pyarrow import feather, parquet

        tables = [pa.table({str(name): values for name, values in columns.items()}) for columns in files]
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir(parents=True)
        is_parquet = zlib.crc32(content) % 2
        for number, table in enumerate(tables):
            place = self._root / f"{number}.{'parquet' if is_parquet else 'arrow'}"
            parquet.write_table(table, place) if is_parquet else feather.write_feather(table, str(place))


def expected_votes(files: Any) -> Counter[tuple[Any, ...]] | None:
    """What the columns say where that is beyond doubt, and nothing is missing.

    Raises:
        WrongAnswerError: truth values beside others can only be refused.
    """
    if not all(isinstance(columns, dict) and set(columns) == set(ROLES) for columns in files):
        return None
    whole = {}
    for role in ROLES:
        values = [value for columns in files for value in columns[role]]
        kinds = {type(value) for value in values}
        if not kinds <= {str, int, float, bool} or any(value != value or not str(value).strip() for value in values):
            return None
        if any(bool in (own := {*map(type, columns[role])}) and len(own) > 1 for columns in files):
            return None  # the library makes one type of them
        if bool in kinds and len(kinds) > 1:
            raise WrongAnswerError(f"truth values beside {kinds} were read")
        if str in kinds and len(kinds) > 1:
            if any(not isinstance(value, str) and abs(value) >= _EXACT for value in values):
                return None
            values = [_spelled(value) for value in values]
        whole[role] = values
    return Counter(zip(*whole.values(), strict=True))


def _spelled(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
