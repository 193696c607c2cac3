"""``rarevote compare``: methods side by side on the same votes."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options import Json, Quiet, Rare, SpreadsheetSafe, Verbose, find_class, make_method, names_in
from rarevote.cli.reading import Crowd, Reading, takes_labels
from rarevote.cli.show import aligned, fitting, reading_files, say, share, warn
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.compare import MethodScores

EXAMPLES = """Examples:

rarevote compare labels.csv

rarevote compare labels.csv --truth truth.csv --methods majority-vote,dawid-skene,cc-rasch

rarevote compare labels.csv --show text --out differences.csv --json"""

DEFAULT_METHODS = ("majority-vote", "dawid-skene", "glad", "cc-rasch")
_SHOWN_ITEMS = 5
_SHOWN_CLASSES = 8


@dataclass(frozen=True)
class Fitted:
    """What one method made of the votes."""

    labels: NDArray[Any]
    posterior: NDArray[Any]
    seconds: float
    n_iter: int
    converged: bool


@takes_labels
def compare(
    reading: Reading,
    truth: Annotated[Path | None, typer.Option(help="Known labels to score against (task, label).")] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Methods (see: rarevote methods). Default: {','.join(DEFAULT_METHODS)}."),
    ] = None,
    rare: Rare = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Known labels that methods may learn from; these items are left out of the scores."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for all items on which the methods differ.")
    ] = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Methods side by side: recall, log loss and calibration with truth; agreement and differences without."""
    from rarevote.compare import differing_tasks
    from rarevote.io.write import check_output, write_columns

    names = names_in(methods, "--methods") or list(DEFAULT_METHODS)
    for name in names:
        make_method(name, None)
    if out is not None:
        check_output(out)
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
        known = None if truth is None else crowd.known(truth)
        learned = crowd.known(gold) if gold is not None else crowd.gold or None
    if rare is not None:
        find_class(rare, crowd.annotations.classes.tolist())
    if not quiet:
        crowd.tell()
    fitted = _fit_all(names, crowd, learned, quiet=quiet, verbose=verbose)
    different = differing_tasks({name: one.labels for name, one in fitted.items()})
    summary = _summary(crowd, fitted, different, rare)
    if known is not None:
        summary["scores"] = _scores(crowd, fitted, known, learned or {})
    if out is not None:
        write_columns(_rows(crowd, fitted, different), out, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    else:
        _tell(summary)
    if out is not None and not quiet:
        say(f"wrote {out}: {len(different):,} items on which the methods differ")


def _fit_all(
    names: list[str], crowd: Crowd, gold: dict[Any, Any] | None, *, quiet: bool, verbose: bool
) -> dict[str, Fitted]:
    """Fit every method on the same votes; one that cannot run is an error only if none can."""
    from rarevote.estimator import add_classes
    from rarevote.io.frames import Source  # noqa: F401

    votes = crowd.annotations
    # Classes that only the gold names must be the same for all methods, or their numbers could not be compared.
    extra = [name for name in dict.fromkeys((gold or {}).values()) if name not in set(votes.classes.tolist())]
    if extra:
        votes = add_classes(votes, extra)
    fitted: dict[str, Fitted] = {}
    refused: list[str] = []
    for number, name in enumerate(names, 1):
        estimator = make_method(name, None)
        begin = time.perf_counter()
        try:
            with fitting(f"fitting {name} ({number} of {len(names)})", quiet=quiet, verbose=verbose) as callback:
                estimator.fit(votes, gold if estimator.uses_gold else None, callback=callback)
        except (InputError, ParameterError) as error:
            refused.append(f"{name}: {error}")
            warn(f"{name} was left out: {error}")
            continue
        fitted[name] = Fitted(
            estimator.label_codes(),
            estimator.posterior_,
            time.perf_counter() - begin,
            estimator.n_iter_,
            estimator.converged_,
        )
    if not fitted:
        raise InputError(f"no method could run: {'; '.join(refused)}")
    return fitted


# --------------------------------------------------------------------------------------------------------------------
# figures


def _summary(crowd: Crowd, fitted: dict[str, Fitted], different: NDArray[Any], rare: str | None) -> dict[str, Any]:
    from rarevote.compare import agreements, proportions

    labels = {name: one.labels for name, one in fitted.items()}
    classes = _classes(crowd, fitted)
    shares = proportions(labels, [str(name) for name in classes])
    if rare is None:
        rare = min(shares[next(iter(shares))], key=lambda name: sum(one[name] for one in shares.values()))
    return {
        "rare_class": rare,
        "n_tasks": crowd.annotations.n_tasks,
        "n_annotations": crowd.annotations.n_annotations,
        "methods": {
            name: {
                "seconds": one.seconds,
                "n_iter": one.n_iter,
                "converged": one.converged,
                "share_of_tasks": shares[name],
            }
            for name, one in fitted.items()
        },
        "agreement": [asdict(one) for one in agreements(labels, len(classes))],
        "n_different": len(different),
        "different": [_item(crowd, fitted, task) for task in different[:_SHOWN_ITEMS].tolist()],
    }


def _classes(crowd: Crowd, fitted: dict[str, Fitted]) -> list[Any]:
    del fitted
    return crowd.annotations.classes.tolist()


def _item(crowd: Crowd, fitted: dict[str, Fitted], task: int) -> dict[str, Any]:
    votes = crowd.annotations
    given = votes.label[votes.task_ptr[task] : votes.task_ptr[task + 1]]
    counts = {str(name): int((given == k).sum()) for k, name in enumerate(votes.classes.tolist())}
    return {
        "task": votes.tasks[task],
        "votes": {name: count for name, count in counts.items() if count},
        "labels": {name: str(votes.classes[one.labels[task]]) for name, one in fitted.items()},
        **{name: texts[task] for name, texts in crowd.shown.items()},
    }
