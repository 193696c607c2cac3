"""``rarevote simulate``: a crowd with known truth, of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rarevote.cli.options.output import quiet_option
from rarevote.cli.options.verb import file_option, one_of, verb
from rarevote.cli.show import say
from rarevote.crowd.steps import counting
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError


@verb(
    "rarevote simulate --out crowd",
    "rarevote simulate --out crowd --shared-errors real",
    "rarevote simulate --out crowd --shared-errors real --prevalence-effect real --imbalance 30",
    "rarevote simulate --tasks 1000000 --workers 20000 --votes 5 --imbalance 30 --format parquet --out big --seed 1",
)
@file_option("--out", "-o", metavar="FOLDER", required=True, help="Folder for labels, truth and workers.")
@click.option("--tasks", default=3000, help="Number of tasks.")
@click.option("--workers", default=60, help="Number of workers.")
@click.option("--classes", "n_classes", default=2, help="Number of classes; the last is the rarest.")
@click.option("--imbalance", default=7.0, help="Size of the largest class divided by that of the smallest.")
@click.option("--votes", "votes_per_task", default=8.0, help="Mean votes per task.")
@click.option("--good", "p_good", default=0.25, help="Share of workers good at every class.")
@click.option("--majority", "p_majority", default=0.25, help="Share of specialists for the most frequent class.")
@click.option("--minority", "p_minority", default=0.25, help="Share of specialists for the other classes.")
@click.option("--bad", "p_bad", default=0.25, help="Share of workers good at no class.")
@click.option("--hard-share", default=0.3, help="Share of hard tasks.")
@click.option("--hard-penalty", default=0.15, help="How much lower the accuracy is on a hard task.")
@click.option(
    "--shared-errors",
    metavar="S",
    default="0",
    show_default=True,
    help='How strongly errors fall on the same items: 0 (not at all) to below 1, or "real" as in real crowds.',
    shell_complete=one_of("real"),
)
@click.option(
    "--prevalence-effect",
    metavar="E",
    default="0",
    show_default=True,
    help="How strongly false votes for a class decrease as it becomes rarer: from 0 (not at all) to below 1, or "
    '"real" for the level of real crowds.',
    shell_complete=one_of("real"),
)
@click.option("--seed", "random_state", type=int, help="The same seed gives the same crowd.")
@click.option("--format", "file_format", default="csv", help="csv or parquet.", shell_complete=one_of("csv", "parquet"))
@quiet_option
def simulate(out: Path, tasks: int, workers: int, file_format: str, **crowd: Any) -> None:
    """Simulate a crowd with known truth: good and bad annotators, and specialists for one class."""
    from rarevote.simulate.crowds import simulate_chunks
    from rarevote.simulate.files import write_crowd

    if file_format not in ("csv", "parquet"):
        raise ParameterError(f"--format must be csv or parquet, got {file_format!r}")
    chunks = simulate_chunks(tasks, workers, **crowd)
    with counting("simulating", tasks) as report:
        files = write_crowd(
            out,
            chunks,
            format=file_format,  # type: ignore[arg-type]
            progress=lambda n_tasks, _n_annotations: report(n_tasks),
        )
    say(f"wrote {files.labels}: {counted(files.n_annotations, 'annotation')} of {counted(files.n_tasks, 'task')}")
    say(f"wrote {files.truth} and {files.workers}")
