"""A Parquet file that is small only because it is packed is refused before it is unpacked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rarevote import read
from rarevote.errors import InputError
from tests.command import rarevote

MEBI = 1 << 20


def written(path: Path, **columns: Any) -> Path:
    """A table of votes in which one column is given and the others say the same in every row."""
    n_rows = len(next(iter(columns.values())))
    table = {name: columns.get(name, pa.array(["x"] * n_rows)) for name in ("task", "worker", "label")}
    parquet.write_table(pa.table(table), path, compression="zstd", use_dictionary=["label"], row_group_size=100_000)
    return path


def long_texts(folder: Path) -> Path:
    return written(folder / "long.parquet", task=["a" * MEBI] * 300)


def one_text_often(folder: Path) -> Path:
    """A dictionary holds a text once, however often it stands in the table; no size in the footer tells."""
    codes = pa.array(np.zeros(100_000, dtype=np.int32))
    return written(folder / "often.parquet", label=pa.DictionaryArray.from_arrays(codes, pa.array(["a" * 4096])))


def many_rows(folder: Path) -> Path:
    path = folder / "rows.parquet"
    zero = pa.array(np.zeros(12_000_000, dtype=np.int8))
    parquet.write_table(pa.table({"task": zero, "worker": zero, "label": zero}), path, compression="zstd")
    return path


def varint(number: int, length: int = 0) -> bytes:
    """A number as Parquet's footer writes it, drawn out to a length."""
    bits, digits = 2 * number, list[int]()
    while bits or not digits or len(digits) < length:
        digits.append(bits & 127 | 128)
        bits >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def false_footer(folder: Path) -> Path:
    """The footer says that a megabyte is in it."""
    path = long_texts(folder)
    group = parquet.ParquetFile(path).metadata.row_group(0)
    content = path.read_bytes()
    for size in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        said = varint(size)
        assert said in content
        content = content.replace(said, varint(MEBI, len(said)))
    path.write_bytes(content)
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == MEBI
    return path


@pytest.mark.prove
@pytest.mark.parametrize(
    ("made", "unpacked"),
    [
        (long_texts, 300 * MEBI),
        (one_text_often, 100_000 * 4096),
        (many_rows, 12_000_000 * 24),
        (false_footer, 300 * MEBI),
    ],
)
def test_what_unpacks_to_more_than_votes_do_is_refused(made: Any, unpacked: int, tmp_path: Path) -> None:
    path = made(tmp_path)
    assert path.stat().st_size < 200_000
    with pytest.raises(InputError) as caught:
        read(path)
    found = re.fullmatch(
        r".*: unpacks from ([\d,]+) to ([\d,]+) bytes, too much for a table of votes", str(caught.value)
    )
    assert found, caught.value
    assert int(found[1].replace(",", "")) == path.stat().st_size
    assert int(found[2].replace(",", "")) == pytest.approx(unpacked, rel=0.001)


def test_the_command_line_says_so_in_one_line(tmp_path: Path) -> None:
    done = rarevote("aggregate", one_text_often(tmp_path), "--out", tmp_path / "r.csv", code=1)
    assert done.stderr.endswith("bytes, too much for a table of votes\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux tells it")
def test_refusing_takes_no_memory(tmp_path: Path) -> None:
    """The first records were looked at before the whole, and a gigabyte of them took two."""
    path = tmp_path / "long.parquet"
    part = pa.table({"task": ["a" * MEBI] * 50, "worker": ["x"] * 50, "label": ["x"] * 50})
    with parquet.ParquetWriter(path, part.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(20):
            writer.write_table(part)
    script = (
        "import pathlib, sys, rarevote\n"
        "try: rarevote.read(sys.argv[1])\n"
        "except rarevote.errors.InputError: print(pathlib.Path('/proc/self/status').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    most = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert most, done.stdout
    assert int(most[1]) < 600_000


def test_votes_that_pack_well_are_read(tmp_path: Path) -> None:
    """A million votes that all say the same, and texts of a page each."""
    n_rows = 1_000_000
    task = pa.array(np.arange(n_rows) // 5)
    path = written(tmp_path / "same.parquet", task=task)
    crowd = read(path)
    assert (crowd.annotations.n_tasks, crowd.annotations.n_annotations) == (200_000, n_rows)
    pages = written(tmp_path / "pages.parquet", task=[f"{number} {'a' * 4000}" for number in range(500)])
    assert read(pages).annotations.n_tasks == 500
