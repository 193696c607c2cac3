"""What the page on features says of its figures, against the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import evidence

SETS = 6


def found(strategy: str, measure: str) -> dict[tuple[str, int], float]:
    rows = evidence.read("features_plan")
    return {(row["set"], int(row["batch"])): float(row[measure]) for row in rows if row["strategy"] == strategy}


def faster(strategy: str) -> Iterator[str]:
    """Sets on which a strategy has found more than chance after half of the batches."""
    ours, chance = found(strategy, "found"), found("random", "found")
    return (name for name, batch in ours if batch == 4 and ours[name, batch] > chance[name, batch] + 0.02)


def test_all_that_is_wanted_holds() -> None:
    rows = [row for row in evidence.read("features") if row["wanted"]]
    assert {row["point"][0] for row in rows} == {"1", "2", "3", "5", "6", "7"}
    assert [row for row in rows if row["holds"] != "yes"] == []


def test_a_search_is_faster_than_chance_and_ranks_better() -> None:
    ours, chance = found("find", "found"), found("random", "found")
    for (name, batch), share in ours.items():
        assert batch == 0 or share > 1.5 * chance[name, batch]
        assert batch > 3 or batch == 0 or share > 2 * chance[name, batch]
    ranked, by_chance = found("find", "ap"), found("random", "ap")
    assert all(ranked[name, 8] > by_chance[name, 8] for name, batch in ranked if batch == 8)
    half = [min(batch for name, batch in ours if name == one and ours[name, batch] >= 0.5) for one, _ in ours]
    assert max(half) <= 4
    assert len(set(faster("find"))) == SETS


def test_a_plan_is_faster_than_chance_and_ranks_no_worse() -> None:
    ours, chance = found("plan", "found"), found("random", "found")
    assert all(share > 1.3 * chance[name, batch] for (name, batch), share in ours.items() if batch)
    assert len(set(faster("plan"))) == SETS
    ranked, by_chance = found("plan", "ap"), found("random", "ap")
    last = {name: ranked[name, 8] - by_chance[name, 8] for name, batch in ranked if batch == 8}
    assert [name for name, more in last.items() if more < 0.01] == ["music"]
    assert abs(last["music"]) < 0.005
