"""``rarevote audit``: prove a recall with few reviews by an expert, for any crowd and any method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.audit_start import audit_of_table, audit_of_votes, check_scored
from rarevote.cli.options.audits import check_plan_file, parse_find
from rarevote.cli.options.decisions import check_review_file, check_review_form, review_as_option
from rarevote.cli.options.fit import FitOptions, with_fit
from rarevote.cli.options.output import json_option, spreadsheet_option, talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import PATH, Verbs, argument, default_from, examples, file_option, flag, one_of
from rarevote.cli.options.workbench import InstructionOptions, WorkbenchOptions, with_instructions, with_workbench
from rarevote.cli.show import command, say, tell, tell_json, warn
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.audit import Audit
    from rarevote.audit.journal import Journal
    from rarevote.io.read.crowd import Crowd
    from rarevote.workbench.session import ReviewSession

_AIMS = ("certificate", "estimate")

plan_argument = argument("plan", metavar="PLAN", type=PATH, help="The plan that `rarevote audit start` wrote.")
list_option = file_option("--review-out", required=True, help="The file to write the expert's list to.")
who_option = click.option("--who", metavar="NAME", help="The expert's name; an export already has it.")
question_option = click.option("--question", metavar="NAME", help="The question to read, if the export has several.")


@click.group(
    cls=Verbs,
    no_args_is_help=True,
    epilog=examples(
        "rarevote audit start labels.csv --find defect=0.9 --plan audit.json --review-out round-1.csv",
        "rarevote audit continue audit.json --answers round-1.csv --review-out round-2.csv",
        "rarevote audit review audit.json",
        "rarevote audit status audit.json",
        "rarevote audit finish audit.json --out result.csv --certificate certificate.json",
        "rarevote audit repeat audit.json --review-out again.csv",
        "rarevote audit verify audit.json certificate.json",
    ),
)
def audit() -> None:
    """Prove a recall with few reviews by an expert."""


@audit.verb(
    "rarevote audit review audit.json",
    "rarevote audit review audit.json --media photos/ --who anna",
    "rarevote audit review audit.json --port 8080 --no-browser",
)
@with_workbench
@plan_argument
@talk_options
def review(workbench: WorkbenchOptions, *, plan: Path, as_json: bool) -> None:
    """Answer the audit's items in the browser; every answer is saved before the next item is shown."""
    from rarevote.audit.journal import writing
    from rarevote.workbench.audits import AuditSession, check_plan

    media = workbench.shown_media()
    check_plan(plan)

    def sit(journal: Journal) -> ReviewSession:
        return AuditSession(plan, media=media, journal=journal, who=workbench.who, show_as=workbench.show_as)

    if workbench.offline is not None:
        answers = workbench.offline.with_name(f"{workbench.offline.stem}.answers.json").name
        then = command("rarevote", "audit", "continue", plan, "--answers", answers, "--review-out", _next_list(plan))
        workbench.write_offline(sit, writing(plan), then, as_json=as_json)
    else:
        workbench.run(sit, writing(plan), as_json=as_json)


@audit.verb(
    "rarevote audit start labels.csv --find defect=0.9 --plan audit.json --review-out round-1.csv",
    "rarevote audit start labels.csv --find defect=0.9 --gold known.csv --show text --budget 300 "
    "--plan audit.json --review-out round-1.csv",
    "rarevote audit start labels.csv --find defect=0.9 --confidence 0.8 --plan audit.json --review-out tasks.json "
    "--review-as label-studio",
    "rarevote audit start scores.csv --score p --find relevant=0.95 --plan audit.json --review-out round-1.csv",
)
@with_reading
@with_fit
@with_instructions
@click.option(
    "--score",
    metavar="COLUMN",
    help="Audit a ranking instead of votes: the file is a table of items with a score in this column, from any "
    "classifier or screening tool.",
)
@flag("--ascending", help="With --score: the smallest score is the most likely, as in a ranking from 1.")
@click.option(
    "--find",
    metavar="CLASS=RECALL",
    required=True,
    help='The recall to prove, such as defect=0.9; with --ordered ">=severe=0.9", with --multilabel CHOICE=RECALL.',
)
@file_option("--plan", required=True, help="The plan to write; an existing plan is never overwritten.")
@list_option
@click.option(
    "--confidence",
    metavar="SHARE",
    default="0.95",
    help="Confidence of the certificate: 0.95 allows a false one with probability 0.05 at most.",
)
@click.option("--flag-cost", metavar="N", default=1.0, help="Cost of a flagged item, in reviews.")
@click.option(
    "--aim",
    default="certificate",
    help="certificate, or estimate: spend the first reviews on narrow intervals.",
    shell_complete=one_of(*_AIMS),
)
@click.option("--budget", metavar="N", type=int, help="The largest number of reviews to ask for.")
@flag("--only-voted-items", help="Leave out items without votes; plan, certificate and page say so.")
@review_as_option
@talk_options
def start(
    reading: Reading,
    fit_options: FitOptions,
    instructions: InstructionOptions,
    *,
    find: str,
    plan: Path,
    review_out: Path,
    score: str | None,
    ascending: bool,
    aim: str,
    flag_cost: float,
    review_as: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Freeze the ranking and the seed, forecast the reviews, and draw the first items for the expert."""
    from rarevote.audit.source import earlier_audits, files_sha256, labels_sha256, score_record, source_record
    from rarevote.audit.words import start_words

    of_choice = reading.options["multilabel"] and reading.options["choice"] is None
    if of_choice:  # the label is the class to find
        reading.options["choice"], _ = parse_find(find)
    if aim not in _AIMS:
        raise ParameterError(f"--aim must be {', '.join(_AIMS)}, got {aim!r}")
    check_review_form(review_as)
    asked = instructions.read()
    check_plan_file(plan)
    check_review_file(review_out, review_as)
    if ascending and score is None:
        raise ParameterError("--ascending needs --score")
    if score is None:
        files = source_record(reading.labels, reading.options, review_as, plan)
    else:
        check_scored(fit_options)
        files = score_record(reading.labels, reading.options, review_as, plan, score)
    # Before the labels are read: the fitted data are at least as new as the fingerprint, never older.
    fingerprint = labels_sha256(reading.labels, reading.options["items"])
    earlier = earlier_audits(plan, fingerprint)
    begin = {
        "aim": aim,
        "flag_cost": flag_cost,
        "files": files,
        "labels_sha256": fingerprint,
        "gold_sha256": None if fit_options.gold is None else files_sha256([fit_options.gold]),
        "earlier": earlier,
        "instructions": asked,
        **given,
    }
    if score is None:
        audit, crowd, more = audit_of_votes(reading, fit_options, find, of_choice, begin)
    else:
        audit, crowd = audit_of_table(reading, fit_options, find, score, ascending, begin)
        more = {}
    say()
    say(start_words(audit))
    if earlier:
        say(f"Earlier audits of these labels in this folder: {len(earlier)}. The certificate will name them.")
    if not audit.round():
        raise InputError(
            f"{reading.title}: {audit.stopped}, so no plan was made. Review all items, lower the target or "
            f"--confidence, or set --flag-cost if a flagged item costs more than {flag_cost:g} "
            f"{'review' if flag_cost == 1 else 'reviews'}"
        )
    _ask(audit, plan, review_out, crowd, as_json=as_json, more=more)


@audit.verb(
    "rarevote audit continue audit.json --answers round-1.csv --review-out round-2.csv --who anna",
    "rarevote audit continue audit.json --answers round-2.csv --worst-case --review-out round-3.csv",
    "rarevote audit continue audit.json --answers project-7-export.json --question quality --review-out next.json",
    name="continue",
)
@plan_argument
@list_option
@file_option(
    "--answers",
    help="The expert's answers: a table (task, label), the file that an offline page saved, or an export of Label "
    "Studio or Argilla. Default: list the open items again.",
)
@who_option
@question_option
@flag("--worst-case", help="Close open items with the answer that is worst for every claim.")
@talk_options
def resume(
    plan: Path,
    review_out: Path,
    answers: Path | None,
    who: str | None,
    question: str | None,
    worst_case: bool,
    as_json: bool,
) -> None:
    """Read answers, show the status, and draw the next items while reviews save more than they cost."""
    from rarevote.audit.source import read_again
    from rarevote.audit.words import status_words

    audit = _load(plan)
    check_review_file(review_out, _form(audit))
    crowd = read_again(audit, plan)
    if answers is not None:
        _take_in(audit, audit.answer, answers, who, question)
    if worst_case:
        audit.worst_case(who=who)
    say(status_words(audit))
    _ask(audit, plan, review_out, crowd, as_json=as_json)


@audit.verb("rarevote audit status audit.json", "rarevote audit status audit.json --json")
@plan_argument
@json_option
def status(plan: Path, as_json: bool) -> None:
    """Show what is certified, what is supported, and what more reviews would gain."""
    from rarevote.audit.of_fit import summary
    from rarevote.audit.words import relative_to, status_words

    audit = _load(plan)
    if as_json:
        tell_json(summary(audit))
    else:
        tell(status_words(audit))
        tell(relative_to(audit))


@audit.verb("rarevote audit finish audit.json --out result.csv --certificate certificate.json")
@plan_argument
@file_option(
    "--out",
    "-o",
    required=True,
    help="The result: the class for items of the final list, the best other class for the rest.",
)
@file_option("--certificate", required=True, help="The certificate (.json), which others can verify.")
@file_option(
    "--page",
    callback=default_from("certificate", ".html"),
    help="The page of the certificate. Default: the certificate's name with .html.",
)
@spreadsheet_option
@talk_options
def finish(
    plan: Path,
    out: Path,
    certificate: Path,
    page: Path,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Write the result, the certificate and its page; the audit can still continue."""
    from rarevote.audit.certificate import write_certificate
    from rarevote.audit.of_fit import result_columns, summary
    from rarevote.audit.source import read_again
    from rarevote.audit.words import certified_words, gold_words, relative_to
    from rarevote.io.write.columns import check_output, check_place, write_columns
    from rarevote.page.proved import write_proved_page
    from rarevote.page.report import check_page_path

    check_output(out)
    check_place(certificate)
    check_page_path(page)
    audit = _load(plan)
    crowd = read_again(audit, plan)
    rows = result_columns(audit, crowd.annotations, crowd.shown)
    audit.save(plan)
    write_columns(rows, out, spreadsheet_safe=spreadsheet_safe)
    write_certificate(audit, certificate)
    write_proved_page(audit, page, source=Path(crowd.title).name)
    if as_json:
        tell_json({**summary(audit), "page": str(page)})
    say(f"CERTIFIED: {certified_words(audit)} {relative_to(audit)}")
    if audit.pending:
        say(f"{len(audit.pending):,} drawn items were not answered; the certificate holds without them")
    if gold := gold_words(audit):
        say(gold)
    say(f"wrote {out}: {counted(len(rows['task']), 'task')}")
    say(f"wrote {certificate}; to check it: {command('rarevote', 'audit', 'verify', plan, certificate)}")
    say(f"wrote {page}: the certificate as a page, to read and share")
    if not audit.plan.repeats:
        again = command("rarevote", "audit", "repeat", plan, "--review-out", "again.csv")
        say(f"to measure how consistent the expert is, repeat some items without their first answers: {again}")


@audit.verb(
    "rarevote audit repeat audit.json --review-out again.csv",
    "rarevote audit repeat audit.json --answers again.csv --who anna",
)
@plan_argument
@file_option("--review-out", help="The file to write the list of items to.")
@file_option("--answers", help="The second answers, in the formats of continue.")
@click.option("--share", metavar="SHARE", default=0.05, help="The share of the answered items to show again.")
@who_option
@question_option
@talk_options
def repeat(
    plan: Path,
    review_out: Path | None,
    answers: Path | None,
    share: float,
    who: str | None,
    question: str | None,
    as_json: bool,
) -> None:
    """Show some answered items again to measure how consistent the expert is; the bets do not change."""
    from rarevote.audit.answers import write_review_list
    from rarevote.audit.source import read_again
    from rarevote.audit.words import n_contradicted, relative_to

    if (review_out is None) == (answers is None):
        raise ParameterError("give either --review-out, to write the list, or --answers, to read it back")
    if not 0.0 < share <= 1.0:
        raise ParameterError(f"--share must be above 0 and at most 1, got {share:g}")
    audit = _load(plan)
    if answers is not None:
        _take_in(audit, audit.answer_repeats, answers, who, question)
        audit.save(plan)
        if as_json:
            tell_json({"n_repeated": len(audit.plan.repeats), "n_contradicted": n_contradicted(audit)})
        else:
            say(relative_to(audit))
        return
    assert review_out is not None
    check_review_file(review_out, _form(audit))
    crowd = read_again(audit, plan)
    again = audit.repeat_list(share)
    if not again:
        raise InputError(f"{plan}: no answered item is left to repeat at a share of {share:g}")
    write_review_list(again, review_out, _form(audit), crowd)
    if as_json:
        tell_json({"review_out": str(review_out), "n_items": len(again)})
    else:
        then = command("rarevote", "audit", "repeat", plan, "--answers", review_out)
        say(f"wrote {review_out}: {counted(len(again), 'item')}; fill in the column label, then: {then}")


@audit.verb(
    "rarevote audit verify audit.json certificate.json",
    "rarevote audit verify audit.json certificate.json --labels labels.csv",
)
@plan_argument
@argument("certificate", type=PATH, help="The certificate that `rarevote audit finish` wrote.")
@click.option(
    "--labels",
    metavar="FILE",
    multiple=True,
    help="The labels of the audit. Default: the files that the plan names, if they exist.",
)
@talk_options
def verify(plan: Path, certificate: Path, labels: tuple[str, ...], as_json: bool) -> None:
    """Check that the certificate follows from the plan: replay rounds and bets; exit code 1 with the reason if not.

    No verification can see whether the expert's answers are true, or whether another seed was tried elsewhere.
    """
    from rarevote.audit import verify_files
    from rarevote.audit.words import UNSEEN

    verdict = verify_files(plan, certificate, labels=labels or None)
    if as_json:
        tell_json({"follows": not verdict, "reasons": verdict, "notes": verdict.notes})
    if verdict:
        raise InputError(f"{certificate} does not follow from {plan}: {'; '.join(verdict)}")
    say(f"{certificate} follows from {plan}: {'; '.join(verdict.notes)}. {UNSEEN}")


# --------------------------------------------------------------------------------------------------------------------
# inside


def _load(plan: Path) -> Audit:
    """The audit; errors name the file."""
    from rarevote.audit import Audit

    try:
        return Audit.load(plan)
    except InputError as error:
        raise InputError(str(error) if str(plan) in str(error) else f"{plan}: {error}") from None


def _next_list(given: Path) -> Path:
    """A name for the list after a list, or for one beside a plan.

    >>> _next_list(Path("a/round-1.csv")).as_posix(), _next_list(Path("audit.json")).as_posix()
    ('a/round-2.csv', 'audit-next.csv')
    """
    if given.suffix == ".json" and not given.stem[-1:].isdigit():
        return given.with_name(f"{given.stem}-next.csv")
    stem = given.stem.rstrip("0123456789")
    number = given.stem[len(stem) :]
    return given.with_name(f"{stem}{int(number) + 1}{given.suffix}" if number else f"{given.stem}-2{given.suffix}")


def _form(audit: Audit) -> str:
    return str((audit.plan.source or {}).get("review_as", "table"))


def _take_in(audit: Audit, take: Callable[..., int | None], path: Path, who: str | None, question: str | None) -> None:
    """Add the answers in a file to the audit, by expert; if experts disagree, items stay open."""
    from rarevote.audit.answers import by_expert
    from rarevote.audit.saved_answers import is_saved_answers
    from rarevote.crowd.names import some_names
    from rarevote.io.read.answers import read_answers

    if is_saved_answers(path):
        _take_saved(audit, take, path, who)
        return
    experts, disputed = by_expert(read_answers(path, question=question), who)
    if disputed:
        warn(f"{path}: two different labels for {some_names(disputed)}; these items stay open until the experts agree")
    for name, labels in experts.items():
        try:
            take(labels, who=name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _take_saved(audit: Audit, take: Callable[..., int | None], path: Path, who: str | None) -> None:
    """Add answers that a page saved to the audit, by the rules of the journal."""
    from rarevote.audit.saved_answers import asked_in, read_saved_answers

    plan = audit.plan
    tasks = plan.rounds[-1].tasks if plan.rounds else []
    for entry in read_saved_answers(path, of=asked_in(plan), number=len(plan.rounds), tasks=tasks, labels=plan.labels):
        try:
            take({entry.task: entry.label}, who=who or entry.who)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _ask(
    audit: Audit,
    plan: Path,
    review_out: Path,
    crowd: Crowd,
    *,
    as_json: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Draw, save the plan, write the list, in this order, so that no list is without its plan."""
    from rarevote.audit.answers import check_list_columns, write_review_list
    from rarevote.audit.of_fit import summary

    check_list_columns(review_out, _form(audit), crowd)
    review = audit.round()
    audit.save(plan)
    if review:
        write_review_list(review, review_out, _form(audit), crowd)
    if as_json:
        tell_json({**summary(audit), "review_out": str(review_out) if review else None, **(more or {})})
    if review:
        say(f"wrote {review_out}: {counted(len(review), 'item')} to review. Answer in the browser:")
        say(f"  {command('rarevote', 'audit', 'review', plan)}")
        form, given = _form(audit), review_out
        how = "fill in the column label of the list"
        if form != "table":
            how, given = f"import the list into {form} and export the answers", Path("export.json")
        then = ("--answers", given, "--review-out", _next_list(review_out))
        say(f"or {how}, then:")
        say(f"  {command('rarevote', 'audit', 'continue', plan, *then)}")
    else:
        say(f"The audit asks for no more reviews: {audit.stopped}. No list was written. Next:")
        files = ("--out", "result.csv", "--certificate", "certificate.json")
        say(f"  {command('rarevote', 'audit', 'finish', plan, *files)}")
