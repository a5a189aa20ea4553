"""An exported model computes what its torch module does, or is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, module_to_onnx_text, statistics
from converters.models import same_answers
from converters.models.torch_module import export_module
from tests.converters.onnx_models import outputs

pytestmark = pytest.mark.usefixtures("conversions")


class Computing(nn.Module):
    """Computes what a function does, with a parameter beside it."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function, self.layer = function, nn.Linear(8, 8)

    def forward(self, x):
        return self.function(self.layer(x))


def test_a_model_with_loops_is_refused_without_being_run(monkeypatch):
    """ONNX Runtime 1.31 would end the process."""
    run_models = []
    monkeypatch.setattr(same_answers, "session_of", lambda *_: run_models.append("one"))
    with pytest.raises(OnnxModelError, match="without loops and branches"):
        module_to_onnx_text(nn.EmbeddingBag(8, 8), (2, 4))
    assert not run_models


def test_a_model_that_computes_something_else_is_refused():
    """Both of torch's exporters leave this divisor out."""
    with pytest.raises(OnnxModelError, match=r"what the module computes, got .* differ from .* up to [\d.]+\. "):
        module_to_onnx_text(Computing(lambda x: nn.functional.avg_pool2d(x, 2, divisor_override=3)), (1, 3, 8, 8))


def products(x):
    """One exporter turns the wrong axes, because it does not know how many there are, and the sizes do not fit."""
    parts = x[:, -1:].repeat_interleave(x.shape[1] % 4 + 4, dim=-2).view(1, -1, 2, 4).permute(0, 2, 1, 3)
    return parts @ parts.transpose(-1, -2)


@pytest.mark.parametrize(
    ("function", "op_type"),
    [(lambda x: x // 0.3, "Floor"), (lambda x: nn.functional.softplus(x, 2.0, 1.0), "Where"), (products, "MatMul")],
    ids=["floor", "threshold", "sizes"],
)
def test_what_one_exporter_mistakes_is_taken_from_the_other(function, op_type):
    torch.manual_seed(0)
    module = Computing(function).eval()
    exported = export_module(module, (1, 3, 8))
    assert statistics(model_to_graph(exported)).params == 72
    assert f"{op_type} (" in model_to_onnx_text(exported)
    x = np.random.default_rng(0).normal(size=(1, 3, 8)).astype(np.float32)
    np.testing.assert_allclose(outputs(exported, x)[0], module(torch.from_numpy(x)).detach(), rtol=1e-4, atol=1e-5)


def chaotic(x):
    """Each step enlarges what rounding has left."""
    for _ in range(12):
        x = torch.sin(20 * x)
    return x


def without_numbers():
    layer = nn.Linear(8, 8)
    nn.init.constant_(layer.weight, float("nan"))
    return layer


def chosen(x):
    """Numbers at places that are all as good."""
    x = torch.cat([x] * 20, dim=-1)
    return x.gather(-1, (0 * x).topk(9).indices)


class OfIds(nn.Module):
    """Layers on embedded ids, of which none is as near to another as rounding."""

    def __init__(self, layer, depth, dtype=torch.float32):
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        self.layers = nn.ModuleList([nn.Linear(256, 256) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(256) for _ in range(depth)])
        self.layer = layer
        self.to(dtype)

    def forward(self, ids):
        x = self.embedding(ids)
        for linear, norm in zip(self.layers, self.norms, strict=True):
            x = self.layer(norm(linear(x)))
        return x


SOUND = {
    "of 16 bits and many layers": lambda: OfIds(lambda x: (2 * x).tanh(), 60, torch.float16),
    "drawn": lambda: Computing(nn.functional.dropout),
    "one of equals": lambda: Computing(chosen),
    "coarse in ONNX Runtime": lambda: Computing(lambda x: nn.functional.logsigmoid(9 * x)),
    "chaotic": lambda: Computing(chaotic),
    "not a number": without_numbers,
    "too large": lambda: Computing(lambda x: (200 * x).exp()),
    "of 16 bits": lambda: nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)]).half(),
    "that ONNX Runtime cannot run": lambda: nn.Conv1d(3, 3, 3).bfloat16(),
    "written into": lambda: nn.Sequential(nn.ELU(inplace=True), nn.Linear(8, 8)),
    "indices": lambda: Computing(lambda x: nn.functional.one_hot(x.long().clamp(0, 3), 4).float()),
    "several": lambda: nn.LSTM(8, 4),
    "norm without statistics": lambda: nn.BatchNorm1d(3, track_running_stats=False),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_exported_soundly_is_not_refused(name):
    torch.manual_seed(0)
    assert module_to_onnx_text(SOUND[name](), (2, 3, 8))
