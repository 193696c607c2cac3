"""The charts of the page by name, as altair objects: ``result.plot.trade_off()``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rarevote.crowd.arguments import with_named_arguments
from rarevote.errors import InputError

if TYPE_CHECKING:
    from rarevote.charts.svg import Chart
    from rarevote.diagnose.diagnosis import Diagnosis


@with_named_arguments
class Plots:
    """The charts of a result, each an ``altair`` chart that a notebook shows and ``save`` writes to a file.

    They are those of the page, from the same numbers: see :meth:`rarevote.Result.report`.
    """

    def __init__(self, diagnose: Callable[[Any], Diagnosis]) -> None:
        self._diagnose = diagnose

    @cached_property
    def _without_truth(self) -> Diagnosis:
        return self._diagnose(None)

    def _found(self, truth: Any) -> Diagnosis:
        return self._without_truth if truth is None else self._diagnose(truth)

    def trade_off(self, truth: Any = None) -> Any:
        """Recall against precision of the rare class: what more labels of it find, and at what cost.

        Args:
            truth: labels to check the result against; then the curve is counted with them.
        """
        from rarevote.page.charts import trade_off_chart

        found = self._found(truth).head
        true = {curve.class_code: curve for curve in found.true_trade_offs}
        first = next(iter(found.trade_offs), None)
        chart = None if first is None else trade_off_chart(found, first, true.get(first.class_code))
        return _drawn(chart, "the votes do not show the recall: give the truth of some items, trade_off(truth)")

    def annotators(self) -> Any:
        """The ability map: each annotator by the share of the commonest and of the rare class that they recognise."""
        from rarevote.page.charts import ability_map

        return _drawn(ability_map(self._without_truth), "")

    def votes(self) -> Any:
        """Items labelled as the rare class, by the share of their votes for it."""
        from rarevote.page.charts import rescued

        found = self._without_truth.head
        return _drawn(rescued(found), f"no item is labelled {found.rare_name}: decide(min_recall=0.9) labels more")

    def classes(self, truth: Any = None) -> Any:
        """Items per class: decided, by majority vote and expected; for grades, their distribution.

        Args:
            truth: true labels of all items, to draw beside them.
        """
        from rarevote.page.charts import class_counts, grade_counts

        found = self._found(truth)
        return _drawn(class_counts(found) if found.grades is None else grade_counts(found), "")

    def calibration(self, truth: Any) -> Any:
        """Probabilities of the rare class against how often it is true.

        Args:
            truth: labels to check the probabilities against.
        """
        from rarevote.page.charts import calibration_chart

        found = self._diagnose(truth).head
        if found.truth is None:
            raise InputError("calibration needs the truth of some items: calibration(truth)")
        chart = calibration_chart(found, found.truth.calibration, found.truth.posterior_calibration)
        return _drawn(chart, "")

    def convergence(self) -> Any:
        """The objective after each iteration of the fit."""
        from rarevote.page.charts import convergence

        return _drawn(convergence(self._without_truth), "this method does not iterate")

    def __repr__(self) -> str:
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"Plots({', '.join(names)})"


def _drawn(chart: Chart | None, reason: str) -> Any:
    """The chart with its title.

    Raises:
        InputError: there is nothing to draw.
    """
    if chart is None:
        raise InputError(f"there is nothing to draw: {reason}")
    import altair as alt

    words = chart.caption.split(". ")
    title = alt.TitleParams(chart.title, subtitle=[f"{one.rstrip('.')}." for one in words], anchor="start")
    return chart.spec.properties(title=title, background="white", padding=12)
