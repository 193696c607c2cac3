"""Results in the type of the data: crowd-kit's layouts for pandas; polars for polars, pyarrow for pyarrow.

A :class:`Table` is a result before conversion: named index columns and named value columns. For data from
arrays or files, the table itself is returned, which can be converted to any of these types.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import is_missing, object_array
from rarevote.errors import InputError, need_library, shown

Kind = Literal["table", "pandas", "polars", "pyarrow"]


def _library(name: str) -> Any:
    return need_library(name, f"this needs {name}: pip install {name}")


@contextmanager
def _storing_text() -> Iterator[None]:
    """Turn the error of a library that cannot store a text into one that names the text."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError(
            f"a frame cannot store the name {shown(error.object)}, which is not valid Unicode (half of a surrogate "
            "pair): decode the names again, or replace such characters"
        ) from None


@_storing_text()
def pandas_index(values: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A pandas Index of these values, with the given type if they have it; new values become new categories."""
    pandas, column = _library("pandas"), values if isinstance(values, np.ndarray) else object_array(values)
    if column.dtype == np.float16:
        column = column.astype(np.float32)  # pandas has no index of half precision
    given = column.tolist() if column.dtype == object else column
    if isinstance(dtype, pandas.CategoricalDtype):
        known = set(dtype.categories)
        given = [None if is_missing(value) and value not in known else value for value in column.tolist()]
        # The place of new categories in an order is not known.
        new = [value for value in dict.fromkeys(given) if value is not None and value not in known]
        dtype = pandas.CategoricalDtype([*dtype.categories, *new]) if new else dtype
    try:
        return pandas.Index(given, dtype=dtype, name=name, tupleize_cols=False)
    except (TypeError, ValueError, NotImplementedError):
        return pandas.Index(given, name=name, tupleize_cols=False)


def pandas_frame(columns: Mapping[str, Any], dtypes: Mapping[str, Any]) -> Any:
    """A pandas DataFrame of these columns, with numbered rows.

    Args:
        columns: the columns by name.
        dtypes: the original types of the columns, by name.
    """
    pandas = _library("pandas")
    cells = {name: pandas_index(_cells(column), dtypes.get(name)) for name, column in columns.items()}
    return pandas.DataFrame({name: pandas.Series(column) for name, column in cells.items()}, columns=list(columns))


@_storing_text()
def polars_frame(columns: Mapping[str, Any]) -> Any:
    """A polars DataFrame of these columns."""
    polars = _library("polars")
    return polars.DataFrame([polars.Series(name, _cells(column), strict=False) for name, column in columns.items()])


@_storing_text()
def arrow_table(columns: Mapping[str, Any]) -> Any:
    """A pyarrow Table of these columns."""
    pyarrow = _library("pyarrow")
    return pyarrow.table({name: _arrow_array(pyarrow, _cells(column)) for name, column in columns.items()})


def _arrow_array(pyarrow: Any, values: Any) -> Any:
    """The values as an Arrow array; text if Arrow has no type for them."""
    for kind in (None, pyarrow.uint64()):  # integers are taken as signed ones unless a type is given
        try:
            return pyarrow.array(values, type=kind)
        except (OverflowError, TypeError, pyarrow.ArrowException):
            pass
    return pyarrow.array(_texts(list(values)))


def _cells(column: Any) -> Any:
    """The values of a column, with one type: mixed types become text, and numbers that a frame would round."""
    column = np.asarray(column)
    if column.dtype.kind == "U":
        return column.tolist()
    if column.dtype != object:
        return column
    values = column.tolist()
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 and not any(map(_is_rounded, kinds)) else _texts(values)


def _is_rounded(kind: type) -> bool:
    """Whether a frame would store another value: a fraction as a float, a member of an Enum as its number."""
    return issubclass(kind, (Number, Enum)) and not issubclass(kind, (int, float, Decimal, str))


def _texts(values: list[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]


@dataclass(frozen=True, eq=False)
class Table:
    """A small immutable table.

    Attributes:
        index: the columns that identify a row, for example ``{"task": ...}``.
        values: the columns with results.
        series: whether pandas should show the single value column as a Series with its name.
        columns_name: the name of the columns axis, for pandas ("label" if each column is a class).
        dtypes: for pandas, the original types of index levels and labels, by name of the column;
            the key "columns" is for the names of the value columns.
    """

    index: Mapping[str, NDArray[Any]]
    values: Mapping[Any, NDArray[Any]]
    series: bool = False
    columns_name: str | None = None
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    # -- as plain arrays ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns under their names as text, index first."""
        named: dict[str, NDArray[Any]] = dict(self.index)
        for name, column in self.values.items():
            text = str(name)
            while text in named:
                text += "_"
            named[text] = column
        return named

    def __len__(self) -> int:
        return len(next(iter(self.index.values())))

    def __getitem__(self, name: Any) -> NDArray[Any]:
        for columns in (self.values, self.index, self.columns):
            if name in columns:
                return columns[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(zip(*(column.tolist() for column in self.columns.values()), strict=True))

    def to_dict(self) -> dict[Any, Any]:
        """A dict from index value to result: the value for a single column, else a dict per row."""
        keys = [column.tolist() for column in self.index.values()]
        names = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        if self.series:
            (column,) = self.values.values()
            return dict(zip(names, column.tolist(), strict=True))
        rows = zip(*(column.tolist() for column in self.values.values()), strict=True)
        return {name: dict(zip(self.values, row, strict=True)) for name, row in zip(names, rows, strict=True)}

    # -- as frames ---------------------------------------------------------------------------------------------------

    def to(self, kind: Kind) -> Any:
        """This table as the type ``kind``."""
        if kind == "table":
            return self
        return {"pandas": self.to_pandas, "polars": self.to_polars, "pyarrow": self.to_arrow}[kind]()

    def to_pandas(self) -> Any:
        """A pandas Series or DataFrame in crowd-kit's layout: indexed by task or worker."""
        pandas = _library("pandas")

        levels = [pandas_index(values, self.dtypes.get(name), name) for name, values in self.index.items()]
        index = levels[0] if len(levels) == 1 else pandas.MultiIndex.from_arrays(levels, names=list(self.index))
        data = {
            name: column
            if column.dtype.kind == "f"
            else pandas.Series(pandas_index(column, self.dtypes.get(str(name))), index=index)
            for name, column in self.values.items()
        }
        if self.series:
            ((name, column),) = data.items()
            return pandas.Series(column, index=index, name=name)
        frame = pandas.DataFrame(dict(enumerate(data.values())), index=index)
        names = np.empty(len(data), dtype=object)
        names[:] = list(self.values)
        frame.columns = pandas_index(names, self.dtypes.get("columns"), self.columns_name)
        return frame

    def to_polars(self) -> Any:
        """A polars DataFrame: index columns, then value columns."""
        return polars_frame(self.columns)

    def to_arrow(self) -> Any:
        """A pyarrow Table: index columns, then value columns."""
        return arrow_table(self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    # -- display -----------------------------------------------------------------------------------------------------

    def _shown(self, most: int) -> list[list[str]]:
        def text(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, float) else str(value)

        columns = [[text(value) for value in column[:most].tolist()] for column in self.columns.values()]
        return [list(row) for row in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        names, rows = list(self.columns), self._shown(10)
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                 for row in [names, *rows]]  # fmt: skip
        if len(self) > len(rows):
            lines.append(f"... {len(self):,} rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._shown(20)
        )
        note = f"<p>{len(self):,} rows</p>" if len(self) > 20 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"
