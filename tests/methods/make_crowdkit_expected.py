"""Writes crowdkit_expected.json: what crowd-kit makes of small scripts on small crowds.

    PYTHON tests/methods/make_crowdkit_expected.py

with a Python that has crowd-kit and scikit-learn below 1.8 (with later ones three of its classes fail in `predict`).
It needs nothing else of this repository. `test_crowdkit_dropin.py` runs the same scripts with rarevote's classes.

In all crowds but one, names first appear in sorted order: crowd-kit orders by appearance, rarevote sorts.
"""

from __future__ import annotations

import inspect
import json
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TARGET = Path(__file__).with_name("crowdkit_expected.json")

CLASSES = (
    "MajorityVote",
    "DawidSkene",
    "OneCoinDawidSkene",
    "GLAD",
    "MACE",
    "KOS",
    "Wawa",
    "ZeroBasedSkill",
    "GoldMajorityVote",
)
METRICS = ("alpha_krippendorff", "consistency", "uncertainty", "accuracy_on_aggregates", "entropy_threshold")

# --------------------------------------------------------------------------------------------------------------------
# crowds


def make_votes(seed: int, n_tasks: int, n_workers: int, n_classes: int, *, repeats: bool = False) -> pd.DataFrame:
    """Votes of workers between good and poor, with the truth in a fourth column; all numbers appear in sorted order."""
    rng = np.random.default_rng(seed)
    accuracy = np.linspace(0.9, 0.45, n_workers)
    rows = []
    for task in range(n_tasks):
        truth = rng.integers(n_classes)
        n_votes = rng.integers(2, n_workers + 1)
        for worker in sorted(rng.choice(n_workers, n_votes, replace=repeats)):
            wrong = (truth + rng.integers(1, n_classes)) % n_classes
            rows.append((task, worker, truth if rng.random() < accuracy[worker] else wrong, truth))
    votes = pd.DataFrame(rows, columns=["task", "worker", "label", "truth"])
    votes["worker"] = pd.factorize(votes["worker"])[0]
    codes, found = pd.factorize(votes["label"])
    votes["label"], votes["truth"] = codes, votes["truth"].map({name: code for code, name in enumerate(found)})
    return votes


def make_inputs(votes: pd.DataFrame, tasks: list[Any], workers: list[Any], classes: list[Any]) -> dict[str, Any]:
    """Everything a script may use, under the names of the script."""
    seen = votes["task"].map(tasks.__getitem__)
    data = pd.DataFrame(
        {
            "task": seen,
            "worker": votes["worker"].map(workers.__getitem__),
            "label": votes["label"].map(classes.__getitem__),
        }
    )
    truth = pd.Series(votes["truth"].map(classes.__getitem__).tolist(), index=seen.tolist())
    truth = truth[~truth.index.duplicated()]
    known_workers = workers[: data["worker"].nunique()]
    pairs = pd.MultiIndex.from_product([known_workers, classes], names=["worker", "label"])
    right = np.equal.outer(pairs.get_level_values("label").to_numpy(), np.array(classes))
    probability = pd.DataFrame(np.where(right, 0.7, 0.3 / (len(classes) - 1)), index=pairs, columns=classes)
    return {
        "data": data,
        "new_data": data[data["task"].isin(sorted(seen.unique())[: len(tasks) // 3])].iloc[::2].reset_index(drop=True),
        "true_labels": truth.iloc[::3],
        "several": pd.concat([truth.iloc[::3], truth.iloc[1::3], truth.iloc[::3].shift().bfill()]),
        "skills": pd.Series(np.linspace(0.2, 0.9, len(known_workers)).round(3), index=known_workers),
        "some_skills": pd.Series(np.linspace(0.2, 0.9, len(known_workers)).round(3), index=known_workers).iloc[1:],
        "probabilities": probability,
        "counts": (probability * 20).round() + 1.0,
        "some_counts": ((probability * 20).round() + 1.0).iloc[: 2 * len(classes)],
        "class_prior": pd.Series(np.arange(1.0, len(classes) + 1) / sum(range(len(classes) + 1)), index=classes),
        "ability_mean": pd.Series(np.linspace(0.5, 1.5, len(known_workers)).round(3), index=known_workers),
        "easiness_mean": pd.Series(0.5, index=tasks[: seen.nunique()]),
        "empty": data.iloc[:0],
    }


def make_crowds() -> dict[str, dict[str, Any]]:
    """Names of every kind: integers, text and truth values."""
    plain = make_votes(1, 24, 6, 3)
    workers = [f"w{number}" for number in range(8)]
    tasks = [f"t{number:02d}" for number in range(24)]
    crowds = {
        "text": make_inputs(plain, tasks, workers, ["a", "b", "c"]),
        "integers": make_inputs(make_votes(2, 24, 7, 2), list(range(100, 124)), list(range(8)), [0, 1]),
        "truth values": make_inputs(make_votes(3, 20, 5, 2), tasks, workers, [False, True]),
        "repeats": make_inputs(make_votes(4, 24, 5, 3, repeats=True), tasks, workers, ["a", "b", "c"]),
    }
    shuffled = dict(crowds["text"])
    shuffled["data"] = shuffled["data"].sample(frac=1.0, random_state=0).reset_index(drop=True)
    return {**crowds, "shuffled": shuffled}


# --------------------------------------------------------------------------------------------------------------------
# scripts: the class, the crowds, what is run, what is looked at

ALL = ("text", "integers", "truth values", "repeats", "shuffled")
NO_TRUTH_VALUES = ("text", "integers", "repeats", "shuffled")  # GLAD and metrics of crowd-kit fail on True and False
IN_ORDER = ("text", "integers", "truth values", "repeats")  # on others crowd-kit's MACE confuses workers
ONE = ("text",)
TWO = ("integers", "shuffled")
FITTED = {
    "MajorityVote": ("labels_", "probas_", "skills_"),
    "DawidSkene": ("labels_", "probas_", "priors_", "errors_", "loss_history_"),
    "OneCoinDawidSkene": ("labels_", "probas_", "priors_", "errors_", "skills_", "loss_history_"),
    "GLAD": ("labels_", "probas_", "alphas_", "betas_"),
    "MACE": ("labels_", "probas_", "spamming_", "thetas_"),
    "KOS": ("labels_",),
    "Wawa": ("skills_",),
    "ZeroBasedSkill": ("skills_",),
    "GoldMajorityVote": ("skills_",),
}

# crowd-kit's GLAD, made to go on to the optimum of its objective: no early stop, and M-steps that are solved.
TO_THE_END = {"n_iter": 80, "tol": -np.inf, "m_step_max_iter": 200, "m_step_tol": 1e-7}
GLAD_PRIORS: list[dict[str, str]] = [
    {},
    {"labels_priors": "class_prior"},
    {"alphas_priors_mean": "ability_mean", "betas_priors_mean": "easiness_mean"},
]

# A line is run; its value, if it has one, is compared. `model.*` stands for the fitted attributes.
SCRIPTS: list[tuple[str, tuple[str, ...], str]] = [
    ("MajorityVote", ALL, "model = MajorityVote().fit(data); model.*"),
    ("MajorityVote", TWO, "MajorityVote().fit_predict(data); MajorityVote().fit_predict_proba(data)"),
    ("MajorityVote", ALL, "model = MajorityVote().fit(data, skills); model.*"),
    ("MajorityVote", ONE, "MajorityVote().fit_predict(data, skills=skills)"),
    ("MajorityVote", ONE, "MajorityVote().fit_predict_proba(data, skills)"),
    ("MajorityVote", ONE, "model = MajorityVote(0.4, 'value').fit(data, some_skills); model.*"),
    (
        "MajorityVote",
        ONE,
        "MajorityVote(on_missing_skill='value', default_skill=1).fit_predict_proba(data, some_skills)",
    ),
    ("MajorityVote", ONE, "MajorityVote(on_missing_skill='ignore').fit_predict_proba(data, some_skills)"),
    ("MajorityVote", ONE, "MajorityVote().fit(data, some_skills)"),
    ("MajorityVote", ONE, "MajorityVote().fit(data, skills.where(skills > 0.5))"),
    ("MajorityVote", ONE, "MajorityVote(on_missing_skill='ignore').fit(data, skills[:1])"),
    ("MajorityVote", ONE, "MajorityVote(on_missing_skill='value').fit(data, skills)"),
    ("MajorityVote", ONE, "MajorityVote(default_skill=0.5).fit(data, skills)"),
    ("MajorityVote", ONE, "MajorityVote(on_missing_skill='drop').fit(data, skills)"),
    ("MajorityVote", ONE, "model = MajorityVote().fit(empty); model.*"),
    ("DawidSkene", ALL, "model = DawidSkene().fit(data); model.*"),
    ("DawidSkene", TWO, "DawidSkene(100).fit_predict(data); DawidSkene(n_iter=100).fit_predict_proba(data)"),
    ("DawidSkene", TWO, "model = DawidSkene(3).fit(data); model.*"),
    ("DawidSkene", ONE, "model = DawidSkene(100, 1e-3).fit(data); model.*"),
    ("DawidSkene", ALL, "model = DawidSkene().fit(data, true_labels); model.*"),
    ("DawidSkene", ONE, "DawidSkene(10).fit_predict(data, true_labels=true_labels)"),
    ("DawidSkene", ONE, "model = DawidSkene(5, 1e-5, 'assign').fit(data, initial_error=probabilities); model.*"),
    ("DawidSkene", ONE, "model = DawidSkene(1, initial_error_strategy='assign').fit(data, None, counts); model.*"),
    ("DawidSkene", ONE, "model = DawidSkene(5, initial_error_strategy='addition').fit(data, None, counts); model.*"),
    ("DawidSkene", ONE, "DawidSkene(5, 0, 'addition').fit_predict_proba(data, true_labels, initial_error=some_counts)"),
    ("DawidSkene", ONE, "DawidSkene(5, initial_error_strategy='assign').fit(data, initial_error=some_counts)"),
    ("DawidSkene", ONE, "DawidSkene(5, initial_error_strategy='assign').fit(data, initial_error=probabilities / 2)"),
    ("DawidSkene", ONE, "DawidSkene(initial_error_strategy='assign').fit(data, None, counts.rename_axis(['x', 'y']))"),
    ("DawidSkene", ONE, "DawidSkene(initial_error_strategy='replace').fit(data, initial_error=counts)"),
    ("DawidSkene", ONE, "model = DawidSkene().fit(empty); model.labels_; model.probas_; model.priors_; model.errors_"),
    ("DawidSkene", ONE, "DawidSkene().fit_predict(empty, true_labels)"),
    ("OneCoinDawidSkene", ALL, "model = OneCoinDawidSkene().fit(data); model.*"),
    ("OneCoinDawidSkene", TWO, "OneCoinDawidSkene(50).fit_predict(data); OneCoinDawidSkene(2).fit_predict_proba(data)"),
    ("OneCoinDawidSkene", ONE, "OneCoinDawidSkene(10, 1e-5, None).fit_predict(data)"),
    ("OneCoinDawidSkene", ONE, "OneCoinDawidSkene().fit_predict(empty); OneCoinDawidSkene().fit_predict_proba(empty)"),
    ("GLAD", NO_TRUTH_VALUES, "model = GLAD().fit(data); model.*"),
    ("GLAD", ONE, "GLAD(100, 1e-5, True).fit_predict(data); GLAD(n_iter=100, tol=1e-5).fit_predict_proba(data)"),
    ("GLAD", ONE, "model = GLAD(labels_priors=class_prior).fit(data); model.*"),
    ("GLAD", ONE, "GLAD(labels_priors=pd.Series([0.3, 0.3, 0.3, 0.1], index=list('abcd'))).fit_predict_proba(data)"),
    ("GLAD", ONE, "model = GLAD(alphas_priors_mean=ability_mean, betas_priors_mean=easiness_mean).fit(data); model.*"),
    ("GLAD", ONE, "GLAD(m_step_max_iter=50, m_step_tol=1e-3).fit_predict(data)"),
    ("MACE", IN_ORDER, "model = MACE().fit(data); model.*"),
    ("MACE", ONE, "MACE(5, 30, 'vb', 0.1, 0.5, 0.5, 0.5, 0, 0).fit_predict(data)"),
    ("MACE", ONE, "MACE(1, 300, 'em', 0.01 / 3, verbose=0).fit_predict_proba(data)"),
    (
        "MACE",
        TWO[:1],
        "MACE(default_noise=1.0, random_state=7).fit_predict_proba(data); MACE(alpha=2, beta=1).fit_predict(data)",
    ),
    ("MACE", IN_ORDER, "model = MACE(n_iter=0).fit(data); model.*"),
    ("MACE", ONE, "MACE().fit(data.drop(columns='worker'))"),
    (
        "KOS",
        ("integers",),
        "model = KOS().fit(data); model.*; KOS(3, 5).fit_predict(data); KOS(n_iter=0).fit_predict(data)",
    ),
    ("KOS", ONE, "KOS().fit(data)"),
    ("KOS", ONE, "KOS().fit(data.drop(columns='worker'))"),
    ("MajorityVote", ONE, "model = MajorityVote(on_missing_skill='ignore').fit(data, some_skills); model.*"),
    ("MajorityVote", ONE, "MajorityVote().fit(data.drop(columns='task'))"),
    ("DawidSkene", TWO, "model = DawidSkene(0).fit(data); model.*"),
    ("DawidSkene", ONE, "model = DawidSkene(0, 1e-5, 'assign').fit(data, initial_error=probabilities); model.*"),
    ("DawidSkene", ONE, "model = DawidSkene(0).fit(data, true_labels); model.*"),
    ("DawidSkene", TWO, "model = DawidSkene().fit(data, several); model.*"),
    (
        "DawidSkene",
        ONE,
        "model = DawidSkene().fit(data); DawidSkene(3, 0, 'assign').fit_predict_proba(data, None, model.errors_)",
    ),
    ("DawidSkene", ONE, "DawidSkene().fit(data[['task', 'label']])"),
    ("OneCoinDawidSkene", TWO, "model = OneCoinDawidSkene(0).fit(data); model.*"),
    ("OneCoinDawidSkene", ONE, "OneCoinDawidSkene().fit(data.drop(columns='label'))"),
    ("GLAD", ONE, "model = GLAD(0).fit(data); model.labels_; model.probas_"),
    ("ZeroBasedSkill", ONE, "model = ZeroBasedSkill(0).fit(data); model.*; model.predict_proba(data)"),
    ("ZeroBasedSkill", ONE, "ZeroBasedSkill().fit(data.drop(columns='label'))"),
    ("GoldMajorityVote", ALL, "model = GoldMajorityVote().fit(data, several); model.*; model.predict(data)"),
    ("GoldMajorityVote", ONE, "GoldMajorityVote().fit(data.drop(columns='label'), true_labels)"),
    ("alpha_krippendorff", ALL, "alpha_krippendorff(data)"),
    (
        "alpha_krippendorff",
        ONE,
        "alpha_krippendorff(data, lambda a, b: 0.0 if a == b else 0.25 if 'a' in (a, b) else 1.0)",
    ),
    ("consistency", NO_TRUTH_VALUES, "consistency(data); consistency(data, by_task=True); consistency(data, skills)"),
    ("consistency", ONE, "consistency(data, aggregator=MajorityVote(), by_task=True)"),
    (
        "uncertainty",
        NO_TRUTH_VALUES,
        "uncertainty(data); uncertainty(data, skills); uncertainty(data, aggregator=MajorityVote())",
    ),
    (
        "uncertainty",
        NO_TRUTH_VALUES,
        "uncertainty(data, compute_by='worker', aggregate=False); uncertainty(data, skills, aggregate=False)",
    ),
    (
        "accuracy_on_aggregates",
        ALL,
        "accuracy_on_aggregates(data); accuracy_on_aggregates(data, by='worker'); "
        "accuracy_on_aggregates(data, aggregates=true_labels); accuracy_on_aggregates(data, None, true_labels, 'task')",
    ),
    (
        "entropy_threshold",
        NO_TRUTH_VALUES,
        "entropy_threshold(data).index.tolist(); entropy_threshold(data, skills, 40, 3).index.tolist()",
    ),
    ("Wawa", ONE, "Wawa().fit(data.drop(columns='worker'))"),
    ("Wawa", ALL, "model = Wawa().fit(data); model.*; model.predict(data); model.predict_proba(data)"),
    ("Wawa", TWO, "Wawa().fit_predict(data); Wawa().fit_predict_proba(data); Wawa().fit(data).predict(new_data)"),
    ("Wawa", ONE, "Wawa().fit(data).predict(new_data.assign(label='new'))"),
    ("Wawa", ONE, "Wawa().fit(data).predict(new_data.assign(worker='stranger'))"),
    ("Wawa", ONE, "Wawa().predict(data)"),
    ("Wawa", ONE, "model = Wawa().fit(empty); model.*; Wawa().fit_predict(empty)"),
    (
        "ZeroBasedSkill",
        ALL,
        "model = ZeroBasedSkill().fit(data); model.*; model.predict(data); model.predict_proba(data)",
    ),
    ("ZeroBasedSkill", ONE, "ZeroBasedSkill(100, 1.0, 20, 0.5, 1e-5).fit_predict(data)"),
    ("ZeroBasedSkill", TWO, "model = ZeroBasedSkill(n_iter=7, lr_init=0.3, lr_steps_to_reduce=2).fit(data); model.*"),
    ("ZeroBasedSkill", ONE, "ZeroBasedSkill().fit(data).predict(new_data.assign(worker='stranger'))"),
    ("GoldMajorityVote", ALL, "model = GoldMajorityVote().fit(data, true_labels); model.*; model.predict_proba(data)"),
    ("GoldMajorityVote", ONE, "GoldMajorityVote().fit(data, true_labels=true_labels).predict(new_data)"),
    ("GoldMajorityVote", ONE, "GoldMajorityVote().fit_predict(empty, true_labels)"),
]


def lines_of(name: str, script: str) -> list[str]:
    lines = []
    for line in script.split("; "):
        lines += [f"model.{attribute}" for attribute in FITTED[name]] if line == "model.*" else [line]
    return lines


def run(lines: list[str], namespace: dict[str, Any]) -> list[Any]:
    """The encoded value of every line that is an expression; an error ends the script."""
    values: list[Any] = []
    for line in lines:
        try:
            if " = " in line:
                exec(line, namespace)
            else:
                values.append(encode(eval(line, namespace)))
        except Exception as error:
            values.append({"kind": "error", "types": [base.__name__ for base in type(error).__mro__]})
            break
    return values


# --------------------------------------------------------------------------------------------------------------------
# results as text


def encode(value: Any) -> Any:
    if isinstance(value, pd.Series):
        return {"kind": "Series", "name": value.name, **_index(value), "values": _plain(value.tolist())}
    if isinstance(value, pd.DataFrame):
        return {
            "kind": "DataFrame",
            **_index(value),
            "columns_name": value.columns.name,
            "columns": _plain(value.columns.tolist()),
            "values": [_plain(row) for row in value.to_numpy().tolist()],
        }
    if isinstance(value, list):
        return {"kind": "list", "values": _plain(value)}
    if isinstance(value, np.ndarray):
        return {"kind": "array", "values": [_plain(row) for row in value.tolist()]}
    if isinstance(value, float):
        return {"kind": "list", "values": _plain([float(value)])}
    return {"kind": type(value).__name__}


def _index(value: Any) -> dict[str, Any]:
    entries = [list(entry) if isinstance(entry, tuple) else entry for entry in value.index.tolist()]
    return {"index_names": list(value.index.names), "index": entries}


def _plain(values: list[Any]) -> list[Any]:
    """Numbers to nine digits, which is more than is compared."""
    return [float(f"{value:.9g}") if isinstance(value, float) else value for value in values]


def signatures(module: Any) -> dict[str, Any]:
    """Parameters of the constructor with their defaults, and of the methods."""

    def parameters(method: Any) -> list[str]:
        return [name for name in inspect.signature(method).parameters if name != "self"]

    found = {}
    for name in CLASSES:
        made = getattr(module, name)
        methods = [
            method
            for method in ("fit", "fit_predict", "fit_predict_proba", "predict", "predict_proba")
            if hasattr(made, method)
        ]
        found[name] = {
            "constructor": {key: entry.default for key, entry in inspect.signature(made).parameters.items()},
            "methods": {method: parameters(getattr(made, method)) for method in methods},
        }
    return found


def main() -> None:
    from crowdkit import aggregation, postprocessing
    from crowdkit.metrics import data as of_data
    from crowdkit.metrics import workers as of_workers

    homes = (aggregation, of_data, of_workers, postprocessing)
    warnings.filterwarnings("ignore")
    crowds = make_crowds()
    cases = []
    for name, used, script in SCRIPTS:
        lines = lines_of(name, script)
        for crowd in used:
            namespace = {
                "pd": pd,
                "MajorityVote": aggregation.MajorityVote,
                name: next(getattr(home, name) for home in homes if hasattr(home, name)),
                **{key: value.copy() for key, value in crowds[crowd].items()},
            }
            cases.append({"class": name, "crowd": crowd, "lines": lines, "values": run(lines, namespace)})
    optima = []
    for crowd in NO_TRUTH_VALUES[:2]:
        for priors in GLAD_PRIORS:
            given = {name: crowds[crowd][key].copy() for name, key in priors.items()}
            model = aggregation.GLAD(**TO_THE_END, **given).fit(crowds[crowd]["data"])
            results = {name: encode(getattr(model, name)) for name in FITTED["GLAD"]}
            optima.append({"crowd": crowd, "priors": priors, "results": results})
    packages = ("crowd-kit", "numpy", "pandas", "scikit-learn", "scipy")
    parts = {
        "versions": {package: version(package) for package in packages},
        "signatures": signatures(aggregation),
        "metrics": {
            name: list(inspect.signature(next(getattr(home, name) for home in homes if hasattr(home, name))).parameters)
            for name in METRICS
        },
        "glad_optima": optima,
        "crowds": {name: {key: encode(value) for key, value in inputs.items()} for name, inputs in crowds.items()},
    }
    # One line per case, so that a difference can be read.
    rows = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
    head = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in parts.items())
    TARGET.write_text(f'{{\n{head},\n"cases": [\n{rows}\n]\n}}\n', encoding="utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
