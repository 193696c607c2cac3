"""From files to integers, by DuckDB: rows are loaded, checked and encoded without passing through Python.

Text is unchanged (``007`` stays ``007``), JSON values and typed columns keep their type, except dates and times,
which become text. Names are encoded by joining a table of the distinct ones, numbered in sorted order, which DuckDB
does in parallel. For large inputs, rows and names are kept in a temporary file, and names of tasks stay on disk until
results are written.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Encoded
from rarevote.crowd.encoding import encode_column
from rarevote.crowd.names import as_name_array, is_missing
from rarevote.errors import InputError, how
from rarevote.io.duck import AS_WRITTEN, FLOATS, connection, first_line, identifier, literal, with_objects
from rarevote.io.json_text import parse_cell
from rarevote.io.names_file import NamesFile
from rarevote.io.read.sources import PARQUET, FileTable, asking, count_rows, place_of_rows, translated

# Types that stay as they are; other types that are not nested become text. Dates and times become the text that a CSV
# file has for them: NumPy would make the day 2026-11-17 the time 2026-11-17 00:00:00.
_NATIVE = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE",
    "BOOLEAN", "VARCHAR", "JSON",
}  # fmt: skip
_NUMBERS = _NATIVE - {"BOOLEAN", "VARCHAR", "JSON"}
# The type of columns of a role that differ in type; the other sorts become text.
_COMMON = {"numbers": "JSON", "BOOLEAN": "BOOLEAN", "JSON": "JSON"}
_NESTED = ("STRUCT", "MAP", "UNION")
# From this size on, rows and names are kept in a file rather than in memory.
OUT_OF_CORE_BYTES = 256 << 20
_PACKED_FACTOR = 5  # growth factor of compressed text and of Parquet
_MAX_VIEWED_FILES = 200
_ROWS_AT_ONCE = 4_000_000
# The characters that Python's str.strip() removes.
_BLANK = r"[\s\x{0b}\x{1c}-\x{1f}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
# Only text that begins with a blank is checked completely.
_BLANK_NAME = f"name IS NULL OR ((name < '!' OR name >= chr(127)) AND regexp_full_match(name, '{_BLANK}'))"
_ROWS_TRIED = 20_000
# Up to this many names are joined with each part of the rows; otherwise the rows are joined once, and stored.
_MAX_NAMES_JOINED_AGAIN = 500_000
# Longer than the name of any real column.
_SEVERAL = ". Several choices in one answer? "
_ROLE = "rarevote {} of a table"
#: A whole number that is written with a point; the first group is the number.
WHOLE_NUMBER = r"^\s*([-+]?[0-9]+)\.0+\s*$"
# A single cell with the name of its column can be an item.
_COLUMNS_OF_HEADER = 2
_MAX_ROWS_NAMED = 5


@dataclass(frozen=True)
class Choice:
    """The columns to read from a source.

    Attributes:
        roles: the column of each role; a wide table has only the role "task".
        answers: the columns that contain labels: those of a wide table, one per annotator.
        names: the role of the names of ``answers``: "worker", or "choice", for which blank cells are also rows.
        as_text: read labels as text, whatever their type: lists as JSON.
        without_points: read the label ``1.0`` as ``1`` in columns of text.
    """

    roles: Mapping[str, str]
    answers: Sequence[str] = field(default_factory=tuple)
    names: str = "worker"
    as_text: bool = False
    without_points: bool = False


def is_large(sources: Sequence[FileTable]) -> bool:
    """Whether the files are too large to be kept in memory."""
    total = 0
    for source in sources:
        factor = 1 if source.form != "typed" and source.compression == "none" else _PACKED_FACTOR
        total += factor * sum(Path(file.path).stat().st_size for file in source.files if Path(file.path).is_file())
    return total >= OUT_OF_CORE_BYTES


@contextmanager
def loaded(sources: Sequence[FileTable], choices: Sequence[Choice]) -> Iterator[Any]:
    """A database with the chosen columns of all sources in a table ``rows``, named by role; ``rowid`` is their order.

    Large Parquet files are not copied into it: ``rows`` is then a view that reads them.
    """
    import duckdb

    large = is_large(sources)
    with connection(on_disk=large) as database:
        if not (large and _view_parquet(database, sources, choices)):
            sorts = _sorts_of_roles(sources, choices)
            for number, (source, choice) in enumerate(zip(sources, choices, strict=True)):
                with_objects(database, source.objects)
                try:
                    query = _rows_query(source, choice, sorts)
                    verb = "INSERT INTO rows" if number else "CREATE TABLE rows AS"
                    database.execute(f"{verb} {query}", source.parameters)
                except duckdb.Error as error:
                    raise _no_room(error) or translated(source, error) from None
        try:
            _refuse_repeated_headers(database, sources, choices)
            yield database
        except duckdb.Error as error:
            about = next((one for one in sources if any(file.path in str(error) for file in one.files)), sources[0])
            raise _no_room(error) or translated(about, error) from None


def _refuse_repeated_headers(database: Any, sources: Sequence[FileTable], choices: Sequence[Choice]) -> None:
    """Refuse rows that repeat the header, as in concatenated files: each would be a vote for the class "label"."""
    seen = set()
    for source, choice in zip(sources, choices, strict=True):
        columns = [*choice.roles.values(), *choice.answers]
        is_named = source.form == "json" or (source.table is not None and source.table.has_header)
        if not is_named or len(columns) < _COLUMNS_OF_HEADER:
            continue
        own = [_is_own_name(role, name, source.form) for role, name in choice.roles.items()]
        if choice.answers:
            quoted = f"'\"' || {choice.names} || '\"'" if source.form == "json" and not choice.as_text else choice.names
            own.append(f"CAST(label AS VARCHAR) = {quoted}")
        repeated = " AND ".join(own)
        if repeated in seen or not database.execute(f"SELECT 1 FROM rows WHERE {repeated} LIMIT 1").fetchone():
            seen.add(repeated)
            continue
        cells = ", ".join(f"{source.text(name)} AS c{number}" for number, name in enumerate(columns))
        same = " AND ".join(_is_own_name(f"c{number}", name) for number, name in enumerate(columns))
        with asking(source) as ask:
            query = f"SELECT n FROM (SELECT {cells}, row_number() OVER () - 1 AS n FROM {source.reader}) WHERE {same}"
            rows = [n for (n,) in ask(f"{query} ORDER BY n LIMIT {_MAX_ROWS_NAMED}").fetchall()]
        if rows:
            raise InputError(
                f"{source.title}: the header is repeated in {place_of_rows([source], rows)}: remove it there, or give "
                "the concatenated files separately"
            )


def _is_own_name(column: str, name: str, form: str = "csv") -> str:
    """The SQL condition that a cell is the name of its column, also after the byte-order mark of another file."""
    spelled = [json.dumps(text, ensure_ascii=False) if form == "json" else text for text in (name, f"\ufeff{name}")]
    texts = ", ".join("'" + text.replace("'", "''") + "'" for text in spelled)
    return f"CAST({column} AS VARCHAR) IN ({texts})"


def _view_parquet(database: Any, sources: Sequence[FileTable], choices: Sequence[Choice]) -> bool:
    """Make ``rows`` a view of Parquet files, if all sources are Parquet files with columns of the same types."""
    if len(sources) > _MAX_VIEWED_FILES or any(source.reader != PARQUET for source in sources):
        return False
    queries, seen, begin = [], set(), 0
    for source, choice in zip(sources, choices, strict=True):
        if choice.answers or len(source.files) != 1:
            return False
        kinds = source.kinds
        columns = {role: _readable(name, kinds[name], source.title) for role, name in choice.roles.items()}
        seen.add(tuple(kinds[name] for name in choice.roles.values()))
        path = literal(source.files[0].path).replace("'", "''")
        selected = ", ".join(f"{column} AS {role}" for role, column in columns.items())
        queries.append(
            f"SELECT {selected}, {begin} + file_row_number AS rowid FROM "
            f"read_parquet('{path}', file_row_number = true, {AS_WRITTEN})"
        )
        begin += count_rows(source)
    if len(seen) > 1:
        return False
    database.execute(f"CREATE VIEW rows AS {' UNION ALL '.join(queries)}")
    return True


def _no_room(error: Exception) -> InputError | None:
    """The error for a full disk or memory; None for other errors."""
    import duckdb

    text = first_line(error)
    full = isinstance(error, duckdb.OutOfMemoryException) or any(
        sign in text for sign in ("No space left", "File too large", "Disk quota", "not enough disk")
    )
    if not full:
        return None
    return InputError(
        f"not enough memory or disk ({text[:200]}). Large inputs are sorted in {tempfile.gettempdir()}: free some "
        "space there, or set the environment variable TMPDIR to another folder."
    )


def _sort(kind: str) -> str:
    """What the values of a type are; two types of one sort have the same text for the same value."""
    if kind in _NUMBERS:
        return "numbers"
    if kind.startswith(("VARCHAR", "ENUM", "UUID")):
        return "text"
    kind = re.sub(r"^(TIMESTAMP|TIME)_(S|MS|NS)$", r"\1", kind)  # the text of a time is the same in each unit
    return re.sub(r"^DECIMAL\(\d+", "DECIMAL(", kind)  # the number of digits after the point is part of the text


def _sorts_of_roles(sources: Sequence[FileTable], choices: Sequence[Choice]) -> dict[str, str]:
    """What the values are of each role whose columns differ in type, in one file or in several.

    The columns of a role stand below each other, and DuckDB would cast all to the type of the first: 1.5 to an integer.

    Raises:
        InputError: a role has truth values and numbers, for example, and it cannot be known which are equal.
    """
    columns: dict[str, dict[str, list[tuple[FileTable, str]]]] = {}  # by role and type
    for source, choice in zip(sources, choices, strict=True):
        for role, name in (*choice.roles.items(), *(("label", name) for name in choice.answers)):
            if not (choice.as_text and role == "label"):
                columns.setdefault(role, {}).setdefault(source.kinds[name], []).append((source, name))
    return {role: _only_sort(role, by_type) for role, by_type in columns.items() if len(by_type) > 1}


def _only_sort(role: str, by_type: Mapping[str, Sequence[tuple[FileTable, str]]]) -> str:
    """What the values of these columns are: numbers beside text are text, and a column without values is anything."""
    sorts = {_sort(kind) for kind in by_type}
    if len(sorts) == 1:
        return sorts.pop()
    found: dict[str, str] = {}
    for kind, columns in by_type.items():
        for source, name in columns:
            if _sort(kind) not in found and _has_values(source, name, kind):
                found[_sort(kind)] = f"{source.title} has a column {name!r} of type {kind}"
    if len(found) > 1 and found.keys() != {"numbers", "text"}:
        raise InputError(f"{', and '.join(found.values())}: give the {role}s one type, for example text")
    return "numbers" if found.keys() == {"numbers"} else next(iter(found.keys() - {"numbers"}), "text")


def _has_values(source: FileTable, name: str, kind: str) -> bool:
    with asking(source) as ask:
        return ask(f"SELECT 1 FROM {source.reader} WHERE {_valued(name, kind)} LIMIT 1").fetchone() is not None


def _valued(name: str, kind: str) -> str:
    """The SQL condition that a cell has a value."""
    return f"{identifier(name)} IS NOT NULL" + (f" AND NOT isnan({identifier(name)})" if kind in FLOATS else "")


def _of_sort(source: FileTable, name: str, sort: str) -> str:
    """The SQL expression for a column in the type that all columns of this sort have."""
    kind = source.kinds[name]
    if sort == "text" and _sort(kind) == "numbers":
        return f"CASE WHEN {_valued(name, kind)} THEN {source.text(name)} END"
    if _sort(kind) != sort:
        return f"NULL::{_COMMON.get(sort, 'VARCHAR')}"
    if sort != "numbers":
        return _readable(name, kind, source.title)
    # As JSON, numbers keep their digits, and 1 and 1.0 are one name. JSON has no NaN.
    exact = f"CAST({identifier(name)} AS DOUBLE)" if kind in FLOATS else identifier(name)
    return f"CASE WHEN {_valued(name, kind)} THEN to_json({exact}) END"


def _rows_query(source: FileTable, choice: Choice, sorts: Mapping[str, str]) -> str:
    kinds = source.kinds

    def column(name: str, role: str) -> str:
        if choice.as_text and role == "label":
            is_list = kinds[name].endswith("]")
            return f"CAST(to_json({identifier(name)}) AS VARCHAR)" if is_list else source.text(name)
        if role in sorts:
            return _of_sort(source, name, sorts[role])
        return _readable(name, kinds[name], source.title)

    if not choice.answers:
        selected = ", ".join(f"{column(name, role)} AS {role}" for role, name in choice.roles.items())
        return f"SELECT {selected} FROM {source.reader}"
    if choice.as_text:
        answers = [f"coalesce({column(name, 'label')}, '')" for name in choice.answers]  # UNPIVOT leaves out NULL
    else:
        answers = [column(name, "label") for name in choice.answers]
    if choice.without_points:
        answers = [
            f"regexp_replace({text}, '{WHOLE_NUMBER}', '\\1')" if kinds[name] == "VARCHAR" else text
            for text, name in zip(answers, choice.answers, strict=True)
        ]
    # A column can have the name of a role.
    kept = {role: identifier(_ROLE.format(role)) for role in choice.roles}
    named = ", ".join(
        [
            *(f"{column(name, role)} AS {kept[role]}" for role, name in choice.roles.items()),
            *(f"{text} AS {identifier(name)}" for text, name in zip(answers, choice.answers, strict=True)),
        ]
    )
    columns = ", ".join(identifier(name) for name in choice.answers)
    selected = ", ".join([*(f"{name} AS {role}" for role, name in kept.items()), choice.names, "label"])
    filled = not_blank("label ->> '$'" if source.form == "json" and not choice.as_text else "label")
    return (
        f"SELECT {selected} FROM (UNPIVOT (SELECT {named} FROM {source.reader}) ON {columns} INTO NAME {choice.names} "
        f"VALUE label){f' WHERE {filled}' if choice.names == 'worker' else ''}"
    )


def tasks_without_votes(sources: Sequence[FileTable], choices: Sequence[Choice]) -> list[Any]:
    """Tasks of rows of wide tables in which every annotator's cell is blank; other rows can have votes on them."""
    tasks: list[Any] = []
    for source, choice in zip(sources, choices, strict=True):
        name = choice.roles["task"]
        column = _readable(name, source.kinds[name], source.title)
        filled = " OR ".join(not_blank(source.text(answer)) for answer in choice.answers)
        with asking(source) as ask:
            found = ask(
                f"SELECT DISTINCT {column} AS task FROM {source.reader} "
                f"WHERE {not_blank(source.text(name))} AND NOT coalesce({filled}, false)"
            ).fetchnumpy()["task"]
        names = np.asarray(found).tolist()
        tasks += from_json_text(names, "task") if source.form == "json" else names
    return [task for task in tasks if not is_missing(task)]


def rows_without_task(sources: Sequence[FileTable], choices: Sequence[Choice], most: int = 5) -> list[int]:
    """The first rows of wide tables (from 0, over all sources) without a task."""
    rows: list[int] = []
    begin = 0
    for source, choice in zip(sources, choices, strict=True):
        task = identifier(choice.roles["task"])
        numbered = f"SELECT {task} AS task, row_number() OVER () - 1 AS n FROM {source.reader}"
        with asking(source) as ask:
            query = f"SELECT n FROM ({numbered}) WHERE task IS NULL OR NOT {not_blank('task')} ORDER BY n LIMIT {most}"
            rows += [begin + n for (n,) in ask(query).fetchall()]
        begin += count_rows(source)
    return rows[:most]


def not_blank(expression: str) -> str:
    """The SQL condition that a text is not blank."""
    return f"trim(CAST({expression} AS VARCHAR)) <> ''"


def _readable(name: str, kind: str, title: str) -> str:
    """The SQL expression for a column in a type that can be encoded."""
    if kind.endswith("]") or kind.startswith(_NESTED):
        several = f"{_SEVERAL}{how('multilabel=True', '--multilabel')}" if kind.endswith("]") else ""
        raise InputError(
            f"{title}: column {name!r} contains lists or objects ({kind[:60]}), not ids or labels{several}"
        )
    return identifier(name) if kind in _NATIVE else f"CAST({identifier(name)} AS VARCHAR)"


# --------------------------------------------------------------------------------------------------------------------
# encoding


def encode_rows(
    database: Any, roles: Sequence[str] | None = None, *, out_of_core: bool = False
) -> tuple[Encoded, set[str]]:
    """Codes and distinct values of every column of ``rows``, in order; missing values are -1.

    Args:
        database: as :func:`loaded` returns it.
        roles: the columns to encode; all by default.
        out_of_core: leave the names of tasks on disk, if they are text.

    Returns:
        The codes and values, and the columns whose values are sorted text with none missing.
    """
    kinds = {name: kind for name, kind, *_ in database.execute("DESCRIBE rows").fetchall() if name != "rowid"}
    kinds = kinds if roles is None else {role: kinds[role] for role in roles}
    encoded: Encoded = {}
    texts = {}
    for role, kind in kinds.items():
        if kind in ("VARCHAR", "JSON"):
            texts[role] = f"CAST(rows.{role} AS VARCHAR)"
        else:
            column, found = encode_column(database.execute(f"SELECT {role} FROM rows").fetchnumpy()[role], role)
            # A narrow type, because there is one for every vote.
            encoded[role] = column.astype(np.int32 if len(found) < 2**31 else np.int64, copy=False), found
    stored = None
    if out_of_core and "task" in texts:
        stored = _plain_text(database, "task", kinds["task"])
        texts["task"] = stored or texts["task"]
    plain = {role for role in texts if kinds[role] == "VARCHAR" or (stored and role == "task")}
    missing = {role: _BLANK_NAME if role in plain else "name IS NULL" for role in texts}
    names: dict[str, str | NamesFile] = {role: f"SELECT name FROM {role}_names ORDER BY code" for role in texts}
    codes = {}
    if "task" in texts and _stand_together(database, texts["task"]):
        codes["task"], names["task"] = _codes_of_runs(
            database, texts.pop("task"), missing["task"], out_of_core=out_of_core, on_disk=stored is not None
        )
    for role, text in texts.items():
        _number_names(database, role, f"SELECT DISTINCT {text} AS name FROM rows", missing[role])
    codes |= _codes(database, "rows", texts, out_of_core=out_of_core) if texts else {}
    for role, column in codes.items():
        query = names[role]
        if isinstance(query, NamesFile) or (stored and role == "task"):
            kept = query if isinstance(query, NamesFile) else NamesFile.written_by(database, query)
            encoded[role] = column, kept
            continue
        found = np.asarray(database.execute(query).fetchnumpy()["name"], dtype=object)
        values = as_name_array(from_json_text(found.tolist(), role)) if kinds[role] == "JSON" else found
        encoded[role] = column, values
    return {role: encoded[role] for role in kinds}, plain


def _plain_text(database: Any, role: str, kind: str) -> str | None:
    """The SQL expression for a column as text; None for JSON that is not all text."""
    if kind == "VARCHAR":
        return f"rows.{role}"
    (plain,) = database.execute(f"SELECT bool_and(json_type({role}) IN ('VARCHAR', 'NULL')) FROM rows").fetchone()
    return f"(rows.{role} ->> '$')" if plain else None


def _number_names(database: Any, role: str, distinct: str, missing: str) -> None:
    """Create the table of a role's names, numbered in sorted order, without missing ones."""
    database.execute(
        f"CREATE TABLE {role}_names AS SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code "
        f"FROM ({distinct}) WHERE NOT ({missing})"
    )


def _codes(database: Any, table: str, texts: Mapping[str, str], *, out_of_core: bool) -> dict[str, NDArray[np.int32]]:
    """The number of every row's name, by role. A join returns rows in any order, so each row has its position."""
    (n_rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    selected = ", ".join(f"coalesce({role}_names.code, -1) AS {role}" for role in texts)
    joined = " ".join(f"LEFT JOIN {role}_names ON {text} = {role}_names.name" for role, text in texts.items())
    query = f"SELECT {table}.rowid AS row, {selected} FROM {table} {joined}"
    codes = {role: np.empty(n_rows, dtype=np.int32) for role in texts}
    parts = [query]
    if out_of_core:
        begins = range(0, n_rows, _ROWS_AT_ONCE)
        within = "{0}.rowid >= {1} AND {0}.rowid < {2}"
        counted = " + ".join(f"(SELECT count(*) FROM {role}_names)" for role in texts)
        if database.execute(f"SELECT {counted}").fetchone()[0] <= _MAX_NAMES_JOINED_AGAIN:
            parts = [f"{query} WHERE {within.format(table, begin, begin + _ROWS_AT_ONCE)}" for begin in begins]
        else:
            database.execute(f"CREATE TABLE {table}_codes AS {query}")
            codes_of = f"SELECT * FROM {table}_codes WHERE "
            parts = [codes_of + within.format(f"{table}_codes", begin, begin + _ROWS_AT_ONCE) for begin in begins]
    for part in parts:
        fetched = database.execute(part).fetchnumpy()
        row = np.asarray(fetched["row"])
        for role, column in codes.items():
            column[row] = fetched[role]
    return codes


# Most files have the votes of a task in consecutive rows, and most of those have the tasks in order. Then
# only the first row of each run is inspected, and if runs are sorted, their numbers are the codes.


def _stand_together(database: Any, text: str) -> bool:
    """Whether the rows of a task seem to be consecutive, or the tasks in order, judged by the first rows."""
    runs, rising, rows = database.execute(
        f"SELECT count(*) FILTER (name IS DISTINCT FROM before), count(*) FILTER (name > before), count(*) FROM "
        f"(SELECT {text} AS name, lag({text}) OVER () AS before FROM (SELECT task FROM rows LIMIT {_ROWS_TRIED}) rows)"
    ).fetchone()
    return bool(rows > 0 and (2 * runs <= rows or rising >= runs - 1))


def _codes_of_runs(
    database: Any, text: str, missing: str, *, out_of_core: bool, on_disk: bool
) -> tuple[NDArray[np.int32], str | NamesFile]:
    """The number of every row's task, and the names in order: a query, or the file that stores them."""
    query = (
        f"SELECT name, first, name > before AS rises FROM (SELECT {text} AS name, lag({text}) OVER () AS before, "
        "rows.rowid AS first FROM rows) WHERE name IS DISTINCT FROM before OR first = 0"
    )
    kept = None
    if on_disk:
        kept = NamesFile.written_by(database, query)
        database.execute(f"CREATE VIEW runs AS {kept.rows('name, first, rises')}")
    else:
        database.execute(f"CREATE TABLE runs AS {query}")
    n_runs, n_rising, n_missing = database.execute(
        f"SELECT count(*), count(*) FILTER (rises), count(*) FILTER ({missing}) FROM runs"
    ).fetchone()
    if n_missing == 0 and n_rising == n_runs - 1:
        numbers, names = np.arange(n_runs, dtype=np.int32), kept or "SELECT name FROM runs"
    else:
        _number_names(database, "task", "SELECT DISTINCT name FROM runs", missing)
        numbers = _codes(database, "runs", {"task": "runs.name"}, out_of_core=out_of_core)["task"]
        names = "SELECT name FROM task_names ORDER BY code"
    first = np.asarray(database.execute("SELECT first FROM runs").fetchnumpy()["first"])
    (n_rows,) = database.execute("SELECT count(*) FROM rows").fetchone()
    return np.repeat(numbers, np.diff(first, append=n_rows)), names


def from_json_text(names: Sequence[str], what: str) -> list[Any]:
    """The values of JSON texts that are text, numbers or booleans."""
    values = parse_cell(f"[{','.join(names)}]", f"the {what}s")
    for value in values:
        if isinstance(value, (list, dict)):
            kind = "a list" if isinstance(value, list) else "an object"
            shown = json.dumps(value, ensure_ascii=False)[:60]
            is_choices = what == "label" and isinstance(value, list)
            several = f"{_SEVERAL}{how('multilabel=True', '--multilabel')}" if is_choices else ""
            raise InputError(f"the {what} {shown} is {kind}, not a name or a number{several}")
    return list(values)


# --------------------------------------------------------------------------------------------------------------------
# columns to show


def shown_values(
    sources: Sequence[FileTable], task_columns: Sequence[str], column: str, *, single: bool = False
) -> dict[Any, str]:
    """For each task, the first value of a column that is not blank, as text; with ``single``, it must be the only one.

    The files are read again rather than stored: only one text per task is in memory.
    """
    found: dict[Any, str] = {}
    for source, task in zip(sources, task_columns, strict=True):
        if column not in source.columns:
            continue
        named = _readable(task, source.kinds[task], source.title)
        with asking(source) as ask:
            rows = ask(
                "SELECT task, arg_min(shown, n) AS shown, count(DISTINCT trim(shown)) AS n_values, "
                f"arg_max(shown, n) AS last FROM (SELECT {named} AS task, {source.text(column)} AS shown, "
                f"row_number() OVER () AS n FROM {source.reader}) "
                f"WHERE task IS NOT NULL AND {not_blank('shown')} GROUP BY task"
            ).fetchnumpy()
        tasks = np.asarray(rows["task"]).tolist()
        if source.form == "json":
            tasks = from_json_text(tasks, "task")
        if single and (rows["n_values"] > 1).any():
            first = int(rows["n_values"].argmax())
            two = f"{rows['shown'][first]!r} and {rows['last'][first]!r}"
            raise InputError(f"{source.title}: task {tasks[first]!r} has several values in {column!r}: {two}")
        for name, value in zip(tasks, rows["shown"].tolist(), strict=True):
            if single and found.setdefault(name, value).strip() != value.strip():
                two = f"{found[name]!r} and {value!r}"
                raise InputError(f"{source.title}: task {name!r} has several values in {column!r}: {two}")
            found.setdefault(name, value)
    return found
