"""Arrow IPC files (``.arrow``, ``.feather``) in and out, through the extra ``arrow``.

How large an Arrow file becomes, from what it says of itself, before anybody unpacks it.

An IPC file ends in a footer that names its blocks; a stream is one message after the other. Each is a flatbuffer that
lists buffers, and a packed buffer begins with the size it has when unpacked. Everything else in such a file is read
where it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.errors import InputError, MissingExtraError
from rarevote.io.duck import first_line
from rarevote.io.read.columns import check_column_names
from rarevote.io.read.detect import FileInfo

_numbers = count()
# Votes that all say the same are packed to a hundredth; a small file may be packed as it likes.
_MAX_PACKING = 300
_MAX_SMALL = 256 << 20


def need_pyarrow(what: str) -> Any:
    """The library pyarrow, or the error that names the extra."""
    try:
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(f"{what}: Arrow files need pyarrow: pip install 'rarevote[arrow]'") from None


def open_arrow(found: FileInfo) -> tuple[str, Any, list[str]]:
    """A name for DuckDB, the object behind it, and the columns of an IPC file or stream."""
    pyarrow = need_pyarrow(found.title)
    if not found.head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        # Taken for a stream, any four bytes would be the length of a message, and as much would be read.
        raise InputError(f"{found.title}: not a readable Arrow file")
    ipc = import_module("pyarrow.ipc")
    try:
        mapped = pyarrow.memory_map(str(found.path))
        _check_unpacked(memoryview(mapped.read_buffer()), found.title)
        mapped.seek(0)
        if found.head.startswith(b"ARROW1"):
            file = ipc.open_file(mapped)
            # Nobody else checks what a batch says of itself, and an offset that leads out of it ends the process.
            check_column_names(file.schema, found.title)
            for number in range(file.num_record_batches):
                file.get_batch(number).validate(full=True)
            opened = import_module("pyarrow.dataset").dataset(str(found.path), format="ipc")
        else:
            # A stream has no index to go back by; mapped into memory it is read again without being loaded.
            stream = ipc.open_stream(mapped)
            check_column_names(stream.schema, found.title)
            opened = stream.read_all()
            opened.validate(full=True)
        names = list(opened.schema.names)
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeError, ValueError) as error:
        raise InputError(f"{found.title}: not a readable Arrow file ({first_line(error)})") from None
    return f"arrow_{next(_numbers)}", opened, names


def _check_unpacked(data: memoryview, title: str) -> None:
    """Refuse a file that is small only because it is packed."""
    try:
        unpacked = unpacked_bytes(data)
    except (struct.error, IndexError):
        return  # damaged: whoever reads it says so
    if unpacked > max(_MAX_SMALL, _MAX_PACKING * len(data)):
        raise InputError(f"{title}: unpacks from {len(data):,} to {unpacked:,} bytes, as no table of votes does")


def write_arrow(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns of one type each as an IPC file."""
    pyarrow = need_pyarrow(str(path))
    table = pyarrow.table(
        {name: pyarrow.array(column.tolist() if column.dtype == object else column) for name, column in columns.items()}
    )
    with import_module("pyarrow.ipc").new_file(str(path), table.schema) as writer:
        writer.write_table(table)


# --------------------------------------------------------------------------------------------------------------------
# how large a file becomes


_DICTIONARY, _BATCH = 2, 3  # kinds of messages that have buffers
_CONTINUES = 0xFFFFFFFF
_BLOCK = struct.Struct("<qi4xq")  # offset, length of the message, length of the body
_BUFFER = struct.Struct("<qq")  # offset in the body, length


def unpacked_bytes(data: Any) -> int:
    """The sum of the sizes that packed buffers claim; what is not packed is not counted.

    Args:
        data: the bytes of a file or a stream.

    Raises:
        struct.error: it leads out of the data.
        ValueError: it names the same batches again and again, which would take for ever to read.
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
                total += max(0, _number(data, "<q", body + offset))  # -1 where a buffer was left as it is
    return total


def _of_file(data: Any) -> Iterator[tuple[int, int]]:
    """Where each message and its body begin."""
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
            return  # the end, or nothing that we know
        body = at + 8 + length
        yield at + 8, body
        size = _field(data, _follow(data, at + 8), 3)
        at = body + max(0, 0 if size is None else _number(data, "<q", size))


def _packed_buffers(data: Any, message: int) -> int:
    """Where the list of a message's packed buffers begins; 0 if it has none."""
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
    """Where a field of a flatbuffer's table is; None if the table leaves it out."""
    fields = table - _number(data, "<i", table)
    place = 4 + 2 * number
    offset = _number(data, "<H", fields + place) if place < _number(data, "<H", fields) else 0
    return table + offset if offset else None
