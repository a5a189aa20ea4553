"""The search spaces' networks, written in torch by themselves: exported, they give the texts of our converters."""

import json
import random
import warnings

import pytest
import torch
from torch import nn

from converters import model_to_onnx_text, to_onnx_text
from converters.models.torch_module import export_module
from spaces import get_space
from tests.converters.golden import notation
from tests.converters.rendered import NETWORKS, module_of, rendered_goldens

pytestmark = pytest.mark.usefixtures("conversions")


def rows(counts, seed):
    """Goldens by space: as many as ``counts`` says."""
    for name, count in counts.items():
        for row in random.Random(seed).sample(rendered_goldens(name), count):
            yield pytest.param(name, row, id=f"{name} {json.dumps(row['genotype'])[:60]}")


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


def export_as_torch_does_by_default(module, input_shape):
    """Batch norms become numbers there; biases of 0, as those of new batch norms, are left out."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module.eval(), (torch.zeros(*input_shape),), dynamo=True, verbose=False)
    return program.model_proto


def check_same_text(name, row):
    module, space = module_of(name, row), get_space(name)
    assert sum(parameter.numel() for parameter in module.parameters()) == row["params"]  # the rendering is right
    model = export_module(module, tuple(row["input_shape"]))
    expected = to_onnx_text(space, space.parse(notation(row)))
    assert model_to_onnx_text(model) == expected
    assert model_to_onnx_text(scrambled(model, seed=0)) == expected


@pytest.mark.parametrize(("name", "row"), list(rows({"nasbench201": 2, "hiaml": 1}, seed=0)))
def test_torch_gives_the_converters_text(name, row):
    check_same_text(name, row)


MANY = dict.fromkeys(NETWORKS, 20)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), list(rows(MANY, seed=1)))
def test_torch_gives_the_converters_text_for_many(name, row):
    check_same_text(name, row)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), list(rows(dict.fromkeys(NETWORKS, 3), seed=2)))
def test_torchs_default_exporter_gives_the_converters_text(name, row):
    model = export_as_torch_does_by_default(module_of(name, row), row["input_shape"])
    space = get_space(name)
    assert model_to_onnx_text(model) == to_onnx_text(space, space.parse(notation(row)))
