"""Tell whoever waits when the service ends that there will be no answer."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

DETAIL = "service: expected to answer before it ends, got no time. Ask again when it runs, or for less at a time."


class Ending:
    """Answers 503 to requests that are cancelled, as Uvicorn does with what is not done at the end of its grace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, or answer 503; where an answer has begun, Uvicorn closes the connection instead."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            await JSONResponse({"detail": DETAIL}, status_code=503)(scope, receive, send)
