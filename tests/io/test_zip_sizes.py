"""Zip files that are small only because they are packed are refused by their directory, before anything is unpacked."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import pytest

import rarevote
from rarevote.errors import InputError
from rarevote.io.platforms import read_export
from tests.command import rarevote as command

RECORD = {"id": 1, "text": "x", "label": ["yes"]}


def packed(path: Path, *contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"annotator{number}.jsonl", content)
    return path


def test_one_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "bomb.zip", json.dumps(RECORD).encode() + b"\n" + b" " * (70 << 20))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match=r"bomb\.zip: 'annotator0\.jsonl' unpacks from [\d,]+ to 73,\S+ bytes"):
        read_export(path, platform="doccano")
    with pytest.raises(InputError, match="unpacks from"):
        rarevote.read(path, platform="doccano")
    with pytest.raises(InputError, match="unpacks from"):
        rarevote.read(path)
    assert "unpacks from" in command("convert", path, code=1).stderr


def test_members_that_share_their_bytes(tmp_path: Path) -> None:
    # Every member is honest, and all of them are the same bytes: 40 times 7 MB from one.
    line = json.dumps(RECORD).encode() + b"\n"
    whole = packed(tmp_path / "one.zip", line * (7_000_000 // len(line))).read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    entry_size, entry_at = struct.unpack_from("<LL", whole, end + 12)
    entry = whole[entry_at : entry_at + entry_size]
    n = 40
    entries = b"".join(entry.replace(b"annotator0", b"annotato%02d" % i) for i in range(n))
    tail = whole[end : end + 8] + struct.pack("<HHLLH", n, n, len(entries), entry_at, 0)
    path = tmp_path / "shared.zip"
    path.write_bytes(whole[:entry_at] + entries + tail)
    with zipfile.ZipFile(path) as archive:
        assert sum(member.file_size for member in archive.infolist()) > 250 << 20
    with pytest.raises(InputError, match=r"shared\.zip.* unpacks from [\d,]+ to 2\d\d,"):
        read_export(path, platform="doccano")


def test_exports_that_pack_well_are_read(tmp_path: Path) -> None:
    lines = [json.dumps({**RECORD, "id": n}) for n in range(2000)]
    found = read_export(packed(tmp_path / "all.zip", "\n".join(lines).encode()), platform="doccano")
    assert len(found.columns()["task"]) == 2000
