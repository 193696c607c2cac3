"""What features do to a fit: order, groups, the guard, missing rows, new items, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote.api import Fitted
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.features.columns import Columns
from rarevote.features.model import FeatureModel
from rarevote.features.ridge import CrossFit
from rarevote.features.settings import FeatureSettings
from rarevote.features.source import FeatureSource
from rarevote.io.model_files import read_model, write_model
from rarevote.kernels import plain
from tests.command import rarevote as command
from tests.features.crowds import DrawnCrowd, draw_crowd


@pytest.fixture(scope="module")
def drawn() -> DrawnCrowd:
    return draw_crowd(1)


@pytest.fixture(scope="module")
def fitted(drawn: DrawnCrowd) -> Fitted:
    found = rarevote.fit(drawn.votes, features=drawn.given)
    assert found.features_ is not None
    assert found.features_.used
    return found


def test_the_order_of_files_plays_no_part(drawn: DrawnCrowd, fitted: Fitted) -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(drawn.ids))
    votes = [drawn.votes[number] for number in rng.permutation(len(drawn.votes))]
    again = rarevote.fit(votes, features=([drawn.ids[number] for number in order], drawn.features[order]))
    assert np.array_equal(again.decide().codes, fitted.decide().codes)
    assert again.probabilities == pytest.approx(fitted.probabilities, abs=1e-6)
    same = rarevote.fit(drawn.votes, features=([drawn.ids[number] for number in order], drawn.features[order]))
    assert np.array_equal(same.probabilities, fitted.probabilities)


@pytest.mark.parametrize("classes", [2, 3])
def test_permuted_rows_are_left_out(classes: int) -> None:
    for seed in range(6):
        drawn = draw_crowd(seed, classes=classes)
        votes_only = rarevote.fit(drawn.votes)
        shuffled = np.random.default_rng(seed).permutation(drawn.features)
        found = rarevote.fit(drawn.votes, features=(drawn.ids, shuffled))
        assert found.features_ is not None
        assert not found.features_.used
        assert np.array_equal(found.probabilities[:200], votes_only.probabilities)
        assert np.array_equal(found.decide().codes[:200], votes_only.decide().codes)


def test_features_help_with_several_classes() -> None:
    drawn = draw_crowd(3, classes=3)
    found = rarevote.fit(drawn.votes, features=drawn.given)
    assert found.features_ is not None
    assert found.features_.used
    right = [fit.probabilities[:200].argmax(axis=1) for fit in (found, rarevote.fit(drawn.votes))]
    by_name = dict(zip(drawn.ids, drawn.truth.tolist(), strict=True))
    truth = np.array([by_name[name] for name in found.annotations.tasks.tolist()])
    assert (right[0] == truth).mean() > (right[1] == truth).mean()


def test_one_group_lies_in_one_fold(drawn: DrawnCrowd) -> None:
    groups = [f"doc-{number // 4}" for number in range(len(drawn.ids))]
    found = rarevote.fit(drawn.votes, features=drawn.given, groups=groups)
    assert found.features is not None
    group_of = dict(zip(drawn.ids, groups, strict=True))
    wanted = [crc32(group_of[name].encode()) % 5 for name in found.features.texts.tolist()]
    assert found.features.fold.tolist() == wanted
    frame = pd.DataFrame(drawn.features).assign(task=drawn.ids, doc=groups)
    frame.columns = frame.columns.map(str)
    again = rarevote.fit(drawn.votes, features=frame, features_group="doc")
    assert np.array_equal(again.probabilities, found.probabilities)
    with pytest.raises(InputError, match="2 groups for 240 rows"):
        rarevote.fit(drawn.votes, features=drawn.given, groups=["a", "b"])


def test_items_without_a_row_keep_the_formula_of_votes(drawn: DrawnCrowd) -> None:
    ids = [name for name in drawn.ids if name != drawn.ids[0]]
    found = rarevote.fit(drawn.votes, features=(ids, drawn.features[1:]))
    votes_only = rarevote.fit(drawn.votes)
    assert found.features_ is not None
    assert found.features_.unmatched == 1
    row = found.annotations.tasks.tolist().index(drawn.ids[0])
    assert found.method.prior_[row] == pytest.approx(votes_only.method.fitted_parameters["prior"])  # type: ignore[attr-defined]
    assert found.probabilities[row] == pytest.approx(votes_only.probabilities[row], abs=0.05)


def test_features_of_few_items_are_said(drawn: DrawnCrowd) -> None:
    found = rarevote.fit(drawn.votes, features=(drawn.ids[:80], drawn.features[:80]))
    assert found.features_ is not None
    assert found.features_.reason.startswith("features cover 40% of the voted items; ")


def test_sentences(drawn: DrawnCrowd) -> None:
    constant = rarevote.fit(drawn.votes, features=(drawn.ids, np.ones((240, 2))))
    assert constant.features_ is not None
    assert constant.features_.reason == "the features do not vary"
    one_vote = draw_crowd(4, votes=1, items=400)
    found = rarevote.fit(one_vote.votes, features=one_vote.given)
    assert found.features_ is not None
    assert found.features_.reason.endswith("so that the weight of the features can be checked")


def test_missing_cells_are_counted(drawn: DrawnCrowd) -> None:
    values = drawn.features.copy()
    values[3, 1], values[9, 0] = np.nan, np.inf
    found = rarevote.fit(drawn.votes, features=(drawn.ids, values))
    assert found.features_ is not None
    assert found.features_.used
    assert found.features_.missing_cells == 2
    values[5, 2] = 1e300
    with pytest.raises(InputError, match=r"the column 'f2' holds 1e\+300"):
        rarevote.fit(drawn.votes, features=(drawn.ids, values))


def test_in_sample_probabilities_are_suspected() -> None:
    drawn = draw_crowd(5, votes=5)
    counts: dict[str, list[int]] = {name: [0, 0] for name in drawn.ids}
    for item, _, label in drawn.votes:
        counts[item][int(label[1])] += 1
    seen = np.array([[a + 0.01, b + 0.01] for a, b in counts.values()])
    given = (drawn.ids, seen / seen.sum(axis=1, keepdims=True), ["c0", "c1"])
    with pytest.warns(RarevoteWarning, match="were these probabilities computed out of sample"):
        found = rarevote.fit(drawn.votes, pred_probs=given)
    assert "out of sample" in found.features_.reason  # type: ignore[union-attr]


def test_both_features_and_probabilities(drawn: DrawnCrowd) -> None:
    given = (drawn.ids[:220], drawn.probabilities[:220], ["c0", "c1"])
    found = rarevote.fit(drawn.votes, features=drawn.given, pred_probs=given)
    assert found.features_ is not None
    assert found.features_.used
    assert (found.features_.columns, found.features_.pool_items) == (5, 20)
    with pytest.raises(ParameterError, match="the fit was given features and pred_probs"):
        found.predict(features=drawn.given)
    new = found.predict(features=drawn.given, pred_probs=(drawn.ids, drawn.probabilities, ["c0", "c1"]))
    assert len(new) == 240


def test_a_part_of_many_items_chooses_the_weight(drawn: DrawnCrowd, fitted: Fitted) -> None:
    source = FeatureSource(drawn.given)
    small = replace(source, settings=replace(source.settings, subsample=120))
    _, joined = small.join(fitted.annotations)
    found = rarevote.fit(fitted.crowd, features=joined)
    assert found.features_ is not None
    assert found.features_.used
    assert "the weight of the features was chosen on 120 of 200 items" in found.features_.reason
    assert found.features_.items == 200
    # The weight is that of a fit to the items with the smallest codes alone, the rest as if it had been given.
    assert (
        joined.texts[joined.by_code(np.flatnonzero(joined.item < 200))[:120]].tolist()
        == sorted(fitted.annotations.tasks.tolist(), key=lambda name: crc32(name.encode()))[:120]
    )
    assert found.features_.tau2 is not None
    assert found.features_.lam is not None
    given = replace(source.settings, tau2=(found.features_.tau2,), lam=(found.features_.lam,))
    _, alone = replace(source, settings=given).join(fitted.annotations)
    assert np.array_equal(rarevote.fit(fitted.crowd, features=alone).probabilities, found.probabilities)


# --------------------------------------------------------------------------------------------------------------------
# new items


def test_new_items(drawn: DrawnCrowd, fitted: Fitted, tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    new = rng.normal(size=(30, 5))
    new[0, 0] = np.nan
    ids = [f"new-{number}" for number in range(30)]
    table = fitted.predict(features=(ids, new))
    outcome = fitted.method.feature_outcome
    assert outcome is not None
    weight, scorer = outcome.found.weight, outcome.found.scorer
    assert weight is not None
    assert scorer is not None
    assert scorer.of_values is not None
    x = (np.where(np.isnan(new), drawn.features.mean(axis=0), new) - drawn.features.mean(axis=0)) / (
        drawn.features.std(axis=0)
    )
    eta = x @ scorer.of_values.slopes
    z = weight.lam * (eta - eta.mean(axis=1, keepdims=True)) + weight.offsets
    prior = 0.95 * np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) + 0.05 * weight.prior
    wanted = 0.95 * prior + 0.05 * fitted.reported.mean
    assert np.column_stack([table["p:c0"], table["p:c1"]]) == pytest.approx(wanted, abs=1e-12)
    assert table["votes"].sum() == 0
    fitted.save(tmp_path / "model")
    loaded = rarevote.load(tmp_path / "model")
    from rarevote.methods.unvoted import predict_from_features

    rows = predict_from_features(loaded, FeatureSource((ids, new)))
    assert rows["p:c1"].tolist() == table["p:c1"].tolist()
    assert rows["label"].tolist() == table["label"].tolist()


def test_new_items_are_scored_by_the_mean_of_all_folds(drawn: DrawnCrowd, fitted: Fitted) -> None:
    joined, outcome = fitted.features, fitted.method.feature_outcome
    assert joined is not None
    assert joined.values is not None
    assert outcome is not None
    soft = np.zeros((240, 2))
    soft[:200] = rarevote.fit(drawn.votes).method.posterior_
    columns = Columns.of(joined.values, joined.row, joined.names)
    models = CrossFit(columns.block, joined.fold, np.arange(240) < 200, soft, 5, 5, 5)
    for tau2 in FeatureSettings().tau2:
        models.solve(tau2, 20, 1e-3)
        if tau2 == outcome.record.tau2:
            break
    assert outcome.found.scorer is not None
    assert outcome.found.scorer.of_values is not None
    assert outcome.found.scorer.of_values.slopes == pytest.approx(models.slopes.mean(axis=0), abs=1e-12)


def test_new_items_of_a_fit_that_left_features_out(drawn: DrawnCrowd) -> None:
    shuffled = np.random.default_rng(2).permutation(drawn.features)
    fit = rarevote.fit(drawn.votes, features=(drawn.ids, shuffled))
    with pytest.warns(RarevoteWarning, match="left its features out"):
        table = fit.predict(features=drawn.given)
    assert np.ptp(table["p:c1"]) == 0.0
    with pytest.raises(ParameterError, match="fitted without features"):
        rarevote.fit(drawn.votes).predict(features=drawn.given)


def test_new_items_need_the_columns_of_the_fit(drawn: DrawnCrowd, fitted: Fitted) -> None:
    with pytest.raises(InputError, match="the fit had 5 columns, of which 'f4' is not here"):
        fitted.predict(features=(drawn.ids, drawn.features[:, :4]))


# --------------------------------------------------------------------------------------------------------------------
# the command line


@pytest.fixture(scope="module")
def folder(drawn: DrawnCrowd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("features")
    pd.DataFrame(drawn.votes, columns=["task", "worker", "label"]).to_csv(made / "votes.csv", index=False)
    frame = pd.DataFrame(drawn.features, columns=list("abcde"))
    frame.insert(0, "task", drawn.ids)
    frame.to_csv(made / "features.csv", index=False)
    frame.to_parquet(made / "features.parquet")
    predicted = pd.DataFrame({"task": drawn.ids, "c0": drawn.probabilities[:, 0], "c1": drawn.probabilities[:, 1]})
    predicted.to_csv(made / "predicted.csv", index=False)
    return made


@pytest.mark.parametrize("file", ["features.csv", "features.parquet"])
def test_aggregate(folder: Path, file: str, fitted: Fitted) -> None:
    done = command(
        "aggregate", "votes.csv", "--features", file, "--with-prior", "-o", f"{file}.result.csv", folder=folder
    )
    assert "Features used: they predict held-out votes" in done.stderr
    rows = pd.read_csv(folder / f"{file}.result.csv")
    assert rows["p:c1"].to_numpy() == pytest.approx(fitted.probabilities[:, 1], abs=1e-5)
    assert rows["prior:c1"].between(0, 1).all()
    assert (rows["votes"] == 0).sum() == 40


def test_aggregate_in_json(folder: Path) -> None:
    done = command("aggregate", "votes.csv", "--pred-probs", "predicted.csv", "--json", "-o", "j.csv", folder=folder)
    said = json.loads(done.stdout)["features"]
    assert said["used"]
    assert said["reason"].startswith("predicted probabilities used: ")
    assert said["tau2"] is None


def test_predict(folder: Path, fitted: Fitted) -> None:
    command("aggregate", "votes.csv", "--features", "features.csv", "--model-out", "m", "-o", "r.csv", folder=folder)
    done = command("predict", "m", "--features", "features.csv", "-o", "p.csv", folder=folder)
    assert "the tasks have no votes" in done.stderr
    assert len(pd.read_csv(folder / "p.csv")) == 240
    done = command("predict", "m", "votes.csv", "--features", "features.csv", folder=folder, code=2)
    assert "needs either LABELS, or --features" in done.stderr
    command("predict", "m", folder=folder, code=2)


def test_explain_has_a_line_for_features(folder: Path, drawn: DrawnCrowd) -> None:
    task = drawn.ids[0]
    done = command("explain", "votes.csv", "--features", "features.csv", "--task", task, folder=folder)
    assert "its features" in done.stdout
    done = command("explain", "votes.csv", "--features", "features.csv", "--task", task, "--json", folder=folder)
    one = json.loads(done.stdout)[0]
    votes = sum(vote["log_odds"] for vote in one["votes"])
    together = one["prior_log_odds"] + one["features_log_odds"] + votes + one["rest_log_odds"]
    assert together == pytest.approx(one["posterior_log_odds"])
    assert abs(one["rest_log_odds"]) < 1e-6


def test_explain_of_an_item_without_votes(folder: Path, fitted: Fitted) -> None:
    given = ["explain", "votes.csv", "--features", "features.csv", "--task", "item-230"]
    done = command(*given, folder=folder)
    assert "it has no votes: its label comes from its features alone" in done.stdout
    assert "its features" in done.stdout
    one = json.loads(command(*given, "--json", folder=folder).stdout)[0]
    row = fitted.crowd.population.tolist().index("item-230")
    prior = fitted.method.prior_[row]  # type: ignore[attr-defined]
    label, rival = (int(one[name][1]) for name in ("label", "rival"))
    assert (one["votes"], one["majority"], label) == ([], "", int(fitted.decide().codes[row]))
    # Without votes the posterior is the prior that the features give, and what is shown adds up to it.
    assert one["posterior_log_odds"] == pytest.approx(np.log(prior[label] / prior[rival]))
    assert one["prior_log_odds"] + one["features_log_odds"] == pytest.approx(one["posterior_log_odds"])
    assert list(one["p"].values()) == pytest.approx(fitted.probabilities[row].tolist())


def test_explain_where_features_were_left_out(drawn: DrawnCrowd) -> None:
    shuffled = np.random.default_rng(2).permutation(drawn.features)
    found = rarevote.fit(drawn.votes, features=(drawn.ids, shuffled))
    one = found.explain("item-230")
    assert one.weighed is not None
    assert one.weighed.features is None
    assert one.p.tolist() == found.reported.mean.tolist()
    votes = rarevote.read(drawn.votes, items=[*drawn.ids, "another"])
    with pytest.raises(InputError, match="'another' has no votes and no features, so it has no label to explain"):
        rarevote.fit(votes, features=drawn.given).explain("another")
    with pytest.raises(InputError, match="'item-230' has no votes, so it has no label to explain"):
        rarevote.fit(votes).explain("item-230")


@pytest.mark.parametrize("verb", [["check"], ["annotators"], ["plan", "--budget", "5"]])
def test_other_verbs(folder: Path, verb: list[str]) -> None:
    done = command(verb[0], "votes.csv", *verb[1:], "--features", "features.csv", folder=folder)
    assert "Features used" in done.stderr


def test_the_page_says_it_and_counts_all_items(folder: Path, fitted: Fitted) -> None:
    done = command("report", "votes.csv", "--features", "features.csv", "-o", "page.html", folder=folder)
    page = (folder / "page.html").read_text()
    assert "they predict held-out votes" in page
    assert fitted.decide().n_without_a_vote == 1
    assert "1 label of items with votes has no vote" in page
    n_rare = int((fitted.decide().codes == fitted.rare.code).sum())
    assert f"{n_rare} “c1”" in done.stderr


def test_an_audit_of_items_without_votes(folder: Path, drawn: DrawnCrowd, fitted: Fitted) -> None:
    start = ["audit", "start", "votes.csv", "--features", "features.csv", "--find", "c1=0.7"]
    files = ["--plan", "plan.json", "--review-out", "round.csv"]
    done = command(*start, *files, folder=folder, code=1)
    assert "40 items of the features are in neither the labels nor --items" in done.stderr
    (folder / "items.csv").write_text("task\n" + "\n".join(drawn.ids) + "\n")
    done = command(*start, *files, "--items", "items.csv", folder=folder)
    assert "240 items (200 with votes, 40 without)" in done.stderr
    audit = fitted.audit("c1", 0.7, seed=1)
    assert audit.plan.strata.n_tasks == 240


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--engine", "dask", "--features", "features.csv", "-o", "x"], "--features does not work with --engine dask"),
        (["--features", "features.csv", "-m", "glad"], "glad cannot use features of the items: leave --features out"),
        (["--with-prior"], "--with-prior needs --features or --pred-probs"),
        (["--features-group", "doc"], "--features-group needs --features"),
    ],
)
def test_refusals(folder: Path, words: list[str], sentence: str) -> None:
    assert sentence in command("aggregate", "votes.csv", *words, folder=folder, code=2).stderr


@pytest.mark.parametrize("name", ["features", "pred_probs"])
def test_a_cluster_refuses_features(name: str, drawn: DrawnCrowd, folder: Path) -> None:
    pytest.importorskip("distributed")
    given: Any = {name: drawn.given}
    with pytest.raises(ParameterError, match=r"need a single machine: use rarevote.fit\(data, features=...\)"):
        rarevote.Dask(folder / "out").fit(rarevote.AnchoredRasch(), folder / "votes.csv", **given)
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("classes", [2, 3])
def test_compiled_passes_say_the_same(classes: int) -> None:
    drawn = draw_crowd(1, classes=classes)
    gold = {drawn.ids[0]: "c1", drawn.ids[230]: "c0"}
    found = rarevote.fit(drawn.votes, features=drawn.given, gold=gold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "MAX_PLAIN_CELLS", 10**9)
        wanted = rarevote.fit(drawn.votes, features=drawn.given, gold=gold)
    assert found.features_ is not None
    assert found.features_.used
    assert found.probabilities == pytest.approx(wanted.probabilities, abs=1e-9)
    assert found.method.loss_history_[-1] == pytest.approx(wanted.method.loss_history_[-1], abs=1e-7)


def test_shards_find_the_priors_of_their_tasks(drawn: DrawnCrowd, fitted: Fitted) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarevote.em.local._ANNOTATIONS_PER_SHARD", 50)
        again = rarevote.fit(drawn.votes, features=drawn.given)
    assert again.probabilities == pytest.approx(fitted.probabilities, abs=1e-9)


def test_a_damaged_model_gets_a_sentence(fitted: Fitted, tmp_path: Path) -> None:
    model = fitted.method.feature_model
    assert model is not None
    arrays, notes = model.saved()
    for name in arrays:
        less = {other: array for other, array in arrays.items() if other != name}
        if name.endswith("slopes"):
            continue  # without them there are only predicted probabilities
        with pytest.raises((KeyError, ValueError)):
            FeatureModel.loaded(less, notes, 2)
        with pytest.raises(ValueError, match="of the features"):
            FeatureModel.loaded({**arrays, name: arrays[name][:-1].astype(np.float32) * np.nan}, notes, 2)
    fitted.save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    saved.arrays["features:offsets"][:] = np.nan
    write_model(tmp_path / "model", saved)
    with pytest.raises(InputError, match="the model is damaged"):
        rarevote.load(tmp_path / "model")
