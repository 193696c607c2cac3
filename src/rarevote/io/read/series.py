"""A column of any library (pandas, polars, pyarrow, any Arrow source) as codes and values.

Each library encodes its own columns, because that is fast. Its distinct values are not trusted to be distinct: all
columns, including those of files, become names in :func:`rarevote.crowd.encoding.distinct_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import Codes, encode_column, not_names, plain_times, used_names, with_gaps
from rarevote.crowd.names import as_name_array
from rarevote.errors import InputError, MissingExtraError


def encode_values(values: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    """Codes and values of one column: a list, an array, a Series, an Arrow array; missing values are -1.

    Args:
        values: the column.
        what: its name in messages.

    Raises:
        InputError: this is not one column, or contains values that cannot be names.
    """
    if isinstance(values, (list, tuple, np.ndarray)):
        return encode_column(values, what)
    series = _as_series(values, what)
    return encode_column(values, what) if series is None else encode_series(series, what)


def encode_series(series: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    """Codes and values of a narwhals Series."""
    native = series.to_native()
    implementation = series.implementation
    if implementation.is_polars():
        return _encode_polars(native, what)
    if implementation.is_pandas():
        return _encode_pandas(native, implementation.to_native_namespace(), what)
    if implementation.is_pyarrow():
        return _encode_pyarrow(native, what)
    return encode_column(series.to_list(), what)


def _as_series(values: Any, what: str) -> Any:
    """A narwhals Series of the column; None if it belongs to no known library."""
    import narwhals as nw

    library = type(values).__module__.partition(".")[0]
    if library == "pandas" and not hasattr(values, "iloc"):  # an Index or an array
        import pandas

        if isinstance(values, pandas.MultiIndex):
            raise InputError(f"{what} is an index of {values.nlevels} levels: give one of them, by get_level_values")
        values = pandas.Series(values)
    elif library == "pyarrow" and hasattr(values, "dictionary_encode") and not hasattr(values, "chunks"):
        import pyarrow

        values = pyarrow.chunked_array([values])
    series: Any = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    if isinstance(series, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(f"{what} must be a column, got a frame: give one column of it")
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return nw.from_native(_arrow_column(values, what), series_only=True)
    return None


def _arrow_column(values: Any, what: str) -> Any:
    """A column from an Arrow source, in an installed library."""
    if arrow_library() == "polars":
        import polars

        return polars.Series(values)
    import pyarrow

    made = pyarrow.chunked_array if hasattr(values, "__arrow_c_stream__") else pyarrow.array
    try:
        column = made(values)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{what} cannot be read as an Arrow column ({reason}): give an array of pyarrow or a list"
        ) from None
    return column if hasattr(column, "chunks") else pyarrow.chunked_array([column])


def arrow_library() -> Literal["pyarrow", "polars"]:
    """The library that reads Arrow data.

    Raises:
        MissingExtraError: none is installed.
    """
    if find_spec("pyarrow") is not None:
        return "pyarrow"
    if find_spec("polars") is not None:
        return "polars"
    raise MissingExtraError("reading Arrow data needs pyarrow or polars: pip install 'rarevote[arrow]'")


# --------------------------------------------------------------------------------------------------------------------
# libraries


def _encode_pandas(native: Any, pandas: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    dtype = native.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return encode_column(native.to_numpy(), what)
    if isinstance(dtype, pandas.CategoricalDtype):
        codes, values = used_names(native.cat.codes.to_numpy(), native.cat.categories)
        return codes, _as_names(values)
    if str(dtype) == "time64[ns][pyarrow]":  # pandas drops the nanoseconds
        import pyarrow

        return _encode_pyarrow(pyarrow.chunked_array(pyarrow.array(native)), what)
    try:
        # Sorting the text here is fastest, and takes less memory than a table of names later.
        codes, values = pandas.factorize(native, sort=isinstance(dtype, pandas.StringDtype))
    except (TypeError, ValueError, NotImplementedError):  # it contains lists, or other values that are not names
        return encode_column(native.tolist(), what)
    names = _as_names(values)
    if dtype.kind == "O" and not set(map(type, names.tolist())) <= {str}:
        return encode_column(native.tolist(), what)  # pandas merges 1 and True
    # The next column is encoded while these codes are in memory: half the bytes suffice for all but giant crowds.
    return codes.astype(np.int32 if len(values) < 2**31 else np.int64), names


def _as_names(values: Any) -> NDArray[Any]:
    names = np.asarray(values)
    return names if names.dtype.kind in "Om" else as_name_array(names)


def _encode_polars(native: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    import polars

    dtype = native.dtype
    if dtype.is_nested() or dtype in (polars.Object, polars.Binary, polars.Unknown):
        raise not_names(what, f"values of the type {dtype}")
    if dtype == polars.Boolean or (dtype.is_numeric() and not dtype.is_decimal() and "128" not in str(dtype)):
        present = native.is_not_null().to_numpy()
        return with_gaps(present, *encode_column(native.drop_nulls().to_numpy(), what))
    frame = native.alias("value").to_frame()
    distinct = frame.drop_nulls().unique().sort("value").with_row_index("code")
    codes = frame.join(distinct, on="value", how="left", maintain_order="left")["code"]
    values = distinct["value"]
    if dtype.is_temporal():  # polars drops nanoseconds, and panics at a year that Python does not have
        unit = "D" if dtype == polars.Date else "ns" if dtype == polars.Time else dtype.time_unit
        kind = "m" if dtype in (polars.Time, polars.Duration) else "M"
        in_zone = dtype == polars.Datetime and dtype.time_zone is not None
        # The year can be another one in the time zone.
        for times in (values, values.dt.replace_time_zone(None)) if in_zone else (values,):
            plain_times(times.to_physical().cast(polars.Int64).to_numpy().view(f"{kind}8[{unit}]"), what)
    return codes.cast(int).fill_null(-1).to_numpy(), as_name_array(_python_values(values.to_list, what))


def _encode_pyarrow(native: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    import pyarrow

    kind = native.type
    types = pyarrow.types
    if getattr(types, "is_run_end_encoded", lambda _: False)(kind):
        return _encode_run_ends(native, what)
    if types.is_null(kind):
        return np.full(len(native), -1, dtype=np.int64), as_name_array([])
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(plain) or "binary" in str(plain) or isinstance(plain, pyarrow.BaseExtensionType):
        raise not_names(what, f"values of the type {plain}")
    try:
        encoded = (native if types.is_dictionary(kind) else native.dictionary_encode()).combine_chunks()
    except pyarrow.ArrowException:
        # Dictionaries of chunks that do not match, or a type without dictionaries in pyarrow.
        return encode_column(native.to_pylist(), what)
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    values = encoded.dictionary
    if codes.size and codes.max() >= len(values):
        numbered = f"its rows number {codes.max() + 1:,} values, but its dictionary has {len(values):,}"
        raise InputError(f"{what} is damaged: {numbered}. Read the data again, or rebuild the dictionary")
    if types.is_primitive(plain) and not types.is_temporal(plain) and not values.null_count:
        return used_names(codes, values.to_numpy(zero_copy_only=False))
    if types.is_string(plain) or types.is_large_string(plain):
        codes, values = _sorted_text(codes, values)
        return used_names(codes, values.to_numpy(zero_copy_only=False))
    if types.is_temporal(plain) and not types.is_interval(plain):
        values = _whole_microseconds(values, plain, what)
    return used_names(codes, as_name_array(_python_values(values.to_pylist, what)))


def _whole_microseconds(values: Any, kind: Any, what: str) -> Any:
    """Arrow's dates and times, not in nanoseconds, which Python does not have."""
    import pyarrow

    types = pyarrow.types
    is_date = types.is_timestamp(kind) or types.is_date(kind)
    unit = kind.unit if hasattr(kind, "unit") else "D" if types.is_date32(kind) else "ms"
    # Arrow has days and milliseconds of 32 bits.
    numbers = values.drop_null().cast("int32" if kind.bit_width == 32 else "int64").cast("int64")
    plain_times(numbers.to_numpy(zero_copy_only=False).view(f"{'M' if is_date else 'm'}8[{unit}]"), what)
    if unit != "ns":
        return values
    if types.is_timestamp(kind):
        return values.cast(pyarrow.timestamp("us", kind.tz))
    return values.cast(pyarrow.time64("us") if types.is_time(kind) else pyarrow.duration("us"))


def _python_values(convert: Callable[[], list[Any]], what: str) -> list[Any]:
    """The values as their library converts them, which can fail if Python does not know a time zone."""
    try:
        return convert()
    except (LookupError, OverflowError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{what} holds dates that cannot be converted ({reason}): check the time zone, or turn them into text first"
        ) from None


def _sorted_text(codes: Codes, values: Any) -> tuple[Codes, Any]:
    """The codes with sorted texts, which Arrow sorts faster than Python."""
    import pyarrow.compute

    order = pyarrow.compute.array_sort_indices(values)
    rank = np.full(len(values) + 1, -1, dtype=np.int32 if len(values) < 2**31 else np.int64)
    rank[order.to_numpy()] = np.arange(len(values))
    return rank[codes], values.take(order)


def _encode_run_ends(native: Any, what: str) -> tuple[Codes, NDArray[Any]]:
    import pyarrow
    import pyarrow.compute

    try:
        decoded = [pyarrow.compute.run_end_decode(chunk) for chunk in native.chunks]
    except pyarrow.ArrowException:  # such as run-end encoded dictionaries
        return encode_column(native.to_pylist(), what)
    return _encode_pyarrow(pyarrow.chunked_array(decoded, type=native.type.value_type), what)
