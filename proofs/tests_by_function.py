"""A plugin of pytest that notes which functions of the package each test calls (``-p proofs.tests_by_function``).

Writes JSON into the folder that ``CALLS_OUT`` names, a file for each process: ``tests`` (by ``file:name`` of a
function, the tests that call it) and ``seconds`` of each test. What a fixture of a whole file calls belongs to all
tests of that file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import rarevote

_PACKAGE = str(Path(rarevote.__file__).parent) + os.sep
_FUNCTION = 1  # CO_OPTIMIZED: not the body of a class or of a module

_calls: dict[str, set[tuple[str, str]]] = {}
_of_file: dict[str, set[tuple[str, str]]] = {}
_seconds: dict[str, float] = {}
_noted: dict[int, CodeType] = {}


def _note(frame: FrameType, event: str, argument: Any) -> None:
    del event, argument
    # By its address: the hash of code is that of all its parts, and this is called for every call there is.
    _noted[id(frame.f_code)] = frame.f_code


def _traced(into: dict[str, set[tuple[str, str]]], key: str) -> Iterator[None]:
    _noted.clear()
    threading.settrace(_note)
    sys.settrace(_note)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
        own = (code for code in _noted.values() if code.co_filename.startswith(_PACKAGE))
        functions = [one for one in own if one.co_flags & _FUNCTION]
        into.setdefault(key, set()).update(
            (one.co_filename, one.co_qualname.split(".<locals>")[0]) for one in functions
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Note what fixtures call."""
    yield from _traced(_of_file, item.nodeid.partition("::")[0])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note what the test calls."""
    yield from _traced(_calls, item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long it took."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Write what this process noted."""
    tests: dict[str, list[str]] = {}
    for test, called in _calls.items():
        for file, name in called | _of_file.get(test.partition("::")[0], set()):
            tests.setdefault(f"{file.removeprefix(_PACKAGE)}:{name}", []).append(test)
    seconds = {test: round(_seconds[test], 3) for test in _calls}
    path = Path(os.environ["CALLS_OUT"], f"{os.getpid()}.json")
    path.write_text(json.dumps({"tests": tests, "seconds": seconds}), encoding="utf-8")
