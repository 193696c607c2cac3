"""Damaged Arrow files are refused: what a batch says of itself is checked before anybody follows it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from rarevote import read
from rarevote.errors import InputError, RarevoteError

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
    table = pa.table({"task": pa.array([0.5, 1.5], pa.float16()), "worker": ["a", "b"], "label": ["x", "y"]})
    path = tmp_path / "votes.arrow"
    with opened(str(path), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"votes\.arrow: a column is of a type that cannot be read"):
        read(path)
