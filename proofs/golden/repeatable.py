"""What cannot repeat: the clock and drawn seeds, which stand still here, and paths and versions, which get one name."""

from __future__ import annotations

import datetime
import io
import re
import secrets
import sys
import time
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
# Compiled libraries that look at the type of a moment when they are loaded, and crash where it is not the built-in one.
_LOADED_BEFORE = (
    "pandas", "polars", "pyarrow.dataset", "pyarrow.feather", "pyarrow.parquet", "duckdb",
)  # fmt: skip
_NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


class _StillMeta(type):
    """Any moment is an instance of the still class: who asks for the type of a moment gets the answer as before."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _Moment)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _Moment)


_Moment = datetime.datetime


class _StillMoment(_Moment, metaclass=_StillMeta):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _NOW.astimezone(tz) if tz is not None else _NOW.replace(tzinfo=None)


def stop_the_clock() -> None:
    """Durations are 0, the date is fixed, the seed that an audit draws is 1; before the package is imported.

    A certificate has a hash over the moments and the seed of its plan: replacing them in the text would come too late.
    """
    for name in _LOADED_BEFORE:
        import_module(name)
    time.perf_counter = lambda: 1000.0
    datetime.datetime = _StillMoment  # type: ignore[misc]
    secrets.randbits = lambda k: 1


def unpacked(content: bytes) -> bytes:
    """The members of a ZIP file (a spreadsheet, arrays of NumPy), without the times it has of them; else as it is."""
    if not content.startswith(b"PK\x03\x04"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(name.encode() + b":\n" + archive.read(name) for name in archive.namelist())


def normalised(text: str, scratch: Path, version: str) -> str:
    """The text without what differs between two runs of the same code."""
    for path, name in (
        (scratch, "<scratch>"),
        (scratch.parent, "<folder>"),
        (REPOSITORY, "<repository>"),
        (Path(sys.prefix), "<python>"),
    ):
        text = text.replace(str(path.resolve()), name).replace(str(path), name)
    text = text.replace(f"rarevote {version}", "rarevote <version>").replace(f'"{version}"', '"<version>"')
    text = re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:<port>", text)
    # Of processes with a clock of their own.
    text = re.sub(r"\b\d+\.\d+ s\b", "<seconds> s", text)
    text = re.sub(r'"seconds": (\{[^}]*\}|[\d.e-]+)', '"seconds": <seconds>', text)
    text = re.sub(time.strftime("%Y-%m-%d") + r"(T[\d:.]+\+00:00)?", "<today>", text)
    text = re.sub(r'(token=|token" value=")[\w-]{43}', r"\1<token>", text)
    return re.sub(r"\bat 0x[0-9a-f]+\b", "at <address>", text)
