"""One file over HTTP, verified: it appears under its name whole and with the right checksum, or not at all.

What has arrived when a connection breaks is kept in a ``.part`` file, which the next attempt resumes if the server can
send a part of a file (HTTP ranges); else it starts from the beginning. A file from an old part that turns out wrong is
thrown away and fetched once more from the beginning. A full disk leaves nothing behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rarevote.errors import InputError, ParameterError
from rarevote.study.libraries import library

#: Called with the bytes that have arrived so far and the bytes that there are.
ByteProgress = Callable[[int, int], None]

TIMEOUT = 30.0
_BLOCK = 1 << 16


def download(
    url: str,
    target: Path,
    *,
    n_bytes: int,
    sha256: str,
    part: Path,
    progress: ByteProgress | None = None,
    timeout: float = TIMEOUT,
) -> None:
    """Fetch ``url`` into ``target``.

    Two downloads of one file may run at once: the first to rename the old part gets it.

    Args:
        url: an http or https address.
        target: the file to make, in a folder that no one else writes to and on the disk of ``part``.
        n_bytes: the size that the file must have.
        sha256: the checksum that it must have, in hexadecimal.
        part: where an unfinished download is kept for the next attempt.
        progress: called after each block.
        timeout: seconds to wait for the server to say something.

    Raises:
        MissingExtraError: pooch is not installed.
        InputError: the server cannot be reached, breaks off, or sends something else; or the disk is full.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ParameterError(f"{url}: only http and https addresses can be downloaded")
    file_hash = library("pooch").file_hash
    working = target.with_name(f"{target.name}.part")
    transfer = _Transfer(url, working, n_bytes, progress or (lambda done, total: None), timeout)

    def difference() -> str:
        """What is wrong with the file, or nothing."""
        size = working.stat().st_size
        if size != n_bytes:
            return f"the file has {size:,} bytes instead of {n_bytes:,}"
        found = file_hash(working)
        return "" if found == sha256 else f"the file is not the expected one (sha256 {found[:12]}…, not {sha256[:12]}…)"

    with contextlib.suppress(FileNotFoundError):
        part.replace(working)
    try:
        if transfer.receive() and difference():
            working.unlink()
            transfer.receive()
        if wrong := difference():
            working.unlink()
            raise InputError(
                f"{url}: {wrong}; nothing was kept. Try again, and if it happens again, do not trust the file"
            )
        working.replace(target)
    except OSError as error:
        # The network's errors are InputErrors by now: what is left is the disk, and its space is given back.
        with contextlib.suppress(OSError):
            working.unlink(missing_ok=True)
        raise InputError(
            f"{part.parent}: cannot be written ({error.strerror or error}); free some space or choose another folder"
        ) from None
    finally:
        if working.exists():
            with contextlib.suppress(OSError):
                working.replace(part)


class _UnfitError(Exception):
    """The server does not send the rest of the file that it was asked for, or more than the file has."""


@dataclass
class _Transfer:
    """A file on its way from a server, which pooch writes to block by block; ``done`` is how much of it there is."""

    url: str
    file: Path
    n_bytes: int
    progress: ByteProgress
    timeout: float
    done: int = 0

    def receive(self) -> bool:
        """Write what the server sends after what is there already; returns whether that was used."""
        size = self.file.stat().st_size if self.file.exists() else 0
        if size == self.n_bytes:
            return True
        self.done = size if size < self.n_bytes else 0
        self.has_length = False
        self.handle: Any = None
        asked = {"Range": f"bytes={self.done}-"} if self.done else {}
        headers = {"User-Agent": "rarevote", "Accept-Encoding": "identity", **asked}
        get = library("pooch").HTTPDownloader(
            chunk_size=_BLOCK, timeout=self.timeout, headers=headers, hooks={"response": self.accept}
        )
        requests = library("requests")
        try:
            with contextlib.ExitStack() as self.opened:
                get(self.url, self, None)
        except _UnfitError:
            if asked:
                self.file.unlink()
                return self.receive()
        except requests.HTTPError as error:
            said = f"{error.response.status_code} {error.response.reason}"
            raise InputError(f"{self.url}: the server answered {said}; try again later") from None
        except requests.RequestException as error:
            reason = _cause(error)
            if self.handle is not None:
                raise self.broken(reason) from None
            raise InputError(f"{self.url}: cannot be reached ({reason}); check the connection and try again") from None
        if self.has_length and self.done < self.n_bytes:
            raise self.broken("the connection was closed")
        return bool(asked)

    def accept(self, response: Any, **_: Any) -> None:
        """Judge an answer by its head; requests calls this before the body is read."""
        self.opened.callback(response.close)
        if self.done and response.status_code in (206, 416):
            if not response.headers.get("Content-Range", "").startswith(f"bytes {self.done}-"):
                raise _UnfitError
        elif not response.ok or response.is_redirect:
            return
        else:
            self.done = 0
        self.has_length = "Content-Length" in response.headers
        offered = self.done + int(response.headers.get("Content-Length", 0))
        if self.has_length and offered != self.n_bytes:
            raise InputError(
                f"{self.url}: the server offers {offered:,} bytes instead of {self.n_bytes:,}, so it is another file; "
                "try again later"
            )
        # What arrived before a break is kept to its last byte; urllib3's own check would lose a part of a block.
        response.raw.enforce_content_length = False
        self.handle = self.opened.enter_context(self.file.open("ab" if self.done else "wb"))

    def write(self, block: bytes) -> None:
        """Append a block."""
        self.handle.write(block)
        self.done += len(block)
        self.progress(min(self.done, self.n_bytes), self.n_bytes)
        # One byte too many is enough to know that the file is wrong; an endless answer must not fill the disk.
        if self.done > self.n_bytes:
            raise _UnfitError

    def flush(self) -> None:
        """Nothing: pooch asks for it after each block, and closing the file is enough."""

    def broken(self, reason: object) -> InputError:
        """The error of a transfer that can be resumed."""
        return InputError(
            f"{self.url}: the download stopped after {self.done:,} of {self.n_bytes:,} bytes ({reason}); run it "
            "again to resume from there"
        )


def _cause(error: Exception) -> Exception:
    """What the socket said, which requests and urllib3 wrap in errors of their own."""
    inner = error.__cause__ or getattr(error, "reason", None) or next(iter(error.args), None)
    return _cause(inner) if isinstance(inner, Exception) else error
