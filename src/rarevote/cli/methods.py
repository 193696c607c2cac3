"""``rarevote methods``: what there is."""

from __future__ import annotations

import json

import typer

from rarevote.cli.options.common import Json, examples

EXAMPLES = examples(
    "rarevote methods",
    "rarevote methods --json",
)


def methods(as_json: Json = False) -> None:
    """The aggregation methods, with one line each."""
    from rarevote.cli.show import aligned
    from rarevote.methods.registry import METHODS

    if as_json:
        found = [
            {"name": entry.name, "class": entry.class_name, "summary": entry.summary} for entry in METHODS.values()
        ]
        typer.echo(json.dumps(found))
        return
    width = max(len(entry.summary) for entry in METHODS.values())
    rows = [[entry.name, entry.class_name, entry.summary.ljust(width)] for entry in METHODS.values()]
    typer.echo(aligned(["method", "in Python", "what it does".ljust(width)], rows))
