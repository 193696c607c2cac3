"""The reading of labels: an option for each field of :class:`rarevote.io.read.crowd.ReadOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.verb import Option, argument, one_of, repeated_for, takes
from rarevote.cli.show import tell_crowd
from rarevote.errors import ParameterError
from rarevote.io.platforms import PLATFORMS

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd


class Reading:
    """What the command line says about the labels.

    Attributes:
        labels: files, folders, patterns, or "-".
        options: how to read them, as :func:`rarevote.read` takes it.
    """

    def __init__(self, labels: Sequence[str], **options: Any) -> None:
        self.labels, self.options = list(labels), options

    @property
    def title(self) -> str:
        """What messages call the input."""
        from rarevote.io.read.crowd import title_of

        return title_of(self.labels)

    def read(self, *, with_hints: bool = False) -> Crowd:
        """Read the votes, and say what was read.

        Args:
            with_hints: whether commands are proposed that begin with these labels.
        """
        from rarevote.io.read.crowd import read

        crowd = read(self.labels, **self.options)
        if with_hints:
            audit, again = repeated_for("audit", "start"), repeated_for("aggregate")
            crowd = replace(crowd, arguments=audit, aggregate_arguments=again)
        tell_crowd(crowd)
        return crowd


def _columns(_context: click.Context, _option: click.Parameter, text: str | None) -> dict[str, str] | None:
    """``task=image,label=verdict`` as a dict."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise ParameterError(f"--columns wants ROLE=NAME pairs with commas between, got {text!r}")
    return {role.strip(): name.strip() for role, _, name in pairs}


_option = partial(click.option, cls=Option, section="What the labels are")

columns_option = _option(
    "--columns",
    metavar="ROLE=NAME,...",
    callback=_columns,
    help="Which column is which: task=image,worker=rater,label=verdict. Gold and truth too, where they have it.",
)
show_option = _option(
    "--show",
    metavar="COLUMN",
    multiple=True,
    help="Carry a column along to the result, such as the text or the image. Repeatable, or with commas.",
)
_EXPORT = (
    _option(
        "--from",
        "platform",
        metavar="NAME",
        help=f"The platform: {', '.join(PLATFORMS)}. Detected if not given.",
        shell_complete=one_of(*PLATFORMS),
    ),
    _option(
        "--question",
        metavar="NAME",
        help="Which question, if several were asked; with aggregate, all answers every one of them.",
    ),
    _option(
        "--multilabel/--no-multilabel",
        default=None,
        help="Several choices per answer: one yes/no problem per choice, each with a fit of its own. Or: every answer "
        "is one choice.",
    ),
    _option(
        "--nothing-ticked",
        metavar="no|ignore",
        help="With --multilabel, an answer without any choice: no (to every choice), or ignore to leave it out. "
        "Default: what the platform means by it; no in a table.",
        shell_complete=one_of("no", "ignore"),
    ),
    _option(
        "--ground-truth",
        metavar="votes|gold|ignore",
        help="What annotations of Label Studio are that are marked as ground truth. Default: gold, and votes where a "
        "task has several or all are marked, as imported ones are.",
        shell_complete=one_of("votes", "gold", "ignore"),
    ),
    _option(
        "--include-predictions", is_flag=True, help="Take models' predictions in as further workers (model:<version>)."
    ),
    _option(
        "--prediction-column",
        "prediction_columns",
        metavar="COLUMN",
        multiple=True,
        help="A column that holds what a model says, such as an LLM judge: a further worker of an export, marked as a "
        "model in a wide table. Repeatable.",
    ),
    _option(
        "--worker-from",
        metavar="file|folder",
        help="One file per person: who voted is the name of the file, or of the folder it is in.",
        shell_complete=one_of("file", "folder"),
    ),
    _option("--gold-column", metavar="COLUMN", help="The column with gold, where the format names none."),
)
_FREE_TEXT = _option(
    "--free-text", is_flag=True, help="Take a question although its answers are free text, each a class."
)

with_export = takes(dict, *_EXPORT, show_option, _FREE_TEXT)
_labels = partial(
    argument,
    "labels",
    nargs=-1,
    metavar="LABELS...",
    help="Votes (task, worker, label): files, folders, patterns, a platform's export, or - for standard input.",
)
_READING = (
    columns_option,
    show_option,
    _option(
        "--keep",
        default="all",
        help="Which of repeated (task, worker) pairs count: all, first, last, or error to refuse them.",
        shell_complete=one_of("all", "first", "last", "error"),
    ),
    _option(
        "--missing",
        default="error",
        help="Rows with a missing id or label: error, or drop to leave them out.",
        shell_complete=one_of("error", "drop"),
    ),
    _option(
        "--abstain", metavar="LABEL", multiple=True, help='An answer that is no vote, such as "not sure". Repeatable.'
    ),
    _option(
        "--class",
        "classes",
        metavar="LABEL",
        multiple=True,
        callback=lambda _context, _option, names: names or None,
        help="A class that exists even without votes. Repeatable.",
    ),
    _option(
        "--wide", is_flag=True, help="The table has one row per task and one column per annotator, the task first."
    ),
    _option(
        "--annotator-column",
        "annotator_columns",
        metavar="COLUMN",
        multiple=True,
        help="A column that holds the votes of one annotator or judge, or a pattern such as 'score_*'. Repeatable. "
        "Found if not given.",
    ),
    _option(
        "--format",
        "file_format",
        metavar="NAME",
        help="csv, tsv, json, ndjson, parquet, arrow or xlsx, where the name of the file does not tell.",
        shell_complete=one_of("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx"),
    ),
    _option(
        "--header/--no-header",
        "has_header",
        default=True,
        help="Without a header line columns are called 1, 2, 3: --columns worker=1,task=2,label=3.",
    ),
    _option(
        "--separator",
        metavar="TEXT",
        help="With --multilabel, the mark between choices in a cell: a|b. Found if not given.",
    ),
    _option(
        "--choice-column",
        "choice_columns",
        metavar="COLUMN",
        multiple=True,
        help="With --multilabel, a column that says of one choice whether it was ticked (1 or 0), or a pattern such as "
        "'label_*'. Repeatable. Found if not given.",
    ),
    _option("--sheet", help="Which sheet of a spreadsheet. Default: the first."),
    *_EXPORT,
    _option("--choice", metavar="NAME", help="With --multilabel, this choice alone."),
    _option(
        "--items",
        metavar="FILE",
        help="All items that were to be labelled, those without votes too: a list of ids, or a table with a column "
        "task, item or id.",
    ),
    _FREE_TEXT,
)
with_reading = takes(Reading, _labels(required=True), *_READING)
with_optional_reading = takes(Reading, _labels(required=False), *_READING)
