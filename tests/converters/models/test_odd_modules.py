"""Torch modules with numbers other than floats, and what torch and ONNX Runtime do wrongly."""

import io

import onnx
import pytest
import torch
from torch import nn

from converters import (
    OnnxModelError,
    export_module,
    model_to_graph,
    model_to_onnx_text,
    module_to_onnx_text,
    statistics,
    to_model,
)

pytestmark = pytest.mark.usefixtures("conversions")


class ComplexLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4, dtype=torch.cfloat))

    def forward(self, x):
        return (torch.complex(x, x) @ self.weight).abs()


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, x):
        return self.layer(x.permute(0, -2, -1, 1))


class DecidingByBuffer(nn.Module):
    """Neither exporter takes it; the newer one prints how far it came."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 8)
        self.register_buffer("threshold", torch.tensor(3))

    def forward(self, x):
        y = torch.fft.rfft(self.layer(x)).abs()
        return 2 * y if max(self.threshold, torch.tensor(x.shape[1])) >= 3 else y


def quantised():
    ao = torch.ao.quantization
    ends, layers = (ao.QuantStub(), ao.DeQuantStub()), (nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    network = nn.Sequential(ends[0], *layers, ends[1]).eval()
    network.qconfig = ao.get_default_qconfig(torch.backends.quantized.supported_engines[-1])
    ao.prepare(network, inplace=True)
    network(torch.randn(1, 3, 8, 8))
    return ao.convert(network)


def test_a_module_whose_parameters_are_complex_takes_real_numbers():
    counts = statistics(model_to_graph(export_module(ComplexLinear(), (1, 8))))
    assert (counts.params, counts.macs) == (2 * 8 * 4, 4 * 8 * 4)  # two numbers each, multiplied each with each


def test_axes_that_are_permuted_may_be_counted_from_the_end():
    onnx_text = module_to_onnx_text(ChannelsLast(), (1, 4, 5, 6))
    assert "Transpose <perm: ints = [0, 2, 3, 1]>" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text


@pytest.mark.filterwarnings("ignore")
def test_zeros_around_what_is_pooled_are_seen():
    layer = nn.Conv2d(3, 4, 1)
    nn.init.constant_(layer.bias, -20)  # so that the zeros are the largest
    onnx_text = module_to_onnx_text(nn.Sequential(layer, nn.ConstantPad2d(1, 0.0), nn.MaxPool2d(3, 2)), (1, 3, 9, 9))
    assert "Pad (" in onnx_text


def test_weights_that_torch_has_quantised_count_like_those_of_a_file():
    module, buffer = quantised(), io.BytesIO()
    torch.onnx.export(module, (torch.randn(1, 3, 8, 8),), buffer, dynamo=False)
    of_file, of_module = (
        statistics(model_to_graph(proto))
        for proto in (onnx.load_from_string(buffer.getvalue()), export_module(module, (1, 3, 8, 8)))
    )
    assert of_file.params == of_module.params == 4 * 28 + 5 * 145
    assert of_file.macs == of_module.macs == 36 * 4 * 27 + 5 * 144


def test_nothing_but_the_refusal_is_told(capfd):
    with pytest.raises(OnnxModelError, match="'aten::fft_rfft' to ONNX opset version 20 is not supported"):
        export_module(DecidingByBuffer(), (1, 4))
    assert capfd.readouterr() == ("", "")


def test_an_input_without_elements_is_refused():
    with pytest.raises(OnnxModelError, match=r"expected sizes of 1 or more, got 1,0,4"):
        export_module(nn.Linear(4, 4), (1, 0, 4))
