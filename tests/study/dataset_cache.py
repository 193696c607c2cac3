"""A cache of datasets that belongs to one test."""

from __future__ import annotations

from pathlib import Path

import pytest


def isolate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use ``folder`` as the cache, and no data folder; without a server of its own, the test reaches nobody."""
    monkeypatch.delenv("RAREVOTE_DATA", raising=False)
    monkeypatch.setenv("RAREVOTE_CACHE", str(folder))
    monkeypatch.setenv("RAREVOTE_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "*")
    return folder


def left_behind(cache: Path) -> list[str]:
    """Everything in the cache, by relative path."""
    return sorted(str(path.relative_to(cache / "datasets")) for path in (cache / "datasets").rglob("*"))
