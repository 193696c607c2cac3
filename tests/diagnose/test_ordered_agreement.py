"""Agreement on grades against loops over pairs of votes."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import Annotations
from rarevote.crowd.grades import Grades
from rarevote.diagnose.ordered_agreement import ordered_agreement
from tests.command import rarevote as command

Rows = list[tuple[int, int, str]]


def random_rows(seed: int, K: int) -> Rows:
    """One to five votes a task, some twice by one worker, some outside the scale."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(25):
        truth = rng.integers(K)
        for w in rng.integers(0, 6, int(rng.integers(1, 6))):
            label = str(int(np.clip(truth + rng.integers(-1, 2), 0, K - 1)))
            rows.append((i, int(w), "skip" if rng.random() < 0.1 else label))
    return rows


def by_hand(rows: Rows, place: dict[str, float]) -> dict[str, float]:
    """Alpha, AC2 and kappa, each as a loop over ordered pairs of votes."""
    last = {(task, worker): label for task, worker, label in rows}
    tasks: dict[int, list[str]] = {}
    for (task, _), label in last.items():
        if label in place:
            tasks.setdefault(task, []).append(label)
    votes = [said for said in tasks.values() if said]
    paired = [said for said in votes if len(said) > 1]
    met = [name for name in place if any(name in said for said in votes)]
    width = max(place[k] for k in met) - min(place[k] for k in met)

    def w(k: str, m: str) -> float:
        return 1 - ((place[k] - place[m]) / width) ** 2

    p_a = float(np.mean([np.mean([w(a, b) for a, b in permutations(said, 2)]) for said in paired]))
    s = {k: float(np.mean([said.count(k) / len(said) for said in votes])) for k in met}
    K = len(met)
    doubt = sum(w(k, m) for k in met for m in met) / (K * (K - 1)) * sum(p * (1 - p) for p in s.values())
    shares = sum(w(k, m) * s[k] * s[m] for k in met for m in met)
    # Krippendorff: pairs within tasks against pairs of all votes that can be paired.
    pool = [label for said in paired for label in said]
    count = {k: pool.count(k) for k in met}

    def distance(a: str, b: str) -> float:
        low, high = sorted((place[a], place[b]))
        between = sum(n for k, n in count.items() if low <= place[k] <= high)
        return 0.0 if a == b else (between - (count[a] + count[b]) / 2) ** 2

    observed = sum(distance(a, b) / (len(said) - 1) for said in paired for a, b in permutations(said, 2)) / len(pool)
    expected = sum(distance(a, b) for a, b in permutations(pool, 2)) / (len(pool) * (len(pool) - 1))
    return {
        "alpha": 1 - observed / expected,
        "ac2": (p_a - doubt) / (1 - doubt),
        "quadratic_kappa": (p_a - shares) / (1 - shares),
    }


@pytest.mark.parametrize("seed", range(8))
def test_coefficients_against_loops(seed: int) -> None:
    K = 3 + seed % 3
    rows = random_rows(seed, K)
    names = [str(k) for k in range(K)]
    order = names if seed % 2 else [*names[:2], "gap", *names[2:]]
    crowd = Annotations.from_arrays(*map(list, zip(*rows, strict=True)))
    found = ordered_agreement(crowd, Grades(tuple(order)))
    hand = by_hand(rows, {name: float(x) for x, name in enumerate(order)})
    for name, value in hand.items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-12), name
        low, high = found.intervals[name]
        assert low <= value <= high


def test_the_order_matters_and_its_direction_does_not() -> None:
    crowd = Annotations.from_arrays(*map(list, zip(*random_rows(1, 5), strict=True)))
    up, down, mixed = (ordered_agreement(crowd, Grades(tuple(order))) for order in ("01234", "43210", "03142"))
    for name in ("alpha", "ac2", "quadratic_kappa"):
        assert getattr(up, name) == pytest.approx(getattr(down, name), abs=1e-12)
        assert getattr(up, name) > getattr(mixed, name)


def test_all_agree_and_nothing_to_tell() -> None:
    same = Annotations.from_arrays([1, 1, 2, 2], list("abab"), [1, 1, 3, 3])
    found = ordered_agreement(same, Grades.of("1..3"))
    assert (found.alpha, found.ac2, found.quadratic_kappa) == pytest.approx((1, 1, 1))
    for labels in ([2, 2, 2, 2], [7, 8, 9, 7]):  # one grade; none
        none = ordered_agreement(Annotations.from_arrays([1, 1, 2, 2], list("abab"), labels), Grades.of("1..3"))
        assert np.isnan([none.alpha, none.ac2, none.quadratic_kappa]).all()
        assert none.figures()["ac2"] is None


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
def test_where_it_is_shown(tmp_path: Path) -> None:
    rows: Any = random_rows(2, 4)
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n" + "".join(f"{t},{w},{y}\n" for t, w, y in rows), encoding="utf-8")
    with_order = rarevote.fit(rows, ordered="0..3").diagnose().on_grades
    assert with_order is not None
    assert rarevote.fit(rows).diagnose().on_grades is None
    found = json.loads(command("annotators", path, "--ordered", "0..3", "--json").stdout)["agreement_on_grades"]
    assert found["ac2"] == pytest.approx(with_order.ac2)
    assert "agreement_on_grades" not in json.loads(command("annotators", path, "--json").stdout)
    shown = " ".join(command("annotators", path, "--ordered", "0..3").stdout.split())
    assert f"Gwet's AC2, quadratic {with_order.ac2:.3f}" in shown
    assert "AC2" not in command("annotators", path).stdout
