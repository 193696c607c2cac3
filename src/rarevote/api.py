"""From data to decision: read, fit, decide; the command line and the page use the same functions.

>>> import rarevote
>>> votes = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"), ("b", "cy", "yes")]
>>> result = rarevote.fit(votes, "majority-vote").decide()
>>> dict(zip(result.tasks.tolist(), result.labels.tolist()))
{'a': 'yes', 'b': 'no'}

:func:`read` takes files, frames, arrays and exports. :class:`Fitted` holds the method, the crowd, the gold and the rare
class. :class:`Result` holds the labels, the probabilities and what to expect of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.arguments import named_arguments, with_named_arguments
from rarevote.crowd.gold import add_classes, classes_beside
from rarevote.crowd.grades import Grades
from rarevote.crowd.rare import RareClass
from rarevote.crowd.steps import within
from rarevote.decide.decider import decide_crowd
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.rules import ABSTAINED, MinRecall, OwnLabels, Rule
from rarevote.decide.sampled import IndependentDraws, independent_draws
from rarevote.decide.selection import rule_of
from rarevote.errors import ConvergenceWarning, InputError, ParameterError, RarevoteWarning, how, warn_user
from rarevote.features.appearance import with_ids
from rarevote.features.join import ItemFeatures
from rarevote.features.record import IN_SAMPLE
from rarevote.features.settings import FeatureSettings
from rarevote.features.source import FeatureSource
from rarevote.io.read.crowd import Crowd, read, read_each
from rarevote.io.read.labels import one_problem
from rarevote.io.read.options import ReadArguments, ReadOptions
from rarevote.io.tables import Table
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.methods.base import Estimator
from rarevote.methods.em_estimator import saved_in
from rarevote.methods.registry import DEFAULT_METHOD, find_method, require_capability
from rarevote.methods.reported import reported_probabilities
from rarevote.methods.unvoted import predict_from_features
from rarevote.page.plots import Plots
from rarevote.progress import Watch, fit_steps, shows_progress
from rarevote.result import Result

if TYPE_CHECKING:
    from rarevote.audit import Aim, Audit, Share
    from rarevote.compat.version_0_2 import CalibratedPosterior
    from rarevote.crowd.annotations import Annotations
    from rarevote.decide.costs import Costs
    from rarevote.decide.probabilities import Shares
    from rarevote.diagnose.check import Check
    from rarevote.diagnose.diagnosis import Diagnosis
    from rarevote.diagnose.explain import Explanation
    from rarevote.diagnose.order import OrderHint
    from rarevote.em.loop import Callback
    from rarevote.features.record import FeatureRecord
    from rarevote.scoring.compare import Comparison

__all__ = ["Crowd", "Fitted", "ReadOptions", "Result", "compare", "fit", "make_method", "read", "read_each"]


def make_method(method: str | Estimator = DEFAULT_METHOD, **parameters: Any) -> Estimator:
    """The estimator of a name, with these parameters; an estimator is returned unchanged."""
    made = method if isinstance(method, Estimator) else find_method(method).load()()
    return made.set_params(**parameters) if parameters else made


@named_arguments(ReadOptions)
@shows_progress
def fit(
    data: Any,
    method: str | Estimator | None = None,
    *,
    ordered: Any = None,
    gold: Any = None,
    use_gold: bool = True,
    rare: Any = None,
    features: Any = None,
    pred_probs: Any = None,
    groups: Any = None,
    features_id: str | None = None,
    features_ids: Any = None,
    features_group: str | None = None,
    pred_probs_id: str | None = None,
    feature_settings: FeatureSettings | None = None,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    progress: Watch = False,
    **reading: Unpack[ReadArguments],
) -> Fitted:
    """Read the votes and fit a method to them.

    Args:
        data: anything that :func:`read` takes.
        method: the name of a method, or an estimator; by default "anchored-rasch", with ``ordered``
            "anchored-ordered".
        ordered: if the classes are grades, the grades from lowest to highest, such as ``["low", "medium", "high"]`` or
            ``"1..5"``. All other classes are outside the scale.
        gold: labels that the method learns from: a file, a mapping, a Series, a frame.
        use_gold: whether to learn from gold in an export.
        rare: the class that matters, or a tail of grades such as ``">=4"``. Default: the class with the fewest votes;
            for grades, the end of the scale with fewer votes.
        features: numbers about the items, with or without votes: a frame with a column of ids and columns of numbers
            (or one column of lists), ``(ids, array)``, or a path to Parquet, CSV or ``.npy``. They are used only if
            they predict held-out votes; see ``Fitted.features_``.
        pred_probs: probabilities that a model predicts, out of sample: a frame with a column of ids and one for each
            class, ``(ids, array, classes)``, or a path. An array alone is possible but error-prone: its rows are the
            items in the order of their first vote, its columns the sorted classes.
        groups: the group of each row of the features (document, patient); cross-validation keeps groups together.
        features_id: the column of ids in the features. Default: "task", or the name of that column in the votes.
        features_ids: a file with the ids of a ``.npy`` file, one per line.
        features_group: the column of groups in the features.
        pred_probs_id: the column of ids in ``pred_probs``.
        feature_settings: the constants of the feature prior, to change the defaults.
        callback: called with a :class:`~rarevote.em.loop.Progress` after each iteration, and after each step of the
            stage "features".
        checkpoint: a folder where the fit is saved at intervals; the same call resumes after a crash.
        checkpoint_every: iterations between two checkpoints.
        progress: True shows a bar with the time left; a function is called with each :class:`~rarevote.ProgressStep`.
        **reading: how to read the data, as for :func:`read`.

    Raises:
        InputError: the data cannot be used.
        ParameterError: the method does not support an argument, or ``rare`` is not a class.
    """
    from rarevote.diagnose.declared_order import for_grades, with_order

    estimator, grades = with_order(method, ordered)
    if gold is not None:
        require_capability(estimator, "gold", how("gold", "--gold"))
    if checkpoint is not None:
        require_capability(estimator, "checkpoint", how("checkpoint", "--checkpoint"))
    given = FeatureSource(features, pred_probs, groups, features_id, features_ids, features_group, pred_probs_id)
    if feature_settings is not None:
        given = replace(given, settings=feature_settings)
    if given.is_given:
        option = how("pred_probs", "--pred-probs") if features is None else how("features", "--features")
        if ordered is not None:
            raise ParameterError(
                f"features ignore the order of classes: omit {option} or {how('ordered', '--ordered')}"
            )
        require_capability(estimator, "features", option)
    crowd = one_problem(read(data, **reading))
    joined = features if isinstance(features, ItemFeatures) else None
    if joined is None and given.is_given:
        if isinstance(pred_probs, np.ndarray):
            pred_probs = with_ids(pred_probs, data, crowd.annotations, reading.get("columns"))
            given = replace(given, pred_probs=pred_probs)
        voted, joined = given.join(crowd.annotations, (reading.get("columns") or {}).get("task"))
        crowd = crowd.with_population(voted).with_files(given.files)
    # Before the fit, which takes time: refuse a name that is not a class. Gold can renumber the classes later.
    votes = crowd.annotations
    chosen = RareClass.of(votes.classes, votes.class_votes, rare, grades) if votes.n_classes else RareClass((), None)
    known = None
    if gold is not None:
        known, crowd = crowd.known(gold), crowd.with_files(gold)
    elif use_gold and estimator.capabilities.gold and crowd.gold:
        known = crowd.known(crowd.gold)
    if grades is not None and votes.n_annotations:
        estimator = for_grades(estimator, grades, votes, known or {})
    taught = known
    if joined is not None and known:
        taught, joined = joined.with_gold(known, votes)
    saved = saved_in(checkpoint, checkpoint_every)
    begin = time.perf_counter()
    callback = fit_steps(f"fitting {estimator.method_name}", callback)
    estimator.fit_request(crowd.annotations, taught, callback=callback, checkpoint=saved, features=joined)
    seconds = time.perf_counter() - begin
    votes = estimator.annotations_
    if chosen.codes:
        again = RareClass.of(votes.classes, votes.class_votes, chosen.name, grades)
        chosen = replace(again, named=chosen.named)
    fitted = Fitted(estimator, crowd.with_annotations(votes), chosen, known or {}, seconds, grades, joined)
    if fitted.features_ is not None and IN_SAMPLE in fitted.features_.reason:
        warn_user(IN_SAMPLE)
    return fitted


@named_arguments(ReadOptions)
@shows_progress
def compare(
    data: Any,
    methods: Sequence[str],
    *,
    gold: Any = None,
    ordered: Any = None,
    progress: Watch = False,
    **reading: Unpack[ReadArguments],
) -> Comparison:
    """Fit several methods to the same votes; a method that cannot run is left out.

    Args:
        data: anything that :func:`read` takes.
        methods: names of the methods.
        gold: labels that methods learn from. Default: those in an export.
        ordered: the grades from lowest to highest, if the classes are grades; as for :func:`fit`.
        progress: as for :func:`fit`.
        **reading: how to read the data.
    """
    from rarevote.scoring.compare import Comparison, MethodFit

    crowd = one_problem(read(data, **reading))
    known = crowd.known(crowd.gold if gold is None else gold)
    # All methods must number the classes in the same way, including classes that only the gold names.
    if extra := classes_beside(crowd.annotations, list(known.values())):
        crowd = crowd.with_annotations(add_classes(crowd.annotations, extra))
    fits: dict[str, MethodFit] = {}
    refused: list[str] = []
    for number, name in enumerate(methods, 1):
        estimator = make_method(name)
        try:
            with within(f"method {number} of {len(methods)}"):
                learned = known if estimator.capabilities.gold else None
                fitted = fit(crowd, estimator, ordered=ordered, gold=learned or None, use_gold=False)
        except (InputError, ParameterError) as error:
            refused.append(f"{name}: {error}")
            continue
        fits[name] = MethodFit(
            fitted.decide().codes, fitted.probabilities, fitted.seconds, estimator.n_iter_, estimator.converged_
        )
    if not fits:
        raise InputError(f"no method could run: {'; '.join(refused)}")
    return Comparison(crowd.annotations, fits, refused)


@with_named_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A fitted method with its crowd, its gold and its rare class.

    Attributes:
        method: the fitted estimator.
        crowd: the votes, including any classes that only the gold names.
        rare: the class that matters, and whether the user named it.
        gold: labels that the fit used, by task.
        seconds: how long the fit took.
        grades: the order of the classes, if they are grades.
        features: the features of the items, as given to the fit.
    """

    method: Estimator
    crowd: Crowd
    rare: RareClass
    gold: dict[Any, Any] = field(default_factory=dict)
    seconds: float = 0.0
    grades: Grades | None = None
    features: ItemFeatures | None = None

    @classmethod
    def of(cls, estimator: Estimator, rare: Any = None) -> Fitted:
        """The record of an estimator that was fitted with its own ``fit``.

        Raises:
            InputError: it was fitted without votes, or loaded from a file.
        """
        if not estimator.annotations_.n_annotations:
            raise InputError("no annotations: there is nothing to decide")
        crowd, known = Crowd(estimator.annotations_), estimator.gold_codes_
        votes, rows = crowd.annotations, np.flatnonzero(known >= 0)
        gold = dict(zip(votes.tasks[rows].tolist(), votes.classes[known[rows]].tolist(), strict=True))
        chosen = RareClass.of(votes.classes, votes.class_votes, rare, estimator.grades)
        return cls(estimator, crowd, chosen, gold, grades=estimator.grades)

    @property
    def annotations(self) -> Annotations:
        """The encoded votes."""
        return self.crowd.annotations

    def rare_class(self, name: Any, *, what: str = "rare") -> RareClass:
        """The class, or tail of grades such as ``">=4"``, of this name; ``what`` names the argument in an error.

        Raises:
            ParameterError: no class has this name.
        """
        votes = self.annotations
        return RareClass.of(votes.classes, votes.class_votes, name, self.grades, what=what)

    @property
    def probabilities(self) -> NDArray[Any]:
        """The probability of every class, (n_items, n_classes): all outputs and decisions use it.

        Items with votes come first, in the order of ``annotations``, then items without votes
        (``annotations.unanswered``), which have the mean probabilities. :mod:`rarevote.decide.probabilities` says how
        they are computed.
        """
        return self.reported.p

    @cached_property
    def reported(self) -> Probabilities:
        """The probabilities, with their mean and the known classes."""
        return reported_probabilities(self.method, self.annotations, self.crowd.is_jury, lambda: self.independent)

    @cached_property
    def independent(self) -> IndependentDraws:
        """Draws of the true class of every item if annotators make errors independently; takes seconds on first use."""
        found = self.reported
        # The sampler does not use features.
        return independent_draws(self.annotations, found.gold, "features count" if found.has_features else "")

    @property
    def features_(self) -> FeatureRecord | None:
        """How the features were used, and why; None if none were given."""
        outcome = self.method.feature_outcome
        return None if outcome is None else outcome.record

    @property
    def feature_figures(self) -> dict[str, Any]:
        """The record of the features as plain values under "features"; empty if none were given."""
        return {} if self.features_ is None else {"features": self.features_.figures}

    def calibrate(self, prevalence: Shares = "estimate", *, sampled: bool = False) -> CalibratedPosterior:
        """Deprecated: :attr:`probabilities` are calibrated, and a result says which class shares to expect."""
        # Imported by name: deprecated code is in a layer above this one, and will be removed in version 0.4.
        deprecated = import_module("rarevote.compat.version_0_2")
        return deprecated.calibrate(self, prevalence, sampled=sampled)  # type: ignore[no-any-return]

    def _blind(self) -> NDArray[np.float64]:
        """Probabilities of a fit without gold.

        A worker who was right on gold tasks gains weight from them, so a fit ranks its own gold tasks above other tasks
        of the class: a threshold taken from these ranks would promise too much.
        """
        method = type(self.method)().set_params(**self.method.get_params())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            features = None if self.features is None else replace(self.features, gold={})
            return fit(self.crowd, method, use_gold=False, features=features).probabilities

    @shows_progress
    def decide(
        self,
        decide: Rule | str | None = None,
        *,
        costs: Costs | None = None,
        min_recall: Mapping[Any, float] | str | float | None = None,
        cap: float | None = None,
        abstain_below: float | None = None,
        prevalence: Shares = "estimate",
        random_gold: bool = False,
        errors: Literal["independent", "shared"] = "shared",
        allow_unvoted: bool | None = None,
        progress: Watch = False,
    ) -> Result:
        """Decide on one label per item, by the method's own rule unless another one is given.

        A label has at least one vote on its item (gold excepted), unless ``allow_unvoted``. If the votes cannot show
        who is right, the labels are the majority vote, with a warning. An item without votes has no label. If features
        are used, a label may have no votes, and items without votes have labels.

        Args:
            decide: a rule, or its name: "labels" (the method's own), "argmax", "balanced", "balanced:5"; for grades
                also "levelled", "median", "mean", "balanced-median", "balanced-median:5".
            costs: decide by least expected cost; see :func:`rarevote.decide.costs.cost_matrix`.
            min_recall: flag as many items as needed to expect this recall of a class or of a tail of grades, such as
                ``{"defect": 0.95}``, ``{">=severe": 0.9}``, ``"defect=0.95"``, or ``0.95`` for the rare class.
            cap: decide balanced; a miss counts as at most this many false alarms.
            abstain_below: give no label if its probability is below this.
            prevalence: "estimate" uses the probabilities as they are; "gold" (class shares in a random sample of known
                tasks) and shares by class re-weight them by Bayes' rule.
            random_gold: whether the gold labels are a random sample of the tasks, so that they can guarantee a recall.
            errors: for a recall target, whether annotators share errors ("shared", as in real crowds) or not
                ("independent").
            allow_unvoted: whether a label may have no votes on its item. Default: only if features are used.
            progress: as for :func:`fit`.

        Raises:
            ParameterError: two ways to decide at the same time, names that are not classes, or numbers out of range.
        """
        own = self.method.own_rule()
        rule = rule_of(
            decide,
            costs=costs,
            min_recall={self.rare.name: min_recall} if isinstance(min_recall, (int, float)) else min_recall,
            cap=cap,
            abstain_below=abstain_below,
            random_gold=random_gold,
            errors=errors,
            own=own,
            grades=self.grades,
        )
        rule.check(self.annotations.classes)
        probabilities = self.reported
        if random_gold and self.gold and isinstance(rule, MinRecall):
            probabilities = replace(probabilities, blind=self._blind())
        probabilities = probabilities.with_shares(prevalence)
        decided = decide_crowd(
            self.annotations,
            probabilities,
            rule,
            own=own,
            own_codes=self.method.label_codes() if own == OwnLabels() else None,
            rare=self.rare,
            method=self.method.method_name,
            default_method=DEFAULT_METHOD,
            allow_unvoted=allow_unvoted,
        )
        for note in decided.notes:
            warn_user(note.description)
        return Result(self, rule, probabilities, is_own=rule == own, **decided._asdict())

    @property
    def labels_(self) -> Any:
        """The labels of :meth:`decide`, by task, in the type of the data: a Series for a pandas frame."""
        result, source = self._quietly_decided(), self.crowd.source
        rows = np.flatnonzero(result.codes != ABSTAINED)
        names, labels = {"task": result.tasks[rows]}, {"agg_label": result.labels[rows]}
        return source.deliver(Table(names, labels, series=True, dtypes=source.dtypes))

    def diagnose(self, result: Result | None = None, truth: Any = None) -> Diagnosis:
        """Report on annotators, items and classes."""
        from rarevote.diagnose.diagnosis import diagnose

        decided = self._quietly_decided() if result is None else result
        return diagnose(
            self.method,
            decided.probabilities,
            decided.decision,
            self.rare,
            truth=None if truth is None else self.crowd.known(truth),
            models=self.crowd.models,
            grades=self.grades,
        )

    def _quietly_decided(self) -> Result:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RarevoteWarning)
            return self.decide()

    @shows_progress
    def check(self, result: Result | None = None, *, progress: Watch = False) -> Check:
        """Check whether the labels are reliable enough to use: is the crowd informative, and does the model fit?

        Args:
            result: the decision to check. Default: the method's own.
            progress: as for :func:`fit`.
        """
        from rarevote.diagnose.check import check_fit

        decided = self._quietly_decided() if result is None else result  # its warnings are part of the findings
        return check_fit(
            self.method,
            decided.probabilities,
            decided.decision,
            decided.notes,
            rare=self.rare,
            models=self.crowd.models,
            arguments=self.crowd.arguments,
            grades=self.grades,
        )

    def order_hint(self) -> OrderHint | None:
        """The suggestion to declare the order of classes that look like grades; see :mod:`rarevote.diagnose.order`."""
        if self.grades is not None:
            return None
        from rarevote.diagnose.order import order_hint

        return order_hint(self.annotations)

    def explain(self, task: Any, *, label: int | None = None) -> Explanation:
        """Explain the label of a task, vote by vote.

        Args:
            task: the id of the task, as in the data or as text.
            label: the class number to explain. Default: the decision of :meth:`decide`.
        """
        if label is None:
            return self._quietly_decided().explain(task)
        from rarevote.diagnose.explain import explain, find_task

        number = find_task(self.annotations, task, self.crowd.title, free=self.reported.free)
        p, is_gold = self.probabilities[number], bool(self.reported.gold[number] >= 0)
        return explain(self.method, number, label, p, is_gold=is_gold, shown=self.crowd.shown)

    @shows_progress
    def audit(
        self, name: Any, target: Share = 0.9, *, confidence: Share = 0.95, flag_cost: float = 1.0,
        aim: Aim = "certificate", budget: int | None = None, seed: int | None = None, only_voted_items: bool = False,
        progress: Watch = False,
    ) -> Audit:  # fmt: skip
        """Start an audit to prove a recall of a class with few reviews; see :meth:`rarevote.audit.Audit.start`."""
        from rarevote.audit.of_fit import audit_of_fit as start

        return start(
            self, name, target, confidence=confidence, flag_cost=flag_cost, aim=aim, budget=budget, seed=seed,
            only_voted_items=only_voted_items,
        )  # fmt: skip

    @cached_property
    def plot(self) -> Plots:
        """The charts of the page by name, of the method's own decision, such as ``fitted.plot.annotators()``."""
        return self._quietly_decided().plot

    def __repr__(self) -> str:
        return f"Fitted({self.method.method_name} of {self.annotations}, rare class {self.rare.name})"

    def _repr_html_(self) -> str:
        return self._quietly_decided()._repr_html_()

    def predict(
        self,
        *,
        features: Any = None,
        pred_probs: Any = None,
        features_id: str | None = None,
        features_ids: Any = None,
        pred_probs_id: str | None = None,
    ) -> Table:
        """Label new items by their features alone: one row each with task, label, confidence, p:<class>.

        Arguments are as for :func:`fit`. The votes on an item that was part of the fit are not used.

        Raises:
            ParameterError: the fit had no features, or different ones.
            InputError: the features cannot be used.
        """
        source = FeatureSource(
            features, pred_probs, features_id=features_id, features_ids=features_ids, pred_probs_id=pred_probs_id
        )
        if not source.is_given:
            raise ParameterError("predict needs features or pred_probs of new items")
        rows = predict_from_features(self.method, source)
        tasks = rows.pop("task")
        return Table({"task": tasks}, {name: np.asarray(values) for name, values in rows.items()})

    def save(self, path: str | Path) -> None:
        """Save the fitted model, to label new tasks: see :func:`rarevote.load`."""
        refuse_overwriting(path, self.crowd.files)
        self.method.save(path)
