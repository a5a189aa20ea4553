"""Modules that decide by values are refused, and left as they are; what they answer beside tensors is no matter."""

from copy import deepcopy
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from converters import OnnxModelError, module_to_onnx_text

pytestmark = pytest.mark.usefixtures("conversions")


class Deciding(nn.Module):
    """Looks at its input, at its size or at a buffer, as it is told."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.layer, self.other = what, nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("switch", torch.tensor(True))

    def forward(self, x):
        looks = {
            "value": lambda: x.mean() > 0.1,
            "number": lambda: x.sum().item() > 0,
            "numpy": lambda: x.detach().numpy().max() > 0,
            "equality": lambda: torch.equal(x, torch.zeros_like(x)),
            "equal": lambda: x.equal(torch.zeros_like(x)),
            "contained": lambda: 0 in x,
            "number of some": lambda: (x <= 0).nonzero().shape[0] > 3,
            "length of some": lambda: len(x[x > 0]),
            "size": lambda: x.shape[0] * 2 > 1 and int(x.shape[1]) == 4,
            "buffer": lambda: self.switch,
        }
        return self.layer(x) if looks[self.what]() else self.other(self.other(x))


@pytest.mark.parametrize("what", ["value", "number", "numpy", "equality", "equal", "contained"])
def test_decisions_by_values_of_the_input_are_refused(what):
    with pytest.raises(
        OnnxModelError, match=r"every input, got a decision that depends on its values in test_.*, line \d+"
    ):
        module_to_onnx_text(Deciding(what), (1, 4))


@pytest.mark.parametrize("what", ["number of some", "length of some"])
def test_decisions_by_how_many_values_there_are_of_some_kind_are_refused(what):
    with pytest.raises(OnnxModelError, match="expected the same operators for every input, got different ones"):
        module_to_onnx_text(Deciding(what), (1, 4))


class Experts(nn.Module):
    """Each row goes to one of two layers; one that no row of the example goes to is skipped, or not."""

    def __init__(self, *, skips: bool) -> None:
        super().__init__()
        self.gate, self.experts, self.skips = nn.Linear(4, 2), nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]), skips

    def forward(self, x):
        chosen, out = self.gate(x).argmax(-1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            (rows,) = (chosen == number).nonzero(as_tuple=True)
            if not self.skips or rows.numel():
                out = out.index_add(0, rows, expert(x[rows]))
        return out


def test_experts_that_are_skipped_are_refused_and_others_are_all_there():
    torch.manual_seed(0)
    assert module_to_onnx_text(Experts(skips=False), (3, 4)).count("nn.LinearBias") == 3
    with pytest.raises(OnnxModelError, match="expected the same operators for every input"):
        module_to_onnx_text(Experts(skips=True), (3, 4))


class WithCache(nn.Module):
    """Answers as language models do: by name, with a cache and what is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return {"logits": self.layer(x), "cache": SimpleNamespace(keys=x), "loss": None, "step": 3}


def test_what_a_module_answers_beside_tensors_is_no_output():
    assert module_to_onnx_text(WithCache(), (1, 4)) == module_to_onnx_text(nn.Linear(4, 2), (1, 4))


class WithState(nn.Module):
    """Keeps what it has computed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + x.mean(0)
        return self.layer(x) + self.mean


def test_a_module_is_left_as_one_that_can_be_copied_and_saved(tmp_path):
    module = WithState()
    module_to_onnx_text(module, (2, 4))
    assert type(module.mean) is torch.Tensor
    torch.save(deepcopy(module).state_dict(), tmp_path / "module.pt")


@dataclass
class Answer:
    logits: torch.Tensor
    step: int = 1


def test_answers_may_be_dataclasses_and_have_to_hold_tensors():
    layer = nn.Linear(4, 2)
    module = nn.Module()
    module.layer, module.forward = layer, lambda x: Answer(layer(x))
    assert module_to_onnx_text(module, (1, 4)) == module_to_onnx_text(layer, (1, 4))
    module.forward = lambda x: 3
    with pytest.raises(OnnxModelError, match="expected a module that returns tensors, got int"):
        module_to_onnx_text(module, (1, 4))


def test_branches_of_torch_are_refused_as_such():
    module = nn.Module()
    module.forward = lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))
    with pytest.raises(OnnxModelError, match="expected a network without loops and branches, got If"):
        module_to_onnx_text(module, (2, 4))


class Checking(nn.Module):
    """Warns of some values and takes no others; or shifts them, which is no check."""

    def __init__(self, *, shifts: bool) -> None:
        super().__init__()
        self.layer, self.shifts, self.warned = nn.Linear(4, 4), shifts, False

    def forward(self, x):
        if 0 in x[:, [0, -1]]:
            self.warned = True
        if (x > 1e6).any():
            raise ValueError("too large")
        return self.layer(x) + (2 if self.shifts and x.mean() < 0 else 1)


def test_checks_of_values_are_no_decisions():
    assert module_to_onnx_text(Checking(shifts=False), (1, 4)).count("nn.LinearBias") == 1
    with pytest.raises(OnnxModelError, match="expected the same operators for every input, got a decision"):
        module_to_onnx_text(Checking(shifts=True), (1, 4))


@pytest.mark.parametrize("what", ["size", "buffer"])
def test_decisions_by_sizes_and_buffers_are_not(what):
    assert module_to_onnx_text(Deciding(what), (1, 4)).count("nn.LinearBias") == 1
