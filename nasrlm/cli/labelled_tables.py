"""Tables of labels as examples, for verbs that compare with them or learn from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nasrlm.examples import Examples
from studies.tables import table_texts


def examples_of_tables(frames: Sequence[pd.DataFrame], tables: Sequence[Path], objectives: Sequence[str]) -> Examples:
    """Rows that were read of tables, each with its text; a bar shows how many are converted.

    Raises:
        ValueError: a row is malformed; the message names its table.
    """
    parts = [table_texts(frame, table, progress=True) for frame, table in zip(frames, tables, strict=True)]
    texts = [text for part in parts for text in part]
    return Examples.of_tables(frames, tables, texts, objectives)
