"""Adapting to tables from Python; what the command says of it is tested beside the other verbs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasrlm.predictor import Predictor
from studies.adapting import AdaptConfig, adapt_to_tables
from tests.nasrlm.scenes import architecture_table, network_checkpoint

NEW = "latency_ms@unheard"


def test_tables_are_learned_from(tmp_path: Path) -> None:
    table = architecture_table(40).assign(split="train", **{NEW: np.linspace(1.0, 9.0, 40)})
    table.to_csv(tmp_path / "table.csv", index=False)
    config = AdaptConfig([tmp_path / "table.csv"], [NEW], samples=6, choose="active", pool=60)
    before = network_checkpoint()
    adapted = adapt_to_tables(before, config)
    assert adapted.learned[NEW].isin(table[NEW]).all()
    assert len(adapted.learned) == 6
    assert NEW not in before.objectives
    assert adapted.checkpoint.card["commands"][-1]["table"] == "table.csv"
    judged = adapted.judge()[NEW]
    assert judged["n"] == len(adapted.others) == table["architecture"].nunique() - 6
    answers = Predictor(adapted.checkpoint).predict(adapted.texts_of_others, [NEW])
    assert judged["mae"] == pytest.approx(np.abs(answers.median[:, 0] - adapted.others[NEW]).mean())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tables": "table.csv"}, "expected tables as a list, each once, got 'table.csv'"),
        ({"tables": []}, "expected tables as a list"),
        ({"objectives": NEW}, f"expected objectives as a list, each once, got '{NEW}'"),
        ({"objectives": [NEW, NEW]}, "expected objectives as a list, each once"),
        ({"samples": 1}, "expected samples of 2 or more, got 1"),
        ({"pool": 0}, "expected pool of 2 or more, got 0"),
        ({"choose": "best"}, "expected choose of random, active, got 'best'"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaptConfig(**{"tables": ["table.csv"], "objectives": [NEW], **changes})
