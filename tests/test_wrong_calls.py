"""Wrong calls in Python: each is an error of ours that names the remedy, and signatures name every argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote.errors import InputError, ParameterError, RarevoteError
from rarevote.io.read.options import ReadArguments, ReadOptions
from tests.command import rarevote as command

FRAME = pd.DataFrame(
    [(f"t{i}", worker, "defect" if i < 2 else "ok") for i in range(6) for worker in ("ann", "bob", "cy")],
    columns=["task", "worker", "label"],
)
WIDE = FRAME.pivot(index="task", columns="worker", values="label")


@pytest.fixture(scope="module")
def fitted() -> rarevote.Fitted:
    return rarevote.fit(FRAME, "majority-vote")


@pytest.fixture(scope="module")
def result(fitted: rarevote.Fitted) -> rarevote.Result:
    return fitted.decide()


def fit(*args: Any, **options: Any) -> Any:
    return rarevote.fit(*args, **options)


def read(*args: Any, **options: Any) -> Any:
    return rarevote.read(*args, **options)


# What is called with (fitted, result), the error, and what its message must say.
WRONG: list[tuple[str, Callable[[Any, Any], Any], type[RarevoteError], str]] = [
    ("no data", lambda f, r: fit(), ParameterError, "missing a required argument: 'data'"),
    ("no rows", lambda f, r: fit([]), InputError, "at least one vote: a task, a worker and a label"),
    ("an empty frame", lambda f, r: fit(FRAME[:0]), InputError, "at least one vote"),
    ("None", lambda f, r: fit(None), InputError, "give a pandas, polars or pyarrow frame"),
    ("a number", lambda f, r: fit(3), InputError, "give a pandas, polars or pyarrow frame"),
    ("a file that is not there", lambda f, r: fit("votes-of-nobody.csv"), InputError, "no such file"),
    ("rows of two", lambda f, r: fit([("a", "b")]), InputError, r"a list holds \(task, worker, label\)"),
    ("arrays of two lengths", lambda f, r: fit((["a"], ["b", "c"], ["d"])), InputError, "length"),
    ("a pivoted frame", lambda f, r: fit(WIDE.reset_index()), InputError, "wide=True"),
    ("a pivoted frame with an index", lambda f, r: fit(WIDE), InputError, r"reset_index\(\).*wide=True"),
    ("a pivoted mapping", lambda f, r: fit({"task": ["a"], "ann": ["x"], "bob": ["y"]}), InputError, "wide=True"),
    ("columns of other names", lambda f, r: fit(FRAME.rename(columns={"label": "v"})), InputError, "columns={"),
    ("a role that is none", lambda f, r: fit(FRAME, columns={"who": "worker"}), ParameterError, "accepts task, worker"),
    ("a column that is none", lambda f, r: fit(FRAME, columns={"label": "v"}), InputError, "it has 'task', 'worker'"),
    ("a missing label", lambda f, r: fit([("a", "b", None)]), InputError, 'missing="drop"'),
    ("a misspelled argument", lambda f, r: fit(FRAME, metod="cc-rasch"), ParameterError, "did you mean 'method'"),
    ("a misspelled option", lambda f, r: fit(FRAME, abstein=["?"]), ParameterError, "did you mean 'abstain'"),
    ("an option of read", lambda f, r: read(FRAME, colums={}), ParameterError, "did you mean 'columns'"),
    ("an option of nothing", lambda f, r: fit(FRAME, verbosity=3), ParameterError, "fit has no argument 'verbosity'"),
    ("too many arguments", lambda f, r: fit(FRAME, "kos", "defect"), ParameterError, "too many positional arguments"),
    ("a misspelled method", lambda f, r: fit(FRAME, "cc-rash"), ParameterError, "cc-rasch"),
    ("a rare class that is none", lambda f, r: fit(FRAME, rare="defekt"), ParameterError, "defect"),
    ("an option of keep", lambda f, r: fit(FRAME, keep="newest"), ParameterError, "all, first, last, error"),
    ("gold of other tasks' kind", lambda f, r: fit(FRAME, "cc-rasch", gold=3), InputError, "a mapping from task"),
    ("a misspelled target", lambda f, r: f.decide(min_recal=0.9), ParameterError, "did you mean 'min_recall'"),
    ("a recall above one", lambda f, r: f.decide(min_recall=90), ParameterError, "recall target of defect"),
    ("a recall that is a flag", lambda f, r: f.decide(min_recall=True), ParameterError, "recall target of defect"),
    ("a recall of several", lambda f, r: f.decide(min_recall={"ok": 0.9, "defect": 0.9}), ParameterError, "one class"),
    ("a recall as a list", lambda f, r: f.decide(min_recall=["defect", 0.9]), ParameterError, "a class and its recall"),
    ("a recall of none", lambda f, r: f.decide(min_recall={"defekt": 0.9}), ParameterError, "defect"),
    ("a rule that is none", lambda f, r: f.decide("balance"), ParameterError, "labels, argmax, balanced"),
    ("two ways to decide", lambda f, r: f.decide("argmax", cap=3), ParameterError, "choose one"),
    ("costs as numbers", lambda f, r: f.decide(costs=5), ParameterError, "must be 2 x 2"),
    ("a task that is none", lambda f, r: r.explain("t77"), InputError, "t77"),
    ("a class that is none", lambda f, r: r.expect("defekt"), ParameterError, "defect"),
    ("a review of nothing", lambda f, r: r.review(0), ParameterError, "at least 1"),
    ("a budget in words", lambda f, r: r.plan("200"), ParameterError, "whole number"),
    ("a misspelled budget", lambda f, r: r.plan(budjet=3), ParameterError, "did you mean 'budget'"),
    ("a file of no format", lambda f, r: r.write("result.doc"), InputError, ".csv, .tsv"),
    ("a page that is none", lambda f, r: r.report("page.pdf"), InputError, ".html"),
    ("an audit of none", lambda f, r: f.audit("defekt"), ParameterError, "defect"),
    ("a misspelled audit", lambda f, r: f.audit("defect", targt=0.9), ParameterError, "did you mean 'target'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "said"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_a_wrong_call_names_the_remedy(
    call: Callable[[Any, Any], Any],
    kind: type[RarevoteError],
    said: str,
    fitted: rarevote.Fitted,
    result: rarevote.Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=said):
        call(fitted, result)
    assert not list(tmp_path.iterdir()), "a wrong call leaves nothing behind"


def test_there_are_thirty() -> None:
    assert len(WRONG) >= 30


def test_the_remedy_for_a_pivoted_frame_works() -> None:
    assert rarevote.fit(WIDE.reset_index(), "majority-vote", wide=True).annotations.n_workers == 3


# --------------------------------------------------------------------------------------------------------------------
# a recall target without a class


def test_a_recall_alone_is_of_the_rare_class(fitted: rarevote.Fitted) -> None:
    alone, named = fitted.decide(min_recall=0.9), fitted.decide(min_recall={"defect": 0.9})
    assert alone.description == named.description
    np.testing.assert_array_equal(alone.codes, named.codes)
    other = rarevote.fit(FRAME, "majority-vote", rare="ok").decide(min_recall=0.9)
    assert "recall of ok" in other.description


def test_a_recall_alone_on_the_command_line(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "votes.csv", index=False)
    votes = str(tmp_path / "votes.csv")
    told = [
        command("aggregate", votes, "-m", "majority-vote", "--min-recall", given, "-o", str(tmp_path / f"{n}.csv"))
        for n, given in enumerate(("0.9", "defect=0.9"))
    ]
    assert (tmp_path / "0.csv").read_text() == (tmp_path / "1.csv").read_text()
    assert "recall of defect" in told[0].stderr
    assert "RECALL of the rare class" in command("aggregate", votes, "--min-recall", "most", code=2).stderr


def test_a_recall_alone_of_several_labels_is_of_yes() -> None:
    rows = [(f"i{i}", worker, ["a"] if i < 4 else []) for i in range(6) for worker in ("ann", "bob", "cy")]
    each = rarevote.fit_each(pd.DataFrame(rows, columns=["task", "worker", "label"]), "majority-vote", multilabel=True)
    assert "recall of yes" in each.decide(min_recall=0.9)["a"].description


# --------------------------------------------------------------------------------------------------------------------
# signatures, by which editors and notebooks complete names


def test_reading_options_are_listed_once() -> None:
    ours = {one.name: one.type for one in fields(ReadOptions)}
    assert ReadArguments.__annotations__.keys() == ours.keys()
    kinds = {name: str(kind.__forward_arg__) for name, kind in ReadArguments.__annotations__.items()}
    assert kinds == ours


@pytest.mark.parametrize(
    "function", [rarevote.read, rarevote.read_each, rarevote.fit, rarevote.fit_each, rarevote.compare]
)
def test_signatures_name_every_reading_option(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert {one.name for one in fields(ReadOptions)} <= parameters.keys()
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    for one in fields(ReadOptions):
        assert parameters[one.name].default == one.default


@pytest.mark.parametrize("kind", [rarevote.Fitted, rarevote.Result, rarevote.FittedEach, rarevote.ResultEach])
def test_no_public_method_hides_its_arguments(kind: type) -> None:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            kinds = {one.kind for one in inspect.signature(method).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name
