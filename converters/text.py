"""Writes graphs as ONNX text and parses ONNX text to models. This is the only file that uses the onnx parser.

The *prelude* is the file ``prelude.onnxtxt``. It defines the functions of the domain ``nn`` (``nn.Conv``, …), which
compute synthetic weights from their attributes, so that texts need not contain weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import onnx.printer
import onnx.shape_inference

from converters.graph import Attributes, AttributeValue, Function, Graph, Node, Reference, kind_of
from converters.limits import excess_of_model, excess_of_text
from converters.tensor_types import with_sizes

IR_VERSION = 13
OPSET = 26
OWN_DOMAINS = ("nn", "block")


class OnnxTextError(ValueError):
    """Text that is not a valid ONNX model."""


def write(graph: Graph) -> str:
    """Return the text of a graph, with values named v0, v1, … in order; it equals what ``onnx.printer`` would print."""
    names = _value_names(graph.inputs, graph.nodes)
    inputs = ", ".join(f"{_type(graph, x)} {names[x]}" for x in graph.inputs)
    outputs = ", ".join(f"{_type(graph, x)} {names[x]}" for x in graph.outputs)
    lines = [
        "<",
        f"   ir_version: {IR_VERSION},",
        f"   opset_import: [{', '.join(_opsets(graph.domains))}]",
        ">",
        f"network ({inputs}) => ({outputs}) {{",
        *_node_lines(graph.nodes, names),
        "}",
    ]
    for function in graph.functions:
        lines += _function_lines(function, graph.domains)
    return "\n".join(lines)


def parse(onnx_text: str) -> onnx.ModelProto:
    """Parse a text to a model, without adding the prelude.

    Raises:
        OnnxTextError: it is no string or does not parse; the message has the parser's position and reason.
    """
    if not isinstance(onnx_text, str):
        raise OnnxTextError(f"ONNX text: expected a string, got {type(onnx_text).__name__}. Read files beforehand.")
    if "\0" in onnx_text:  # the parser would stop there and ignore the rest
        raise OnnxTextError(f"ONNX text: expected text, got a zero byte at character {onnx_text.index(chr(0))}.")
    if excess := excess_of_text(onnx_text):
        raise OnnxTextError(f"ONNX text: {excess}.")
    try:
        onnx_text.encode()  # the parser has no useful message for a lone surrogate
        return onnx.parser.parse_model(onnx_text)
    except (onnx.parser.ParseError, UnicodeEncodeError) as e:
        raise OnnxTextError(f"ONNX text: expected onnx.parser syntax, got an error: {_one_line(e)}") from e
    except Exception as e:  # errors from C++ have no common base class
        raise OnnxTextError(f"ONNX text: expected numbers in range, got an error: {_one_line(e)}") from e


def print_model(model: onnx.ModelProto) -> str:
    """Return the text of a model as ``onnx.printer`` prints it."""
    return str(onnx.printer.to_text(model))


def to_model(onnx_text: str) -> onnx.ModelProto:
    """Return a model that ONNX Runtime can run: the text with the functions of the prelude, which make the weights.

    Functions of the prelude that the text defines itself are not replaced.

    Raises:
        OnnxTextError: the text does not parse, it calls a function that is defined neither in it nor in the prelude
            (it may have been cut off), or the full checker rejects the model.
    """
    model = parse(onnx_text)
    present = {(function.domain, function.name) for function in model.functions}
    model.functions.extend(f for f in prelude_functions() if (f.domain, f.name) not in present)
    _check_calls(model)
    if excess := excess_of_model(model):
        raise OnnxTextError(f"ONNX text: {excess}.")
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise OnnxTextError(f"ONNX text: expected a model that onnx.checker accepts, got: {_one_line(e)}") from e
    return model


def prelude() -> str:
    """Return the prelude as ONNX text; a text with the prelude appended is a complete model."""
    return files("converters").joinpath("prelude.onnxtxt").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def prelude_functions() -> Sequence[onnx.FunctionProto]:
    """Return the parsed functions of the prelude."""
    header = f"<ir_version: {IR_VERSION}, opset_import: [{', '.join(_opsets({}))}]>\nempty () => () {{}}\n"
    return list(onnx.parser.parse_model(header + prelude()).functions)


def _check_calls(model: onnx.ModelProto) -> None:
    """Check that every called function of our domains is defined; onnx.checker ignores calls into unknown domains."""
    defined = {(function.domain, function.name) for function in model.functions}
    for body in (model.graph, *model.functions):
        for node in body.node:
            if node.domain in OWN_DOMAINS and (node.domain, node.op_type) not in defined:
                raise OnnxTextError(
                    f"ONNX text: expected every function it calls to be defined, got {node.domain}.{node.op_type} "
                    f"in {body.name}. Was the text cut off?"
                )


def _one_line(error: Exception) -> str:
    first = error.args[0] if error.args else ""
    message = first.decode(errors="replace") if isinstance(first, bytes) else str(error)
    return " ".join(message.split())


def _opsets(domains: Mapping[str, int]) -> list[str]:
    own = {"": OPSET, **dict.fromkeys(OWN_DOMAINS, 1)}
    return [f'"{domain}" : {version}' for domain, version in (own | dict(sorted(domains.items()))).items()]


def _function_lines(function: Function, domains: Mapping[str, int]) -> list[str]:
    names = _value_names(function.inputs, function.nodes)
    parameters = f"<{','.join(function.parameters)}>" if function.parameters else ""
    inputs = ", ".join([names[x] for x in function.inputs])
    outputs = ", ".join([names[x] for x in function.outputs])
    return [
        "<",
        '  domain: "block",',
        f"  opset_import: [{','.join(_opsets(domains))}]",
        ">",
        f"{function.name} {parameters}({inputs}) => ({outputs})",
        "{",
        *_node_lines(function.nodes, names),
        "}",
    ]


def _value_names(inputs: Sequence[str], nodes: Sequence[Node]) -> dict[str, str]:
    values = [*inputs, *(x for node in nodes for x in node.outputs)]
    return {x: f"v{index}" for index, x in enumerate(values)} | {"": '""'}


def _node_lines(nodes: Sequence[Node], names: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for op_type, inputs, outputs, attributes, _ in nodes:
        made = ", ".join([names[x] for x in outputs])
        read = ", ".join([names[x] for x in inputs])
        lines.append(f"   {made} = {op_type} {_spell_attributes(attributes)}({read})")
    return lines


def _spell_attributes(attributes: Attributes) -> str:
    if not attributes:
        return ""
    return f"<{', '.join([f'{name}: {_spell(value)}' for name, value in attributes])}> "


def _spell(value: AttributeValue) -> str:
    if isinstance(value, Reference):
        return f"{value.kind} = @{value.name}"
    if isinstance(value, tuple):
        if value and type(value[0]) is int:
            return f"ints = [{', '.join(map(str, value))}]"
        return f"{kind_of(value)} = [{', '.join([_spell_one(item) for item in value])}]"
    return f"{kind_of(value)} = {_spell_one(value)}"


def _spell_one(value: float | str) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int):
        return str(value)
    return _spell_float(repr(value))  # 0.0 == -0.0, so a cache by value would mix them up


@lru_cache(maxsize=1 << 10)  # the same few bounds and factors occur many times
def _spell_float(value: str) -> str:
    """Return the fewest digits that give the same 32-bit float, in scientific notation if that is shorter."""
    with np.errstate(over="ignore"):  # a number of 64 bits may be infinite in 32
        short = np.float32(float(value))
    plain = f"{short:.0f}" if short.is_integer() else np.format_float_positional(short, trim="-")
    return min(plain, np.format_float_scientific(short, trim="-", exp_digits=2), key=len)


def _type(graph: Graph, x: str) -> str:
    return graph.types[x] if x in graph.types else with_sizes("float", graph.shapes[x])
