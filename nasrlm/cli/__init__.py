"""The command line: ``nasrlm VERB …``. Composes the packages; nobody imports it."""

from __future__ import annotations

import sys
from typing import NoReturn

import click
import typer

from nasrlm.cli import architectures, models, searches

app = typer.Typer(
    name="nasrlm",
    help="Neural architecture search with a regression language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (architectures, models, searches):
    module.register(app)


def main() -> NoReturn:
    """Run a command; exit 0 when done, 2 with one line on bad input, 1 with a traceback on our own mistakes."""
    try:
        app(standalone_mode=False)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except (click.ClickException, typer.Abort) as e:
        _fail(e.format_message() if isinstance(e, click.ClickException) else "aborted")
    except (ValueError, OSError) as e:
        _fail(str(e))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    print(f"nasrlm: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
