"""A base class for results that can become frames: the columns of a file as a pandas, polars or pyarrow table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarevote.io.tables import arrow_table, pandas_frame, polars_frame


class Framed:
    """A result whose :meth:`columns` can become a frame.

    Frames have the columns of the file that ``write`` creates, except that numbers are not rounded. A column
    with names of different types becomes text, as in a file.
    """

    def columns(self, *, with_posterior: bool = False, with_prior: bool = False) -> dict[str, Any]:
        """The columns of the file, by name."""
        raise NotImplementedError

    @property
    def _column_dtypes(self) -> Mapping[str, Any]:
        """For pandas, the original types of ids and labels, by name of the column."""
        return {}

    def to_pandas(self, *, with_posterior: bool = False, with_prior: bool = False) -> Any:
        """A pandas DataFrame with the columns of the file. Arguments are as for :meth:`columns`."""
        columns = self.columns(with_posterior=with_posterior, with_prior=with_prior)
        return pandas_frame(columns, self._column_dtypes)

    def to_polars(self, *, with_posterior: bool = False, with_prior: bool = False) -> Any:
        """A polars DataFrame with the columns of the file. Arguments are as for :meth:`columns`."""
        return polars_frame(self.columns(with_posterior=with_posterior, with_prior=with_prior))

    def to_arrow(self, *, with_posterior: bool = False, with_prior: bool = False) -> Any:
        """A pyarrow Table with the columns of the file. Arguments are as for :meth:`columns`."""
        return arrow_table(self.columns(with_posterior=with_posterior, with_prior=with_prior))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns as an Arrow stream, which ``polars.DataFrame(result)``, DuckDB and others accept."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)
