"""The contenders of the study of features: each turns votes and features into probabilities and labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from rarevote.api import fit
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.balanced import DEFAULT_CAP, balance_weights
from rarevote.errors import MissingExtraError, ParameterError, RarevoteWarning, need_library
from rarevote.features.ridge import folds_of
from rarevote.features.settings import FeatureSettings
from rarevote.scoring import ranking
from rarevote.scoring.metrics import score
from rarevote.study.feature_sets import FeaturedCrowd
from rarevote.study.peers.ccgpfl import need_jax
from rarevote.study.peers.crowdlab import NEEDS, crowdlab
from rarevote.study.peers.raykar import joint_em, logistic_regression, predicted


class FeatureAnswer(NamedTuple):
    """The answer of a contender.

    Attributes:
        p: probability of every class, (n, K).
        codes: its own labels, -1 for none, (n).
        used: whether it used the features.
    """

    p: FloatArray
    codes: IntArray
    used: bool = True


Answers = dict[str, FeatureAnswer]


@dataclass(frozen=True)
class FeatureContender:
    """A way to use votes and features.

    Attributes:
        name: name on the command line.
        titles: titles of its answers, by name: one run can give two.
        run: turns a crowd and a seed into answers.
        is_random: whether it depends on the seed.
        need: raises an error if its library is not installed.
        settings: its parameters, if it has any.
    """

    name: str
    titles: dict[str, str]
    run: Callable[[FeaturedCrowd, int], Answers]
    is_random: bool = False
    need: Callable[[], None] = lambda: None
    settings: Callable[[], dict[str, Any]] = dict


def _ours(name: str, given: Callable[[FeaturedCrowd], dict[str, Any]]) -> Callable[[FeaturedCrowd, int], Answers]:
    def run(crowd: FeaturedCrowd, seed: int) -> Answers:
        del seed  # a fit uses no random numbers
        task, worker, label = crowd.votes
        names = np.array(crowd.classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RarevoteWarning)
            fitted = fit((crowd.tasks[task], worker, names[label]), **given(crowd))
            result = fitted.decide()
        # Every item has a vote, so only the order and the classes without votes can differ from the crowd.
        place = {str(task): number for number, task in enumerate(crowd.tasks.tolist())}
        row = np.array([place[str(task)] for task in result.tasks.tolist()])
        own = np.array([crowd.classes.index(str(one)) for one in fitted.annotations.classes.tolist()])
        p, codes = np.zeros((len(crowd.tasks), len(names))), np.empty(len(crowd.tasks), dtype=np.int64)
        p[row[:, None], own] = fitted.probabilities
        codes[row] = np.where(result.codes >= 0, own[result.codes], -1)
        record = fitted.features_
        return {name: FeatureAnswer(p, codes, record is not None and record.used)}

    return run


def out_of_sample(crowd: FeaturedCrowd) -> FloatArray:
    """Probabilities of a classifier that never saw the votes on an item, as many users have, (n, K).

    A logistic regression on the shares of the votes, in five folds; a class without votes gets a probability near 0.
    """
    settings = FeatureSettings()
    fold = folds_of([crc32(str(task).encode()) for task in crowd.tasks.tolist()], settings.folds)
    shares = crowd.counts / crowd.counts.sum(axis=1, keepdims=True)
    x = crowd.standardised
    found = np.zeros_like(shares)
    for f in range(settings.folds):
        rest = fold != f
        slopes = logistic_regression(x[rest], shares[rest], float(x.shape[1]))
        found[~rest] = predicted(x[~rest], slopes)
    return np.asarray(found)


def _predictions(crowd: FeaturedCrowd) -> dict[str, Any]:
    return {"pred_probs": (crowd.tasks, out_of_sample(crowd), crowd.classes)}


def _raykar(crowd: FeaturedCrowd, seed: int) -> Answers:
    del seed  # it starts from the votes
    return {"raykar": _by_probability(joint_em(crowd.standardised, crowd.votes, len(crowd.classes)))}


def _crowdlab(crowd: FeaturedCrowd, seed: int) -> Answers:
    del seed
    return {"crowdlab": _by_probability(crowdlab(crowd.votes, out_of_sample(crowd)))}


def _need_cleanlab() -> None:
    need_library("cleanlab", NEEDS)


def _ccgpfl_settings() -> dict[str, Any]:
    from rarevote.study.peers.ccgpfl.estimator import CCGPFL

    return asdict(CCGPFL())


def _ccgpfl(crowd: FeaturedCrowd, seed: int) -> Answers:
    from rarevote.study.peers.ccgpfl.estimator import CCGPFL

    x = crowd.standardised
    fitted = CCGPFL(seed=seed).fit(x, crowd.votes, len(crowd.classes), crowd.n_workers)
    return {
        "ccgpfl": _by_probability(fitted.predict(x)),
        "ccgpfl-votes": _by_probability(fitted.predict_with_votes(x, crowd.votes)),
    }


def _by_probability(p: FloatArray) -> FeatureAnswer:
    return FeatureAnswer(p, p.argmax(axis=1))


#: in the order of tables
CONTENDERS: dict[str, FeatureContender] = {
    one.name: one
    for one in (
        FeatureContender("votes", {"votes": "Votes only"}, _ours("votes", lambda crowd: {})),
        FeatureContender(
            "features",
            {"features": "Votes and features"},
            _ours("features", lambda crowd: {"features": (crowd.tasks, crowd.features)}),
        ),
        FeatureContender("pred-probs", {"pred-probs": "Votes and pred_probs"}, _ours("pred-probs", _predictions)),
        FeatureContender("raykar", {"raykar": "Raykar's joint EM"}, _raykar),
        FeatureContender("crowdlab", {"crowdlab": "CROWDLAB"}, _crowdlab, need=_need_cleanlab),
        FeatureContender(
            "ccgpfl",
            {"ccgpfl": "CCGPFL", "ccgpfl-votes": "CCGPFL with the item's votes (our variant)"},
            _ccgpfl,
            is_random=True,
            need=need_jax,
            settings=_ccgpfl_settings,
        ),
    )
}
#: titles of all answers
TITLES = {name: title for one in CONTENDERS.values() for name, title in one.titles.items()}


def choose_contenders(names: list[str] | None) -> tuple[list[FeatureContender], list[str]]:
    """The contenders that are named, or all whose libraries are installed; and why the others are left out.

    Raises:
        ParameterError: a name is not a contender.
        MissingExtraError: a named contender needs a library that is not installed.
    """
    unknown = [name for name in names or () if name not in CONTENDERS]
    if unknown:
        raise ParameterError(f"{unknown[0]!r} is not a contender: choose among {', '.join(CONTENDERS)}")
    chosen, reasons = [], []
    for name in names or CONTENDERS:
        try:
            CONTENDERS[name].need()
        except MissingExtraError as error:
            if names is not None:
                raise
            reasons.append(str(error))
        else:
            chosen.append(CONTENDERS[name])
    return chosen, reasons


def marks_of(answer: FeatureAnswer, crowd: FeaturedCrowd) -> dict[str, Any]:
    """Figures of an answer on the items with truth; the rare class is the rarest of the truth.

    ``flags_90_per_item`` counts the highest-ranked items that hold 90% of the class, per item that has it.
    ``balanced_accuracy`` is that of the contender's own labels, ``balanced_accuracy_same_rule`` that of labels by one
    rule on its probabilities, the same rule for all: ``balanced`` with its default cap.
    """
    known = crowd.truth >= 0
    p, truth, rare = answer.p[known], crowd.truth[known], crowd.rare
    is_rare = truth == rare
    weighed = p * balance_weights(answer.p.mean(axis=0), DEFAULT_CAP)
    return {
        "average_precision": ranking.average_precision(p[:, rare], is_rare),
        "log_loss": ranking.log_loss_of(p, truth),
        "balanced_accuracy": score(truth, answer.codes[known], unanswered=-1).balanced_accuracy,
        "balanced_accuracy_same_rule": score(truth, weighed.argmax(axis=1)).balanced_accuracy,
        "flags_90_per_item": ranking.flags_needed(p[:, rare], is_rare, (0.9,))[0] / int(is_rare.sum()),
    }


def timed_answers(contender: FeatureContender, crowd: FeaturedCrowd, seed: int) -> tuple[Answers, float]:
    """The answers, and the processor seconds that they took."""
    begin = time.process_time()
    found = contender.run(crowd, seed)
    return found, time.process_time() - begin
