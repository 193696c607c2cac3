"""Every verb that writes: its command, what was there before, and what may be seen afterwards.

A verb runs in a folder of its own, in which an earlier run has left its output (``out/``). Whatever happens to it, each
visible file must be that of the earlier run or that of a run nobody disturbed.
"""

from __future__ import annotations

import csv
import fnmatch
import io
import json
import random
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import evidence

from proofs.fault_process import run
from rarevote.audit import Audit
from rarevote.cli.show import complain
from rarevote.errors import RarevoteError
from rarevote.simulate.crowds import simulate_crowd

FIXTURES = evidence.REPOSITORY / "tests" / "io" / "platforms" / "fixtures"
FORMATS = ("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx")


class HalfError(Exception):
    """A file is not whole."""


@dataclass(frozen=True)
class Verb:
    """A way to write.

    Attributes:
        name: what the table calls it.
        command: the words after ``rarevote``, or a function of the folder.
        before: commands that were run before, on other votes.
        same_votes: the votes stay those of the commands before.
        loose: patterns of files with times or draws in them: they must be whole, not equal.
        together: patterns of files that are read together: never of two runs.
        internal: patterns of files that no user reads, such as a checkpoint.
        resumed_by: the command that goes on, where the verb refuses to run twice; with the file that says so.
    """

    name: str
    command: str | Callable[[Path], Any]
    before: tuple[str, ...] = ()
    same_votes: bool = False
    loose: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    resumed_by: tuple[str, str] | None = None

    def prepare(self, folder: Path) -> None:
        """Make the folder with the input and what an earlier run left."""
        for name in ("tmp", "out"):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o777)
        write_inputs(folder, seed=1)
        for command in self.before or (self.command,):
            ended = run(folder, command)
            if ended.code:
                raise RuntimeError(f"{self.name}: {command}: {ended.said}")
            answer_all(folder)
        if not self.same_votes:
            write_inputs(folder, seed=2)

    def seen(self, folder: Path) -> dict[str, Any]:
        """Every visible file and what is in it.

        Raises:
            HalfError: one is not whole.
        """
        found = {}
        for path in sorted((folder / "out").rglob("*")):
            name = str(path.relative_to(folder / "out"))
            hidden = any(part.startswith(".") for part in Path(name).parts)
            if path.is_dir() or hidden or self._is(name, self.internal):
                continue
            content = whole(path)
            found[name] = "whole" if self._is(name, self.loose) else content
        return found

    def mixed(self, now: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Whether files that are read together are of two runs."""
        group = [name for name in now if self._is(name, self.together) and old.get(name) != new.get(name)]
        return len({now[name] == new.get(name) for name in group}) > 1

    def missing(self, now: dict[str, Any], old: dict[str, Any]) -> list[str]:
        """What was there and is gone; files that are read together are taken away before new ones come."""
        return [name for name in old if name not in now and not self._is(name, self.together)]

    @staticmethod
    def _is(name: str, patterns: tuple[str, ...]) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def leftovers(folder: Path) -> list[Path]:
    """Hidden files and folders of ours, and whatever is in the temporary folder."""
    kept = [path for path in (folder / "kept",) if path.exists()]  # a checkpoint, which goes once the fit is done
    hidden = [path for path in (folder / "out").rglob(".*") if ".rarevote-" in path.name]
    # Python tries out a temporary folder with a file of four bytes; openpyxl and dask have names of their own there.
    temporary = [path for path in (folder / "tmp").iterdir() if path.is_dir() or path.stat().st_size > 4]
    return [*kept, *hidden, *(path for path in temporary if not path.name.startswith(("openpyxl.", "dask-")))]


def whole(path: Path) -> Any:
    """The content of a file, in a form that two equal results share.

    Raises:
        HalfError: it cannot be read to its end.
    """
    try:
        if path.suffix == ".xlsx":
            book = import_module("openpyxl").load_workbook(path)
            return tuple(tuple(row) for row in book.worksheets[0].iter_rows(values_only=True))
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return str(parquet.read_table(path).to_pydict())
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return str({name: arrays[name].tolist() for name in arrays})
        text = path.read_bytes()
        if path.suffix == ".arrow":
            import pyarrow

            pyarrow.ipc.open_file(io.BytesIO(text)).read_all()
        elif path.name == "audit.json":
            audit = Audit.from_json(text.decode())
            return [one.tasks for one in audit.plan.rounds], audit.answers
        elif path.suffix == ".json":
            json.loads(text)
        if path.suffix == ".html":
            text = re.sub(rb"\d{4}-\d\d-\d\d", b"(a day)", text)  # on which it was made
        if path.suffix in (".html", ".svg") and not text.rstrip().endswith((b"</html>", b"</svg>")):
            raise HalfError(f"{path}: cut off")
        if path.suffix in (".csv", ".tsv"):
            rows = list(csv.reader(io.StringIO(text.decode()), delimiter="\t" if path.suffix == ".tsv" else ","))
            if not text.endswith(b"\n") or len({len(row) for row in rows}) != 1:
                raise HalfError(f"{path}: cut off")
    except HalfError:
        raise
    except Exception as error:  # whatever a reader makes of half a file
        raise HalfError(f"{path}: {error}") from None
    return text


# --------------------------------------------------------------------------------------------------------------------
# what goes in


@cache
def _votes(seed: int) -> str:
    dice, lines = random.Random(seed), ["task,worker,label"]
    for task in range(60):
        truth = dice.random() < 0.3
        for worker in dice.sample(range(9), 5):
            said = truth if dice.random() < 0.85 else not truth
            lines.append(f"t{task},w{worker},{'defect' if said else 'sound'}")
    return "\n".join(lines) + "\n"


@cache
def _toxic(seed: int) -> str:
    dice = random.Random(seed)
    rows = (f"{item},{worker},{dice.randint(0, 1)}\n" for item in range(40) for worker in range(4))
    return "id,worker,toxic\n" + "".join(rows)


def write_inputs(folder: Path, *, seed: int) -> None:
    """The votes and whatever else a verb reads."""
    (folder / "votes.csv").write_text(_votes(seed))
    (folder / "toxic.csv").write_text(_toxic(seed))
    (folder / "question.txt").write_text(("sure", "damage")[seed - 1])
    if not (folder / "form.csv").exists():
        shutil.copy(FIXTURES / "mturk_form.csv", folder / "form.csv")
        for number, slug in enumerate(("rte", "cf-star")):
            place = folder / "data" / slug
            place.mkdir(parents=True)
            crowd = simulate_crowd(40, 8, n_classes=2 + number, votes_per_task=4, random_state=number)
            rows = zip(*(column.tolist() for column in crowd.arrays), strict=True)
            (place / "labels.csv").write_text("task,worker,label\n" + "".join(f"{t},{w},{y}\n" for t, w, y in rows))
            truth = "".join(f"{task},{label}\n" for task, label in enumerate(crowd.truth.tolist()))
            (place / "truth.csv").write_text("task,label\n" + truth)


def answer_all(folder: Path) -> None:
    """Fill in a review list, if the last command left one."""
    asked = folder / "out" / "round-1.csv"
    if asked.exists() and not (folder / "answers.csv").exists():
        with asked.open(newline="") as handle:
            tasks = [row["task"] for row in csv.DictReader(handle)]
        rows = "".join(f"{task},{'defect' if number % 3 == 0 else 'sound'}\n" for number, task in enumerate(tasks))
        (folder / "answers.csv").write_text("task,label\n" + rows)


def _on_dask(folder: Path) -> None:
    """The dask engine in this one process: what dies is the driver with all it has."""
    import logging

    import dask
    from distributed import Client, LocalCluster

    from rarevote import CCRasch
    from rarevote.cluster.fit import Dask

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        dask.config.set({"temporary-directory": str(folder / "tmp"), "distributed.worker.use-file-locking": False}),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        try:
            Dask(folder / "out", client=client, n_shards=3).fit(CCRasch(30, tol=0), folder / "votes.csv")
        except RarevoteError as error:
            complain(error)
            sys.exit(1)


_FIT = "-m cc-rasch -q"
_AUDIT = f"audit start votes.csv {_FIT} --find defect=0.5 --confidence 0.6 --flag-cost 30"
_START = f"{_AUDIT} --plan out/audit.json --review-out out/round-1.csv"
_CONTINUE = "audit continue out/audit.json --answers answers.csv --review-out out/round-2.csv --who ann -q"
_FINISH = "audit finish out/audit.json --out out/result.csv --certificate out/certificate.json -q"

VERBS: tuple[Verb, ...] = (
    *(Verb(f"aggregate .{ending}", f"aggregate votes.csv {_FIT} --out out/r.{ending}") for ending in FORMATS),
    Verb(
        "aggregate, all files",
        f"aggregate votes.csv {_FIT} --out out/r.csv.gz --model-out out/r.model --soft-out out/soft.npz",
    ),
    Verb(
        "aggregate --checkpoint",
        f"aggregate votes.csv {_FIT} --set n_iter=120 --set tol=0 --checkpoint kept --checkpoint-every 4 "
        "--out out/r.csv",
    ),
    Verb(
        "predict",
        "predict votes.model votes.csv -q --out out/p.csv",
        (f"aggregate votes.csv {_FIT} --out out/p.csv --model-out votes.model",),
    ),
    Verb(
        "convert",
        "convert form.csv --question damage -q --out out/rows.csv",
        ("convert form.csv --question sure -q --out out/rows.csv",),
    ),
    Verb("report", "report votes.csv -m majority-vote -q --out out/page.html"),
    Verb("plan", f"plan votes.csv {_FIT} --budget 12 --out out/again.csv"),
    Verb("compare", "compare votes.csv --methods majority-vote,cc-rasch -q --out out/differ.csv"),
    Verb(
        "simulate",
        "simulate --tasks 200 --seed 2 --out out -q",
        ("simulate --tasks 200 --seed 1 --out out -q",),
        together=("*.csv",),
    ),
    Verb(
        "study",
        "study paper --data data --methods majority-vote,cc-rasch --jobs 1 --no-ablation -q --out out",
        ("study paper --data data --methods majority-vote --jobs 1 --no-ablation -q --out out",),
        loose=("*",),
    ),
    Verb("datasets", "datasets import jigsaw toxic.csv --cache out -q"),
    Verb(
        "audit start",
        _START,
        ("simulate --tasks 10 --seed 1 --out out/other -q",),
        same_votes=True,
        loose=("audit.json", "round-1.csv"),
        resumed_by=("out/audit.json", "audit continue out/audit.json --review-out out/round-1.csv -q"),
    ),
    Verb("audit continue", _CONTINUE, (_START,), same_votes=True),
    Verb("audit finish", _FINISH, (_START, _CONTINUE), same_votes=True, loose=("certificate.*",)),
    Verb("dask", _on_dask, together=("*",), loose=("summary.json",), internal=("dask-scratch-space*",)),
)
