"""The order of classes: whether names look like grades, and whether the votes confirm it.

Over pairs of different answers to one task, each task's pairs weighted ``1 / (v_i - 1)``, with ``p`` the shares of the
votes and ``x`` the positions of the grades::

    M_kl = sum_i n_ik n_il / (v_i - 1)
    m0_kl ~ p_k p_l,   m1_kl ~ p_k p_l exp(-lam (|x_k - x_l| - 1)),   with the most likely lam between 0 and 5
    gain = sum_{k<l} M_kl log(m1_kl / m0_kl),   se = sqrt(n) sd_i(gain_i)

A gain alone proves nothing: two similar categories also give one. The criterion is the share of all other orders
whose gain is larger. Votes outside the scale are dropped first. An order is suggested, never applied.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import MAX_GRADES, MIN_GRADES, Grades, binning
from rarevote.crowd.names import spelling
from rarevote.crowd.numerics import FloatArray
from rarevote.crowd.words import percent
from rarevote.errors import how

_FEW_PAIRS = 50.0
_MAX_LAM = 5.0
_ALL_ORDERS = 6  # up to this many grades, all orders are compared; with more, a random sample
_DRAWN_ORDERS = 500
# A gain counts as larger from this relative difference.
_LARGER = 1e-9
_FEW_BETTER, _MANY_BETTER = 0.01, 0.25
_PROVEN = 3.0  # standard errors

# Scales from the lowest rank; alternative names of a rank are separated by a bar.
_SCALES = tuple(
    tuple(rank.split("|") for rank in scale.split(" < "))
    for scale in (
        "none < low|minor|mild < medium|moderate < high|severe < critical",
        "never < rarely < sometimes < often < always",
        "very low < low < medium|moderate < high < very high",
        "very poor|very bad < poor|bad < fair|ok|okay|average < good < very good < excellent",
        "very negative|extremely negative|strongly negative < negative < neutral|mixed < positive "
        "< very positive|extremely positive|strongly positive",
        "strongly disagree < disagree < neutral|neither|neither agree nor disagree < agree < strongly agree",
        "not relevant|non relevant|irrelevant < partially relevant|somewhat relevant|marginally relevant < relevant "
        "< highly relevant|perfectly relevant",
        "small < medium < large",
        "false < mostly false < half true|partly true < mostly true < true",
        "no < unsure|maybe < yes",
    )
)
_OUTSIDE = ("cant tell", "cannot tell", "n a", "na", "other", "skip", "skipped", "dont know", "do not know")
_LETTERS = "fedcba"  # A is the top


@dataclass(frozen=True)
class OrderCheck:
    """The evidence of the votes about an order.

    Attributes:
        pairs: different answers to one task, weighted.
        lam: how fast confusions fall with distance: each further step makes them ``exp(lam)`` times rarer.
        gain: the gain in log likelihood from the order, in nats.
        se: its standard error.
        better: share of all orders that explain more.
        n_orders: number of orders that were compared.
    """

    pairs: float
    lam: float
    gain: float
    se: float
    better: float
    n_orders: int


def check_order(crowd: Annotations, grades: Grades) -> OrderCheck:
    """Check an order against the votes of a crowd.

    Example:
        >>> said = "1121 2232 3342 4443 1221 2331 3344 4341".split()
        >>> task = [i for i in range(8) for _ in range(4)]
        >>> crowd = Annotations.from_arrays(task, list("abcd") * 8, list("".join(said)))
        >>> found = check_order(crowd, Grades.of("1..4"))
        >>> round(found.pairs, 3), round(found.lam, 3), found.better
        (10.667, 0.973, 0.0)
    """
    positions = grades.positions(crowd.classes)
    inside = np.flatnonzero(np.isfinite(positions) & (crowd.class_votes > 0))
    votes = crowd.votes()[:, inside]
    size = votes.sum(axis=1)
    votes, size = votes[size >= 2], size[size >= 2]
    first, second = np.triu_indices(len(inside), 1)
    if not len(votes) or not len(first):
        return OrderCheck(0.0, 0.0, 0.0, 0.0, 0.0, 0)
    of_task = votes[:, first] * votes[:, second] / (size - 1.0)[:, None]
    met = of_task.sum(axis=0)
    share = votes.sum(axis=0) / votes.sum()
    chance = share[first] * share[second]

    def fitted(x: FloatArray) -> tuple[float, FloatArray]:
        return _likeliest(met, chance, np.abs(x[first] - x[second]) - 1.0)

    x = positions[inside]
    lam, log_ratio = fitted(x)
    gain = float((met * log_ratio).sum())
    gains = np.array([float((met * fitted(order)[1]).sum()) for order in _orders(x)])
    better = float((gains > gain + _LARGER * max(abs(gain), _LARGER)).mean())
    se = float(np.sqrt(len(of_task)) * (of_task * log_ratio).sum(axis=1).std())
    return OrderCheck(float(met.sum()), lam, gain, se, better, len(gains))


def _likeliest(met: FloatArray, chance: FloatArray, distance: FloatArray) -> tuple[float, FloatArray]:
    """The most likely lam between 0 and 5, and ``log(m1 / m0)`` of every pair of grades, by Newton's method."""
    total, observed = met.sum(), float((met * distance).sum())
    even = chance / chance.sum()

    def model(lam: float) -> tuple[float, float, FloatArray]:
        weights = even * np.exp(-lam * distance)
        m1 = weights / weights.sum()
        mean = float((m1 * distance).sum())
        variance = float((m1 * (distance - mean) ** 2).sum())
        return total * mean - observed, total * variance, -lam * distance - np.log(weights.sum())

    low, high = 0.0, _MAX_LAM
    if model(low)[0] <= 0:
        return low, np.zeros(len(met))
    if model(high)[0] >= 0:
        return high, model(high)[2]
    lam = 0.0
    # The slope falls with lam: a step that leaves the bracket is replaced by the midpoint.
    for _ in range(100):
        slope, curvature, _ = model(lam)
        low, high = (lam, high) if slope > 0 else (low, lam)
        step = lam + slope / curvature if curvature > 0 else np.nan
        following = step if low < step < high else 0.5 * (low + high)
        if abs(following - lam) <= 1e-14 * (1.0 + lam):
            break
        lam = following
    return float(lam), model(lam)[2]


def _orders(x: FloatArray) -> list[FloatArray]:
    """All permutations of the positions, or a random sample."""
    if len(x) <= _ALL_ORDERS:
        # A reversed order is equivalent and need not be counted twice, unless there is a gap on one side.
        places = np.sort(x)
        is_even = bool(np.allclose(places + places[::-1], places[0] + places[-1]))
        return [np.array(one) for one in permutations(x.tolist()) if not is_even or one[0] < one[-1]]
    rng = np.random.default_rng(0)
    return [rng.permutation(x) for _ in range(_DRAWN_ORDERS)]


def order_doubt(crowd: Annotations, grades: Grades) -> str | None:
    """The warning that the votes contradict a declared order, as text."""
    found = check_order(crowd, grades)
    if found.pairs < _FEW_PAIRS or found.better <= _MANY_BETTER:
        return None
    return f"the votes do not show this order ({percent(found.better)} of other orders fit better): check it"


class OrderHint(NamedTuple):
    """The suggestion to declare an order.

    Attributes:
        description: why, and what to add, as text.
        grades: the order; None for numbers that have to be binned first.
    """

    description: str
    grades: Grades | None = None


def order_hint(crowd: Annotations) -> OrderHint | None:
    """The suggestion to declare an order; None if nothing looks like grades."""
    classes = crowd.classes[crowd.class_votes > 0]
    numbers = [number for name in classes.tolist() if (number := _number(_trimmed(name))) is not None]
    if len(numbers) > MAX_GRADES and len(numbers) == len(classes):
        return OrderHint(
            f"The {len(numbers):,} classes are numbers. If they are ratings, round or bin them to at most "
            f"{MAX_GRADES} grades, {binning(min(numbers), max(numbers))}"
        )
    grades = candidate(classes)
    if grades is None:
        return None
    said = _words_of(check_order(crowd, grades), grades)
    return None if said is None else OrderHint(said, grades)


def _words_of(found: OrderCheck, grades: Grades) -> str | None:
    """A sentence on the votes' evidence for an order that the names suggest; None if they contradict it."""
    option = how(f"ordered={list(grades.names)}", f"--ordered {shlex.quote(grades.text)}")
    if found.pairs < _FEW_PAIRS:
        return f"The answers look like grades; the votes are too few to be sure. If they are grades, add {option}"
    if found.gain <= 0 or found.better > _FEW_BETTER:
        return None
    if found.gain >= _PROVEN * found.se > 0:
        times = "more than 100 times" if found.lam >= _MAX_LAM else f"{np.exp(found.lam):.1f} times"
        listed = " < ".join(map(spelling, grades.names))
        return (
            f"The answers look like grades ({listed}), and neighbours are confused {times} as often as answers one "
            f"step further apart. Add {option}"
        )
    return f"The answers look like grades; the votes lean that way but do not prove it. If they are, add {option}"


# --------------------------------------------------------------------------------------------------------------------
# names


def candidate(classes: NDArray[Any]) -> Grades | None:
    """The order that the names of classes suggest; None if they suggest none.

    >>> candidate(np.array(["high", "low", "medium", "can't tell"], dtype=object)).names
    ('low', 'medium', 'high')
    >>> candidate(np.array(["cat", "dog", "horse"], dtype=object)) is None
    True
    """
    named = {name: _trimmed(name) for name in classes.tolist() if not isinstance(name, bool)}
    named = {name: text for name, text in named.items() if text not in _OUTSIDE and not text.startswith("broken")}
    if len(named) < MIN_GRADES or len(set(named.values())) < len(named):
        return None
    found = _of_numbers(named)
    if found is None and set(named.values()) <= set(_LETTERS):
        found = sorted(named, key=lambda name: _LETTERS.index(named[name]))
    return Grades(tuple(found)) if found is not None else _of_scale(named)


def _trimmed(name: Any) -> str:
    """A name without case, punctuation, a leading "3 -" or "3:", and trailing "star" or "stars"."""
    text = spelling(name).casefold().strip()
    if _number(text) is not None:
        return text
    text = re.sub(r"^\d+\s*[-:–]\s*(?=\D)", "", text)
    text = re.sub(r"\s*stars?$", "", text).strip()
    if _number(text) is not None:
        return text
    return " ".join(re.sub(r"[\W_]+", " ", re.sub(r"['’]", "", text)).split())


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _of_numbers(named: dict[Any, str]) -> list[Any] | None:
    """Numbers at equal steps, from lowest to highest; one may be missing, and is filled in."""
    values = {name: _number(text) for name, text in named.items()}
    if len(values) > MAX_GRADES or any(value is None for value in values.values()):
        return None
    names = sorted(values, key=lambda name: values[name] or 0.0)
    steps = [(values[b] or 0.0) - (values[a] or 0.0) for a, b in pairwise(names)]
    unit = min(steps)
    wide = [place for place, step in enumerate(steps) if not np.isclose(step, unit)]
    if not wide:
        return names
    if len(wide) > 1 or not np.isclose(steps[wide[0]], 2 * unit) or len(names) == MAX_GRADES:
        return None
    place = wide[0]
    gap = spelling((values[names[place]] or 0.0) + unit)
    return [*names[: place + 1], gap, *names[place + 1 :]]


def _of_scale(named: dict[Any, str]) -> Grades | None:
    for scale in _SCALES:
        rank = {text: place for place, texts in enumerate(scale) for text in texts}
        ranks = {name: rank.get(text) for name, text in named.items()}
        if None not in ranks.values() and len(set(ranks.values())) == len(ranks):
            return Grades(tuple(sorted(ranks, key=lambda name: ranks[name] or 0)))
    return None
