"""The spine: from data to decision in one road, which every verb of the command line and the page take too.

>>> import rarevote
>>> votes = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"), ("b", "cy", "yes")]
>>> fitted = rarevote.fit(votes, "majority-vote")
>>> result = fitted.decide()
>>> dict(zip(result.tasks.tolist(), result.labels.tolist()))
{'a': 'yes', 'b': 'no'}

:func:`read` takes whatever a person has, :class:`Fitted` owns method, crowd, gold and rare class, so that no later step
can forget one of them, and :class:`Result` owns the labels, the probabilities and what to expect of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import add_classes, gold_codes, rare_class
from rarevote.errors import ConvergenceWarning, InputError, ParameterError, RarevoteWarning, how, warn_user
from rarevote.io.read.crowd import Crowd, ReadOptions, read, read_each
from rarevote.meaning.decide import Argmax, Basis, Rule, best_allowed, parse_rule, rule_of
from rarevote.meaning.guards import guarded_choice
from rarevote.methods.base import EMEstimator, Estimator
from rarevote.methods.registry import DEFAULT_METHOD, find_method
from rarevote.result import Result

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations
    from rarevote.em.loop import Callback
    from rarevote.meaning.audit import Aim, Audit, Share
    from rarevote.meaning.calibrate import CalibratedPosterior, Shares
    from rarevote.meaning.check import Check
    from rarevote.meaning.compare import Comparison
    from rarevote.meaning.costs import Costs
    from rarevote.meaning.diagnose import Diagnosis
    from rarevote.meaning.explain import Explanation

__all__ = ["Crowd", "Fitted", "ReadOptions", "Result", "compare", "fit", "make_method", "read", "read_each"]


def make_method(method: str | Estimator = DEFAULT_METHOD, **parameters: Any) -> Estimator:
    """A method by its name, with parameters; an estimator is taken as it is."""
    made = method if isinstance(method, Estimator) else find_method(method).load()()
    return made.set_params(**parameters) if parameters else made


def refuse_gold(estimator: Estimator) -> None:
    """Refuse gold for a method that cannot use them.

    Raises:
        ParameterError: it cannot.
    """
    if not estimator.uses_gold:
        name = estimator.method_name
        gold = how("gold", "--gold")
        raise ParameterError(f"{name} cannot learn from gold: leave {gold} out, or choose {DEFAULT_METHOD}")


def fit(
    data: Any,
    method: str | Estimator = DEFAULT_METHOD,
    *,
    gold: Any = None,
    use_gold: bool = True,
    rare: Any = None,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 10,
    **reading: Any,
) -> Fitted:
    """Read the votes and fit a method to them.

    Args:
        data: whatever :func:`read` takes.
        method: the name of a method, or an estimator.
        gold: labels that the method may learn from: a file, a mapping, a Series, a frame.
        use_gold: whether to learn from gold that came with an export.
        rare: the class that matters; the one with the fewest votes if not given.
        callback: called with a :class:`~rarevote.em.loop.Progress` after each iteration.
        checkpoint: a folder that keeps the fit now and then; the same call resumes after a crash.
        checkpoint_every: iterations between two checkpoints.
        **reading: how to read the data, as for :func:`read`.

    Raises:
        InputError: the data cannot be used.
        ParameterError: the method cannot do what is asked of it, or ``rare`` is no class.
    """
    estimator = make_method(method)
    if gold is not None:
        refuse_gold(estimator)
    options: dict[str, Any] = {}
    if checkpoint is not None:
        if not isinstance(estimator, EMEstimator):
            name = estimator.method_name
            option = how("checkpoint", "--checkpoint")
            raise ParameterError(f"{option} is for methods that iterate; {name} is done in one pass")
        options = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
    crowd = read(data, **reading)
    # Before the fit, which takes time: a name that is no class is refused. Gold may renumber the classes later.
    rare_name = crowd.annotations.classes[rare_class(crowd.annotations, rare)] if crowd.annotations.n_classes else None
    known = None
    if gold is not None:
        known = crowd.known(gold)
    elif use_gold and estimator.uses_gold and crowd.gold:
        known = crowd.known(crowd.gold)
    begin = time.perf_counter()
    estimator.fit(crowd.annotations, known, callback=callback, **options)
    seconds = time.perf_counter() - begin
    return Fitted(estimator, crowd.with_annotations(estimator.annotations_), known or {}, rare_name, seconds)


def compare(
    data: Any,
    methods: Sequence[str],
    *,
    gold: Any = None,
    watched: Callable[[str, int], AbstractContextManager[Any]] | None = None,
    **reading: Any,
) -> Comparison:
    """Fit several methods on the same votes; one that cannot run is left out, and an error only if none can.

    Args:
        data: whatever :func:`read` takes.
        methods: names of the methods.
        gold: labels that methods may learn from; those that came with an export if not given.
        watched: gives for the name and the number of a method a context whose value is the callback of its fit.
        **reading: how to read the data.
    """
    from rarevote.meaning.compare import Comparison, MethodFit

    crowd = read(data, **reading)
    known = crowd.known(crowd.gold if gold is None else gold)
    # All methods must number the classes alike, those that only the gold names included.
    own = set(crowd.annotations.classes.tolist())
    extra = [name for name in dict.fromkeys(known.values()) if name not in own]
    if extra:
        crowd = crowd.with_annotations(add_classes(crowd.annotations, extra))
    fits: dict[str, MethodFit] = {}
    refused: list[str] = []
    for number, name in enumerate(methods, 1):
        estimator = make_method(name)
        try:
            with (watched or _unwatched)(name, number) as callback:
                learned = known if estimator.uses_gold else None
                fitted = fit(crowd, estimator, gold=learned or None, use_gold=False, callback=callback)
        except (InputError, ParameterError) as error:
            refused.append(f"{name}: {error}")
            continue
        result = fitted.decide()
        fits[name] = MethodFit(
            result.codes, fitted.probabilities, fitted.seconds, estimator.n_iter_, estimator.converged_
        )
    if not fits:
        raise InputError(f"no method could run: {'; '.join(refused)}")
    return Comparison(crowd.annotations, fits, refused)


def _unwatched(name: str, number: int) -> AbstractContextManager[None]:
    del name, number
    return nullcontext()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted method with all that belongs to it.

    Attributes:
        method: the fitted estimator.
        crowd: the votes, with the classes that gold may have added.
        gold: labels that the fit was given, by task.
        rare_name: the class that matters.
        seconds: how long the fit took.
    """

    method: Estimator
    crowd: Crowd
    gold: dict[Any, Any] = field(default_factory=dict)
    rare_name: Any = None
    seconds: float = 0.0

    @classmethod
    def of(cls, estimator: Estimator, gold: Any = None, rare: Any = None) -> Fitted:
        """An estimator that was fitted on its own."""
        crowd = Crowd(estimator.annotations_)
        name = crowd.annotations.classes[rare_class(crowd.annotations, rare)]
        return cls(estimator, crowd, {} if gold is None else crowd.known(gold), name)

    @property
    def annotations(self) -> Annotations:
        """The encoded votes."""
        return self.crowd.annotations

    @property
    def rare(self) -> int:
        """Number of the class that matters."""
        return rare_class(self.annotations, self.rare_name)

    @property
    def probabilities(self) -> NDArray[Any]:
        """What results show as ``p:``: the probabilities a method reports as calibrated, else its posterior."""
        reported = getattr(self.method, "reported_", None)
        return self.method.posterior_ if reported is None else np.asarray(reported)

    @property
    def reports_probabilities(self) -> bool:
        """Whether the method's own probabilities are calibrated, so that no sampler is needed."""
        return getattr(self.method, "reported_", None) is not None

    @cached_property
    def _calibrations(self) -> dict[str, CalibratedPosterior]:
        return {}

    def calibrate(self, prevalence: Shares = "estimate", *, sampled: bool = False) -> CalibratedPosterior:
        """Probabilities to be read as such; computed once.

        Args:
            prevalence: "estimate" from the crowd, "gold": shares among known tasks (a random sample), or by class.
            sampled: whether draws of how the votes may have come about are wanted, with which intervals come, even of
                a method whose own probabilities are calibrated.
        """
        from rarevote.meaning.calibrate import calibrate_fit

        key = repr((prevalence, sampled or not self.reports_probabilities))
        if key not in self._calibrations:
            gold = self.gold or None
            self._calibrations[key] = calibrate_fit(self.method, gold, prevalence=prevalence, sampled=sampled)
        return self._calibrations[key]

    def _blind_score(self, prevalence: Shares) -> NDArray[np.float64]:
        """Calibrated probabilities of a fit that was given no gold.

        Workers who were right on gold tasks gain weight by them, so that a fit ranks its own gold above other tasks of
        the class: a threshold read off such ranks promises too much.
        """
        method = type(self.method)().set_params(**self.method.get_params())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            blind = fit(self.crowd, method, use_gold=False)
        return blind.calibrate("estimate" if prevalence == "gold" else prevalence).score

    def decide(
        self,
        decide: Rule | str | None = None,
        *,
        costs: Costs | None = None,
        min_recall: Mapping[Any, float] | None = None,
        cap: float | None = None,
        abstain_below: float | None = None,
        prevalence: Shares = "estimate",
        random_gold: bool = False,
        calibrate: bool = False,
        allow_unvoted: bool = False,
    ) -> Result:
        """One answer per task: the method's own decision unless another one is asked for.

        A label that nobody voted for on the task is never given (gold excepted), unless ``allow_unvoted``. Where the
        crowd cannot tell who is right, the votes themselves come back, with a warning.

        Args:
            decide: a rule, or its name: "argmax", "balanced", "balanced:5".
            costs: decide by least expected cost; see :func:`rarevote.meaning.costs.cost_matrix`.
            min_recall: flag as many tasks as a recall of one class is expected to need, such as ``{"defect": 0.95}``.
            cap: decide balanced, a miss counting at most as so many false alarms.
            abstain_below: no label where its calibrated probability is below this.
            prevalence: as in :meth:`calibrate`.
            random_gold: whether the gold labels are a random sample of the tasks, so that they can promise a recall.
            calibrate: sample calibrated probabilities, with intervals, even if the decision needs none.
            allow_unvoted: let a label be one that nobody voted for on the task.

        Raises:
            ParameterError: two ways to decide at once, names that are no class, or numbers out of range.
        """
        own = parse_rule(self.method.own_decision)
        rule = rule_of(
            decide,
            costs=costs,
            min_recall=min_recall,
            cap=cap,
            abstain_below=abstain_below,
            random_gold=random_gold,
            own=own,
        )
        rule.check(self.annotations.classes)
        wanted = calibrate or rule.calibrates or self.reports_probabilities or prevalence != "estimate"
        calibrated = self.calibrate(prevalence, sampled=calibrate) if wanted else None
        if calibrated is not None and rule.vouched and self.gold:
            calibrated = replace(calibrated, score=self._blind_score(prevalence))
        basis = Basis(self.method.label_codes(), self.probabilities, self.annotations.votes(), calibrated)
        if own != Argmax():
            basis = replace(basis, likeliest=best_allowed(basis.probabilities, basis))
        known = gold_codes(self.annotations, self.gold)
        guarded = guarded_choice(
            self.annotations,
            rule,
            basis,
            known,
            method=self.method.method_name,
            rare=self.rare,
            allow_unvoted=allow_unvoted,
        )
        for message in guarded.warnings:
            warn_user(message)
        return Result(self, rule, calibrated=calibrated, is_own=rule == own, **guarded._asdict())

    def diagnose(self, result: Result | None = None, truth: Any = None) -> Diagnosis:
        """What the fit says about annotators, items and classes."""
        from rarevote.meaning.diagnose import diagnose

        return diagnose(
            self.method,
            calibration=(None if result is None else result.calibrated) or self.calibrate(),
            labels=None if result is None else result.codes,
            rare=self.rare_name,
            truth=None if truth is None else self.crowd.known(truth),
            gold=self.gold,
            models=self.crowd.models,
        )

    def check(self, result: Result | None = None, *, progress: Callable[[int], None] | None = None) -> Check:
        """Whether the labels may be used: can the crowd answer, does the model fit, when not to trust it.

        Args:
            result: the decision to check; the method's own if not given.
            progress: called with how many of the 200 replicates are done so far.
        """
        from rarevote.meaning.check import check_fit

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RarevoteWarning)  # the same is among the findings
            decided = self.decide() if result is None else result
        return check_fit(
            self.method,
            decided.calibrated or self.calibrate(),
            decided.codes,
            rare=self.rare,
            models=self.crowd.models,
            progress=progress,
        )

    def explain(self, task: Any, *, calibrate: bool = False, label: int | None = None) -> Explanation:
        """Why a task got its label, vote by vote.

        Args:
            task: named as it is in the data, or as a person types it.
            calibrate: whether calibrated probabilities are wanted beside the posterior.
            label: number of the class that it got, where that is not the method's own label.
        """
        from rarevote.meaning.explain import explain, find_task

        number = find_task(self.annotations, task, self.crowd.title)
        name = self.annotations.tasks[[number]].tolist()[0]
        calibration = self.calibrate() if calibrate else None
        return explain(self.method, name, gold=self.gold, calibration=calibration, label=label)

    def audit(
        self, name: Any, target: Share = 0.9, *, confidence: Share = 0.95, flag_cost: float = 1.0,
        aim: Aim = "certificate", budget: int | None = None, seed: int | None = None, only_voted_items: bool = False,
    ) -> Audit:  # fmt: skip
        """Prove a recall of a class with few expert reviews; see :meth:`rarevote.meaning.audit.Audit.start`."""
        from rarevote.meaning.audit.of_fit import audit_of_fit as start

        return start(
            self, name, target, confidence=confidence, flag_cost=flag_cost, aim=aim, budget=budget, seed=seed,
            only_voted_items=only_voted_items,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return str(self.method._repr_html_())

    def save(self, path: str | Path) -> None:
        """Write what was learned about the workers, for new tasks: see :func:`rarevote.load`."""
        self.method.save(path)
