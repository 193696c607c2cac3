"""One DuckDB serves the process: blocks see nothing of each other, and none leaves anything behind."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from rarevote import read
from rarevote.errors import InputError
from rarevote.io import duck
from rarevote.io.duck import connection
from rarevote.kernels.memory import physical_memory


def tables() -> list[str]:
    with connection() as database:
        return [row[0] for row in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]


def test_blocks_see_nothing_of_each_other() -> None:
    with connection() as one, connection() as other:
        one.execute("CREATE TABLE rows AS SELECT 1 AS n")
        other.execute("CREATE TABLE rows AS SELECT 2 AS n")
        assert (one.sql("FROM rows").fetchall(), other.sql("FROM rows").fetchall()) == ([(1,)], [(2,)])
    assert tables() == []


def test_a_block_that_fails_leaves_nothing() -> None:
    def fail() -> None:
        with connection() as database:
            database.execute("CREATE TABLE rows AS SELECT 1 AS n")
            database.execute("SELECT nonsense FROM rows")

    with pytest.raises(duckdb.Error, match="nonsense"):
        fail()
    assert tables() == []


@pytest.mark.parametrize("options", [{}, {"limited": True}, {"on_disk": True}])
def test_memory_is_limited_whatever_the_size_of_the_file(options: dict[str, bool], tmp_path: Path) -> None:
    """A Parquet file of 70 kB may hold gigabytes."""
    with connection(**options) as database:
        (limit,) = database.execute("SELECT current_setting('memory_limit')").fetchone()
    number, unit = limit.split()
    assert unit == "GiB"
    assert float(number) == pytest.approx(max(2 << 30, physical_memory() // 12) / (1 << 30), abs=0.1)


@pytest.mark.prove
def test_a_packed_table_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "_MIN_MEMORY", 64 << 20)
    monkeypatch.setattr(duck, "physical_memory", lambda: 0)
    monkeypatch.setattr(duck, "_started", None)
    task = ["a" * (1 << 20)] * 200
    table = pa.table({"task": task, "worker": ["x"] * 200, "label": ["y"] * 200})
    parquet.write_table(table, tmp_path / "bomb.parquet", compression="zstd", use_dictionary=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    with pytest.raises(InputError, match="not enough memory"):
        read(tmp_path / "bomb.parquet")
    monkeypatch.setattr(duck, "_started", None)


def test_a_complaint_that_quotes_half_a_letter(tmp_path: Path) -> None:
    """DuckDB cuts what it quotes by bytes; Python's binding failed over the message and hid what was wrong."""
    path = tmp_path / "votes.ndjson"
    for length in range(12):  # some of which cut a letter of two bytes
        again = f'{{"task":"t1","worker":"w","label":"a","n":"{"x" * length}üüüü","label":"b"}}'
        path.write_text(f'{{"task":"t0","worker":"w","label":"a"}}\n{again}\n', encoding="utf-8")
        with pytest.raises(
            InputError,
            # Before 3.11.4 or so Python loses such a message on its way, and with it what was wrong.
            match=r'votes\.ndjson: (not the JSON of a table \(Object .*duplicate key "label"|cannot be read as JSON)',
        ):
            read(path)


def test_threads_have_their_own() -> None:
    found: list[int] = []

    def count(number: int) -> None:
        with connection() as database:
            database.execute(f"CREATE TABLE rows AS SELECT * FROM range({number})")
            found.append(len(database.sql("FROM rows").fetchall()))

    threads = [threading.Thread(target=count, args=(number,)) for number in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [10, 20, 30, 40]


def test_one_that_broke_is_replaced() -> None:
    with connection() as database:
        database.close()
    with connection() as database:
        assert database.execute("SELECT 1").fetchall() == [(1,)]


def test_what_is_large_is_on_disk_and_gone_afterwards() -> None:
    with connection(on_disk=True) as database:
        (file,) = [row[0] for row in database.execute("SELECT path FROM duckdb_databases() WHERE path > ''").fetchall()]
        assert Path(file).exists()
    assert not Path(file).parent.exists()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_starts_its_own() -> None:
    with connection():
        pass
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=lambda: answer.put((tables(), duck._started is not None)))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert answer.get() == ([], True)
