from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rarevote import GLAD, CCRasch, DawidSkene, MajorityVote, OneCoinDawidSkene
from rarevote.decide.probabilities import Smoothed, Tempered
from rarevote.errors import ConvergenceWarning, InputError, NotFittedError, ParameterError, RarevoteWarning
from rarevote.io.read.crowd import read
from rarevote.methods.registry import METHODS, find_method

FRAME = pd.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab"), "label": ["x", "y", "y", "y"]})


def test_parameters_are_stored_as_given() -> None:
    spread = [0.5, 0.7]
    model = CCRasch(7, sigma_alpha=spread)
    assert model.sigma_alpha is spread
    assert model.get_params()["n_iter"] == 7
    assert CCRasch().set_params(n_iter=9).n_iter == 9
    with pytest.raises(ParameterError, match="no parameter 'sigma'; it has n_iter, tol"):
        CCRasch().set_params(sigma=1)


def test_parameters_are_asked_for_as_scikit_learn_asks() -> None:
    ours, theirs = (inspect.signature(kind.get_params).parameters for kind in (MajorityVote, BaseEstimator))
    assert [(name, entry.default) for name, entry in ours.items()] == [
        (name, entry.default) for name, entry in theirs.items()
    ]
    assert MajorityVote().get_params() == MajorityVote().get_params(deep=True)


def test_clone_and_pipeline() -> None:
    model = clone(CCRasch(5, prior="estimate"))
    assert model.get_params() == CCRasch(5, prior="estimate").get_params()
    pipeline = Pipeline([("votes", CCRasch())])
    pipeline.fit(FRAME)
    check_is_fitted(pipeline.named_steps["votes"])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_follows_the_conventions(name: str) -> None:
    entry = find_method(name)
    kind = entry.load()
    assert kind.__name__ == entry.class_name
    assert kind.method_name == name
    model = kind()
    assert model.get_params() == kind.parameter_defaults()
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == f"{kind.__name__}()"
    for text in (kind.__doc__, entry.summary):
        assert text
    assert not entry.summary.endswith(".")
    parameters = list(inspect.signature(kind.__init__).parameters)
    if "n_iter" in parameters:
        assert parameters[1] == "n_iter" or "n_restarts" in parameters


@pytest.mark.parametrize("attribute", ["labels_", "probas_", "loss_history_", "annotations_", "abilities_", "priors_"])
def test_results_before_fit(attribute: str) -> None:
    with pytest.raises(NotFittedError, match=r"call fit\(data\) first"):
        getattr(CCRasch(), attribute)


def test_refitting_forgets_the_old_result() -> None:
    model = CCRasch().fit(FRAME)
    first = model.labels_
    model.fit((["new"], ["w"], ["z"]))
    assert model.labels_.to_dict() == {"new": "z"}
    assert first.tolist() == ["x", "y"]


def test_fit_predict() -> None:
    pd.testing.assert_series_equal(MajorityVote().fit_predict(FRAME), MajorityVote().fit(FRAME).labels_)
    pd.testing.assert_frame_equal(CCRasch().fit_predict_proba(FRAME), CCRasch().fit(FRAME).probas_)


def test_gold_forms_and_warnings() -> None:
    gold = pd.Series({1: "y"})
    assert CCRasch().fit(FRAME, gold).probas_.loc[1, "y"] == 1.0
    with pytest.warns(RarevoteWarning, match="classes without votes: 'rare'"):
        model = CCRasch().fit(FRAME, {1: "rare"})
    assert model.labels_[1] == "rare"
    assert list(model.classes_) == ["rare", "x", "y"]
    with pytest.warns(RarevoteWarning, match="gold for 1 task without votes"):
        CCRasch().fit(FRAME, {1: "x", 99: "x"})
    with pytest.raises(InputError, match=r"none of the 1 gold tasks.*'1'.*check ids"):
        CCRasch().fit(FRAME, {"1": "x"})
    with pytest.raises(
        ParameterError, match="majority-vote cannot learn from gold: leave true_labels out, or choose one of"
    ):
        MajorityVote().fit(FRAME, true_labels=gold)


def test_unknown_methods_suggest_the_nearest() -> None:
    for wrong, right in [("cc_rasch", "cc-rasch"), ("majority", "majority-vote"), ("cc-rash", "cc-rasch")]:
        with pytest.raises(ParameterError, match=f"did you mean {right}"):
            find_method(wrong)


def test_repr_shows_what_differs() -> None:
    assert repr(CCRasch(9, prior=[0.2, 0.8])) == "CCRasch(n_iter=9, prior=[0.2, 0.8])"


def test_results_are_cached_not_recomputed() -> None:
    model = CCRasch().fit(FRAME)
    assert model.labels_ is model.labels_
    assert model.probas_ is model.probas_


def test_a_frame_is_not_changed() -> None:
    before = FRAME.copy(deep=True)
    CCRasch().fit(FRAME)
    pd.testing.assert_frame_equal(FRAME, before)


def test_a_single_vote_is_the_label() -> None:
    for model in (CCRasch(), MajorityVote()):
        assert model.fit((["t"], ["w"], ["b"]), classes=["a", "b"]).labels_.to_dict() == {"t": "b"}


def test_only_shares_of_votes_are_smoothed() -> None:
    for model, kind in ((DawidSkene(), Tempered), (MajorityVote(), Smoothed)):
        calibration = model.fit(FRAME).calibration_
        assert calibration is not None
        assert type(calibration.calibrator) is kind


def test_only_public_results_end_in_an_underscore() -> None:
    for name, entry in METHODS.items():
        if name == "crowdfm":
            continue  # needs weights
        model = entry.load()(**({"ordered": ["x", "y", "z"]} if entry.capabilities.ordered else {}))
        model.fit(FRAME, {1: "y"}) if model.capabilities.gold else model.fit(FRAME)
        assert model.labels_ is not None
        assert set(vars(model)) == {*model.get_params(), "_fitted"}, name


def test_fit_reads_an_export_and_learns_from_its_gold(tmp_path: Path) -> None:
    tasks: list[Any] = []
    for number, answers in enumerate(["xxy", "xyy", "yyy", "xxx"]):
        votes = [
            {
                "completed_by": worker,
                "ground_truth": False,
                "result": [{"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [label]}}],
            }
            for worker, label in enumerate(answers)
        ]
        tasks.append({"id": number, "data": {"t": "text"}, "annotations": votes})
    known = {**tasks[0]["annotations"][2], "completed_by": 9, "ground_truth": True}
    tasks[0]["annotations"].append(known)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    crowd = read(str(path))
    assert list(crowd.gold.values()) == ["y"]
    for data in (str(path), crowd):
        model = CCRasch().fit(data)
        assert model.probas_.to_pandas().loc[next(iter(crowd.gold)), "y"] == 1.0
        assert model.annotations_.n_tasks == 4
    expected = CCRasch().fit(crowd.annotations, crowd.gold)
    assert (expected.posterior_ == model.posterior_).all()
    assert MajorityVote().fit(str(path)).labels_.to_dict()[next(iter(crowd.gold))] == "x"


def test_options_of_the_reader_are_options_of_fit(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("task,ann,bob\n1,x,y\n2,y,y\n")
    assert MajorityVote().fit(tmp_path / "wide.csv", wide=True).annotations_.n_workers == 2
    with pytest.raises(ParameterError, match="sheet needs files"):
        MajorityVote().fit(FRAME, sheet="votes")


SLOW = {"task": [0, 0, 0, 1, 1, 1, 2, 2], "worker": [*"abcabcab"], "label": [*"yynynnyn"]}


@pytest.mark.parametrize("method", [CCRasch, DawidSkene, OneCoinDawidSkene, GLAD])
@pytest.mark.parametrize("verb", ["fit", "fit_predict"])
def test_a_warning_points_to_the_line_of_the_user(method: Any, verb: str) -> None:
    model = method(n_iter=1)
    here = sys._getframe().f_lineno
    with pytest.warns(ConvergenceWarning) as caught:
        getattr(model, verb)(SLOW)
    assert [(one.filename, one.lineno) for one in caught] == [(__file__, here + 2)]


def test_a_warning_about_gold_points_to_the_line_of_the_user() -> None:
    here = sys._getframe().f_lineno
    with pytest.warns(RarevoteWarning, match="without votes") as caught:
        DawidSkene().fit(SLOW, {0: "y", 99: "n"})
    assert [(one.filename, one.lineno) for one in caught] == [(__file__, here + 2)]
