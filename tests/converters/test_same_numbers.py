"""Models without weights of their own answer the same as their texts, where an operator is nearly another one."""

import numpy as np
import pytest
from onnx import numpy_helper

from converters import OnnxModelError, model_to_graph, model_to_onnx_text, statistics
from tests.converters.onnx_models import body, model, outputs, run, tensor

SAME = {
    "a mask that is read": "(float[2,3] x) => (float[2,3] y, bool[2,3] mask) { y, mask = Dropout (x) }",
    "a dropout in training": """(float[9,9] x) => (float[9,9] y, float[9,9] z) {
        ratio = Constant <value_float = 0.5> ()  on = Constant <value = bool {1}> ()
        y = Dropout <seed = 1> (x, ratio, on)  z = Dropout <seed = 1> (x, ratio, on) }""",
    "a dropout at inference": """(float[9,9] x) => (float[9,9] y) {
        ratio = Constant <value_float = 0.5> ()  off = Constant <value = bool {0}> ()
        d = Dropout <seed = 1> (x, ratio, off)  y = Relu (d) }""",
    "two transposes of unknown shape": """(float[2,3] x) => (int64[N,M] y) {
        n = NonZero (x)  t = Transpose (n)  y = Transpose <perm = [1,0]> (t) }""",
    "a gate that is nearly HardSwish": """(float[2,3] x) => (float[2,3] y) {
        g = HardSigmoid <alpha = 0.16666667, beta = 0.1> (x)  y = Mul (x, g) }""",
    "a mask made of one number": """(float[9,9] x) => (float[9,9] y) {
        one = Constant <value_float = -3.0> ()  shape = Constant <value_ints = [9,9]> ()
        full = Expand (one, shape)  mask = Trilu <upper = 1> (full)  y = Add (x, mask) }""",
    "rows of which a mask hides all": """(float[2,2] x) => (float[2,2] y) {
        z = Constant <value_float = 0.0> ()  m = Log (z)  shown = Constant <value = bool[2,2] {0,0,1,1}> ()
        mask = Where (shown, z, m)  p = MatMul (x, x)  a = Add (p, mask)  s = Softmax (a)
        none = IsNaN (s)  y = Where (none, z, s) }""",
    "rows of which a mask hides all by a number": """(float[2,2] x) => (float[2,2] y) {
        z = Constant <value_float = 0.0> ()  m = Constant <value_float = -3.4e38> ()
        shown = Constant <value = bool[2,2] {0,0,1,0}> ()  mask = Where (shown, z, m)
        p = MatMul (x, x)  a = Add (p, mask)  s = Softmax (a)  none = IsNaN (s)  y = Where (none, z, s) }""",
    "rows of which a mask hides all before the scale": """(float[2,2] x) => (float[2,2] y) {
        z = Constant <value_float = 0.0> ()  m = Log (z)  half = Constant <value_float = 0.5> ()
        shown = Constant <value = bool[2,2] {0,0,1,1}> ()  p = MatMul (x, x)  a = Where (shown, p, m)
        b = Mul (a, half)  s = Softmax (b)  none = IsNaN (s)  y = Where (none, z, s) }""",
    "rows of which one of two masks hides all": """(float[2,2] x) => (float[2,2] y) {
        z = Constant <value_float = 0.0> ()  m = Log (z)  few = Constant <value_float = -9.0> ()
        shown = Constant <value = bool[2,2] {0,0,1,1}> ()  mask = Where (shown, z, m)
        other = Constant <value = bool[2,2] {0,1,1,0}> ()  finite = Where (other, z, few)  p = MatMul (x, x)
        a = Add (p, mask)  b = Add (a, finite)  s = Softmax (b)  none = IsNaN (s)  y = Where (none, z, s) }""",
    "a range": """(float[2,5] x) => (float[2,5] y) {
        a = Constant <value_float = 0.0> ()  b = Constant <value_float = 5.0> ()  c = Constant <value_float = 1.0> ()
        r = Range (a, b, c)  y = Add (x, r) }""",
    "two readers of a range": """(float[2,5] x) => (float[2,5] y, float[5] r) {
        a = Constant <value_float = 0.0> ()  b = Constant <value_float = 5.0> ()  c = Constant <value_float = 1.0> ()
        r = Range (a, b, c)  z = Mul (x, r)  y = Add (z, r) }""",
    "parts without their axis": """(float[2,3,4] x) => (float[2,4] y) {
        one = Constant <value_int = 1> ()  i = Constant <value_int = -1> ()
        q = SplitToSequence <axis = 1, keepdims = 0> (x, one)  a = SequenceAt (q, i)
        s = SplitToSequence <axis = -2, keepdims = 0> (x)  b = SequenceAt (s, one)  y = Sub (a, b) }""",
    "dilated pools with padding of their own": """(float[1,2,8,9] x) => (float[1,2,H,W] y, float[1,2,M,N] z) {
        y = MaxPool <auto_pad = "SAME_UPPER", dilations = [2,3], kernel_shape = [3,2], strides = [2,1]> (x)
        z = AveragePool <auto_pad = "SAME_LOWER", dilations = [3,2], kernel_shape = [2,3], strides = [1,2]> (x) }""",
    "a view of nothing": """(float[4,2] x) => (float[N,2] y) {
        s = Constant <value_ints = [0]> ()  e = Constant <value_ints = [0]> ()  part = Slice (x, s, e)
        shape = Constant <value_ints = [0,2]> ()  v = Reshape <allowzero = 1> (part, shape)  y = Relu (v) }""",
    "a mean of integers": """(int32[1,2,4,4] x) => (int32[1,2,1,1] y) {
        axes = Constant <value_ints = [2,3]> ()  y = ReduceMean (x, axes) }""",
    "a norm of all": "(float[1,2,4,4] x) => (float[1,2,1,1] y) { y = GlobalLpPool (x) }",
    "a norm over the default axes": "(float[2,3,4,4] x) => (float[2,3,4,4] y) { y = MeanVarianceNormalization (x) }",
    "a spectrum": """(float[1,24,1] x) => (float[1,5,5,2] y) {
        step = Constant <value_int = 4> ()  length = Constant <value_int = 8> ()  y = STFT (x, step, , length) }""",
    "a sum of all": "(float[1,2,4,4] x) => (float[1,2,1,1] y) { y = GlobalLpPool <p = 1> (x) }",
}


ONE = "Constant <value_float = {}> ()"
WIDE = "Constant <value = float[1,1,1] {{{}}}> ()"  # gives an axis to what is joined with it
PARTS = {
    "ReLU up to a number": ((6,), "r = Relu (x)  y = Min (r, n0)"),
    "two bounds": ((-1, 2), "m = Max (x, n0)  y = Min (m, n1)"),
    "two bounds, the upper first": ((2, -1), "m = Min (x, n0)  y = Max (m, n1)"),
    "bounds that contradict each other": ((2, -1), "m = Max (x, n0)  y = Min (m, n1)"),
    "an inverse": ((1,), "y = Div (n0, x)"),
    "HardSigmoid": ((3, 0, 6), "a = Add (x, n0)  c = Clip (a, n1, n2)  y = Div (c, n2)"),
    "HardSigmoid of a factor": ((0.5, 0.2, 0, 1), "s = Mul (x, n1)  a = Add (s, n0)  y = Clip (a, n2, n3)"),
    "HardSwish": ((3, 0, 6), "a = Add (x, n0)  c = Clip (a, n1, n2)  m = Mul (x, c)  y = Div (m, n2)"),
    "Gelu": (
        (1, 1.4142135, 0.5),
        "d = Div (x, n1)  e = Erf (d)  a = Add (e, n0)  m = Mul (x, a)  y = Mul (m, n2)",
    ),
    "Gelu by tanh": (
        (3, 0.044715, 0.7978846, 1, 0.5),
        "p = Pow (x, n0)  s = Mul (p, n1)  a = Add (x, s)  b = Mul (a, n2)  t = Tanh (b)  c = Add (t, n3)  "
        "m = Mul (x, c)  y = Mul (m, n4)",
    ),
    "Softplus": ((20,), "g = Greater (x, n0)  s = Softplus (x)  y = Where (g, x, s)"),
    "layer norm": (
        (0.00001,),
        "l = Constant <value_ints = [-1]> ()  u = ReduceMean (x, l)  c = Sub (x, u)  q = Mul (c, c)  "
        "v = ReduceMean (q, l)  e = Add (v, n0)  r = Sqrt (e)  y = Div (c, r)",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_numbers_may_add_axes_to_an_activation(name):
    numbers, parts = PARTS[name]
    made = "  ".join(f"n{i} = {(ONE if i else WIDE).format(float(x))}" for i, x in enumerate(numbers))
    scaled = "w = Constant <value = float[3] {1, 1, 1}> ()  z = Mul (y, w)"
    proto = model(f"(float[2,3] x) => (float[1,2,3] y, float[1,2,3] z) {{ {made}  {parts}  {scaled} }}")
    array = np.random.default_rng(0).normal(scale=3, size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(run(proto, array)[0], original(proto, array)[0], rtol=1e-5, atol=1e-6)


def original(proto, array):
    proto.ir_version = 8
    return outputs(proto, array)


@pytest.mark.parametrize("name", SAME)
def test_the_text_answers_as_the_model(name):
    proto = model(SAME[name])
    kind = proto.graph.input[0].type.tensor_type
    shape = [size.dim_value for size in kind.shape.dim]
    array = np.random.default_rng(0).normal(scale=3, size=shape).astype(np.int32 if kind.elem_type == 6 else np.float32)
    for theirs, ours in zip(original(proto, array), run(proto, array), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    assert statistics(model_to_graph(proto)).params == 0


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("op_type", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_pixels_lie_where_older_opsets_have_them(op_type, opset, mode):
    """As exporters say it in later ones."""
    scales = numpy_helper.from_array(np.array([1, 1, 1.5, 3], np.float32), "scales")
    graph = f'(float[1,2,4,4] x) => (float[1,2,6,12] y) {{{{ y = {{}} <mode = "{mode}" {{}}> (x, {{}} scales) }}}}'
    old = model(graph.format(op_type, "", ""), scales, opset=opset)
    said = ', coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    assert model_to_onnx_text(old) == model_to_onnx_text(model(graph.format("Resize", said, ","), scales))
    array = np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(run(old, array)[0], original(old, array)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_older_opsets_say_what_to_pad_with_in_any_mode(mode):
    graph = f'(float[2,3] x) => (float[4,4] y) {{ y = Pad <mode = "{mode}", pads = [1,0,1,1], value = 2.0> (x) }}'
    old = model(graph, opset=10)
    array = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(old, array)[0], original(old, array)[0])


def test_attention_to_a_past_keeps_what_nothing_reads():
    """ONNX Runtime asks for these outputs."""
    graph = "(float[1,2,3,8] x) => (float[1,2,3,8] y) { y, keys, values = Attention (x, x, x, , x, x) }"
    array = np.random.default_rng(0).normal(size=(1, 2, 3, 8)).astype(np.float32)
    (theirs,) = original(model(graph, opset=24), array)
    (ours,) = run(model(graph, opset=24), array)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_padding_as_wide_as_the_kernel_stays_apart():
    """AveragePool takes none such; ONNX Runtime 1.31 itself merges the two and fails."""
    lines = body(
        model("""(float[1,2,4,4] x) => (float[1,2,Y,X] y) {
        pads = Constant <value_ints = [0,0,4,4,0,0,4,4]> ()  p = Pad (x, pads)
        y = AveragePool <kernel_shape = [3,3]> (p) }""")
    )
    assert lines[-2:] == ["v2 = Pad (v0, v1)", "v3 = AveragePool <kernel_shape: ints = [3, 3]> (v2)"]


def test_norms_over_several_axes_are_not_those_over_the_last():
    graph = "(float[5,4,6] x) => (float[5,4,6] y) {{ y = LayerNormalization <axis = {}> (x, w, b) }}"
    two, last, third = (
        model_to_onnx_text(model(graph.format(axis), tensor("w", 6), tensor("b", 6))) for axis in (-2, -1, 2)
    )
    assert last == third
    assert "nn.LayerNormalization" in last
    assert "nn.LayerNormalization" not in two


def test_a_model_without_outputs_is_refused():
    proto = model("(float[2] x) => (float[2] y) { y = Relu (x) }")
    del proto.graph.output[:]
    with pytest.raises(OnnxModelError, match="expected a model with outputs, got none"):
        model_to_graph(proto)
