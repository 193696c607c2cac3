"""``rarevote study``: the experiments, rerun by one command each."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import Json, Quiet, examples, names_in
from rarevote.cli.show import aligned, complain, counting, say, share, time_left, warn
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.study.cells import StudyProgress
    from rarevote.study.experiment import Experiment
    from rarevote.study.paper import PaperStudy

PEER_PYTHON = "RAREVOTE_PEER_PYTHON"

# Without a terminal to draw on, how often a line tells the progress.
_SECONDS_BETWEEN_LINES = 15.0

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for results, figures and the page index.html.")]
Seeds = Annotated[int, typer.Option(min=1, help="How often each experiment is repeated.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes side by side. Default: all cores.")]
Methods = Annotated[
    str | None, typer.Option(metavar="A,B", help="Methods (see: rarevote methods). Default: the paper's.")
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets, each with labels.csv and truth.csv. Default: RAREVOTE_DATA, downloads."),
]

app = typer.Typer(
    name="study",
    add_completion=False,
    help="Rerun the experiments: every table and figure, ours beside the paper's.",
    epilog=examples("rarevote study paper --data datasets --out study", "rarevote study synthetic --out study"),
    no_args_is_help=True,
)


@app.callback()
def _studies() -> None:
    """Rerun the experiments: every table and figure, ours beside the paper's."""


@app.command(
    epilog=examples(
        "rarevote study paper --data datasets --out study",
        "rarevote study paper --methods majority-vote,cc-rasch --datasets rte,cf-star --out study",
        after="Stopped half-way? The same command resumes it. Remove study/cells to start from the beginning.",
    )
)
def paper(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the tables; finished cells are kept in it.")],
    data: Data = None,
    methods: Methods = None,
    datasets: Annotated[
        str | None, typer.Option(metavar="A,B", help="Datasets (see: rarevote datasets). Default: the paper's.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for methods that are random.")] = 4,
    jobs: Jobs = None,
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
            methods=names_in(methods, "--methods"),
            datasets=names_in(datasets, "--datasets"),
            n_seeds=seeds,
            n_jobs=jobs,
            ablation=ablation,
            report=report,
        )
    section = publish_paper(study, out, command=_command_line(), begin=begin)
    if as_json:
        typer.echo(json.dumps(_summary(study, out, section.seconds), ensure_ascii=False))
    elif not quiet:
        _tell(study, out, section.seconds)
    for failure in study.failures:
        complain(failure)
    if study.failures:
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "rarevote study synthetic --out study",
        "rarevote study synthetic --methods majority-vote,dawid-skene,cc-rasch --seeds 50 --out study",
    )
)
def synthetic(
    out: Out,
    methods: Methods = None,
    seeds: Seeds = 20,
    tasks: Annotated[int, typer.Option(min=10, help="Tasks in a crowd.")] = 3000,
    workers: Annotated[int, typer.Option(min=4, help="Workers in a crowd.")] = 60,
    votes: Annotated[float, typer.Option(min=1, help="Mean votes per task, where they are not what moves.")] = 8.0,
    imbalance: Annotated[float, typer.Option(min=1, help="Largest class / smallest, where it is fixed.")] = 7.0,
    hard_share: Annotated[float, typer.Option(min=0, max=1, help="Share of hard tasks.")] = 0.3,
    hard_penalty: Annotated[float, typer.Option(min=0, max=1, help="What a hard task takes off the accuracy.")] = 0.15,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Made-up crowds: recall of the rare class as its specialists vanish, by imbalance, and by votes per task."""
    from rarevote.study.synthetic import CrowdSettings, SyntheticStudy

    crowd = CrowdSettings(tasks, workers, imbalance, votes, hard_share=hard_share, hard_penalty=hard_penalty)
    chosen = _runnable(names_in(methods, "--methods"), quiet=quiet)
    _run(SyntheticStudy(chosen, seeds, crowd=crowd), out, jobs, quiet=quiet)


@app.command(
    epilog=examples(
        "rarevote study gold --data datasets --out study",
        "rarevote study gold --data datasets --datasets rte,product --seeds 5 --out study",
    )
)
def gold(
    out: Out,
    data: Data = None,
    datasets: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Datasets. Default: the 4 largest with Imb < 1.3 and with Imb > 3."),
    ] = None,
    methods: Methods = None,
    seeds: Seeds = 20,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Methods that learn from gold against CC-Rasch without and with it, by share of gold."""
    from rarevote.study.gold import GoldStudy, choose_datasets

    wanted = _known_methods(methods)
    chosen = choose_datasets(data, names_in(datasets, "--datasets"))
    _run(GoldStudy(chosen, data, wanted, seeds), out, jobs, quiet=quiet)


@app.command(
    epilog=examples(
        "rarevote study theory --out study",
        "rarevote study theory --seeds 50 --items 8000 --out study",
    )
)
def theory(
    out: Out,
    methods: Methods = None,
    seeds: Seeds = 20,
    items: Annotated[int, typer.Option(min=80, help="Items that a growing crowd labels.")] = 4000,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """The jury condition against simulation: when majority vote recovers the rare class, and when it cannot."""
    from rarevote.study.theory import METHODS, TheoryStudy

    chosen = _runnable(names_in(methods, "--methods") or list(METHODS), quiet=quiet)
    _run(TheoryStudy(chosen, seeds, items), out, jobs, quiet=quiet)


@app.command(
    epilog=examples(
        "rarevote study speed --out study",
        "rarevote study speed --peer-python venv-with-crowd-kit/bin/python --sizes 10000,100000,1000000 --out study",
    )
)
def speed(
    out: Out,
    methods: Methods = None,
    sizes: Annotated[
        str, typer.Option(metavar="N,N", help="Numbers of annotations.")
    ] = "10000,100000,1000000,10000000",
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds after which a fit is ended and marked.")] = 120.0,
    peer_python: Annotated[
        str | None, typer.Option(envvar=PEER_PYTHON, help="A Python that has crowd-kit. Default: this one.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Time and memory of our methods and of crowd-kit, each fit in a process of its own."""
    from rarevote.study.speed import METHODS, OURS, PEER, SpeedStudy, find_installation

    chosen, numbers = _known_methods(methods) or METHODS, _sizes(sizes)
    found = [find_installation(OURS, sys.executable), find_installation(PEER, peer_python or sys.executable)]
    installations = [one for one in found if one is not None]
    if len(installations) < len(found) and not quiet:
        say(f"{PEER} is not installed there: name a Python that has it with --peer-python or {PEER_PYTHON}")
    _run(SpeedStudy(installations, chosen, numbers, time_limit), out, None, quiet=quiet)


# --------------------------------------------------------------------------------------------------------------------
# what they share


def _run(experiment: Experiment, out: Path, jobs: int | None, *, quiet: bool) -> None:
    from rarevote.study.experiment import make_folder

    make_folder(out)
    with counting(experiment.unit, len(experiment.trials()), quiet=quiet) as report:
        section = experiment.run(out, n_jobs=jobs, report=report, command=_command_line())
    if not quiet:
        for finding in section.findings:
            typer.echo(finding)
        say(f"\n{section.seconds:.0f} s. Results, figures and the page are in {out}: {section.name}.md, index.html")


def _command_line() -> str:
    """What the user typed, for the page's footer."""
    return shlex.join(["rarevote", *sys.argv[1:]])


def _sizes(text: str) -> list[int]:
    try:
        return [int(part.replace("_", "")) for part in names_in(text, "--sizes") or ()]
    except ValueError:
        raise ParameterError(f"--sizes wants whole numbers with commas between, got {text!r}") from None


def _known_methods(text: str | None) -> list[str] | None:
    from rarevote.methods.registry import find_method

    names = names_in(text, "--methods")
    return None if names is None else [find_method(name).name for name in names]


def _runnable(methods: list[str] | None, *, quiet: bool) -> list[str]:
    """The methods asked for that can run here without gold; what cannot is told, and is an error if it was named."""
    from rarevote.study.cells import Variant, unavailable
    from rarevote.study.paper import choose_methods

    chosen = choose_methods(methods)
    for variant, reason in unavailable([Variant(name) for name in chosen]).items():
        if methods is not None:
            raise InputError(f"{variant.method} cannot run here: {reason}")
        chosen.remove(variant.method)
        if not quiet:
            say(f"{variant.method} was not run: {reason}")
    return chosen


# --------------------------------------------------------------------------------------------------------------------
# what a person sees of the paper's study


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
        warn(note)
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
    kinds = (("binary", "all"), ("multiclass", "all"), ("large-scale", "annotations"), ("large-scale", "items"))
    rows = []
    for table, regime in kinds:
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
def _progress(*, quiet: bool) -> Iterator[Callable[[StudyProgress], None] | None]:
    """Shows cells done and the time left: a bar on a terminal, else a line now and then."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")
        yield lambda now: bar.update(task, completed=now.done, total=now.total, left=_left(now))


def _lines() -> Callable[[StudyProgress], None]:
    """Progress where nobody can see a bar move, such as in a log: a line if the last is a while ago."""
    last = time.perf_counter()

    def report(now: StudyProgress) -> None:
        nonlocal last
        if time.perf_counter() - last >= _SECONDS_BETWEEN_LINES:
            last = time.perf_counter()
            say(f"{now.done} of {now.total} cells, {_left(now)}")

    return report


def _left(now: StudyProgress) -> str:
    return "" if now.seconds_left is None else time_left(now.seconds_left)
