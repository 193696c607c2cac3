"""How the workbench is reached: no token where others can read it, and no connection without an end."""

from __future__ import annotations

import html
import http.client
import os
import re
import socket
import stat
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest

from rarevote.workbench import connections, serve
from rarevote.workbench.guard import Guard
from tests.workbench.benches import audit_session, plan_file

SHORT = 0.4  # seconds for a request, in these tests
LATE = 8.0  # by which a connection that should have been closed has failed the test


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(connections, "SECONDS_FOR_A_REQUEST", SHORT)
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serve.listen(0) as opened:
        opened.listen()
        server = serve.make_server(session, Guard())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        yield opened.getsockname()
        server.should_exit = True
        thread.join()


def until_closed(spoken: socket.socket, drip: bytes = b"") -> tuple[bytes, float]:
    """What comes back until the other side closes, and how long that takes; meanwhile a letter now and then."""
    begin, answer = time.perf_counter(), b""
    spoken.settimeout(0.05)
    while time.perf_counter() - begin < LATE:
        try:
            if drip:
                spoken.send(drip)
            got = spoken.recv(65536)
        except TimeoutError:
            continue
        except OSError:
            got = b""
        if not got:
            return answer, time.perf_counter() - begin
        answer += got
    pytest.fail("the connection stays open")


POST = b"POST /answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@pytest.mark.parametrize(
    ("said", "drip"),
    [
        (b"", b""),  # half-open: nothing at all
        (b"GET / HT", b""),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"a"),  # a head without an end
        (POST + b"Content-Length: 3000\r\n\r\nitem=1", b""),  # a body that stops
        (POST + b"Content-Length: 3000\r\n\r\nitem=1", b"&"),  # and one that takes for ever
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", b""),
    ],
)
def test_what_does_not_end_is_ended(place: tuple[str, int], said: bytes, drip: bytes) -> None:
    with socket.create_connection(place) as spoken:
        spoken.sendall(said)
        _, seconds = until_closed(spoken, drip)
    assert SHORT * 0.9 <= seconds < LATE
    # Others are served all the while.
    assert httpx.get(f"http://{place[0]}:{place[1]}/style.css").status_code == 200


def test_a_second_request_has_as_long(place: tuple[str, int]) -> None:
    with closing(http.client.HTTPConnection(*place)) as client:
        for _ in range(3):  # together longer than one request may take
            client.request("GET", "/style.css")
            first = client.sock
            answer = client.getresponse()
            assert (answer.status, len(answer.read()) > 100) == (200, True)
            time.sleep(SHORT * 0.6)
            assert client.sock is first
        client.sock.sendall(b"GET /style.css HT")
        _, seconds = until_closed(client.sock, b"a")
    assert seconds < LATE


def test_the_token_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the browser is started with, and the file that this names."""
    called: list[str] = []
    seen: list[tuple[str, int, int]] = []
    opened = threading.Event()

    def browser(address: str) -> None:
        page = Path(url2pathname(urlsplit(address).path))
        seen.append((page.read_text(), page.stat().st_mode, page.parent.stat().st_mode))
        called.append(address)
        opened.set()

    told: list[str] = []
    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setattr(serve, "make_server", lambda *_: SimpleNamespace(run=lambda **_: opened.wait(10)))
    monkeypatch.setattr("gc.freeze", lambda: None)
    serve.serve(SimpleNamespace(), serve.listen(0), tell=told.append)  # type: ignore[arg-type]
    (address,), (token,) = called, re.findall("token=(.+)", told[0])
    assert address.startswith("file:///")
    assert token not in address
    text, mode, folder_mode = seen[0]
    assert f'url={told[0]}"' in html.unescape(text)
    if os.name == "posix":
        assert stat.S_IMODE(mode) == 0o600
        assert stat.S_IMODE(folder_mode) == 0o700
    assert not Path(url2pathname(urlsplit(address).path)).exists()


def test_no_browser_is_opened_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda *_: pytest.fail("a browser"))
    monkeypatch.setattr(serve, "make_server", lambda *_: SimpleNamespace(run=lambda **_: None))
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr(serve, "forwarding_page", lambda *_: pytest.fail("a file with the token"))
    serve.serve(SimpleNamespace(), serve.listen(0), tell=lambda _: None, browser=False)  # type: ignore[arg-type]
