"""Options that several verbs share, how their text becomes values, what they read, and where rows go.

Options that belong together are one frozen record whose fields say how each looks on the command line. A verb that
wants such records is decorated with :func:`takes` and gets one of each as its first arguments; its command line gets
their options. So an option is declared once, whoever uses it. Verbs that read labels take a :class:`Reading`.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import typer
from typer.models import ArgumentInfo

from rarevote.cli.show import export_summary, reading_files, say, tell_export, tell_notes
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms import PLATFORMS

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd
    from rarevote.io.read.options import ReadOptions
    from rarevote.meaning.audit.journal import Journal
    from rarevote.methods.base import Estimator
    from rarevote.workbench.shelf import Pictures
    from rarevote.workbench.sitting import Sitting


def method_names(incomplete: str) -> list[str]:
    """Methods that begin so, for the shell's completion."""
    from rarevote.methods.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def one_of(*choices: str) -> Callable[[str], list[str]]:
    """The choices that begin as what was typed, for the shell's completion."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


LabelsFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="LABELS",
        help="Votes (task, worker, label): files, folders, patterns, a platform's export, or - for standard input.",
        show_default=False,
    ),
]
MethodName = Annotated[
    str,
    typer.Option("--method", "-m", help="Aggregation method (see: rarevote methods).", autocompletion=method_names),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method, such as prior=estimate. Repeatable."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="ROLE=NAME,...", help="Which column is which: task=image,worker=rater,label=verdict."),
]
Keep = Annotated[
    str,
    typer.Option(
        help="Which of repeated (task, worker) pairs count: all, first, last, or error to refuse them.",
        autocompletion=one_of("all", "first", "last", "error"),
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        help="Rows with a missing id or label: error, or drop to leave them out.",
        autocompletion=one_of("error", "drop"),
    ),
]
Abstain = Annotated[
    list[str] | None, typer.Option(metavar="LABEL", help='An answer that is no vote, such as "not sure". Repeatable.')
]
Classes = Annotated[
    list[str] | None,
    typer.Option("--class", metavar="LABEL", help="A class that exists even without votes. Repeatable."),
]
Show = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Carry a column along to the result, such as the text or the image. Repeatable, or with commas.",
    ),
]
Wide = Annotated[
    bool,
    typer.Option("--wide", help="The table has one row per task and one column per annotator, the task first."),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="csv, tsv, json, ndjson, parquet, arrow or xlsx, where the name of the file does not tell.",
        autocompletion=one_of("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx"),
    ),
]
HasHeader = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Without a header line columns are called 1, 2, 3: --columns worker=1,task=2,label=3.",
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Which sheet of a spreadsheet. Default: the first.")]
Rare = Annotated[
    str | None,
    typer.Option(metavar="CLASS", help="The class that matters. Default: the one with the fewest votes."),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with code 3 if the fit did not converge or the crowd cannot answer.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk, only data and errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Tell parameters, every iteration, and where time goes.")
]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")]


def names_in(text: str | None, option: str) -> list[str] | None:
    """``a,b`` as a list."""
    if text is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ParameterError(f"{option} wants names with commas between, got {text!r}")
    return names


def parse_columns(text: str | None) -> dict[str, str] | None:
    """``task=image,label=verdict`` as a dict."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise ParameterError(f"--columns wants ROLE=NAME pairs with commas between, got {text!r}")
    return {role.strip(): name.strip() for role, _, name in pairs}


def _value(text: str) -> Any:
    """A parameter's value: a Python literal where it reads as one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def make_method(name: str, settings: Sequence[str] | None) -> Estimator:
    """The method of that name with the parameters that ``--set`` gives."""
    from rarevote.methods.registry import find_method

    estimator = find_method(name).load()()
    for setting in settings or ():
        parameter, sign, text = setting.partition("=")
        if not sign:
            raise ParameterError(f"--set wants NAME=VALUE, got {setting!r}")
        estimator.set_params(**{parameter.strip(): _value(text.strip())})
    return estimator


def examples(*commands: str, after: str = "") -> str:
    """Commands below each other under the word "Examples", and a sentence ``after`` them."""
    return "\n\n".join(["Examples:", *commands, *([after] if after else [])])


Verb = Callable[..., None]


def takes(*groups: type) -> Callable[[Verb], Verb]:
    """Decorates a verb whose first parameters are these records.

    Arguments come first, then the options of groups without a ``PANEL``, then the verb's own, and last those of groups
    that have a panel of their own in the help.
    """

    def decorate(command: Verb) -> Verb:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[len(groups) :]
        shared = {group: list(inspect.signature(group, eval_str=True).parameters.values()) for group in groups}

        def run(**given: Any) -> None:
            records = [group(**{one.name: given.pop(one.name) for one in shared[group]}) for group in groups]
            command(*records, **given)

        arguments = [one for ones in shared.values() for one in ones if _is_argument(one)]
        plain: list[inspect.Parameter] = []
        in_panels: list[inspect.Parameter] = []
        for group, ones in shared.items():
            panel = getattr(group, "PANEL", None)
            for one in ones:
                if not _is_argument(one):
                    (in_panels if panel else plain).append(_in_panel(one, panel) if panel else one)
        # Files may be many, so a verb's own argument has to come before them.
        own_arguments = [one for one in own if _is_argument(one)]
        own_options = [one for one in own if not _is_argument(one)]
        parameters = [*own_arguments, *arguments, *plain, *own_options, *in_panels]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        keyword = inspect.Parameter.KEYWORD_ONLY
        run.__signature__ = inspect.Signature([one.replace(kind=keyword) for one in parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(part, ArgumentInfo) for part in get_args(parameter.annotation))


def _in_panel(parameter: inspect.Parameter, panel: str) -> inspect.Parameter:
    kind, option = get_args(parameter.annotation)
    option = copy.copy(option)
    option.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[kind, option])


ResultFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Result file: .csv, .tsv, .json, .ndjson (also .gz, .zst), .parquet, .xlsx or .arrow. "
        "Without it rows go to stdout, if that is no terminal.",
    ),
]


def check_result_file(out: Path | None, *, as_json: bool) -> None:
    """Refuse, before any work is done, a place that rows could not go to in the end."""
    from rarevote.io.write.columns import check_output

    if out is not None:
        check_output(out)
    elif as_json:
        raise InputError("--json writes a summary to stdout: say with --out where the rows should go")


def write_result(
    rows: Mapping[str, Any], out: Path | None, *, spreadsheet_safe: bool, quiet: bool, example: str = "result.csv"
) -> None:
    """Rows to the file or to standard output; a terminal, where they would bury the summary, hears how to get them."""
    from rarevote.io.write.columns import write_columns, write_rows

    if out is None and sys.stdout.isatty() and not quiet:
        say(f"rows are not shown on a terminal: write them with --out {example}, or look at them with | less")
    elif out is None:
        write_rows(rows, sys.stdout, spreadsheet_safe=spreadsheet_safe)
    else:
        write_columns(rows, out, spreadsheet_safe=spreadsheet_safe)


From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME",
        help=f"The platform: {', '.join(PLATFORMS)}. Detected if not given.",
        autocompletion=one_of(*PLATFORMS),
    ),
]
Question = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Which question, if several were asked; with aggregate, all answers every one of them."
    ),
]
FreeText = Annotated[
    bool, typer.Option("--free-text", help="Take a question although its answers are free text, each a class.")
]
Multilabel = Annotated[
    bool, typer.Option("--multilabel", help="Several choices per answer: make one yes/no problem per choice.")
]
IncludePredictions = Annotated[
    bool,
    typer.Option("--include-predictions", help="Take models' predictions in as further workers (model:<version>)."),
]
PredictionColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction-column",
        metavar="COLUMN",
        help="A column that holds what a model says, such as an LLM judge: a further worker of an export, marked as a "
        "model in a wide table. Repeatable.",
    ),
]
Items = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="All items that were to be labelled, those without votes too: a list of ids, or a table with a column "
        "task, item or id.",
    ),
]
GoldColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with gold, where the format names none.")
]


@dataclass(frozen=True)
class Reading:
    """What the command line says about the labels."""

    PANEL: ClassVar[str] = "What the labels are"

    labels: LabelsFiles
    columns: Columns = None
    show: Show = None
    keep: Keep = "all"
    missing: Missing = "error"
    abstain: Abstain = None
    classes: Classes = None
    wide: Wide = False
    file_format: FileFormat = None
    has_header: HasHeader = True
    sheet: Sheet = None
    platform: From = None
    question: Question = None
    multilabel: Multilabel = False
    include_predictions: IncludePredictions = False
    prediction_columns: PredictionColumns = None
    gold_column: GoldColumn = None
    items: Items = None
    free_text: FreeText = False

    @property
    def title(self) -> str:
        """What messages call the input."""
        first = "standard input" if self.labels[0] == "-" else self.labels[0]
        return first + (f" and {len(self.labels) - 1} more" if len(self.labels) > 1 else "")

    @property
    def columns_by_role(self) -> dict[str, str] | None:
        """Which column is which."""
        return parse_columns(self.columns)

    def options(self) -> ReadOptions:
        """The options as :func:`rarevote.read` takes them; what was not given is as by default."""
        from rarevote.io.read.options import ReadOptions

        given = {one.name: getattr(self, one.name) for one in fields(ReadOptions)} | {"columns": self.columns_by_role}
        return ReadOptions(**{name: value for name, value in given.items() if value not in (None, [])})

    def read(self, *, quiet: bool = False) -> Crowd:
        """Read the votes, and say what was read."""
        from rarevote.io.read.crowd import read

        with reading_files(self.title, quiet=quiet):
            crowd = read(list(self.labels), self.options())
        if not quiet:
            tell_crowd(crowd)
        return crowd


def tell_crowd(crowd: Crowd) -> None:
    """Say what was read."""
    votes = crowd.annotations
    if crowd.export is not None:
        tell_export(export_summary(crowd.export))
        say()
    tell_notes(crowd.notes)
    say(
        f"{crowd.title}: {counted(votes.n_annotations, 'annotation')}, {counted(votes.n_tasks, 'task')}, "
        f"{counted(votes.n_workers, 'worker')}, {counted(votes.n_classes, 'class', 'classes')} "
        f"({votes.n_annotations / votes.n_tasks:.1f} votes per task)"
    )
    if votes.n_dropped:
        say(f"{votes.n_dropped:,} rows left out (missing values or repeated pairs)")
    if votes.abstentions:
        say(f"{sum(votes.abstentions.values()):,} abstentions by {len(votes.abstentions):,} workers")


Images = Annotated[
    list[Path] | None,
    typer.Option(metavar="FOLDER", help="Show image files from here and from below, and no others. Repeatable."),
]
ImagesFrom = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST", help="Show images from this host, over https. Repeatable."),
]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="Who answers; kept with every answer.")]
Port = Annotated[int, typer.Option(metavar="N", help="The port on 127.0.0.1; 0 is any that is free.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")]


@dataclass(frozen=True)
class WorkbenchOptions:
    """How the workbench runs, and what it may show."""

    images: Images = None
    images_from: ImagesFrom = None
    who: Who = None
    port: Port = 0
    no_browser: NoBrowser = False

    def pictures(self) -> Pictures:
        """Which texts are pictures."""
        from rarevote.workbench.serve import need_server
        from rarevote.workbench.shelf import Pictures

        need_server()
        if not 0 <= self.port < 65_536:
            raise ParameterError(f"--port must lie between 0 and 65535, got {self.port}")
        return Pictures(self.images or [], self.images_from or [])

    def run(
        self,
        sit: Callable[[Journal], Sitting],
        writing: AbstractContextManager[Journal],
        *,
        quiet: bool,
        as_json: bool,
    ) -> Sitting:
        """Serve until it is ended; the journal is ours as long."""
        from rarevote.workbench.serve import listen, serve

        with writing as journal, listen(self.port) as opened:
            sitting = sit(journal)

            def tell(address: str) -> None:
                say(f"The workbench is open, on this machine only: {address}")
                if not quiet:
                    say("Every answer is saved at once. Ctrl-C ends it; the same command goes on.")

            serve(sitting, opened, tell=tell, browser=not self.no_browser)
            progress = sitting.progress
        figures = {"answered": progress.done, "unsure": progress.unsure, "asked": progress.total,
                   "journal": str(journal.path)}  # fmt: skip
        if as_json:
            typer.echo(json.dumps(figures, ensure_ascii=False))
        if not quiet:
            say(f"{progress.done:,} of {progress.total:,} answered in this {sitting.noun}; all are in {journal.path}")
        return sitting
