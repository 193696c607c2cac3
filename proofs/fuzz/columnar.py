"""Parquet and Arrow files with columns of other types, names and numbers."""

from __future__ import annotations

import datetime
import decimal
import io
import random
from typing import Any

_ARROW_CODECS = [None, "lz4", "zstd"]
_PARQUET_CODECS = ["none", "snappy", "gzip", "zstd"]


def altered_table(seed: bytes, draw: random.Random) -> bytes:
    """The table with a column of another type, other values, another name, without it, or without rows."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    is_parquet = seed[:4] == b"PAR1"
    table = parquet.read_table(io.BytesIO(seed)) if is_parquet else ipc.open_file(io.BytesIO(seed)).read_all()
    for _ in range(draw.choice([1, 1, 2, 3])):
        if not table.num_columns:
            break
        place = draw.randrange(table.num_columns)
        name = table.column_names[place]
        kind = draw.random()
        if kind < 0.6:
            table = table.set_column(place, name, _values(pa, draw, table.num_rows))
        elif kind < 0.75:
            names = [*table.column_names]
            names[place] = draw.choice(
                ["", "task", "Task", "label", "x" * 3000, "\0", "ü", "a b", 'a"b', "p:", "rowid"]
            )
            table = table.rename_columns(names)
        elif kind < 0.85:
            table = table.remove_column(place)
        elif kind < 0.95:
            table = table.append_column(draw.choice([name, "more"]), _values(pa, draw, table.num_rows))
        else:
            table = table.slice(0, draw.choice([0, 1]))
    out = io.BytesIO()
    if is_parquet:
        size = draw.choice([None, 1, 7])
        options = {"compression": draw.choice(_PARQUET_CODECS), "row_group_size": size}
        parquet.write_table(table, out, **options, use_dictionary=draw.random() < 0.5)
        return out.getvalue()
    options = ipc.IpcWriteOptions(compression=draw.choice(_ARROW_CODECS))
    opened = ipc.new_stream if draw.random() < 0.4 else ipc.new_file
    with opened(out, table.schema, options=options) as writer:
        writer.write_table(table, draw.choice([None, 1, 5]))
    return out.getvalue()


def _values(pa: Any, draw: random.Random, n: int) -> Any:
    """A column of some type, with or without missing values."""
    day = datetime.date(2026, 11, 17)
    stamp = datetime.datetime(2026, 11, 17, 1, 2, 3)
    kinds: list[tuple[Any, list[Any]]] = [
        (pa.int8(), [1, -128]), (pa.uint64(), [0, 2**64 - 1]), (pa.int64(), [-(2**63), 7]), (pa.float16(), [0.5]),
        (pa.float32(), [float("nan"), 1.0]), (pa.float64(), [float("inf"), -0.0, 1e308]), (pa.bool_(), [True, False]),
        (pa.string(), ["", "a\0b", " "]), (pa.large_string(), ["x"]), (pa.binary(), [b"\xff", b""]),
        (pa.binary(3), [b"abc"]), (pa.date32(), [day]), (pa.timestamp("ns"), [stamp]),
        (pa.timestamp("us", tz="UTC"), [stamp]), (pa.time64("us"), [datetime.time(1, 2)]),
        (pa.duration("s"), [datetime.timedelta(1)]), (pa.decimal128(38, 4), [decimal.Decimal("1.5")]),
        (pa.list_(pa.int64()), [[1], []]), (pa.struct([("a", pa.int8())]), [{"a": 1}]), (pa.null(), [None]),
        (pa.map_(pa.string(), pa.int8()), [[("a", 1)]]), (pa.dictionary(pa.int32(), pa.string()), ["u", "v"]),
        (pa.large_list(pa.string()), [["a"]]), (pa.month_day_nano_interval(), [(1, 2, 3)]),
        (getattr(pa, "string_view", pa.large_string)(), ["v"]),  # pyarrow 15 has no views
    ]  # fmt: skip
    kind, some = draw.choice(kinds)
    values = [draw.choice(some) for _ in range(n)]
    for _ in range(draw.choice([0, 0, 1, n])):
        if n:
            values[draw.randrange(n)] = None
    return pa.array(values, type=kind)
