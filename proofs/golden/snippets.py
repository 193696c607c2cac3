"""Python snippets over the public API, as the docs show it; what each prints is kept."""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import rarevote
from proofs.golden.inputs import make_inputs
from rarevote import example_files
from rarevote.errors import RarevoteError

Snippet = Callable[[Path], None]
CASES: dict[str, Snippet] = {}


def run(name: str, folder: Path, inputs: Path) -> dict[str, str | bytes]:
    """Run a snippet in an empty folder; what it printed and warned, and the files it wrote."""
    make_inputs(inputs)
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            CASES[name](inputs)
        except Exception as error:
            print(f"raised {type(error).__name__}: {error}")
    # Names of 0.2 may forward from another place: a warning counts only where rarevote gives it.
    told = [f"{one.category.__name__}: {one.message}\n" for one in caught if "rarevote" in str(one.category.__module__)]
    written = {f"file {path.name}": path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    return {"printed": printed.getvalue(), "warnings": "".join(told), **written}


def snippet(function: Snippet) -> Snippet:
    """Make a case of a function, which gets the folder of input files."""
    CASES[function.__name__] = function
    return function


def show(*values: Any) -> None:
    """Print values in full: arrays and frames by type, shape and hash, with the first entries for a person."""
    for value in values:
        if isinstance(value, np.ndarray):
            content = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
            print(f"array {value.dtype} {value.shape} {_hash(content)} {value.ravel()[:4].tolist()}")
        elif hasattr(value, "to_pandas") or hasattr(value, "to_dict"):
            kind = f"{type(value).__module__.split('.')[0]}.{type(value).__name__}"
            text = str(value.to_pydict() if hasattr(value, "to_pydict") else value.to_dict())
            print(
                f"{kind} {getattr(value, 'shape', '')} {getattr(value, 'name', '')} {_hash(text.encode())} {text[:160]}"
            )
        else:
            print(repr(value))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


# -- read ------------------------------------------------------------------------------------------------------------


def _votes(crowd: Any) -> None:
    votes = crowd.annotations
    show(votes.n_tasks, votes.n_workers, votes.n_annotations, votes.classes, votes.tasks, votes.workers)
    show(votes.task_ptr, votes.worker, votes.label, votes.class_votes, crowd.gold, crowd.title)


@snippet
def read_files(inputs: Path) -> None:
    for name in ("labels.csv", "labels.tsv", "labels.json", "labels.ndjson", "labels.parquet", "labels.arrow",
                 "labels.xlsx", "labels.csv.gz", "labels.csv.zst", "semicolon.csv", "parts"):  # fmt: skip
        Path(name).symlink_to(inputs / name)
        _votes(rarevote.read(name))


@snippet
def read_options(inputs: Path) -> None:
    _votes(rarevote.read(inputs / "repeated.csv", keep="last"))
    _votes(rarevote.read(inputs / "unsure.csv", abstain=["not sure"], show=["text"]))
    _votes(rarevote.read(inputs / "holes.csv", missing="drop"))
    _votes(rarevote.read(inputs / "wide.csv", wide=True))
    _votes(rarevote.read(inputs / "labels.csv", items=inputs / "items.txt", classes=["crack", "defect", "sound"]))
    _votes(rarevote.read(inputs / "renamed.csv", columns={"task": "image", "worker": "rater", "label": "verdict"}))
    _votes(rarevote.read(inputs / "headless.csv", has_header=False, columns={"task": "1", "worker": "2", "label": "3"}))


@snippet
def read_values(inputs: Path) -> None:
    del inputs
    _votes(rarevote.read([("a", "x", 1), ("a", "y", 0), ("b", "x", 1)]))
    _votes(rarevote.read({"task": [3, 3, 1], "worker": ["x", "y", "x"], "label": [True, False, True]}))
    _votes(rarevote.read((np.array([1, 1, 2]), np.array([5, 6, 5]), np.array(["u", "v", "u"]))))


@snippet
def read_exports(inputs: Path) -> None:
    _votes(rarevote.read(inputs / "label_studio.json", question="damage", include_predictions=True))
    _votes(rarevote.read(inputs / "mturk.csv", question="about"))
    _votes(rarevote.read(inputs / "argilla_disk", question="toxicity"))
    for question, crowd in rarevote.read_each(inputs / "mturk_form.csv").items():
        print(question)
        _votes(crowd)


@snippet
def read_refused(inputs: Path) -> None:
    for data, options in (
        ([], {}), (inputs / "two-columns.csv", {}), (inputs / "holes.csv", {}), (5, {}), ("nowhere.csv", {}),
        (inputs / "labels.csv", {"keep": "some"}), (inputs / "labels.csv", {"speed": 1}), (inputs / "scores.json", {}),
    ):  # fmt: skip
        try:
            show(rarevote.read(data, **options))
        except (RarevoteError, TypeError) as error:
            print(type(error).__name__, [one.__name__ for one in type(error).__mro__], error)


# -- frames ----------------------------------------------------------------------------------------------------------


def _results(model: Any) -> None:
    for name in ("labels_", "probas_", "skills_", "priors_", "errors_"):
        if hasattr(model, name):
            show(getattr(model, name))


@snippet
def pandas_frames(inputs: Path) -> None:
    import pandas as pd

    frame = pd.read_csv(inputs / "labels.csv")
    _results(rarevote.DawidSkene().fit(frame))
    _results(rarevote.CCRasch().fit(frame.astype({"label": "category"})))
    truth = pd.read_csv(inputs / "labels-gold.csv").set_index("task")["label"]
    _results(rarevote.GoldMajorityVote().fit(frame, truth))


@snippet
def polars_frames(inputs: Path) -> None:
    import polars as pl

    frame = pl.read_csv(inputs / "three.csv")
    model = rarevote.DawidSkene().fit(frame)
    show(type(model.labels_).__name__, model.labels_.to_dicts()[:5] if hasattr(model.labels_, "to_dicts") else None)
    show(_hash(str(model.probas_.rows()).encode()), model.probas_.columns)


@snippet
def pyarrow_tables(inputs: Path) -> None:
    import pyarrow.csv

    table = pyarrow.csv.read_csv(inputs / "three.csv")
    _results(rarevote.MajorityVote().fit(table))
    show(rarevote.fit(table).decide().labels)


@snippet
def duckdb_relation(inputs: Path) -> None:
    import duckdb

    relation = duckdb.sql(f"SELECT task, worker, label FROM '{inputs}/labels.csv'")
    show(rarevote.fit(relation).decide().labels)


# -- fit, decide -----------------------------------------------------------------------------------------------------


def _decided(result: Any) -> None:
    show(result.labels, result.confidence, result.codes, result.description, result.warnings, result.n_guarded)
    show(result.probabilities.p, result.probabilities.mean, result.is_own, result.cannot_answer)


@snippet
def fit_example(inputs: Path) -> None:
    del inputs
    files = example_files()
    fitted = rarevote.fit(files.labels, rare="defect")
    show(fitted.probabilities, fitted.rare.code, fitted.rare.name, fitted.rare.named, fitted.rare.is_rare)
    result = fitted.decide()
    _decided(result)
    show(result.score(files.truth), result.summary())


@snippet
def decide_rules(inputs: Path) -> None:
    fitted = rarevote.fit(inputs / "labels.csv", rare="defect", gold=inputs / "labels-gold.csv")
    for options in (
        {"decide": "labels"}, {"decide": "argmax"}, {"decide": "balanced"}, {"decide": "balanced:5"}, {"cap": 3.0},
        {"costs": "sound:defect=1,defect:sound=20"}, {"min_recall": {"defect": 0.9}}, {"abstain_below": 0.9},
        {"min_recall": {"defect": 0.8}, "random_gold": True}, {"prevalence": "gold"}, {"allow_unvoted": True},
        {"prevalence": {"defect": 0.1, "sound": 0.9}},
    ):  # fmt: skip
        print(options)
        result = fitted.decide(**options)
        _decided(result)
        show(result.target, result.decision.expected_cost, result.decision.n_abstained)


@snippet
def decide_refused(inputs: Path) -> None:
    fitted = rarevote.fit(inputs / "labels.csv")
    for options in (
        {"decide": "best"}, {"decide": "argmax", "cap": 2.0}, {"costs": "a:b=1"}, {"min_recall": {"crack": 0.9}},
        {"min_recall": {"defect": 2}}, {"abstain_below": 0}, {"prevalence": {"defect": 2}}, {"cap": -1},
    ):  # fmt: skip
        try:
            show(fitted.decide(**options).description)
        except (RarevoteError, TypeError) as error:
            print(options, type(error).__name__, error)


@snippet
def expectations(inputs: Path) -> None:
    for method in ("anchored-rasch", "dawid-skene", "majority-vote"):
        result = rarevote.fit(inputs / "three.csv", method).decide()
        for name in ("sound", "scratch", "defect"):
            one = result.expect(name)
            for figure in (one.recall, one.precision, one.prevalence):
                show(figure.value, figure.low, figure.high, figure.description)
        show(result.decision.accuracy.description)


@snippet
def write_results(inputs: Path) -> None:
    result = rarevote.fit(inputs / "labels.csv", "dawid-skene", show=["text"]).decide(decide="balanced")
    for ending in ("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx", "csv.gz"):
        result.write(f"result.{ending}", with_posterior=ending == "csv")
    for name, column in result.columns(with_posterior=True).items():
        print(name)
        show(np.asarray(column))
    show(result._repr_html_(), result.fitted._repr_html_())


@snippet
def soft_labels(inputs: Path) -> None:
    soft = rarevote.fit(inputs / "three.csv").decide().soft_labels()
    show(sorted(name for name in dir(soft) if not name.startswith("_")))
    show(soft.tasks, soft.classes)


# -- review, plan, explain, report, diagnose, check ------------------------------------------------------------------


@snippet
def review_and_plan(inputs: Path) -> None:
    result = rarevote.fit(inputs / "labels.csv", show=["text"]).decide(costs="sound:defect=1,defect:sound=20")
    for plan in (result.review(20, "review.csv"), result.plan(40, "plan.csv", votes_per_item=2)):
        for item in plan.items:
            print(item)
    show(result.plan(30).load)
    result.review(5, "tasks.json", form="label-studio")
    result.review(5, "records.json", form="argilla")


@snippet
def review_loop(inputs: Path) -> None:
    del inputs
    crowd = rarevote.simulate_crowd(300, imbalance=8, p_good=0.7, p_majority=0.3, p_minority=0, p_bad=0, random_state=3)
    gold: dict[int, int] = {}
    for _ in range(3):
        result = rarevote.fit(crowd.arrays, gold=gold or None).decide(costs="0:1=1,1:0=5")
        show(result.labels, len(gold))
        gold |= {item.task: int(crowd.truth[item.task]) for item in result.review(20).items}


@snippet
def explanations(inputs: Path) -> None:
    for method in ("anchored-rasch", "cc-rasch", "dawid-skene", "glad", "mace", "majority-vote"):
        fitted = rarevote.fit(inputs / "labels.csv", method)
        item = fitted.explain("t003")
        show(method, item.task, item.label, item.p, item.posterior, item.workers, item.labels)
        if item.weighed is not None:
            show(item.weighed.votes, item.weighed.ability, item.weighed.prior, item.weighed.rest, item.weighed.total)
        show(fitted.decide().explain("t017").majority)


@snippet
def report(inputs: Path) -> None:
    result = rarevote.fit(inputs / "labels.csv", rare="defect", show=["text"]).decide()
    made = result.report("page.html", truth=inputs / "labels-truth.csv", source="labels", charts="figures")
    show(made.headline, made.page.name, made.n_bytes, sorted(path.name for path in made.charts))
    for path in sorted(Path("figures").iterdir()):
        print(path.name, _hash(path.read_bytes()))


@snippet
def diagnosis(inputs: Path) -> None:
    found = rarevote.fit(inputs / "three.csv", "dawid-skene", rare="scratch").diagnose(truth=inputs / "three-truth.csv")
    workers = found.workers
    show(
        workers.names, workers.n_votes, workers.accuracy, workers.low, workers.high, workers.agreement, workers.profile
    )
    show(found.rare, found.common, found.classes.names, found.alike.sentences(), found.alike.warnings)


@snippet
def judges(inputs: Path) -> None:
    del inputs
    jury = rarevote.simulate_jury(300, 5, groups=[(0, 1, 2)], together=0.9, random_state=1)
    gold = {task: int(jury.truth[task]) for task in range(100)}
    alike = rarevote.fit(jury.arrays, gold=gold).diagnose().alike
    show(alike.sentences(), alike.warnings, jury.n_effective, jury.error_correlation)


@snippet
def check(inputs: Path) -> None:
    for name in ("labels.csv", "hostile.csv"):
        found = rarevote.fit(inputs / name, rare="defect").check()
        show(found.verdict, found.cannot_answer, found.converged, found.figures())
        for finding in found.findings:
            print(finding.weight, finding.description)


@snippet
def compare_methods(inputs: Path) -> None:
    from rarevote.api import compare

    found = compare(inputs / "labels.csv", ["majority-vote", "dawid-skene", "kos", "rasch"])
    show(list(found.fits), found.refused, found.different)
    for one in found.fits.values():
        show(one.codes if hasattr(one, "codes") else None, one.n_iter, one.converged)


# -- audit -----------------------------------------------------------------------------------------------------------


@snippet
def audit_to_the_end(inputs: Path) -> None:
    del inputs
    crowd = rarevote.simulate_crowd(300, imbalance=3, p_good=1, p_bad=0, p_majority=0, p_minority=0, random_state=0)
    audit = rarevote.fit(crowd.arrays).audit(1, target=0.8, seed=7)
    while tasks := audit.round():
        show(tasks)
        audit.answer({task: int(crowd.truth[task]) for task in tasks}, who="anna")
    show(audit.n_reviewed, audit.final_list(), audit.certificate())
    audit.save("audit.json")


@snippet
def audit_by_old_names(inputs: Path) -> None:
    """The import paths that the docs of 0.2 and 0.3 show; they may forward."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audits = import_module("rarevote.audit")
        for plan in sorted(inputs.glob("*.plan.json")):
            audit = audits.Audit.load(plan)
            show(plan.name, audit.n_reviewed, len(audit.final_list()))
            certificate = plan.with_name(plan.name.replace(".plan.", ".certificate."))
            show(str(audits.verify_files(plan, certificate)))


# -- crowd-kit's names -----------------------------------------------------------------------------------------------


@snippet
def crowdkit_methods(inputs: Path) -> None:
    import pandas as pd

    data = pd.read_csv(inputs / "labels.csv")
    gold = pd.read_csv(inputs / "labels-gold.csv").set_index("task")["label"]
    for model in (
        rarevote.MajorityVote(), rarevote.DawidSkene(20), rarevote.OneCoinDawidSkene(20), rarevote.GLAD(20),
        rarevote.MACE(n_restarts=2, n_iter=10), rarevote.KOS(10), rarevote.Wawa(), rarevote.ZeroBasedSkill(10),
    ):  # fmt: skip
        print(model, model.get_params())
        show(model.fit_predict(data), model.fit_predict_proba(data), model._repr_html_())
        _results(model)
    show(rarevote.GoldMajorityVote().fit(data, gold).predict(data), rarevote.Wawa().fit(data).predict_proba(data))
    show(rarevote.MajorityVote().fit_predict(data, pd.Series({f"w{n:02d}": 1 + n / 20 for n in range(20)})))


@snippet
def crowdkit_metrics(inputs: Path) -> None:
    import pandas as pd

    from rarevote.metrics.data import alpha_krippendorff, consistency, uncertainty
    from rarevote.metrics.workers import accuracy_on_aggregates
    from rarevote.postprocessing import entropy_threshold

    data = pd.read_csv(inputs / "three.csv")
    show(alpha_krippendorff(data), consistency(data), uncertainty(data))
    show(accuracy_on_aggregates(data), entropy_threshold(data, percentile=20))


@snippet
def own_metrics(inputs: Path) -> None:
    print(rarevote.agreement(inputs / "three.csv"))
    print(rarevote.score([0, 0, 1, 1, 2], [0, 1, 1, 1, 0]))
    print(rarevote.score({"a": "x", "b": "y"}, {"a": "x", "b": "x"}))


# -- new tasks, saved models, simulation -----------------------------------------------------------------------------


@snippet
def saved_models(inputs: Path) -> None:
    for method in (
        "anchored-rasch",
        "cc-rasch",
        "dawid-skene",
        "one-coin",
        "class-conditional",
        "glad",
        "mace",
        "wawa",
    ):
        fitted = rarevote.fit(inputs / "labels.csv", method)
        fitted.save(f"{method}.model")
        model = rarevote.load(f"{method}.model")
        print(model)
        show(model.predict(inputs / "new.csv"), model.predict_proba(inputs / "new.csv"))


@snippet
def load_refused(inputs: Path) -> None:
    for name in ("labels.csv", "model--a-header-without-an-end.model", "nowhere.model"):
        try:
            show(rarevote.load(inputs / name))
        except RarevoteError as error:
            print(type(error).__name__, str(error).replace(str(inputs), ""))


@snippet
def simulated(inputs: Path) -> None:
    del inputs
    for crowd in (
        rarevote.simulate_crowd(200, 20, n_classes=3, random_state=1, exact_counts=True),
        rarevote.simulate_cc_rasch(100, 12, mu_alpha=[2.0, 0.5], mu_beta=0.0, random_state=1),
        rarevote.simulate_jury(100, 5, how="copy", random_state=2),
    ):
        show(crowd.task, crowd.worker, crowd.label, crowd.truth, crowd.accuracy, crowd.abilities, crowd.difficulties)


# -- the spine's other names -----------------------------------------------------------------------------------------


@snippet
def estimator_of_ones_own(inputs: Path) -> None:
    model = rarevote.DawidSkene().fit(inputs / "labels.csv")
    result = rarevote.Fitted.of(model, rare="defect").decide(costs="sound:defect=1,defect:sound=20")
    show(
        result.labels,
        result.expect("defect").precision.description,
        model.n_iter_,
        model.converged_,
        model.loss_history_,
    )


@snippet
def checkpoints_and_callbacks(inputs: Path) -> None:
    told: list[Any] = []
    fitted = rarevote.fit(
        inputs / "labels.csv", "cc-rasch", checkpoint="kept", checkpoint_every=2, callback=told.append
    )
    again = rarevote.fit(inputs / "labels.csv", "cc-rasch", checkpoint="kept", checkpoint_every=2)
    show(fitted.probabilities, again.probabilities, len(told), told[-1], Path("kept").exists())


@snippet
def names_of_two(inputs: Path) -> None:
    """Names of 0.2 with their warnings."""
    fitted = rarevote.fit(inputs / "labels.csv")
    model = fitted.method
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = fitted.calibrate()
        show(old.posterior, old.prevalence, old.low, old.high, old.how)
        show(import_module("rarevote.decide").decide(old, costs="sound:defect=1,defect:sound=20").codes)
        show(import_module("rarevote.explain").explain(model, "t003").p)
        made = import_module("rarevote.report").write_report(model, "page.html")
        show(made.headline)
    for one in caught:
        print(one.category.__name__, one.message)


@snippet
def public_list(inputs: Path) -> None:
    del inputs
    show(sorted(rarevote.__all__), [name for name in rarevote.__all__ if not hasattr(rarevote, name)])


@snippet
def methods_and_parameters(inputs: Path) -> None:
    del inputs
    from rarevote.methods.registry import METHODS

    for name, entry in METHODS.items():
        model = entry.load()()
        print(name, entry.class_name, entry.summary, model, model.get_params(), entry.capabilities)


@snippet
def unknown_items(inputs: Path) -> None:
    result = rarevote.fit(inputs / "labels.csv", items=inputs / "items.txt").decide()
    show(result.tasks, result.labels, result.n_unvoted, result.probabilities.p[-3:])


@snippet
def dtype_of_single_precision(inputs: Path) -> None:
    for model in (rarevote.CCRasch(dtype="float32"), rarevote.DawidSkene(dtype="float32")):
        show(model.fit(inputs / "labels.csv").posterior_)


@snippet
def scikit_learn(inputs: Path) -> None:
    from sklearn.base import clone

    model = clone(rarevote.CCRasch(n_iter=7).set_params(tol=0))
    print(model, model.get_params(), rarevote.CCRasch.capabilities.gold)
    show(model.fit(inputs / "labels.csv").labels_)


@snippet
def empty_data(inputs: Path) -> None:
    del inputs
    for model in (rarevote.MajorityVote(), rarevote.DawidSkene(), rarevote.CCRasch(), rarevote.GLAD()):
        show(model.fit([]).labels_, model.probas_)
