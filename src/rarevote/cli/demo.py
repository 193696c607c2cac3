"""``rarevote demo``: the point in one minute, on the example that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.show import aligned, share

EXAMPLES = """Examples:

rarevote demo

rarevote demo --report rails.html"""

_METHODS = ("majority-vote", "cc-rasch")


def demo(
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write the page to look at, such as report.html.")
    ] = None,
) -> None:
    """Majority vote against CC-Rasch on simulated rail inspections, where defects are rare."""
    from rarevote.cli.options.common import make_method
    from rarevote.io.read.frames import read_annotations, read_truth
    from rarevote.meaning.metrics import score
    from rarevote.simulate.example import example_files

    files = example_files()
    crowd, _ = read_annotations(files.labels)
    truth = read_truth(files.truth)
    defects = sum(label == "defect" for label in truth.values())
    typer.echo(
        f"Rail inspection (simulated): {crowd.n_tasks:,} images, {defects} of them with a defect "
        f"({defects / len(truth):.1%}),\n{crowd.n_workers} inspectors, {crowd.n_annotations:,} votes. "
        "Most inspectors overlook some defects.\n"
    )
    rows, found = [], {}
    for name in _METHODS:
        labels = make_method(name, None).fit(crowd).labels_.to_dict()
        scores = score(list(truth.values()), [labels[task] for task in truth])
        found[name] = round(scores.recall["defect"] * defects)
        rows.append(
            [
                name,
                f"{found[name]} of {defects}",
                share(scores.minority_recall),
                share(scores.precision["defect"]),
                share(scores.balanced_accuracy),
                share(scores.macro_f1),
            ]
        )
    header = ["method", "defects found", "minority recall", "precision", "balanced accuracy", "macro-F1"]
    typer.echo(aligned(header, rows))
    gained = found["cc-rasch"] - found["majority-vote"]
    typer.echo(
        f"\nCC-Rasch finds {gained} defects that the majority vote loses. It pays with false alarms, because it\n"
        "treats both classes as equally likely; --set prior=estimate trades some of that recall for precision.\n\n"
        f"Your own data: rarevote aggregate labels.csv --out result.csv\nThese data: {files.labels}"
    )
    if report is not None:
        from rarevote.page.report import write_example_report

        typer.echo(f"The page to look at: {write_example_report(report).resolve()}")
