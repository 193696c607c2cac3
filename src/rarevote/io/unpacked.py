"""Checks of the size of compressed files before they are unpacked: kilobytes can contain gigabytes."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, shown
from rarevote.io.duck import AS_WRITTEN, identifier, literal

# Tables with equal cells are compressed to a hundredth; for small results, any ratio is allowed.
_MAX_PACKING = 300
_MAX_SMALL = 256 << 20
_MAX_SMALL_MEMBER = 64 << 20
_ROW = 24  # bytes of a vote in memory: three numbers
# For small Parquet files, the text is also measured: a dictionary shows neither the length of its texts nor how often
# they occur, and nothing else compares the sizes in the footer with the file.
_MAX_MEASURED = 4 << 20
_LENGTH = {"VARCHAR": "strlen", "BLOB": "octet_length"}


def _refuse_bomb(
    named: str, packed: int, unpacked: int, small: int | None = None, ending: str = "too much for a table of votes"
) -> None:
    if unpacked > max(_MAX_SMALL if small is None else small, _MAX_PACKING * packed):
        raise InputError(f"{named} unpacks from {packed:,} to {unpacked:,} bytes, {ending}")


def check_zip(members: Sequence[zipfile.ZipInfo], size: int, *, title: str, instead: str) -> None:
    """Refuse a zip file that is small only because it is compressed, from the sizes in its directory.

    Python reads no more of a member than the directory states, so wrong sizes cannot hide anything.

    Args:
        members: the members to read.
        size: bytes of the whole file, which bound the total size of members that share bytes.
        title: the name of the file in messages.
        instead: a sentence on what to do instead.

    Raises:
        InputError: a member, or all together, unpack to more than tables do.
    """
    sizes = [(f"{title}: {shown(one.filename)}", one.compress_size, one.file_size) for one in members]
    for named, packed, unpacked in [*sizes, (title, size, sum(one.file_size for one in members))]:
        _refuse_bomb(named, packed, unpacked, _MAX_SMALL_MEMBER, f"too much for a table; {instead}")


def check_rows(packed: int, rows: int, title: str) -> None:
    """Refuse a compressed table with implausibly many rows for its size.

    Raises:
        InputError: there are more.
    """
    _refuse_bomb(f"{title}:", packed, _ROW * rows, ending="too much for a table of items")


def check_parquet(database: Any, path: Path, title: str, kinds: dict[str, str]) -> None:
    """Refuse a Parquet file that is small only because it is compressed.

    Args:
        database: a DuckDB.
        path: the file.
        title: its name in messages.
        kinds: the type of each column.
    """
    import duckdb

    size, file = path.stat().st_size, [literal(str(path))]
    declared, rows = database.execute(
        "SELECT (SELECT sum(total_uncompressed_size) FROM parquet_metadata(?)), "
        "(SELECT sum(num_rows) FROM parquet_file_metadata(?))",
        [file, file],
    ).fetchone()
    _refuse_bomb(f"{title}:", size, max(int(declared or 0), _ROW * int(rows or 0)))
    measures = [f"{_LENGTH[kind]}({identifier(name)})" for name, kind in kinds.items() if kind in _LENGTH]
    if measures and size <= _MAX_MEASURED:
        lengths = " + ".join(f"coalesce(sum({measure}), 0)" for measure in measures)
        try:
            (length,) = database.execute(f"SELECT {lengths} FROM read_parquet(?, {AS_WRITTEN})", [file]).fetchone()
        except duckdb.OutOfMemoryException:
            return  # the reader reports the fault
        _refuse_bomb(f"{title}:", size, int(length))


# --------------------------------------------------------------------------------------------------------------------
# Arrow. An IPC file ends in a footer that names its blocks; a stream is one message after the other. Each is a
# flatbuffer that lists buffers, and a compressed buffer begins with its uncompressed size. Everything else in such
# a file is read in place.


_DICTIONARY, _BATCH = 2, 3  # kinds of messages that have buffers
_CONTINUES = 0xFFFFFFFF
_BLOCK = struct.Struct("<qi4xq")  # offset, length of the message, length of the body
_BUFFER = struct.Struct("<qq")  # offset in the body, length


def check_arrow(data: memoryview, title: str) -> None:
    """Refuse an IPC file or stream that is small only because it is compressed."""
    try:
        unpacked = unpacked_bytes(data)
    except (struct.error, IndexError):
        return  # damaged: the reader reports it
    _refuse_bomb(f"{title}:", len(data), unpacked)


def unpacked_bytes(data: Any) -> int:
    """The sum of the stated sizes of compressed buffers; others are not counted.

    Args:
        data: the bytes of a file or a stream.

    Raises:
        struct.error: an offset leads out of the data.
        ValueError: it lists the same batches repeatedly, which would take forever to read.
    """
    total = seen = 0
    for message, body in _of_file(data) if bytes(data[:6]) == b"ARROW1" else _of_stream(data):
        buffers = _packed_buffers(data, message)
        n = _number(data, "<I", buffers) if buffers else 0
        seen += _BLOCK.size + _BUFFER.size * n
        if seen > len(data):
            raise ValueError("batches that overlap")
        for number in range(n):
            offset, length = _BUFFER.unpack_from(data, buffers + 4 + _BUFFER.size * number)
            if length >= 8:
                total += max(0, _number(data, "<q", body + offset))  # -1 if a buffer is not compressed
    return total


def _of_file(data: Any) -> Iterator[tuple[int, int]]:
    """The start of each message and of its body."""
    footer = len(data) - 10 - _number(data, "<i", len(data) - 10)
    root = _follow(data, footer)
    for vector in (2, 3):  # dictionaries, batches
        place = _field(data, root, vector)
        if place is None:
            continue
        blocks = _follow(data, place)
        for block in range(_number(data, "<I", blocks)):
            offset, metadata, _ = _BLOCK.unpack_from(data, blocks + 4 + _BLOCK.size * block)
            marked = _number(data, "<I", offset) == _CONTINUES
            yield offset + (8 if marked else 4), offset + metadata


def _of_stream(data: Any) -> Iterator[tuple[int, int]]:
    at = 0
    while at + 8 <= len(data):
        length = _number(data, "<i", at + 4) if _number(data, "<I", at) == _CONTINUES else 0
        if length <= 0:
            return  # the end, or an unknown message
        body = at + 8 + length
        yield at + 8, body
        size = _field(data, _follow(data, at + 8), 3)
        at = body + max(0, 0 if size is None else _number(data, "<q", size))


def _packed_buffers(data: Any, message: int) -> int:
    """The start of the list of a message's compressed buffers; 0 if it has none."""
    root = _follow(data, message)
    kind, header = _field(data, root, 1), _field(data, root, 2)
    if kind is None or header is None or data[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _follow(data, header)
    if data[kind] == _DICTIONARY:
        held = _field(data, batch, 1)
        if held is None:
            return 0
        batch = _follow(data, held)
    place, packing = _field(data, batch, 2), _field(data, batch, 3)
    return 0 if place is None or packing is None else _follow(data, place)


def _number(data: Any, kind: str, at: int) -> int:
    return int(struct.unpack_from(kind, data, at)[0])


def _follow(data: Any, at: int) -> int:
    return at + _number(data, "<I", at)


def _field(data: Any, table: int, number: int) -> int | None:
    """The position of a field in a flatbuffer table; None if the table omits it."""
    fields = table - _number(data, "<i", table)
    place = 4 + 2 * number
    offset = _number(data, "<H", fields + place) if place < _number(data, "<H", fields) else 0
    return table + offset if offset else None
