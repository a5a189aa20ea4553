"""Torch modules with numbers other than floats, and what torch's older exporter writes wrongly."""

import torch
from torch import nn

from converters import export_module, model_to_graph, statistics


class ComplexLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4, dtype=torch.cfloat))

    def forward(self, x):
        return (torch.complex(x, x) @ self.weight).abs()


def test_a_module_whose_parameters_are_complex_takes_real_numbers():
    counts = statistics(model_to_graph(export_module(ComplexLinear(), (1, 8))))
    assert (counts.params, counts.macs) == (2 * 8 * 4, 4 * 8 * 4)  # two numbers each, multiplied each with each
