"""Torch modules: exported and converted, the same text as our own converters', the same numbers as torch."""

import random
import sys

import numpy as np
import onnx
import onnxruntime
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
    to_onnx_text,
)
from converters.text import parse, print_model
from converters.torch_module import export_module, load_module
from spaces import get_space
from tests.converters.networks import (
    MOBILENET_V3_LARGE,
    MobileNetV3,
    NASBench201Network,
    RecurrentClassifier,
    ResNet,
    VisionTransformer,
)
from tests.spaces.contract import rng

TINY = {
    "resnet": (lambda: ResNet((2, 1, 2, 1), 8, 10), (1, 3, 32, 32)),
    "mobilenet": (lambda: MobileNetV3(MOBILENET_V3_LARGE[:8], 10), (1, 3, 32, 32)),
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


def run(model, array):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: array})


def check(module, shape, classes):
    """A module's text: valid, printed as it stands, runs, and counts the module's parameters."""
    graph = model_to_graph(export_module(module, shape))
    onnx_text = module_to_onnx_text(module, shape)
    assert print_model(parse(onnx_text)) == onnx_text
    model = to_model(onnx_text)
    integers = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT64
    (output,) = run(model, np.zeros(shape, np.int64 if integers else np.float32))
    assert output.shape == (shape[0], classes)
    assert np.isfinite(output).all()
    assert statistics(graph).params == sum(parameter.numel() for parameter in module.parameters())
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


@pytest.mark.parametrize("opset", [14, 17, 20])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("name", ["resnet", "mobilenet", "transformer"])
def test_the_text_does_not_depend_on_how_torch_exported(name, opset, folded, tmp_path):
    factory, shape = TINY[name]
    module = factory().eval()
    mode = torch.onnx.TrainingMode.EVAL if folded else torch.onnx.TrainingMode.PRESERVE
    path = str(tmp_path / "m.onnx")
    with pytest.warns(DeprecationWarning, match=r"."):
        torch.onnx.export(
            module, (torch.zeros(shape),), path, dynamo=False, opset_version=opset, training=mode,
            input_names=["image"], dynamic_axes={"image": {0: "batch"}},
        )  # fmt: skip
    assert model_to_onnx_text(path) == module_to_onnx_text(module, shape)


def nasbench201(count):
    space = get_space("nasbench201")
    return [pytest.param(space.sample(rng(seed)), id=str(seed)) for seed in range(count)]


def scrambled(model, seed):
    """The same model, nodes in another order and every name another."""
    draw, names = random.Random(seed), {"": ""}
    made = {x for node in model.graph.node for x in node.output}
    waiting, ordered, known = list(model.graph.node), [], set()
    while waiting:
        node = draw.choice([n for n in waiting if all(x in known or x not in made for x in n.input)])
        waiting.remove(node)
        ordered.append(node)
        known.update(node.output)
    for node in ordered:
        for places in (node.input, node.output):
            for index, x in enumerate(places):
                places[index] = names.setdefault(x, f"s{draw.random()}")
        node.name = ""
    del model.graph.node[:]
    model.graph.node.extend(ordered)
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        value.name = names.setdefault(value.name, f"s{draw.random()}")
    del model.graph.value_info[:]
    return model


def check_same_text(space, architecture, module, shape, seed=0):
    model = export_module(module, shape)
    expected = to_onnx_text(space, architecture)
    assert model_to_onnx_text(model) == expected
    assert model_to_onnx_text(scrambled(model, seed)) == expected


@pytest.mark.parametrize("architecture", nasbench201(3))
def test_nasbench201_from_torch_is_the_same_text(architecture):
    space = get_space("nasbench201")
    check_same_text(space, architecture, NASBench201Network(space.format(architecture)), (1, 3, 32, 32))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", nasbench201(20))
def test_many_nasbench201_from_torch_are_the_same_text(architecture):
    space = get_space("nasbench201")
    check_same_text(space, architecture, NASBench201Network(space.format(architecture)), (1, 3, 32, 32))


def test_layers_with_equal_numbers_stay_two_layers():
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.b.load_state_dict(self.a.state_dict())

        def forward(self, x):
            return self.a(x) * self.b(x)

    assert module_to_onnx_text(Twins(), (1, 8)).count("nn.LinearBias") == 2


def test_one_layer_used_twice_counts_once():
    layer = nn.Linear(8, 8)
    counts = statistics(model_to_graph(export_module(nn.Sequential(layer, nn.ReLU(), layer), (1, 8))))
    assert (counts.params, counts.macs) == (72, 128)


def test_export_leaves_the_module_as_it_is():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4)).train()
    module[1].eval()
    export_module(module, (1, 4))
    assert [part.training for part in module] == [True, False, True]


def test_a_module_that_fails_is_refused_in_one_line():
    with pytest.raises(OnnxModelError, match=r"expected a module that takes 1,4, got: .*") as caught:
        module_to_onnx_text(nn.Linear(3, 2), (1, 4))
    assert "\n" not in str(caught.value)


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    (tmp_path / "users_nets.py").write_text(
        "from torch import nn\n"
        "def net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(12, 2))\n"
        "def other():\n    return 3\n"
        "def needs(size):\n    return nn.Linear(size, 2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "users_nets"
    sys.modules.pop("users_nets", None)


def test_a_function_that_returns_a_module(user_module):
    assert "nn.LinearBias" in module_to_onnx_text(load_module(f"{user_module}:net"), (1, 3, 2, 2))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_package.nets:net", "expected an importable module no_such_package.nets, got: No module named"),
        ("users_nets:missing", "expected a function missing in users_nets, got none"),
        ("users_nets:other", "expected a function that returns a torch.nn.Module, got int"),
        ("users_nets:needs", "expected a function without arguments, got: .*missing 1 required"),
    ],
)
def test_functions_that_do_not_are_refused(user_module, name, message):
    with pytest.raises(OnnxModelError, match=f"^{name}: {message}"):
        load_module(name)
