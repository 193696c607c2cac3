"""The spine: whatever the command line gives, Python gives too, from the same road."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import rarevote
from rarevote import example_files
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.io.read.results import read_result
from rarevote.io.write.columns import write_columns
from rarevote.scoring.compare import score_result
from tests.command import rarevote as command

FIXTURES = Path(__file__).parent / "io" / "platforms" / "fixtures"
CROWD = rarevote.simulate_crowd(300, 15, imbalance=6, random_state=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    task, worker, label = CROWD.arrays
    texts = {"task": [f"t{n}" for n in task], "worker": [f"w{n}" for n in worker], "label": [f"c{n}" for n in label]}
    write_columns({name: np.array(values, dtype=object) for name, values in texts.items()}, folder / "labels.csv")
    known = {"task": [f"t{n}" for n in range(300)], "label": [f"c{n}" for n in CROWD.truth]}
    write_columns({name: np.array(values, dtype=object) for name, values in known.items()}, folder / "truth.csv")
    few = {name: values[:20] for name, values in known.items()}
    write_columns({name: np.array(values, dtype=object) for name, values in few.items()}, folder / "gold.csv")
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


# --------------------------------------------------------------------------------------------------------------------
# reading


@pytest.mark.parametrize(
    ("export", "question"),
    [
        ("label_studio.json", "damage"),
        ("prodigy_binary.jsonl", "SPORT"),
        ("mturk.csv", "sentiment"),
        ("toloka.tsv", "result"),
        ("appen.csv", "relevant"),
    ],
)
def test_exports_are_read_as_they_are(export: str, question: str | None) -> None:
    crowd = rarevote.read(FIXTURES / export, question=question)
    assert crowd.export is not None
    assert crowd.annotations.n_annotations == len(crowd.export)
    assert crowd.gold == crowd.export.gold


def test_estimators_read_exports_too() -> None:
    by_file = rarevote.MajorityVote().fit(FIXTURES / "prodigy_binary.jsonl", question="SPORT")
    crowd = rarevote.read(FIXTURES / "prodigy_binary.jsonl", question="SPORT")
    assert by_file.annotations_.tasks.tolist() == crowd.annotations.tasks.tolist()
    assert by_file.labels_.to_dict() == rarevote.MajorityVote().fit(crowd.annotations).labels_.to_dict()


@pytest.mark.parametrize(
    "data",
    [
        [("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "x")],
        [{"task": "a", "worker": "ann", "label": "x"}, {"task": "a", "worker": "bob", "label": "y"},
         {"label": "x", "worker": "ann", "task": "b"}],
        (["a", "a", "b"], ["ann", "bob", "ann"], ["x", "y", "x"]),
        {"item": ["a", "a", "b"], "rater": ["ann", "bob", "ann"], "label": ["x", "y", "x"]},
    ],
    ids=["tuples", "dicts", "arrays", "mapping"],
)  # fmt: skip
def test_votes_in_memory(data: Any) -> None:
    crowd = rarevote.read(data).annotations
    assert crowd.tasks.tolist() == ["a", "b"]
    assert crowd.workers.tolist() == ["ann", "bob"]
    assert crowd.label.tolist() == [0, 1, 0]


def test_rows_that_are_no_votes_are_refused() -> None:
    with pytest.raises(InputError, match=r"row 1: a list holds \(task, worker, label\) or dicts"):
        rarevote.read([("a", "ann", "x"), ("a", "bob")])
    with pytest.raises(ParameterError, match="wide needs files"):
        rarevote.read([("a", "ann", "x")], wide=True)


# --------------------------------------------------------------------------------------------------------------------
# the same from both


@pytest.mark.parametrize(
    ("arguments", "fitting", "deciding"),
    [
        ([], {}, {}),
        (["-m", "cc-rasch"], {"method": "cc-rasch"}, {}),
        (["-m", "dawid-skene", "--decide", "balanced:5"], {"method": "dawid-skene"}, {"decide": "balanced:5"}),
        (["--cost", "c0:c1=1,c1:c0=9"], {}, {"costs": "c0:c1=1,c1:c0=9"}),
        (["--abstain-below", "0.9"], {}, {"abstain_below": 0.9}),
        (["--prevalence", "c1=0.1"], {}, {"prevalence": {"c1": 0.1}}),
        (["--allow-unvoted"], {}, {"allow_unvoted": True}),
        (["--gold", "GOLD"], {"gold": "GOLD"}, {}),
        (["--class", "c2", "--keep", "last"], {"classes": ["c2"], "keep": "last"}, {}),
    ],
)
@pytest.mark.filterwarnings("ignore:no vote is for")
def test_aggregate_and_its_twin(
    files: Path, tmp_path: Path, arguments: list[str], fitting: dict[str, Any], deciding: dict[str, Any]
) -> None:
    arguments = [str(files / "gold.csv") if part == "GOLD" else part for part in arguments]
    fitting = {name: files / "gold.csv" if value == "GOLD" else value for name, value in fitting.items()}
    command("aggregate", files / "labels.csv", *arguments, "-o", tmp_path / "a.csv", "-q")
    result = rarevote.fit(files / "labels.csv", **fitting).decide(**deciding)
    result.write(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_scores_summary_and_explanation_have_twins(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = command("aggregate", files / "labels.csv", "--truth", files / "truth.csv", "-o", out, "--json")
    result = rarevote.fit(files / "labels.csv").decide()
    told = json.loads(done.stdout)
    assert told["scores"] == json.loads(json.dumps(result.score(files / "truth.csv"), default=str))
    assert told["classes"] == result.summary()["classes"]
    scored = json.loads(command("score", out, "--truth", files / "truth.csv", "--json").stdout)
    assert scored == json.loads(json.dumps(score_result(out, files / "truth.csv"), default=str))
    assert scored["accuracy"] == told["scores"]["accuracy"]
    explained = json.loads(command("explain", files / "labels.csv", "--task", "t3", "--json").stdout)
    one = result.explain("t3")
    assert explained[0]["label"] == str(one.classes[one.label])


def test_models_reviews_and_pages_have_twins(files: Path, tmp_path: Path) -> None:
    command(
        "aggregate", files / "labels.csv", "--model-out", tmp_path / "a.model", "--max-review", "5", "--review-out",
        tmp_path / "review.csv", "-o", tmp_path / "r.csv", "-q",
    )  # fmt: skip
    fitted = rarevote.fit(files / "labels.csv")
    fitted.save(tmp_path / "b.model")
    new = [("new", "w1", "c1"), ("new", "w2", "c0")]
    models = [rarevote.load(tmp_path / f"{name}.model") for name in "ab"]
    assert models[0].predict(new).to_dict() == models[1].predict(new).to_dict()
    plan = fitted.decide().review(5, tmp_path / "other.csv")
    assert len(plan.items) == 5
    assert (tmp_path / "review.csv").read_text() == (tmp_path / "other.csv").read_text()


# --------------------------------------------------------------------------------------------------------------------
# what belongs together stays together


def test_probabilities_get_the_prior_of_the_fit() -> None:
    fitted = rarevote.fit(CROWD.arrays, "dawid-skene")
    prior = np.exp(fitted.method.fitted_parameters["log_prior"])
    votes, q = fitted.annotations, fitted.method.posterior_
    shares = votes.class_votes / votes.n_annotations
    weights = shares * (np.maximum(q, 1e-12) / prior) ** (1 / (1 + 0.2 * (np.diff(votes.task_ptr) - 1)))[:, None]
    p = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.probabilities, 0.95 * p + 0.05 * p.mean(axis=0), atol=1e-12)


def test_results_tell_what_they_are(files: Path, tmp_path: Path) -> None:
    default = rarevote.fit(files / "labels.csv").decide()
    assert list(default.columns()) == ["task", "label", "confidence", "votes", "p:c0", "p:c1"]
    assert np.allclose(default.columns()["p:c0"] + default.columns()["p:c1"], 1)
    chosen = np.where(default.labels == "c1", default.columns()["p:c1"], default.columns()["p:c0"])
    assert np.allclose(default.confidence, chosen)
    published = rarevote.fit(files / "labels.csv", "cc-rasch").decide()
    assert list(published.columns()) == list(default.columns())
    assert not np.allclose(published.columns()["p:c1"], published.fitted.method.posterior_[:, 1])
    with_posterior = published.columns(with_posterior=True)
    assert np.array_equal(with_posterior["posterior:c1"], published.fitted.method.posterior_[:, 1])
    published.write(tmp_path / "r.parquet")
    assert len(read_result(tmp_path / "r.parquet").labels) == 300


def test_the_example_by_default() -> None:
    result = rarevote.fit(example_files().labels).decide()
    scores = result.score(example_files().truth)
    flagged = int((result.labels == "defect").sum())
    assert round(scores["rare_recall"] * 120) >= 108
    assert flagged <= 190


def test_gold_that_vouches_has_not_taught() -> None:
    """A fit ranks the gold that it learned from above other tasks of the class, and would promise too much."""
    crowd = rarevote.simulate_crowd(600, 60, imbalance=5, random_state=4)
    task, worker, label = crowd.arrays
    chosen = np.random.default_rng(1).choice(600, 250, replace=False)
    gold = {int(i): int(crowd.truth[i]) for i in chosen}
    result = rarevote.fit((task, worker, label), gold=gold).decide(min_recall={1: 0.9}, random_gold=True)
    blind = rarevote.fit((task, worker, label)).probabilities
    assert result.target is not None
    assert result.target.promised
    np.testing.assert_array_equal(result.probabilities.ranking, blind)
    # By hand: as many of the lowest ranked gold tasks of the class may be missed as a binomial allows.
    ranks = np.sort(blind[[i for i in gold if gold[i] == 1], 1])
    allowed = next(r for r in range(ranks.size) if scipy.stats.binom.cdf(r, ranks.size, 0.1) > 0.2) - 1
    assert result.target.threshold == ranks[allowed]


def test_a_promise_says_that_items_without_votes_are_outside_it() -> None:
    crowd = rarevote.simulate_crowd(600, 60, imbalance=5, random_state=4)
    gold = {int(i): int(crowd.truth[i]) for i in np.random.default_rng(1).choice(600, 250, replace=False)}
    deciding: dict[str, Any] = {"min_recall": {1: 0.9}, "random_gold": True}
    assert not rarevote.fit(crowd.arrays, gold=gold).decide(**deciding).warnings
    fitted = rarevote.fit(crowd.arrays, gold=gold, items=range(607))
    with pytest.warns(
        RarevoteWarning, match="7 items without votes are not flagged: the promise covers only items with"
    ):
        assert (fitted.decide(**deciding).codes[600:] == -1).all()
