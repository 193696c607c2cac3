from __future__ import annotations

import itertools
from math import floor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, NotFittedError, ParameterError
from rarevote.methods.plat import PLAT
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows


def oracle(rows: Rows, positive: str) -> dict[str, bool]:
    """The pseudo-code, line by line, on dictionaries."""
    last = {(task, worker): label for task, worker, label in rows}
    votes: dict[str, list[bool]] = {}
    for (task, _), label in last.items():
        votes.setdefault(task, []).append(label == positive)
    share = {task: sum(given) / len(given) for task, given in votes.items()}
    f: list[float] = []
    for value in sorted(share.values()):
        if not f or value - f[-1] > 1e-5:
            f.append(value)
    bin_of = {task: min(range(len(f)), key=lambda j: abs(f[j] - value)) for task, value in share.items()}
    m, n = len(f), len(share)
    c = [sum(1 for j in bin_of.values() if j == k) for k in range(m)]
    e = floor(0.03 * n / m)
    maxima, minima = [0], list[int]()
    for j in range(1, m - 1):
        a, b = c[j] - c[j - 1], c[j + 1] - c[j]
        if a <= 0 and b >= 0 and c[maxima[-1]] - c[j] >= e:
            minima.append(j)
        if a >= 0 and b <= 0 and c[j] - (c[minima[-1]] if minima else 0) >= e:
            maxima.append(j)
    peak1 = None
    for j in maxima:
        if f[j] < 0.5 and (peak1 is None or c[j] >= c[peak1]):
            peak1 = j
    if peak1 is None:
        peak1 = maxima[0]
    peak2 = None
    for j in maxima:
        if j > peak1 and (peak2 is None or c[j] > c[peak2]):
            peak2 = j
    t = peak1
    if peak2 is not None:
        valley = None
        for j in minima:
            if peak1 < j < peak2 and f[j] < 0.5 and c[j] < c[peak1] and (valley is None or c[j] < c[valley]):
                valley = j
        if valley is None:
            above = [j for j in range(m) if f[j] > 0.5]
            valley = above[0] - 1 if above else m - 1
        t = valley
    n_left = sum(c[: t + 1])
    while m > 2 and n_left < n // 2:
        t += 1
        n_left += c[t]
    n_right = n - n_left
    p_max = floor((n_left - n_right) * n_right / n) + n_right
    is_positive = [j > t for j in range(m)]
    n_positive, k = n_right, t
    while k >= 0 and f[k] > (f[0] + f[t]) / 2 and n_positive + c[k] < p_max:
        is_positive[k] = True
        n_positive += c[k]
        k -= 1
    return {task: is_positive[j] for task, j in bin_of.items()}


def test_every_small_histogram_of_shares() -> None:
    """All numbers of items from a few, at shares 0, 1/4 ... 1: peaks at one half and ties of peaks are among them."""
    for count in itertools.product((0, 1, 3), repeat=5):
        rows: Rows = [
            (f"t{share}-{item}", f"w{worker}", "yes" if worker < share else "no")
            for share, number in enumerate(count)
            for item in range(number)
            for worker in range(4)
        ]
        model = PLAT().fit(columns(rows))
        if (positive := model.positive_class_) is not None:
            found = {task: label == positive for task, label in model.labels_.to_dict().items()}
            assert found == oracle(rows, positive), count


def skewed_rows(seed: int) -> Rows:
    """A crowd with a rare class that most annotators miss, some of them voting twice."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(int(rng.integers(1, 120))):
        rare = rng.random() < 0.2
        for r in rng.permutation(12)[: int(rng.integers(1, 12))]:
            for _ in range(1 + (rng.random() < 0.1)):
                rows.append((f"t{i}", f"w{r}", "p" if rng.random() < (0.45 if rare else 0.08) else "n"))
    return rows


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_equals_the_pseudo_code(seed: int) -> None:
    rows = skewed_rows(seed)
    model = PLAT().fit(columns(rows))
    if model.positive_class_ is None:
        assert len(model.classes_) == 1
        return
    expected = oracle(rows, model.positive_class_)
    assert {task: label == model.positive_class_ for task, label in model.labels_.to_dict().items()} == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("tuvwxyz"), st.sampled_from("abc"), st.sampled_from("np")), min_size=1))
def test_equals_the_pseudo_code_on_odd_crowds(rows: Rows) -> None:
    model = PLAT().fit(columns(rows))
    last = list({(task, worker): label for task, worker, label in rows}.values())
    if len(model.classes_) < 2:
        assert set(model.labels_.to_dict().values()) == {rows[0][2]}
        return
    assert model.positive_class_ == ("n" if last.count("n") < last.count("p") else "p")
    expected = oracle(rows, model.positive_class_)
    assert {task: label == model.positive_class_ for task, label in model.labels_.to_dict().items()} == expected


@pytest.mark.parametrize("seed", range(5))
def test_threshold_histogram_and_probabilities_explain_the_labels(seed: int) -> None:
    rows = skewed_rows(seed)
    model = PLAT().fit(columns(rows))
    last = {(task, worker): label for task, worker, label in rows}
    votes: dict[str, list[bool]] = {}
    for (task, _), label in last.items():
        votes.setdefault(task, []).append(label == model.positive_class_)
    labels, probas, threshold = model.labels_.to_dict(), model.probas_.to_dict(), model.threshold_
    assert threshold is not None
    shares = {task: sum(given) / len(given) for task, given in votes.items()}
    for task, share in shares.items():
        assert (labels[task] == model.positive_class_) == (share > threshold + 1e-5)
        assert (probas[task][model.positive_class_] > 0.5) == (labels[task] == model.positive_class_)
    # The probabilities rank items as the shares do.
    by_share = sorted(shares, key=lambda task: shares[task])
    assert (np.diff([probas[task][model.positive_class_] for task in by_share]) >= -1e-12).all()
    histogram = model.histogram_
    assert histogram["count"].sum() == len(votes)
    np.testing.assert_array_equal(histogram["positive"], histogram["share"] > threshold + 1e-9)
    assert model.peak1_ in histogram["share"]


def two_humps() -> Rows:
    """Ten voters a task; negatives peak at a share of 0.1, positives at 0.4: below one half."""
    counts = {0: 30, 1: 50, 2: 10, 3: 12, 4: 25, 5: 6}
    tasks = [(f"t{share}-{i}", share) for share, count in counts.items() for i in range(count)]
    return [(task, f"w{r}", "p" if r < share else "n") for task, share in tasks for r in range(10)]


def test_the_threshold_lies_in_the_valley_below_one_half() -> None:
    model = PLAT().fit(columns(two_humps()))
    assert (model.peak1_, model.valley_, model.peak2_) == (0.1, 0.2, 0.4)
    assert model.first_threshold_ == 0.2
    labels = model.labels_.to_dict()
    assert labels["t4-0"] == "p"
    assert labels["t1-0"] == "n"


def test_a_single_peak_has_no_valley() -> None:
    model = PLAT().fit((["t", "t", "u"], ["v", "w", "v"], ["n", "p", "n"]))
    assert model.peak2_ is None
    assert model.valley_ is None


def test_only_the_last_of_repeated_pairs_counts_whatever_keep_says() -> None:
    rows: Rows = [("t", "w", "p"), ("t", "w", "n"), ("u", "w", "p"), ("v", "w", "n"), ("v", "x", "n")]
    expected = PLAT().fit(columns(rows[1:])).probas_.to_dict()
    assert PLAT().fit(columns(rows)).probas_.to_dict() == expected
    assert PLAT().fit(columns(rows), keep="last").probas_.to_dict() == expected
    assert PLAT().fit(Annotations.from_arrays(*columns(rows))).probas_.to_dict() == expected


def test_the_last_class_is_positive_when_votes_are_tied() -> None:
    assert PLAT().fit((["t", "u"], ["w", "w"], ["no", "yes"])).positive_class_ == "yes"


def test_a_class_without_votes_is_positive_and_never_given() -> None:
    model = PLAT().fit((["t", "u"], ["w", "w"], ["yes", "yes"]), classes=["no", "yes"])
    assert model.positive_class_ == "no"
    assert model.labels_.to_dict() == {"t": "yes", "u": "yes"}


def test_one_class() -> None:
    model = PLAT().fit(columns(EDGES["one class"]))
    assert model.positive_class_ is None
    assert model.labels_.to_dict() == {"t": "a", "u": "a"}
    np.testing.assert_array_equal(model.posterior_, 1.0)


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str) -> None:
    check_edges(PLAT, EDGES[edge])


def test_permutation() -> None:
    check_permutation(PLAT, random_rows(accuracy=0.8)[0])


def test_more_than_two_classes_are_refused() -> None:
    with pytest.raises(InputError, match=r"two classes, these data have 3 \(a, b, c\)"):
        PLAT().fit((["t"] * 3, ["u", "v", "w"], ["a", "b", "c"]))


def test_gold_is_refused() -> None:
    with pytest.raises(ParameterError, match="plat cannot learn from gold: leave true_labels out"):
        PLAT().fit(columns(EDGES["one task"]), {"t": "a"})


def test_empty_input() -> None:
    model = PLAT().fit(([], [], []))
    assert model.labels_.to_dict() == {}
    assert model.positive_class_ is None
    assert model.threshold_ is None
    assert len(model.histogram_) == 0


def test_results_come_in_kind() -> None:
    task, worker, label = columns(two_humps())
    model = PLAT().fit(pd.DataFrame({"task": task, "worker": worker, "label": label}))
    assert list(model.histogram_.columns) == ["count", "positive"]
    assert model.histogram_.index.name == "share"
    assert model.histogram_["positive"].dtype == bool


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        _ = PLAT().threshold_
