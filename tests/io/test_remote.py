"""Files at an address: refused with a word on what to do where DuckDB cannot read them, and nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError
from rarevote.io.duck import connection
from rarevote.io.read.detect import refuse_address
from rarevote.io.read.remote import load_extension
from tests.command import rarevote

ADDRESSES = {
    "https://example.invalid/labels.csv": "httpfs",
    "s3://bucket/labels.parquet": "httpfs",
    "gs://bucket/labels.ndjson": "httpfs",
    "hf://datasets/a/labels.csv": "httpfs",
    "az://container/labels.csv": "azure",
}


def test_duckdb_may_neither_install_nor_load_by_itself() -> None:
    with connection() as database:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert database.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)


class Database:
    """Notes what is asked of it; says of every extension whether it is installed."""

    def __init__(self, *, installed: bool) -> None:
        self.installed, self.asked = installed, list[str]()

    def execute(self, query: str, parameters: Any = None) -> Database:
        del parameters
        self.asked.append(query)
        return self

    def fetchone(self) -> tuple[bool]:
        return (self.installed,)


@pytest.mark.parametrize(("address", "extension"), ADDRESSES.items())
def test_an_absent_extension_is_named_and_never_installed(address: str, extension: str) -> None:
    database = Database(installed=False)
    with pytest.raises(InputError) as caught:
        load_extension(database, address)
    said = str(caught.value)
    assert said.startswith(f"{address}: ")
    assert f"DuckDB's extension {extension}, which is not installed" in said
    assert "never downloads one" in said
    assert "Download the file and give its name, or install the extension yourself" in said
    assert f"duckdb.sql('INSTALL {extension}')" in said
    assert not [query for query in database.asked if "INSTALL" in query.upper() and "installed" not in query]
    assert not [query for query in database.asked if query.startswith("LOAD")]


def test_an_installed_extension_is_loaded_and_never_installed() -> None:
    database = Database(installed=True)
    load_extension(database, "s3://bucket/labels.csv")
    assert database.asked[-1] == "LOAD httpfs"
    assert not [query for query in database.asked if query.upper().startswith("INSTALL")]


def absent(extension: str) -> bool:
    with connection() as database:
        found = database.execute(
            "SELECT installed FROM duckdb_extensions() WHERE extension_name = ?", [extension]
        ).fetchone()
    return not found or not found[0]


@pytest.mark.skipif(not absent("httpfs"), reason="DuckDB's extension httpfs is installed here")
def test_every_verb_refuses_alike_and_writes_nothing(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\n1,a,x\n1,b,y\n")
    address, out, needs = "s3://bucket/x.csv", tmp_path / "r.csv", "s3://bucket/x.csv: reading from an address needs"
    for words in (
        ("aggregate", address, "-o", out),
        ("aggregate", labels, "--truth", address, "-o", out),
        ("aggregate", labels, "--gold", address, "-o", out),
        ("report", address, "-o", tmp_path / "r.html"),
        ("compare", address, "-o", out),
        ("annotators", address, "-o", out),
        ("explain", address, "--task", "1"),
        ("score", address, "--truth", labels),
    ):
        done = rarevote(*words, code=1)
        assert needs in done.stderr
        assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("aggregate", "LABELS", "-o", "s3://b/r.csv"), "s3://b/r.csv: an address, not a local file; write"),
        (("report", "LABELS", "-o", "s3://b/r.html"), "s3://b/r.html: an address, not a local file; write"),
        (("aggregate", "LABELS", "--model-out", "https://b/m"), "https://b/m: an address, not a local file"),
        (("predict", "https://b/model", "LABELS"), "https://b/model: an address, not a local file; download"),
        (
            ("convert", "https://b/export.json"),
            "https://b/export.json: an address, not a local file; download",
        ),
        (("aggregate", "ftp://b/labels.csv"), "ftp:// cannot be read; download the file first"),
    ],
)
def test_where_only_a_file_will_do(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\n1,a,x\n1,b,y\n")
    done = rarevote(*(str(labels) if word == "LABELS" else word for word in words), code=1, folder=tmp_path)
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_names_that_only_look_like_addresses() -> None:
    for name in ("C:/labels.csv", "labels:v2.csv", "/tmp/s3:/x", "a/b.csv"):
        refuse_address(name, "")
    with pytest.raises(InputError, match=r"^s3://b/x: an address"):
        refuse_address(Path("s3://b/x"), "download it")
