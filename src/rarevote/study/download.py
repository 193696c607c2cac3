"""A verified download over HTTP: the file appears complete and with the right checksum, or not at all.

If a connection breaks, the data so far stay in a ``.part`` file, which the next attempt resumes if the server can
send part of a file (HTTP ranges); otherwise it starts from the beginning. A resumed file that turns out wrong is
deleted and fetched once more from the beginning. A full disk leaves nothing behind.
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

#: Called with the bytes received so far and the total.
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
    """Download ``url`` to ``target``.

    Two downloads of one file can run at the same time: the first to rename the old part uses it.

    Args:
        url: an http or https address.
        target: the file to create, in a folder that no other process writes to and on the disk of ``part``.
        n_bytes: the size that the file must have.
        sha256: the checksum that it must have, in hexadecimal.
        part: the file for an unfinished download, for the next attempt.
        progress: called after each block.
        timeout: seconds to wait for a response of the server.

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
        """What is wrong with the file, or empty text."""
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
        # Errors of the network are already InputErrors: this one is of the disk, so free its space.
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
    """The server does not send the requested rest of the file, or sends too much."""


@dataclass
class _Transfer:
    """A file during its download, which pooch writes block by block; ``done`` is the number of bytes so far."""

    url: str
    file: Path
    n_bytes: int
    progress: ByteProgress
    timeout: float
    done: int = 0

    def receive(self) -> bool:
        """Append what the server sends to the existing part; returns whether the part was used."""
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
        """Check the headers of a response; requests calls this before the body is read."""
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
        # Keep every byte received before a break; urllib3's own check would lose part of a block.
        response.raw.enforce_content_length = False
        self.handle = self.opened.enter_context(self.file.open("ab" if self.done else "wb"))

    def write(self, block: bytes) -> None:
        """Append a block."""
        self.handle.write(block)
        self.done += len(block)
        self.progress(min(self.done, self.n_bytes), self.n_bytes)
        # One byte too many shows that the file is wrong; an endless response must not fill the disk.
        if self.done > self.n_bytes:
            raise _UnfitError

    def flush(self) -> None:
        """Do nothing: pooch calls it after each block, and closing the file is enough."""

    def broken(self, reason: object) -> InputError:
        """The error for a transfer that can be resumed."""
        return InputError(
            f"{self.url}: the download stopped after {self.done:,} of {self.n_bytes:,} bytes ({reason}); run it "
            "again to resume from there"
        )


def _cause(error: Exception) -> Exception:
    """The error of the socket, which requests and urllib3 wrap in their own errors."""
    inner = error.__cause__ or getattr(error, "reason", None) or next(iter(error.args), None)
    return _cause(inner) if isinstance(inner, Exception) else error
