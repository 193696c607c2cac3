"""The connection to a server: one token, requests with limits of size and time, retries, readable errors.

The token is sent in one header to one host only: plain http is allowed only for loopback, a redirect to another
host is refused, and a server's answer is searched for the token before it is quoted.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from rarevote.errors import InputError, ParameterError, need_library, shown
from rarevote.io.json_text import parse_json

if TYPE_CHECKING:
    import httpx

#: the largest answer that is read, in bytes; a page of tasks has far fewer
MAX_ANSWER = 256 << 20
_CONNECT, _SILENCE, _WHOLE = 10.0, 60.0, 300.0  # seconds: to connect, between two chunks, for a whole answer
_WAITS = (1.0, 2.0, 4.0, 8.0)  # seconds before each further try
_LONGEST_WAIT = 60.0  # even if a server requests more
_MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_HIDDEN = "[hidden]"


class ServerError(InputError):
    """A server refuses, or its answer cannot be used."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerDownError(ServerError):
    """A server does not answer, or is too busy: the request may work later."""


class UnsureError(ServerDownError):
    """A request that must not be repeated failed, and it is not known whether the server processed it."""


class Secret:
    """A token, which is never shown.

    >>> Secret("abc")
    [hidden]
    """

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            raise ParameterError("the token is empty or has invalid characters; copy it again")
        self.text = text

    def __repr__(self) -> str:
        return _HIDDEN


class Credentials(Protocol):
    """The credentials in the header of a request."""

    def header(self, connection: Connection, *, fresh: bool) -> str:
        """The value of ``Authorization``; a new one if ``fresh``, because the last was refused."""

    def secrets(self) -> list[str]:
        """Every text that must not be shown."""


def check_url(url: str) -> str:
    """The address of a server, without a trailing slash.

    Raises:
        ParameterError: it is not https, nor http on this machine, or has parts that it must not have.

    >>> check_url("https://labels.example.org/")
    'https://labels.example.org'
    >>> check_url("http://labels.example.org")
    Traceback (most recent call last):
    rarevote.errors.ParameterError: http://labels.example.org: a token is sent to this address, so it must be https \
(plain http is for this machine only: http://127.0.0.1:8080)
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ParameterError(f"{shown(url)} is not an address; give one such as http://127.0.0.1:8080") from None
    if parts.username is not None or parts.password is not None:
        raise ParameterError("the address has a user or a password: remove them, the token identifies you")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ParameterError(f"{shown(url)} is not the address of a server; give one such as http://127.0.0.1:8080")
    if parts.scheme == "http" and not is_loopback(host):
        raise ParameterError(
            f"{url}: a token is sent to this address, so it must be https (plain http is for this machine only: "
            "http://127.0.0.1:8080)"
        )
    return url.strip().rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "127.evil.example", "10.0.0.1")]
    [True, True, True, False, False]
    """
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_library() -> Any:
    """The HTTP library.

    Raises:
        MissingExtraError: it is not installed.
    """
    return need_library("httpx", "connecting to a server needs httpx: pip install 'rarevote[live]'")


class Connection:
    """Requests to one server.

    Args:
        url: the address of the server.
        credentials: credentials for the header; None for requests without them.
        title: the name of the platform in messages.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None,
        *,
        title: str,
    ) -> None:
        self.url, self.title = check_url(url), title
        self._credentials = credentials
        library = self._errors = http_library()
        host = urlsplit(self.url).hostname or ""
        self._client: httpx.Client = library.Client(
            timeout=library.Timeout(_SILENCE, connect=_CONNECT),
            follow_redirects=False,
            verify=self.url.startswith("https:"),  # without TLS there is nothing to verify
            # A proxy from the environment is for other machines; this machine is accessed directly.
            trust_env=not is_loopback(host),
            headers={"Accept": "application/json", "User-Agent": "rarevote"},
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        once: bool = False,
        signed: bool = True,
        expected: tuple[int, ...] = (),
    ) -> Any:
        """The server's answer, from JSON; None if it is empty.

        Args:
            method: such as "GET".
            path: path below the address of the server.
            params: parameters of the query.
            body: the body, sent as JSON.
            once: the request must not be made twice: if it is not known whether the server processed it, it is not
                repeated.
            signed: whether to send the token.
            expected: further status codes to return as ``(code, answer)`` instead of an error.

        Raises:
            UnsureError: with ``once``, if it is not known whether the server processed the request.
            ServerDownError: there is no answer, or only that the server is busy, after several tries.
            ServerError: the server refuses, or its answer cannot be read.
        """
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        failure = ""
        for wait in (*_WAITS, None):
            try:
                status, answer, retry_after = self._ask(method, path, params, content, signed=signed)
                if status == 401 and signed and self._credentials is not None:
                    # The key from a personal token is only valid for minutes.
                    status, answer, retry_after = self._ask(method, path, params, content, signed=True, fresh=True)
            except self._errors.TimeoutException as error:
                reached = not isinstance(error, (self._errors.ConnectTimeout, self._errors.PoolTimeout))
                failure, retry_after = "it does not respond in time", None
            except self._errors.TransportError as error:
                reached = not isinstance(error, self._errors.ConnectError)
                failure, retry_after = self._without_secrets(str(error) or type(error).__name__), None
            else:
                if status < 400:
                    return answer
                if status in expected:
                    return status, answer
                if status != 429 and status < 500:
                    raise self._refused(status, answer, path)
                failure, reached = f"it answers {status}", status != 429
            if once and reached:
                raise UnsureError(f"{self.url}: a request failed ({failure})")
            if wait is None:
                break
            time.sleep(min(retry_after if retry_after is not None else wait, _LONGEST_WAIT))
        raise ServerDownError(
            f"{self.url}: {self.title} cannot be reached ({failure}), after {len(_WAITS) + 1} tries. Check that it "
            "is running and that the address is right"
        )

    # ----------------------------------------------------------------------------------------------------------------
    # inside

    def _ask(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        content: bytes | None,
        *,
        signed: bool,
        fresh: bool = False,
    ) -> tuple[int, Any, float | None]:
        """Status, answer, and how long to wait before a further try, if the server says so."""
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if signed and self._credentials is not None:
            headers["Authorization"] = self._credentials.header(self, fresh=fresh)
        address = f"{self.url}{path}"
        for _ in range(_MAX_REDIRECTS + 1):
            with self._client.stream(method, address, params=params, content=content, headers=headers) as response:
                if response.status_code not in _REDIRECTS:
                    return response.status_code, self._read(response), _retry_after(response)
                target = urljoin(str(response.url), response.headers.get("location", ""))
            if _origin(target) != _origin(self.url):
                raise ServerError(
                    f"{self.url}: redirects to {shown(self._without_secrets(target))}, another server; the token is "
                    "not sent there. If that server is the right one, give its address with --url"
                )
            if method != "GET":
                raise ServerError(f"{self.url}: redirects {path}, which was to be changed; check the address")
            address, params = target, None
        raise ServerError(f"{self.url}: redirects in a loop at {path}; check the address")

    def _read(self, response: httpx.Response) -> Any:
        """The answer, read up to a limit of size and time."""
        begin, parts, size = time.monotonic(), [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > MAX_ANSWER:
                raise ServerError(f"{self.url}: a response is larger than {MAX_ANSWER >> 20} MB, which is not read")
            if time.monotonic() - begin > _WHOLE:
                raise self._errors.ReadTimeout("the response does not end")
            parts.append(part)
        text = b"".join(parts)
        if not text.strip():
            return None
        try:
            return parse_json(text)
        except ValueError:
            if response.status_code >= 400:
                return None  # an HTML page: the status is enough
            raise ServerError(
                f"{self.url}: does not respond with JSON; check that it is the address of {self.title}, without a "
                "page's path"
            ) from None

    def _refused(self, status: int, answer: Any, path: str) -> ServerError:
        said = self._detail(answer)
        why = f" ({said})" if said else ""
        if status == 401:
            return ServerError(f"{self.url}: the token is rejected{why}. Copy a valid one from your account", 401)
        if status == 403:
            return ServerError(f"{self.url}: the token does not allow this ({path}){why}", 403)
        if status == 404:
            return ServerError(f"{self.url}: has no {path}{why}", 404)
        return ServerError(f"{self.url}: rejects {path} with status {status}{why}", status)

    def _detail(self, answer: Any) -> str:
        """The server's reason for a refusal, if it is short and contains no token."""
        if isinstance(answer, dict):
            answer = answer.get("validation_errors") or answer.get("detail") or answer
        text = answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer, default=str)
        return self._without_secrets(" ".join(text.split()))[:300]

    def _without_secrets(self, text: str) -> str:
        for secret in self._credentials.secrets() if self._credentials is not None else ():
            text = text.replace(secret, _HIDDEN)
        return text


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds to wait that the server requests; None if it gives a date or nothing."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None
