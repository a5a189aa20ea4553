"""Convert a network to plain ONNX text, with standard operators and not simplified, for comparison."""

from typing import Any

import onnx
import onnx.inliner
from onnx import ModelProto, NodeProto, TensorProto, helper

from converters.graph import Graph, Node, Shape
from converters.text import IR_VERSION, OPSET, prelude_functions, print_model

LAYERS = {"nn.Conv": "Conv", "nn.ConvBias": "Conv", "nn.Linear": "Gemm", "nn.LinearBias": "Gemm"}  # ours to ONNX's


def to_flat_text(faithful: Graph) -> str:
    """Return the text that ``onnx.printer`` prints for a faithful graph, with weights as inputs without values.

    Names are as short as possible: values v0, v1, … and weights w0, w1, …. The graph has the name that torch gives.
    """
    weights: dict[str, Shape] = {}
    nodes = [_to_standard(node, weights) for node in faithful.nodes]
    inputs = {x: faithful.shapes[x] for x in faithful.inputs} | weights
    body = helper.make_graph(
        nodes, "main_graph", _typed(inputs), _typed({x: faithful.shapes[x] for x in faithful.outputs})
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("nn", 1)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION, functions=prelude_functions())
    flat = onnx.inliner.inline_local_functions(model)
    del flat.opset_import[1:]
    _rename(flat, weights)
    return print_model(flat)


def _typed(shapes: dict[str, Shape]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape) for x, shape in shapes.items()]


def _to_standard(node: Node, weights: dict[str, Shape]) -> NodeProto:
    """Convert a layer to the standard operator that reads its weights; our other functions are inlined later."""
    attributes: dict[str, Any] = dict(node.attributes)
    domain, _, op_type = node.op_type.rpartition(".")
    own: dict[str, Shape] = {}
    if node.weights:
        domain, op_type = "", LAYERS.get(node.op_type, op_type)
        shape = attributes.pop("weight_shape")
        assert isinstance(shape, tuple), f"layer {node} has no weight shape"
        shapes = [shape] * 4 if op_type == "BatchNormalization" else [shape, shape[:1]]
        own = {f"w{len(weights) + index}": s for index, s in enumerate(shapes[: _num_tensors(node.op_type)])}
        weights.update(own)
    if op_type == "Gemm":
        attributes["transB"] = 1
    return helper.make_node(op_type, [*node.inputs, *own], node.outputs, domain=domain, **attributes)


def _num_tensors(op_type: str) -> int:
    if op_type == "nn.BatchNormalization":
        return 4
    return 2 if op_type.endswith("Bias") else 1


def _rename(model: ModelProto, weights: dict[str, Shape]) -> None:
    names = {x: x for x in weights}
    made = [x for node in model.graph.node for x in node.output]
    values = [value.name for value in model.graph.input if value.name not in weights] + made
    names |= {x: f"v{index}" for index, x in enumerate(values)}
    for node in model.graph.node:
        node.ClearField("name")  # set by the inliner
        for places in (node.input, node.output):
            for index, x in enumerate(places):
                places[index] = names[x]
    for value in (*model.graph.input, *model.graph.output):
        value.name = names[value.name]
