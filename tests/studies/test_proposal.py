"""One batch of a guided search: what is looked at, what is chosen of it, and what is recorded."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from moocore import hypervolume

from nasrlm.arrays import FloatArray
from spaces import get_space
from studies import proposal
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.gate import Gate
from studies.history import CHOSEN, EVALUATED, PRUNED
from studies.ledger import Entry, Ledger
from studies.problem import Problem
from studies.proposal import begin, propose, warm_start
from studies.surrogates.learning import Model
from studies.surrogates.memory import PredictorMemory
from tests.studies.guided import guided_config
from tests.studies.scenes import SPACE, Row, ToyPredictor, ToyResults, true_values

EVERY = every_architecture(SPACE)


def toy_model(sigma: float = 1.0) -> Model[Row]:
    predictor = ToyPredictor(sigma=sigma)
    return Model(predictor, PredictorMemory(predictor), SPACE.format)


def evaluated(config: SearchConfig, count: int = 6) -> Ledger:
    """That knows the results of the first batch."""
    ledger = Ledger(config)
    add(ledger, begin(SPACE, ToyResults(), ledger, count=count))
    return ledger


def add(ledger: Ledger, entries: list[Entry]) -> None:
    """With the results of what was chosen."""
    ledger.add(entries)
    for entry in ledger.chosen:
        ledger.record(entry.key, np.array(true_values(SPACE.parse(entry.architecture)))[:2])


def next_of(config: SearchConfig, ledger: Ledger, model: Model[Row] | None = None, **options: Any) -> list[Entry]:
    assert config.guide is not None
    gate = Gate(config.goals, config.constraints, risk=config.guide.risk)
    return propose(config.guide, SPACE, model or toy_model(), ledger, gate, **{"count": 4, **options})


def keys(entries: list[Entry], status: str = CHOSEN) -> list[str]:
    return [entry.key for entry in entries if entry.status == status]


def test_a_batch_is_a_function_of_the_ledger_and_of_the_attempt() -> None:
    config = guided_config()
    ledger = evaluated(config)
    first, again, other = (next_of(config, ledger, attempt=attempt) for attempt in (2, 2, 1))
    assert keys(first) == keys(again)
    assert keys(first, PRUNED) == keys(again, PRUNED)
    assert len(keys(first, PRUNED)) > 1
    assert set(keys(first, PRUNED)) != set(keys(other, PRUNED))
    assert {entry.batch for entry in first} == {1}


def test_no_sample_lies_beyond_what_is_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wild(ToyPredictor):
        def sample(self, texts: Any, objectives: Any, samples: int, seed: int) -> FloatArray:
            drawn = super().sample(texts, objectives, samples, seed)
            drawn[:, :, 0] = 1e9
            return drawn

    seen: list[FloatArray] = []
    monkeypatch.setattr("studies.proposal.choose", lambda losses, *_, **__: seen.append(losses) or [])
    config, predictor = guided_config(), Wild()
    next_of(config, evaluated(config), Model(predictor, PredictorMemory(predictor), SPACE.format))
    assert np.abs(seen[0]).max() < 200


def test_nothing_is_chosen_that_was_evaluated_and_nothing_pruned_is_recorded_again() -> None:
    config = guided_config(trials=60)
    ledger = evaluated(config)
    model, recorded = toy_model(sigma=0.2), list[str]()
    for _ in range(6):
        done = {entry.key for entry in ledger.evaluated}
        batch = next_of(config, ledger, model)
        assert not done & {entry.key for entry in batch}
        recorded += keys(batch, PRUNED)
        add(ledger, batch)
    assert len(recorded) == len(set(recorded)) > 20


@pytest.mark.parametrize("exhaustive", [False, True])
def test_only_what_is_known_is_chosen(exhaustive: bool) -> None:
    config = guided_config(guide={"exhaustive": exhaustive})
    known = dict(list(EVERY.items())[:30])
    chosen = keys(next_of(config, evaluated(config), known=known, count=9))
    assert len(chosen) == 9
    assert set(chosen) <= set(known)


def test_where_everything_is_looked_at_pruned_ones_count_in_the_last_batch() -> None:
    config = guided_config(trials=14, guide={"exhaustive": True})
    ledger = evaluated(config)
    model = toy_model(sigma=0.2)
    usual, last = (next_of(config, ledger, model, count=count) for count in (4, 8))
    assert [entry.status for entry in usual] == [CHOSEN] * 4
    assert len(keys(last)) == 8
    assert len(keys(last, PRUNED)) > 20
    assert all(entry.stage and entry.reason for entry in last if entry.status == PRUNED)


def test_the_risk_decides_what_is_pruned_not_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.proposal.SHORTLIST_OF_ALL", 8)
    chosen = []
    for risk in (0.01, 0.4):
        config = guided_config(guide={"exhaustive": True, "gate": False, "risk": risk})
        chosen.append(keys(next_of(config, evaluated(config))))
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("shortlist", [3, 200])
def test_who_knows_everything_chooses_what_adds_most_hypervolume(
    shortlist: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.proposal.SHORTLIST_OF_ALL", shortlist)
    config = guided_config(guide={"exhaustive": True, "samples": 2})
    ledger = evaluated(config)
    (chosen,) = next_of(config, ledger, toy_model(sigma=1e-6), count=1)
    losses = np.array([[-1, 1] * np.array(true_values(row))[:2] for row in EVERY.values()])
    known = np.array([list(EVERY).index(entry.key) for entry in ledger.evaluated])
    worst = losses.max(axis=0)
    gains = [hypervolume(losses[[*known, row]], ref=worst) for row in range(len(losses))]
    assert gains[list(EVERY).index(chosen.key)] == pytest.approx(max(gains))


def test_a_large_space_is_not_looked_at_whole() -> None:
    with pytest.raises(ValueError, match=r"exhaustive: expected a space of at most 1,000,000 .* got fbnet"):
        every_architecture(get_space("fbnet"))


def test_a_batch_without_predictions_has_nothing_that_is_recorded() -> None:
    config = guided_config()
    ledger = Ledger(config)
    first = begin(SPACE, ToyResults(), ledger, count=10)
    assert all(np.isnan(entry.predicted).all() and entry.status == CHOSEN for entry in first)
    ledger.add(first)
    second = begin(SPACE, ToyResults(), ledger, count=10)
    assert not set(keys(first)) & set(keys(second))
    assert len({*keys(first), *keys(second)}) == 20
    assert len(begin(SPACE, ToyResults(), ledger, count=config.population_size + 5)) == config.population_size + 5
    third, again, other = (keys(begin(SPACE, ToyResults(), ledger, count=10, attempt=attempt)) for attempt in (0, 0, 1))
    assert third == again != other


def test_a_warm_start_comes_in_its_order_twins_once_and_as_many_as_asked_for() -> None:
    given = ["0-1-2-3", "2-1-0-3", "4-3-2-1", "1-1-0-0", "0-0-1-0"]
    config = guided_config(warm_start=given)
    ledger = Ledger(config)
    first = warm_start(SPACE, ledger, count=2)
    assert keys(first) == ["[0, 1, 2] 3", "[2, 3, 4] 1"]
    add(ledger, first)
    assert [entry.status for entry in ledger.entries] == [EVALUATED] * 2
    assert keys(warm_start(SPACE, ledger, count=9, known=EVERY)) == ["[0, 1, 1] 0", "[0, 0, 1] 0"]
    assert warm_start(SPACE, ledger, count=9, known={}) == []
    assert warm_start(SPACE, Ledger(replace(config, warm_start=())), count=9) == []


def test_known_architectures_that_a_space_never_draws_are_refused() -> None:
    space = get_space("fbnet")
    known = [space.parse(f'{{"dataset": "ImageNet", "op_idx_list": {[0] * 21 + [last]}}}') for last in range(2)]
    config = replace(guided_config(), space="fbnet")
    with pytest.raises(ValueError, match=r"expected known architectures that fbnet can draw, got none among 2 \(the"):
        Problem(config, space, ToyResults(), known={space.architecture_key(made): made for made in known})


def test_more_generations_are_looked_at_after_batches_with_nothing_to_evaluate(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(proposal, "_search", lambda _, generations, *__: asked.append(generations))
    config = guided_config(guide={"generations": 3})
    ledger = evaluated(config)
    next_of(config, ledger)
    next_of(config, ledger, attempt=2)
    recorded = {entry.key for entry in ledger.entries}
    left = [row for key, row in EVERY.items() if key not in recorded][:2]
    ledger.add([Entry.of(SPACE, row, 2, batch=batch, status=PRUNED) for batch, row in enumerate(left, start=1)])
    next_of(config, ledger, attempt=1)
    assert asked == [3, 5, 6]


def test_known_architectures_that_no_engine_proposes_are_looked_at_before_a_search_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = guided_config()
    ledger = evaluated(config)
    known = {SPACE.architecture_key(row): row for row in SPACE.enumerate()}
    monkeypatch.setattr(proposal, "_search", lambda *_: None)
    assert next_of(config, ledger, known=known) == []
    found = next_of(config, ledger, known=known, attempt=1)
    assert keys(found)
    assert keys(found, PRUNED) == []  # thousands, which no engine proposed
    monkeypatch.setattr(proposal, "MOST_LOOKED_AT", len(known) - 1)
    assert next_of(config, ledger, known=known, attempt=1) == []
