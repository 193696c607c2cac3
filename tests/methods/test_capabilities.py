"""What methods say they can do is tried with all of them: it succeeds where declared, and is refused elsewhere.

Each capability has a trial below, which returns normally only if the method truly did it. Where a method does not
declare a capability, the same trial must end in our own error, which names the methods that can. Dask has its trial in
``tests/cluster/test_dask.py``, where there is a cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rarevote
from rarevote import simulate_crowd
from rarevote.diagnose.explain import explain
from rarevote.em.loop import Progress
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Estimator
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import WeighsVotes
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS, MethodEntry, capability_table, methods_that, which_methods
from rarevote.methods.vote_model import SomeVotes
from tests.command import rarevote as command
from tests.features.crowds import draw_crowd
from tests.tables import METHOD_ROWS, MethodRow

pytestmark = [
    pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning"),
    pytest.mark.usefixtures("short_chains"),
]

N_KNOWN = 12


class Votes(NamedTuple):
    """Votes to fit, votes on other tasks by the same workers, and the truth of some tasks of the fit."""

    fitted: tuple[list[str], list[str], list[str]]
    new: tuple[list[str], list[str], list[str]]
    truth: dict[str, str]


def make_votes() -> Votes:
    made = simulate_crowd(60, 8, votes_per_task=5, imbalance=2, random_state=3)
    task, worker, label = (np.asarray(part, dtype=np.int64) for part in made.arrays)

    def named(of: Any) -> tuple[list[str], list[str], list[str]]:
        return tuple(
            [f"{letter}{n}" for n in part[of]] for letter, part in zip("twc", (task, worker, label), strict=True)
        )  # type: ignore[return-value]

    truth = {f"t{n}": f"c{made.truth[n]}" for n in range(N_KNOWN)}
    return Votes(named(task < 45), named(task >= 45), truth)


VOTES = make_votes()


def fit(row: MethodRow, votes: Any = VOTES.fitted, model: Estimator | None = None, **options: Any) -> Estimator:
    gold: dict[str, Any] = {"true_labels": VOTES.truth} if row.needs_gold else {}
    return (model or row.make()).fit(votes, **gold, **options)


# --------------------------------------------------------------------------------------------------------------------
# one trial for each capability


def predicts(row: MethodRow, folder: Path) -> None:
    """Labels tasks that the fit has not seen, also after a way through a file."""
    model = fit(row)
    labels = model.predict(VOTES.new).to_dict()
    assert set(labels) == set(VOTES.new[0])
    chances = model.predict_proba(VOTES.new).to_dict()
    assert all(sum(of.values()) == pytest.approx(1.0) for of in chances.values())
    assert len(chances) == len(labels)
    model.save(folder / "model")
    assert rarevote.load(folder / "model").predict(VOTES.new).to_dict() == labels


def explains(row: MethodRow, folder: Path) -> None:
    """Prior and votes add up to the log odds of the posterior."""
    del folder
    model = fit(row)
    number = next(n for n, name in enumerate(model.annotations_.tasks.tolist()) if name not in VOTES.truth)
    evidence = model.evidence(number)
    votes_on_task = np.diff(model.annotations_.task_ptr)[number]
    assert evidence.of_votes.shape == (votes_on_task, len(model.classes_))
    found = explain(model, number, model.label_codes()[number], model.reported_[number])
    assert found.weighed is not None
    odds = np.log(model.posterior_[number, found.label] / model.posterior_[number, found.rival])
    assert found.weighed.prior + found.weighed.votes.sum() + found.weighed.rest == pytest.approx(odds, abs=1e-6)


def learns_from_gold(row: MethodRow, folder: Path) -> None:
    """A gold label holds against votes that all say something else, and tells the workers apart."""
    del folder
    votes = (["x"] * 3 + ["y"] * 3, ["ann", "bob", "cy"] * 2, ["no", "no", "no", "yes", "no", "no"])
    model = row.make().fit(votes, true_labels={"x": "yes", "y": "no"})
    assert model.labels_.to_dict() == {"x": "yes", "y": "no"}
    assert rarevote.fit(votes, row.make(), gold={"x": "yes", "y": "no"}).decide().labels.tolist() == ["yes", "no"]


class KilledError(Exception):
    """Stands for a crash."""


def resumes(row: MethodRow, folder: Path) -> None:
    """A fit that is killed in its last iteration does not start again, and ends as one that was not killed."""

    def fitted(place: str, callback: Callable[[Progress], None] | None = None, votes: Any = VOTES.fitted) -> Estimator:
        model = row.make()
        if "n_iter" in model.get_params():
            model.set_params(n_iter=4)
        return fit(row, votes, model, checkpoint=folder / place, checkpoint_every=1, callback=callback)

    told: list[Progress] = []
    whole = fitted("whole", told.append)
    n_told, told = len(told), []

    def killed(progress: Progress) -> None:
        told.append(progress)
        if len(told) == n_told:
            raise KilledError

    with pytest.raises(KilledError):
        fitted("cut", killed)
    with pytest.raises(InputError, match="a checkpoint of another fit"):
        fitted("cut", votes=tuple(part[1:] for part in VOTES.fitted))
    told = []
    resumed = fitted("cut", told.append)
    assert len(told) < n_told or n_told == 2  # Rasch is done in two, and the saved one is told again
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)


def replicates(row: MethodRow, folder: Path) -> None:
    """The check of fit casts the votes again, and says what the model predicts."""
    del folder
    model = fit(row)
    votes = SomeVotes.of(model.annotations_)
    checked = rarevote.Fitted.of(model).check()
    if checked.fit is None:
        (words,) = [one.description for one in checked.answers("fit") if "cannot" in one.description]
        raise ParameterError(words)
    drawn = model.vote_model(votes).draw(np.random.default_rng(0))
    assert drawn.shape == votes.label.shape
    assert set(drawn.tolist()) <= set(range(len(model.classes_)))


def computes_in_single_precision(row: MethodRow, folder: Path) -> None:
    """The state of the tasks is of half the size, and says nearly the same."""
    del folder
    model = fit(row, model=row.make().set_params(dtype="float32"))
    assert model.posterior_.dtype == np.float32
    np.testing.assert_allclose(model.posterior_, fit(row).posterior_, atol=1e-2)


def uses_the_order(row: MethodRow, folder: Path) -> None:
    """Another order gives another answer, the reversed one the same."""
    del folder
    votes = (["x", "y", "z", "u"] * 4, [f"w{n // 4}" for n in range(16)], list("cabcccbacabbbbca"))
    one, back, other = (fit(row, votes, row.make().set_params(ordered=list(order))) for order in ("abc", "cba", "bac"))
    np.testing.assert_allclose(one.posterior_, back.posterior_, atol=1e-9)
    assert np.abs(one.posterior_ - other.posterior_).max() > 1e-3


def uses_features(row: MethodRow, folder: Path) -> None:
    """An item without votes, of which only the features are known, gets a probability of its own."""
    del folder
    drawn = draw_crowd(1)
    found = rarevote.fit(drawn.votes, row.make(), features=drawn.given, use_gold=False)
    assert found.features_ is not None
    assert found.features_.used
    assert np.ptp(found.probabilities[200:, 0]) > 0.5


TRIALS: dict[str, Callable[[MethodRow, Path], None]] = {
    "predict": predicts,
    "explain": explains,
    "gold": learns_from_gold,
    "checkpoint": resumes,
    "replicate": replicates,
    "float32": computes_in_single_precision,
    "ordered": uses_the_order,
    "features": uses_features,
}
ELSEWHERE = {"dask"}


@pytest.mark.parametrize("capability", TRIALS)
@pytest.mark.parametrize("row", METHOD_ROWS, ids=lambda row: row.name)
def test_methods_can_exactly_what_they_declare(row: MethodRow, capability: str, tmp_path: Path) -> None:
    if METHODS[row.name].capabilities.has(capability):
        TRIALS[capability](row, tmp_path)
        return
    others = re.escape(", ".join(methods_that(capability)))
    verb = re.escape(Capabilities.verb(capability))
    with pytest.raises(ParameterError, match=rf"^{row.name} cannot {verb}\b.*{others}\.?$"):
        TRIALS[capability](row, tmp_path)
    assert not list(tmp_path.iterdir()), "what is refused leaves no file"


def test_every_capability_has_a_trial() -> None:
    assert set(TRIALS) | ELSEWHERE == set(Capabilities.names())


@pytest.mark.parametrize("name", METHODS)
def test_no_method_hides_what_it_is_built_for(name: str) -> None:
    """What is declared as absent is refused before the trial, so the parts of a class are looked at as well."""
    kind, can = METHODS[name].load(), METHODS[name].capabilities
    assert can.predict == issubclass(kind, PredictsNewTasks)
    assert can.explain == issubclass(kind, WeighsVotes)
    assert can.checkpoint == issubclass(kind, EMEstimator)
    assert can.float32 == ("dtype" in kind.parameter_defaults())
    assert can.gold or not issubclass(kind, EMEstimator)
    assert can.replicate == (kind.vote_model is not Estimator.vote_model)


@pytest.mark.parametrize("row", METHOD_ROWS, ids=lambda row: row.name)
def test_gold_is_needed_exactly_where_declared(row: MethodRow) -> None:
    if METHODS[row.name].capabilities.needs_gold:
        with pytest.raises(ParameterError, match="learns from gold: give some"):
            row.make().fit(VOTES.fitted)
    else:
        assert len(row.make().fit(VOTES.fitted).labels_) == len(set(VOTES.fitted[0]))


@pytest.mark.parametrize(
    "option", [{"gold": {"t0": "c0"}}, {"checkpoint": "kept"}], ids=lambda option: next(iter(option))
)
def test_the_spine_refuses_before_it_reads(option: dict[str, Any]) -> None:
    with pytest.raises(
        ParameterError, match=rf"^plat cannot .*: leave {next(iter(option))} out, or choose one of anch"
    ):
        rarevote.fit("absent.csv", "plat", **option)


# --------------------------------------------------------------------------------------------------------------------
# one place


def test_the_class_reads_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in METHODS.values():
        kind = entry.load()
        assert kind.method_name == entry.name
        assert kind.capabilities is entry.capabilities
        assert kind().capabilities is entry.capabilities
    changed = MethodEntry("wawa", "Wawa", "weighted", "", Capabilities(gold=True))
    monkeypatch.setitem(METHODS, "wawa", changed)
    assert rarevote.Wawa.capabilities.gold
    assert "wawa" in methods_that("gold")


_ON_DASK = ["anchored-rasch", "cc-rasch", "anchored-ordered", "majority-vote", "dawid-skene", "one-coin", "glad",
            "class-conditional"]  # fmt: skip
_RESUMED = [*(name for name in _ON_DASK if name != "majority-vote"), "mace", "rasch"]


@pytest.mark.parametrize(
    ("capability", "methods"),
    [
        ("checkpoint", _RESUMED),
        ("dask", _ON_DASK),
        ("gold", [*_RESUMED[:-1], "gold-majority-vote", "gold-dawid-skene", "rasch"]),
        ("features", ["anchored-rasch"]),
    ],
)
def test_all_methods_that_can(capability: str, methods: list[str]) -> None:
    """By hand: a method that loses a capability would be refused politely, and no trial would notice."""
    assert methods_that(capability) == methods


def test_an_estimator_that_is_not_listed_declares_its_own() -> None:
    class Unlisted(Estimator):
        pass

    class Declared(Estimator):
        capabilities = Capabilities(gold=True)

    assert Unlisted.capabilities == Capabilities()
    with pytest.raises(ParameterError, match=r"^Unlisted cannot label new tasks: choose one of anchored-rasch"):
        Unlisted().save("model")
    assert Declared().capabilities.gold


def test_who_needs_gold_can_use_it() -> None:
    with pytest.raises(ValueError, match="needs gold"):
        Capabilities(needs_gold=True)


def test_help_names_the_shorter_side() -> None:
    assert which_methods("needs_gold") == "gold-majority-vote, gold-dawid-skene, rasch"
    assert which_methods("predict") == "all methods except majority-vote, plat, crowdfm, kos"


# --------------------------------------------------------------------------------------------------------------------
# what the command line shows


def test_the_table_of_the_command_line() -> None:
    header, rows = capability_table()
    abilities = ["predict", "explain", "gold", "dask", "checkpoint", "replicate", "float32", "features", "ordered"]
    assert header == ["method", *abilities]
    assert {row[0]: row[3] for row in rows if row[3] == "needs"}.keys() == set(methods_that("needs_gold"))
    shown = command("methods").stdout
    assert "predict  explain" in shown
    assert "gold-dawid-skene" in shown
    for name in header[1:]:
        assert f"{name}: can {Capabilities.verb(name)}" in shown


def test_methods_as_json() -> None:
    found = {entry["name"]: entry for entry in json.loads(command("methods", "--json").stdout)}
    for name, entry in METHODS.items():
        assert {one: entry.capabilities.has(one) for one in Capabilities.names()} == found[name]["capabilities"]
        assert found[name]["needs_gold"] == entry.capabilities.needs_gold


def test_option_help_names_the_methods() -> None:
    shown = "".join(command("aggregate", "--help").stdout.split())  # help breaks its lines at hyphens too
    for capability in ("gold", "dask", "checkpoint", "predict"):
        assert which_methods(capability).replace(" ", "") in shown
