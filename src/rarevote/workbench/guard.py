"""Who can use the workbench: this machine's browser, with the token of the address, from our own pages.

The server listens on 127.0.0.1. Any page in the same browser, and any user of the same machine, can still send requests
there. So a request must name this machine as its host (not a foreign name that points here), must have the
cookie that only the address with the token gives, and one that changes something must come from our origin with the
token of the page. The cookie is SameSite=Strict: other sites cannot even make the browser send it.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Names of this machine in an address.
HOSTS = ("127.0.0.1", "localhost")


class Guard:
    """The secrets of one run of the server.

    Attributes:
        address_token: part of the address that the command prints.
        page_token: part of every form.
    """

    def __init__(self) -> None:
        self.address_token, self.page_token, self._cookie = (secrets.token_urlsafe(32) for _ in range(3))

    def lets_in(self, request: Request) -> bool:
        """Whether the token in the address is right."""
        return _same(request.query_params.get("token", ""), self.address_token)

    def give_cookie(self, request: Request, response: Response) -> None:
        """Exchange the token for a session cookie that is sent to no other site."""
        response.set_cookie(_cookie_name(request), self._cookie, httponly=True, samesite="strict", path="/")

    def knows(self, request: Request) -> bool:
        """Whether the request has the cookie."""
        return _same(request.cookies.get(_cookie_name(request), ""), self._cookie)

    def trusts(self, request: Request, page_token: str) -> bool:
        """Whether a request that changes something comes from one of our pages."""
        ours = f"http://{request.headers.get('host', '')}"
        return self.knows(request) and request.headers.get("origin") == ours and _same(page_token, self.page_token)


def _same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(), expected.encode())


def _cookie_name(request: Request) -> str:
    # Cookies are shared by all ports of a machine: two workbenches must not overwrite each other's.
    return f"rarevote-{request.url.port}"


class Headers:
    """Adds security headers to every response.

    Args:
        app: the wrapped application.
        hosts: hosts of images from the web.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] = ()) -> None:
        self._app, self._headers = app, _headers(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _headers(hosts: tuple[str, ...]) -> dict[str, str]:
    images = " ".join(["'self'", "data:", *(f"https://{host}" for host in hosts)])
    policy = {
        "default-src": "'none'",
        "style-src": "'self'",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": images,
        "media-src": "'self'",
        "frame-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "cache-control": "no-store",
        # Not no-referrer: then browsers would also hide our own origin from us.
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
