"""The watch of labels: on new votes, aggregate, write, and push if a server is named.

A round reads the source, fits, decides, and compares with the previous round; then it writes ``result.csv`` and
``changes.csv`` and last ``watch.json``, each completely or not at all. If a second project is named, items to review
are sent there and the answers are read as gold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rarevote.audit.locks import lock
from rarevote.errors import InputError
from rarevote.io.live.connection import ServerDownError, ServerError
from rarevote.io.read.options import ReadOptions
from rarevote.io.write.atomic import cannot_write, make_folder
from rarevote.io.write.columns import write_columns
from rarevote.watch.changes import Changes, compare
from rarevote.watch.state import WatchState, fingerprint, votes_by_task

if TYPE_CHECKING:
    from rarevote.api import Fitted, Result
    from rarevote.io.live.label_studio import Pushed
    from rarevote.io.read.crowd import Crowd
    from rarevote.watch.projects import ReviewProject
    from rarevote.watch.sources import Source

RESULT, CHANGES = "result.csv", "changes.csv"

Fit = Callable[["Crowd", "Mapping[Any, Any]"], "Fitted"]
Decide = Callable[["Fitted"], "Result"]


@dataclass(frozen=True)
class WatchRound:
    """A round that found something new.

    Attributes:
        changes: changes since the previous round.
        result: the labels.
        pushed: the result of the push, if there is a server.
        asked: number of items sent to the review project.
        answered: total number of answers read from it.
    """

    changes: Changes
    result: Result
    pushed: Pushed | None = None
    asked: int = 0
    answered: int = 0


class LabelsWatch:
    """Rounds of aggregation in one folder.

    Args:
        source: the source of the votes.
        out: the folder of the results.
        options: how to read the votes.
        fit: fits a crowd, with the answers from the review project by task; by default :func:`rarevote.fit`, with
            answers and the crowd's gold.
        decide: decides a fit; by default, the method's own rule.
        review: the project for items to review.
        settings: any text that identifies the settings: if it changes, labels are computed again.

    Raises:
        InputError: the folder belongs to another watch, or another process uses it.
    """

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        options: ReadOptions | None = None,
        fit: Fit | None = None,
        decide: Decide | None = None,
        review: ReviewProject | None = None,
        settings: str = "",
    ) -> None:
        self.source, self.out, self.review = source, out, review
        self._options = options or ReadOptions()
        self._fit, self._decide, self._settings = fit or _fit, decide or _decide, settings
        self.state = WatchState.load(out, source.title)
        self._last: str | None = None

    def poll(self) -> WatchRound | None:
        """Check the source, and run a round if it has anything new; None if not.

        Raises:
            InputError: the votes cannot be used, or a server refuses.
            ServerDownError: a server does not answer: the next poll may succeed.
        """
        stamp = self.source.fetch()
        said = {} if self.review is None else self.review.answers()
        now = f"{stamp} {sorted(said.items())}"
        if stamp is None or now == self._last:
            return None
        crowd = self.source.read(self._options)
        answers = _in_population(said, crowd)
        known = {**crowd.gold, **answers}
        seen = fingerprint(votes_by_task(crowd.annotations), known, crowd.n_unvoted, self._settings)
        if seen == self.state.seen:
            self._last = now
            return None
        result = self._decide(self._fit(crowd, answers))
        changes = compare(self.state, result, seen)
        result.write(self.out / RESULT)
        write_columns(changes.columns(), self.out / CHANGES)
        asked = 0 if self.review is None else self.review.ask(result, known)
        pushed = self.source.push(result)
        changes.state.save(self.out)
        self.state, self._last = changes.state, now
        return WatchRound(changes, result, pushed, asked, len(answers))


def _fit(crowd: Crowd, answers: Mapping[Any, Any]) -> Fitted:
    from rarevote.api import fit

    return fit(crowd, gold={**crowd.gold, **answers} or None)


def _decide(fitted: Fitted) -> Result:
    return fitted.decide()


def _in_population(answers: Mapping[str, str], crowd: Crowd) -> dict[Any, Any]:
    """Answers by the crowd's names of its items; answers on other items are left out."""
    names = {str(name): name for name in crowd.population.tolist()}
    return {names[task]: label for task, label in answers.items() if task in names}


@contextmanager
def watching(out: Path) -> Iterator[None]:
    """The folder of a watch, for one process at a time.

    Raises:
        InputError: another process uses it, or it cannot be written to.
    """
    make_folder(out)
    try:
        handle: IO[bytes] = (out / ".watch.lock").open("a+b")
    except OSError as error:
        raise cannot_write(out, error) from None
    with handle:
        if lock(handle) is False:
            raise InputError(
                f"{out}: another process is watching into this folder; stop it first, or choose another --out"
            )
        yield


def rounds(
    poll: Callable[[], Any],
    *,
    every: float,
    most: int | None,
    sleep: Callable[[float], None],
    failed: Callable[[InputError], None],
) -> Iterator[Any]:
    """The results of repeated polls, with pauses between them.

    An error in the first poll is raised. Later, a server can be down for a while, or a file incomplete: ``failed``
    is called with it, and the next poll tries again. A refused token or a deleted project ends the loop.

    Args:
        poll: runs a round, or returns None.
        every: seconds between two polls.
        most: the number of polls; unlimited if None.
        sleep: waits this many seconds.
        failed: called with an error.
    """
    number = 0
    while most is None or number < most:
        if number:
            sleep(every)
        try:
            found = poll()
        except ServerDownError as error:
            if not number:
                raise
            failed(error)
        except InputError as error:
            if not number or isinstance(error, ServerError):
                raise
            failed(error)
        else:
            yield found
        number += 1
        sys.stdout.flush()
