"""Stored outcomes: one small JSON file for each part of a study, named after everything that affects its content.

A file is written completely or not at all, so a study can be stopped at any point and resumed, and running
it again only reads files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rarevote.io.json_text import parse_json
from rarevote.io.write.atomic import replacing


def as_key(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The key after a round trip through JSON."""
    read_back: dict[str, Any] = json.loads(json.dumps(parts, default=repr))
    return read_back


def file_name(title: str, key: Mapping[str, Any]) -> str:
    """A readable name, made unique by a digest of the key."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return f"{title}.{digest[:16]}.json"


def read_kept(path: Path, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outcome stored under exactly this key; None if the file is absent or was changed."""
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("key") == key else None


def write_kept(path: Path, key: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Store an outcome."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({"key": key, **content}, indent=1) + "\n", encoding="utf-8")
