"""Outlined texts with their blocks written out again, and models to compare names aside."""

import onnx
import onnx.inliner

from converters.text import parse


def inlined(onnx_text: str) -> onnx.ModelProto:
    """The model of a text, its blocks inlined; layers stay calls."""
    model = parse(onnx_text)
    blocks = [(function.domain, function.name) for function in model.functions]
    assert all(domain == "block" for domain, _ in blocks)
    flat = onnx.inliner.inline_selected_functions(model, blocks)
    assert not flat.functions
    return flat


def spelled(model: onnx.ModelProto) -> list[tuple[object, ...]]:
    """Operators with attributes and operands, values numbered in the order in which they are made."""
    numbers = {value.name: index for index, value in enumerate(model.graph.input)}
    nodes: list[tuple[object, ...]] = []
    for node in model.graph.node:
        for x in node.output:
            numbers[x] = len(numbers)
        attributes = sorted((a.name, a.type, str(onnx.helper.get_attribute_value(a))) for a in node.attribute)
        nodes.append((node.domain, node.op_type, attributes, [numbers[x] for x in node.input], len(node.output)))
    return [*nodes, tuple(numbers[value.name] for value in model.graph.output)]
