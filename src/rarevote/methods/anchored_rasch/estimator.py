"""The estimator of Anchored Rasch, the calibrated variant of CC-Rasch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import check_count, check_number
from rarevote.crowd.numerics import FloatArray, IntArray, sigmoid
from rarevote.decide.balanced import Balanced
from rarevote.decide.rules import Rule
from rarevote.em.engine import Run
from rarevote.em.loop import Progress, StoppingRule
from rarevote.em.model import CrowdFacts, Gold
from rarevote.errors import ParameterError
from rarevote.features.join import ItemFeatures
from rarevote.features.prior import feature_prior
from rarevote.features.record import FeatureRecord
from rarevote.methods.anchored_rasch.base import NO_PRIOR, Anchored, ReportedFit, widened
from rarevote.methods.anchored_rasch.model import AnchoredModel, AnchoredShared, Anchors, log_off_diagonal
from rarevote.methods.anchored_rasch.with_features import (
    FeatureFit,
    FeatureOutcome,
    ItemPriorModel,
    evidence_of,
    report_items,
)
from rarevote.methods.base import Request, fitted_result
from rarevote.methods.evidence import Evidence
from rarevote.methods.parameters import state_dtype
from rarevote.methods.vote_model import SomeVotes, VoteModel, drawn

# The largest table with a number per worker, label and class; a fit holds about ten of them.
_MAX_TABLE_BYTES = 4e9


@dataclass(eq=False, repr=False)
class AnchoredRasch(Anchored):
    """Class-conditional abilities around anchors: calibrated probabilities and few false alarms.

    Every annotator has an ability per class and a distribution of errors, both drawn towards anchors that are counted
    once from the shares of the votes; the difficulty of an item is integrated out::

        P(worker r is right on an item of class k and difficulty x) = sigmoid(alpha_rk - s x),     x ~ N(0, 1)
        P(worker r says l instead) = (1 - that) e_rkl
        alpha_rk ~ N(mu_k, sigma^2),   e_rk drawn to e_k with the weight of tau votes;   mu, e and the class prior fixed

    The fixed class prior prevents classes from dying out. The fit's posterior is :attr:`posterior_`. The *reported*
    probabilities (:attr:`reported_`, :attr:`probas_`) allow for correlated errors and for lapses; they need no
    further calibration. Labels are *decided* by the balanced rule: a miss is weighted by how rare the class is, up to
    ``cap`` false alarms, among the classes with votes.

    The reported share of a rare class is about its share of the votes, which contains the false alarms: a prevalence
    needs gold. Memory: about ten tables of ``n_workers * n_classes**2`` numbers.

    Args:
        n_iter: the largest number of EM iterations.
        tol: stop when no posterior probability changes by this much (and the objective stops rising); 0 never stops.
        sigma: spread of abilities around their anchors.
        spread: spread ``s`` of difficulties; None for ``1 / K``.
        tau: strength of the anchors of errors, and number of votes at which a worker has half of the full weight in
            anchors.
        n_nodes: Gauss-Hermite nodes of the difficulty.
        rho: discount of further votes on an item in the report.
        lapse: weight of the class shares in the report.
        cap: a miss counts as at most this many false alarms: 5 for precision, 20 if nothing must be missed.
        anchor_accuracy: the value that the accuracies of the anchors are drawn to.
        anchor_weight: the strength of ``anchor_accuracy``, in workers.
        anchor_errors: the strength of uniform errors in the anchors, in workers.
        rho_a: discount of further votes on an item in the anchors.
        accelerate: extrapolate every second step (SQUAREM) if that raises the objective; the optimum is the same.
        dtype: "float64", or "float32" for probabilities that take half the memory.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote import AnchoredRasch
        >>> said = ["ddd", "dds", "ssd", *["sss"] * 9]  # by three people: defect or sound
        >>> task = [i for i in range(12) for _ in range(3)]
        >>> model = AnchoredRasch().fit((task, ["ann", "bob", "cy"] * 12, list("".join(said))))
        >>> "".join(model.labels_.to_dict().values())
        'ddssssssssss'
        >>> model.reported_[:4, 0].round(2).tolist()
        [0.82, 0.51, 0.11, 0.03]
    """

    method_name: ClassVar[str] = "anchored-rasch"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "wkk": 7, "vk": 15}
    takes_unseen_workers: ClassVar[bool] = True
    worker_table: ClassVar[str | None] = "abilities_"
    saved_arrays: ClassVar[Mapping[str, str]] = {
        "prior": "k:share",
        "mean_ability": "k",
        "mean_errors": "kk:p",
        "ability": "wk",
        "errors": "wkk:p",
        "shares": "k:share",
    }

    n_iter: int = 300
    _: KW_ONLY
    tol: float = 1e-4
    sigma: float = 0.6
    spread: float | None = None
    tau: float = 8.0
    n_nodes: int = 5
    rho: float = 0.2
    lapse: float = 0.05
    cap: float = 10.0
    anchor_accuracy: float = 0.7
    anchor_weight: float = 1.0
    anchor_errors: float = 2.0
    rho_a: float = 0.05
    accelerate: bool = True
    dtype: str = "float64"
    n_jobs: int | None = None

    def _validate(self, crowd: CrowdFacts) -> None:
        self._validate_anchored("sigma")
        if self.spread is not None:
            check_number("spread", self.spread, at_least=0)
        check_count("n_nodes", self.n_nodes)
        check_number("cap", self.cap, at_least=1)
        n_workers, n_classes = crowd.n_workers, crowd.n_classes
        size = 8.0 * n_workers * n_classes * max(n_classes, self.n_nodes)
        if size > _MAX_TABLE_BYTES:
            raise ParameterError(
                f"{n_workers:,} workers and {n_classes:,} classes make tables of {size / 1e9:.1f} GB, more than the "
                f"{_MAX_TABLE_BYTES / 1e9:.0f} GB that {type(self).__name__} allows (a fit holds about ten of them): "
                "choose cc-rasch (CCRasch), which needs no table per pair of classes, or merge classes"
            )

    # -- the fit -----------------------------------------------------------------------------------------------------

    def _model(self, anchors: Anchors, n_workers: int, classes: NDArray[Any] | None = None) -> AnchoredModel:
        n_classes = len(anchors.log_prior)
        return AnchoredModel(
            n_workers,
            anchors,
            float(self.sigma),
            1.0 / n_classes if self.spread is None else float(self.spread),
            float(self.tau),
            int(self.n_nodes),
            state_dtype(self.dtype),
        )

    def _refitted(
        self, request: Request, model: AnchoredModel, found: ReportedFit, rule: StoppingRule
    ) -> tuple[ReportedFit, FeatureOutcome | None]:
        """The fit with priors from the features of the items, if there are features and they predict votes."""
        if request.features is None:
            return found, None
        again = self._with_features(request, model, found.run, rule)
        if again.outcome.record.used:
            found = ReportedFit(again.run, again.shares, again.reported)
        return found, again.outcome

    def _with_features(self, request: Request, model: AnchoredModel, run: Run, rule: StoppingRule) -> FeatureFit:
        """Add the features of the items to a votes-only fit."""
        features, crowd = request.features, request.annotations
        assert features is not None
        gold = _gold_of_all(features, crowd, request.gold)
        votes_only = run.outcome.shared
        evidence = evidence_of(model, votes_only, run.posterior, crowd, gold)
        callback = request.callback

        def report(done: int, most: int, change: float) -> None:
            if callback is not None:
                callback(Progress(done, most, float("nan"), change, "features"))

        found = feature_prior(features, evidence, features.settings, crowd.classes.tolist(), report)
        n_tasks = crowd.n_tasks
        if not found.record.used:
            return FeatureFit(FeatureOutcome(found, gold[n_tasks:], np.empty((0, 0)), np.empty((0, 0))), run)
        offsets = np.log(found.priors[:n_tasks]) - model.anchors.log_prior
        again = ItemPriorModel.of(model, begin=votes_only, offsets=offsets, task_ptr=crowd.task_ptr)
        run = self._em(replace(request, checkpoint=None), again, rule, accelerate=self.accelerate, is_last=False)
        shared = run.outcome.shared
        likelihood = evidence_of(model, shared, run.posterior, crowd, gold).log_likelihood
        whole = report_items(
            likelihood,
            found.priors,
            evidence.prior,
            evidence.n_votes,
            found.has_row,
            gold,
            discount=float(self.rho),
            lapse=float(self.lapse),
        )
        outcome = FeatureOutcome(found, gold[n_tasks:], whole.p[n_tasks:], whole.posterior[n_tasks:])
        return FeatureFit(outcome, run, whole.shares, whole.p[:n_tasks].astype(model.dtype, copy=False))

    def _known(
        self, model: AnchoredModel, shared: AnchoredShared, kept: IntArray, n_classes: int
    ) -> dict[str, FloatArray]:
        """Fitted arrays over all classes; a class without votes has the values of anchors without data."""
        anchors = model.anchors
        own = np.arange(len(kept))
        errors = np.exp(shared.log_errors)
        errors[:, own, own] = 0.0
        if len(kept) == n_classes:
            return {
                "prior": np.exp(anchors.log_prior),
                "mean_ability": anchors.ability,
                "mean_errors": anchors.errors,
                "ability": shared.ability,
                "errors": errors,
            }
        unmet = float(np.log(self.anchor_accuracy) - np.log1p(-self.anchor_accuracy))
        uniform = (1.0 - np.eye(n_classes)) / (n_classes - 1)
        uniform[:, kept] = 0.0
        mean_errors = uniform.copy()
        mean_errors[np.ix_(kept, kept)] = anchors.errors
        all_errors = np.broadcast_to(uniform, (len(errors), n_classes, n_classes)).copy()
        all_errors[np.ix_(np.arange(len(errors)), kept, kept)] = errors
        return {
            "prior": widened(np.exp(anchors.log_prior)[None], kept, n_classes)[0],
            "mean_ability": widened(anchors.ability[None], kept, n_classes, unmet)[0],
            "mean_errors": mean_errors,
            "ability": widened(shared.ability, kept, n_classes, unmet),
            "errors": all_errors,
        }

    def _held(self, kept: IntArray, worker: IntArray) -> tuple[AnchoredModel, AnchoredShared]:
        """The fitted model on its classes, and the parameters of these workers; worker -1 is at the anchors."""
        anchors = Anchors(
            np.log(self._parameter("prior")[kept]),
            self._parameter("mean_ability")[kept],
            self._parameter("mean_errors")[np.ix_(kept, kept)],
        )
        model = self._model(anchors, len(worker))
        unseen = worker < 0
        ability = self._parameter("ability")[np.ix_(worker, kept)]
        log_errors = log_off_diagonal(self._parameter("errors")[np.ix_(worker, kept, kept)])
        average = model.at_anchors(1)
        ability[unseen], log_errors[unseen] = average.ability, average.log_errors
        return model, AnchoredShared(ability, log_errors)

    # -- new tasks, decisions, evidence ------------------------------------------------------------------------------

    @property
    def own_decision(self) -> str:  # type: ignore[override]
        """The rule behind ``labels_``."""
        return f"balanced:{self.cap:g}"

    def own_rule(self) -> Rule:
        """The balanced rule with the cap."""
        return Balanced(float(self.cap))

    @property
    def _free(self) -> NDArray[np.bool_] | None:
        """Tasks whose label needs no vote, because it can come from features."""
        outcome = self.feature_outcome
        return None if outcome is None else outcome.free[: self.annotations_.n_tasks]

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        """Each vote's log likelihood with the node weights of the item held fixed.

        Under quadrature the votes on an item are not independent: each carries information about its difficulty. With
        ``a_gk = A_ikg / q_ik`` computed from all votes, vote ``j`` has ``sum_g a_gk log P_g(y_j | k)``, less an
        equal part of ``KL(a_k || w)``, the cost of that information; only then do the contributions add up to the
        posterior of the fit, which has neither discount nor lapses.
        """
        n_classes = self.annotations_.n_classes
        kept = self._kept
        model, shared = self._held(kept, worker)
        log_odds = model.log_odds(shared.ability)  # (v, K, G)
        code = np.searchsorted(kept, label)
        said = shared.log_errors[np.arange(len(worker)), code]
        is_right = code[:, None] == np.arange(len(kept))
        log_wrong = -np.logaddexp(0.0, log_odds)
        of_nodes = log_wrong + np.where(is_right[..., None], log_odds, said[..., None])
        joint = np.log(model.weights) + of_nodes.sum(axis=0)  # (K, G)
        joint -= joint.max(axis=1, keepdims=True)
        weights = np.exp(joint)
        weights /= weights.sum(axis=1, keepdims=True)
        told = np.where(weights > 0, weights, 1.0)
        cost = (weights * (np.log(told) - np.log(model.weights))).sum(axis=1)
        of_votes = (weights * of_nodes).sum(axis=2) - cost / max(len(worker), 1)
        return Evidence(
            log_prior=np.log(np.maximum(self._parameter("prior"), NO_PRIOR)),
            of_votes=widened(of_votes, kept, n_classes),
            ability=sigmoid(self._parameter("ability")[worker]),
            difficulty=widened((weights @ model.nodes)[None], kept, n_classes)[0] if len(worker) else None,
            of_features=self._said_by_features(task),
        )

    def _said_by_features(self, item: int) -> FloatArray | None:
        """The log prior of an item relative to the class prior, (n_classes); None if its features are not used."""
        outcome = self.feature_outcome
        if outcome is None or not outcome.record.used or not outcome.found.has_row[item]:
            return None
        prior = np.maximum(self._parameter("prior"), NO_PRIOR)
        return np.asarray(np.log(np.maximum(outcome.priors[item], NO_PRIOR)) - np.log(prior))

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        """Votes drawn from the abilities and errors, with the node of each task's difficulty drawn given the votes."""
        model, _ = self._held(self._kept, np.empty(0, dtype=np.int64))
        ability, errors, nodes = self._parameter("ability"), self._parameter("errors"), model.nodes
        every = np.arange(len(votes.task))
        joint = np.empty((len(votes.tasks), votes.n_classes, len(nodes)))
        for g, (node, weight) in enumerate(zip(nodes, model.weights, strict=True)):
            # The distribution of errors is the same at every node, so it carries no information about the difficulty.
            of_vote = -np.logaddexp(0.0, ability - node)[votes.worker]
            of_vote[every, votes.label] = -np.logaddexp(0.0, node - ability)[votes.worker, votes.label]
            joint[:, :, g] = np.log(weight) + votes.sums(of_vote)
        joint -= joint.max(axis=2, keepdims=True)
        n, K, G = joint.shape
        below = np.cumsum(np.exp(joint), axis=2).reshape(n * K, G)
        # The probability of a right vote takes few values, which are computed once.
        chances = sigmoid(ability[:, :, None] - nodes).ravel()
        of_worker, of_task = votes.worker * (K * G), np.arange(n) * K

        def right(truth: IntArray, rng: np.random.Generator) -> FloatArray:
            node = drawn(below, rng, of_task + truth)
            return np.asarray(chances.take(of_worker + votes.of_votes(truth * G + node)))

        return VoteModel(votes, self.posterior_, right, lambda worker, z: errors[worker, :, z])

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def features_(self) -> FeatureRecord | None:
        """How the features were used; None if there are none."""
        outcome = self.feature_outcome
        return None if outcome is None else outcome.record

    @property
    def prior_(self) -> NDArray[Any]:
        """The prior of every item, (n_items, n_classes): the class prior if the item has no features that are used."""
        outcome, crowd = self.feature_outcome, self.annotations_
        if outcome is not None:
            return outcome.priors
        n_items = crowd.n_tasks + len(crowd.unanswered)
        return np.broadcast_to(self._parameter("prior"), (n_items, crowd.n_classes))

    @fitted_result
    def abilities_(self) -> Any:
        """Ability of every annotator per class, on the logit scale: a frame worker x class."""
        return self._worker_by_class(self._parameter("ability"))

    @fitted_result
    def errors_(self) -> Any:
        """Errors of workers: rows (worker, label given), columns true classes, P(label | worker, true class, wrong).

        The layout is that of Dawid–Skene. A right answer is not an error: the diagonal is 0, and within a worker each
        column sums to one. ``sigmoid`` of :attr:`abilities_` is the probability of being right on an item of average
        difficulty.
        """
        return self._worker_label_by_class(self._parameter("errors"))


def _gold_of_all(features: ItemFeatures, crowd: Annotations, gold: Gold) -> Gold:
    """Known class of every item, with and without votes, or -1."""
    known = np.full(crowd.n_tasks + len(crowd.unanswered), -1, dtype=np.int32)
    known[: len(gold)] = gold
    code = {name: k for k, name in enumerate(crowd.classes.tolist())}
    for item, label in features.gold.items():
        known[item] = code.get(label, -1)
    return known
