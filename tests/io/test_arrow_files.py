"""Damaged Arrow files are refused: what a batch says of itself is checked before anybody follows it."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from rarevote import read
from rarevote.errors import InputError, RarevoteError
from rarevote.io import unpacked
from rarevote.io.unpacked import unpacked_bytes

VOTES = pa.table({
    "task": [f"t{i // 3}" for i in range(30)],
    "worker": pa.array([f"w{i % 5}" for i in range(30)]).dictionary_encode(),
    "label": ["yes" if i % 4 else "no" for i in range(30)],
})  # fmt: skip


def written(is_file: bool) -> bytes:
    stream = pa.BufferOutputStream()
    with (ipc.new_file if is_file else ipc.new_stream)(stream, VOTES.schema) as writer:
        writer.write_table(VOTES, max_chunksize=12)
    return bytes(stream.getvalue().to_pybytes())


@pytest.mark.parametrize("is_file", [True, False])
def test_bytes_that_were_altered_end_no_process(is_file: bool, tmp_path: Path) -> None:
    draw, whole, path = random.Random(7), written(is_file), tmp_path / "votes.arrow"
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 2, 8])):
            place = draw.randrange(8, len(damaged))
            damaged[place : place + 4] = draw.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", draw.randbytes(4)])
        path.write_bytes(damaged)
        try:
            found = read(path).annotations
            assert found.n_annotations <= 30
        except RarevoteError:
            refused += 1
    assert refused > 20


def test_an_offset_that_leads_out_of_its_batch_is_refused(tmp_path: Path) -> None:
    # The offsets of the tasks are int32 that rise from 0 in steps of 2; a huge one would be read far outside.
    whole = written(True)
    place = whole.index(b"".join(n.to_bytes(4, "little") for n in (0, 2, 4, 6)))
    path = tmp_path / "votes.arrow"
    path.write_bytes(whole[: place + 8] + b"\xff\xff\xff\x7f" + whole[place + 12 :])
    with pytest.raises(RarevoteError, match="not a readable Arrow file"):
        read(path)


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.arrow"
    path.write_bytes(written(False).replace(b"worker", b"w\xff\xferk"))
    with pytest.raises(RarevoteError, match=r"votes\.arrow"):
        read(path)


@pytest.mark.parametrize("opened", [ipc.new_file, ipc.new_stream])
def test_a_type_that_duckdb_does_not_know(tmp_path: Path, opened: Any) -> None:
    table = pa.table(
        {"task": pa.array(np.array([0.5, 1.5], dtype=np.float16)), "worker": ["a", "b"], "label": ["x", "y"]}
    )
    path = tmp_path / "votes.arrow"
    with opened(str(path), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"votes\.arrow: a column has a type that cannot be read"):
        read(path)


@pytest.mark.parametrize("opened", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("codec", ["zstd", "lz4", None])
def test_the_size_of_what_is_packed(opened: Any, codec: str | None) -> None:
    text = pa.array(["a" * 5_000] * 400)
    table = pa.table({"task": text, "worker": pa.array(["w" * 3_000, "v"] * 200).dictionary_encode()})
    stream = pa.BufferOutputStream()
    with opened(stream, table.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=100)
    found = unpacked_bytes(memoryview(stream.getvalue()))
    # Every batch has the buffers of its rows, and the dictionary those of its two words.
    packed = 400 * 5_000 + 3_001
    assert found == 0 if codec is None else packed <= found < 1.01 * packed + 10_000


@pytest.mark.parametrize("opened", [ipc.new_file, ipc.new_stream])
def test_a_file_that_is_small_only_because_it_is_packed(
    tmp_path: Path, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarevote.io.unpacked._MAX_SMALL", 1 << 20)
    table = pa.table({"task": ["a" * (1 << 20)] * 20, "worker": ["x"] * 20, "label": ["y"] * 20})
    path = tmp_path / "bomb.arrow"
    with opened(str(path), table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"bomb\.arrow: unpacks from .* too much for a table of votes"):
        read(path)


def test_batches_that_overlap_are_refused() -> None:
    table = pa.table({"task": ["a" * 500] * 400})
    stream = pa.BufferOutputStream()
    with ipc.new_file(stream, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(400):
            writer.write_table(table)
    whole = bytearray(stream.getvalue().to_pybytes())
    assert unpacked_bytes(memoryview(whole)) > 400 * 400 * 500
    # A batch that claims to list as many buffers as the whole file has room for.
    message, _ = next(unpacked._of_file(whole))
    struct.pack_into("<I", whole, unpacked._packed_buffers(whole, message), len(whole) // 16)
    with pytest.raises(ValueError, match="batches that overlap"):
        unpacked_bytes(memoryview(whole))


def test_several_files_are_read_together(tmp_path: Path) -> None:
    names = [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    for number, path in enumerate(names):
        path.write_bytes(written(is_file=number == 0))
    assert read(names).annotations.n_annotations == 2 * len(VOTES)
    assert read(tmp_path).annotations.n_annotations == 2 * len(VOTES)
