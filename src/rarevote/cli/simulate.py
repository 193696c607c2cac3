"""``rarevote simulate``: a crowd with known truth, of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.options.common import Quiet, examples, one_of
from rarevote.cli.show import counting, say
from rarevote.errors import ParameterError

EXAMPLES = examples(
    "rarevote simulate --out crowd",
    "rarevote simulate --tasks 1000000 --workers 20000 --votes 5 --imbalance 30 --format parquet --out big --seed 1",
)


def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for labels, truth and workers.")],
    tasks: Annotated[int, typer.Option(help="Number of tasks.")] = 3000,
    workers: Annotated[int, typer.Option(help="Number of workers.")] = 60,
    n_classes: Annotated[int, typer.Option("--classes", help="Number of classes; the last is the rarest.")] = 2,
    imbalance: Annotated[float, typer.Option(help="Size of the largest class over that of the smallest.")] = 7.0,
    votes: Annotated[float, typer.Option(help="Mean votes per task.")] = 8.0,
    good: Annotated[float, typer.Option(help="Share of workers good at every class.")] = 0.25,
    majority: Annotated[float, typer.Option(help="Share of specialists of the most frequent class.")] = 0.25,
    minority: Annotated[float, typer.Option(help="Share of specialists of the other classes.")] = 0.25,
    bad: Annotated[float, typer.Option(help="Share of workers good at nothing.")] = 0.25,
    hard_share: Annotated[float, typer.Option(help="Share of hard tasks.")] = 0.3,
    hard_penalty: Annotated[float, typer.Option(help="What a hard task takes off the accuracy.")] = 0.15,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same crowd.")] = None,
    file_format: Annotated[
        str, typer.Option("--format", help="csv or parquet.", autocompletion=one_of("csv", "parquet"))
    ] = "csv",
    quiet: Quiet = False,
) -> None:
    """A crowd with known truth: good and bad annotators, and specialists of one class."""
    from rarevote.simulate.crowds import simulate_chunks
    from rarevote.simulate.files import write_crowd

    if file_format not in ("csv", "parquet"):
        raise ParameterError(f"--format is csv or parquet, got {file_format!r}")
    chunks = simulate_chunks(
        tasks,
        workers,
        n_classes=n_classes,
        imbalance=imbalance,
        votes_per_task=votes,
        p_good=good,
        p_majority=majority,
        p_minority=minority,
        p_bad=bad,
        hard_share=hard_share,
        hard_penalty=hard_penalty,
        random_state=seed,
    )
    with counting("simulating", tasks, quiet=quiet) as report:
        files = write_crowd(
            out,
            chunks,
            format=file_format,  # type: ignore[arg-type]
            progress=lambda n_tasks, _n_annotations: report(n_tasks),
        )
    if not quiet:
        say(f"wrote {files.labels}: {files.n_annotations:,} annotations of {files.n_tasks:,} tasks")
        say(f"wrote {files.truth} and {files.workers}")
