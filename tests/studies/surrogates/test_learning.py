"""The model of a search learns from what was answered, not from what somebody else evaluates now."""

import numpy as np
import pandas as pd
import pytest

from spaces import Spellings
from studies.history import EVALUATED
from studies.ledger import Entry, Ledger
from studies.surrogates.learning import LearningModel
from studies.surrogates.memory import TextMemory
from tests.studies.guided import guided_config
from tests.studies.scenes import SPACE, ToyPredictor

CONFIG = guided_config()


def tried(answers: list[float]) -> Ledger:
    """A ledger of as many evaluated architectures; NaN has no answer."""
    architectures = [SPACE.sample(np.random.default_rng(seed)) for seed in range(3 * len(answers))]
    different = list({SPACE.architecture_key(x): x for x in architectures}.values())[: len(answers)]
    entries = [
        Entry.of(SPACE, x, 2, status=EVALUATED, real=np.full(2, answer))
        for x, answer in zip(different, answers, strict=True)
    ]
    return Ledger(CONFIG, entries)


def test_what_has_no_answer_yet_is_no_result() -> None:
    tables: list[pd.DataFrame] = []

    def adapt(table: pd.DataFrame) -> ToyPredictor:
        tables.append(table)
        return ToyPredictor()

    learning = LearningModel(SPACE, ToyPredictor(), TextMemory(SPACE.format), CONFIG.objectives)
    learning.learn_by(adapt, every=2)
    for answers in ([np.nan, 1.0, np.nan], [2.0, 1.0, np.nan], [2.0, 1.0, 3.0], [2.0, 1.0, 3.0, np.nan, 5.0]):
        learning.learn(tried(answers))
    assert [table[CONFIG.objectives[0]].tolist() for table in tables] == [[2.0, 1.0], [2.0, 1.0, 3.0, 5.0]]


def test_two_keys_of_one_network_are_told_once(recwarn: pytest.WarningsRecorder) -> None:
    for space, told in ((SPACE, 1), (Spellings(SPACE), 0)):
        learning = LearningModel(space, ToyPredictor(), TextMemory(lambda _: "one text"), CONFIG.objectives)
        learning.learn_by(lambda _: ToyPredictor(), every=2)
        for answers in ([2.0, 1.0], [2.0, 1.0, 3.0, 4.0]):
            learning.learn(tried(answers))
        words = [str(recwarn.pop().message) for _ in range(len(recwarn))]
        assert len(words) == told
        assert all(word.startswith("toy: expected one architecture_key per network, got ") for word in words)
