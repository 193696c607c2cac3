"""What is said of features: progress, the record in JSON of every verb, the page, and where to look for a class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote.api import Fitted
from rarevote.em.loop import Progress
from rarevote.errors import ParameterError
from rarevote.features.settings import FeatureSettings
from rarevote.progress import StagesLeft
from tests.command import rarevote as command
from tests.features.crowds import DrawnCrowd, draw_crowd


@pytest.fixture(scope="module")
def drawn() -> DrawnCrowd:
    return draw_crowd(1)


@pytest.fixture(scope="module")
def fitted(drawn: DrawnCrowd) -> Fitted:
    return rarevote.fit(drawn.votes, features=drawn.given)


@pytest.fixture(scope="module")
def folder(drawn: DrawnCrowd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("said")
    pd.DataFrame(drawn.votes, columns=["task", "worker", "label"]).to_csv(made / "votes.csv", index=False)
    frame = pd.DataFrame(drawn.features, columns=list("abcde"))
    frame.insert(0, "task", drawn.ids)
    frame.to_csv(made / "features.csv", index=False)
    (made / "items.csv").write_text("task\n" + "\n".join(drawn.ids) + "\n")
    return made


def test_steps_are_reported(drawn: DrawnCrowd, fitted: Fitted) -> None:
    said: list[Progress] = []
    again = rarevote.fit(drawn.votes, features=drawn.given, callback=said.append)
    assert np.array_equal(again.probabilities, fitted.probabilities)
    steps = [one for one in said if one.stage == "features"]
    # Five candidates of at most twenty steps each, between the two fits.
    assert [one.n_iter for one in steps] == [100] * len(steps)
    assert [one.iteration for one in steps] == sorted({one.iteration for one in steps})
    assert {(one.iteration - 1) // 20 for one in steps} == {0, 1, 2, 3, 4}
    assert said[0].stage == said[-1].stage == ""
    stages = [one.stage for one in said]
    begin = stages.index("features")
    assert stages[begin : begin + len(steps)] == ["features"] * len(steps)


def test_steps_where_a_part_of_the_items_chooses(drawn: DrawnCrowd) -> None:
    said: list[Progress] = []
    settings = FeatureSettings(subsample=120)
    rarevote.fit(drawn.votes, features=drawn.given, feature_settings=settings, callback=said.append)
    steps = [one.iteration for one in said if one.stage]
    assert {one.n_iter for one in said if one.stage} == {120}
    assert {(one - 1) // 20 for one in steps} == {0, 1, 2, 3, 4, 5}


def test_a_terminal_shows_the_steps(folder: Path) -> None:
    done = command("aggregate", "votes.csv", "--features", "features.csv", "-v", "-o", "v.csv", folder=folder)
    assert "fitting anchored-rasch: features, step 1 of at most 100" in done.stderr


def test_each_stage_has_a_time_of_its_own() -> None:
    left = StagesLeft()
    left.after(Progress(1, 300, 0.0, 0.5))
    left.after(Progress(9, 300, 0.0, 0.01))
    assert left.done > 0.4
    left.after(Progress(1, 100, 0.0, 0.5, "features"))
    assert left.done == 0.01
    left.after(Progress(1, 300, 0.0, 0.5))
    assert left.done < 0.01


VERBS: dict[str, list[str]] = {
    "aggregate": ["-o", "r.csv"],
    "annotators": [],
    "check": [],
    "explain": ["--task", "item-3"],
    "plan": ["--budget", "5"],
    "report": ["-o", "r.html"],
}


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.prove] if verb == "report" else []) for verb in VERBS]
)
def test_every_verb_has_the_record_in_json(verb: str, folder: Path, fitted: Fitted) -> None:
    done = command(verb, "votes.csv", "--features", "features.csv", *VERBS[verb], "--json", folder=folder)
    said: Any = json.loads(done.stdout)
    record = (said[0] if verb == "explain" else said)["features"]
    assert fitted.features_ is not None
    assert record["used"]
    assert record["reason"] == fitted.features_.reason
    assert (record["gain"], record["se"]) == pytest.approx((fitted.features_.gain, fitted.features_.se), abs=1e-3)


def test_without_features_no_json_has_a_record(folder: Path) -> None:
    assert "features" not in json.loads(command("check", "votes.csv", "--json", folder=folder).stdout)


def test_an_audit_has_the_record_too(folder: Path, short_chains: None) -> None:
    words = ["audit", "start", "votes.csv", "--features", "features.csv", "--items", "items.csv", "--find", "c1=0.7"]
    done = command(*words, "--plan", "plan.json", "--review-out", "round.csv", "--json", folder=folder)
    assert json.loads(done.stdout)["features"]["pool_items"] == 40


def test_a_notebook_shows_it(fitted: Fitted) -> None:
    assert "they predict held-out votes" in fitted.decide()._repr_html_()


def test_where_to_look_for_a_class(drawn: DrawnCrowd, fitted: Fitted) -> None:
    plan = fitted.decide().plan(15, find="c1")
    pool = dict(zip(fitted.crowd.population.tolist(), fitted.probabilities[:, 1].tolist(), strict=True))
    unseen = sorted(drawn.ids[200:], key=lambda task: -pool[task])
    assert [item.task for item in plan.items] == unseen[:15]
    # The likeliest are rarely of another class: that is what the list is for.
    truth = dict(zip(drawn.ids, drawn.truth.tolist(), strict=True))
    share = np.mean([truth[item.task] == 1 for item in plan.items])
    assert share > 2 * np.mean([truth[task] == 1 for task in unseen[15:]])
    with pytest.raises(ParameterError, match="'c9' is not a class"):
        fitted.decide().plan(15, find="c9")
    with pytest.raises(ParameterError, match="find orders items without votes by their features"):
        rarevote.fit(drawn.votes).decide().plan(15, find="c1")


def test_where_to_look_on_the_command_line(folder: Path) -> None:
    words = ["plan", "votes.csv", "--budget", "8", "--find", "c1"]
    done = command(*words, "--features", "features.csv", "-o", "next.csv", folder=folder)
    assert "of these items are expected to be c1" in done.stdout
    assert pd.read_csv(folder / "next.csv")["reason"].str.endswith("votes: none").all()
    assert "--find needs --features or --pred-probs" in command(*words, folder=folder, code=2).stderr


def test_constants_can_be_set(drawn: DrawnCrowd, fitted: Fitted) -> None:
    strict = rarevote.fit(drawn.votes, features=drawn.given, feature_settings=FeatureSettings(least_gain=1e6))
    assert strict.features_ is not None
    assert not strict.features_.used
    assert strict.features_.gain == fitted.features_.gain  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "wrong",
    [{"folds": 1}, {"folds": 2.5}, {"tau2": ()}, {"lam": (1.0, -1.0)}, {"lapse": 2.0}, {"tol": float("nan")}],
    ids=str,
)
def test_constants_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        FeatureSettings(**wrong)


def test_labels_of_items_without_votes_go_back_to_the_platform(drawn: DrawnCrowd, tmp_path: Path) -> None:
    said: dict[str, list[tuple[str, str]]] = {name: [] for name in drawn.ids}
    for task, worker, label in drawn.votes:
        said[task].append((worker, label))

    def answer(worker: str, label: str) -> dict[str, Any]:
        chosen = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": int(worker[1:]), "result": [chosen]}

    records = [
        {"id": number, "data": {"text": name}, "annotations": [answer(*one) for one in said[name]]}
        for number, name in enumerate(drawn.ids)
    ]
    (tmp_path / "export.json").write_text(json.dumps(records))
    given = ([str(number) for number in range(240)], drawn.features)
    result = rarevote.fit(tmp_path / "export.json", features=given).decide()
    assert result.write_back(tmp_path / "back.json") == 240
    labels = dict(zip(map(str, result.tasks.tolist()), result.labels.tolist(), strict=True))
    for record in json.loads((tmp_path / "back.json").read_text()):
        (predicted,) = record["predictions"]
        assert predicted["result"][0]["value"]["choices"] == [labels[str(record["id"])]]
    # Class shares alone are not a prediction.
    left_out = (given[0], np.random.default_rng(2).permutation(drawn.features))
    with_noise = rarevote.fit(tmp_path / "export.json", features=left_out)
    assert with_noise.features_ is not None
    assert not with_noise.features_.used
    assert with_noise.decide().write_back(tmp_path / "again.json") == 200
