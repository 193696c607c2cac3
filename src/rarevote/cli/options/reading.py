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
    """The options of reading the labels.

    Attributes:
        labels: files, folders, patterns, or "-".
        options: how to read them, as for :func:`rarevote.read`.
    """

    def __init__(self, labels: Sequence[str], **options: Any) -> None:
        self.labels, self.options = list(labels), options

    @property
    def title(self) -> str:
        """The name of the input in messages."""
        from rarevote.io.read.crowd import title_of

        return title_of(self.labels)

    def read(self, *, with_hints: bool = False) -> Crowd:
        """Read the votes, and print what was read.

        Args:
            with_hints: whether to propose commands with these labels.
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
        raise ParameterError(f"--columns must be ROLE=NAME pairs separated by commas, got {text!r}")
    return {role.strip(): name.strip() for role, _, name in pairs}


_option = partial(click.option, cls=Option, section="What the labels are")

columns_option = _option(
    "--columns",
    metavar="ROLE=NAME,...",
    callback=_columns,
    help="Names of the columns, such as task=image,worker=rater,label=verdict; also used for gold and truth files "
    "that have them.",
)
show_option = _option(
    "--show",
    metavar="COLUMN",
    multiple=True,
    help="A column to copy to the result, such as the text or the image. Repeatable, or separated by commas.",
)
_EXPORT = (
    _option(
        "--from",
        "platform",
        metavar="NAME",
        help=f"The platform: {', '.join(PLATFORMS)}. Default: detected.",
        shell_complete=one_of(*PLATFORMS),
    ),
    _option(
        "--question",
        metavar="NAME",
        help="The question, if the export has several; aggregate also takes all.",
    ),
    _option(
        "--multilabel/--no-multilabel",
        default=None,
        help="Whether an answer may have several choices: each choice is then a yes/no problem with its own fit.",
    ),
    _option(
        "--nothing-ticked",
        metavar="no|ignore",
        help="With --multilabel, an answer without any choice: no (to every choice), or ignore. Default: what the "
        "platform means by it; no in a table.",
        shell_complete=one_of("no", "ignore"),
    ),
    _option(
        "--ground-truth",
        metavar="votes|gold|ignore",
        help="How to use annotations that Label Studio marks as ground truth. Default: gold; votes if a task has "
        "several or if all are marked.",
        shell_complete=one_of("votes", "gold", "ignore"),
    ),
    _option(
        "--include-predictions", is_flag=True, help="Use predictions of models as further workers (model:<version>)."
    ),
    _option(
        "--prediction-column",
        "prediction_columns",
        metavar="COLUMN",
        multiple=True,
        help="A column with the answers of a model, such as an LLM judge: a further worker of an export, marked as "
        "a model in a wide table. Repeatable.",
    ),
    _option(
        "--worker-from",
        metavar="file|folder",
        help="One file per annotator: take the name from the file or from its folder.",
        shell_complete=one_of("file", "folder"),
    ),
    _option("--gold-column", metavar="COLUMN", help="The column with gold, if the format does not define one."),
)
_FREE_TEXT = _option(
    "--free-text", is_flag=True, help="Accept a question with free-text answers: each distinct text is a class."
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
        help="Which votes to use if a worker voted several times on a task: all, first, last, or error to refuse them.",
        shell_complete=one_of("all", "first", "last", "error"),
    ),
    _option(
        "--missing",
        default="error",
        help="Rows with a missing id or label: error, or drop to leave them out.",
        shell_complete=one_of("error", "drop"),
    ),
    _option(
        "--abstain",
        metavar="LABEL",
        multiple=True,
        help='An answer that is not a vote, such as "not sure". Repeatable.',
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
        "--wide", is_flag=True, help="The table has one row per task, and one column per annotator after the task."
    ),
    _option(
        "--annotator-column",
        "annotator_columns",
        metavar="COLUMN",
        multiple=True,
        help="A column with the votes of one annotator or judge, or a pattern such as 'score_*'. Repeatable. "
        "Default: detected.",
    ),
    _option(
        "--format",
        "file_format",
        metavar="NAME",
        help="Format of the file, if its name does not show it: csv, tsv, json, ndjson, parquet, arrow or xlsx.",
        shell_complete=one_of("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx"),
    ),
    _option(
        "--header/--no-header",
        "has_header",
        default=True,
        help="Whether the file has a header line. Without one, columns are named 1, 2, 3: --columns "
        "worker=1,task=2,label=3.",
    ),
    _option(
        "--separator",
        metavar="TEXT",
        help="With --multilabel, the separator of choices in a cell, as in a|b. Default: detected.",
    ),
    _option(
        "--choice-column",
        "choice_columns",
        metavar="COLUMN",
        multiple=True,
        help="With --multilabel, a column of 1 and 0 for one choice, or a pattern such as 'label_*'. Repeatable. "
        "Default: detected.",
    ),
    _option("--sheet", help="Sheet of a spreadsheet. Default: the first."),
    *_EXPORT,
    _option("--choice", metavar="NAME", help="With --multilabel, use only this choice."),
    _option(
        "--items",
        metavar="FILE",
        help="All items to be labelled, including those without votes: a list of ids, or a table with a column "
        "task, item or id.",
    ),
    _FREE_TEXT,
)
with_reading = takes(Reading, _labels(required=True), *_READING)
with_optional_reading = takes(Reading, _labels(required=False), *_READING)
