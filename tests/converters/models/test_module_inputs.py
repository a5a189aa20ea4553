"""The inputs of torch modules: one or several, of floats, integers or booleans, which is found by trying."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, module_to_onnx_text, statistics
from converters.models.torch_module import export_module

pytestmark = pytest.mark.usefixtures("conversions")


class OfTokens(nn.Module):
    """Says itself that it takes no floats."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)

    def forward(self, ids):
        if ids.is_floating_point():
            raise ValueError("expected token ids")
        if ids.shape[1] > 8:
            raise ValueError("expected eight ids at most")
        return self.embedding(ids)


def test_a_module_that_refuses_floats_reads_integers():
    assert "(int64[1,4] v0)" in module_to_onnx_text(OfTokens(), (1, 4))
    with pytest.raises(OnnxModelError, match="for floats expected token ids; for integers expected eight ids at most"):
        module_to_onnx_text(OfTokens(), (1, 9))


@pytest.mark.parametrize(
    ("module", "shape", "told"),
    [
        (nn.ReLU, (1, 3), r"expected a torch\.nn\.Module, got <class .* Call a class or function first"),
        (abs, (1, 3), r"expected a torch\.nn\.Module, got <built-in function abs>"),
        (nn.ReLU(), 3, r"expected a shape such as \(1, 3, 224, 224\), batch included, or a list of shapes, got 3"),
        (nn.ReLU(), "1,3", "expected a shape such as .* got '1,3'"),
        (nn.ReLU(), (1, 2.5), r"expected a shape such as .* got \(1, 2\.5\)"),
        (nn.ReLU(), [(1, 2), 3], r"expected a shape such as .* got \[\(1, 2\), 3\]"),
        (
            nn.ReLU(),
            [(1, 2), (1, 3)],
            r"expected a module that takes 2 tensors of 1,2 and 1,3, got: .*forward\(\) takes 2",
        ),
    ],
)
def test_what_is_no_module_or_shape_is_told(module, shape, told):
    with pytest.raises(OnnxModelError, match=told):
        export_module(module, shape)


def test_sizes_may_be_numpys():
    assert module_to_onnx_text(nn.ReLU(), tuple(np.array([1, 3]))) == module_to_onnx_text(nn.ReLU(), (1, 3))


class OfSeveral(nn.Module):
    """Reads an image, something unused, token ids and a mask of them."""

    def __init__(self):
        super().__init__()
        self.convolution, self.embedding = nn.Conv2d(3, 8, 3), nn.Embedding(10, 8)
        self.classifier = nn.Linear(8, 4)

    def forward(self, image, unused, ids, mask):
        words = self.embedding(ids).masked_fill(mask[..., None], 0.0)
        return self.classifier(self.convolution(image).mean((2, 3)) + words.mean(1))


SEVERAL = [(1, 3, 8, 8), (1, 2), (1, 5), (1, 5)]


def test_a_module_of_several_inputs():
    module = OfSeveral().eval()
    model = export_module(module, SEVERAL)
    onnx_text = model_to_onnx_text(model)
    assert "network (float[1,3,8,8] v0, int64[1,5] v1, bool[1,5] v2)" in onnx_text
    assert statistics(model_to_graph(model)).params == sum(x.numel() for x in module.parameters())
    rng = np.random.default_rng(0)
    image, ids = rng.normal(size=(1, 3, 8, 8)).astype(np.float32), rng.integers(10, size=(1, 5))
    given = {"input_0": image, "input_2": ids, "input_3": ids > 4}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = module(*map(torch.from_numpy, (image, image, ids, ids > 4))).detach()
    np.testing.assert_allclose(session.run(None, given)[0], expected, rtol=1e-4, atol=1e-5)


def test_several_inputs_are_checked_like_one():
    class Deciding(OfSeveral):
        def forward(self, image, unused, ids, mask):
            return super().forward(image, unused, ids, mask) * ids.sum().item()

    with pytest.raises(OnnxModelError, match="a decision that depends on its values"):
        export_module(Deciding(), SEVERAL)
    with pytest.raises(OnnxModelError, match=r"floats, floats, integers, floats The size of tensor a \(6\) must"):
        export_module(OfSeveral(), [*SEVERAL[:3], (1, 6)])


class OfMask(nn.Module):
    """Skips a mask that hides nothing, but not while it is traced, as networks of ``transformers`` do."""

    def __init__(self, *, asks: bool):
        super().__init__()
        self.layer, self.asks = nn.Linear(4, 4), asks

    def forward(self, x, mask):
        if not (self.asks and torch.jit.is_tracing()) and mask.bool().all():
            return self.layer(x)
        return self.layer(x).masked_fill(~mask.bool()[..., None], 0.0)


def test_what_is_not_looked_at_in_a_trace_is_no_decision():
    shapes = [(2, 3, 4), (2, 3)]
    assert "Where (" in module_to_onnx_text(OfMask(asks=True), shapes)
    with pytest.raises(OnnxModelError, match="a decision that depends on its values"):
        export_module(OfMask(asks=False), shapes)


def test_kinds_of_many_inputs_are_not_tried_without_end():
    class OfMany(nn.Module):
        runs = 0

        def forward(self, *inputs):
            OfMany.runs += 1
            return self.undefined

    with pytest.raises(OnnxModelError, match="has no attribute 'undefined'"):
        export_module(OfMany(), [(1, 2)] * 16)
    assert OfMany.runs < 6000
