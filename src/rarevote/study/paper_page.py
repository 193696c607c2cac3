"""The paper's study as a section of the page: its tables, ours beside theirs, and the headline figure."""

from __future__ import annotations

from pathlib import Path

from rarevote.charts.save import save
from rarevote.methods.registry import method_title
from rarevote.study.ablation import ablation_text
from rarevote.study.deviation import deviation_texts, deviations
from rarevote.study.headline import HEADLINE, headline_chart
from rarevote.study.page import Figure, Section, publish
from rarevote.study.paired import paired_differences, paired_text
from rarevote.study.paper import PaperStudy, per_dataset_text
from rarevote.study.summaries import SUMMARY_TABLES, members, summary_rows, summary_text


def publish_paper(study: PaperStudy, out: Path, *, command: str, seconds: float) -> Path:
    """Add a finished paper study to the page of its folder; returns the page."""
    absent = list(study.absent)
    tables = [
        summary_text(table, summary_rows(table, study.results, study.sets, study.methods), study.sets, absent)
        for table in SUMMARY_TABLES
    ]
    tables.append(paired_text(paired_differences(study.results, study.sets, study.methods)))
    if study.ablation:
        tables.append(ablation_text(study.ablation))
    tables += deviation_texts(deviations(study.results, study.sets), study.means(), study.sets)[:2]
    tables.append(per_dataset_text(study))
    section = Section(
        name="paper",
        title="The paper's study on real data",
        findings=_findings(study),
        figures=_figures(study, out),
        tables=[table for table in tables if table.rows],
        settings=[
            *(f"Absent: {slug} ({how})." for slug, how in study.absent.items()),
            *(f"{method_title(method)} was not run: {reason}." for method, reason in study.not_run.items()),
            *study.notes,
            *study.failures,
        ],
        command=command,
        seconds=seconds,
    )
    return publish(out, section)


def _figures(study: PaperStudy, out: Path) -> list[Figure]:
    rows = summary_rows(HEADLINE, study.results, study.sets, study.methods)
    if not rows:
        return []
    counts = {
        regime.key: sum(one.slug not in study.absent for one in members(regime, study.sets))
        for regime in HEADLINE.regimes
    }
    save(headline_chart(rows, counts), out / "paper_headline")
    caption = "Mean minority recall and balanced accuracy on binary datasets. Methods in the order of their recall."
    return [Figure("paper_headline", caption)]


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
            # Adding 0.0 turns -0.0 into 0.0.
            said = ", ".join(
                f"{method_title(one.method)} {one.ours:.3f} ({round(one.difference, 3) + 0.0:+.3f})" for one in found
            )
            sentences.append(
                f"{table.caption}: mean minority recall, and how far that is from the paper's own rows over the same "
                f"datasets: {said}."
            )
    return sentences
