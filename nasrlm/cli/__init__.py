"""The command line: ``nasrlm VERB …``. Composes the packages; nobody imports it."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from nasrlm.cli import adaptations, architectures, benchmarks, models, searches, services, tables, teaching

app = typer.Typer(
    name="nasrlm",
    help="Neural architecture search with a regression language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (architectures, models, adaptations, benchmarks, searches, services, tables, teaching):
    module.register(app)


def main() -> NoReturn:
    """Run a command; exit 0 when done, 2 with one line on bad input, 1 with a traceback on our own mistakes."""
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as e:
        _fail(e.format_message() or "expected a verb, got none.")  # the help has been printed
    except OSError as e:
        _fail(f"{e.filename}: expected to read or write it, got {e.strerror}." if e.filename else str(e))
    except ValueError as e:
        _fail(str(e))
    sys.exit(status)


def _fail(message: str) -> NoReturn:
    print(f"nasrlm: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
