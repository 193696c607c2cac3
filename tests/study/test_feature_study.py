"""The study of features on small sets of ours: draws, means and marks recomputed by hand, rivals against oracles."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks import evidence, study_features
from sklearn.linear_model import LogisticRegression

from rarevote.charts.svg import COLOURS, adaptive_svg, to_svg
from rarevote.errors import InputError, MissingExtraError, ParameterError
from rarevote.study import feature_contenders, features
from rarevote.study.feature_contenders import (
    CONTENDERS,
    FeatureAnswer,
    FeatureContender,
    choose_contenders,
    marks_of,
    out_of_sample,
)
from rarevote.study.feature_sets import FeaturedCrowd, find_feature_sets, load_feature_set
from rarevote.study.features import FeatureMean, FeatureRow, FeatureStudy, check_levels, means_of, worth_in_votes
from rarevote.study.peers.raykar import joint_em, logistic_regression, predicted
from tests.command import rarevote
from tests.features.crowds import draw_crowd


def write_set(folder: Path, seed: int, *, items: int = 90, votes: int = 3) -> None:
    drawn = draw_crowd(seed, items=items, pool=0, columns=3, votes=votes, workers=8)
    folder.mkdir(parents=True)
    tables: dict[str, list[tuple[Any, ...]]] = {
        "labels": [("task", "worker", "label"), *drawn.votes],
        "truth": [("task", "label"), *((task, f"c{k}") for task, k in zip(drawn.ids, drawn.truth, strict=True))],
        "features": [("task", "a", "b", "c"), *((task, *row) for task, row in zip(*drawn.given, strict=True))],
    }
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows(rows)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    write_set(folder / "one", 1)
    write_set(folder / "two", 2, votes=2)
    (folder / "index.csv").write_text("slug,source_group\none,first\ntwo,second\n")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture
def one(data: Path) -> FeaturedCrowd:
    return load_feature_set(find_feature_sets(data, ["one"])[0])


def test_a_set_as_it_is_in_the_files(data: Path, one: FeaturedCrowd) -> None:
    assert [(info.slug, info.source_group) for info in find_feature_sets(data)] == [("one", "first"), ("two", "second")]
    drawn = draw_crowd(1, items=90, pool=0, columns=3, votes=3, workers=8)
    task, worker, label = one.votes
    names = {(t, w, c) for t, w, c in drawn.votes}
    found = {(str(one.tasks[t]), int(w), one.classes[c]) for t, w, c in zip(task, worker, label, strict=True)}
    assert {(t, c) for t, _, c in found} == {(t, c) for t, _, c in names}
    place = [drawn.ids.index(str(name)) for name in one.tasks]
    assert one.truth.tolist() == drawn.truth[place].tolist()
    assert one.features == pytest.approx(drawn.features[place])
    assert one.rare == int(np.bincount(drawn.truth).argmin())
    assert one.most_votes() == 3


def test_a_folder_without_sets_says_what_is_needed(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no dataset with features.*labels\.csv, truth\.csv and features\.parquet"):
        find_feature_sets(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        find_feature_sets(tmp_path / "nothing")
    with pytest.raises(InputError, match="no dataset three with features; there are one, two"):
        find_feature_sets(data, ["one", "three"])
    write_set(tmp_path / "short", 3)
    rows = (tmp_path / "short" / "features.csv").read_text().splitlines()
    (tmp_path / "short" / "features.csv").write_text("\n".join(rows[:-1]) + "\n")
    with pytest.raises(InputError, match=f"no row for {rows[-1].split(',')[0]}"):
        load_feature_set(find_feature_sets(tmp_path)[0])


def test_thinned_votes_are_some_of_the_votes_each_equally_likely(one: FeaturedCrowd) -> None:
    all_votes = set(zip(one.votes[0].tolist(), one.votes[2].tolist(), strict=True))
    kept = np.zeros(len(one.votes[0]))
    for seed in range(300):
        fewer = one.thinned(1, seed)
        assert np.bincount(fewer.votes[0]).tolist() == [1] * 90
        assert set(zip(fewer.votes[0].tolist(), fewer.votes[2].tolist(), strict=True)) <= all_votes
        chosen = fewer.votes[2]
        kept[::3] += [one.votes[2][3 * n] == y for n, y in enumerate(chosen)]
    two = one.thinned(2, 0)
    assert np.bincount(two.votes[0]).tolist() == [2] * 90
    assert (one.thinned(1, 4).votes[2] == one.thinned(1, 4).votes[2]).all()
    # Where the three votes differ, the first class has a chance of its share among them.
    shares = np.array([(one.votes[2][3 * n : 3 * n + 3] == one.votes[2][3 * n]).mean() for n in range(90)])
    assert kept[::3] / 300 == pytest.approx(shares, abs=0.15)
    assert one.thinned(9, 0).votes[2].tolist() == one.votes[2].tolist()


def test_marks_by_hand(one: FeaturedCrowd) -> None:
    p = np.full((90, 2), 0.5)
    p[:, 1] = np.where(one.truth == 1, 0.8, 0.3)
    p[:, 0] = 1 - p[:, 1]
    known = marks_of(FeatureAnswer(p, np.zeros(90, dtype=np.int64)), one)
    assert known["average_precision"] == pytest.approx(1.0)
    # All of the class have one score, so that they are looked at together.
    assert known["flags_90_per_item"] == 1.0
    shares = np.bincount(one.truth) / 90
    assert known["log_loss"] == pytest.approx(-(shares[1] * np.log(0.8) + shares[0] * np.log(0.7)))
    assert known["balanced_accuracy"] == pytest.approx(0.5)


def test_the_regression_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = (rng.random((200, 1)) > np.cumsum([0.3, 0.4])).sum(axis=1)
    y = np.where(x[:, 0] > 1, 2, y)
    ours = predicted(x, logistic_regression(x, np.eye(3)[y], 2.0))
    theirs = LogisticRegression(C=0.5, max_iter=1000, tol=1e-8).fit(x, y).predict_proba(x)
    assert ours == pytest.approx(theirs, abs=2e-4)


def test_out_of_sample_probabilities_do_not_see_the_item(one: FeaturedCrowd) -> None:
    before = out_of_sample(one)
    label = one.votes[2].copy()
    label[one.votes[0] == 7] = 1 - label[one.votes[0] == 7]
    task, worker, _ = one.votes
    after = out_of_sample(FeaturedCrowd(one.tasks, one.classes, (task, worker, label), one.features, one.truth))
    assert after[7] == pytest.approx(before[7], abs=1e-12)
    assert np.abs(after - before).max() > 1e-4


def test_the_joint_em_is_at_a_fixed_point_of_its_definition(one: FeaturedCrowd) -> None:
    mu = joint_em(one.standardised, one.votes, 2, max_iter=500, tol=1e-8)
    confusion = np.array([[[2.0, 1.0], [1.0, 2.0]] for _ in range(one.n_workers)])
    for n, r, y in zip(*one.votes, strict=True):
        confusion[r, :, y] += mu[n]
    confusion /= confusion.sum(axis=2, keepdims=True)
    x = one.standardised
    prior = predicted(x, logistic_regression(x, mu, 3.0, max_iter=1000))
    for n, r, y in zip(*one.votes, strict=True):
        prior[n] *= confusion[r, :, y]
    assert prior / prior.sum(axis=1, keepdims=True) == pytest.approx(mu, abs=2e-3)


def rows_of(values: dict[tuple[str, str, str], list[float]]) -> list[FeatureRow]:
    return [
        FeatureRow(dataset, dataset, votes, seed, contender, average_precision=value)
        for (dataset, votes, contender), found in values.items()
        for seed, value in enumerate(found)
    ]


def test_means_and_what_features_are_worth() -> None:
    means = means_of(
        rows_of(
            {
                ("a", "1", "votes"): [0.4, 0.6],
                ("b", "1", "votes"): [0.3],
                ("a", "2", "votes"): [0.7],
                ("b", "2", "votes"): [0.5],
                ("a", "1", "features"): [0.6],
                ("b", "1", "features"): [0.4],
                ("a", "2", "crowdlab"): [0.9],
            }
        )
    )
    found = {(one.dataset, one.votes, one.contender): one for one in means}
    overall = found["mean of sets", "1", "features"]
    assert (overall.mean, overall.difference, overall.sets, overall.runs) == pytest.approx((0.5, 0.1, 2, 2))
    assert overall.low == pytest.approx(0.1)
    assert found["a", "1", "votes"].mean == pytest.approx(0.5)
    alone = found["mean of sets", "2", "crowdlab"]
    assert (alone.mean, alone.difference) == pytest.approx((0.9, 0.2))
    assert alone.low is None
    # Votes alone have 0.4 at one vote and 0.6 at two: 0.5 is half-way.
    assert worth_in_votes(means) == pytest.approx(1.5)
    assert worth_in_votes([one for one in means if one.votes == "1"]) is None


def test_contenders_by_name_and_without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, message: str) -> None:
        raise MissingExtraError(message)

    monkeypatch.setattr("rarevote.study.peers.ccgpfl.need_library", absent)
    monkeypatch.setattr(feature_contenders, "need_library", absent)
    chosen, reasons = choose_contenders(None)
    assert [one.name for one in chosen] == ["votes", "features", "pred-probs", "raykar"]
    assert reasons == [
        "CROWDLAB needs cleanlab: pip install cleanlab", "CCGPFL needs JAX: pip install 'rarevote[study-gp]'"
    ]  # fmt: skip
    with pytest.raises(MissingExtraError, match="study-gp"):
        choose_contenders(["votes", "ccgpfl"])
    with pytest.raises(ParameterError, match="'nobody' is not a contender: choose among votes, features"):
        choose_contenders(["nobody"])
    assert check_levels(["all", "2", "1"]) == ["1", "2", "all"]
    with pytest.raises(ParameterError, match="got '0'"):
        check_levels(["0"])


@pytest.fixture
def counted_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    original = feature_contenders.timed_answers

    def noted(contender: FeatureContender, crowd: FeaturedCrowd, seed: int) -> object:
        found.append(contender.name)
        return original(contender, crowd, seed)

    monkeypatch.setattr(features, "timed_answers", noted)
    return found


def test_the_study_resumes_and_says_the_same(data: Path, tmp_path: Path, counted_runs: list[str]) -> None:
    chosen = [CONTENDERS[name] for name in ("votes", "features", "raykar")]
    study = FeatureStudy(find_feature_sets(data), chosen, tmp_path / "runs", n_seeds=1, levels=["1", "2", "all"])
    # Set two has two votes an item: two of them are all.
    assert len(study.trials()) == 3 * (3 + 2)
    slow = replace(study, contenders=[CONTENDERS["ccgpfl"]], n_random_seeds=3, random_levels=["2"])
    assert {(one.info.slug, one.votes, one.seed) for one in slow.trials()} == {
        (name, votes, seed) for name, votes in (("one", "2"), ("two", "all")) for seed in range(3)
    }
    first = study.rows(1)
    assert len(counted_runs) == 15
    for path in sorted((tmp_path / "runs").iterdir())[:3]:
        path.unlink()
    next((tmp_path / "runs").iterdir()).write_text("{}")
    again = study.rows(1)
    assert len(counted_runs) == 15 + 4
    timeless = [
        [{**vars(row), "cpu_seconds": 0} for row in rows if getattr(row, "figure", "") != features.COST]
        for rows in (first, again)
    ]
    assert timeless[0] == timeless[1]
    at_two = [row for row in first if isinstance(row, FeatureRow) and (row.dataset, row.votes) == ("two", "2")]
    assert len(at_two) == 3
    means = [row for row in first if isinstance(row, FeatureMean)]
    account = study.account(first)
    assert account.findings[0].startswith("1 vote: average precision ")
    svg = ElementTree.fromstring(adaptive_svg(to_svg(features.worth_chart(means).spec), label="worth"))
    style = svg[0].text or ""
    assert svg.get("aria-label") == "worth"
    assert "prefers-color-scheme: dark" in style
    assert COLOURS["rare"].dark in style
    used = {name for element in svg.iter() for name in (element.get("class") or "").split()}
    assert {"fill-paper", "stroke-rare", "stroke-vote"} <= used
    assert not [element for element in svg.iter() if (element.get("fill") or "none") != "none"]


def test_other_contenders_and_numbers_of_votes_have_charts_too(data: Path, tmp_path: Path) -> None:
    sets = find_feature_sets(data, ["one"])
    for names, levels in ((["raykar"], ["all"]), (["votes", "features"], ["2"])):
        study = FeatureStudy(sets, [CONTENDERS[name] for name in names], tmp_path, n_seeds=1, levels=levels)
        charts = study.account(study.rows(1)).charts
        assert [chart.name for chart in charts] == ["features_worth"] * ("votes" in names) + ["features_marks"]
        assert all("<svg" in to_svg(chart.spec) for chart in charts)


def test_the_verb(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["study", "features", "--data", str(data), "--datasets", "one", "--contenders", "votes,features"]
    words += ["--votes", "1,all", "--seeds", "1", "--jobs", "1", "--out", str(out)]
    said = rarevote(*words).stdout
    assert "1 vote: average precision" in said
    with (out / "features.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["votes"], row["contender"]) for row in rows] == [
        ("1", "votes"), ("all", "votes"), ("1", "features"), ("all", "features")
    ]  # fmt: skip
    assert json.loads((out / "features.section.json").read_text())["title"] == "Votes and features"
    wrong = rarevote(*words[:2], "--data", str(tmp_path), "--out", str(out), code=1)
    assert "no dataset with features" in wrong.stderr
    assert "got 'none'" in rarevote(*words, "--votes", "none", code=2).stderr


def test_the_evidence_says_what_the_docs_say() -> None:
    means = study_features.means_in(evidence.read(study_features.NAME))
    ap, loss = (features.over_sets(means, figure) for figure in ("average_precision", "log_loss"))
    for votes in features.LEVELS:
        assert ap["features", votes].mean > ap["votes", votes].mean
        assert (ap["features", votes].low or 0.0) > 0.0
        assert loss["features", votes].mean < loss["votes", votes].mean
        # Raykar's joint EM ranks nearly as well, and is too sure.
        assert abs(ap["features", votes].mean - ap["raykar", votes].mean) < 0.03
        assert loss["features", votes].mean < loss["raykar", votes].mean - 0.1
        if votes != "1":
            assert ap["features", votes].mean >= ap["crowdlab", votes].mean
    worth = worth_in_votes(means)
    assert worth is not None
    assert worth == pytest.approx(2.0, abs=0.25)
    by_set = {(one.dataset, one.contender): one.mean for one in means if (one.votes, one.figure) == ("all", "log_loss")}
    rivals = [
        (dataset, loss) for (dataset, name), loss in by_set.items() if name == "ccgpfl-votes" and "mean" not in dataset
    ]
    assert len(rivals) >= 6
    # With the item's votes put back, CCGPFL is overconfident on every set.
    assert all(loss > 2.9 * by_set[dataset, "features"] for dataset, loss in rivals)


def test_the_figure_of_the_readme_shows_the_evidence() -> None:
    found = features.over_sets(study_features.means_in(evidence.read(study_features.NAME)), "average_precision")
    figure = ElementTree.fromstring(study_features.FIGURE.read_text(encoding="utf-8"))
    texts = [element.text for element in figure.iter() if element.text]
    for name in ("votes", "features"):
        assert all(f"{found[name, votes].mean:.2f}" in texts for votes in features.LEVELS)
