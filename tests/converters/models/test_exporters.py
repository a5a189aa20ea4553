"""One network, one text: what torch's two exporters write differently."""

import io

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional

from converters import model_to_graph, model_to_onnx_text, module_to_onnx_text, statistics
from tests.converters.onnx_models import run

pytestmark = pytest.mark.usefixtures("conversions")


class Computing(nn.Module):
    """A function of the input and of layers."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x):
        return self.function(x, *self.layers)


def gated(x, norm, layer, other):
    gate, value = layer(norm(x)).split([5, 3], -1)
    return functional.silu(gate[..., :3]) * other(value)


def attended(x, queries):
    return functional.scaled_dot_product_attention(queries(x), x, x)


def attended_to_all(x, queries):  # as in encoders of transformers
    everything = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool)
    return functional.scaled_dot_product_attention(queries(x), x, x, attn_mask=everything)


def attended_at_once(x, layer):  # queries, keys and values of one layer, as in vision transformers
    rows, heads = x.shape[:2], (3, 2, x.shape[-1] // 2)
    q, k, v = layer(x).reshape(*rows, *heads).permute(2, 0, 3, 1, 4).unbind(0)
    return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def attended_in_groups(x, queries, layer):  # each key and value for two heads
    q, both = [y.unflatten(-1, (4, 2)).transpose(1, 2) for y in (queries(x), layer(x))]
    k, v = [y.repeat_interleave(2, 1) for y in both.chunk(2, 1)]
    return functional.scaled_dot_product_attention(q, k, v)


def pooled_and_normed(x, norm):  # the head of a ConvNeXt, behind a block that ends with channels last
    x = norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    return norm(functional.adaptive_avg_pool2d(x, 1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def joined(x, layer):
    return torch.cat([x.sigmoid(), torch.cat([layer(x), x.relu()], 1), x.tanh()], 1)


def attended_in_layer(x, layer):
    return layer(x, x, x, need_weights=False)[0]


def encoder_layer():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)


IMAGE, ROWS = (1, 8, 6, 6), (1, 2, 5, 8)
DIFFERENT = {
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(8, 6, 3, 2, bias=False), nn.BatchNorm2d(6)), IMAGE),
    "transposed, biased": (lambda: nn.Sequential(nn.ConvTranspose2d(8, 6, 3, 2), nn.BatchNorm2d(6)), IMAGE),
    "transposed, of a row": (lambda: nn.Sequential(nn.ConvTranspose1d(8, 6, 4, 2), nn.BatchNorm1d(6)), (1, 8, 9)),
    "circular": (lambda: nn.Conv2d(8, 8, 3, padding=(1, 2), padding_mode="circular"), IMAGE),
    "circular, of a row": (lambda: nn.Conv1d(8, 8, 4, padding="same", padding_mode="circular"), (1, 8, 9)),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(8, bias=False), nn.Linear(8, 8), nn.LayerNorm(8)), ROWS),
    "layer norm of images": (lambda: nn.LayerNorm((6, 6), bias=False), IMAGE),
    "one slope": (lambda: nn.Sequential(nn.Conv2d(8, 8, 1), nn.PReLU()), IMAGE),
    "slopes": (lambda: nn.Sequential(nn.Conv2d(8, 8, 1), nn.PReLU(8)), IMAGE),
    "square": (lambda: Computing(lambda x: functional.relu(x).square()), ROWS),
    "softplus": (nn.Softplus, IMAGE),
    "clamped": (lambda: Computing(lambda x: x.clamp(-1, 2) + x.clamp(max=1)), IMAGE),
    "root of the inverse": (lambda: Computing(lambda x: (x * x + 1).rsqrt()), IMAGE),
    "attention": (lambda: Computing(attended, nn.Linear(8, 8)), ROWS),
    "attention to all": (lambda: Computing(attended_to_all, nn.Linear(8, 8)), ROWS),
    "attention of one layer": (lambda: Computing(attended_at_once, nn.Linear(8, 24)), (1, 5, 8)),
    "attention of one layer, two rows": (lambda: Computing(attended_at_once, nn.Linear(8, 24)), (2, 5, 8)),
    "attention in groups": (lambda: Computing(attended_in_groups, nn.Linear(8, 8), nn.Linear(8, 8)), (1, 5, 8)),
    "attention of a batch": (lambda: Computing(attended_in_layer, nn.MultiheadAttention(8, 2)), (5, 3, 8)),
    "transformer": (lambda: nn.TransformerEncoder(encoder_layer(), 1, enable_nested_tensor=False), (1, 5, 8)),
    "pooled and normed": (lambda: Computing(pooled_and_normed, nn.LayerNorm(70)), (1, 70, 6, 6)),
    "matrix product": (lambda: Computing(lambda x: torch.mm(x.t(), x)), (4, 8)),
    "concatenations": (lambda: Computing(joined, nn.Conv2d(8, 8, 1)), IMAGE),  # as in an Inception-V3
}
BY_ONE_ALONE = {"split": (lambda: Computing(gated, nn.RMSNorm(8), nn.Linear(8, 8), nn.Linear(3, 3)), ROWS)}


def exported(module, shape):
    return torch.onnx.export(module, (torch.zeros(shape),), dynamo=True, verbose=False, optimize=False)


def exported_by_torch_script(module, shape):
    buffer = io.BytesIO()
    with pytest.warns(DeprecationWarning, match="TorchScript"):
        torch.onnx.export(module, (torch.zeros(shape),), buffer, dynamo=False, opset_version=17)
    return onnx.load_from_string(buffer.getvalue())


@pytest.mark.parametrize("name", DIFFERENT | BY_ONE_ALONE)
def test_all_exports_of_a_module_give_one_text(name):
    factory, shape = (DIFFERENT | BY_ONE_ALONE)[name]
    module = factory().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    program = exported(module, shape)
    models = [program.model_proto]
    program.optimize()  # as the exporter does unless told otherwise
    models.append(program.model_proto)
    if name in DIFFERENT:
        models.append(exported_by_torch_script(module, shape))
    assert {model_to_onnx_text(model) for model in models} == {module_to_onnx_text(module, shape)}
    assert statistics(model_to_graph(models[0])).params == sum(parameter.numel() for parameter in module.parameters())


FUNCTIONS = {
    "circular": (lambda x: functional.pad(x, (1, 2, 3, 0), mode="circular"), IMAGE),
    "softplus": (lambda x: functional.softplus(30 * x), IMAGE),
    "attention": (lambda x: functional.scaled_dot_product_attention(x, x, x), ROWS),
    "matrix product": (lambda x: torch.mm(x.t(), x), (4, 8)),
    "turned twice": (lambda x: x[0].permute(1, 0, 2).unsqueeze(1).permute(3, 1, 0, 2).exp(), ROWS),
    "pooled": (lambda x: functional.adaptive_avg_pool2d(x.transpose(1, 3).exp().transpose(1, 3), 1), IMAGE),
    "repeated": (lambda x: x.repeat_interleave(3, 1) + x.repeat(1, 3, 1, 1) * x[:, :1].expand(1, 6, 5, 8), ROWS),
    "chunk": (lambda x: x.chunk(3, -1)[-1] - x.split(5, -1)[0][..., :2], ROWS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_computes_what_the_module_does(name):
    function, shape = FUNCTIONS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    (output,) = run(exported(Computing(function).eval(), shape).model_proto, x)
    np.testing.assert_allclose(output, function(torch.from_numpy(x)), rtol=1e-4, atol=1e-5)
