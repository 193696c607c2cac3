"""The start of an audit from the command line: of a fit, or of a table of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rarevote.cli.options.audits import parse_find
from rarevote.cli.show import say
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms.base import YES

if TYPE_CHECKING:
    from rarevote.audit import Audit
    from rarevote.cli.options.fit import FitOptions
    from rarevote.cli.options.reading import Reading
    from rarevote.io.read.crowd import Crowd


def audit_of_votes(
    reading: Reading, fit_options: FitOptions, find: str, of_choice: bool, begin: dict[str, Any]
) -> tuple[Audit, Crowd, dict[str, Any]]:
    """The audit of a fit, its crowd, and the notes on features."""
    from rarevote.audit.of_fit import audit_of_fit

    estimator = fit_options.make()
    crowd = reading.read()
    name, target = parse_find(find, None if of_choice else crowd.annotations.classes, fit_options.grades)
    if of_choice:
        name = YES
    fitted = fit_options.fit(crowd, estimator)
    if (n_new := fitted.crowd.n_unvoted - crowd.n_unvoted) > 0:
        raise InputError(
            f"{counted(n_new, 'item')} of the features are in neither the labels nor --items: list all items with "
            "--items FILE, so that the plan has them"
        )
    return audit_of_fit(fitted, name, target, **begin), crowd, fitted.feature_figures


def check_scored(fit_options: FitOptions) -> None:
    """Refuse options for votes if there are only scores."""
    given = {
        "--features": fit_options.features,
        "--pred-probs": fit_options.pred_probs,
        "--ordered": fit_options.ordered,
    }
    for option, value in given.items():
        if value is not None:
            raise ParameterError(f"{option} needs votes; with --score the ranking is given and nothing is fitted")


def audit_of_table(
    reading: Reading,
    fit_options: FitOptions,
    find: str,
    score: str,
    ascending: bool,
    begin: dict[str, Any],
) -> tuple[Audit, Crowd]:
    """The audit of a ranking, and its items."""
    from rarevote.audit.of_scores import audit_of_scores
    from rarevote.audit.source import read_scored
    from rarevote.io.read.frames import read_truth

    name, target = parse_find(find)
    items = read_scored(reading.labels, score, reading.options)
    say(f"{items.crowd.title}: {counted(len(items.scores), 'item')} with the score {score!r}")
    gold = None if fit_options.gold is None else read_truth(fit_options.gold, prefer=reading.options.get("columns"))
    audit = audit_of_scores(items, name, target, ascending=ascending, gold=gold, **begin)
    return audit, items.crowd
