"""Torch modules: exported and converted, the same text as our own converters', the same numbers as torch."""

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from converters import (
    OnnxModelError,
    model_to_graph,
    model_to_onnx_text,
    module_to_onnx_text,
    statistics,
    to_model,
)
from converters.models.torch_module import export_module
from converters.text import parse, print_model
from tests.converters.networks import (
    MOBILENET_V3_LARGE,
    MobileNetV3,
    RecurrentClassifier,
    ResNet,
    VisionTransformer,
)
from tests.converters.onnx_models import outputs, run

pytestmark = pytest.mark.usefixtures("conversions")

TINY = {
    "resnet": (lambda: ResNet((2, 2), 8, 10), (1, 3, 32, 32)),
    "mobilenet": (lambda: MobileNetV3(MOBILENET_V3_LARGE[3:8], 10), (1, 3, 32, 32)),
    "transformer": (lambda: VisionTransformer(16, 4, 16, 2, 2, 10), (1, 3, 16, 16)),
    "transformer of torch's layers": (lambda: VisionTransformer(16, 4, 16, 2, 2, 10, True), (1, 3, 16, 16)),
    "lstm": (lambda: RecurrentClassifier(nn.LSTM, 50, 8, classes=10), (1, 7)),
    "gru": (lambda: RecurrentClassifier(nn.GRU, 50, 8, classes=10, bidirectional=False), (1, 7)),
}
# Parameters as published by torchvision, which counts these networks alike.
WHOLE = {
    "ResNet-50": (ResNet, (1, 3, 224, 224), 25_557_032),
    "MobileNetV3-Large": (MobileNetV3, (1, 3, 224, 224), 5_483_032),
    "ViT-B/16": (VisionTransformer, (1, 3, 224, 224), 86_567_656),
    "ViT-B/16 of torch's layers": (lambda: VisionTransformer(torch_layers=True), (1, 3, 224, 224), 86_567_656),
    "LSTM": (RecurrentClassifier, (1, 64), None),
}


def check(module, shape, classes):
    """A module's text: valid, printed as it stands, runs, and counts the module's parameters."""
    exported = export_module(module, shape)
    onnx_text = model_to_onnx_text(exported)
    assert print_model(parse(onnx_text)) == onnx_text
    model = to_model(onnx_text)
    integers = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT64
    (output,) = outputs(model, np.zeros(shape, np.int64 if integers else np.float32))
    assert output.shape == (shape[0], classes)
    assert np.isfinite(output).all()
    assert statistics(model_to_graph(exported)).params == sum(parameter.numel() for parameter in module.parameters())
    return onnx_text


@pytest.mark.parametrize("name", TINY)
def test_tiny_networks(name):
    factory, shape = TINY[name]
    check(factory(), shape, 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_whole_networks(name):
    factory, shape, params = WHOLE[name]
    module = factory()
    onnx_text = check(module, shape, 5 if name == "LSTM" else 1000)
    assert params in (None, sum(parameter.numel() for parameter in module.parameters()))
    assert len(onnx_text) < 8_000


def check_export(name, opset, path, **options):
    """A user's own export gives the text of ours."""
    factory, shape = TINY[name]
    module = factory().eval()
    example = torch.zeros(shape, dtype=torch.int64 if len(shape) == 2 else torch.float32)  # tokens, or an image
    with pytest.warns(DeprecationWarning, match="TorchScript"):
        torch.onnx.export(module, (example,), path, dynamo=False, opset_version=opset, **options)
    assert model_to_onnx_text(path) == module_to_onnx_text(module, shape)


@pytest.mark.parametrize("name", ["resnet", "transformer"])
def test_a_users_export_gives_the_same_text(name, tmp_path):
    check_export(name, 14, str(tmp_path / "m.onnx"))


@pytest.mark.slow
@pytest.mark.parametrize("opset", [14, 17, 18, 20])
@pytest.mark.parametrize("name", TINY)
def test_any_export_gives_the_same_text(name, opset, tmp_path):
    dynamic = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
    check_export(name, opset, str(tmp_path / "m.onnx"), keep_initializers_as_inputs=opset > 17, **dynamic)


def test_layers_with_equal_numbers_stay_two_layers():
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.b.load_state_dict(self.a.state_dict())

        def forward(self, x):
            return self.a(x) * self.b(x)

    assert module_to_onnx_text(Twins(), (1, 8)).count("nn.LinearBias") == 2


@pytest.mark.parametrize("shape", [(3, 8), (1, 3, 8)])
def test_one_layer_used_twice_counts_once(shape):
    layer = nn.Linear(8, 8)
    counts = statistics(model_to_graph(export_module(nn.Sequential(layer, nn.ReLU(), layer), shape)))
    assert (counts.params, counts.macs) == (72, 3 * 128)


def test_buffers_and_what_a_module_makes_are_no_parameters():
    """A file does not tell them from parameters; a module does."""

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(8, 8), nn.InstanceNorm1d(3)
            self.register_buffer("mask", torch.rand(3, 8))

        def forward(self, x):
            return self.norm(self.layer(x) * self.mask + torch.arange(24.0).reshape(3, 8))

    check_params(Masked(), (1, 3, 8))
    check_params(nn.GRUCell(8, 8), (1, 8))


def test_masks_of_attention_are_no_parameters():
    """They are flags, of which the exporter makes numbers that are added."""

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)
            self.register_buffer("mask", torch.ones(9, 9).tril().bool())

        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, self.layer(x), attn_mask=self.mask)

    check_params(nn.Sequential(Masked(), Masked()), (1, 9, 8))


def test_learned_scores_that_begin_at_zero_are_parameters():
    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(9, 9))

        def forward(self, x):
            shares = (x @ x.transpose(1, 2) + self.bias).softmax(-1)
            return torch.where(shares.isnan(), 0.0, shares) @ x

    check_params(Biased(), (1, 9, 8))


def test_of_normed_weights_direction_and_length_count():
    check_params(nn.utils.parametrizations.weight_norm(nn.Linear(8, 6)), (1, 3, 8))


class Rezero(nn.Module):
    """Its branches start at nothing; the factor is learned."""

    def __init__(self, factor: torch.Tensor) -> None:
        super().__init__()
        self.factor, self.linear, self.one = nn.Parameter(factor), nn.Linear(8, 8), nn.Linear(1, 1)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return self.one((x + self.factor * torch.relu(self.linear(x)) * self.scale)[..., None])


def test_what_a_learned_number_is_makes_no_difference():
    factors = (torch.tensor(0.0), torch.tensor(0.5), torch.tensor([1.0]))
    texts = {check_params(Rezero(factor), (1, 3, 8)) for factor in factors}
    assert len(texts) == 1
    (onnx_text,) = texts
    assert "nn.Weight <weight_shape: ints = [1]>" in onnx_text
    assert "nn.Scale <factor: float = 0.5>" in onnx_text
    assert "nn.LinearBias <weight_shape: ints = [1, 1]>" in onnx_text
    assert outputs(to_model(onnx_text), np.zeros((1, 3, 8), np.float32))[0].shape == (1, 3, 8, 1)


def check_params(module, shape):
    exported = export_module(module, shape)
    assert statistics(model_to_graph(exported)).params == sum(parameter.numel() for parameter in module.parameters())
    return model_to_onnx_text(exported)


def test_export_leaves_the_module_as_it_is():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4)).train()
    module[1].eval()
    export_module(module, (1, 4))
    assert [part.training for part in module] == [True, False, True]


def test_a_module_that_fails_is_refused_in_one_line():
    with pytest.raises(OnnxModelError, match=r"expected a module that takes one tensor of 1,4, got: .*") as caught:
        module_to_onnx_text(nn.Linear(3, 2), (1, 4))
    assert "\n" not in str(caught.value)


class SingularValues(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)


def test_what_the_newer_exporter_would_export_wrongly_is_refused():
    """It leaves the projections of an LSTM out without a word."""

    class Projecting(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 6, proj_size=3)

        def forward(self, x):
            return self.lstm(x)[0]

    with pytest.raises(OnnxModelError, match="LSTMs with projections"):
        module_to_onnx_text(Projecting(), (4, 1, 8))


def test_a_failed_export_prints_nothing(capfd):
    with pytest.raises(OnnxModelError, match=r"expected a module that torch\.onnx\.export takes, got: .*svd") as caught:
        module_to_onnx_text(SingularValues(), (1, 8, 8))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_what_both_exporters_lack_is_told():
    """The older one stops at the differences, which the newer one knows."""

    class Both(SingularValues):
        def forward(self, x):
            return super().forward(x.diff())

    with pytest.raises(
        OnnxModelError, match=r"aten::diff.* The newer exporter does not support aten\._linalg_svd\.$"
    ) as caught:
        module_to_onnx_text(Both(), (1, 8, 8))
    assert "\n" not in str(caught.value)


# What the TorchScript exporter does not know, or makes a branch of.
NEWER = {
    "RMSNorm": (lambda: nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8), nn.LayerNorm(8), nn.RMSNorm(8)), (1, 5, 8)),
    "ChannelShuffle": (
        lambda: nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ChannelShuffle(2)),
        (1, 8, 4, 4),
    ),
    "LocalResponseNorm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.LocalResponseNorm(3)), (1, 3, 4, 4)),
}


@pytest.mark.parametrize("name", NEWER)
def test_what_one_exporter_refuses_the_other_takes(name, capfd):
    factory, shape = NEWER[name]
    module = factory().eval()
    exported = export_module(module, shape)
    assert capfd.readouterr() == ("", "")
    assert statistics(model_to_graph(exported)).params == sum(parameter.numel() for parameter in module.parameters())
    (output,) = run(exported, np.zeros(shape, np.float32))
    assert output.shape == module(torch.zeros(shape)).shape
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(outputs(exported, x)[0], module(torch.from_numpy(x)).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_an_export_that_is_not_optimised_gives_the_same_text(name):
    """It writes casts to the type of a value, and zeros where a convolution has no bias."""
    factory, shape = TINY[name]
    module = factory().eval()
    program = torch.onnx.export(module, (torch.zeros(shape),), dynamo=True, verbose=False, optimize=False)
    assert model_to_onnx_text(program.model_proto) == module_to_onnx_text(module, shape)
    assert statistics(model_to_graph(program.model_proto)) == statistics(model_to_graph(export_module(module, shape)))


@pytest.mark.parametrize("bias", [True, False])
def test_a_batch_norm_after_a_linear_layer_is_the_layers(bias):
    """Torch's default exporter folds it as well."""
    module = nn.Sequential(nn.Linear(8, 6, bias=bias), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1)).eval()
    for part in module.parameters():
        nn.init.normal_(part)
    exported = torch.onnx.export(module, (torch.zeros(4, 8),), dynamo=True, verbose=False)
    onnx_text = module_to_onnx_text(module, (4, 8))
    assert onnx_text.count("nn.LinearBias") == 2
    assert "BatchNormalization" not in onnx_text
    assert model_to_onnx_text(exported.model_proto) == onnx_text


class WithOptions(nn.Module):
    """Takes more than a tensor, as long as nobody says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, factor=2.0, is_causal=False, return_all=None):
        attended = nn.functional.scaled_dot_product_attention(x, x, self.layer(x), is_causal=is_causal)
        return attended * factor


@pytest.mark.parametrize("optimize", [True, False])
def test_a_group_norm_is_one_operator(optimize):
    module = nn.Sequential(nn.Conv2d(3, 64, 3), nn.GroupNorm(32, 64), nn.ReLU())
    for part in module.parameters():
        nn.init.normal_(part)
    shape = (1, 3, 8, 8)
    exported = torch.onnx.export(module.eval(), (torch.zeros(shape),), dynamo=True, optimize=optimize, verbose=False)
    onnx_text = module_to_onnx_text(module, shape)
    assert "GroupNormalization <num_groups: int = 32> (v" in onnx_text
    assert model_to_onnx_text(exported.model_proto) == onnx_text
    (output,) = outputs(to_model(onnx_text), np.zeros(shape, np.float32))
    assert output.shape == (1, 64, 6, 6)
    assert statistics(model_to_graph(exported.model_proto)).params == sum(x.numel() for x in module.parameters())


def test_a_group_norm_in_16_bits_has_weights_of_16_bits():
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8)).half()
    onnx_text = module_to_onnx_text(module, (1, 3, 8, 8))
    assert onnx_text.count("nn.Weight <dtype: int = 10, weight_shape: ints = [8]>") == 3
    (output,) = outputs(to_model(onnx_text), np.zeros((1, 3, 8, 8), np.float16))
    assert (output.shape, output.dtype) == ((1, 8, 6, 6), np.float16)


def test_sizes_are_known_behind_a_group_norm():
    module = nn.Sequential(nn.GroupNorm(2, 4), nn.Unflatten(1, (2, 2)), nn.Softmax(2), nn.Flatten(1, 2))
    onnx_text = module_to_onnx_text(module, (1, 4, 3, 3))
    assert "nn.Reshape <shape: ints = [1, 2, 2, 3, 3]>" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text


def test_options_with_defaults_are_no_inputs():
    onnx_text = module_to_onnx_text(WithOptions(), (1, 2, 3, 4))
    assert "network (float[1,2,3,4] v0) => (float[1,2,3,4] v" in onnx_text
    assert "nn.Scale <factor: float = 2>" in onnx_text


def test_a_transformer_layer_is_a_network():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    assert module_to_onnx_text(layer, (1, 5, 8)).count("nn.LayerNormalization") == 2


def test_what_torch_export_has_made_is_a_module_too():
    module = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    exported = torch.export.export(module.eval(), (torch.zeros(1, 4),)).module()
    assert module_to_onnx_text(exported, (1, 4)) == module_to_onnx_text(module, (1, 4))
