"""``rarevote methods``: what there is, and what each method can do."""

from __future__ import annotations

import json

from rarevote.cli.options.output import json_option
from rarevote.cli.options.verb import verb
from rarevote.cli.show import aligned, tell


@verb("rarevote methods", "rarevote methods --json")
@json_option
def methods(as_json: bool) -> None:
    """List the aggregation methods and what each can do."""
    from rarevote.methods.capabilities import Capabilities
    from rarevote.methods.registry import METHODS, capability_table

    if as_json:
        found = [
            {
                "name": entry.name,
                "class": entry.class_name,
                "summary": entry.summary,
                "capabilities": {name: entry.capabilities.has(name) for name in Capabilities.names()},
                "needs_gold": entry.capabilities.needs_gold,
            }
            for entry in METHODS.values()
        ]
        tell(json.dumps(found))
        return
    width = max(len(entry.summary) for entry in METHODS.values())
    rows = [[entry.name, entry.class_name, entry.summary.ljust(width)] for entry in METHODS.values()]
    tell(aligned(["method", "in Python", "what it does".ljust(width)], rows))
    header, rows = capability_table()
    tell(f"\n{aligned(header, rows)}\n")
    for name in header[1:]:
        tell(f"{name}: can {Capabilities.verb(name)} ({Capabilities.where(name).replace('`', '')})")
