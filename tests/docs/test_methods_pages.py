"""The docs list what methods declare that they can do, and no list is written by hand."""

from __future__ import annotations

from benchmarks import methods_pages

from rarevote.methods.registry import METHODS, methods_that


def test_the_table_says_what_the_registry_says() -> None:
    lines = methods_pages.capabilities_of_all().splitlines()
    (_, *head), _, *rows = [[cell.strip(" `") for cell in line[1:-1].split("|")] for line in lines if line[:1] == "|"]
    assert [name for name, *_ in rows] == list(METHODS)
    for number, capability in enumerate(head, 1):
        assert [cells[0] for cells in rows if cells[number]] == methods_that(capability)
