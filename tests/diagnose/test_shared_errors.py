"""Who makes the same mistakes: correlations against their definition, planted groups found, independent judges not."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import rarevote
from rarevote import Annotations, simulate_jury
from rarevote.diagnose.shared_errors import ErrorsAlike, _standing, effective_number, errors_alike
from rarevote.simulate.juries import SimulatedJury
from tests.command import rarevote as command


def known_of(jury: SimulatedJury, n_gold: int, seed: int = 0) -> Any:
    chosen = np.random.default_rng(seed).permutation(jury.n_tasks)[:n_gold]
    known = np.full(jury.n_tasks, -1)
    known[chosen] = jury.truth[chosen]
    return known


def found_in(jury: SimulatedJury, n_gold: int = 0, **options: Any) -> ErrorsAlike:
    return errors_alike(Annotations.from_arrays(*jury.arrays), gold=known_of(jury, n_gold), **options)


def test_against_gold_it_is_the_correlation_of_errors() -> None:
    jury = simulate_jury(400, 5, n_classes=3, random_state=0)
    known = known_of(jury, 150)
    errors = (jury.label.reshape(-1, 5) != jury.truth[:, None])[known >= 0]
    found = found_in(jury, 150)
    assert (found.reference, found.n_items) == ("gold", 150)
    np.testing.assert_allclose(found.correlation, np.corrcoef(errors.T.astype(float)), atol=1e-12)
    assert found.n_effective == pytest.approx(25 / found.correlation.sum())


def test_without_gold_the_others_are_the_reference() -> None:
    """Written out: for each pair, the class that most others voted for, where there is one such class."""
    from rarevote.diagnose.shared_errors import _Compared

    rng = np.random.default_rng(0)
    rows = [(t, w, int(rng.integers(3))) for t in range(80) for w in rng.permutation(6)[: rng.integers(3, 7)]]
    crowd = Annotations.from_arrays(*(np.array(column) for column in zip(*rows, strict=True)))
    compared = _Compared.of(crowd, np.ones(crowd.n_tasks, dtype=bool))
    found, common = compared.correlation(np.empty(0, dtype=np.int64))
    for a in range(6):
        for b in range(a + 1, 6):
            pairs = []
            for task in range(80):
                votes = {w: y for t, w, y in rows if t == task}
                if a in votes and b in votes:
                    others = Counter(y for w, y in votes.items() if w not in (a, b)).most_common()
                    if others and (len(others) == 1 or others[0][1] > others[1][1]):
                        pairs.append((votes[a] != others[0][0], votes[b] != others[0][0]))
            assert common[a, b] == common[b, a] == len(pairs)
            expected = np.corrcoef(np.array(pairs, dtype=float).T)[0, 1]
            assert found[a, b] == pytest.approx(expected)
            assert found[b, a] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n_gold", "parameters"),
    [
        (150, {}),
        (150, {"groups": [(0, 1)]}),
        (150, {"how": "copy", "groups": [(1, 4), (0, 2)]}),
        (0, {"groups": [(0, 1)]}),  # without gold those who err alike must be a minority
        (0, {"n_workers": 9, "groups": [(0, 1, 2)], "n_classes": 3}),
    ],
    ids=["three", "two", "copy", "two, no gold", "three of nine, no gold"],
)
def test_planted_groups_are_found(n_gold: int, parameters: dict[str, Any]) -> None:
    for seed in range(2):
        jury = simulate_jury(2000, random_state=seed, **parameters)
        found = found_in(jury, n_gold)
        assert adjusted_rand_score(jury.group, found.group) == 1.0
        assert found.n_effective == pytest.approx(jury.n_effective, rel=0.25)


@pytest.mark.parametrize("n_gold", [150, 0])
def test_independent_judges_raise_no_alarm(n_gold: int) -> None:
    """Not even where all are weak at the same class, which makes their errors correlate; one in a hundred does.

    Of one jury the errors of two judges on the 150 gold items correlate by 0.37, over all 2,000 items by 0.04.
    """
    weak = np.array([[0.95, 0.5]] * 5)
    alarms = []
    for seed in range(4):
        for accuracy in (0.8, weak):
            jury = simulate_jury(2000, 5, groups=(), accuracy=accuracy, imbalance=4, random_state=seed)
            found = found_in(jury, n_gold)
            alarms.append(bool(found.clusters))
            assert ("No two annotators make" in found.sentences()[-1]) != alarms[-1]
    assert sum(alarms) <= (1 if n_gold else 0)


def test_three_of_five_outvote_the_rest() -> None:
    jury = simulate_jury(2000, 5, together=0.95, random_state=2)
    found = found_in(jury, 150, models=[0, 1])
    (cluster,) = found.clusters
    assert (cluster.names, cluster.n_models) == (["0", "1", "2"], 2)
    label = jury.label.reshape(-1, 5)
    outvoted = [
        len(set(row[:3])) == 1 and row[3] == row[4] != row[0] for row in label.tolist()
    ]  # two classes: the two others agree on the other one
    assert cluster.n_outvoted == sum(outvoted)
    (warning,) = found.warnings
    assert "0, 1 and 2 (2 of them models) make the same mistakes and outvote all others" in warning
    few = simulate_jury(2000, 9, groups=[(0, 1)], together=0.95, random_state=2)
    assert not found_in(few, 150).warnings


def test_effective_number_of_equal_correlations() -> None:
    matrix = np.full((4, 4), 0.3)
    np.fill_diagonal(matrix, 1.0)
    assert effective_number(matrix) == pytest.approx(16 / matrix.sum())
    matrix[0, 1] = matrix[1, 0] = np.nan  # as if they had been like the rest
    assert effective_number(matrix) == pytest.approx(4 / (1 + 3 * 0.3))
    assert np.isnan(effective_number(np.ones((1, 1))))


def test_too_few_common_items_say_nothing() -> None:
    crowd = Annotations.from_arrays([0, 0, 1, 1], ["ann", "bob"] * 2, ["yes", "no", "yes", "yes"])
    found = errors_alike(crowd)
    assert np.isnan(found.n_effective)
    assert found.sentences() == found.warnings == []
    assert found.figures()["n_effective"] is None


def test_the_command_line_shows_it(tmp_path: Path) -> None:
    jury = simulate_jury(400, 5, together=0.95, random_state=0)
    names = np.array(["judge-a", "judge-b", "judge-c", "ann", "bob"], dtype=object)
    lines = [f"{t},{names[w]},{y}" for t, w, y in zip(*(column.tolist() for column in jury.arrays), strict=True)]
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    gold = "".join(f"{task},{jury.truth[task]}\n" for task in range(150))
    (tmp_path / "gold.csv").write_text("task,label\n" + gold)
    done = command(
        "annotators", tmp_path / "labels.csv", "--gold", tmp_path / "gold.csv", "--json", "-m", "dawid-skene"
    )
    alike = json.loads(done.stdout)["errors_alike"]
    assert [cluster["annotators"] for cluster in alike["clusters"]] == [["judge-a", "judge-b", "judge-c"]]
    assert alike["reference"] == "gold"
    assert "outvote all others" in done.stderr
    agreement = json.loads(done.stdout)["agreement"]
    expected = rarevote.agreement(tmp_path / "labels.csv")
    assert agreement["alpha"] == pytest.approx(expected.alpha)
    assert agreement["intervals"]["raw"] == pytest.approx(expected.intervals["raw"])


def test_predictions_of_an_export_are_models(tmp_path: Path) -> None:

    def said(label: str) -> list[Any]:
        return [{"type": "choices", "from_name": "q", "value": {"choices": [label]}}]

    record = {
        "id": 1,
        "data": {"text": "x"},
        "annotations": [{"completed_by": person, "result": said("a")} for person in (7, 8)],
        "predictions": [{"model_version": "judge-1", "result": said("b")}],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps([record, {**record, "id": 2}]))
    crowd = rarevote.read(path, include_predictions=True)
    assert crowd.models == {"model:judge-1"}
    assert rarevote.read(path).models == frozenset()


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9])
def test_how_votes_stand_is_what_sorting_them_says(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    task, label = np.repeat(np.arange(200), 6), rng.integers(n_classes, size=1200)
    leads, place = _standing(task, label, 200, n_classes)
    width = max(n_classes, 4)
    for i in range(200):
        counts = np.bincount(label[task == i], minlength=width)
        order = sorted(range(width), key=lambda k: (counts[k], k), reverse=True)
        gaps = [min(counts[a] - counts[b], 3) for a, b in pairwise(order[:4])]
        assert leads[i] == 16 * gaps[0] + 4 * gaps[1] + gaps[2]
        assert place[task == i].tolist() == [min(order.index(k), 3) for k in label[task == i]]
