"""Refuse request bodies that are too large or take too long to arrive, before they are read completely."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Middleware that reads the body of a request before the application, up to a limit of bytes and seconds."""

    def __init__(self, app: ASGIApp, max_bytes: int, max_seconds: float) -> None:
        self._app, self._max_bytes, self._max_seconds = app, max_bytes, max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with 408 or 413."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        read: list[Message] = []
        try:
            async with asyncio.timeout(self._max_seconds):
                size = 0
                while not read or read[-1].get("more_body"):
                    read.append(await receive())
                    size += len(read[-1].get("body", b""))
                    if size > self._max_bytes:
                        detail = f"body: expected at most {self._max_bytes:,} bytes, got more. Send several requests."
                        return await JSONResponse({"detail": detail}, status_code=413)(scope, receive, send)
        except TimeoutError:
            detail = f"body: expected all of it within {self._max_seconds:g} seconds, got only a part."
            return await JSONResponse({"detail": detail}, status_code=408)(scope, receive, send)
        messages = iter(read)

        async def again() -> Message:
            message = next(messages, None)
            return await receive() if message is None else message

        await self._app(scope, again, send)
