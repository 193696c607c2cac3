"""The estimator of Anchored Ordered: ordered grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades, order_wanted
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.em.model import CrowdFacts
from rarevote.errors import ParameterError
from rarevote.io.tables import Table
from rarevote.methods.anchored_ordered.model import HABIT, HIT, LEAN, NEAR, OrderedModel, OrderedShared
from rarevote.methods.anchored_rasch.base import NO_PRIOR, Anchored, widened
from rarevote.methods.anchored_rasch.model import Anchors
from rarevote.methods.base import fitted_result
from rarevote.methods.evidence import Evidence
from rarevote.methods.parameters import state_dtype
from rarevote.methods.vote_model import SomeVotes, VoteModel


@dataclass(eq=False, repr=False)
class AnchoredOrdered(Anchored):
    """Ordered grades: annotators confuse neighbouring grades, and lean high or low.

    Every annotator tilts the crowd's confusions ``B``, which are counted once from the shares of the votes::

        P(worker r says l | grade k) ~ B_kl exp(hit_r [l = k] - near_r (x_k - x_l)^2 + lean_r (x_l - xbar) + habit_rl)
        hit ~ N(mu_h, sigma_hit^2),  near ~ N(mu_n, sigma_near^2),  lean ~ N(0, ...),  habit ~ N(0, ...),  mu ~ N(0, 1)

    with ``x`` the positions of the grades, 0, 1, 2, ... A class that ``ordered`` does not name ("can't tell") is
    outside the scale: equally far from all grades. A grade without votes keeps its position.

    The *reported* probabilities (:attr:`reported_`, :attr:`probas_`) allow for correlated errors and for
    lapses. Labels are *decided* by the levelled median (:class:`~rarevote.decide.ordered.Levelled`), between the lowest
    and the highest grade voted on the item. Equal steps between grades are assumed.

    Args:
        n_iter: the largest number of EM iterations.
        ordered: the grades from lowest to highest, 3 to 20 of them; also text such as "low,medium,high" or "1..5".
        tol: stop when no posterior probability changes by this much (and the objective stops rising); 0 never stops.
        sigma_hit: spread of how often annotators are exact, around its mean.
        sigma_near: spread of how near to the true grade they stay, around its mean.
        sigma_lean: spread of how high or low they rate.
        sigma_habit: spread of how much they favour single answers.
        rho: discount of further votes on an item in the report.
        lapse: weight of the class shares in the report.
        tau: number of votes at which a worker has half of the full weight in anchors.
        anchor_accuracy: the value that the accuracies of the anchors are drawn to.
        anchor_weight: the strength of ``anchor_accuracy``, in workers.
        anchor_errors: the strength of uniform errors in the anchors, in workers.
        rho_a: discount of further votes on an item in the anchors.
        dtype: "float64", or "float32" for probabilities that take half the memory.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote import AnchoredOrdered
        >>> said = "1121 2232 3342 4443 1221 2331 3344 4341".split()  # by four people about eight items
        >>> task = [i for i in range(8) for _ in range(4)]
        >>> model = AnchoredOrdered(ordered="1..4").fit((task, list("abcd") * 8, list("".join(said))))
        >>> "".join(model.labels_.to_dict().values())
        '12341233'
    """

    method_name: ClassVar[str] = "anchored-ordered"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "wkk": 5, "vk": 8}
    takes_unseen_workers: ClassVar[bool] = True
    worker_table: ClassVar[str | None] = "leans_"
    saved_arrays: ClassVar[Mapping[str, str]] = {
        "prior": "k:share",
        "mean_ability": "k",
        "mean_errors": "kk:p",
        "mean_hit": "c",
        "mean_near": "c",
        "hit": "w",
        "near": "w",
        "lean": "w",
        "habit": "wk",
        "shares": "k:share",
    }
    own_decision = "levelled"

    n_iter: int = 500
    _: KW_ONLY
    ordered: Sequence[Any] | str | None = None
    tol: float = 1e-4
    sigma_hit: float = 1.0
    sigma_near: float = 0.3
    sigma_lean: float = 0.7
    sigma_habit: float = 0.3
    rho: float = 0.3
    lapse: float = 0.05
    tau: float = 8.0
    anchor_accuracy: float = 0.7
    anchor_weight: float = 1.0
    anchor_errors: float = 2.0
    rho_a: float = 0.05
    dtype: str = "float64"
    n_jobs: int | None = None

    @property
    def grades(self) -> Grades:
        """The order of the grades.

        Raises:
            ParameterError: no order is given, or it is not valid.
        """
        if self.ordered is None:
            raise ParameterError(f"anchored-ordered needs the order of the grades: give {order_wanted()}")
        return Grades.of(self.ordered)

    def _validate(self, crowd: CrowdFacts) -> None:
        self._validate_anchored("sigma_hit", "sigma_near", "sigma_lean", "sigma_habit")
        self.grades.positions(crowd.classes)

    # -- the fit -----------------------------------------------------------------------------------------------------

    def _model(self, anchors: Anchors, n_workers: int, classes: NDArray[Any]) -> OrderedModel:
        spreads = (float(self.sigma_hit), float(self.sigma_near), float(self.sigma_lean), float(self.sigma_habit))
        return OrderedModel(n_workers, anchors, self.grades.positions(classes), spreads, state_dtype(self.dtype))

    def _known(
        self, model: OrderedModel, shared: OrderedShared, kept: IntArray, n_classes: int
    ) -> dict[str, FloatArray]:
        """Fitted arrays over all classes; 0 for a class without votes."""
        anchors, theta = model.anchors, shared.theta
        mean_errors = np.zeros((n_classes, n_classes))
        mean_errors[np.ix_(kept, kept)] = anchors.errors
        return {
            "prior": widened(np.exp(anchors.log_prior)[None], kept, n_classes)[0],
            "mean_ability": widened(anchors.ability[None], kept, n_classes)[0],
            "mean_errors": mean_errors,
            "mean_hit": shared.mean[HIT : HIT + 1],
            "mean_near": shared.mean[NEAR : NEAR + 1],
            "hit": theta[:, HIT],
            "near": theta[:, NEAR],
            "lean": theta[:, LEAN],
            "habit": widened(theta[:, HABIT:], kept, n_classes),
        }

    def _held(self, kept: IntArray, worker: IntArray) -> tuple[OrderedModel, OrderedShared]:
        """The fitted model on its classes, and the parameters of these workers; worker -1 is the average worker."""
        anchors = Anchors(
            np.log(self._parameter("prior")[kept]),
            self._parameter("mean_ability")[kept],
            self._parameter("mean_errors")[np.ix_(kept, kept)],
        )
        model = self._model(anchors, len(worker), self.classes_[kept])
        mean = np.concatenate([self._parameter("mean_hit"), self._parameter("mean_near")])
        own = [self._parameter(name)[worker] for name in ("hit", "near", "lean")]
        theta = np.column_stack([*own, self._parameter("habit")[np.ix_(worker, kept)]])
        theta[worker < 0] = model.means(mean)
        return model, OrderedShared(theta, mean)

    # -- decisions, evidence -----------------------------------------------------------------------------------------

    def _vote_chances(self, worker: IntArray) -> FloatArray:
        """``P_r(l | k)`` of these workers: worker, label, class, (m, K, K); 0 for classes without votes."""
        kept, K = self._kept, self.annotations_.n_classes
        model, shared = self._held(kept, worker)
        chances = np.zeros((len(worker), K, K))
        chances[np.ix_(np.arange(len(worker)), kept, kept)] = np.exp(model.tables(shared).of_vote)
        return chances

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        """Each vote's log probability: votes are independent given the class, so contributions add up exactly."""
        chances = self._vote_chances(worker)
        own = np.arange(chances.shape[1])
        said = chances[np.arange(len(worker)), label]
        return Evidence(
            log_prior=np.log(np.maximum(self._parameter("prior"), NO_PRIOR)),
            of_votes=np.log(np.where(said > 0, said, 1.0)),
            ability=chances[:, own, own],
        )

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        """Votes drawn from the fitted probabilities."""
        chances = self._vote_chances(np.arange(self.annotations_.n_workers))

        def right(truth: IntArray, rng: np.random.Generator) -> FloatArray:
            z = truth[votes.task]
            return np.asarray(chances[votes.worker, z, z])

        return VoteModel(votes, self.posterior_, right, lambda worker, z: chances[worker, :, z])

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def nearness_(self) -> float:
        """``mu_n``: how much more neighbouring grades are confused than distant ones; 0 if the order adds nothing."""
        return float(self._parameter("mean_near")[0]) if self._result.parameters else np.nan

    def order_figures(self) -> dict[str, Any]:
        """The nearness."""
        return {"nearness": self.nearness_}

    def relative_leans(self) -> FloatArray | None:
        """Each worker's lean relative to the crowd's median, in grades: a lean of the whole crowd does not count."""
        lean, _ = self._leans()
        return np.asarray(lean - np.median(lean)) if len(lean) else None

    @fitted_result
    def leans_(self) -> Any:
        """For each worker, ``lean``: mean grades above (or below) the true one, and ``exactness``: P(the true grade).

        Both are means over the grades of the scale, weighted by their prior.
        """
        lean, exactness = self._leans()
        crowd, source = self.annotations_, self._fitted.source
        names = {"worker": crowd.workers[: len(lean)]}
        return source.deliver(Table(names, {"lean": lean, "exactness": exactness}, dtypes=source.dtypes))

    def _leans(self) -> tuple[FloatArray, FloatArray]:
        """Lean and exactness of every worker, (m) each; empty if nothing was fitted."""
        crowd = self.annotations_
        lean = exactness = np.empty(0)
        if self._result.parameters:
            x = self.grades.positions(crowd.classes)
            inside = np.flatnonzero(np.isfinite(x) & (self._parameter("prior") > 0))
            chances = self._vote_chances(np.arange(crowd.n_workers))[:, inside][:, :, inside]
            chances /= chances.sum(axis=1, keepdims=True)
            prior = self._parameter("prior")[inside] / self._parameter("prior")[inside].sum()
            place, own = x[inside], np.arange(len(inside))
            lean = (((chances * place[:, None]).sum(axis=1) - place) * prior).sum(axis=1)
            exactness = (chances[:, own, own] * prior).sum(axis=1)
        return lean, exactness
