"""Close connections that do not send the complete head of a request in time, because their number is limited."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_SECONDS = 20.0  # from connecting, or from the first bytes of a further request, to the end of the request's head


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's HTTP protocol with a time limit for the head of a request; Uvicorn itself waits for ever."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limit for the first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Process data; start the time limit if a request has begun."""
        super().data_received(data)
        if self._is_asked():
            self._stop_waiting()
        elif self._deadline is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_asked(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(MAX_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
