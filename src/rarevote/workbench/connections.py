"""Connections with a time limit: a connection without a complete request is closed soon.

A browser sends a request immediately. A program that opens connections and sends nothing, or very slowly, would
use up the files that the process can open.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the head and the body of a request together; each request of a connection has this time.
SECONDS_FOR_A_REQUEST = 10.0


class TimedConnection(H11Protocol):
    """uvicorn's HTTP protocol with a time limit for requests."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """After a response, restart the time limit for the next request, or for the rest of a refused one."""
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit of a closed connection."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._wait_no_more()
        self._deadline = self.loop.call_later(SECONDS_FOR_A_REQUEST, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
