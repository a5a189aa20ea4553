"""The head for comparison: one number, learned by its squared error, that every question is answered with."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from nasrlm.evaluation import evaluate
from nasrlm.examples import Examples
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.model.point_decoder import POINT_DIGITS, PointDecoder
from nasrlm.predictor import Predictor
from nasrlm.training.train import train
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import OBJECTIVES, layer_examples

SIZE = ModelConfig(
    width=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=64, dropout=0.0, head="mse"
)


def trained(out: Path, epochs: int) -> float:
    chosen = config(out, model=SIZE, epochs=epochs, learning_rate=6e-3, average_decay=0.95, patience=99)
    return train(chosen, layer_examples(240), progress=False).valid_tau


def test_it_learns_a_rule_and_answers_with_points(tmp_path: Path) -> None:
    assert trained(tmp_path, 12) > 0.8
    predictor = Predictor.from_pretrained(tmp_path / "checkpoint")
    assert predictor.checkpoint.calibration == {}
    examples = layer_examples(40, seed=1)
    prediction = predictor.predict(examples.texts)
    np.testing.assert_allclose(prediction.low, prediction.median, rtol=1e-10)
    np.testing.assert_allclose(prediction.high, prediction.median, rtol=1e-10)
    for temperature in (1e-4, 1.0, 1e8):
        samples = predictor.joint_samples(examples.texts, OBJECTIVES, samples=2, temperature=temperature)
        np.testing.assert_allclose(samples, prediction.values[:, :, :2], rtol=1e-6)
    given = prediction.median + np.array([0.0, 1.0])
    for joint in (False, True):
        logs = predictor.log_probabilities(examples.texts, OBJECTIVES, given, joint=joint)
        assert (logs[:, 1] == -np.inf).all()
        assert np.mean(logs[:, 0] == 0) > 0.5  # of a last digit that another batch rounds otherwise it is -inf too
    around = prediction.median + np.array([-1.0, 1.0])
    levels = predictor.cumulative_probabilities(examples.texts, OBJECTIVES, around)
    np.testing.assert_array_equal(levels, np.broadcast_to([0.0, 1.0], levels.shape))
    known = dict(zip(OBJECTIVES, given.T.tolist(), strict=True))
    samples = predictor.joint_samples(examples.texts, OBJECTIVES, samples=2, known=known)
    np.testing.assert_array_equal(samples, np.repeat(given[:, :, None], 2, axis=2))
    quality = evaluate(predictor, examples).quality["text"]
    assert all(quality[name]["kendall_tau"] > 0.8 for name in OBJECTIVES)
    assert all(math.isnan(quality[name]["coverage_80"]) for name in OBJECTIVES)


def test_standardised_labels_come_back_in_their_units() -> None:
    code = NumberCode(POINT_DIGITS)
    model = RegressionLanguageModel(SIZE, 20, 3, code).eval()
    decoder = model.decoder
    assert isinstance(decoder, PointDecoder)
    decoder.standardise_by(np.array([[1e7, 60.0, 5.0], [3e7, 90.0, np.nan], [5e7, np.nan, 5.0]]))
    assert decoder.mean.tolist() == [3e7, 75.0, 5.0]
    assert decoder.scale[1:].tolist() == [15.0, 1.0]  # a constant is left as wide as it is
    objectives = torch.tensor([[0, 1, 2]])
    text = torch.tensor([[3, 4, 5]])
    points = decoder.points(decoder.remember(model.encoder(text)), objectives)
    numbers = torch.zeros(1, 3, code.length, dtype=torch.long)
    spelled = model(text, objectives, numbers, torch.zeros(1, 3, 3, dtype=torch.bool)).argmax(-1)
    values = torch.from_numpy(code.decode(spelled.numpy()))
    torch.testing.assert_close(decoder.standardised(values, objectives), points, rtol=1e-4, atol=1e-5)


def test_labels_beyond_32_bits_are_refused() -> None:
    decoder = RegressionLanguageModel(SIZE, 20, 1, NumberCode(POINT_DIGITS)).decoder
    assert isinstance(decoder, PointDecoder)
    with pytest.raises(ValueError, match=r"labels: expected values up to 1e\+30 for the mse head, got 1e\+40\."):
        decoder.standardise_by(np.array([[1e40], [1.0]]))


def test_an_unknown_head_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ModelConfig: head: expected one of digits, mse, got 'mae'"):
        ModelConfig(head="mae")  # type: ignore[arg-type]


def test_fine_tuning_keeps_the_scale_of_known_objectives(tmp_path: Path) -> None:
    trained(tmp_path / "first", 1)
    rows = layer_examples(40)
    new = Examples(rows.texts, (OBJECTIVES[1], "energy_mj@new"), 100 * rows.labels, rows.splits, rows.spaces)
    chosen = config(tmp_path / "second", initial_checkpoint=tmp_path / "first" / "checkpoint", model=SIZE, epochs=1)
    tuned = train(chosen, new, progress=False).checkpoint.model.decoder
    known = Predictor.from_pretrained(tmp_path / "first" / "checkpoint").checkpoint.model.decoder
    assert isinstance(tuned, PointDecoder)
    assert isinstance(known, PointDecoder)
    assert float(tuned.mean[0]) == float(known.mean[1])
    train_rows = new.labels[new.splits == "train", 1]
    assert float(tuned.mean[1]) == pytest.approx(train_rows.mean(), rel=1e-5)


def test_equal_labels_have_no_deviation() -> None:
    model = RegressionLanguageModel(ModelConfig(width=16, num_heads=2, head="mse"), 20, 2, NumberCode(POINT_DIGITS))
    assert isinstance(model.decoder, PointDecoder)
    model.decoder.standardise_by(np.stack([np.full(7, 0.1), np.arange(7.0)], axis=1))
    assert model.decoder.scale.tolist() == [1.0, 2.0]
