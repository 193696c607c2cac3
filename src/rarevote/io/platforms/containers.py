"""The containers of an export: one file, a compressed file, a zip with a file per annotator, or a folder.

Nothing is unpacked to disk, so names inside an archive are harmless. The sizes in a zip's directory are checked
before anything is unpacked, and reading stops if the actual bytes exceed a limit, whatever sizes are stated.
UTF-16, which the Windows shell uses for redirected output, is converted to UTF-8.
"""

from __future__ import annotations

import codecs
import io
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from rarevote.errors import InputError
from rarevote.io.platforms.export_files import ExportFiles, Part, undamaged
from rarevote.io.read.detect import ZIP, Compression, FileInfo, inspect_file, open_bytes, stream_of, unpacked_zstd
from rarevote.io.unpacked import check_zip

MAX_BYTES = 64 << 30  # of one part, unpacked: far beyond any export, and a limit for malicious archives
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_TABLE_ENDINGS = (".csv", ".tsv")
_ENDINGS = ", ".join((*_JSON_ENDINGS, *_TABLE_ENDINGS))
_CHUNK = 1 << 16  # bytes
_FASTTEXT = b"__label__"
_ZSTD = 93  # a compression method, in a zip file
_LOCAL_HEADER = 30  # bytes before the name of a member
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def _limited(stream: IO[bytes], most: int | None = None) -> Iterator[bytes]:
    """Bytes of an unpacked stream, up to ``most`` or :data:`MAX_BYTES`."""
    left = most = MAX_BYTES if most is None else most
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise OSError(f"unpacks to more than {most:,} bytes")
        yield chunk


def _recoded(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """The bytes of a text as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while chunk := stream.read(_CHUNK):
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def _as_utf8(stream: io.BufferedReader) -> IO[bytes]:
    encoding = _UTF_16.get(stream.peek(2)[:2])
    return stream if encoding is None else stream_of(_recoded(stream, encoding), stream)


def _buffered(stream: IO[bytes], *behind: zipfile.ZipFile) -> IO[bytes]:
    return _as_utf8(stream_of(_limited(stream), stream, *behind))


def open_export(path: Path, found: FileInfo | None = None) -> ExportFiles:
    """The files of an export.

    Args:
        path: the file or folder.
        found: the file, if it was already inspected.

    Raises:
        InputError: nothing is there, it cannot be opened, or it contains no file that can be an export.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        return _in_folder(path)
    found = found or inspect_file(path)
    if found.kind == "parquet":
        return ExportFiles(path, (), (path,))
    if found.head.startswith(ZIP):
        return ExportFiles(path, _zip_parts(path))
    encoding = _UTF_16.get(found.head[:2])
    head = found.head.decode(encoding, "replace").encode() if encoding else found.head
    stem = path.stem if found.compression == "none" else Path(path.stem).stem
    return ExportFiles(path, (_file_part(path, stem, found.compression, (head, found.complete)),))


def _file_part(
    path: Path, stem: str, compression: Compression = "none", looked: tuple[bytes, bool] | None = None
) -> Part:
    def opened() -> IO[bytes]:
        with undamaged(str(path)):
            stream = open_bytes(path, compression)
            return _as_utf8(stream) if compression == "none" else _buffered(stream)  # type: ignore[arg-type]

    return Part(str(path), stem, opened, looked)


def _in_folder(path: Path) -> ExportFiles:
    records = path / "records.json"  # Argilla's to_disk folder
    if records.is_file():
        return ExportFiles(path, (_file_part(records, records.stem),))
    # In a clone of the hub's repository, they are in a separate folder.
    if hub := sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet")):
        return ExportFiles(path, (), tuple(hub))
    for endings in (_JSON_ENDINGS, _TABLE_ENDINGS):
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in endings and file.is_file()]
        if files:
            return ExportFiles(path, tuple(_file_part(file, file.stem) for file in files))
    raise InputError(f"{path}: the folder has no {_ENDINGS} file")


def _zip_parts(path: Path) -> tuple[Part, ...]:
    with undamaged(str(path)), zipfile.ZipFile(path) as archive:
        everything = archive.infolist()
    members = [entry for entry in everything if _is_export_file(entry, _JSON_ENDINGS)]
    members = members or [entry for entry in everything if _is_export_file(entry, _TABLE_ENDINGS)]
    locked = [entry.filename for entry in members if entry.flag_bits & 1]
    if locked:
        raise InputError(f"{path}: {locked[0]} is encrypted; unpack it first")
    if not members:
        _refuse_fasttext(path, everything)
        raise InputError(f"{path}: the zip has no {_ENDINGS} file; export as one of these")
    check_zip(members, path.stat().st_size, title=str(path), instead="unpack it, and use only files that you trust")

    def part(entry: zipfile.ZipInfo) -> Part:
        def opened() -> IO[bytes]:
            with undamaged(f"{path}: {entry.filename}"):
                if entry.compress_type == _ZSTD and sys.version_info < (3, 14):
                    return _as_utf8(stream_of(_limited(_packed_by_zstd(path, entry), entry.file_size)))
                archive = zipfile.ZipFile(path)
                return _buffered(archive.open(entry), archive)

        return Part(f"{path}: {entry.filename}", PurePosixPath(entry.filename).stem, opened)

    return tuple(part(entry) for entry in sorted(members, key=lambda entry: entry.filename))


def _refuse_fasttext(path: Path, everything: list[zipfile.ZipInfo]) -> None:
    """Refuse doccano's fastText export by name."""
    texts = [entry for entry in everything if _is_export_file(entry, (".txt",)) and not entry.flag_bits & 1]
    if texts:
        with undamaged(str(path)), zipfile.ZipFile(path) as archive, archive.open(texts[0]) as member:
            if not member.read(len(_FASTTEXT)).startswith(_FASTTEXT):
                return
        raise InputError(
            f"{path}: a zip of texts for fastText, as doccano exports them: they have no ids, so it cannot be seen "
            "which answers are about one item. Export as JSONL, JSON or CSV"
        )


def _packed_by_zstd(path: Path, entry: zipfile.ZipInfo) -> IO[bytes]:
    """A member that only Python 3.14 and later can unpack; it contains samples of a log, and is small."""
    with path.open("rb") as handle:
        handle.seek(entry.header_offset)
        lengths = struct.unpack_from("<HH", handle.read(_LOCAL_HEADER), _LOCAL_HEADER - 4)
        handle.seek(sum(lengths), io.SEEK_CUR)
        packed = handle.read(entry.compress_size)
    return unpacked_zstd(io.BytesIO(packed))


def _is_export_file(entry: zipfile.ZipInfo, endings: tuple[str, ...]) -> bool:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    hidden = any(piece.startswith(".") and piece.strip(".") for piece in name.parts) or "__MACOSX" in name.parts
    # A member without a name is skipped before the check for a folder: Python looks at the last character.
    return bool(entry.filename) and not entry.is_dir() and not hidden and name.suffix.lower() in endings
