"""The paper's study as a section of the page: its tables, ours beside theirs, and the headline figure."""

from __future__ import annotations

from pathlib import Path

from rarevote.charts.svg import Chart
from rarevote.methods.registry import method_title
from rarevote.study.experiment import Account, publish_account
from rarevote.study.headline import HEADLINE, headline_chart
from rarevote.study.operating_points import operating_chart
from rarevote.study.page import StudySection
from rarevote.study.paper import PaperStudy
from rarevote.study.summaries import SUMMARY_TABLES, n_at_hand, summary_rows
from rarevote.study.tables import signed


def publish_paper(study: PaperStudy, out: Path, *, command: str, begin: float) -> StudySection:
    """Add a finished paper study to the page of its folder; the clock stood at ``begin`` when it began."""
    # The rows of all datasets, one by one against the paper's, are for the file and not for the page.
    tables = [table for name, texts in study.texts().items() for table in (texts[:2] if name == "deviation" else texts)]
    account = Account(
        findings=_findings(study),
        charts=_charts(study),
        tables=[table for table in tables if table.rows],
        settings=[
            *(f"Absent: {slug} ({how})." for slug, how in study.absent.items()),
            *(f"{method_title(method)} was not run: {reason}." for method, reason in study.not_run.items()),
            *study.notes,
            *study.failures,
        ],
    )
    return publish_account(out, "paper", "The paper's study on real data", account, command=command, begin=begin)


def _charts(study: PaperStudy) -> list[Chart]:
    points = study.operating_points()
    drawn = [operating_chart(points)] if points else []
    rows = summary_rows(HEADLINE, study.results, study.sets, study.methods)
    if not rows:
        return drawn
    counts = {regime.key: n_at_hand(regime, study.sets, study.absent) for regime in HEADLINE.regimes}
    title = "Mean minority recall and balanced accuracy on binary datasets"
    caption = "Methods in the order of their recall."
    return [Chart("paper_headline", title, caption, (), headline_chart(rows, counts)), *drawn]


def _findings(study: PaperStudy) -> list[str]:
    """How far our means are from those of the paper's own rows over the same datasets."""
    sentences = []
    for table in SUMMARY_TABLES:
        regime = table.regimes[0]
        found = [
            one
            for one in study.means()
            if (one.table, one.regime, one.against, one.metric) == (table.key, regime.key, "rows", "minority_recall")
        ]
        if found:
            said = ", ".join(f"{method_title(one.method)} {one.ours:.3f} ({signed(one.difference)})" for one in found)
            sentences.append(
                f"{table.caption}: mean minority recall, and how far that is from the paper's own rows over the same "
                f"datasets: {said}."
            )
    return sentences
