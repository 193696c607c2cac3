"""docs/errors.md has an example of every error."""

from __future__ import annotations

import pytest
from benchmarks import errors_page
from benchmarks.evidence import REPOSITORY

from rarevote import errors

PAGE = REPOSITORY / "docs" / "errors.md"


@pytest.mark.parametrize("kind", errors_page.classes())
def test_every_error_has_its_examples_on_the_page(kind: str) -> None:
    assert f'examples_of("{kind}")' in PAGE.read_text(encoding="utf-8")


def test_an_error_without_an_example_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class ForgottenError(errors.InputError):
        pass

    ForgottenError.__module__ = errors.__name__
    monkeypatch.setattr(errors, "ForgottenError", ForgottenError, raising=False)
    with pytest.raises(AssertionError, match="no example for ForgottenError"):
        errors_page.examples_of("ForgottenError")


def test_an_example_that_raises_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        errors_page.Example("InputError", "aggregate hole.csv", "", "") if example.kind == "InputError" else example
        for example in errors_page.EXAMPLES
    ]
    monkeypatch.setattr(errors_page, "EXAMPLES", tuple(wrong))
    with pytest.raises(AssertionError, match=r"hole\.csv: MissingValuesError instead of InputError"):
        errors_page.examples_of("InputError")
