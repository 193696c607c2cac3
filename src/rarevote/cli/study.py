"""``rarevote study``: the experiments, rerun by one command each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli import study_more
from rarevote.cli.options.common import Json, Quiet
from rarevote.cli.show import aligned, say, share
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.study.cells import Report, StudyProgress
    from rarevote.study.paper import PaperStudy

STUDIES = """Examples:

rarevote study paper --data datasets --out study

rarevote study synthetic --out study"""

study_app = typer.Typer(
    help="Rerun the experiments: every table and figure, ours beside the paper's.",
    epilog=STUDIES,
    no_args_is_help=True,
)

EXAMPLES = """Examples:

rarevote study paper --data datasets --out study

rarevote study paper --methods majority-vote,cc-rasch --datasets rte,cf-star --out study

Stopped half-way? The same command goes on where it was. Remove study/cells to start anew."""

# Without a terminal to draw on, how often a line tells the progress.
_SECONDS_BETWEEN_LINES = 15.0


@study_app.callback()
def _studies() -> None:
    """Rerun the experiments: every table and figure, ours beside the paper's."""


@study_app.command("paper", epilog=EXAMPLES)
def paper(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the tables; finished cells are kept in it.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of datasets, each with labels.csv and truth.csv. Default: RAREVOTE_DATA, downloads."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B", help="Methods (see: rarevote methods). Default: the paper's.")
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(metavar="A,B", help="Datasets (see: rarevote datasets). Default: the paper's.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for methods that are random.")] = 4,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes side by side. Default: all cores.")] = None,
    ablation: Annotated[bool, typer.Option(help="Also run the ablation: class prior against model.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """All methods on all datasets of the paper: results, its tables, and how far ours are from the printed ones."""
    from rarevote.study.paper import run_paper_study
    from rarevote.study.paper_page import publish_paper

    begin = time.perf_counter()
    with _progress(quiet=quiet) as report:
        study = run_paper_study(
            out,
            data=data,
            methods=_names(methods, "--methods"),
            datasets=_names(datasets, "--datasets"),
            n_seeds=seeds,
            n_jobs=jobs,
            ablation=ablation,
            report=report,
        )
    seconds = time.perf_counter() - begin
    publish_paper(study, out, command=study_more.command_line(), seconds=seconds)
    if as_json:
        typer.echo(json.dumps(_summary(study, out, seconds), ensure_ascii=False))
    elif not quiet:
        _tell(study, out, seconds)
    for failure in study.failures:
        say(f"rarevote: error: {failure}")
    if study.failures:
        raise typer.Exit(1)


study_app.command("synthetic", epilog=study_more.SYNTHETIC_EXAMPLES)(study_more.synthetic)
study_app.command("gold", epilog=study_more.GOLD_EXAMPLES)(study_more.gold)
study_app.command("theory", epilog=study_more.THEORY_EXAMPLES)(study_more.theory)
study_app.command("speed", epilog=study_more.SPEED_EXAMPLES)(study_more.speed)


def _names(text: str | None, option: str) -> list[str] | None:
    """``a,b`` as a list."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError(f"{option} wants names with commas between, got {text!r}")
    return names


# --------------------------------------------------------------------------------------------------------------------
# what a person sees


def _summary(study: PaperStudy, out: Path, seconds: float) -> dict[str, Any]:
    return {
        "out": str(out),
        "seconds": seconds,
        "methods": study.methods,
        "datasets": [one.slug for one in study.sets if one.slug not in study.absent],
        "absent": study.absent,
        "not_run": study.not_run,
        "failures": study.failures,
        "notes": study.notes,
        "means": [asdict(one) for one in study.means()],
    }


def _tell(study: PaperStudy, out: Path, seconds: float) -> None:
    for note in study.notes:
        say(f"rarevote: warning: {note}")
    for method, reason in study.not_run.items():
        say(f"{method} was not run: {reason}")
    if study.absent:
        say(f"absent datasets: {', '.join(study.absent)}")
    rows = _table_of_means(study)
    if rows:
        figures = [title for name in ("recall", "macro-F1", "bal.-acc.") for title in (name, "paper", "diff")]
        typer.echo(aligned(["datasets", "method", "sets", *figures], rows))
        typer.echo(
            "\nRecall of the rarest class and macro-F1: the paper's own rows, averaged over the same datasets.\n"
            "Balanced accuracy: the paper's summary tables, in which datasets that are absent here are counted."
        )
    done = sum(result.status == "done" for result in study.results.values())
    say(f"\n{done} results in {seconds:.0f} s. Tables: {out / 'results.csv'} and beside it. Page: {out / 'index.html'}")


def _table_of_means(study: PaperStudy) -> list[list[str]]:
    """A line per method and kind of datasets; the other regimes of the tables are in deviation_summary.csv."""
    from rarevote.study.tables import signed

    means = {(one.table, one.regime, one.method, one.metric, one.against): one for one in study.means()}
    rows = []
    for table, regime in (
        ("binary", "all"),
        ("multiclass", "all"),
        ("large-scale", "annotations"),
        ("large-scale", "items"),
    ):
        for method in study.methods:
            place = (table, regime, method)
            found = [means.get((*place, metric, "rows")) for metric in ("minority_recall", "macro_f1")]
            found.append(means.get((*place, "balanced_accuracy", "table")))
            if found[0] is not None:
                figures = [
                    text
                    for one in found
                    for text in ((share(one.ours), share(one.paper), signed(one.difference)) if one else ("", "", ""))
                ]
                rows.append([table if regime == "all" else f"many {regime}", method, str(found[0].sets), *figures])
    return rows


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Report | None]:
    """Shows cells done and the time left: a bar on a terminal, else a line now and then."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines().report
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")
        yield lambda now: bar.update(task, completed=now.done, total=now.total, left=_time_left(now))


class _Lines:
    """Progress where nobody can see a bar move, such as in a log."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def report(self, now: StudyProgress) -> None:
        """Say how far it is, if the last line is a while ago."""
        if time.perf_counter() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.perf_counter()
            say(f"{now.done} of {now.total} cells, {_time_left(now)}")


def _time_left(now: StudyProgress) -> str:
    if now.seconds_left is None:
        return ""
    minutes, seconds = divmod(round(now.seconds_left), 60)
    return f"about {minutes}:{seconds:02d} left"
