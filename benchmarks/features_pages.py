"""Tables of docs/howto/features.md, from docs/evidence."""

from __future__ import annotations

from benchmarks.evidence import read
from benchmarks.pages import table

_BATCHES = ("1", "2", "4", "8")
_STRATEGIES = ("find", "uncertainty", "plan", "random")


def worth_table() -> str:
    """Average precision and log loss with one, three and all votes, without and with features."""
    points = {"1": "2 thinned", "3": "2 thinned", "all": "2 all votes"}
    found = {(row["point"], row["set"], row["votes"], row["measure"]): row for row in read("features")}
    sets = list(dict.fromkeys(row["set"] for row in read("features") if row["point"] == "2 all votes"))
    rows = []
    for name in sets:
        cells = []
        for votes, point in points.items():
            ap, loss = (found[point, name, votes, measure] for measure in ("AP", "log loss"))
            cells.append(f"{ap['votes_only']} → {ap['with_features']}, {loss['votes_only']} → {loss['with_features']}")
        rows.append([name, *cells])
    return table(["set", "one vote per item", "three", "all"], rows)


def others_table() -> str:
    """What else was measured of features, and what was wanted."""
    chosen = ("3 permuted", "5 pool", "6 size")
    rows = [row for row in read("features") if row["point"] in chosen and row["wanted"]]
    names = {"runs with the answer of the votes": "runs that ignored features of other items"}
    return table(
        ["measure", "on", "votes alone", "with features", "wanted"],
        [
            [
                names.get(row["measure"], row["measure"]),
                row["set"],
                row["votes_only"],
                row["with_features"],
                row["wanted"],
            ]
            for row in rows
        ],
    )


def plan_table() -> str:
    """Which part of the hidden rare items has a vote after some batches, and the average precision at the end."""
    found = {(row["set"], row["strategy"], row["batch"]): row for row in read("features_plan")}
    rows = []
    for name in dict.fromkeys(one for one, _, _ in found):
        for strategy in _STRATEGIES:
            each = [found[name, strategy, batch] for batch in _BATCHES]
            last = each[-1]
            rows.append([name, strategy, *(row["found"] for row in each), last["recall"], last["ap"]])
    head = ["set", "chosen by", *(f"found after {batch}" for batch in _BATCHES), "recall", "AP"]
    return table(head, rows)
