"""The strength of an effect in simulated crowds: a number, or "real" for the strength in real crowds."""

from __future__ import annotations

from rarevote.errors import ParameterError

#: A strength, or "real" for the strength in real crowds.
Strength = float | str


def strength_of(name: str, given: Strength, real: float) -> float:
    """The strength as a number from 0 to below 1.

    Args:
        name: name of the parameter, for the message.
        given: the number, also as text, or "real".
        real: the strength in real crowds.

    >>> strength_of("shared_errors", 0.2, 0.35), strength_of("shared_errors", "real", 0.35)
    (0.2, 0.35)
    """
    refused = ParameterError(f'{name} must be "real" or a number from 0 to below 1, not {given!r}')
    if given == "real":
        return real
    try:
        strength = float(given)
    except (TypeError, ValueError):
        raise refused from None
    if isinstance(given, bool) or not 0 <= strength < 1:
        raise refused
    return strength
