"""The benchmark measures us, and regress-lm where there is one; here a stand-in with its public interface."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import engine
from benchmarks.engine import (
    OBJECTIVES,
    SIZES,
    VOCABULARY,
    Config,
    Peer,
    draw_texts,
    measure_ours,
    measure_peer,
    report,
)
from benchmarks.engine_timing import Measurement, measure
from benchmarks.peer import InstalledPeer, PeerError
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from tests.benchmarks.stand_in import STAND_IN, write_stand_in

SMALL = ModelConfig(width=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=32)
CONFIG = Config(texts=6, batch=2, seconds=0, repeats=1, model=SMALL, threads=1)
STOOD_IN = InstalledPeer(sys.executable, "stand-in")
COMPUTES = "    def compute_losses"
TRIMS = """    def trim_padding(self, batch):
        return {"encoder_input": batch["padded"]}
"""


def case(what: str, objectives: int, speed: float, context: str = "any") -> Measurement:
    return Measurement(
        what=what, objectives=objectives, context=context, per_second=speed, slowest=speed, fastest=speed, runs=1
    )


SIZE = {"parameters": 9, "tokens": 9}
OURS = [case(what, objectives, 100) for what in ("prediction", "training") for objectives in (1, 2, 6)]


def test_a_case_is_run_once_more_than_it_is_measured() -> None:
    runs: list[float] = []

    def work() -> int:
        runs.append(time.perf_counter())
        return 7

    measured = measure("training", 2, "any", work, seconds=10, repeats=3)
    assert (len(runs), measured["runs"]) == (4, 3)
    assert measured["slowest"] <= measured["per_second"] <= measured["fastest"]
    assert measure("training", 2, "any", work, seconds=0, repeats=3)["runs"] == 1
    assert len(runs) == 5


def test_processor_time_leaves_out_waiting() -> None:
    def work() -> int:
        time.sleep(0.2)
        return 1

    waited, worked = (
        measure("training", 1, "any", work, seconds=0, repeats=1, processor_time=x)["per_second"] for x in (False, True)
    )
    assert waited <= 5 < worked


def test_we_are_measured_with_every_number_of_objectives() -> None:
    size, cases = measure_ours(CONFIG, draw_texts(CONFIG))
    assert size["parameters"] > 0
    assert size["tokens"] >= size["mean_tokens"] > 10
    assert {(x["what"], x["objectives"]) for x in cases} == {(x["what"], x["objectives"]) for x in OURS}
    assert all(x["per_second"] > 0 for x in cases)


@pytest.mark.parametrize("trims", [False, True])
def test_a_peer_is_measured_in_every_context(trims: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = STAND_IN["rlm"].replace('{"encoder_input": torch', '{"padded": torch').replace(COMPUTES, TRIMS + COMPUTES)
    write_stand_in(tmp_path, monkeypatch, STAND_IN | ({"rlm": newer} if trims else {}))
    peer = measure_peer(CONFIG, draw_texts(CONFIG), {"parameters": 4850, "tokens": 11}, STOOD_IN)
    assert peer.size["parameters"] == pytest.approx(4850, rel=0.1)
    assert [x["context"] for x in peer.cases] == ["equal text"] * 7 + ["equal tokens"] * 7 + ["default"] * 7
    assert [(x["what"], x["objectives"]) for x in peer.cases[:4]] == [
        ("training", 1),
        ("prediction", 1),
        ("encoding", 1),
        ("training", 2),
    ]
    told = report(CONFIG, SIZE, OURS, peer)
    ratios, regress_lm = told["ratios"], told["regress_lm"]
    assert isinstance(regress_lm, dict)
    assert regress_lm["identity"] == "stand-in"
    assert isinstance(ratios, list)
    assert [x["ratio"] for x in ratios] == [100 / x["per_second"] for x in peer.cases]


@pytest.mark.parametrize(("size", "parameters"), [("1M", 1_500_000), ("30M", 31_000_000)])
def test_sizes_are_as_they_are_called(size: str, parameters: int) -> None:
    model = RegressionLanguageModel(SIZES[size], VOCABULARY, max(OBJECTIVES), NumberCode(3))
    assert model.num_parameters == pytest.approx(parameters, rel=0.05)


def test_a_context_may_be_a_number_of_tokens_and_a_peer_of_any_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stand_in(tmp_path, monkeypatch, STAND_IN)
    peer = measure_peer(
        replace(CONFIG, contexts=("1024",)), draw_texts(CONFIG), {"parameters": 60_500, "tokens": 11}, STOOD_IN
    )
    assert (peer.size["width"], peer.size["parameters"]) == (608, 60_900)
    assert [x["context"] for x in peer.cases] == ["1024"] * 7
    with pytest.raises(PeerError, match=r"^expected it to run, got AssertionError: 9 tokens\.$"):
        measure_peer(replace(CONFIG, contexts=("9",)), draw_texts(CONFIG), {"parameters": 4850, "tokens": 11}, STOOD_IN)


def test_texts_of_another_space_may_be_joined() -> None:
    joining = replace(CONFIG, space="nasbench_macro", model=replace(SMALL, num_encoder_layers=2, tokens_per_state=2))
    size, cases = measure_ours(joining, draw_texts(joining))
    plain = replace(joining, model=replace(joining.model, tokens_per_state=1))
    assert size["parameters"] == measure_ours(plain, draw_texts(plain))[0]["parameters"] + 2 * SMALL.width**2
    assert all(x["per_second"] > 0 for x in cases)


def test_the_table_stands_without_a_peer(capsys: pytest.CaptureFixture[str]) -> None:
    engine.print_report(CONFIG, SIZE, OURS, None)
    assert "100 (100 to 100, 1 runs)" in capsys.readouterr().out
    slow = [case("prediction", 6, 2, "default"), case("encoding", 1, 4, "default")]
    engine.print_report(CONFIG, SIZE, OURS, Peer("regress-lm", SIZE, slow))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("│")[-2].strip() for line in lines[-3:-1]] == ["50", "25"]
