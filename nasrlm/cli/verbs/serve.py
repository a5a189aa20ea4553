"""The verb serve: predictions over HTTP."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

import nasrlm
from nasrlm.cli.options import CheckpointOption, DeviceOption, EngineOption
from nasrlm.cli.output import say
from nasrlm.extras import check_extra
from spaces import get_space

GRACE_SECONDS = 10  # for requests to finish when the service is stopped


def run(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of IPv4, :: for all of IPv6.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")] = 8000,
    max_networks: Annotated[int, typer.Option(min=1, help="Maximum number of networks in a request.")] = 1024,
    max_connections: Annotated[
        int, typer.Option(min=1, help="Maximum number of connections; further requests get status 503.")
    ] = 256,
    space: Annotated[
        list[str] | None,
        typer.Option(help="Space of your own to serve as well, path/to/file.py:ClassName; may be repeated."),
    ] = None,
    checkpoint: CheckpointOption = None,
    device: DeviceOption = "cpu",
    engine: EngineOption = "auto",
) -> None:
    """Serve predictions over HTTP: POST /predict, POST /convert, GET /health; /docs describes them."""
    check_extra("serve", "serve", "fastapi", "uvicorn")
    import uvicorn

    from nasrlm.cli.serving.app import Limits, create_app
    from nasrlm.cli.serving.patience import PatientProtocol

    predictor = nasrlm.Predictor.from_pretrained(checkpoint, device, engine)
    app = create_app(predictor, Limits(max_networks=max_networks), [get_space(name) for name in space or []])
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="warning",
        limit_concurrency=max_connections,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    with _listen(host, port) as listening:
        say(f"http://{_spelled(host)}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as e:
        address = f"{_spelled(host)}:{port}"
        raise ValueError(f"serve: expected a free address, got {address} ({e.strerror}). Try --port 0.") from e


def _spelled(host: str) -> str:
    """Format a host for a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
