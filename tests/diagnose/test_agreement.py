"""Agreement against published worked examples, and against the definitions written out over pairs of votes."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import rarevote
from rarevote import Annotations, agreement
from rarevote.errors import ParameterError

Rows = list[tuple[Any, Any, Any]]


def by_rater(*lines: str) -> Rows:
    """A line of values per rater, a column per unit, a dot where there is none."""
    return [
        (unit, f"rater {number}", int(value))
        for number, line in enumerate(lines, 1)
        for unit, value in enumerate(line.split())
        if value != "."
    ]


def by_counts(*lines: str) -> Rows:
    """A line per unit: how many raters chose each category. Who chose what is not told, so raters are made up."""
    rows = []
    for unit, line in enumerate(lines):
        labels = [category for category, times in enumerate(line.split(), 1) for _ in range(int(times))]
        rows += [(unit, f"rater {rater}", label) for rater, label in enumerate(labels)]
    return rows


def of_two(table: list[list[int]]) -> Rows:
    """A contingency table of two raters."""
    cells = [(a, b) for a, line in enumerate(table) for b, times in enumerate(line) for _ in range(times)]
    return [row for unit, (a, b) in enumerate(cells) for row in ((unit, "A", a), (unit, "B", b))]


# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units, values
# missing. The same ratings are Gwet's "cac.raw4raters", for which irrCAC prints all the other coefficients.
KRIPPENDORFF = by_rater(
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
# Three coders and fifteen units, the worked example of the encyclopaedia's article on alpha.
THREE_CODERS = by_rater(
    ". . . . . 3 4 1 2 1 1 3 3 . 3",
    "1 . 2 1 3 3 4 3 . . . . . . .",
    ". . 2 1 3 4 4 . 2 1 1 3 3 . 4",
)
# Fourteen raters, ten subjects, five categories: the worked example of the article on Fleiss' kappa.
FOURTEEN_RATERS = by_counts(
    "0 0 0 0 14", "0 2 6 4 2", "0 0 3 5 6", "0 3 9 2 0", "2 2 8 1 1",
    "7 7 0 0 0", "3 2 6 3 0", "2 5 3 2 2", "6 5 2 1 0", "0 2 2 3 7",
)  # fmt: skip
# Fleiss (1971), table 1: thirty patients, six psychiatrists, five diagnoses.
PSYCHIATRISTS = by_counts(
    "0 0 0 6 0", "0 3 0 0 3", "0 1 4 0 1", "0 0 0 0 6", "0 3 0 3 0", "2 0 4 0 0", "0 0 4 0 2", "2 0 3 1 0",
    "2 0 0 4 0", "0 0 0 0 6", "1 0 0 5 0", "1 1 0 4 0", "0 3 3 0 0", "1 0 0 5 0", "0 2 0 3 1", "0 0 5 0 1",
    "3 0 0 1 2", "5 1 0 0 0", "0 2 0 4 0", "1 0 2 0 3", "0 0 0 0 6", "0 1 0 5 0", "0 2 0 1 3", "2 0 0 4 0",
    "1 0 0 4 1", "0 5 0 1 0", "4 0 0 0 2", "0 2 0 4 0", "1 0 5 0 0", "0 0 0 0 6",
)  # fmt: skip


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_2011(level: Any, alpha: float) -> None:
    assert agreement(KRIPPENDORFF, level).alpha == pytest.approx(alpha, abs=5e-4)


def test_gwet_irrcac_four_raters() -> None:
    found = agreement(KRIPPENDORFF)
    assert found.raw == pytest.approx(0.8181818, abs=1e-7)
    assert found.ac1 == pytest.approx(0.77544, abs=5e-6)
    assert found.fleiss_kappa == pytest.approx(0.76117, abs=5e-6)
    assert found.n_tasks == 11


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.691), ("ordinal", 0.807), ("interval", 0.811)])
def test_three_coders(level: Any, alpha: float) -> None:
    assert agreement(THREE_CODERS, level).alpha == pytest.approx(alpha, abs=5e-4)


def test_fourteen_raters() -> None:
    found = agreement(FOURTEEN_RATERS)
    assert found.fleiss_kappa == pytest.approx(0.210, abs=5e-4)
    assert found.raw == pytest.approx(0.378, abs=5e-4)


def test_fleiss_1971_psychiatrists() -> None:
    """Per diagnosis as the R package irr prints them (kappam.fleiss with detail)."""
    found = agreement(PSYCHIATRISTS)
    assert found.fleiss_kappa == pytest.approx(0.4302445, abs=5e-8)
    kappas = [0.245, 0.245, 0.520, 0.471, 0.566]
    np.testing.assert_allclose(found.per_class["fleiss_kappa"], kappas, atol=5e-4)
    assert found.per_class["votes"].tolist() == [26, 26, 30, 55, 43]


def test_light_1971_mean_over_pairs() -> None:
    """irr's kappam.light on the same thirty patients, raters as that package orders them: the labels sorted."""
    assert agreement(PSYCHIATRISTS).cohen_kappa == pytest.approx(0.459, abs=5e-4)


def test_cohen_grant_proposals() -> None:
    """Fifty proposals: 20 yes/yes, 15 no/no; the worked example of the article on Cohen's kappa."""
    assert agreement(of_two([[20, 5], [10, 15]])).cohen_kappa == pytest.approx(0.4)


def test_sas_kappa_with_its_interval() -> None:
    """SAS prints 0.4842 with asymptotic standard error 0.1380 and limits 0.2137 to 0.7547 for this table."""
    pair = agreement(of_two([[0, 4, 1], [0, 8, 0], [0, 1, 5]])).pairs
    assert pair["cohen_kappa"][0] == pytest.approx(0.4842, abs=5e-5)
    assert (pair["low"][0], pair["high"][0]) == (pytest.approx(0.2137, abs=5e-5), pytest.approx(0.7547, abs=5e-5))


def test_gwet_2008_high_agreement() -> None:
    """125 participants, 118 and 0 on the diagonal: kappa is negative, AC1 is not."""
    found = agreement(of_two([[118, 5], [2, 0]]))
    assert found.raw == pytest.approx(0.944)
    assert found.cohen_kappa == pytest.approx(-0.0234, abs=5e-5)
    assert found.ac1 == pytest.approx(0.9408, abs=5e-5)


# --------------------------------------------------------------------------------------------------------------------
# against the definitions, over pairs of votes


def random_rows(seed: int, n_classes: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(40):
        truth = rng.integers(n_classes)
        for worker in rng.permutation(9)[: rng.integers(1, 6)]:
            rows.append((task, int(worker), int(truth if rng.random() < 0.6 else rng.integers(n_classes))))
    return rows


def alpha_by_pairs(rows: Rows, distance: Any) -> float:
    """One minus observed over expected disagreement, from every ordered pair of values."""
    units = [[row[2] for row in rows if row[0] == task] for task in {row[0] for row in rows}]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    observed = sum(sum(distance(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(distance(a, b) for a, b in permutations(values, 2)) / (len(values) - 1)
    return float(1 - observed / expected)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_alpha_is_one_minus_observed_over_expected_disagreement(seed: int) -> None:
    rows = random_rows(seed, 5)
    by_task = {task: [row[2] for row in rows if row[0] == task] for task, _, _ in rows}
    values = [value for unit in by_task.values() if len(unit) > 1 for value in unit]

    def between(a: int, b: int) -> float:
        low, high = min(a, b), max(a, b)
        return float((sum(low <= v <= high for v in values) - (values.count(a) + values.count(b)) / 2) ** 2)

    assert agreement(rows).alpha == pytest.approx(alpha_by_pairs(rows, lambda a, b: float(a != b)))
    assert agreement(rows, "interval").alpha == pytest.approx(alpha_by_pairs(rows, lambda a, b: (a - b) ** 2))
    assert agreement(rows, "ordinal").alpha == pytest.approx(alpha_by_pairs(rows, between))
    for k, alpha in enumerate(agreement(rows).per_class["alpha"]):
        assert alpha == pytest.approx(alpha_by_pairs(rows, lambda a, b, k=k: float((a == k) != (b == k))))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pairs_are_those_of_scikit_learn(seed: int) -> None:
    rows = random_rows(seed)
    wide = pd.DataFrame(rows, columns=["task", "worker", "label"]).pivot(index="task", columns="worker", values="label")
    expected = {}
    for a, b in combinations(wide.columns, 2):
        both = wide[[a, b]].dropna()
        if len(both):
            one_class = both.to_numpy().min() == both.to_numpy().max()
            expected[a, b] = len(both), np.nan if one_class else cohen_kappa_score(both[a], both[b])
    found = agreement(rows)
    table = found.pairs.to_pandas().sort_index()
    assert table.index.tolist() == sorted(expected)
    assert table["common"].tolist() == [expected[pair][0] for pair in sorted(expected)]
    kappas = [expected[pair][1] for pair in sorted(expected)]
    np.testing.assert_allclose(table["cohen_kappa"], kappas, atol=1e-12)
    assert found.cohen_kappa == pytest.approx(np.nanmean(kappas))


def test_votes_for_a_class_are_followed_by_the_share_that_raw_says() -> None:
    rows = random_rows(5)
    for k, raw in enumerate(agreement(rows).per_class["raw"]):
        asked = [b[2] == k for a, b in permutations(rows, 2) if a[0] == b[0] and a[2] == k]
        assert raw == pytest.approx(np.mean(asked))


def test_of_repeated_votes_the_last_counts() -> None:
    rows = random_rows(3)
    again = [(task, worker, (label + 1) % 3) for task, worker, label in rows[::4]]
    found, expected = agreement(again + rows), agreement(rows)
    assert found.n_repeats == len(again)
    for name in ("alpha", "fleiss_kappa", "cohen_kappa", "ac1", "raw"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name))


def test_neither_names_nor_the_order_of_rows_matter() -> None:
    rows = random_rows(4)
    other = [(f"t{-task}", f"w{9 - worker}", "xyz"[label]) for task, worker, label in rows[::-1]]
    found, expected = agreement(other), agreement(rows)
    for name in ("alpha", "fleiss_kappa", "cohen_kappa", "ac1", "raw"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name))


# --------------------------------------------------------------------------------------------------------------------
# intervals


@pytest.mark.prove
def test_intervals_are_those_of_resampled_tasks() -> None:
    """The bootstrap written out: tasks drawn with replacement, every coefficient computed anew."""
    rows = random_rows(6) + [(task + 100, worker, label) for task, worker, label in random_rows(7)]
    found = agreement(rows)
    rng = np.random.default_rng(0)
    by_task: dict[int, Rows] = {}
    for row in rows:
        by_task.setdefault(row[0], []).append(row)
    tasks = list(by_task)
    drawn: dict[str, list[float]] = {name: [] for name in found.intervals}
    for _ in range(150):
        chosen = rng.choice(len(tasks), len(tasks))
        again = [(number, w, y) for number, task in enumerate(chosen) for _, w, y in by_task[tasks[task]]]
        made = agreement(again)
        for name in drawn:
            drawn[name].append(getattr(made, name))
    for name in ("alpha", "fleiss_kappa", "ac1", "raw"):
        spread = np.std(drawn[name])
        low, high = found.intervals[name]
        assert low < getattr(found, name) < high
        assert (high - low) / (2 * 1.96) == pytest.approx(spread, rel=0.25)


def test_grouped_tasks_give_the_interval_of_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = rarevote.simulate_crowd(1500, 20, random_state=0)
    alone = agreement(crowd.arrays).intervals
    monkeypatch.setattr("rarevote.diagnose.agreement._MAX_GROUPS", 300)
    grouped = agreement(crowd.arrays).intervals
    for name, (low, high) in alone.items():
        width = grouped[name][1] - grouped[name][0]
        assert width == pytest.approx(high - low, rel=0.2)


# --------------------------------------------------------------------------------------------------------------------
# edges


def test_an_order_for_names() -> None:
    words = {1: "low", 2: "middling", 3: "high", 4: "severe", 5: "extreme"}
    rows = [(task, worker, words[label]) for task, worker, label in KRIPPENDORFF]
    assert agreement(rows, "ordinal", list(words.values())).alpha == pytest.approx(0.815, abs=5e-4)
    assert agreement(rows, "interval", list(words.values())).alpha == pytest.approx(0.849, abs=5e-4)
    with pytest.raises(ParameterError, match="order"):
        agreement(rows, "ordinal")
    with pytest.raises(ParameterError, match="'severe'"):
        agreement(rows, "ordinal", ["low", "middling", "high", "extreme"])
    with pytest.raises(ParameterError, match="level"):
        agreement(rows, "ratio")  # type: ignore[arg-type]


def test_text_that_is_numbers_has_an_order() -> None:
    rows = [(task, worker, str(5 * label)) for task, worker, label in KRIPPENDORFF]
    assert agreement(rows, "ordinal").alpha == pytest.approx(0.815, abs=5e-4)
    assert agreement(rows, "interval").alpha == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize(
    "rows",
    [[], [(0, "ann", "yes"), (1, "bob", "no")], [(0, "ann", "yes"), (0, "bob", "yes")]],
    ids=["nothing", "one vote a task", "one class"],
)
def test_where_nothing_can_tell(rows: Rows) -> None:
    found = agreement(Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True))) if rows else rows)
    assert np.isnan([found.alpha, found.fleiss_kappa, found.cohen_kappa, found.ac1]).all()
    assert all(np.isnan(ends).all() for name, ends in found.intervals.items() if name != "raw")


def test_tables_come_in_the_kind_of_the_data() -> None:
    frame = pd.DataFrame(KRIPPENDORFF, columns=["task", "worker", "label"])
    found = agreement(frame)
    assert isinstance(found.per_class, pd.DataFrame)
    assert found.pairs.loc[("rater 1", "rater 2"), "common"] == 9


def test_classes_that_are_numbers_beyond_floats_have_no_distances() -> None:
    with pytest.raises(ParameterError, match="number"):
        agreement([(1, "a", 1), (1, "b", 10**400), (2, "a", 1), (2, "b", 1)], level="interval")
