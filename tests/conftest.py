"""Fixtures that every test may use, and the one line that says when real data are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from rarevote.kernels import plain

# The first call of a kernel loads or compiles it: no single example may be timed.
settings.register_profile("rarevote", deadline=None)
settings.load_profile("rarevote")

REPOSITORY = Path(__file__).resolve().parent.parent


def find_shared_folder() -> Path | None:
    """The folder with `datasets/` and `paper/`: beside RAREVOTE_DATA, or next to the repository."""
    given = os.environ.get("RAREVOTE_DATA")
    datasets = Path(given) if given else REPOSITORY.parent / "shared" / "datasets"
    return datasets.parent if (datasets / "index.csv").is_file() else None


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    folder = find_shared_folder()
    if folder is None:
        message = "the benchmark datasets are not here: set RAREVOTE_DATA to their folder"
        if os.environ.get("RAREVOTE_REQUIRE_DATA") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled passes for data of any size; see :mod:`rarevote.kernels.plain`."""
    monkeypatch.setattr(plain, "MAX_PLAIN_VOTES", -1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if find_shared_folder() is None:
        terminalreporter.write_line("Tests on the real benchmark datasets were skipped: RAREVOTE_DATA is not set.")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes by their size: what is packed carries the time, and all workers must find the same names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
