"""docs/errors.md shows what the command line prints today, and has an example of every error."""

from __future__ import annotations

import pytest
from benchmarks import errors_page

from rarevote import errors


def test_the_page_is_up_to_date() -> None:
    """Every example is run again through the command line."""
    assert errors_page.PAGE.read_text(encoding="utf-8") == errors_page.page(), "run python -m benchmarks.errors_page"


def test_an_error_without_an_example_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class ForgottenError(errors.InputError):
        pass

    ForgottenError.__module__ = errors.__name__
    monkeypatch.setattr(errors, "ForgottenError", ForgottenError, raising=False)
    with pytest.raises(AssertionError, match="no example for ForgottenError"):
        errors_page.page()


def test_an_example_that_raises_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        errors_page.Example("InputError", "aggregate hole.csv", "", "") if example.kind == "InputError" else example
        for example in errors_page.EXAMPLES
    ]
    monkeypatch.setattr(errors_page, "EXAMPLES", tuple(wrong))
    with pytest.raises(AssertionError, match=r"hole\.csv: MissingValuesError instead of InputError"):
        errors_page.page()
