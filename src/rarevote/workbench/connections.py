"""Connections that end: a connection without a whole request is soon closed.

A browser sends a request at once. A program that opens connections and says nothing, or a letter now and then, would
keep them, and with them files that the process may have open.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the head and the body of a request together; each request of a connection has as long.
SECONDS_FOR_A_REQUEST = 10.0


class TimedConnection(H11Protocol):
    """HTTP as uvicorn speaks it, with an end to requests that do not end."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A connection was opened."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Some of a request is here."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """An answer was sent: the next request, or what is left of one that was refused half-way, has as long."""
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._wait_no_more()
        self._deadline = self.loop.call_later(SECONDS_FOR_A_REQUEST, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
