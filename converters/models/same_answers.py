"""Checks that an exported model computes what its module does, as torch's exporters ignore some arguments silently."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.helper import make_tensor_value_info

from converters.errors import OnnxModelError
from converters.models.decisions import copies, tensors_of
from converters.models.onnx_graph import read_graph
from converters.models.onnx_model import has_branches, prepare
from converters.models.onnx_weights import MAX_CONSTANT_NUMBERS
from converters.runtime import session_of

if TYPE_CHECKING:
    import torch

# torch is imported inside functions, see converters/models/torch_module.py.

DISTURBANCE = 10  # noise in units of rounding near 1: about what the rounding within a network adds up to
NOISE = 3  # factor on the difference that the noise makes, since a single draw may happen to make a small one
# Operators that ONNX Runtime approximates coarsely where their results are small or near their maximum.
APPROXIMATED = frozenset({"Sigmoid", "Tanh", "Erf", "Gelu", "Swish"})
# Optimisations of ONNX Runtime 1.31 that change answers: a max pooling would no longer see the zeros around its input.
WRONG = ("Pad_Fusion",)
# Operators with random or ambiguous results: among equal numbers, any may be the largest.
FREE = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
    | {"TopK"}
)


class Answered(NamedTuple):
    """Inputs of a module, and the tensors that the module returns for them."""

    examples: Sequence[torch.Tensor]
    answers: Sequence[torch.Tensor]


def check_answers(model: onnx.ModelProto, module: torch.nn.Module, answered: Answered) -> None:
    """Refuse an exported model whose outputs differ from those of its module clearly beyond rounding.

    A difference counts if it exceeds half of the digits (the square root of the rounding unit, times the largest
    output), plus NOISE times the change of the module's outputs when every layer's output gets noise of the size of
    rounding. If the model has APPROXIMATED operators, onnx's reference implementation, which does not approximate,
    must show the difference too.

    A model that ONNX Runtime does not run is only read, as its sizes may not fit. Not checked: integers, numbers that
    are not finite, models with FREE operators, and models with loops or branches (at those of ``EmbeddingBag`` ONNX
    Runtime 1.31 ends the process).

    Args:
        model: the exported model, with the module's weights.
        module: the module, in the mode in which it was exported.
        answered: inputs and the module's outputs in that mode; the model's inputs have the ``input_names``.

    Raises:
        OnnxModelError: the outputs differ, and the message has the largest difference; or the model can neither be run
            nor read.

    Cost: one inference; large weights are not copied into the session. If the outputs differ, one more run of the
    module; if they still differ and there are APPROXIMATED operators, one run of the reference implementation, which
    takes minutes for large images.
    """
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    operators = {node.op_type for node in nodes}
    if not FREE.isdisjoint(operators) or any(map(has_branches, nodes)):
        return
    try:
        worst = _clear_difference(model, operators, module, answered)
    except Exception:  # of any kind: the model cannot be run
        read_graph(prepare(model))
        return
    if worst:
        raise OnnxModelError(
            "expected torch.onnx.export to write what the module computes, got a model whose outputs for random "
            f"inputs differ from the module's by up to {worst:.2g}. Replace the operators that it exports wrongly."
        )


def _clear_difference(
    model: onnx.ModelProto, operators: Set[str], module: torch.nn.Module, answered: Answered
) -> float:
    """Return the largest difference beyond rounding; 0 if there is none."""
    from onnx.reference import ReferenceEvaluator  # imported here because hardly any module needs it

    expected, unit = _as_arrays(answered.answers), _rounding(module, answered)
    allowed = [math.sqrt(unit) * _difference(x, np.zeros_like(x)) for x in expected]

    def beyond(given: Iterable[Any]) -> float:
        differences = map(_difference, expected, given)
        return max((x for x, limit in zip(differences, allowed, strict=False) if x > limit), default=0.0)

    got = _answers(model, answered.examples)
    if not beyond(got):
        return 0.0
    disturbed = _as_arrays(_disturbed(module, answered.examples, unit))
    allowed = [limit + NOISE * _difference(x, y) for limit, x, y in zip(allowed, expected, disturbed, strict=True)]
    if not (worst := beyond(got)) or APPROXIMATED.isdisjoint(operators):
        return worst
    return beyond(ReferenceEvaluator(model).run(None, _by_name(answered.examples)))


def _answers(model: onnx.ModelProto, examples: Sequence[torch.Tensor]) -> Sequence[Any]:
    """Return the outputs of a model in ONNX Runtime; large weights are passed as inputs to avoid a copy of them."""
    import torch

    graph = model.graph
    large = [tensor for tensor in graph.initializer if math.prod(tensor.dims) > MAX_CONSTANT_NUMBERS]
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in large}
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    light.graph.CopyFrom(onnx.GraphProto(name=graph.name, node=graph.node, output=graph.output, input=graph.input))
    light.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name not in weights)
    declared = {value.name for value in graph.input}
    light.graph.input.extend(
        make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in large
        if tensor.name not in declared
    )
    session = session_of(light.SerializeToString(), torch.get_num_threads(), WRONG)
    read = {value.name for value in session.get_inputs()}
    inputs = {name: array for name, array in _by_name(examples).items() if name in read}
    answers: Sequence[Any] = session.run(None, weights | inputs)
    return answers


def input_names(examples: Sequence[torch.Tensor]) -> list[str]:
    """Return the names that the inputs of an exported model shall have."""
    return [f"input_{index}" for index in range(len(examples))]


def _by_name(examples: Sequence[torch.Tensor]) -> dict[str, NDArray[Any]]:
    return {name: example.cpu().numpy() for name, example in zip(input_names(examples), examples, strict=True)}


def _disturbed(module: torch.nn.Module, examples: Sequence[torch.Tensor], unit: float) -> tuple[torch.Tensor, ...]:
    """Return the outputs of a module with noise of the size of rounding added to the output of every layer."""
    import torch

    generator = torch.Generator().manual_seed(0)

    def with_noise(_: torch.nn.Module, __: Any, answer: Any) -> Any:
        if not isinstance(answer, torch.Tensor) or not answer.is_floating_point():
            return answer
        noise = DISTURBANCE * unit * torch.randn(answer.shape, generator=generator)
        return answer * (1 + noise).to(answer)

    hooks = [layer.register_forward_hook(with_noise) for layer in module.modules()]
    try:
        with torch.no_grad():
            return tuple(tensors_of(module(*copies(examples))))
    finally:
        for hook in hooks:
            hook.remove()


def _rounding(module: torch.nn.Module, answered: Answered) -> float:
    """Return the rounding unit (eps) of the least precise float type in a module, at least that of 32 bits."""
    import torch

    given = (*answered.examples, *answered.answers, *module.parameters())
    types = {torch.float32, *(x.dtype for x in given if x.is_floating_point())}
    if any(example.device.type != "cpu" for example in answered.examples):
        types.add(torch.float16)  # products of 32-bit floats may have no more digits there
    return max(torch.finfo(each).eps for each in types)


def _as_arrays(answers: Iterable[torch.Tensor]) -> list[NDArray[Any]]:
    """Return outputs as float64, integers as NaN so that they do not count: among ties, indices may differ."""
    import torch

    floats = [x if x.is_floating_point() else torch.full(x.shape, math.nan) for x in answers]
    return [x.detach().double().cpu().numpy() for x in floats]


def _difference(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the largest difference where both are finite; 0 if shapes differ, as they may after a selection."""
    if x.shape != y.shape:
        return 0.0
    with np.errstate(invalid="ignore"):
        return float(np.abs(x - y).max(initial=0.0, where=np.isfinite(x) & np.isfinite(y)))
