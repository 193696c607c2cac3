"""New tasks of Dawid–Skene, one-coin and GLAD against posteriors worked out by hand, with the workers held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from rarevote import GLAD, DawidSkene, GoldMajorityVote, OneCoinDawidSkene, Wawa, simulate_crowd
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Fit, Request
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")

EM_METHODS = ["cc-rasch", "class-conditional", "dawid-skene", "one-coin", "glad", "mace"]


@pytest.fixture(scope="module")
def old() -> pd.DataFrame:
    made = simulate_crowd(90, 8, n_classes=3, votes_per_task=5, imbalance=3, random_state=1)
    names = np.array(["a", "b", "c"])
    return pd.DataFrame({"task": made.task, "worker": [f"w{r}" for r in made.worker], "label": names[made.label]})


NEW = pd.DataFrame(
    {
        "task": ["x", "x", "x", "y", "y", "z"],
        "worker": ["w0", "w1", "w2", "w3", "w4", "w5"],
        "label": ["a", "a", "b", "c", "b", "c"],
    }
)


def normalised(scores: dict[Any, float]) -> dict[Any, float]:
    total = sum(scores.values())
    return {name: score / total for name, score in scores.items()}


def test_every_em_method_labels_new_tasks() -> None:
    assert all(issubclass(METHODS[name].load(), PredictsNewTasks) for name in EM_METHODS)


@pytest.mark.parametrize("model", [DawidSkene(20), DawidSkene(20, smoothing=0.5), OneCoinDawidSkene(20)], ids=repr)
def test_confusions_make_the_posterior(old: pd.DataFrame, model: Any) -> None:
    """Bayes' rule, a task and a class at a time, from the tables that users see."""
    model.fit(old)
    errors, priors = model.errors_, model.priors_
    found = model.predict_proba(NEW)
    for task, votes in NEW.groupby("task"):
        scores = {}
        for k in ("a", "b", "c"):
            scores[k] = priors[k] * np.prod(
                [errors.loc[(worker, label), k] for worker, label in zip(votes.worker, votes.label, strict=True)]
            )
        assert found.loc[task].to_dict() == pytest.approx(normalised(scores), abs=1e-12)


def test_a_label_that_a_worker_never_gave_says_nothing() -> None:
    votes = ([0, 0, 1, 1, 2, 2], ["ann", "bob"] * 3, ["x", "x", "x", "y", "x", "y"])
    model = DawidSkene().fit(votes)
    assert ("ann", "y") not in model.errors_.to_pandas().index
    silent = model.predict_proba((["new", "new"], ["ann", "bob"], ["y", "x"])).to_dict()
    without = model.predict_proba((["new"], ["bob"], ["x"])).to_dict()
    assert silent == without


@pytest.mark.parametrize("model", [DawidSkene(20), OneCoinDawidSkene(20)], ids=repr)
def test_an_unseen_worker_errs_like_the_average_vote(old: pd.DataFrame, model: Any) -> None:
    """``e(l | k)`` of an unseen worker is the mean of ``e_r(l | k)`` over all votes of the fit, whoever gave them."""
    model.fit(old)
    skills = model.skills_ if isinstance(model, OneCoinDawidSkene) else None
    scores = {}
    for k in ("a", "b", "c"):
        shares = []
        for worker in old.worker:
            if skills is not None:
                shares.append(skills[worker] if k == "b" else (1 - skills[worker]) / 2)
            else:
                shares.append(model.errors_[k].get((worker, "b"), 0.0))
        scores[k] = model.priors_[k] * np.mean(shares)
    found = model.predict_proba((["new"], ["nobody"], ["b"])).to_dict()["new"]
    assert found == pytest.approx(normalised(scores), abs=1e-9)


def glad_optimum(model: GLAD, alphas: list[float], labels: list[str]) -> dict[str, float]:
    """The posterior at the easiness that maximises ``log sum_k pi_k prod_r P(y_r | k) - (b - 1)^2/2``, by SciPy."""
    classes = ["a", "b", "c"]

    def likelihoods(b: float) -> dict[str, float]:
        right = [1 / (1 + np.exp(-alpha * np.exp(b))) for alpha in alphas]
        return {
            k: float(np.prod([p if label == k else (1 - p) / 2 for p, label in zip(right, labels, strict=True)]))
            * float(model.priors_[k])
            for k in classes
        }

    def penalised(b: Any) -> float:
        return float(-np.log(sum(likelihoods(float(b[0])).values())) + (float(b[0]) - 1) ** 2 / 2)

    best = min((minimize(penalised, [start], tol=1e-12) for start in (-1.0, 1.0, 2.0)), key=lambda one: float(one.fun))
    return normalised(likelihoods(float(best.x[0])))


@pytest.mark.parametrize("prior", ["uniform", "estimate"])
def test_glad_finds_the_easiness_of_new_tasks(old: pd.DataFrame, prior: str) -> None:
    model = GLAD(prior=prior).fit(old)
    found = model.predict_proba(NEW)
    for task, votes in NEW.groupby("task"):
        expected = glad_optimum(model, [model.alphas_[name] for name in votes.worker], votes.label.tolist())
        assert found.loc[task].to_dict() == pytest.approx(expected, abs=1e-5)


def test_glad_takes_unseen_workers_for_their_prior_mean(old: pd.DataFrame) -> None:
    model = GLAD(alphas_priors_mean=1.5).fit(old)
    found = model.predict_proba((["new", "new"], ["w0", "nobody"], ["a", "b"])).to_dict()["new"]
    assert found == pytest.approx(glad_optimum(model, [model.alphas_["w0"], 1.5], ["a", "b"]), abs=1e-5)
    by_name = dict.fromkeys(old.worker.unique(), 1.0)
    with pytest.raises(ParameterError, match="alphas_priors_mean lacks 1 of 1 names: 'nobody'"):
        GLAD(alphas_priors_mean=by_name).fit(old).predict((["new"], ["nobody"], ["b"]))


def test_a_method_that_does_not_say_how_to_label_new_tasks_is_unfinished() -> None:
    class Unfinished(PredictsNewTasks):
        def _fit(self, request: Request) -> Fit:
            return Fit(request.annotations.votes())

    model = Unfinished().fit(([0], ["ann"], ["yes"]))
    with pytest.raises(NotImplementedError):
        model.predict(([1], ["ann"], ["yes"]))


@pytest.mark.parametrize("name", EM_METHODS)
def test_the_tasks_of_the_fit_get_their_labels_again(old: pd.DataFrame, name: str) -> None:
    """At the end of a fit the workers stand still, so that holding them changes next to nothing."""
    model = METHODS[name].load()().fit(old)
    assert isinstance(model, PredictsNewTasks)
    assert np.abs(model.label_new(old).posterior - model.posterior_).max() < 2e-3


def test_new_tasks_are_read_as_any_other_data(tmp_path: Path) -> None:
    # One reader for all: an export, a wide table, rows; not only what a frame could be.
    votes = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "yes"), ("b", "bob", "yes")]
    fitted = GoldMajorityVote().fit(votes, {"a": "yes"})
    (tmp_path / "wide.csv").write_text("item,ann,bob\nx,yes,yes\ny,no,no\n")
    assert fitted.predict(tmp_path / "wide.csv", wide=True).to_dict() == {"x": "yes", "y": "no"}
    (tmp_path / "Batch.csv").write_text("HITId,WorkerId,Answer.q,Approve,Reject\nx,ann,yes\ny,bob,no\n")
    assert fitted.predict(str(tmp_path / "Batch.csv")).to_dict() == {"x": "yes", "y": "no"}
    assert fitted.predict([("x", "ann", "yes")]).to_dict() == {"x": "yes"}
    assert fitted.predict_proba(tmp_path / "wide.csv", wide=True).to_pandas().shape == (2, 2)


def numbered(frame: pd.DataFrame, kind: Any) -> pd.DataFrame:
    """The same votes with numbers for workers and classes, as values of a type."""
    codes = {name: sorted(frame[name].unique()).index for name in ("worker", "label")}
    return frame.assign(**{name: [kind(code(value)) for value in frame[name]] for name, code in codes.items()})


@pytest.mark.parametrize("own", [int, str])
def test_numbers_and_their_text_are_the_same_workers_and_classes(old: pd.DataFrame, own: Any) -> None:
    """As for gold and items: "7" is 7."""
    model = DawidSkene().fit(numbered(old, own))
    expected = model.predict_proba(numbered(old, own)).to_numpy()
    for kind in (int, float, str):
        found = model.label_new(numbered(old, kind))
        assert found.n_unseen_workers == 0
        assert found.posterior.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("make", [DawidSkene, Wawa])
def test_truth_values_are_not_the_numbers_of_the_fit(make: Any) -> None:
    votes = (["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3, [0, 1, 0, 0, 1, 1])
    model = make().fit(votes)
    with pytest.raises(InputError, match=r"label (True|False) was not among|both the number"):
        model.predict((["n", "n"], ["x", "y"], [True, False]))
