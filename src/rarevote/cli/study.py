"""``rarevote study``: the experiments, rerun by one command each."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.output import quiet_option, talk_options
from rarevote.cli.options.verb import Verbs, examples, file_option, names_option, takes
from rarevote.cli.show import aligned, complain, is_quiet, say, share, tell, tell_json, warn
from rarevote.crowd.steps import ProgressStep, alone, counting
from rarevote.errors import InputError, ParameterError
from rarevote.progress import time_left

if TYPE_CHECKING:
    from rarevote.study.cells import StudyProgress
    from rarevote.study.experiment import Experiment
    from rarevote.study.paper import PaperStudy
    from rarevote.study.results import ResultRow

PEER_PYTHON = "RAREVOTE_PEER_PYTHON"


_AT_LEAST_ONE = click.IntRange(min=1)
_SHARE = click.FloatRange(min=0, max=1)

out_option = file_option(
    "--out", "-o", metavar="FOLDER", required=True, help="Folder for results, figures and the page index.html."
)
methods_option = names_option("--methods", help="Methods (see: rarevote methods). Default: the paper's.")
data_option = file_option(
    "--data",
    metavar="FOLDER",
    help="Folder of datasets, each a folder NAME with labels.csv and truth.csv, the paper's or your own. Default: "
    "RAREVOTE_DATA, downloads.",
)
jobs_option = click.option("--jobs", "n_jobs", type=_AT_LEAST_ONE, help="Number of processes. Default: all cores.")


@dataclass(frozen=True)
class Trials:
    """The options of a repeated experiment."""

    out: Path
    methods: list[str] | None
    seeds: int
    n_jobs: int | None

    def run(self, experiment: Experiment) -> None:
        """Run the experiment, and print the results."""
        _run(experiment, self.out, self.n_jobs)


with_trials = takes(
    Trials,
    out_option,
    methods_option,
    click.option("--seeds", type=_AT_LEAST_ONE, default=20, help="Number of repetitions of each experiment."),
    jobs_option,
)


@click.group(
    cls=Verbs,
    no_args_is_help=True,
    epilog=examples("rarevote study paper --data datasets --out study", "rarevote study synthetic --out study"),
)
def study() -> None:
    """Rerun the experiments: every table and figure, with our results beside the paper's."""


@study.verb(
    "rarevote study paper --data datasets --out study",
    "rarevote study paper --methods majority-vote,cc-rasch --datasets rte,cf-star --out study",
    "rarevote study paper --data my-crowds --methods majority-vote,anchored-rasch --out study",
    after="Stopped half-way? The same command resumes it. Remove study/cells to start from the beginning.",
)
@file_option(
    "--out", "-o", metavar="FOLDER", required=True, help="Folder for the tables; finished cells are kept in it."
)
@data_option
@methods_option
@names_option(
    "--datasets",
    help="Names of datasets (rarevote datasets list) or of folders in --data. Default: the paper's and all in "
    "--data; only those in --data if none is the paper's.",
)
@click.option("--seeds", "n_seeds", type=_AT_LEAST_ONE, default=4, help="Seeds for methods that are random.")
@jobs_option
@click.option("--ablation/--no-ablation", default=True, help="Also run the ablation: class prior against model.")
@talk_options
def paper(out: Path, as_json: bool, **chosen: Any) -> None:
    """All methods on all datasets of the paper: results, tables, and differences from the printed figures."""
    from rarevote.study.paper import run_paper_study
    from rarevote.study.paper_page import publish_paper

    begin = time.perf_counter()
    with _progress() as report:
        found = run_paper_study(out, report=report, **chosen)
    section = publish_paper(found, out, command=_command_line(), begin=begin)
    if as_json:
        tell_json(_summary(found, out, section.seconds))
    elif not is_quiet():
        _tell(found, out, section.seconds)
    for failure in found.failures:
        complain(failure)
    if found.failures:
        raise click.exceptions.Exit(1)


@study.verb(
    "rarevote study synthetic --out study",
    "rarevote study synthetic --methods majority-vote,dawid-skene,cc-rasch --seeds 50 --out study",
)
@with_trials
@click.option("--tasks", "n_tasks", type=click.IntRange(min=10), default=3000, help="Tasks in a crowd.")
@click.option("--workers", "n_workers", type=click.IntRange(min=4), default=60, help="Workers in a crowd.")
@click.option(
    "--votes",
    "votes_per_task",
    type=click.FloatRange(min=1),
    default=8.0,
    help="Mean votes per task, where that is not varied.",
)
@click.option(
    "--imbalance",
    type=click.FloatRange(min=1),
    default=7.0,
    help="Size of the largest class divided by the smallest, where that is not varied.",
)
@click.option("--hard-share", type=_SHARE, default=0.3, help="Share of hard tasks.")
@click.option("--hard-penalty", type=_SHARE, default=0.15, help="How much lower the accuracy is on a hard task.")
@quiet_option
def synthetic(trials: Trials, **crowd: Any) -> None:
    """Simulated crowds: recall of the rare class as its specialists vanish, by imbalance, and by votes per task."""
    from rarevote.study.synthetic import CrowdSettings, SyntheticStudy

    trials.run(SyntheticStudy(_runnable(trials.methods), trials.seeds, crowd=CrowdSettings(**crowd)))


@study.verb(
    "rarevote study gold --data datasets --out study",
    "rarevote study gold --data datasets --datasets rte,product --seeds 5 --out study",
)
@with_trials
@data_option
@names_option(
    "--datasets",
    help="Datasets. Default: the 4 largest with Imb < 1.3 and with Imb > 3; all of --data where none is the paper's.",
)
@quiet_option
def gold(trials: Trials, data: Path | None, datasets: list[str] | None) -> None:
    """Methods that learn from gold compared with CC-Rasch with and without gold, by share of gold."""
    from rarevote.study.gold import GoldStudy, choose_datasets

    wanted = _known_methods(trials.methods)
    trials.run(GoldStudy(choose_datasets(data, datasets), data, wanted, trials.seeds))


@study.verb(
    "rarevote study features --data features --out study",
    "rarevote study features --data features --contenders votes,features,raykar --seeds 10 --out study",
    after="Stopped half-way? The same command resumes it. Remove study/runs to start from the beginning.",
)
@out_option
@file_option(
    "--data",
    metavar="FOLDER",
    required=True,
    help="Folder of datasets, each with labels.csv, truth.csv and features.parquet.",
)
@names_option("--datasets", help="Datasets, by the names of their folders. Default: all.")
@names_option(
    "--contenders",
    help="Among votes, features, pred-probs, raykar, crowdlab (needs cleanlab), ccgpfl (needs JAX). Default: all that "
    "can run here.",
)
@names_option("--votes", "levels", metavar="N,N", default="1,2,3,all", help="Votes per item.")
@click.option("--seeds", type=_AT_LEAST_ONE, default=5, help="Draws of the votes at each number of votes.")
@click.option("--ccgpfl-seeds", type=_AT_LEAST_ONE, default=1, help="The same for CCGPFL, which takes minutes per run.")
@names_option("--ccgpfl-votes", metavar="N,N", help="Votes per item for CCGPFL. Default: as --votes.")
@jobs_option
@quiet_option
def features(out: Path, data: Path, n_jobs: int | None, **chosen: Any) -> None:
    """What features add to votes: our fit with and without features, and rival methods, by votes per item."""
    from rarevote.study.feature_contenders import choose_contenders
    from rarevote.study.feature_sets import find_feature_sets
    from rarevote.study.features import FeatureStudy, check_levels

    slow = chosen["ccgpfl_votes"]
    levels = check_levels(chosen["levels"]), None if slow is None else check_levels(slow)
    contenders, absent = choose_contenders(chosen["contenders"])
    for reason in absent:
        say(f"left out: {reason}")
    study = FeatureStudy(
        find_feature_sets(data, chosen["datasets"]),
        contenders,
        out / "runs",
        n_seeds=chosen["seeds"],
        n_random_seeds=chosen["ccgpfl_seeds"],
        levels=levels[0],
        random_levels=levels[1],
        notes=[f"Left out: {reason}." for reason in absent],
    )
    _run(study, out, n_jobs)


@study.verb("rarevote study theory --out study", "rarevote study theory --seeds 50 --items 8000 --out study")
@with_trials
@click.option("--items", type=click.IntRange(min=80), default=4000, help="Number of items.")
@quiet_option
def theory(trials: Trials, items: int) -> None:
    """The jury condition and simulations: when a majority vote recovers the rare class, and when it cannot."""
    from rarevote.study.theory import METHODS, TheoryStudy

    trials.run(TheoryStudy(_runnable(trials.methods or list(METHODS)), trials.seeds, items))


@study.verb(
    "rarevote study speed --out study",
    "rarevote study speed --peer-python venv-with-crowd-kit/bin/python --sizes 10000,100000,1000000 --out study",
)
@out_option
@methods_option
@names_option(
    "--sizes",
    metavar="N,N",
    default="10000,100000,1000000,10000000",
    help="Numbers of annotations.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=120.0,
    help="Time limit of a fit, in seconds.",
)
@click.option("--peer-python", envvar=PEER_PYTHON, help="A Python that has crowd-kit. Default: this one.")
@quiet_option
def speed(out: Path, methods: list[str] | None, sizes: list[str], time_limit: float, peer_python: str | None) -> None:
    """Time and memory of our methods and of crowd-kit, with each fit in a separate process."""
    from rarevote.study.speed import METHODS, OURS, PEER, SpeedStudy, find_installation

    chosen, numbers = _known_methods(methods) or METHODS, _sizes(sizes)
    found = [find_installation(OURS, sys.executable), find_installation(PEER, peer_python or sys.executable)]
    installations = [one for one in found if one is not None]
    if len(installations) < len(found):
        say(f"{PEER} is not installed: name a Python that has it with --peer-python or {PEER_PYTHON}")
    _run(SpeedStudy(installations, chosen, numbers, time_limit), out, None)


# --------------------------------------------------------------------------------------------------------------------
# common parts


def _run(experiment: Experiment, out: Path, jobs: int | None) -> None:
    from rarevote.study.experiment import make_folder

    make_folder(out)
    with counting(experiment.unit, len(experiment.trials())) as report:
        section = experiment.run(out, n_jobs=jobs, report=report, command=_command_line())
    if not is_quiet():
        for finding in section.findings:
            tell(finding)
        say(f"\n{section.seconds:.0f} s. Results, figures and the page are in {out}: {section.name}.md, index.html")


def _command_line() -> str:
    """What the user typed, for the page's footer."""
    return shlex.join(["rarevote", *sys.argv[1:]])


def _sizes(texts: list[str]) -> list[int]:
    try:
        return [int(text.replace("_", "")) for text in texts]
    except ValueError:
        raise ParameterError(f"--sizes must be whole numbers separated by commas, got {','.join(texts)!r}") from None


def _known_methods(names: list[str] | None) -> list[str] | None:
    from rarevote.methods.registry import find_method

    return None if names is None else [find_method(name).name for name in names]


def _runnable(methods: list[str] | None) -> list[str]:
    """The requested methods that can run without gold; others are reported, and raise an error if they were named."""
    from rarevote.study.cells import Variant, unavailable
    from rarevote.study.paper import choose_methods

    chosen = choose_methods(methods)
    for variant, reason in unavailable([Variant(name) for name in chosen]).items():
        if methods is not None:
            raise InputError(f"{variant.method} cannot run here: {reason}")
        chosen.remove(variant.method)
        say(f"{variant.method} was not run: {reason}")
    return chosen


# --------------------------------------------------------------------------------------------------------------------
# output of the paper's study


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
        "own": [
            {"dataset": one.dataset, "method": one.method, "status": one.status}
            | {metric: one.figure(metric) for metric in _OWN}
            for one in _own_results(study)
        ],
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
        tell(aligned(["datasets", "method", "sets", *figures], rows))
        tell(
            "\nRecall of the rarest class and macro-F1: the paper's own rows, averaged over the same datasets.\n"
            "Balanced accuracy: the paper's summary tables, in which datasets that are absent here are counted."
        )
    own = _own_results(study)
    if own:
        tell(
            ("\n" if rows else "")
            + aligned(
                ["dataset", "method", "recall of the rarest", "bal. accuracy", "macro-F1"],
                [[one.dataset, one.method, *(share(one.figure(metric)) for metric in _OWN)] for one in own],
            )
        )
    done = sum(result.status == "done" for result in study.results.values())
    say(f"\n{done} results in {seconds:.0f} s. Tables: {out / 'results.csv'} and beside it. Page: {out / 'index.html'}")


_OWN = ("minority_recall", "balanced_accuracy", "macro_f1")


def _own_results(study: PaperStudy) -> list[ResultRow]:
    """Results on datasets that are not in the paper."""
    own = [one.slug for one in study.sets if not one.paper_name]
    return [study.results[slug, method] for slug in own for method in study.methods]


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
def _progress() -> Iterator[Callable[[StudyProgress], None]]:
    """Show the finished cells and the time left."""
    with alone() as show:
        yield lambda now: show(
            ProgressStep("fitting", now.done, now.total, f"{now.done:,} of {now.total:,} cells", left=_left(now))
        )


def _left(now: StudyProgress) -> str:
    return "" if now.seconds_left is None else time_left(now.seconds_left)
