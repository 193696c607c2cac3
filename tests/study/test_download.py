"""Downloads against a server that breaks off, lies, is silent or wrong; nothing half is ever left."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import pandas as pd
import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.write import atomic
from rarevote.io.write.atomic import appearing
from rarevote.study.datasets import (
    DatasetInfo,
    SourceFile,
    fetch,
    find_dataset,
    list_datasets,
    load_annotations,
    locate,
)
from tests.study.dataset_cache import isolate, left_behind

DOWNLOADS = [info.slug for info in list_datasets() if info.access == "download"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return isolate(tmp_path / "cache", monkeypatch)


# --------------------------------------------------------------------------------------------------------------------
# a server


@dataclass
class Server:
    """A server on this machine that does as it is told."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    length: bool = True
    cut_after: int | None = None
    status: int | None = None
    # Cleared, nobody is answered until the test is over.
    answers: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    requests: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.requests.append((self.path, wanted))
            state.answers.wait()
            body = state.files.get(unquote(self.path))
            if body is None or state.status is not None:
                self.send_error(state.status or 404)
                return
            begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and state.ranges else 0
            if begin > len(body):
                self.send_error(416)
                return
            self.send_response(206 if wanted and state.ranges else 200)
            if wanted and state.ranges:
                self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
            if state.length:
                self.send_header("Content-Length", str(len(body) - begin))
            self.end_headers()
            part = body[begin:] if state.cut_after is None else body[begin : begin + state.cut_after]
            self.wfile.write(part)
            state.sent += len(part)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # clients that hang up are part of the tests

    with Quiet(("127.0.0.1", 0), Handler) as httpd:
        state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.answers.set()
        yield state
        state.answers.set()
        httpd.shutdown()
        thread.join()


RAW_LABELS = "answer,question,worker\n" + "".join(f'{i % 2},"item, {i // 4}",worker {i % 4}\n' for i in range(20_000))
RAW_TRUTH = "question,truth\n" + "".join(f'"item, {i}",{i % 2}\n' for i in range(5_000))


def pinned(path: str, text: str, columns: tuple[str, ...]) -> SourceFile:
    body = text.encode()
    return SourceFile(path, len(body), hashlib.sha256(body).hexdigest(), columns)


@pytest.fixture
def small(server: Server, monkeypatch: pytest.MonkeyPatch) -> DatasetInfo:
    """A dataset of two files that the server has, under a path that needs quoting."""
    monkeypatch.setenv("RAREVOTE_MIRROR", server.url)
    info = replace(
        find_dataset("rte"),
        labels=pinned("data/a* b/label.csv", RAW_LABELS, ("question", "worker", "answer")),
        truth=pinned("data/a* b/truth.csv", RAW_TRUTH, ("question", "truth")),
    )
    root = f"/{info.source_repository}/{info.commit}/data/a* b"
    server.files = {f"{root}/label.csv": RAW_LABELS.encode(), f"{root}/truth.csv": RAW_TRUTH.encode()}
    return info


WHOLE = ["rte", "rte/labels.csv", "rte/truth.csv"]


def check_small(folder: Path) -> None:
    labels = pd.read_csv(folder / "labels.csv", dtype=str)
    assert labels.columns.tolist() == ["task", "worker", "label"]
    assert len(labels) == 20_000
    assert labels.iloc[-1].tolist() == ["item, 4999", "worker 3", "1"]
    truth = pd.read_csv(folder / "truth.csv", dtype=str)
    assert truth.columns.tolist() == ["task", "label"]
    assert truth.iloc[-1].tolist() == ["item, 4999", "1"]
    assert len(truth) == 5_000


@pytest.mark.parametrize("length", [True, False])
def test_a_fetch_downloads_verifies_and_normalises(
    small: DatasetInfo, server: Server, cache: Path, length: bool
) -> None:
    server.length = length
    seen: list[tuple[int, int]] = []
    folder = fetch(small, progress=lambda done, total: seen.append((done, total)))
    check_small(folder)
    assert left_behind(cache) == WHOLE
    total = len(RAW_LABELS) + len(RAW_TRUTH)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 4
    assert server.requests[0][0].endswith("/data/a%2A%20b/label.csv")
    assert fetch(small) == folder
    assert len(server.requests) == 2  # what is in the cache is not asked for again
    crowd, truth = load_annotations(small)
    assert (crowd.n_tasks, len(truth)) == (5_000, 5_000)


def test_loading_downloads_what_is_not_here(small: DatasetInfo) -> None:
    crowd, truth = load_annotations(small)
    assert (crowd.n_annotations, len(truth)) == (20_000, 5_000)


def test_tab_separated_raw_files(server: Server, small: DatasetInfo) -> None:
    labels, truth = "id\twho\tsays\n1\ta, b\tx\n", "id\tis\n1\tx\n"
    info = replace(
        small,
        format="tsv",
        labels=pinned("l.tsv", labels, ("id", "who", "says")),
        truth=pinned("t.tsv", truth, ("id", "is")),
    )
    root = f"/{info.source_repository}/{info.commit}"
    server.files = {f"{root}/l.tsv": labels.encode(), f"{root}/t.tsv": truth.encode()}
    folder = fetch(info)
    assert (folder / "labels.csv").read_text() == 'task,worker,label\n1,"a, b",x\n'
    assert (folder / "truth.csv").read_text() == "task,label\n1,x\n"


def test_a_raw_file_without_the_columns_is_refused(small: DatasetInfo, cache: Path) -> None:
    assert small.labels is not None
    with pytest.raises(InputError, match="is not a table with the columns task, worker, answer"):
        fetch(replace(small, labels=replace(small.labels, columns=("task", "worker", "answer"))))
    assert left_behind(cache) == []


def interrupt(small: DatasetInfo, server: Server, cache: Path) -> int:
    """Break the download of the labels; returns the bytes that were kept."""
    server.cut_after = 200_000
    with pytest.raises(
        InputError, match=r"the download stopped after 200,000 of [\d,]+ bytes .*run it again"
    ) as caught:
        fetch(small)
    assert "\n" not in str(caught.value)
    (part,) = left_behind(cache)
    assert part.startswith(".rte-labels-")
    assert part.endswith(".part")
    assert locate(small) is None
    server.cut_after = None
    return (cache / "datasets" / part).stat().st_size


def test_a_broken_connection_is_resumed(small: DatasetInfo, server: Server, cache: Path) -> None:
    kept = interrupt(small, server, cache)
    assert kept == 200_000
    server.sent = 0
    check_small(fetch(small))
    assert server.requests[1][1] == "bytes=200000-"
    assert server.sent == len(RAW_LABELS) - kept + len(RAW_TRUTH)
    assert left_behind(cache) == WHOLE


def test_without_ranges_it_starts_anew(small: DatasetInfo, server: Server, cache: Path) -> None:
    interrupt(small, server, cache)
    server.ranges, server.sent = False, 0
    check_small(fetch(small))
    assert server.sent == len(RAW_LABELS) + len(RAW_TRUTH)
    assert left_behind(cache) == WHOLE


@pytest.mark.parametrize("size", [1_000, 10_000_000])
def test_a_part_that_is_wrong_is_thrown_away(small: DatasetInfo, server: Server, cache: Path, size: int) -> None:
    interrupt(small, server, cache)
    (part,) = (cache / "datasets").iterdir()
    part.write_bytes(b"x" * size)
    server.sent = 0
    check_small(fetch(small))
    assert server.sent >= len(RAW_LABELS) + len(RAW_TRUTH)
    assert left_behind(cache) == WHOLE


def test_a_part_that_was_complete_is_only_verified(small: DatasetInfo, server: Server, cache: Path) -> None:
    interrupt(small, server, cache)
    (part,) = (cache / "datasets").iterdir()
    part.write_bytes(RAW_LABELS.encode())
    server.sent = 0
    check_small(fetch(small))
    assert server.sent == len(RAW_TRUTH)


def test_a_server_that_refuses_the_range_is_asked_for_everything(
    small: DatasetInfo, server: Server, cache: Path
) -> None:
    interrupt(small, server, cache)
    path = next(path for path in server.files if path.endswith("label.csv"))
    whole, server.files[path] = server.files[path], b"short"  # 416: the part is beyond its end
    with pytest.raises(InputError, match="offers 5 bytes instead of"):
        fetch(small)
    assert [wanted for _, wanted in server.requests[-2:]] == ["bytes=200000-", None]
    server.files[path] = whole
    check_small(fetch(small))


def test_a_wrong_checksum_leaves_nothing(small: DatasetInfo, server: Server, cache: Path) -> None:
    path = next(path for path in server.files if path.endswith("truth.csv"))
    server.files[path] = server.files[path][:-2] + b"7\n"
    with pytest.raises(InputError, match=r"truth\.csv: the file is not the expected one .*nothing was kept") as caught:
        fetch(small)
    assert "\n" not in str(caught.value)
    assert left_behind(cache) == []


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>", RAW_LABELS.encode() * 2])
@pytest.mark.parametrize("length", [True, False])
def test_a_file_of_another_size_leaves_nothing(
    small: DatasetInfo, server: Server, cache: Path, body: bytes, length: bool
) -> None:
    server.length = length
    path = next(path for path in server.files if path.endswith("label.csv"))
    server.files[path] = body
    with pytest.raises(InputError, match="bytes instead of"):
        fetch(small)
    assert left_behind(cache) == []


@pytest.mark.parametrize("status", [404, 403, 500, 503])
def test_an_error_of_the_server_is_named(small: DatasetInfo, server: Server, cache: Path, status: int) -> None:
    server.status = status
    with pytest.raises(InputError, match=f"the server answered {status}"):
        fetch(small)
    assert left_behind(cache) == []


def test_a_silent_server_is_given_up(small: DatasetInfo, server: Server, cache: Path) -> None:
    server.answers.clear()
    with pytest.raises(InputError, match=r"cannot be reached .*timed out"):
        fetch(small, timeout=0.2)
    assert left_behind(cache) == []


def test_no_server_at_all(cache: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be reached .*check the connection"):
        fetch("rte")
    assert left_behind(cache) == []


def test_only_web_addresses_are_fetched(cache: Path) -> None:
    with pytest.raises(ParameterError, match="only http and https"):
        fetch("rte", base_url="file:///tmp")
    assert left_behind(cache) == []


class FullDisk:
    """A file that takes a few bytes, then no more."""

    def __init__(self, file: IO[Any]) -> None:
        self.file, self.room = file, 100_000

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, block: Any) -> int:
        self.room -= len(block)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(block)


@pytest.mark.parametrize("name", ["labels.raw.part", "labels.csv"])
def test_a_full_disk_leaves_nothing(
    small: DatasetInfo, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    opened = Path.open

    def open_on_full_disk(self: Path, *args: Any, **options: Any) -> Any:
        file = opened(self, *args, **options)
        return FullDisk(file) if self.name == name and file.writable() else file

    monkeypatch.setattr(Path, "open", open_on_full_disk)
    with pytest.raises(InputError, match=r"cannot be written .*No space left on device.*free some space") as caught:
        fetch(small)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert left_behind(cache) == []


def test_a_cache_that_cannot_be_made(small: DatasetInfo, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written"):
        fetch(small, cache=tmp_path / "file")


def test_an_interrupt_by_the_user_can_be_resumed(small: DatasetInfo, server: Server, cache: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(small, progress=stop)
    assert len(left_behind(cache)) == 1
    server.requests.clear()
    check_small(fetch(small))
    # By what is asked for: what the first answer still sends, nobody reads.
    assert any(wanted is not None and wanted != "bytes=0-" for _, wanted in server.requests)


def in_threads(jobs: list[Callable[[], object]]) -> list[object]:
    results: list[object] = [None] * len(jobs)

    def run(number: int) -> None:
        try:
            results[number] = jobs[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("broken_before", [False, True])
def test_two_fetches_at_once_end_well(small: DatasetInfo, server: Server, cache: Path, broken_before: bool) -> None:
    if broken_before:
        interrupt(small, server, cache)
    meeting = threading.Barrier(2)

    def job() -> Path:
        meeting.wait()
        return fetch(small)

    assert in_threads([job, job]) == [cache / "datasets" / "rte"] * 2
    check_small(cache / "datasets" / "rte")
    assert left_behind(cache) == WHOLE


def test_a_folder_that_lost_a_file_is_fetched_anew(small: DatasetInfo, cache: Path) -> None:
    folder = fetch(small)
    (folder / "truth.csv").unlink()
    assert locate(small) is None
    check_small(fetch(small))
    assert left_behind(cache) == WHOLE


def test_what_killed_processes_left_is_removed_after_a_day(small: DatasetInfo, cache: Path) -> None:
    for name, age in (("old", 2 * 86_400), ("new", 60)):
        desk = cache / "datasets" / f".rte.rarevote-{name}"
        desk.mkdir(parents=True)
        os.utime(desk, (time.time() - age,) * 2)
    fetch(small)
    assert left_behind(cache) == [".rte.rarevote-new", *WHOLE]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "set"
    target.mkdir()
    (target / "old").write_text("old")
    renamed = Path.rename

    def fail_for_new(self: Path, goal: Path) -> Path:
        if self.name == "ready":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return renamed(self, goal)

    monkeypatch.setattr(Path, "rename", fail_for_new)
    monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)
    with pytest.raises(InputError, match="No space left"), appearing(target) as folder:
        (folder / "new").write_text("new")
    assert [path.name for path in tmp_path.rglob("*")] == ["set", "old"]


# --------------------------------------------------------------------------------------------------------------------
# the real files


@pytest.mark.parametrize("slug", DOWNLOADS)
def test_the_real_downloads_become_the_normalised_copies(
    slug: str, shared_folder: Path, server: Server, cache: Path
) -> None:
    """The raw files are the normalised ones under another header, as their pinned checksums confirm."""
    info = find_dataset(slug)
    for part, source in sources(info):
        _, _, rows = (shared_folder / "datasets" / slug / f"{part}.csv").read_bytes().partition(b"\n")
        path = f"/{info.source_repository}/{info.commit}/{source.path}"
        server.files[path] = ",".join(source.columns).encode() + b"\n" + rows
    folder = fetch(slug, base_url=server.url)
    for part in ("labels", "truth"):
        normalised = shared_folder / "datasets" / slug / f"{part}.csv"
        assert (folder / f"{part}.csv").read_bytes() == normalised.read_bytes()
    assert left_behind(cache) == [slug, f"{slug}/labels.csv", f"{slug}/truth.csv"]


def sources(info: DatasetInfo) -> list[tuple[str, SourceFile]]:
    assert info.labels is not None
    assert info.truth is not None
    return [("labels", info.labels), ("truth", info.truth)]
