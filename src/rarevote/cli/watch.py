"""``rarevote watch``: aggregate while people still label, and run an audit through a project."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.decisions import DecisionArguments, with_decisions
from rarevote.cli.options.fit import FitOptions, with_fit_and_rare
from rarevote.cli.options.live import ServerOptions, column_option, with_server
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import Option, file_option, verb
from rarevote.cli.show import say, tell_json, warn
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.io.read.crowd import Crowd
    from rarevote.result import Result
    from rarevote.watch.audits import AuditRound
    from rarevote.watch.labels import WatchRound

_PLATFORM = "label-studio"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_OF_AUDITS = {"labels", "out", "every", "rounds", "url", "review_project", "question", "quiet", "as_json"}
_OF_PROJECTS = ("project", "push", "column")


def _seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """``5m`` as seconds."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 7 * 24 * 3600.0:
        raise ParameterError(f"--every must be a time from 1s to a week, such as 30s, 5m or 1h, got {text!r}")
    return seconds


@verb(
    "rarevote watch labels.csv --every 1m --out watched",
    "rarevote watch label-studio --url http://127.0.0.1:8080 --project 7 --every 5m --column p_defect --out watched",
    "rarevote watch label-studio --url http://127.0.0.1:8080 --project 7 --max-review 20 --review-project 8 "
    "--out watched",
    "rarevote watch audit.json --url http://127.0.0.1:8080 --review-project 8 --every 1m --out proved",
)
@with_reading
@with_fit_and_rare
@with_decisions
@with_server
@column_option
@click.option(
    "--push/--no-push",
    default=True,
    cls=Option,
    section="The server",
    help="Whether to write labels to the project as predictions.",
)
@click.option(
    "--review-project",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    cls=Option,
    section="The server",
    help="A second project where experts answer: items to review are sent there and answers are read from it. Needs "
    "--max-review, unless LABELS is a plan.",
)
@file_option("--out", "-o", metavar="DIR", required=True, help="The folder to write results to.")
@click.option(
    "--every", metavar="TIME", default="5m", callback=_seconds, help="How often to check for new votes: 30s, 5m, 1h."
)
@click.option(
    "--rounds", metavar="N", type=click.IntRange(min=1), help="Stop after N checks. Default: run until Ctrl-C."
)
@talk_options
def watch(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    server: ServerOptions,
    *,
    column: str | None,
    push: bool,
    review_project: int | None,
    out: Path,
    every: float,
    rounds: int | None,
    as_json: bool,
) -> None:
    """Aggregate whenever there are new votes, and show what changed.

    LABELS are files of votes, the word label-studio for a project on a server, or the plan of an audit. Ctrl-C
    stops it; the same command resumes.
    """
    from rarevote.watch.labels import watching

    with ExitStack() as stack:
        if _is_plan(reading.labels):
            _refuse_given("not for an audit, whose plan decides this", lambda name: name not in _OF_AUDITS)
            poll = _of_audit(Path(reading.labels[0]), out, server, review_project, reading.options["question"], stack)
        else:
            if reading.labels != [_PLATFORM]:
                _refuse_given(f"only for projects: rarevote watch {_PLATFORM}", lambda name: name in _OF_PROJECTS)
            if review_project is not None and decisions.max_review is None:
                raise ParameterError("--review-project needs --max-review N: the number of items to send at a time")
            poll = _of_labels(reading, fit_options, decisions, server, column, push, review_project, out, stack)
        stack.enter_context(watching(out))
        _run(poll(), every, rounds, as_json=as_json)


def _run(poll: Callable[[], Any], every: float, most: int | None, *, as_json: bool) -> None:
    from rarevote.watch.labels import WatchRound, rounds

    quiet_since = False
    for found in rounds(
        poll, every=every, most=most, sleep=time.sleep, failed=lambda error: warn(f"{error}; will try again")
    ):
        if found is None:
            if not quiet_since:
                say("no new votes; waiting (Ctrl-C stops)")
            quiet_since = True
            continue
        quiet_since = False
        if isinstance(found, WatchRound):
            _tell_round(found, as_json=as_json)
        elif _tell_audit(found, as_json=as_json):
            return


# --------------------------------------------------------------------------------------------------------------------
# labels


def _of_labels(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    server: ServerOptions,
    column: str | None,
    push: bool,
    review_project: int | None,
    out: Path,
    stack: ExitStack,
) -> Callable[[], Callable[[], Any]]:
    """A function that creates the poll once the folder is locked; contradictions are refused here."""
    from rarevote.decide.columns import result_names
    from rarevote.io.live.predictions import Column
    from rarevote.io.read.options import ReadOptions
    from rarevote.io.write.atomic import make_folder
    from rarevote.io.write.columns import check_columns
    from rarevote.methods.registry import require_capability
    from rarevote.watch.labels import RESULT, LabelsWatch
    from rarevote.watch.projects import ReviewProject
    from rarevote.watch.sources import Files, LabelStudioProject, Source

    if decisions.max_review is not None and decisions.review_out is None:
        make_folder(out)
        decisions = replace(decisions, review_out=out / "review.csv")
    deciding = decisions.options(has_gold=fit_options.may_have_gold, grades=fit_options.grades)
    estimator = fit_options.make()
    if review_project is not None:
        require_capability(estimator, "gold", "--review-project")
    if reading.labels == [_PLATFORM]:
        project = stack.enter_context(server.open())
        wanted = None if column is None else Column(column)
        source: Source = LabelStudioProject(project, out, pushes=push, column=wanted)
        if push and project.shows_predictions():
            from rarevote.io.live.label_studio import PRELABELLED

            warn(PRELABELLED)
    else:
        source = Files(reading.labels, reading.options["items"])
    review = None
    if review_project is not None:
        second = stack.enter_context(server.open(review_project))
        if server.project == review_project and reading.labels == [_PLATFORM]:
            raise ParameterError(
                "--review-project must differ from --project: an expert's answers would count as votes there"
            )
        question = reading.options["question"]
        review = ReviewProject(second, out, question=question, max_review=decisions.max_review)

    def fit(crowd: Crowd, answers: Mapping[Any, Any]) -> Fitted:
        def check(classes: list[Any]) -> None:
            check_columns(result_names(classes, crowd.shown), out / RESULT)

        if not answers:
            return fit_options.fit(crowd, fit_options.make(), check=check)
        given = crowd.known(fit_options.gold) if fit_options.gold else crowd.gold if fit_options.use_gold else {}
        taught = replace(crowd, gold={**given, **crowd.known(dict(answers))})
        return replace(fit_options, gold=None, use_gold=True).fit(taught, fit_options.make(), check=check)

    def decide(fitted: Fitted) -> Result:
        result = fitted.decide(**deciding)
        decisions.review(result)
        return result

    settings = f"{fit_options} {decisions} {sorted(reading.options.items(), key=str)} {column} {push}"
    return lambda: (
        LabelsWatch(
            source,
            out,
            options=ReadOptions(**reading.options),
            fit=fit,
            decide=decide,
            review=review,
            settings=settings,
        ).poll
    )


def _tell_round(found: WatchRound, *, as_json: bool) -> None:
    if as_json:
        pushed = None if found.pushed is None else vars(found.pushed)
        tell_json({**found.changes.figures(), "pushed": pushed, "asked": found.asked, "answered": found.answered})
        return
    say(time.strftime("%H:%M:%S"))
    for sentence in found.changes.sentences():
        say(sentence)
    if found.answered or found.asked:
        answers = counted(found.answered, "answer")
        say(f"review project: {answers} so far, {counted(found.asked, 'further item')} sent")
    if found.pushed is not None:
        say(f"pushed {counted(found.pushed.predictions, 'prediction')}")


# --------------------------------------------------------------------------------------------------------------------
# audits


def _is_plan(labels: list[str]) -> bool:
    from rarevote.audit.source import is_plan

    return len(labels) == 1 and is_plan(Path(labels[0]))


def _of_audit(
    plan: Path, out: Path, server: ServerOptions, number: int | None, question: str | None, stack: ExitStack
) -> Callable[[], Callable[[], Any]]:
    from rarevote.audit.source import files_behind
    from rarevote.io.write.overwrite import refuse_overwriting
    from rarevote.watch.audits import AuditWatch
    from rarevote.watch.projects import ReviewProject

    if number is None:
        raise ParameterError("an audit needs --review-project NUMBER, the project where experts answer")
    refuse_overwriting(out, [plan, *files_behind(plan)], named=f"--out {out}", replaced=(".csv", ".json", ".html"))
    project = stack.enter_context(server.open(number))
    return lambda: AuditWatch(plan, out, ReviewProject(project, out, question=question)).poll


def _tell_audit(found: AuditRound, *, as_json: bool) -> bool:
    """Print the state of the audit; returns whether it is over."""
    from rarevote.audit.of_fit import summary
    from rarevote.audit.words import certified_words, status_words

    if as_json:
        tell_json({**summary(found.audit), "taken": found.taken, "asked": found.asked})
    elif found.taken or found.asked:
        say(time.strftime("%H:%M:%S"))
        say(f"{counted(found.taken, 'answer')} read, {counted(found.asked, 'item')} sent for review")
        say(status_words(found.audit))
    if found.is_over:
        say(f"The audit asks for no more reviews: {found.audit.stopped}. CERTIFIED: {certified_words(found.audit)}")
    return found.is_over


def _refuse_given(why: str, is_strange: Callable[[str], bool]) -> None:
    """Refuse options that were given but do not apply."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is not None and source.name == "COMMANDLINE" and is_strange(str(option.name)):
            raise ParameterError(f"{option.opts[0]}: {why}")
