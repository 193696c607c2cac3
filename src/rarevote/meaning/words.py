"""What profiles and the jury condition mean, in words that the page and the command line share."""

from __future__ import annotations

from math import isfinite
from typing import Any

from numpy.typing import NDArray

from rarevote.crowd.words import counted, listed, percent, quoted
from rarevote.meaning.jury import JuryCondition
from rarevote.meaning.workers import Profile

PROFILE_WORDS: dict[Profile, str] = {
    Profile.BOTH: "both classes",
    Profile.MAJORITY_ONLY: "majority class only",
    Profile.MINORITY_ONLY: "rare class only",
    Profile.NEITHER: "neither",
}

# A crowd that would have to grow beyond this many times its size is not going to.
_MAX_NEWCOMERS = 10
_MAX_LACKING = 3


def profile_meanings(rare: Any, common: Any) -> dict[Profile, str]:
    """What each profile means for these two classes."""
    return {
        Profile.BOTH: "the people to keep",
        Profile.MAJORITY_ONLY: f"overlook {quoted(str(rare))}",
        Profile.MINORITY_ONLY: f"take {quoted(str(common))} for {quoted(str(rare))}",
        Profile.NEITHER: "below one half on either",
    }


def jury_sentences(jury: JuryCondition, names: NDArray[Any]) -> list[str]:
    """Whether more votes alone would let a majority vote find each class."""
    held = [quoted(names[k]) for k in range(len(names)) if jury.holds[k]]
    said = []
    if held:
        said.append(
            f"With ever more votes from people like these, a majority vote would recover {listed(held)}: enough of "
            "them recognise it more often than not (the jury condition holds)."
        )
    lacking = [k for k in range(len(names)) if not jury.holds[k]]
    for k in lacking[:_MAX_LACKING]:
        missing = jury.missing_specialists[k]
        cure = "Nobody here recognises it more often than not."
        if isfinite(missing) and missing > _MAX_NEWCOMERS * jury.n_workers:
            cure = "Only newcomers far better at it than anybody here would change that."
        elif isfinite(missing):
            people, best = counted(missing, "more annotator"), counted(jury.n_good[k], "best person", "best people")
            cure = f"It would take about {people} as good at it as its {best}."
        said.append(
            f"For {quoted(names[k])} that cannot be promised: the average annotator recognises only "
            f"{percent(jury.mean_margin[k] + 0.5)} of it. {cure}"
        )
    if len(lacking) > _MAX_LACKING:
        said.append(f"The same holds for {counted(len(lacking) - _MAX_LACKING, 'further class', 'further classes')}.")
    return said
