"""Two public datasets that users download themselves, turned into ``labels.csv`` and ``truth.csv``.

DuckDB streams the files, which have up to millions of rows, within a fixed amount of memory.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rarevote.crowd.words import counted
from rarevote.errors import ColumnsError, InputError, ParameterError, warn_user
from rarevote.io.duck import AS_WRITTEN, connection

_ZIP_MAGIC = b"PK\x03\x04"


def convert_cifar10h(file: Path, folder: Path) -> None:
    """Write the images' labels and true classes; the trials that only checked attention are left out.

    Attention checks have a negative image number, or ``is_attn_check`` set where that column exists.

    Args:
        file: ``cifar10h-raw.csv``, with the columns annotator_id, chosen_label, true_label, cifar10_test_test_idx.
        folder: an empty folder for the two files.
    """
    needed = ("annotator_id", "chosen_label", "true_label", "cifar10_test_test_idx")
    with _database(file) as database:
        found = _open_csv(database, "trials", file, needed)
        checks = ["try_cast(cifar10_test_test_idx AS DOUBLE) < 0"]
        if "is_attn_check" in found:
            checks.append("try_cast(is_attn_check AS DOUBLE) = 1")
        database.execute(
            "CREATE TEMP VIEW votes AS SELECT cifar10_test_test_idx AS task, annotator_id AS worker, "
            "chosen_label AS label, true_label AS truth FROM trials "
            f"WHERE NOT ({' OR '.join(f'coalesce({check}, false)' for check in checks)})"
        )
        _refuse_gaps(database, file, ("task", "worker", "label", "truth"))
        database.execute(
            "CREATE TEMP TABLE images AS SELECT task, min(truth) AS label, max(truth) AS other FROM votes GROUP BY task"
        )
        torn = database.execute("SELECT task, label, other FROM images WHERE label <> other LIMIT 1").fetchone()
        if torn:
            raise InputError(f"{file}: image {torn[0]} has two true labels, {torn[1]} and {torn[2]}")
        _write(database, folder / "labels.csv", "SELECT task, worker, label FROM votes")
        _write(
            database,
            folder / "truth.csv",
            "SELECT task, label FROM images ORDER BY try_cast(task AS BIGINT), task",
        )


def convert_jigsaw(file: Path, folder: Path, *, truth: Path | None, threshold: float, min_votes: int) -> None:
    """Write who found which comment toxic, 1 or 0, and the truth by a share of toxic judgements.

    Args:
        file: ``toxicity_individual_annotations.csv``, with the columns id, worker, toxic.
        folder: an empty folder for the two files.
        truth: a table with the columns id and ``toxicity`` (or ``target``), the published shares; if None, the
            shares are counted from the judgements in ``file``.
        threshold: a comment is toxic from this share on.
        min_votes: comments with fewer judgements are left out.
    """
    if not 0 < threshold <= 1:
        raise ParameterError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    if min_votes < 1:
        raise ParameterError(f"min_votes must be at least 1, got {min_votes!r}")
    with _database(file) as database:
        _open_csv(database, "judgements", file, ("id", "worker", "toxic"))
        odd, empty, example = database.execute(
            "SELECT count(*) FILTER (toxic IS NOT NULL AND coalesce(try_cast(toxic AS DOUBLE), -1) NOT IN (0, 1)), "
            "count(*) FILTER (toxic IS NULL), "
            "any_value(toxic) FILTER (coalesce(try_cast(toxic AS DOUBLE), -1) NOT IN (0, 1)) FROM judgements"
        ).fetchone()
        if odd:
            raise InputError(f"{file}: {odd:,} values of toxic are neither 0 nor 1, such as {example!r}")
        database.execute(
            "CREATE TEMP VIEW votes AS SELECT id AS task, worker, "
            "CASE WHEN try_cast(toxic AS DOUBLE) = 1 THEN '1' ELSE '0' END AS label "
            "FROM judgements WHERE toxic IS NOT NULL"
        )
        _refuse_gaps(database, file, ("task", "worker"))
        if empty:
            warn_user(f"{file}: {empty:,} rows without a judgement in toxic are left out")
        database.execute(
            "CREATE TEMP TABLE comments AS SELECT task, avg(label::INTEGER) AS share FROM votes "
            f"GROUP BY task HAVING count(*) >= {int(min_votes)}"
        )
        verdict = f"CASE WHEN share >= {float(threshold)!r} THEN '1' ELSE '0' END AS label"
        if truth is None:
            known = f"SELECT task, {verdict} FROM comments ORDER BY task"
        else:
            _open_published_shares(database, truth)
            known = f"SELECT task, {verdict} FROM published SEMI JOIN comments USING (task) ORDER BY task"
        if not _write(database, folder / "truth.csv", known):
            where = f"with {min_votes:,} judgements or more" if truth is None else f"is in {truth}"
            raise InputError(f"{file}: no comment {where}")
        chosen = "SEMI JOIN comments USING (task)" if min_votes > 1 else ""
        _write(database, folder / "labels.csv", f"SELECT task, worker, label FROM votes {chosen}")


def _open_published_shares(database: Any, file: Path) -> None:
    found = _open_csv(database, "shares", file, ("id",))
    column = next((name for name in ("toxicity", "target") if name in found), None)
    if column is None:
        raise ColumnsError(f"{file}: has no column 'toxicity' or 'target'; it has {', '.join(found[:12])}")
    database.execute(
        f"CREATE TEMP TABLE published AS SELECT id AS task, avg(try_cast({column} AS DOUBLE)) AS share "
        f"FROM shares WHERE try_cast({column} AS DOUBLE) IS NOT NULL GROUP BY id"
    )


# --------------------------------------------------------------------------------------------------------------------
# DuckDB


@contextmanager
def _database(file: Path) -> Iterator[Any]:
    """A database in memory; its errors name ``file``."""
    import duckdb

    try:
        with connection(limited=True) as database:
            yield database
    except duckdb.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InputError(f"{file}: cannot be imported ({' '.join(lines[:2])})") from None


def _quoted(text: str, mark: str = "'") -> str:
    return mark + text.replace(mark, mark * 2) + mark


def _open_csv(database: Any, name: str, file: Path, needed: Sequence[str]) -> list[str]:
    """Create a view of the file with text columns; returns their names."""
    columns = _header(file)
    lacking = [column for column in needed if column not in columns]
    if lacking:
        raise ColumnsError(
            f"{file}: has no column {', '.join(map(repr, lacking))}; it has {', '.join(columns[:12])}. "
            "Is it the right file?"
        )
    # Types are not guessed: an id such as 007 stays text.
    types = ", ".join(f"{_quoted(column)}: 'VARCHAR'" for column in columns)
    database.execute(
        f"CREATE TEMP VIEW {name} AS SELECT * FROM read_csv({_quoted(str(file))}, auto_detect = false, header = true, "
        f"delim = ',', quote = '\"', escape = '\"', nullstr = '', columns = {{{types}}}, {AS_WRITTEN})"
    )
    return columns


def _header(file: Path) -> list[str]:
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    try:
        with file.open("rb") as handle:
            if handle.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC:
                raise InputError(f"{file}: is a zip archive; unpack it and give the CSV file inside")
        with file.open(encoding="utf-8-sig", newline="") as text:
            return [column.strip() for column in next(csv.reader(text), [])]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{file}: not a CSV file in UTF-8") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None


def _refuse_gaps(database: Any, file: Path, columns: Sequence[str]) -> None:
    gaps = ", ".join(f"count(*) FILTER ({column} IS NULL)" for column in columns)
    total, *counts = database.execute(f"SELECT count(*), {gaps} FROM votes").fetchone()
    if not total:
        raise InputError(f"{file}: holds no votes")
    for column, count in zip(columns, counts, strict=True):
        if count:
            raise InputError(
                f"{file}: {counted(count, 'row has', 'rows have')} no {column}; the file is not as published"
            )


def _write(database: Any, file: Path, query: str) -> int:
    """Write a query's rows as CSV and return how many there are."""
    options = "FORMAT csv, HEADER true, USE_TMP_FILE false"
    row = database.execute(f"COPY ({query}) TO {_quoted(str(file))} ({options})").fetchone()
    return int(row[0])
