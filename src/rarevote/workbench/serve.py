"""Runs the workbench until it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rarevote.errors import InputError, MissingExtraError
from rarevote.io.write.atomic import scratch_folder
from rarevote.workbench.session import ReviewSession

if TYPE_CHECKING:
    import uvicorn

    from rarevote.workbench.guard import Guard

_HOST = "127.0.0.1"
# A request in progress when the server is stopped is an answer, and takes milliseconds.
_SECONDS_TO_END = 2
_FORWARD = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>rarevote</title>
<p><a href="{address}">The workbench</a></p>
"""


def need_server() -> None:
    """Check that the server libraries are installed, before anything is read.

    Raises:
        MissingExtraError: they are not installed.
    """
    try:
        import_module("starlette")
        import_module("uvicorn")
        import_module("nh3")
    except ImportError:
        raise MissingExtraError(
            "the workbench needs starlette, uvicorn and nh3: pip install 'rarevote[workbench]'"
        ) from None


def listen(port: int) -> socket.socket:
    """A socket on this machine only; port 0 means any free port.

    Raises:
        InputError: the port is taken or not permitted.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((_HOST, port))
    except OSError as error:
        opened.close()
        raise InputError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from None
    return opened


def serve(session: ReviewSession, opened: socket.socket, *, tell: Callable[[str], None], browser: bool = True) -> None:
    """Serve until Ctrl-C.

    Args:
        tell: called with the address and its token, once it can be opened.
        browser: whether to open it.
    """
    from rarevote.workbench.guard import Guard

    # Errors are shown on the page; a traceback is for developers.
    logging.getLogger("uvicorn").setLevel(logging.DEBUG if os.environ.get("RAREVOTE_DEBUG") else logging.CRITICAL)
    guard = Guard()
    address = f"http://{_HOST}:{opened.getsockname()[1]}/?token={guard.address_token}"
    server = make_server(session, guard)
    gc.collect()
    gc.freeze()  # data stay in memory: no garbage collection over millions of items between two answers
    opened.listen()  # from here on a browser waits instead of being refused
    tell(address)
    with closing(opened), ExitStack() as stack, suppress(KeyboardInterrupt):
        if browser:
            page = stack.enter_context(forwarding_page(address))
            # Some browsers block the process that opens them.
            threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        server.run(sockets=[opened])
    gc.unfreeze()  # libraries report frozen objects at exit as leaks


def make_server(session: ReviewSession, guard: Guard) -> uvicorn.Server:
    """The server of a session, not running yet."""
    import uvicorn

    from rarevote.workbench.app import build_app
    from rarevote.workbench.connections import TimedConnection

    config = uvicorn.Config(
        build_app(session, guard),
        http=TimedConnection,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    return uvicorn.Server(config)


@contextmanager
def forwarding_page(address: str) -> Iterator[Path]:
    """A file, readable only by this user, that redirects a browser to an address; removed when the block ends.

    All users of a machine can see the command line of a process, and so a token in it.
    """
    with scratch_folder("workbench") as folder:
        page = folder / "open.html"
        page.touch(0o600, exist_ok=False)
        page.write_text(_FORWARD.format(address=escape(address)), encoding="utf-8")
        yield page
