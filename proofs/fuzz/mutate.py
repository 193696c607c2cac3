"""Files altered by their bytes, and by what their format is made of.

Every alteration is a function of the file and of a :class:`random.Random`: the same two give the same file. Chance does
not come from hypothesis: it has no public way to an example by its number, and what it draws with one seed changes
with the modules that are loaded. What cannot be taken apart, because an alteration before broke it, is altered by its
bytes.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from proofs.fuzz.columnar import altered_table

Draw = random.Random
Mutation = Callable[[bytes, Draw], bytes]

# What formats are made of, and what breaks them.
PIECES = [
    *(b'"', b"'", b",", b"\t", b";", b"\n", b"\r\n", b"\0", b"{", b"}", b"[", b"]", b":", b"\\", b"=1+1", b"\xff\xfe"),
    *(b"\xef\xbb\xbf", b"null", b"true", b"NaN", b"-1e999", b"9" * 400, b"9" * 5000, b"[" * 2000, b'{"a":' * 500),
    *(b"\xc3\x28", b"\xed\xa0\x80", "ü\u2028".encode(), b"PK\x03\x04", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"),
    *(b"task", b"worker", b"label", b"1970-01-01", b"../../etc/passwd", b"<script>", b"%s%n", b" " * 300),
    *(b"\\ud800", b"\\u0000", b"0x10", b"1_000", b"-0.0", b"\x1a", b"&#x0;", b"<![CDATA[", b"\xe2\x80\xae"),
]
# Texts that a cell, a key or a name may be.
TEXTS = [
    *("", " ", "\0", "\n", '"', "'", "task", "worker", "label", "Task", "TASK", "p:", "p:sound", "calibrated:x", "id"),
    *("null", "None", "NaN", "nan", "true", "0", "-0", "1e400", "007", "1.0", "9" * 400, "9" * 5000, "\ud800", "\x85"),
    *("İ", "ﬁ", "ß", "é", "e\u0301", "\u2028", "\u202e", "\ufeff", "𝟙", "١", "=1+1", "../../etc/passwd", "<b>", "%s"),
    *("__class__", "__proto__", "model:x", "infinity", "1/0", "9/10", "-1/2", "2026-01-01", "rowid", "a" * 3000),
]  # fmt: skip
NUMBERS = [0, -1, 1, 2, 7, 1 << 31, 1 << 63, 1 << 64, -(1 << 63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324, 1e-9, 0.1]
NOT_FINITE = [float("nan"), float("inf"), -float("inf")]


def altered_bytes(seed: bytes, draw: Draw) -> bytes:
    """One to a dozen alterations of bytes and lines."""
    found = bytearray(seed)
    for _ in range(draw.choice([1, 1, 2, 3, 5, 12])):
        if not found:
            break
        place = draw.randrange(len(found))
        kind = draw.random()
        if kind < 0.30:
            found[place] = draw.randrange(256)
        elif kind < 0.55:
            found[place:place] = draw.choice(PIECES)
        elif kind < 0.70:
            found[place : place + draw.choice([1, 4, 30, 200])] = b""
        elif kind < 0.80:
            end = place + draw.choice([2, 20, 200])
            found[place:place] = found[place:end]
        elif kind < 0.90:
            lines = bytes(found).split(b"\n")
            number = draw.randrange(len(lines))
            lines[number : number + 1] = draw.choice([[], [lines[number]] * 2, [lines[-1]]])
            found = bytearray(b"\n".join(lines))
        else:
            piece = draw.choice(PIECES)
            found[place : place + len(piece)] = piece
    return bytes(found) if draw.random() > 0.05 else bytes(found[: draw.randrange(len(found) + 1)])


# --------------------------------------------------------------------------------------------------------------------
# JSON


def any_value(draw: Draw) -> Any:
    """A value of JSON that nobody expects there."""
    kind = draw.random()
    if kind < 0.3:
        return draw.choice(TEXTS)
    if kind < 0.6:
        return draw.choice(NUMBERS)
    if kind < 0.65:
        return draw.choice(NOT_FINITE)
    if kind < 0.8:
        return draw.choice([None, True, False, [], {}, [[]], [None], {"": None}, {"task": "x"}, [0] * 50])
    if kind < 0.98:
        return nested(draw.choice([3, 30, 200]), draw)
    return nested(draw.choice([900, 5000]), draw)


def nested(depth: int, draw: Draw) -> Any:
    """Lists and objects in one another; deep ones are made as text by :func:`written`."""
    return _Deep(depth, '{"a":' if draw.random() < 0.5 else "[")


class _Deep:
    """A value nested deeper than Python can write it."""

    def __init__(self, depth: int, begin: str) -> None:
        self.depth, self.begin = depth, begin

    def __repr__(self) -> str:
        return f"deep {self.depth}"

    def text(self) -> str:
        return self.begin * self.depth + "0" + ("}" if ":" in self.begin else "]") * self.depth


def altered_tree(root: Any, draw: Draw) -> Any:
    """The value with one to six alterations: types swapped, keys dropped, renamed, doubled, values exchanged."""
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        places: list[tuple[Any, Any]] = []
        _collect(root, places)
        if not places:
            return any_value(draw)
        holder, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.45:
            holder[key] = any_value(draw)
        elif kind < 0.6:
            del holder[key]
        elif kind < 0.7:
            other, there = draw.choice(places)
            holder[key] = (
                other.get(there) if isinstance(other, dict) else (other[there] if there < len(other) else None)
            )
        elif kind < 0.8:
            value = holder[key]
            holder[key] = draw.choice([str(value), [value], {"value": value}])
        elif isinstance(holder, dict):
            holder[draw.choice(TEXTS)] = holder.pop(key) if kind < 0.9 else holder[key]
        else:
            holder[key:key] = [holder[key]] * draw.choice([1, 2, 40])
    return root


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in pairs:
        places.append((value, key))
        _collect(entry, places)


def written(value: Any, draw: Draw) -> str:
    """JSON text of an altered tree; now and then a key stands in it twice, or odd letters are escaped."""
    deep: list[_Deep] = []

    def known(entry: Any) -> Any:
        if isinstance(entry, _Deep):
            deep.append(entry)
            return f"\x00deep{len(deep) - 1}\x00"
        return str(entry)

    text = json.dumps(value, ensure_ascii=draw.random() < 0.5, default=known)
    for number, entry in enumerate(deep):
        text = text.replace(f'"\\u0000deep{number}\\u0000"', entry.text())
    if draw.random() < 0.05 and ',"' not in text and ', "' in text:
        at = text.index(', "')
        text = text[:at] + text[at : at + 400].partition("}")[0].partition("]")[0] + text[at:]
    return text


def altered_json(seed: bytes, draw: Draw) -> bytes:
    """One JSON value, altered as a tree."""
    return written(altered_tree(json.loads(seed), draw), draw).encode("utf-8", "surrogatepass")


def altered_lines(seed: bytes, draw: Draw) -> bytes:
    """JSON lines: one record altered, or lines exchanged, doubled, dropped."""
    lines = [line for line in seed.decode().split("\n") if line.strip()]
    number = draw.randrange(len(lines))
    kind = draw.random()
    if kind < 0.75:
        lines[number] = written(altered_tree(json.loads(lines[number]), draw), draw)
    elif kind < 0.85:
        lines[number : number + 1] = [lines[number]] * draw.choice([0, 2, 30])
    else:
        lines[number] = draw.choice(["", "[]", "{}", "null", "7", '"a"', "[" + lines[number] + "]"])
    return (draw.choice(["\n", "\n", "\r\n"]).join(lines) + "\n").encode("utf-8", "surrogatepass")


# --------------------------------------------------------------------------------------------------------------------
# tables of text


def altered_cells(seed: bytes, draw: Draw) -> bytes:
    """Delimited text: cells, rows, the header, quotes and the delimiter altered."""
    text = seed.decode()
    mark = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=mark))
    for _ in range(draw.choice([1, 1, 2, 4])):
        number = draw.choice([0, draw.randrange(len(rows)), draw.randrange(len(rows))])
        row = rows[number]
        kind = draw.random()
        if kind < 0.45 and row:
            row[draw.randrange(len(row))] = draw.choice([*TEXTS, *map(str, NUMBERS[:9]), '{"a": [1]}', "[1, 2]"])
        elif kind < 0.6 and row:
            place = draw.randrange(len(row))
            row[place : place + 1] = draw.choice([[], [row[place]] * 2, [row[place]] * 40])
        elif kind < 0.7:
            rows[number : number + 1] = draw.choice([[], [row, row], [[]], [[], row], [["x"] * 300]])
        elif kind < 0.8 and row:
            place = draw.randrange(len(row))
            for other in rows:  # a whole column
                other[place : place + 1] = draw.choice([[], other[place : place + 1] * 2])
        elif kind < 0.9 and row:
            row[draw.randrange(len(row))] += draw.choice(['"', "\n", "\r", ",", "\t", "\0", ";", "|"])
        else:
            draw.shuffle(rows)
        rows = rows or [[]]
    out = io.StringIO()
    style: dict[str, Any] = {
        "delimiter": draw.choice([mark] * 6 + [",", ";", "\t", "|", "~"]),
        "escapechar": "\\",
        "quoting": draw.choice([csv.QUOTE_MINIMAL] * 4 + [csv.QUOTE_ALL, csv.QUOTE_NONE]),
        "lineterminator": draw.choice(["\n", "\n", "\r\n", "\r"]),
    }
    csv.writer(out, **style).writerows(rows)
    encoding = draw.choice(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "latin-1", "utf-32"])
    return out.getvalue().encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


def altered_columns(seed: bytes, draw: Draw) -> bytes:
    """Columns of a frame, as JSON: cells, rows and columns altered, mostly so that a frame can be made of them."""
    columns: dict[str, list[Any]] = json.loads(seed)
    for _ in range(draw.choice([1, 1, 2, 4])):
        name = draw.choice(list(columns))
        values = columns[name]
        place = draw.randrange(len(values))
        kind = draw.random()
        if kind < 0.4:
            of_type = [one for one in [*TEXTS, *NUMBERS] if type(one) is type(values[place])]
            values[place] = draw.choice([*of_type, *values])
        elif kind < 0.5:
            values[place] = any_value(draw)
        elif kind < 0.6:
            values[place] = None
        elif kind < 0.75:
            times = draw.choice([0, 2, 40]) if len(values) > 1 else 2
            columns = {
                key: [*some[:place], *some[place : place + 1] * times, *some[place + 1 :]]
                for key, some in columns.items()
            }
        elif kind < 0.85:
            columns[name] = [draw.choice([len(str(one)), hash_of(one)]) for one in values]
        elif kind < 0.9:
            columns[draw.choice(TEXTS)] = columns.pop(name)
        else:
            order = draw.sample(range(len(values)), len(values))
            columns = {key: [some[i] for i in order if i < len(some)] for key, some in columns.items()}
    return json.dumps(columns, default=str).encode("utf-8", "surrogatepass")


def hash_of(value: Any) -> int:
    """A whole number that stands for a value, as large ids are."""
    return zlib.crc32(str(value).encode("utf-8", "surrogatepass")) << 30


# --------------------------------------------------------------------------------------------------------------------
# containers


def altered_zip(seed: bytes, draw: Draw) -> bytes:
    """A member altered by what it is, dropped, doubled, renamed or packed otherwise, and the whole zipped again."""
    with zipfile.ZipFile(io.BytesIO(seed)) as archive:
        members = [(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    number = draw.randrange(len(members))
    name, content, packing = members[number]
    kind = draw.random()
    if kind < 0.75:
        members[number] = name, altered(content, _ending(name), draw), packing
    elif kind < 0.85:
        other = draw.choice(
            ["", "x", "/", "../x", name.upper(), members[0][0], "a" * 300, f".{name}", f"{name}/", "\udcff"]
        )
        members[number] = other.encode("utf-8", "replace").decode(), content, packing
    elif kind < 0.95:
        members[number : number + 1] = draw.choice([[], [members[number]] * 2, [(name, b"", packing)]])
    else:
        others = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
        members[number] = name, content, draw.choice(others)
    return zipped(members)


def zipped(members: list[tuple[str, bytes, int]]) -> bytes:
    """The bytes of an archive, the same for the same members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content, packing in members:
            info = zipfile.ZipInfo(name or "\x00")  # the module refuses none; it cuts a name at a zero byte
            info.compress_type = packing
            if info.filename in archive.NameToInfo:
                archive.NameToInfo.pop(info.filename)  # twice on purpose: no warning
            archive.writestr(info, content)
    return out.getvalue()


def altered_array(seed: bytes, draw: Draw) -> bytes:
    """NumPy's array: its header, its numbers or its bytes."""
    begin = 10 + int.from_bytes(seed[8:10], "little")
    header, numbers = seed[10:begin].decode("latin-1"), bytearray(seed[begin:])
    kind = draw.random()
    if kind < 0.4 and len(numbers) >= 8:
        at = 8 * draw.randrange(len(numbers) // 8)
        number = draw.choice([0.0, -1.0, 2.0, 1e308, 5e-324, -1e308, *NOT_FINITE])
        numbers[at : at + 8] = struct.pack("<d", number) if draw.random() < 0.7 else draw.randbytes(8)
    elif kind < 0.8:
        before, after = draw.choice(
            [("<f8", draw.choice(["<f4", ">f8", "<i8", "|O", "<U2", "|S8", "<c16", "<M8[s]", "|V8", "<f2", "|b1"])),
             ("False", "True"), ("(", "(0, "), (",)", ")"), ("(", "(-1, "), ("shape", "shap"), ("}", ""), ("{", "{{"),
             ("(", "(99999999999, "), ("|u1", "|i1"), ("<i8", "<f8"), ("descr", "\xff"), ("(", "(" * 300)]
        )  # fmt: skip
        header = header.replace(before, after)
    else:
        return altered_bytes(seed, draw)
    return seed[:8] + (len(header) & 0xFFFF).to_bytes(2, "little") + header.encode("latin-1") + bytes(numbers)


def altered_weights(seed: bytes, draw: Draw) -> bytes:
    """A safetensors file: its header as a tree, with the length that it then has."""
    length = int.from_bytes(seed[:8], "little")
    header = altered_json(seed[8 : 8 + length], draw)
    return len(header).to_bytes(8, "little") + header + seed[8 + length :]


def altered_gzip(seed: bytes, draw: Draw) -> bytes:
    """What was packed, altered and packed again."""
    inner = altered(gzip.decompress(seed), draw.choice([".csv", ""]), draw)
    packed = gzip.compress(inner, 1, mtime=0)
    return packed if draw.random() < 0.9 else packed + draw.choice([packed, b"\0" * 9, b"x", packed[:20]])


def altered_zstd(seed: bytes, draw: Draw) -> bytes:
    """The same for Zstandard."""
    import zstandard

    inner = altered(zstandard.ZstdDecompressor().decompressobj().decompress(seed), draw.choice([".csv", ""]), draw)
    packed = zstandard.compress(inner)
    return packed if draw.random() < 0.9 else packed + draw.choice([packed, b"\0" * 9, b"x", packed[:20]])


def altered_xml(seed: bytes, draw: Draw) -> bytes:
    """A part of a spreadsheet: attributes, references and cells exchanged for others."""
    before, after = draw.choice(
        [(b't="s"', b't="n"'), (b't="s"', b't="d"'), (b't="s"', b't="e"'), (b't="n"', b't="s"'), (b"<v>", b"<v>9999"),
         (b"<v>", b"<v>-"), (b"<v>", b"<v>1e400"), (b't="n"', b't="b"'), (b"<t>", b"<t>\xef\xbf\xbf"),
         (b'r="A', b'r="ZZZZ'),
         (b't="inlineStr"', b't="d"'), (b't="inlineStr"', b't="s"'), (b"<t>", b"<v>"), (b"</row>", b""),
         (b'r="', b'r="0'),
         (b"sheet1", b"sheet9"), (b"</", b"<"), (b"rId1", b"rId9"), (b"<c ", b'<c s="99" '), (b"<v>", b"<f>1+1</f><v>"),
         (b"?>", b'?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'), (b"<t>", b"<t>&b;")]
    )  # fmt: skip
    places = seed.count(before)
    if not places or draw.random() < 0.4:
        return altered_bytes(seed, draw)
    parts = seed.split(before)
    chosen = draw.randrange(places)
    return before.join(parts[: chosen + 1]) + after + before.join(parts[chosen + 1 :])


_BY_ENDING: dict[str, Mutation] = {
    ".csv": altered_cells,
    ".tsv": altered_cells,
    ".json": altered_json,
    ".jsonl": altered_lines,
    ".ndjson": altered_lines,
    ".xlsx": altered_zip,
    ".zip": altered_zip,
    ".model": altered_zip,
    ".npz": altered_zip,
    ".checkpoint": altered_zip,
    ".npy": altered_array,
    ".xml": altered_xml,
    ".rels": altered_xml,
    ".gz": altered_gzip,
    ".zst": altered_zstd,
    ".safetensors": altered_weights,
    ".parquet": altered_table,
    ".arrow": altered_table,
    ".request": altered_json,
    ".columns": altered_columns,
}
# Of these the container stays whole: it is ours, not the user's.
_NEVER_BY_BYTES = (".checkpoint", ".columns")


def altered(seed: bytes, ending: str, draw: Draw) -> bytes:
    """The file altered by its format or by its bytes, or by both.

    Args:
        seed: a file.
        ending: the ending of its name, which says what it is.
        draw: where chance comes from.
    """
    by_format = _BY_ENDING.get(ending)
    found = seed
    if by_format is not None and (ending in _NEVER_BY_BYTES or draw.random() < 0.7):
        try:
            found = by_format(seed, draw)
        except (ValueError, KeyError, IndexError, OSError, EOFError, csv.Error, zipfile.BadZipFile, RuntimeError):
            found = altered_bytes(seed, draw)  # an alteration before this one broke the format
        if ending in _NEVER_BY_BYTES or draw.random() < 0.8:
            return found
    return altered_bytes(found, draw)


def _ending(name: str) -> str:
    return "." + name.rpartition(".")[2]
