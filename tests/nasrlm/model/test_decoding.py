"""Quantiles agree with the distribution they are quantiles of."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.model.decoder import masked_log_softmax
from nasrlm.model.decoding import cumulative_probabilities, joint_samples, log_probabilities, quantiles
from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NUM_SIGNS, NumberCode
from nasrlm.reader import pad
from tests.nasrlm.scenes import CODE, SIZES, all_spellings, spelling_probabilities, tiny_model

TEXT = torch.tensor([[3, 7, 7, 1, 12]])
LEVELS = torch.linspace(0.0005, 0.9995, 1999, dtype=torch.float64)
OBJECTIVES = torch.tensor([0, 1])
SEEDS = (0, 1, 3)  # of models that write numbers of all signs


def read(model: RegressionLanguageModel, text_ids: Tensor) -> tuple[RegressionLanguageModel, Encoded]:
    """The model and the texts it has encoded."""
    with torch.inference_mode():
        return model, model.encoder(text_ids)


def enumerated_quantiles(probabilities: Tensor, levels: Tensor) -> NDArray[np.float64]:
    """Quantiles by definition: walk through all numbers in ascending order, interpolate in the cell of the last."""
    ids = all_spellings().numpy()
    values, (low, high) = CODE.decode(ids), CODE.cells(ids)
    below = probabilities.cumsum(0) - probabilities
    found = []
    for level in levels.tolist():
        row = int((below <= level).sum()) - 1
        within = (level - float(below[row])) / float(probabilities[row])
        share = within if values[row] > 0 else 1 - within
        found.append(np.sign(values[row]) * (low[row] + share * (high[row] - low[row])))
    return np.array(found)


def written(probabilities: Tensor) -> Tensor:
    """(361,) probabilities without signs that are less than a hundredth as likely as the likeliest."""
    signs = all_spellings()[:, 0]
    shares = torch.zeros(NUM_SIGNS).double().index_add(0, signs, probabilities)
    kept = torch.where((shares >= shares.max() / 100)[signs], probabilities, 0)
    return kept / kept.sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_probabilities_of_all_numbers_sum_to_one(seed: int) -> None:
    assert float(spelling_probabilities(tiny_model(seed), TEXT, 0).sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_quantiles_are_those_of_the_enumerated_distribution(seed: int) -> None:
    model = tiny_model(seed)
    walked = quantiles(*read(model, TEXT), OBJECTIVES, LEVELS.expand(2, -1))[0].numpy()
    for objective in (0, 1):
        probabilities = written(spelling_probabilities(model, TEXT, objective))
        assert (walked[objective] >= enumerated_quantiles(probabilities, LEVELS - 1e-5)).all()
        assert (walked[objective] <= enumerated_quantiles(probabilities, LEVELS + 1e-5)).all()
    assert (walked < 0).any()
    assert (walked == 0).any()
    assert (walked > 0).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_quantiles_ascend_with_their_levels(seed: int) -> None:
    walked = quantiles(*read(tiny_model(seed), TEXT), OBJECTIVES, LEVELS.expand(2, -1))
    assert (walked.diff(dim=-1) >= -1e-9).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_cumulative_probabilities_invert_quantiles(seed: int) -> None:
    model = tiny_model(seed)
    values = quantiles(*read(model, TEXT), OBJECTIVES[:1], LEVELS[None, :])[0, 0]
    texts = TEXT.expand(len(values), -1)
    levels = cumulative_probabilities(*read(model, texts), OBJECTIVES[:1], values[:, None])[:, 0]
    away_from_zero = values != 0
    torch.testing.assert_close(levels[away_from_zero], LEVELS[away_from_zero], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("signs", "exponents", "ends"),
    [
        ((-4.0, -4.0, 0.0), (-9.0, -9.0, 0.0, -9.0, -9.0), (-99.5, 99.5)),  # next to the likeliest
        ((-9.0, -9.0, 0.0), (-9.0, -9.0, 0.0, -9.0, -9.0), (0.0995, 99.5)),
        ((-9.0, -4.0, 0.0), (-9.0, -9.0, 0.0, -9.0, -9.0), (0, 99.5)),
        ((-9.0, -9.0, 0.0), (-4.0, -9.0, 0.0, -9.0, -4.0), (0.0095, 995)),
        ((-9.0, -9.0, 0.0), (0.0, -9.0, -9.0, -9.0, -4.0), (0.0095, 995)),
    ],
)
def test_unlikely_signs_and_exponents_are_not_written(
    signs: tuple[float, ...], exponents: tuple[float, ...], ends: tuple[float, float]
) -> None:
    torch.manual_seed(0)
    model = RegressionLanguageModel(SIZES, 20, 2, NumberCode(num_digits=2, min_exponent=-2, max_exponent=2)).eval()
    logits = torch.tensor([*signs, *exponents, *[0.0] * 10])
    model.decoder.head.register_forward_hook(lambda _module, _inputs, output: logits.expand_as(output))
    levels = torch.tensor([1e-8, 1 - 1e-8], dtype=torch.float64)
    found = quantiles(*read(model, TEXT), OBJECTIVES[:1], levels[None])[0, 0]
    assert found.tolist() == pytest.approx(ends, rel=5e-3, abs=1e-6)
    beyond = (found + torch.tensor([-0.5, 1.0]))[:, None]
    shares = cumulative_probabilities(*read(model, TEXT.expand(2, -1)), OBJECTIVES[:1], beyond)
    assert shares[:, 0].tolist() == pytest.approx([0, 1], abs=1e-6)


def test_half_of_the_probability_of_zero_counts_as_below_it() -> None:
    model = tiny_model()
    probabilities = written(spelling_probabilities(model, TEXT, 0))
    middle = len(probabilities) // 2
    expected = float(probabilities[:middle].sum() + probabilities[middle] / 2)
    zero = torch.zeros(1, 1, dtype=torch.float64)
    assert float(cumulative_probabilities(*read(model, TEXT), OBJECTIVES[:1], zero)) == pytest.approx(
        expected, abs=1e-5
    )


def test_all_probability_lies_between_values_beyond_the_code() -> None:
    beyond = torch.tensor([[-1e6, 1e6]], dtype=torch.float64)
    levels = cumulative_probabilities(*read(tiny_model(), TEXT), torch.tensor([0, 0]), beyond)
    assert levels[0].tolist() == pytest.approx([0, 1], abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_levels_zero_and_one_give_numbers_of_the_code(seed: int) -> None:
    levels = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(2, -1)
    ends = quantiles(*read(tiny_model(seed), TEXT), OBJECTIVES, levels)
    assert (ends.abs() <= CODE.largest + 0.5).all()
    assert (ends[..., 0] < ends[..., 1]).all()


def test_samples_fall_below_a_quantile_as_often_as_its_level_says() -> None:
    model = tiny_model()
    rng = np.random.default_rng(0)
    samples = quantiles(*read(model, TEXT), OBJECTIVES, torch.from_numpy(rng.uniform(size=(2, 20_000))))[0]
    probabilities = [written(spelling_probabilities(model, TEXT, objective)) for objective in (0, 1)]
    spelled = torch.from_numpy(CODE.decode(all_spellings().numpy()))
    rounded = torch.from_numpy(CODE.decode(CODE.encode(samples.clamp(-99, 99).numpy().ravel()))).reshape(2, -1)
    for objective in (0, 1):
        share = (rounded[objective][None, :] <= spelled[:, None] + 1e-9).double().mean(dim=1)
        assert (share - probabilities[objective].cumsum(0)).abs().max() < 0.0138  # Kolmogorov-Smirnov, 0.1 %


def test_cached_steps_agree_with_teacher_forcing() -> None:
    model = tiny_model()
    texts = torch.tensor([[3, 7, 7, 1, 12], [5, 2, 9, 0, 0]])
    numbers = all_spellings()[torch.tensor([[10, 170], [180, 300]])]
    objectives = OBJECTIVES.expand(2, -1)
    with torch.inference_mode():
        forced = model(texts, objectives, numbers, torch.zeros(2, 2, 2, dtype=torch.bool))
        memory = model.decoder.remember(model.encoder(texts))
        cache: list[tuple[Tensor, Tensor]] = []
        for position in range(CODE.length):
            last = numbers[..., position - 1] if position else None
            logits = model.decoder.step(memory, objectives, position, last, cache)
            stepped = masked_log_softmax(logits, model.decoder.grammar[numbers[..., 0], position])
            torch.testing.assert_close(stepped, forced[:, :, position], rtol=1e-4, atol=1e-4)


def test_padding_changes_nothing() -> None:
    model = tiny_model()
    texts = [[3, 7, 7, 1, 12, 4, 4, 9], [5], [2, 2, 6]]
    levels = LEVELS[::100].expand(2, -1)
    together = quantiles(*read(model, pad(texts)), OBJECTIVES, levels)
    values = torch.tensor([[3.2, -14.0]] * 3, dtype=torch.float64)
    shares = cumulative_probabilities(*read(model, pad(texts)), OBJECTIVES, values)
    for row, text in enumerate(texts):
        alone = quantiles(*read(model, torch.tensor([text])), OBJECTIVES, levels)
        torch.testing.assert_close(together[row], alone[0], rtol=1e-3, atol=1e-3)
        share = cumulative_probabilities(*read(model, torch.tensor([text])), OBJECTIVES, values[:1])
        torch.testing.assert_close(shares[row], share[0], rtol=0, atol=1e-5)


def test_a_number_reads_another_only_where_it_may() -> None:
    model = tiny_model()
    numbers = all_spellings()[torch.tensor([[10, 170], [300, 170]])]  # only the first number differs
    texts, objectives = TEXT.expand(2, -1), OBJECTIVES.expand(2, -1)
    visible = torch.zeros(2, 2, 2, dtype=torch.bool)
    blind = model(texts, objectives, numbers, visible)
    torch.testing.assert_close(blind[0, 1], blind[1, 1])
    visible[:, 1, 0] = True
    seeing = model(texts, objectives, numbers, visible)
    assert (seeing[0, 1] - seeing[1, 1]).abs().max() > 0.01
    torch.testing.assert_close(seeing[:, 0], blind[:, 0])


UNKNOWN = torch.full((1, 2), float("nan"), dtype=torch.float64)


def uniform(samples: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=(1, 2, samples)))


def rounded(values: Tensor) -> Tensor:
    """The numbers of the code within whose digits the values lie."""
    return torch.from_numpy(CODE.decode(CODE.encode(values.clamp(-99, 99).numpy().ravel()))).reshape(values.shape)


def conditional_log_probabilities(first: float) -> Tensor:
    """(361,) of every number of the second objective, given a first one."""
    numbers = all_spellings()
    values = torch.from_numpy(CODE.decode(numbers.numpy()))
    pairs = torch.stack([torch.full_like(values, first), values], dim=1)
    return log_probabilities(*read(tiny_model(), TEXT.expand(len(pairs), -1)), OBJECTIVES, pairs, joint=True)[:, 1]


def test_log_probabilities_of_all_numbers_sum_to_one_given_another() -> None:
    given = conditional_log_probabilities(13.0)
    assert float(given.exp().sum()) == pytest.approx(1, abs=1e-5)
    assert (given - conditional_log_probabilities(-2.0)).abs().max() > 0.01


def test_log_probabilities_alone_are_those_of_the_spellings() -> None:
    values = torch.from_numpy(CODE.decode(all_spellings().numpy()))[:, None]
    logs = log_probabilities(*read(tiny_model(), TEXT.expand(len(values), -1)), OBJECTIVES[1:], values, joint=False)[
        :, 0
    ]
    torch.testing.assert_close(logs.exp(), spelling_probabilities(tiny_model(), TEXT, 1), rtol=1e-4, atol=1e-6)


def test_the_first_of_joint_samples_is_distributed_as_if_alone() -> None:
    levels = uniform(500)
    drawn = joint_samples(*read(tiny_model(), TEXT), OBJECTIVES, levels, UNKNOWN)
    torch.testing.assert_close(drawn[:, 0], quantiles(*read(tiny_model(), TEXT), OBJECTIVES[:1], levels[:, :1])[:, 0])


def test_joint_samples_follow_the_conditional_distribution_of_a_known_value() -> None:
    known = torch.tensor([[13.0, float("nan")]], dtype=torch.float64)
    drawn = joint_samples(*read(tiny_model(), TEXT), OBJECTIVES, uniform(20_000), known)
    assert (drawn[0, 0] == 13.0).all()
    spelled = torch.from_numpy(CODE.decode(all_spellings().numpy()))
    share = (rounded(drawn[0, 1])[None, :] <= spelled[:, None] + 1e-9).double().mean(dim=1)
    expected = written(conditional_log_probabilities(13.0).exp()).cumsum(0)
    assert (share - expected).abs().max() < 0.0138  # Kolmogorov-Smirnov, 0.1 %


def test_samples_at_a_low_temperature_are_all_alike() -> None:
    drawn = joint_samples(*read(tiny_model(), TEXT), OBJECTIVES, uniform(50), UNKNOWN, temperature=1e-3)
    assert (rounded(drawn).std(dim=-1) < 1e-9).all()


@pytest.mark.parametrize("temperature", [1e-4, 1.0, 1e8])
def test_samples_depend_on_differences_of_logits_alone(temperature: float) -> None:
    model = tiny_model()
    drawn = joint_samples(*read(model, TEXT), OBJECTIVES, uniform(200), UNKNOWN, temperature)
    model.decoder.head.register_forward_hook(lambda _module, _inputs, logits: logits - 16)
    lower = joint_samples(*read(model, TEXT), OBJECTIVES, uniform(200), UNKNOWN, temperature)
    torch.testing.assert_close(rounded(lower), rounded(drawn))
