"""Reading and writing of spreadsheets (``.xlsx``), with the extra ``excel``. Text stays text: no cell is a formula."""

from __future__ import annotations

import datetime
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from rarevote.errors import InputError, need_library
from rarevote.io.read.columns import check_file_columns
from rarevote.io.unpacked import check_zip
from rarevote.io.write.atomic import temporary_folder_full

MAX_ROWS = 1_048_576
_MAX_TEXT = 32_767
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_DIRECTORY = "[Content_Types].xml"  # the member that every spreadsheet has
# What a formula without a value shows: a cell without a value.
_FAULTS = frozenset({"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#SPILL!", "#CALC!"})
_MAX_EXACT = 10**15  # a spreadsheet's numbers have fifteen digits


def need_openpyxl(what: str) -> Any:
    """The library openpyxl, or the error that names the extra."""
    return need_library("openpyxl", f"{what}: spreadsheets need openpyxl: pip install 'rarevote[excel]'")


def read_spreadsheet(path: Path, sheet: str | None, copy: Path, *, title: str) -> tuple[list[str], list[int]]:
    """Write a sheet as JSON lines to ``copy``; returns its columns and the numbers of its blank rows.

    Raises:
        InputError: this is not a spreadsheet, there is no such sheet, or its first row names a column twice.
    """
    openpyxl = need_openpyxl(title)
    with path.open("rb") as handle:  # given a name, openpyxl would refuse a file without this ending
        with _readable(title):
            _check_members(handle, title)
            book = openpyxl.load_workbook(handle, read_only=True, data_only=True)
            rows = _chosen_sheet(book, sheet, title).iter_rows(values_only=True)
            columns = _header(next(rows, ()), title)
        return list(columns), _copy_rows(_each_row(rows, title), columns, copy, title)


@contextmanager
def _readable(title: str) -> Iterator[None]:
    """Turn errors of openpyxl into an error that the file is not a readable spreadsheet."""
    try:
        yield
    except (InputError, MemoryError, Warning):  # a warning is raised only if Python is set to do so
        raise
    except Exception as error:  # openpyxl passes on all errors of its zip, XML and own layers
        raise InputError(f"{title}: not a readable spreadsheet ({type(error).__name__}: {error})") from None


def _check_members(handle: BinaryIO, title: str) -> None:
    """Refuse a file that is small only because it is compressed: a huge cell would be loaded into memory completely."""
    size = handle.seek(0, io.SEEK_END)
    with zipfile.ZipFile(handle) as archive:
        if _DIRECTORY not in archive.namelist():
            raise InputError(f"{title}: a zip archive, not a spreadsheet: unpack it, and give the files in it")
        check_zip(archive.infolist(), size, title=title, instead="save it as .csv")
    handle.seek(0)


def _chosen_sheet(book: Any, sheet: str | None, title: str) -> Any:
    sheets = {found.title: found for found in book.worksheets}  # a sheet that is a chart has no cells
    if not sheets:
        raise InputError(f"{title}: the spreadsheet has no sheet of cells")
    if sheet is not None and sheet not in sheets:
        raise InputError(f"{title}: no sheet {sheet!r}; there are {', '.join(map(repr, sheets))}")
    shown_sheets = [one for one in book.worksheets if one.sheet_state == "visible"]
    chosen = sheets[sheet] if sheet is not None else (shown_sheets or book.worksheets)[0]
    chosen.reset_dimensions()  # the size that the file states can be wrong
    return chosen


def _each_row(rows: Iterator[tuple[Any, ...]], title: str) -> Iterator[tuple[Any, ...]]:
    """The remaining rows; a damaged row is reported as a fault of the file, a full disk is not."""
    while True:
        with _readable(title):
            row = next(rows, None)
        if row is None:
            return
        yield row


def _header(cells: tuple[Any, ...], title: str) -> dict[str, int]:
    """Position by name, of the columns that have a name."""
    names = [_plain(cell) for cell in cells]
    texts = ["" if name is None else str(name).strip() for name in names]
    if not any(texts):
        raise InputError(f"{title}: the first row is empty; it must name the columns")
    check_file_columns(texts, title)
    return {text: position for position, text in enumerate(texts) if text}


def _copy_rows(rows: Iterator[tuple[Any, ...]], columns: Mapping[str, int], copy: Path, title: str) -> list[int]:
    blank: list[int] = []
    with copy.open("w", encoding="utf-8") as handle:
        for number, row in enumerate(rows, 2):
            if number > MAX_ROWS:
                raise InputError(f"{title}: more rows than the {MAX_ROWS:,} that a sheet can have")
            record = {
                name: _plain(row[position]) if position < len(row) else None for name, position in columns.items()
            }
            if all(value is None or value == "" for value in record.values()):
                blank.append(number)
                continue
            handle.write(json.dumps(record, ensure_ascii=False) + "\n")
    return blank


def _plain(value: Any) -> Any:
    """A cell as a JSON value: whole numbers as integers; dates and times as text, as in CSV and Parquet files.

    A sheet stores a date as the midnight at its beginning, so midnight is a date.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == datetime.time() else value)
    if value is None or value in _FAULTS:
        return None
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def write_spreadsheet(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns as the only sheet of a workbook.

    Raises:
        InputError: there are too many rows for a sheet, or too long a text for a cell.
    """
    openpyxl = need_openpyxl(str(path))
    lists = {name: column.tolist() for name, column in columns.items()}
    _check_fits(lists, path)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("result")
    make_cell = import_module("openpyxl.cell").WriteOnlyCell

    def cell(value: Any) -> Any:
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int) and abs(value) < _MAX_EXACT:
            return value
        made = make_cell(sheet, value=str(value))
        made.data_type = "s"  # otherwise text that begins with = would be a formula
        return made

    # Compressed in memory: if the disk is full, closing the archive would fail again, with a message from Python.
    packed = io.BytesIO()
    try:
        sheet.append([cell(name) for name in lists])
        for row in zip(*lists.values(), strict=True):
            sheet.append([cell(value) for value in row])
        book.save(packed)
    except OSError as error:  # for the rows, which openpyxl keeps in a temporary file until then
        raise temporary_folder_full(error) or error from None
    path.write_bytes(packed.getbuffer())


def _check_fits(lists: Mapping[str, list[Any]], path: Path) -> None:
    n_rows = max((len(values) for values in lists.values()), default=0)
    if n_rows >= MAX_ROWS:
        raise InputError(f"{path}: {n_rows:,} rows, but a sheet has at most {MAX_ROWS - 1:,}; write .csv or .parquet")
    for values in ([*lists], *lists.values()):
        for value in values:
            if not isinstance(value, str):
                continue
            if len(value) > _MAX_TEXT:
                raise InputError(f"{path}: a text of {len(value):,} characters does not fit into a cell; write .csv")
            if _FORBIDDEN.search(value):
                raise InputError(f"{path}: a spreadsheet cannot contain the control characters in {value[:40]!r}")
