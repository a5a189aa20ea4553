"""The error for a text that a model cannot read."""

import pickle

from nasrlm.unreadable_texts import UnreadableTextError


def test_another_process_may_raise_the_error():
    error = UnreadableTextError("expected 1 to 512 tokens, got 0", 3, "(''…). Leave it out.", "table.csv")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.problem, copied.row) == (str(error), error.problem, 3)
    assert str(copied.in_row(4)) == str(error.in_row(4))
