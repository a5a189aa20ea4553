"""Respond to requests that are still waiting when the service ends."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

DETAIL = "service: expected to respond before it stops, got too little time. Retry when it runs, or request less."


class Ending:
    """Middleware that responds with 503 to cancelled requests; Uvicorn cancels them when its grace period ends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with 503; if a response has begun, Uvicorn closes the connection instead."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            await JSONResponse({"detail": DETAIL}, status_code=503)(scope, receive, send)
