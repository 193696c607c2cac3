"""One file over HTTP, verified: it appears under its name whole and with the right checksum, or not at all.

What has arrived when a connection breaks is kept in a ``.part`` file, which the next attempt resumes if the server can
send a part of a file (HTTP ranges); else it starts from the beginning. A file from an old part that turns out wrong is
thrown away and fetched once more from the beginning. A full disk leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from rarevote.errors import InputError, ParameterError

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

    Two downloads of one file may run at once: the old part goes to whichever is first to rename it.

    Args:
        url: an http or https address.
        target: the file to make, in a folder that no one else writes to and on the disk of ``part``.
        n_bytes: the size that the file must have.
        sha256: the checksum that it must have, in hexadecimal.
        part: where an unfinished download is kept for the next attempt.
        progress: called after each block.
        timeout: seconds to wait for the server to say something.

    Raises:
        InputError: the server cannot be reached, breaks off, or sends something else; or the disk is full.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ParameterError(f"{url}: only http and https addresses can be downloaded")
    working = target.with_name(f"{target.name}.part")
    with contextlib.suppress(FileNotFoundError):
        part.replace(working)
    try:
        resumed = _receive(url, working, n_bytes, progress, timeout)
        difference = _difference(working, n_bytes, sha256)
        if difference and resumed:
            working.unlink()
            _receive(url, working, n_bytes, progress, timeout)
            difference = _difference(working, n_bytes, sha256)
        if difference:
            working.unlink()
            raise InputError(f"{url}: {difference}; nothing was kept. Try again, and if it stays so, do not trust it")
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


def _difference(file: Path, n_bytes: int, sha256: str) -> str:
    """What is wrong with a file, or nothing."""
    size = file.stat().st_size
    if size != n_bytes:
        return f"the file has {size:,} bytes instead of {n_bytes:,}"
    with file.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    return "" if found == sha256 else f"the file is not the expected one (sha256 {found[:12]}…, not {sha256[:12]}…)"


def _receive(url: str, file: Path, n_bytes: int, progress: ByteProgress | None, timeout: float) -> bool:
    """Write what the server sends to ``file``, after what is there already; returns whether that was used."""
    begin = file.stat().st_size if file.exists() else 0
    if begin == n_bytes:
        return True
    if begin > n_bytes:
        begin = 0
    response = _open(url, begin, timeout)
    if response is None:
        begin = 0
        response = _open(url, begin, timeout)
    with response:
        if response.status != 206:
            begin = 0
        announced = response.length
        if announced is not None and begin + announced != n_bytes:
            raise InputError(
                f"{url}: the server offers {begin + announced:,} bytes instead of {n_bytes:,}, so it is another file; "
                "try again later"
            )
        done = begin
        with file.open("ab" if begin else "wb") as handle:
            # One byte too many is enough to know that the file is wrong; an endless answer must not fill the disk.
            while done <= n_bytes and (block := _read(response, url, done, n_bytes)):
                handle.write(block)
                done += len(block)
                if progress is not None:
                    progress(min(done, n_bytes), n_bytes)
    if announced is not None and done < n_bytes:
        raise _broken(url, done, n_bytes, "the connection was closed")
    return begin > 0


def _open(url: str, begin: int, timeout: float) -> Any:
    """The server's answer, or None if it cannot start at ``begin``."""
    request = Request(url, headers={"User-Agent": "rarevote", "Accept-Encoding": "identity"})
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        response = urlopen(request, timeout=timeout)
    except HTTPError as error:
        error.close()
        if begin and error.code == 416:
            return None
        raise InputError(f"{url}: the server answered {error.code} {error.reason}; try again later") from None
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise InputError(f"{url}: cannot be reached ({reason}); check the connection and try again") from None
    if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {begin}-"):
        response.close()
        if not begin:
            raise InputError(f"{url}: the server sends a part of the file that was not asked for; try again later")
        return None
    return response


def _read(response: Any, url: str, done: int, n_bytes: int) -> bytes:
    try:
        return response.read(_BLOCK)  # type: ignore[no-any-return]
    except (HTTPException, OSError) as error:
        raise _broken(url, done, n_bytes, str(error) or type(error).__name__) from None


def _broken(url: str, done: int, n_bytes: int, reason: str) -> InputError:
    return InputError(
        f"{url}: broke off after {done:,} of {n_bytes:,} bytes ({reason}); run it again to resume from there"
    )
