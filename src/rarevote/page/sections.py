"""The sections of the page: each is a template of its own with its values, charts and lists.

To add one, write ``templates/sections/NAME.html.j2``, which holds one ``<section id="NAME">`` and may import what
``parts.html.j2`` offers, and a function that makes its :class:`Section`: here if it says something about every fit, or
elsewhere to be handed to :func:`rarevote.page.report.write_report`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarevote.charts.parts import Chart
from rarevote.crowd.words import percent
from rarevote.meaning.diagnose import Diagnosis
from rarevote.meaning.jury import jury_sentences
from rarevote.meaning.piles import MISSED, SURE
from rarevote.page import agreement, charts, sentences, small_tables
from rarevote.page.sentences import About
from rarevote.page.small_tables import Matrix
from rarevote.page.tables import ListTable, Shown, class_list, item_list, worker_list


@dataclass(frozen=True)
class Section:
    """A section before any markup.

    Attributes:
        name: of its template and of its element.
        link: what the navigation calls it.
        values: what its template asks for by name, beside ``charts`` and ``lists``.
        charts: in the order in which they are to be seen.
        lists: what the script sorts, filters and pages.
    """

    name: str
    link: str
    values: Mapping[str, Any] = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    lists: Sequence[ListTable] = ()


def page_sections(
    found: Diagnosis, about: About, *, shown: Shown | None = None, extra: Sequence[Section] = ()
) -> list[Section]:
    """All sections of a page in their order.

    Args:
        found: the records.
        about: where they come from.
        shown: columns that say what an item shows, each with one value per item in the order of the crowd.
        extra: further sections, which stand before how it was computed.
    """
    return [
        *_piles(found),
        _lost(found),
        _annotators(found),
        _agreement(found),
        _trade_off(found),
        _look(found, shown or {}),
        _classes(found),
        *_truth(found),
        *extra,
        Section("fit", "The fit", {"facts": sentences.facts(found, about)}, _drawn(charts.convergence(found))),
    ]


def _drawn(*made: Chart | None) -> list[Chart]:
    """Those charts that there is something to draw for."""
    return [chart for chart in made if chart is not None]


def _piles(found: Diagnosis) -> list[Section]:
    """What to take as it is and what to look at, of the class that leads."""
    if found.leading is None or len(found.classes.names) < 2:
        return []
    name = str(found.classes.names[found.rare])
    values = {"name": name, "piles": sentences.piles(found), "sure": percent(SURE), "missed": percent(MISSED)}
    return [Section("piles", "Three piles", values)]


def _lost(found: Diagnosis) -> Section:
    values = {"losses": sentences.losses(found), "moves": small_tables.moves_table(found)}
    return Section("lost", "Majority vote", values, _drawn(charts.rescued(found)))


def _annotators(found: Diagnosis) -> Section:
    values = {
        "profiles": small_tables.profile_table(found),
        "jury": jury_sentences(found.classes.jury, found.classes.names),
    }
    return Section("annotators", "Annotators", values, _drawn(charts.ability_map(found)), [worker_list(found)])


def _agreement(found: Diagnosis) -> Section:
    return Section("agreement", "Agreement", agreement.agreement_values(found))


def _trade_off(found: Diagnosis) -> Section:
    true = {curve.class_code: curve for curve in found.true_trade_offs}
    curves = [charts.trade_off_chart(found, curve, true.get(curve.class_code)) for curve in found.trade_offs]
    values = {"rates": small_tables.trade_off_table(found), "steps": small_tables.steps_table(found)}
    return Section("trade-off", "Finding more", values, _drawn(*curves))


def _look(found: Diagnosis, shown: Shown) -> Section:
    return Section("look", "Items to look at", lists=[item_list(found, shown)])


def _classes(found: Diagnosis) -> Section:
    proportions = small_tables.proportion_table(found)
    lists = [class_list(found)] if proportions is None else []
    return Section("classes", "Classes", {"proportions": proportions}, _drawn(charts.class_counts(found)), lists)


def _truth(found: Diagnosis) -> list[Section]:
    """What the truth says, where there is any."""
    if found.truth is None:
        return []
    confusion = small_tables.confusion(found)
    values = {
        "scores": small_tables.score_table(found),
        "matrix": confusion if isinstance(confusion, Matrix) else None,
        "mistakes": None if isinstance(confusion, Matrix) else confusion,
    }
    check = found.truth
    drawn = _drawn(charts.calibration_chart(found, check.calibration, check.posterior_calibration))
    return [Section("truth", "Truth", values, drawn)]
