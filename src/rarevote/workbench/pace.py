"""The pace of a review as text: how many items, and how long that takes."""

from __future__ import annotations

from rarevote.crowd.words import SECONDS_A_LOOK, counted, minutes
from rarevote.workbench.session import SessionProgress

#: How far a forecast of further reviews can be off, as everywhere.
_FACTOR = 2


def pace_words(progress: SessionProgress) -> tuple[str, str]:
    """The pace, and how long the rest will take; empty before the pace is known and at the end."""
    each, left = progress.seconds_each, progress.left_in_all
    if not each or left <= 0:
        return "", ""
    pace = f"{each:.0f} s per item · " if each >= 0.5 else "under 1 s per item · "
    if not progress.is_forecast or each * left < 45:
        return pace, f"about {minutes(each * left)} left".replace("about under", "under")
    open_now = progress.total - progress.done - progress.unsure
    low, high = each * max(left / _FACTOR, open_now), each * left * _FACTOR
    return pace, f"about {minutes(each * left)} left in total ({minutes(low)} to {minutes(high)})"


def plan_words(progress: SessionProgress, noun: str) -> str:
    """How many items there are now and probably in total, with the time at a typical pace."""
    each = progress.seconds_each or SECONDS_A_LOOK
    now, left = progress.total - progress.done - progress.unsure, progress.left_in_all
    said = f"{counted(now, 'item')} in this {noun}: {minutes(now * each)} at {each:.0f} seconds per item."
    if progress.is_forecast and left > now:
        said += f" Probably about {left:,} in total, {minutes(left * each)}; this can be off by a factor of {_FACTOR}."
    return said
