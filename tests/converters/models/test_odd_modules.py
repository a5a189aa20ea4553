"""Torch modules with numbers other than floats, and what torch's older exporter writes wrongly."""

import torch
from torch import nn

from converters import export_module, model_to_graph, model_to_onnx_text, module_to_onnx_text, statistics, to_model


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


def test_a_module_whose_parameters_are_complex_takes_real_numbers():
    counts = statistics(model_to_graph(export_module(ComplexLinear(), (1, 8))))
    assert (counts.params, counts.macs) == (2 * 8 * 4, 4 * 8 * 4)  # two numbers each, multiplied each with each


def test_axes_that_are_permuted_may_be_counted_from_the_end():
    onnx_text = module_to_onnx_text(ChannelsLast(), (1, 4, 5, 6))
    assert "Transpose <perm: ints = [0, 2, 3, 1]>" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text
