"""Fixtures that every test may use, and the one line that says when real data are absent."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings

import rarevote.decide.sampler as sampler_module
from rarevote.decide import sampled
from rarevote.decide.sampler import Drawn, VoteSampler
from rarevote.kernels import plain
from tests.browser import WITHOUT, started_browser
from tests.study.rivals import WITHOUT as WITHOUT_RIVALS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


@pytest.fixture(scope="module")
def compiled() -> Iterator[None]:
    """Compiled passes for data of any size; see :mod:`rarevote.kernels.plain`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "MAX_PLAIN_CELLS", -1)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started_browser() as opened:
        if opened is None:
            if os.environ.get("RAREVOTE_REQUIRE_BROWSER") == "1":
                pytest.fail(WITHOUT)
            pytest.skip(WITHOUT)
        yield opened


@contextmanager
def shortened_chains() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("_MIN_SWEEPS", "_MAX_SWEEPS"):
            patch.setattr(sampler_module, limit, 300)
        yield


_DRAWN: dict[bytes, tuple[Drawn, dict[str, Any]]] = {}
_RUN = VoteSampler.run


@pytest.fixture(scope="session", autouse=True)
def sampled_once() -> Iterator[None]:
    """Whoever calibrates the same votes again gets what was drawn the first time, which takes seconds.

    What the sampler draws is a function of its state alone: ``test_draws_are_a_function_of_the_state`` holds that.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VoteSampler, "run", _run_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_draws() -> Iterator[None]:
    """Few sweeps behind expectations and the ranking of an audit; what 400 give, ``benchmarks/`` measures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled, "SWEEPS", 40)
        yield


@pytest.fixture
def all_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many sweeps as users get, where the numbers are those of a page."""
    monkeypatch.setattr(sampled, "SWEEPS", 400)


@pytest.fixture(scope="module")
def short_chains() -> Iterator[None]:
    """Short chains of that sampler, for tests of what is done with its draws, whatever they are."""
    with shortened_chains():
        yield


@pytest.fixture
def always_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the tests of the sampler itself."""
    monkeypatch.setattr(VoteSampler, "run", _RUN)


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state).encode()
    if value is None or isinstance(value, (int, float, str)):
        return repr(value).encode()
    # A tuple, or a record of such values.
    return b"".join(map(_bytes_of, value if isinstance(value, (tuple, list)) else vars(value).values()))


def _run_once(sampler: VoteSampler, *plan: int) -> Drawn:
    length = sampler_module._MIN_SWEEPS, sampler.max_sweeps()
    key = hashlib.blake2b(b"".join(_bytes_of(value) for value in (plan, length, *vars(sampler).values()))).digest()
    if key not in _DRAWN:
        drawn = _RUN(sampler, *plan)
        _DRAWN[key] = copy.deepcopy((drawn, vars(sampler)))
        return drawn
    drawn, after = copy.deepcopy(_DRAWN[key])
    vars(sampler).update(after)
    return drawn


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    if skipped := sum(WITHOUT in str(getattr(report, "longrepr", "")) for report in reports):
        terminalreporter.write_line(f"{skipped} tests in a browser were skipped: {WITHOUT}.")
    if skipped := sum(WITHOUT_RIVALS in str(getattr(report, "longrepr", "")) for report in reports):
        terminalreporter.write_line(f"{skipped} files of tests were skipped: {WITHOUT_RIVALS}.")
    if find_shared_folder() is None:
        terminalreporter.write_line("Tests on the real benchmark datasets were skipped: RAREVOTE_DATA is not set.")


# Files that take ten seconds or more: begun first, so that no worker is left with one while the others have nothing.
LONG_FILES = (
    "methods/test_cc_rasch.py", "docs/test_docs.py", "docs/test_consoles.py", "page/test_parts.py",
    "cluster/test_dask.py", "workbench/test_browser.py", "page/test_page.py", "methods/test_anchored_rasch.py",
    "test_names_contract.py", "methods/test_dawid_skene.py", "diagnose/test_diagnose.py", "study/test_paper_study.py",
    "methods/test_glad.py", "io/test_large_files.py", "io/test_fuzz.py", "page/test_report_cli.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {REPOSITORY / "tests" / name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes by their size: what is packed carries the time, and all workers must find the same names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
