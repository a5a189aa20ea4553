"""The error for a text that a model cannot read, and the row of the user's data that it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class UnreadableTextError(ValueError):
    """The error for a text that is empty or longer than a model's context.

    Attributes:
        problem: the expected and the actual number of tokens, in words.
        row: index of the text among those given.
    """

    def __init__(self, problem: str, row: int, rest: str, file: str = "") -> None:
        super().__init__(f"{file}{': ' if file else ''}text: {problem} in row {row} {rest}")
        self.problem, self.row, self._rest, self._file = problem, row, rest, file

    def __reduce__(self) -> tuple[Any, ...]:  # ``args`` has the message alone, from which a pool could not unpickle it
        return type(self), (self.problem, self.row, self._rest, self._file)

    def in_row(self, row: int, file: str = "") -> UnreadableTextError:
        """Return this error with the row and file of the data that the texts were taken from."""
        return UnreadableTextError(self.problem, row, self._rest, file)


@contextmanager
def naming_rows(row_of: Callable[[int], int], file_of: Callable[[int], str] = lambda _: "") -> Iterator[None]:
    """Raise an ``UnreadableTextError`` in this context again, with the row and file of the user's data.

    Args:
        row_of: maps the index of a text among those encoded here to the number of its row in the user's data.
        file_of: maps this index to the name of its file, "" if there is none.
    """
    try:
        yield
    except UnreadableTextError as e:
        raise e.in_row(row_of(e.row), file_of(e.row)) from e
