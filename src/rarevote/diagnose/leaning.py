"""The leaning of the evidence: whether votes look as those of annotators who share errors, or who err independently.

Expectations come from both worlds (:mod:`rarevote.decide.expectations`), and no vote shows a mistake that all share.
What votes can show is whether some err alike more than chance would have it (:mod:`rarevote.diagnose.shared_errors`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rarevote.crowd.words import counted
from rarevote.decide.expectations import IN_WORDS, Expectations, Expected, World
from rarevote.diagnose.shared_errors import ErrorsAlike


class Leaning(NamedTuple):
    """Which world the evidence leans to.

    Attributes:
        world: None where the votes do not show it.
        description: why, in a sentence without its full stop.
    """

    world: World | None
    description: str


def leaning_of(alike: ErrorsAlike) -> Leaning:
    """Which world the evidence leans to, by who errs alike."""
    if not np.isfinite(alike.n_effective):
        return Leaning(None, "the evidence leans to neither: too few items have votes of the same annotators")
    if alike.clusters:
        n_alike = counted(sum(len(cluster.names) for cluster in alike.clusters), "annotator")
        return Leaning("shared", f"the evidence leans to shared errors: {n_alike} err alike more than chance explains")
    return Leaning(
        "independent",
        "the evidence leans to independent errors: no two annotators err alike more than chance explains; mistakes "
        "that all share are not in the votes",
    )


def world_sentences(
    expected: Expectations, accuracy: Expected, only_shared: str, leaning: Leaning | None
) -> tuple[str, ...]:
    """What to expect in each world, and which one the evidence leans to, in sentences without their full stops.

    Args:
        expected: of a class.
        accuracy: of all labels.
        only_shared: why there is only the world of shared errors, in words; empty where there are both.
        leaning: which world the evidence leans to; not needed where there is one.
    """
    figures = {f"recall of {expected.name}": expected.recall, "precision": expected.precision}
    figures |= {"share": expected.prevalence, "accuracy of all labels": accuracy}
    said = [
        f"{IN_WORDS[world]}: {', '.join(f'{what} {one.worlds[world].figures}' for what, one in figures.items())}"
        for world in accuracy.worlds
    ]
    if only_shared:
        said.append(f"independent errors are left out: {only_shared}")
    elif leaning is not None:
        said.append(leaning.description)
    return tuple(said)
