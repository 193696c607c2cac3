"""The leaning of the evidence: whether votes look like those of annotators who share errors or who err independently.

Expectations come from both worlds (:mod:`rarevote.decide.expectations`), and no vote shows a mistake that all share.
What votes can show is whether some make the same mistakes more often than chance explains
(:mod:`rarevote.diagnose.shared_errors`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import IntArray
from rarevote.crowd.words import counted
from rarevote.decide.decision import Decision
from rarevote.decide.expectations import IN_WORDS, World
from rarevote.diagnose.shared_errors import ErrorsAlike, errors_alike


class Leaning(NamedTuple):
    """Which world the evidence leans to.

    Attributes:
        world: None where the votes do not show it.
        description: why, in a sentence without its full stop.
    """

    world: World | None
    description: str


def leaning_of(alike: ErrorsAlike) -> Leaning:
    """Which world the evidence leans to, by who makes the same mistakes."""
    if not np.isfinite(alike.n_effective):
        return Leaning(None, "the evidence leans to neither: too few items have votes of the same annotators")
    if alike.clusters:
        n_alike = counted(sum(len(cluster.names) for cluster in alike.clusters), "annotator")
        return Leaning(
            "shared",
            f"the evidence leans to shared errors: {n_alike} make the same mistakes more often than chance explains",
        )
    return Leaning(
        "independent",
        "the evidence leans to independent errors: no two annotators make the same mistakes more often "
        "than chance explains; votes cannot show a mistake that all annotators share",
    )


def leaning_of_votes(votes: Annotations, gold: IntArray, models: Iterable[Any]) -> Leaning:
    """The same of votes; ``gold`` has the known class of each item or -1, items with votes first."""
    return leaning_of(errors_alike(votes, gold=gold[: votes.n_tasks], models=models))


def world_sentences(decision: Decision, leaning: Leaning) -> tuple[str, ...]:
    """What to expect of the class that matters in each world, and which one the evidence leans to.

    Sentences without their full stops; where there is only the world of shared errors, why.
    """
    expected, accuracy = decision.of_rare, decision.accuracy
    figures = {f"recall of {expected.name}": expected.recall, "precision": expected.precision}
    figures |= {"share": expected.prevalence, "accuracy of all labels": accuracy}
    said = [
        f"{IN_WORDS[world]}: {', '.join(f'{what} {one.worlds[world].figures}' for what, one in figures.items())}"
        for world in accuracy.worlds
    ]
    only_shared = f"independent errors are left out: {decision.only_shared}"
    return (*said, only_shared if decision.only_shared else leaning.description)
