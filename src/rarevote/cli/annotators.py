"""``rarevote annotators``: who is good at what, and whether a majority vote of these people can find each class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import Json, Quiet, Rare, SpreadsheetSafe, one_of
from rarevote.cli.options.fit import FitOptions
from rarevote.cli.options.groups import takes
from rarevote.cli.options.read import Reading
from rarevote.cli.show import aligned, reading_files, say, share, tell
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.meaning.diagnose import Diagnosis

EXAMPLES = """Examples:

rarevote annotators labels.csv

rarevote annotators labels.csv --rare defect --sort votes --top 50

rarevote annotators labels.csv --out annotators.csv --json"""

SORTS = ("rare", "votes", "agreement", "name")
# Up to this many classes every one has its columns in the file; beyond, the rare and the most frequent one have.
_MOST_CLASSES = 50
_SHOWN_CLASSES = 4


@takes(Reading, FitOptions)
def annotators(
    reading: Reading,
    fit_options: FitOptions,
    rare: Rare = None,
    sort: Annotated[
        str,
        typer.Option(
            metavar="BY",
            help="rare: who surely recognises most of the rare class first; or votes, agreement, name.",
            autocompletion=one_of(*SORTS),
        ),
    ] = "rare",
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many rows the terminal shows.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for all rows, with intervals: .csv, .parquet, .xlsx, ...")
    ] = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Who is good at what: votes, share of each class recognised, agreement, profile; and the jury condition."""
    from rarevote.crowd.rare import rare_class
    from rarevote.io.write.columns import check_output, write_columns
    from rarevote.meaning.diagnose import diagnose

    if sort not in SORTS:
        raise ParameterError(f"--sort must be {', '.join(SORTS)}, got {sort!r}")
    estimator = fit_options.make()
    if out is not None:
        check_output(out)
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
        learned = fit_options.known(crowd, estimator)
    rare_class(crowd.annotations, rare)  # a name that is no class is refused before the fit, which takes time
    if not quiet:
        crowd.tell()
    fit_options.fit(estimator, crowd, learned, quiet=quiet)
    found = diagnose(estimator, rare=rare, gold=learned)
    order = _order(found, sort)
    columns = _columns(found, order)
    if out is not None:
        write_columns(columns, out, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        typer.echo(json.dumps(_summary(found, fit_options.method, columns), ensure_ascii=False, default=str))
    else:
        if not quiet:
            say()
        _tell(found, order, top, has_file=out is not None)
    if out is not None and not quiet:
        say(f"wrote {out}: {len(order):,} annotators")


def _order(found: Diagnosis, sort: str) -> NDArray[Any]:
    """Numbers of the annotators in the order asked for; the busier first where that leaves it open."""
    import numpy as np

    workers = found.workers
    busy = -workers.n_votes
    if sort == "name":
        return np.arange(len(workers.names))
    if sort == "votes":
        return np.argsort(busy, kind="stable")
    # The lower end of the interval, so that one lucky vote leads no list.
    key = -workers.low[:, found.rare] if sort == "rare" else -workers.agreement
    return np.lexsort((busy, key))


def _told_classes(found: Diagnosis, most: int) -> list[int]:
    """Numbers of the classes to speak of, the rare one first."""
    names = range(len(found.classes.names))
    if len(names) > most:
        return list(dict.fromkeys((found.rare, found.common)))
    return sorted(names, key=lambda k: k != found.rare)


def _columns(found: Diagnosis, order: NDArray[Any]) -> dict[str, Any]:
    """One row per annotator."""
    import numpy as np

    from rarevote.meaning.diagnose import Profile
    from rarevote.meaning.words import PROFILE_WORDS

    workers, names = found.workers, found.classes.names
    profile = np.empty(len(order), dtype=object)
    profile[:] = [PROFILE_WORDS[Profile(int(code))] for code in workers.profile[order]]
    columns: dict[str, Any] = {
        "worker": workers.names[order],
        "votes": workers.n_votes[order],
        "abstained": workers.n_abstentions[order],
        "agreement": workers.agreement[order],
        "profile": profile,
    }
    for k in _told_classes(found, _MOST_CLASSES):
        columns[f"recall:{names[k]}"] = workers.accuracy[order, k]
        columns[f"recall_low:{names[k]}"] = workers.low[order, k]
        columns[f"recall_high:{names[k]}"] = workers.high[order, k]
        columns[f"seen:{names[k]}"] = workers.seen[order, k]
    return columns


def _summary(found: Diagnosis, method: str, columns: dict[str, Any]) -> dict[str, Any]:
    from math import isfinite

    from rarevote.meaning.words import PROFILE_WORDS

    jury, names = found.classes.jury, found.classes.names
    lists = {name: values.tolist() for name, values in columns.items()}
    return {
        "rare_class": str(names[found.rare]),
        "common_class": str(names[found.common]),
        "method": method,
        "n_annotators": len(found.workers.names),
        "profiles": {words: found.workers.count(profile) for profile, words in PROFILE_WORDS.items()},
        "jury": {
            str(name): {
                "holds": bool(jury.holds[k]),
                "left_side": float(jury.left_side[k]),
                "mean_recall": float(jury.mean_margin[k] + 0.5),
                "n_specialists": int(jury.n_good[k]),
                # JSON has no infinity, which is the number where nobody is above one half.
                "missing_specialists": int(missing) if isfinite(missing := jury.missing_specialists[k]) else None,
            }
            for k, name in enumerate(names.tolist())
        },
        "annotators": [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)],
    }


def _tell(found: Diagnosis, order: NDArray[Any], top: int, *, has_file: bool) -> None:
    from rarevote.meaning.diagnose import Profile
    from rarevote.meaning.words import PROFILE_WORDS, jury_sentences, profile_meanings

    workers, names = found.workers, found.classes.names
    told = _told_classes(found, _SHOWN_CLASSES)
    header = ["annotator", "votes", *(f"recognises {names[k]}" for k in told), "agrees", "profile"]
    rows = [
        [
            str(workers.names[r]),
            f"{workers.n_votes[r]:,}",
            *(f"{workers.accuracy[r, k]:.2f} ({workers.low[r, k]:.2f} to {workers.high[r, k]:.2f})" for k in told),
            share(workers.agreement[r]),
            PROFILE_WORDS[Profile(int(workers.profile[r]))],
        ]
        for r in order[:top]
    ]
    tell(aligned(header, rows))
    if len(order) > top:
        tell(
            f"... {len(order) - top:,} more" + ("" if has_file else " (--top N shows more, --out FILE writes them all)")
        )
    tell(
        "\nrecognises: share of the class that the person labels so, with its 95 % interval; one half is a coin's toss"
    )
    tell()
    meanings = profile_meanings(names[found.rare], names[found.common])
    n_workers = len(workers.names)
    tell(
        aligned(
            ["profile", "people", "share"],
            [
                [
                    f"{words}: {meanings[profile]}",
                    f"{workers.count(profile):,}",
                    share(workers.count(profile) / n_workers),
                ]
                for profile, words in PROFILE_WORDS.items()
            ],
        )
    )
    tell()
    for sentence in jury_sentences(found.classes.jury, names):
        tell(sentence)
