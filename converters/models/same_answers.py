"""Whether an exported model computes what its module does: torch's exporters leave some arguments out in silence."""

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
from converters.models.decisions import tensors_of
from converters.models.onnx_model import MAX_CONSTANT_NUMBERS, has_branches
from converters.runtime import session_of

if TYPE_CHECKING:
    import torch

# torch itself is imported where it is used, see converters/models/torch_module.py.

DISTURBANCE = 10  # times the rounding of numbers near 1: as much as a network's own adds up to
NOISE = 3  # times the difference that it makes: one draw may by chance make little
# ONNX Runtime's are coarse where they are small, or near the most that they can be.
APPROXIMATED = frozenset({"Sigmoid", "Tanh", "Erf", "Gelu", "Swish"})
# Their answers are drawn, or one of several that are as good: where numbers are equal, any may be the largest.
FREE = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
    | {"TopK"}
)


class Answered(NamedTuple):
    """An input of a module, and the tensors that it answers."""

    example: torch.Tensor
    answers: Sequence[torch.Tensor]


def check_answers(model: onnx.ModelProto, module: torch.nn.Module, answered: Answered) -> None:
    """Refuse an exported model whose answers differ from its module's clearly beyond rounding.

    Differences count from half of the digits on, where they are larger than those that disturbances as small as
    rounding, of what each of its layers answers, make of the module's own answers; of APPROXIMATED operators where
    onnx's reference, which approximates nothing, has them too.
    Nothing is said of whole numbers, of what is not finite, of models that draw or choose among equals, nor of those
    that cannot be run or have loops or branches: at those of ``EmbeddingBag`` ONNX Runtime 1.31 ends the process.

    Args:
        model: as exported, with the module's weights.
        module: in the mode in which it was exported.
        answered: what it answered in that mode.

    Raises:
        OnnxModelError: they differ; it names the largest difference.

    Cost: one inference, as weights are not copied into the session. Where answers differ, one more of the module; where
    they still do and operators are APPROXIMATED, one by the reference, which takes minutes for large images.
    """
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    operators = {node.op_type for node in nodes}
    if not FREE.isdisjoint(operators) or any(map(has_branches, nodes)):
        return
    try:
        worst = _clear_difference(model, operators, module, answered)
    except Exception:  # of many kinds, of what runs the model
        return
    if worst:
        raise OnnxModelError(
            "expected torch.onnx.export to write what the module computes, got a model whose answers to random numbers "
            f"differ from the module's by up to {worst:.2g}. Spell by other operators what it mistakes."
        )


def _clear_difference(
    model: onnx.ModelProto, operators: Set[str], module: torch.nn.Module, answered: Answered
) -> float:
    """The largest difference beyond rounding; 0 if there is none."""
    from onnx.reference import ReferenceEvaluator  # here: hardly any module needs it

    expected, unit = _as_arrays(answered.answers), _rounding(module, answered)
    allowed = [math.sqrt(unit) * _difference(x, np.zeros_like(x)) for x in expected]

    def beyond(given: Iterable[Any]) -> float:
        differences = map(_difference, expected, given)
        return max((x for x, limit in zip(differences, allowed, strict=False) if x > limit), default=0.0)

    got = _answers(model, answered.example)
    if not beyond(got):
        return 0.0
    disturbed = _as_arrays(_disturbed(module, answered.example, unit))
    allowed = [limit + NOISE * _difference(x, y) for limit, x, y in zip(allowed, expected, disturbed, strict=True)]
    if not (worst := beyond(got)) or APPROXIMATED.isdisjoint(operators):
        return worst
    reference = ReferenceEvaluator(model)
    names = [name for name in reference.input_names if name not in {tensor.name for tensor in model.graph.initializer}]
    return beyond(reference.run(None, dict(zip(names, [answered.example.cpu().numpy()], strict=False))))


def _answers(model: onnx.ModelProto, example: torch.Tensor) -> Sequence[Any]:
    """What a model answers in ONNX Runtime; large weights are given beside the example, or they would be copied."""
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
    session = session_of(light.SerializeToString(), torch.get_num_threads())
    names = [value.name for value in session.get_inputs() if value.name not in weights]  # none where it is not read
    answers: Sequence[Any] = session.run(None, weights | dict(zip(names, [example.cpu().numpy()], strict=False)))
    return answers


def _disturbed(module: torch.nn.Module, example: torch.Tensor, unit: float) -> tuple[torch.Tensor, ...]:
    """What a module answers if what each of its layers answers has noise as small as rounding."""
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
            return tuple(tensors_of(module(example.clone())))
    finally:
        for hook in hooks:
            hook.remove()


def _rounding(module: torch.nn.Module, answered: Answered) -> float:
    """The unit of the least exact type among a module's numbers, of 32 bits or fewer."""
    import torch

    given = (answered.example, *answered.answers, *module.parameters())
    types = {torch.float32, *(x.dtype for x in given if x.is_floating_point())}
    if answered.example.device.type != "cpu":
        types.add(torch.float16)  # whose digits are as many as those of what multiplies 32 bits there
    return max(torch.finfo(each).eps for each in types)


def _as_arrays(answers: Iterable[torch.Tensor]) -> list[NDArray[Any]]:
    """Answers as float64, whole numbers as NaN: which of several equal ones is the largest is no difference."""
    import torch

    floats = [x if x.is_floating_point() else torch.full(x.shape, math.nan) for x in answers]
    return [x.detach().double().cpu().numpy() for x in floats]


def _difference(x: NDArray[Any], y: NDArray[Any]) -> float:
    """The largest where both are finite; 0 of other shapes, as selections may have."""
    if x.shape != y.shape:
        return 0.0
    with np.errstate(invalid="ignore"):
        return float(np.abs(x - y).max(initial=0.0, where=np.isfinite(x) & np.isfinite(y)))
