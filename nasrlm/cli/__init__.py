"""The command line, ``nasrlm VERB …``; it may import all packages, and none of them imports it."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import nasrlm
from nasrlm.cli import verbs
from nasrlm.cli.users_code import describe_error, is_ours

INTERRUPTED = 130  # exit status of a verb stopped by Ctrl-C or SIGTERM
RESUMED = {"search"}  # verbs that are resumed with --resume
TABLES_RESUMED = {"convert", "stats"}  # verbs that are resumed with --resume if they have --table
RESUMED_WITHOUT_OPTION = {"train", "benchmark"}  # verbs that are resumed by the same command

_usual_format = warnings.formatwarning

app = typer.Typer(
    name="nasrlm",
    cls=verbs.Verbs,
    help="Neural architecture search with a regression language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
verbs.register(app)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"nasrlm {nasrlm.__version__}")
        raise typer.Exit


@app.callback()
def _of_all_verbs(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Define the options before a verb."""


def main() -> NoReturn:
    """Run the command line and exit.

    The exit status is

    - 0 if the command has finished;
    - 2, with one line on stderr, after bad input, for a missing extra, or for an error in the user's code;
    - 130 if Ctrl-C or SIGTERM has interrupted the command, with one line that says how to resume it, if it can be;
    - 1, with a traceback, for an error of this project;
    - 1, without a message, if the reader of stdout has closed it.
    """
    if sys.stderr is None:  # closed: bars would fail, and warnings would be printed among the results
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    warnings.formatwarning = _spelled_warning
    escape_other_characters()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C, so that verbs clean up
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as e:
        words = e.format_message() or "expected a verb, got none."  # the help has been printed
        _fail(words + _order_of(sys.argv[1:]))
    except MemoryError as e:
        _fail(_out_of_memory(e))
    except OSError as e:
        _fail(f"{e.filename}: expected to read or write it, got {e.strerror}." if e.filename else str(e))
    except SystemExit as e:  # raised by the user's code: it could end the command with status 0
        if isinstance(e.__context__, BrokenPipeError):  # raised by typer when the reader of stdout has closed it
            raise
        _fail(describe_error(e) or f"expected code that returns, got {e!r}.")
    except Exception as e:
        said = describe_error(e)
        if isinstance(e.__cause__, KeyboardInterrupt):  # Ctrl-C while a C++ extension was imported
            status = INTERRUPTED
        elif _is_of_memory(e):
            _fail(_out_of_memory(e))
        elif said is None and not isinstance(e, ValueError) and not _is_of_extra(e):
            raise
        else:
            _fail(said or str(e))
    if status == INTERRUPTED:
        try:
            advice = _how_to_resume(sys.argv[1:])
        except (Exception, KeyboardInterrupt):  # modules are incomplete if their import was interrupted
            advice = ""
        print(f"nasrlm: interrupted. {advice}".rstrip(), file=sys.stderr)
    sys.exit(status)


def escape_other_characters() -> None:
    """Let stdout write characters that its encoding lacks as escapes, as stderr does; else they would lose results."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _order_of(words: Sequence[str]) -> str:
    """Return a hint if an option stands before the verb, else ""."""
    verb = next((word for word in words if word in verbs.VERBS), "")
    return f". Options come after the verb: nasrlm {verb} {words[0]} …" if verb and words[0].startswith("-") else ""


def _is_of_memory(error: Exception) -> bool:
    """Return whether torch ran out of memory, on a GPU or on this machine."""
    return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)


def _is_of_extra(error: Exception) -> bool:
    """Return whether the error is about a missing package of one of our extras; others are errors of this project."""
    return isinstance(error, ImportError) and "Install nasrlm[" in str(error)


def _out_of_memory(error: BaseException) -> str:
    said = str(error).partition("\n")[0] or "none"
    return f"expected enough memory, got too little ({said}). Process less at a time, such as a smaller batch_size."


def _how_to_resume(words: Sequence[str]) -> str:
    tables = _values_of("--table", words)
    verb = words[0] if words else ""
    if verb in RESUMED and not _holds_study(words):
        return "Nothing was stored yet."
    if verb in RESUMED or (verb in TABLES_RESUMED and tables and not any(map(_lists_files, tables))):
        return "Run the same command with --resume to continue."
    return "Run the same command to continue." if verb in RESUMED_WITHOUT_OPTION else ""


def _holds_study(words: Sequence[str]) -> bool:
    """Return whether the output folder named on a command line, ``--out``, has a study."""
    from studies.folder import holds_study  # imported here: it would slow down --help

    return any(holds_study(folder) for folder in _values_of("--out", words))


def _lists_files(table: Path) -> bool:
    """Return whether a table has networks in files, which are converted at once."""
    from nasrlm.cli.files_to_table import lists_files  # likewise

    try:
        return lists_files(table)
    except ValueError:
        return False


def _values_of(option: str, words: Sequence[str]) -> list[Path]:
    """Return the paths that are given by an option on a command line."""
    given = [value for word, value in pairwise(words) if word == option]
    given += [word.removeprefix(f"{option}=") for word in words if word.startswith(f"{option}=")]
    return [Path(path) for path in given]


def _spelled_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning raised by our code as one line without its place in the code, other warnings as usual."""
    if issubclass(category, UserWarning) and is_ours(filename):
        return f"nasrlm: {' '.join(str(message).split())}\n"
    return _usual_format(message, category, filename, lineno, line)


def _fail(message: str) -> NoReturn:
    print(f"nasrlm: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
