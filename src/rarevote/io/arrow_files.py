"""Reading and writing of Arrow IPC files (``.arrow``, ``.feather``), with the extra ``arrow``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.errors import InputError, need_library
from rarevote.io.duck import first_line
from rarevote.io.read.columns import check_column_names
from rarevote.io.read.detect import FileInfo
from rarevote.io.unpacked import check_arrow

_numbers = count()


def need_pyarrow(what: str) -> Any:
    """The library pyarrow, or the error that names the extra."""
    return need_library("pyarrow", f"{what}: Arrow files need pyarrow: pip install 'rarevote[arrow]'")


def open_arrow(found: FileInfo) -> tuple[str, Any, list[str]]:
    """A name for DuckDB, the object behind it, and the columns of an IPC file or stream."""
    pyarrow = need_pyarrow(found.title)
    if not found.head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        # If read as a stream, any four bytes would be taken as the length of a message to read.
        raise InputError(f"{found.title}: not a readable Arrow file")
    ipc = import_module("pyarrow.ipc")
    try:
        mapped = pyarrow.memory_map(str(found.path))
        check_arrow(memoryview(mapped.read_buffer()), found.title)
        mapped.seek(0)
        if found.head.startswith(b"ARROW1"):
            file = ipc.open_file(mapped)
            # No other check covers the contents of a batch, and an offset outside it would crash the process.
            check_column_names(file.schema, found.title)
            for number in range(file.num_record_batches):
                file.get_batch(number).validate(full=True)
            opened = import_module("pyarrow.dataset").dataset(str(found.path), format="ipc")
        else:
            # A stream cannot be rewound; mapped into memory, it can be read again without loading it.
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


def write_arrow(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns with one type each as an IPC file."""
    pyarrow = need_pyarrow(str(path))
    table = pyarrow.table(
        {name: pyarrow.array(column.tolist() if column.dtype == object else column) for name, column in columns.items()}
    )
    with import_module("pyarrow.ipc").new_file(str(path), table.schema) as writer:
        writer.write_table(table)
