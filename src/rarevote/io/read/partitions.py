"""Columns in the names of folders, as Spark and Hive write them: ``label=yes/part-0.parquet``."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from rarevote.errors import warn_user
from rarevote.io.duck import identifier

if TYPE_CHECKING:
    from rarevote.io.read.sources import FileTable

_FILE = "rarevote name of the file"  # longer than the name of any real column


def partition_values(path: str | Path) -> dict[str, str]:
    """The values in the folder names of a path.

    >>> partition_values("votes/day=2026-11-16/label=not%20sure/part-0.parquet")
    {'day': '2026-11-16', 'label': 'not sure'}
    """
    pairs = (folder.partition("=") for folder in Path(path).parts[:-1])
    return {unquote(name): unquote(value) for name, sign, value in pairs if name and sign}


def with_partitions(source: FileTable) -> FileTable:
    """The source with a column for each folder ``name=value`` in the path, unless the file has such a column."""
    (file,) = source.files
    absent = tuple(name for name in partition_values(Path(file.path).absolute()) if name not in source.columns)
    if not absent or source.objects:
        return source
    value = "list_last(regexp_extract_all({file}, '(?:^|[/\\\\]){key}=([^/\\\\]*)[/\\\\]', 1))"
    columns = []
    for name in absent:
        key = re.escape(quote(name, safe=" ")).replace("'", "''")
        text = f"url_decode({value.format(file=identifier(_FILE), key=key)})"
        columns.append(f"{f'to_json({text})' if source.form == 'json' else text} AS {identifier(name)}")
    function = source.reader.removesuffix(")") + f", filename={_FILE!r})"
    reader = f"(SELECT * EXCLUDE ({identifier(_FILE)}), {', '.join(columns)} FROM {function})"
    return replace(source, reader=reader, columns=[*source.columns, *absent], partitions=absent)


def say_partitions(title: str, roles: Mapping[str, str], partitions: Container[str]) -> bool:
    """Report the roles that come from folder names instead of columns; returns whether there are any.

    Args:
        title: the name of the file in messages.
        roles: the column of each role.
        partitions: the columns that come from folder names.
    """
    filled = {role: name for role, name in roles.items() if name in partitions}
    for role, name in filled.items():
        warn_user(f"{title}: no column {name!r}; the {role} comes from the folder name ({name}=...)")
    return bool(filled)
