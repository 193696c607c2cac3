"""``rarevote study synthetic``, ``gold``, ``theory`` and ``speed``: the experiments beside the paper's tables."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarevote.cli.options.common import Quiet
from rarevote.cli.show import counting, say
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.study.page import Section

PEER_PYTHON = "RAREVOTE_PEER_PYTHON"

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

SYNTHETIC_EXAMPLES = """Examples:

rarevote study synthetic --out study

rarevote study synthetic --methods majority-vote,dawid-skene,cc-rasch --seeds 50 --out study"""

GOLD_EXAMPLES = """Examples:

rarevote study gold --data datasets --out study

rarevote study gold --data datasets --datasets rte,product --seeds 5 --out study"""

THEORY_EXAMPLES = """Examples:

rarevote study theory --out study

rarevote study theory --seeds 50 --items 8000 --out study"""

SPEED_EXAMPLES = """Examples:

rarevote study speed --out study

rarevote study speed --peer-python venv-with-crowd-kit/bin/python --sizes 10000,100000,1000000 --out study"""


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
    from rarevote.study.synthetic import CrowdSettings, n_trials, run_synthetic

    chosen = _runnable(methods, quiet=quiet)
    crowd = CrowdSettings(
        n_tasks=tasks,
        n_workers=workers,
        votes_per_task=votes,
        imbalance=imbalance,
        hard_share=hard_share,
        hard_penalty=hard_penalty,
    )
    _make_folder(out)
    with counting("simulated crowds", n_trials(seeds), quiet=quiet) as report:
        section = run_synthetic(
            out, chosen, n_seeds=seeds, crowd=crowd, n_jobs=jobs, report=report, command=command_line()
        )
    _tell(section, out, quiet=quiet)


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
    from rarevote.study.gold import choose_datasets, n_trials, run_gold

    wanted = None if methods is None else _names(methods, "--methods")
    for name in wanted or ():
        _check_method(name)
    chosen = choose_datasets(data, None if datasets is None else _names(datasets, "--datasets"))
    _make_folder(out)
    with counting("draws of gold", n_trials(chosen, seeds), quiet=quiet) as report:
        section = run_gold(
            out, chosen, data=data, methods=wanted, n_seeds=seeds, n_jobs=jobs, report=report, command=command_line()
        )
    _tell(section, out, quiet=quiet)


def theory(
    out: Out,
    methods: Methods = None,
    seeds: Seeds = 20,
    items: Annotated[int, typer.Option(min=80, help="Items that a growing crowd labels.")] = 4000,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """The jury condition against simulation: when majority vote recovers the rare class, and when it cannot."""
    from rarevote.study.theory import METHODS, n_trials, run_theory

    chosen = _runnable(methods or ",".join(METHODS), quiet=quiet)
    _make_folder(out)
    with counting("simulated crowds", n_trials(seeds), quiet=quiet) as report:
        section = run_theory(
            out, chosen, n_seeds=seeds, n_items=items, n_jobs=jobs, report=report, command=command_line()
        )
    _tell(section, out, quiet=quiet)


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
    from rarevote.study.speed import METHODS, OURS, PEER, find_runner, n_runs, run_speed

    chosen = list(METHODS) if methods is None else _names(methods, "--methods")
    for name in chosen:
        _check_method(name)
    numbers = _sizes(sizes)
    found = [find_runner(OURS, sys.executable), find_runner(PEER, peer_python or sys.executable)]
    runners = [runner for runner in found if runner is not None]
    if len(runners) < len(found) and not quiet:
        say(f"{PEER} is not installed there: name a Python that has it with --peer-python or {PEER_PYTHON}")
    _make_folder(out)
    with counting("fits", n_runs(runners, chosen, numbers), quiet=quiet) as report:
        section = run_speed(
            out, runners, methods=chosen, sizes=numbers, time_limit=time_limit, report=report, command=command_line()
        )
    _tell(section, out, quiet=quiet)


# --------------------------------------------------------------------------------------------------------------------
# what they share


def _names(text: str, option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ParameterError(f"{option} wants names with commas between, got {text!r}")
    return names


def _sizes(text: str) -> list[int]:
    try:
        return [int(part.replace("_", "")) for part in _names(text, "--sizes")]
    except ValueError:
        raise ParameterError(f"--sizes wants whole numbers with commas between, got {text!r}") from None


def _check_method(name: str) -> None:
    from rarevote.methods.registry import find_method

    find_method(name)


def _runnable(methods: str | None, *, quiet: bool) -> list[str]:
    """The methods asked for that can run here without gold; what cannot is told, and is an error if it was named."""
    from rarevote.study.cells import Variant, unavailable
    from rarevote.study.paper import choose_methods

    chosen = choose_methods(None if methods is None else _names(methods, "--methods"))
    for variant, reason in unavailable([Variant(name) for name in chosen]).items():
        if methods is not None:
            raise InputError(f"{variant.method} cannot run here: {reason}")
        chosen.remove(variant.method)
        if not quiet:
            say(f"{variant.method} was not run: {reason}")
    return chosen


def _make_folder(out: Path) -> None:
    """Fail before the work rather than after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made a folder ({error.strerror})") from None
    if not os.access(out, os.W_OK):
        raise InputError(f"{out}: cannot be written to")


def command_line() -> str:
    """What the user typed, for the page's footer."""
    return shlex.join(["rarevote", *sys.argv[1:]])


def _tell(section: Section, out: Path, *, quiet: bool) -> None:
    if quiet:
        return
    for finding in section.findings:
        typer.echo(finding)
    say(f"\n{section.seconds:.0f} s. Results, figures and the page are in {out}: {section.name}.md, index.html")
