"""Scripts written for crowd-kit, run with rarevote's classes: the same calls, layouts and values.

crowdkit_expected.json holds the scripts, their inputs and what crowd-kit made of them (see make_crowdkit_expected.py).
Whatever differs on purpose is named here, tested here, and told in docs/from-crowdkit.md.
"""

from __future__ import annotations

import inspect
import json
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import rarevote
from rarevote.errors import ConvergenceWarning, InputError, MissingValuesError, ParameterError, RarevoteWarning
from rarevote.methods.registry import METHODS

EXPECTED = json.loads(Path(__file__).with_name("crowdkit_expected.json").read_text(encoding="utf-8"))
CASES = EXPECTED["cases"]
CLASSES = list(EXPECTED["signatures"])

# Where the algorithm is the same, results are.
EXACT = 1e-6
# crowd-kit's GLAD stops on the way to our optimum (taken to the end, it gets there: see below). There, calls and
# layouts are the same and numbers are near: the mean difference, and the share of labels that may differ.
NEAR = {"GLAD": (0.05, 0.15)}
# crowd-kit lets these slip; here the columns of every frame of probabilities are called "label".
NAME_OF_COLUMNS = {"GLAD": "variable", "MACE": None}
# The defaults of crowd-kit's GLAD are those of its stopping rule, which is another.
OTHER_DEFAULTS = {"GLAD": {"n_iter": 1000, "tol": 1e-9}}

few_iterations = pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")


def decode(encoded: dict[str, Any]) -> Any:
    """What the file says, as the pandas object that it was."""
    if encoded["kind"] == "list":
        return encoded["values"]
    if encoded["kind"] == "array":
        return np.array(encoded["values"])
    names = encoded["index_names"]
    index: Any
    if len(names) > 1:
        index = pd.MultiIndex.from_tuples([tuple(entry) for entry in encoded["index"]], names=names)
    else:
        index = pd.Index(encoded["index"], name=names[0])
    if encoded["kind"] == "Series":
        return pd.Series(encoded["values"], index=index, name=encoded["name"], dtype=None if len(index) else float)
    columns = pd.Index(encoded["columns"], name=encoded["columns_name"])
    return pd.DataFrame(encoded["values"], index=index, columns=columns)


def namespace_for(case: dict[str, Any]) -> dict[str, Any]:
    inputs = {name: decode(encoded) for name, encoded in EXPECTED["crowds"][case["crowd"]].items()}
    return {"pd": pd, "MajorityVote": rarevote.MajorityVote, case["class"]: getattr(rarevote, case["class"]), **inputs}


def assert_alike(ours: Any, theirs: Any, name: str, *, sort: bool) -> None:
    """Same kind, same names, same order (theirs sorted if it went by appearance), values equal or near."""
    ours = [ours] if isinstance(ours, float) else ours
    assert type(ours) is type(theirs)
    if isinstance(ours, (list, np.ndarray)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=EXACT)
        return
    if len(theirs) == 0:
        assert len(ours) == 0
        assert getattr(ours, "name", None) == getattr(theirs, "name", None)
        return
    assert list(ours.index.names) == list(theirs.index.names)
    if sort or len(theirs.index.names) > 1:  # pairs of worker and label never appear in sorted order
        theirs = theirs.sort_index()
    assert ours.index.tolist() == theirs.index.tolist()
    if isinstance(ours, pd.DataFrame):
        if sort:
            theirs = theirs[sorted(theirs.columns)]
        assert ours.columns.tolist() == theirs.columns.tolist()
        if name in NAME_OF_COLUMNS:
            assert (theirs.columns.name, ours.columns.name) == (NAME_OF_COLUMNS[name], "label")
        else:
            assert ours.columns.name == theirs.columns.name
        assert (ours.dtypes == theirs.dtypes).all()
    else:
        assert ours.name == theirs.name
        assert ours.dtype == theirs.dtype
    if getattr(ours, "name", None) == "agg_label":
        assert (ours.to_numpy() != theirs.to_numpy()).mean() <= NEAR.get(name, (0.0, 0.0))[1]
    elif name in NEAR:
        assert np.abs(ours.to_numpy() - theirs.to_numpy()).mean() < NEAR[name][0]
    else:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=EXACT)


def case_id(case: dict[str, Any]) -> str:
    return f"{case['crowd']}: {case['lines'][0]}"


@few_iterations
@pytest.mark.filterwarnings("ignore:.*(several gold labels|removed half of the votes)")
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_the_script_gives_the_same(case: dict[str, Any]) -> None:
    namespace, values = namespace_for(case), iter(case["values"])
    for line in case["lines"]:
        if " = " in line:
            exec(line, namespace)
            continue
        expected = next(values)
        if expected["kind"] == "error":
            kind = KeyError if "KeyError" in expected["types"] else ValueError
            assert kind.__name__ in expected["types"]
            with pytest.raises(kind, match=r".{20}"):
                eval(line, namespace)
        else:
            ours = eval(line, namespace)
            assert_alike(ours, decode(expected), case["class"], sort=case["crowd"] == "shuffled")
    assert next(values, None) is None


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_have_the_same_names_order_and_defaults(name: str) -> None:
    theirs, ours = EXPECTED["signatures"][name], getattr(rarevote, name)
    wanted = {**theirs["constructor"], **OTHER_DEFAULTS.get(name, {})}
    parameters = inspect.signature(ours).parameters
    assert {key: parameters[key].default for key in list(parameters)[: len(wanted)]} == wanted
    assert all(entry.kind is entry.KEYWORD_ONLY for entry in list(parameters.values())[len(wanted) :])
    for method, arguments in theirs["methods"].items():
        assert hasattr(ours, method)
        if method == "fit":
            assert list(inspect.signature(ours.fit).parameters)[1 : 1 + len(arguments)] == arguments


@pytest.mark.parametrize("name", EXPECTED["metrics"])
def test_metrics_have_the_same_arguments_in_the_same_places(name: str) -> None:
    places = {"alpha_krippendorff": "metrics.data", "consistency": "metrics.data", "uncertainty": "metrics.data",
              "accuracy_on_aggregates": "metrics.workers", "entropy_threshold": "postprocessing"}  # fmt: skip
    ours = getattr(import_module(f"rarevote.{places[name]}"), name)
    assert list(inspect.signature(ours).parameters) == EXPECTED["metrics"][name]


@pytest.mark.parametrize("name", [entry.class_name for entry in METHODS.values()])
def test_what_ends_in_an_underscore_is_a_public_result(name: str, inputs: dict[str, Any]) -> None:
    """crowd-kit clones a model by ``vars`` and leaves out what begins or ends so."""
    if name == "CrowdFM":
        pytest.skip("needs its weights")
    data = inputs["data"]
    if name in ("PLAT", "KOS"):
        data = data[data["label"] != "c"]
    gold = inputs["true_labels"]
    if name == "Rasch":
        gold = pd.Series("a", index=data["task"].unique())
    model = getattr(rarevote, name)(**({"ordered": list("abc")} if name == "AnchoredOrdered" else {}))
    model.fit(data, *([gold] if name in ("GoldMajorityVote", "GoldDawidSkene", "Rasch") else []))
    _ = model.labels_, model.probas_
    assert all(hasattr(type(model), entry) for entry in vars(model) if entry.endswith("_"))
    assert not [entry for entry in vars(model) if entry.startswith("_") and entry.endswith("_")]


# --------------------------------------------------------------------------------------------------------------------
# what differs on purpose: every row of the table in docs/from-crowdkit.md


@pytest.fixture
def inputs() -> dict[str, Any]:
    return {name: decode(encoded) for name, encoded in EXPECTED["crowds"]["text"].items()}


def test_order_is_sorted_and_ties_go_to_the_first_class() -> None:
    data = pd.DataFrame({"task": [2, 2, 1, 1], "worker": list("zyzy"), "label": ["no", "maybe", "yes", "maybe"]})
    model = rarevote.MajorityVote().fit(data)
    assert model.probas_.index.tolist() == [1, 2]
    assert model.probas_.columns.tolist() == ["maybe", "no", "yes"]
    assert model.skills_.index.tolist() == ["y", "z"]
    assert model.labels_.tolist() == ["maybe", "maybe"]


@pytest.mark.parametrize("name", CLASSES)
def test_missing_labels_are_an_error(name: str, inputs: dict[str, Any]) -> None:
    data = inputs["data"].copy()
    data.loc[3, "label"] = None
    gold = (inputs["true_labels"],) if name == "GoldMajorityVote" else ()
    with pytest.raises(MissingValuesError, match="1 row has no label"):
        getattr(rarevote, name)().fit(data, *gold)


def test_gold_that_does_not_match(inputs: dict[str, Any]) -> None:
    gold = inputs["true_labels"]
    with pytest.warns(RarevoteWarning, match="gold for 1 task without votes"):
        rarevote.DawidSkene().fit(inputs["data"], pd.concat([gold, pd.Series({"elsewhere": "a"})]))
    with pytest.raises(InputError, match="none of the 1 gold tasks"):
        rarevote.DawidSkene().fit(inputs["data"], pd.Series({"elsewhere": "a"}))
    with pytest.warns(RarevoteWarning, match="classes without votes"):
        model = rarevote.DawidSkene().fit(inputs["data"], pd.Series({"t00": "new"}))
    assert model.labels_["t00"] == "new"
    with pytest.warns(RarevoteWarning, match="1 task has several gold labels"):
        rarevote.DawidSkene().fit(inputs["data"], pd.Series(["a", "b"], index=["t00", "t00"]))
    with pytest.raises(InputError, match="has two labels"):  # in a table it is a slip
        rarevote.DawidSkene().fit(inputs["data"], (["t00", "t00"], ["a", "b"]))


def test_gold_clamps_the_result_of_gold_majority_vote_but_not_its_predictions(inputs: dict[str, Any]) -> None:
    gold = inputs["true_labels"]
    case = next(
        case for case in CASES if "fit(data, true_labels)" in case["lines"][0] and case["class"] == "GoldMajorityVote"
    )
    theirs = decode(case["values"][-1])
    model = rarevote.GoldMajorityVote().fit(inputs["data"], gold)
    rest = [task for task in theirs.index if task not in gold.index]
    np.testing.assert_allclose(model.probas_.loc[rest], theirs.loc[rest], atol=EXACT)
    assert model.labels_[gold.index].tolist() == gold.tolist()
    np.testing.assert_allclose(model.predict_proba(inputs["data"]), theirs, atol=EXACT)


def test_workers_without_gold_answers_get_the_mean_skill(inputs: dict[str, Any]) -> None:
    gold = inputs["true_labels"].iloc[:1]
    voters = inputs["data"].loc[inputs["data"]["task"] == gold.index[0], "worker"]
    skills = rarevote.GoldMajorityVote().fit(inputs["data"], gold).skills_
    others = skills.drop(voters)
    assert len(others) > 0
    np.testing.assert_allclose(others, skills[voters].mean())


def test_voters_without_skill_are_undecided(inputs: dict[str, Any]) -> None:
    nobody = rarevote.MajorityVote().fit(inputs["data"], inputs["skills"] * 0)
    np.testing.assert_allclose(nobody.probas_, 1 / 3)


def test_parameters_of_majority_vote_are_checked_with_or_without_skills(inputs: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        rarevote.MajorityVote(default_skill=0.5).fit(inputs["data"])


def test_wawa_keeps_the_labels_of_its_fit_and_shows_all_classes(inputs: dict[str, Any]) -> None:
    model = rarevote.Wawa().fit(inputs["data"])
    before = model.labels_
    new = inputs["new_data"][inputs["new_data"]["label"] == "a"]
    assert model.predict_proba(new).columns.tolist() == ["a", "b", "c"]
    assert model.labels_ is before


@pytest.mark.parametrize("case", EXPECTED["glad_optima"], ids=lambda case: f"{case['crowd']}: {sorted(case['priors'])}")
def test_crowdkits_glad_gets_to_our_optimum_if_it_goes_on(case: dict[str, Any]) -> None:
    inputs = {name: decode(encoded) for name, encoded in EXPECTED["crowds"][case["crowd"]].items()}
    model = rarevote.GLAD(**{name: inputs[key] for name, key in case["priors"].items()}).fit(inputs["data"])
    theirs = {name: decode(encoded) for name, encoded in case["results"].items()}
    assert model.labels_.tolist() == theirs["labels_"].tolist()
    for name in ("probas_", "alphas_", "betas_"):
        np.testing.assert_allclose(getattr(model, name), theirs[name], atol=1e-3)


def test_glad_climbs_higher_than_crowdkit(inputs: dict[str, Any]) -> None:
    """At crowd-kit's parameters the penalised objective is lower than at ours; labels are the same here."""
    case = next(case for case in CASES if case["class"] == "GLAD" and case["crowd"] == "text")
    alphas, betas = (decode(value) for value in case["values"][-2:])
    data = inputs["data"]
    ours = rarevote.GLAD().fit(data)

    def objective(alpha: pd.Series, beta: pd.Series) -> float:
        strength = data["worker"].map(alpha).astype(float) * np.exp(data["task"].map(beta).astype(float))
        likelihood = pd.DataFrame(
            {
                name: np.where(
                    data["label"] == name, -np.logaddexp(0, -strength), -np.logaddexp(0, strength) - np.log(2)
                )
                for name in ours.classes_
            }
        )
        of_task = likelihood.groupby(data["task"]).sum().to_numpy() - np.log(3)
        penalty = ((alpha - 1) ** 2).sum() / 2 + ((beta - 1) ** 2).sum() / 2
        return float(np.logaddexp.reduce(of_task, axis=1).sum() - penalty)

    assert objective(ours.alphas_, ours.betas_) == pytest.approx(ours.loss_history_[-1], abs=1e-6)
    assert objective(ours.alphas_, ours.betas_) > objective(alphas, betas)


def test_few_iterations_warn_and_fewer_than_none_are_refused(inputs: dict[str, Any]) -> None:
    with pytest.warns(ConvergenceWarning):
        rarevote.DawidSkene(2).fit(inputs["data"])
    with pytest.raises(ParameterError, match="n_iter"):
        rarevote.DawidSkene(-1).fit(inputs["data"])


def test_mace_names_what_it_found_and_does_not_see_the_order_of_rows(inputs: dict[str, Any]) -> None:
    model = rarevote.MACE().fit(inputs["data"])
    assert (model.skills_.name, model.skills_.index.tolist()) == ("skill", inputs["skills"].index.tolist())
    np.testing.assert_allclose(model.skills_, model.spamming_[:, 1] / model.spamming_.sum(axis=1))
    # crowd-kit puts parameters of one worker with another's votes unless names appear in sorted order.
    other_order = rarevote.MACE().fit(inputs["data"].iloc[::-1])
    np.testing.assert_allclose(other_order.spamming_, model.spamming_, rtol=1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_empty_input_gives_empty_results(name: str, inputs: dict[str, Any]) -> None:
    """Also where crowd-kit divides by zero."""
    gold = (inputs["true_labels"],) if name == "GoldMajorityVote" else ()
    model = getattr(rarevote, name)().fit(inputs["empty"], *gold)
    assert (type(model.labels_), model.labels_.name, len(model.labels_)) == (pd.Series, "agg_label", 0)
    assert (type(model.probas_), len(model.probas_)) == (pd.DataFrame, 0)


@pytest.mark.parametrize("name", CLASSES)
def test_scikit_learn_and_pickle(name: str, inputs: dict[str, Any]) -> None:
    gold = (inputs["true_labels"],) if name == "GoldMajorityVote" else ()
    model = clone(getattr(rarevote, name)())
    data = inputs["data"]
    labels = model.fit_predict(data[data["label"] != "c"] if name == "KOS" else data, *gold)
    pd.testing.assert_series_equal(pickle.loads(pickle.dumps(model)).labels_, labels)


def test_truth_values_are_labels_for_every_method() -> None:
    inputs = {name: decode(encoded) for name, encoded in EXPECTED["crowds"]["truth values"].items()}
    assert rarevote.GLAD().fit(inputs["data"]).probas_.columns.tolist() == [False, True]
