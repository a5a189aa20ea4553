# ruff: noqa: E501  (a model's text is easier to read on one line)
"""One spelling for every computation: what exporters write in several ways comes out as one text."""

import pytest

from tests.converters.onnx_models import body, model, tensor
from tests.converters.passes.activations import ACTIVATIONS, GELU, NUMBERS, ROW, X

HW = "hw = Constant <value_ints = [2,3]> () "
WIDE = "p = Constant <value_ints = [0,0,1,1,0,0,1,1]> () "
MEAN = (
    "l = Constant <value_ints = [-1]> ()  two = Constant <value_float = 2.0> ()  e = Constant <value_float = 1e-5> () "
)
MEAN += "m = ReduceMean (x, l)  d = Sub (x, m) "

SPELLINGS = ACTIVATIONS | {
    "scales": (X, ["v1 = nn.Scale <factor: float = 0.166667> (v0)"], [
        f"{NUMBERS} y = Div (x, six)",
        f"{NUMBERS} y = Mul (sixth, x)",
        f"{NUMBERS} s = Constant <value_floats = [6.0]> ()  y = Div (x, s)",
        f"{NUMBERS} a = Div (x, three)  y = Mul (a, half)",
    ]),
    "nothing": (X, ["v1 = Sigmoid (v0)"], [
        "y = Sigmoid (x)",
        "i = Identity (x)  y = Sigmoid (i)",
        "c = Concat <axis = 1> (x)  s = Sum (c)  m = Max (s)  y = Sigmoid (m)",
        "d, mask = Dropout (x)  y = Sigmoid (d)",
        f"{NUMBERS} a = Add (zero, x)  b = Mul (a, one)  c = Div (b, one)  d = Sub (c, zero)  y = Sigmoid (d)",
        "s = Constant <value_ints = [1,4,6,6]> ()  r = Reshape (x, s)  e = Expand (r, s)  y = Sigmoid (e)",
        "t = Transpose <perm = [0,2,3,1]> (x)  u = Transpose <perm = [0,3,1,2]> (t)  y = Sigmoid (u)",
        "p = MaxPool <kernel_shape = [1,1]> (x)  y = Sigmoid (p)",
        "a = Constant <value_ints = [1,4,36]> ()  r = Reshape (x, a)  p = AveragePool <kernel_shape = [1]> (r)  "
        "b = Constant <value_ints = [1,4,6,6]> ()  q = Reshape (p, b)  y = Sigmoid (q)",
        "a = Constant <value_ints = [0]> ()  e = Constant <value_ints = [99]> ()  s = Slice (x, a, e)  y = Sigmoid (s)",
    ]),
    "sums": (X, ["v1 = Abs (v0)", "v2 = Neg (v0)", "v3 = Sum (v0, v1, v2)"], [
        "a = Abs (x)  b = Neg (x)  s = Add (a, b)  y = Add (s, x)",
        "a = Abs (x)  b = Neg (x)  y = Sum (x, b, a)",
        f"{NUMBERS} a = Abs (x)  b = Neg (x)  s = Add (x, zero)  t = Add (s, b)  y = Add (t, a)",
    ]),
    "subtraction": (X, ["v1 = Constant <value_float: float = -3> ()", "v2 = Add (v0, v1)"], [
        f"{NUMBERS} y = Sub (x, three)",
        "m = Constant <value_floats = [-3.0]> ()  y = Add (m, x)",
    ]),
    "global pool": ("(float[1,4,6,6] x) => (float[1,4,1,1] y)", ["v1 = GlobalAveragePool (v0)"], [
        "y = GlobalAveragePool (x)",
        f"{HW} y = ReduceMean (x, hw)",
        "hw = Constant <value_ints = [-1,-2]> ()  y = ReduceMean <keepdims = 1> (x, hw)",
        "y = AveragePool <kernel_shape = [6,6]> (x)",
        "h = Constant <value_ints = [2]> ()  w = Constant <value_ints = [-1]> ()  m = ReduceMean (x, w)  y = ReduceMean (m, h)",
    ]),
    "global pool, flat": ("(float[1,4,6,6] x) => (float[1,4] y)", ["v1 = GlobalAveragePool (v0)", "v2 = Flatten (v1)"], [
        "p = GlobalAveragePool (x)  y = Flatten (p)",
        f"{HW} y = ReduceMean <keepdims = 0> (x, hw)",
        f"{HW} p = GlobalAveragePool (x)  y = Squeeze (p, hw)",
        "s = Constant <value_ints = [0,-1]> ()  p = GlobalAveragePool (x)  y = Reshape (p, s)",
        "s = Constant <value_ints = [1,4]> ()  p = AveragePool <kernel_shape = [6,6]> (x)  y = Reshape (p, s)",
        f"{HW} p = ReduceMean (x, hw)  f = Flatten (p)  y = Flatten (f)",
    ]),
    "padding": ("(float[1,4,6,6] x) => (float[1,4,6,6] y)", [
        "v1 = AveragePool <count_include_pad: int = 1, kernel_shape: ints = [3, 3], pads: ints = [1, 1, 1, 1]> (v0)"
    ], [
        "y = AveragePool <kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1> (x)",
        'y = AveragePool <kernel_shape = [3,3], auto_pad = "SAME_UPPER", count_include_pad = 1> (x)',
        f"{WIDE} b = Pad (x, p)  y = AveragePool <kernel_shape = [3,3], strides = [1,1]> (b)",
        f'{NUMBERS} {WIDE} b = Pad <mode = "constant"> (x, p, zero)  '
        "y = AveragePool <kernel_shape = [3,3], count_include_pad = 1, ceil_mode = 1> (b)",
    ]),
    "pool that skips pixels": ("(float[1,4,8,8] x) => (float[1,4,2,2] y)", [
        "v1 = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [4, 4]> (v0)"
    ], [
        "y = MaxPool <kernel_shape = [2,2], strides = [4,4]> (x)",
        'y = MaxPool <kernel_shape = [2,2], strides = [4,4], auto_pad = "SAME_UPPER"> (x)',
    ]),
    "pool": ("(float[1,4,6,6] x) => (float[1,4,3,3] y)", [
        "v1 = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (v0)"
    ], [
        "y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x)",
        "y, i = MaxPool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1, dilations = [1,1], pads = [0,0,0,0]> (x)",
        'y = MaxPool <kernel_shape = [2,2], strides = [2,2], auto_pad = "VALID", storage_order = 0> (x)',
    ]),
    "slices": ("(float[1,4,6,6] x) => (float[1,4,5,5] y)", [
        "v1 = nn.Slice <axes: ints = [2, 3], ends: ints = [6, 6], starts: ints = [1, 1]> (v0)"
    ], [
        "a = Constant <value_ints = [2,3]> ()  s = Constant <value_ints = [1,1]> ()  e = Constant <value_ints = [6,99]> () "
        "y = Slice (x, s, e, a)",
        "a = Constant <value_ints = [-1]> ()  b = Constant <value_ints = [2]> ()  s = Constant <value_ints = [1]> () "
        "e = Constant <value_ints = [9223372036854775807]> ()  c = Slice (x, s, e, a)  y = Slice (c, s, e, b)",
        "a = Constant <value_ints = [3]> ()  b = Constant <value_ints = [2]> ()  s = Constant <value_ints = [1]> () "
        "e = Constant <value_ints = [6]> ()  c = Slice (x, s, e, a)  i = Constant <value_ints = [1,4,6,5]> () "
        "d = Reshape (c, i)  y = Slice (d, s, e, b)",
        "s = Constant <value_ints = [1,5]> ()  t, u = Split <axis = 2> (x, s)  v, y = Split <axis = -1> (u, s)",
        "i = Constant <value_ints = [1,2,3,4,5]> ()  c = Gather <axis = 2> (x, i)  y = Gather <axis = 3> (c, i)",
    ]),
    "an element": ("(float[1,4,6] x) => (float[1,6] y)", [
        "v1 = nn.Slice <axes: ints = [1], ends: ints = [4], starts: ints = [3]> (v0)", "v2 = Flatten (v1)"
    ], [
        "i = Constant <value_int = -1> ()  y = Gather <axis = 1> (x, i)",
        "i = Constant <value_ints = [3]> ()  c = Gather <axis = 1> (x, i)  a = Constant <value_ints = [1]> () "
        "y = Squeeze (c, a)",
    ]),
    "the only element": ("(float[1,4,6] x) => (float[4,6] y)", ["v1 = nn.Reshape <shape: ints = [4, 6]> (v0)"], [
        "i = Constant <value_int = 0> ()  y = Gather <axis = 0> (x, i)",
        "a = Constant <value_ints = [0]> ()  y = Squeeze (x, a)",
    ]),
    "reshapes": ("(float[1,4,6] x) => (float[2,2,6] y)", ["v1 = nn.Reshape <shape: ints = [2, 2, 6]> (v0)"], [
        "s = Constant <value_ints = [2,2,6]> ()  y = Reshape (x, s)",
        "s = Constant <value_ints = [2,-1,6]> ()  f = Flatten (x)  y = Reshape (f, s)",
        "s = Constant <value_ints = [2,2,6]> ()  a = Constant <value_ints = [0]> ()  u = Unsqueeze (x, a) "
        "t = Transpose <perm = [0,2,1,3]> (u)  y = Reshape <allowzero = 0> (t, s)",
    ]),
    "axes": ("(float[1,4,6] x) => (float[1,4,12] y)", ["v1 = Softmax (v0)", "v2 = Concat <axis: int = 2> (v0, v1)"], [
        "s = Softmax <axis = -1> (x)  y = Concat <axis = -1> (x, s)",
        "s = Softmax <axis = 2> (x)  y = Concat <axis = 2> (x, s)",
    ]),
    "linear": ("(float[5,8] x) => (float[5,3] y)", ["v1 = nn.LinearBias <weight_shape: ints = [3, 8]> (v0)"], [
        "y = Gemm <transB = 1> (x, w38, b3)",
        "y = Gemm (x, w83, b3)",
        "y = Gemm <alpha = 0.5, beta = 2.0> (x, w83, b13)",
        "m = MatMul (x, w83)  y = Add (m, b3)",
        "m = MatMul (x, w83)  y = Add (b13, m)",
        "t = Transpose (w38)  m = MatMul (x, t)  y = Add (m, b3)",
        "t = Transpose <perm = [1,0]> (w38)  g = Gemm (x, t)  y = Sum (b3, g)",
    ]),
    "linear to one": ("(float[5,8] x) => (float[5,1] y)", ["v1 = nn.LinearBias <weight_shape: ints = [1, 8]> (v0)"], [
        "y = Gemm <transB = 1> (x, w18, b1)",
        "m = MatMul (x, w81)  y = Add (m, b1)",
        "m = MatMul (x, w81)  y = Add (b11, m)",
    ]),
    "a number after linear to one": ("(float[5,8] x) => (float[5,1] y)", [
        "v1 = nn.Linear <weight_shape: ints = [1, 8]> (v0)", "v2 = Constant <value_float: float = 3> ()", "v3 = Add (v1, v2)"
    ], [f"{NUMBERS} m = MatMul (x, w81)  y = Add (m, three)", f"{NUMBERS} m = Gemm (x, w81)  y = Add (three, m)"]),
    "Gemm with a number a row": ("(float[4,8] x) => (float[4,4] y)", [
        "v1 = nn.Weight <weight_shape: ints = [8, 4]> ()", "v2 = nn.Weight <weight_shape: ints = [4, 1]> ()",
        "v3 = Gemm (v0, v1, v2)",
    ], ["y = Gemm (x, w84, b41)"]),
    "Gemm with one number for all": ("(float[4,8] x) => (float[4,4] y)", [
        "v1 = nn.Weight <weight_shape: ints = [8, 4]> ()", "v2 = nn.Weight <weight_shape: ints = [1]> ()",
        "v3 = Gemm (v0, v1, v2)",
    ], ["y = Gemm (x, w84, b1)", "y = Gemm (x, w84, b0)"]),
    "convolution to one": ("(float[1,4,6,6] x) => (float[1,1,6,6] y)", [
        "v1 = nn.ConvBias <weight_shape: ints = [1, 4, 1, 1]> (v0)"
    ], ["y = Conv (x, w14, b1)", "c = Conv (x, w14)  y = Add (c, b111)", "c = Conv (x, w14)  y = Add (b1, c)"]),
    "convolution": (X, ["v1 = nn.ConvBias <pads: ints = [1, 1, 1, 1], weight_shape: ints = [4, 4, 3, 3]> (v0)"], [
        "y = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [1,1], dilations = [1,1], group = 1> (x, w44, b4)",
        'y = Conv <auto_pad = "SAME_LOWER"> (x, w44, b4)',
        "c = Conv <pads = [1,1,1,1]> (x, w44)  y = Add (c, b411)",
        "c = Conv <pads = [1,1,1,1]> (x, w44)  y = BatchNormalization (c, b4, b4, b4, b4)",
        "c = Conv <pads = [1,1,1,1]> (x, w44)  i = Identity (c)  y = BatchNormalization <epsilon = 0.001> (i, b4, b4, b4, b4)",
        f"{WIDE} p1 = Pad (x, p)  y = Conv (p1, w44, b4)",
    ]),
    "convolution of a sequence": ("(float[1,4,9] x) => (float[1,4,4] y)", [
        "v1 = nn.ConvBias <dilations: ints = [1], pads: ints = [0, 0], strides: ints = [2], weight_shape: ints = [4, 4, 3]> (v0)"
    ], ["y = Conv <strides = [2]> (x, w443, b4)", "y = Conv <strides = [2], pads = [0,0], kernel_shape = [3]> (x, w443, b4)"]),
    "layer norm without bias": (ROW, ["v1 = nn.Weight <weight_shape: ints = [8]> ()", "v2 = LayerNormalization (v0, v1)"], [
        "y = LayerNormalization (x, w8)",
        f"{MEAN} s = Pow (d, two)  v = ReduceMean (s, l)  a = Add (v, e)  r = Sqrt (a)  n = Div (d, r)  y = Mul (w8, n)",
    ]),
    "layer norm": (ROW, ["v1 = nn.LayerNormalization <weight_shape: ints = [8]> (v0)"], [
        "y = LayerNormalization (x, w8, b8)",
        "y = LayerNormalization <axis = 2, epsilon = 1e-5> (x, w8, b8)",
        f"{MEAN} s = Pow (d, two)  v = ReduceMean (s, l)  a = Add (v, e)  r = Sqrt (a)  n = Div (d, r) "
        "g = Mul (n, w8)  y = Add (g, b8)",
        f"{MEAN} s = Mul (d, d)  v = ReduceMean (s, l)  a = Add (e, v)  r = Sqrt (a)  n = Div (d, r) "
        "g = Mul (w8, n)  y = Add (b8, g)",
    ]),
    "sum of one value": (ROW, ["v1 = nn.Scale <factor: float = 1.5> (v0)"], [
        "a = Add (x, x)  b = Add (a, x)  h = Constant <value_float = 0.5> ()  y = Mul (b, h)",
        "h = Constant <value_float = 0.5> ()  a = Mul (x, h)  b = Add (a, a)  y = Add (a, b)",
        "h = Constant <value_float = 1.5> ()  y = Mul (x, h)",
    ]),
    "product of a sum": (ROW, ["v1 = Relu (v0)", "v2 = Mul (v0, v1)", "v3 = nn.Scale <factor: float = 2> (v2)"], [
        "r = Relu (x)  a = Add (x, x)  y = Mul (a, r)",
        "r = Relu (x)  a = Add (r, r)  y = Mul (x, a)",
        "r = Relu (x)  p = Mul (r, x)  y = Sum (p, p)",
    ]),
    "twice in two ways": (ROW, [
        "v1 = nn.Scale <factor: float = 2> (v0)", "v2 = Relu (v1)", "v3 = Sigmoid (v1)", "v4 = Mul (v2, v3)"
    ], [
        "t = Constant <value_float = 2.0> ()  a = Add (x, x)  b = Mul (x, t)  r = Relu (a)  s = Sigmoid (b)  y = Mul (r, s)",
        "t = Constant <value_float = 2.0> ()  b = Mul (x, t)  a = Add (x, x)  r = Relu (a)  s = Sigmoid (b)  y = Mul (r, s)",
        "a = Add (x, x)  r = Relu (a)  s = Sigmoid (a)  y = Mul (r, s)",
    ]),
    "sum of twice in two ways": (ROW, ["v1 = nn.Scale <factor: float = 4> (v0)"], [
        "t = Constant <value_float = 2.0> ()  a = Add (x, x)  b = Mul (x, t)  y = Add (a, b)",
        "a = Add (x, x)  y = Add (a, a)",
    ]),
    "half of twice": (ROW, ["v1 = Relu (v0)"], [
        "h = Constant <value_float = 0.5> ()  a = Add (x, x)  b = Mul (a, h)  y = Relu (b)",
        "h = Constant <value_float = 0.5> ()  b = Mul (x, h)  a = Add (b, b)  y = Relu (a)",
    ]),
    "largest of all": ("(float[1,4,6,6] x) => (float[1,4,1,1] y)", ["v1 = GlobalMaxPool (v0)"], [
        "y = GlobalMaxPool (x)",
        f"{HW} y = ReduceMax (x, hw)",
        "y = MaxPool <kernel_shape = [6,6], strides = [6,6]> (x)",
    ]),
    "norm over default axes": (X, ["v1 = MeanVarianceNormalization <axes: ints = [0, 2, 3]> (v0)"], [
        "y = MeanVarianceNormalization (x)", "y = MeanVarianceNormalization <axes = [0,2,3]> (x)",
    ]),
    "norm of all": ("(float[1,4,6,6] x) => (float[1,4,1,1] y)", [
        "v1 = Constant <value_ints: ints = [2, 3]> ()", "v2 = ReduceL2 (v0, v1)"
    ], ["y = GlobalLpPool (x)", "y = GlobalLpPool <p = 2> (x)", f"{HW} y = ReduceL2 (x, hw)"]),
    "norm of all, absolute": ("(float[1,4,9] x) => (float[1,4,1] y)", [
        "v1 = Constant <value_ints: ints = [2]> ()", "v2 = ReduceL1 (v0, v1)"
    ], ["y = GlobalLpPool <p = 1> (x)"]),
    "mean of a volume": ("(float[1,4,3,6,6] x) => (float[1,4] y)", ["v1 = GlobalAveragePool (v0)", "v2 = Flatten (v1)"], [
        "p = GlobalAveragePool (x)  y = Flatten (p)",
        "dhw = Constant <value_ints = [-1,-2,-3]> ()  y = ReduceMean <keepdims = 0> (x, dhw)",
    ]),
    "mean of a sequence": ("(float[1,4,9] x) => (float[1,4] y)", ["v1 = GlobalAveragePool (v0)", "v2 = Flatten (v1)"], [
        "p = GlobalAveragePool (x)  y = Flatten (p)",
        f"{HW} two = Constant <value_ints = [2]> ()  i = Unsqueeze (x, two)  p = ReduceMean (i, hw)  "
        "s = Squeeze (p, two)  y = Flatten (s)",
    ]),
    "gated activation": (ROW, ["v1 = Gelu (v0)", "v2 = Neg (v0)", "v3 = Mul (v1, v2)"], [
        "n = Neg (x)  g = Gelu (x)  y = Mul (n, g)",
        f"{NUMBERS} {GELU} n = Neg (x)  m = Mul (x, o)  g = Mul (m, half)  y = Mul (g, n)",
        f"{NUMBERS} {GELU} n = Neg (x)  h = Mul (half, x)  g = Mul (h, o)  y = Mul (n, g)",
    ]),
    "scaled activation": (ROW, ["v1 = Gelu (v0)", "v2 = nn.Scale <factor: float = 3> (v1)"], [
        f"{NUMBERS} g = Gelu (x)  y = Mul (g, three)",
        f"{NUMBERS} {GELU} m = Mul (x, o)  g = Mul (m, half)  y = Mul (g, three)",
    ]),
    "Softplus": (X, ["v1 = Softplus (v0)"], [
        "y = Softplus (x)",
        "t = Constant <value_float = 20.0> ()  g = Greater (x, t)  s = Softplus (x)  y = Where (g, x, s)",
    ]),
    "Softplus from where it is not a line yet": (X, [
        "v1 = Constant <value_float: float = 5> ()", "v2 = Greater (v0, v1)", "v3 = Softplus (v0)", "v4 = Where (v2, v0, v3)"
    ], ["t = Constant <value_float = 5.0> ()  g = Greater (x, t)  s = Softplus (x)  y = Where (g, x, s)"]),
    "slopes": (X, ["v1 = nn.Weight <weight_shape: ints = [4, 1, 1]> ()", "v2 = PRelu (v0, v1)"], [
        "y = PRelu (x, b411)", "a = Constant <value_ints = [0]> ()  s = Unsqueeze (b411, a)  y = PRelu (x, s)",
    ]),
    "one slope": (X, ["v1 = nn.Weight <weight_shape: ints = [1]> ()", "v2 = PRelu (v0, v1)"], [
        "y = PRelu (x, b1)", "y = PRelu (x, b111)",
    ]),
    "square": (X, ["v1 = Mul (v0, v0)"], [
        "y = Mul (x, x)", "two = Constant <value_float = 2.0> ()  y = Pow (x, two)",
    ]),
    "product of matrices": ("(float[4,8] x) => (float[8,8] y)", [
        "v1 = Transpose <perm: ints = [1, 0]> (v0)", "v2 = MatMul (v1, v0)"
    ], ["t = Transpose <perm = [1,0]> (x)  y = MatMul (t, x)", "t = Transpose (x)  y = MatMul (t, x)", "t = Transpose (x)  y = Gemm <beta = 0.0> (t, x)",
        "y = Gemm <transA = 1> (x, x)"]),
    "parts of a row": ("(float[1,5,8] x) => (float[1,5,3] y)", [
        "v1 = nn.Slice <axes: ints = [2], ends: ints = [8], starts: ints = [5]> (v0)"
    ], [
        "s = Constant <value_ints = [5,3]> ()  a, y = Split <axis = -1> (x, s)",
        "s = Constant <value_ints = [5,3]> ()  i = Constant <value_int = 1> ()  q = SplitToSequence <axis = -1> (x, s)  "
        "y = SequenceAt (q, i)",
        "s = Constant <value_ints = [5,3,0]> ()  i = Constant <value_int = 1> ()  q = SplitToSequence <axis = -1> (x, s)  "
        "y = SequenceAt (q, i)",
        "s = Constant <value_int = 5> ()  i = Constant <value_int = -1> ()  q = SplitToSequence <axis = 2> (x, s)  "
        "y = SequenceAt (q, i)",
    ]),
    "circular padding": ("(float[1,4,6,6] x) => (float[1,4,8,7] y)", [
        "v1 = nn.Slice <axes: ints = [2], ends: ints = [6], starts: ints = [5]> (v0)",
        "v2 = nn.Slice <axes: ints = [2], ends: ints = [1], starts: ints = [0]> (v0)",
        "v3 = Concat <axis: int = 2> (v1, v0, v2)",
        "v4 = nn.Slice <axes: ints = [3], ends: ints = [6], starts: ints = [5]> (v3)",
        "v5 = Concat <axis: int = 3> (v4, v3)",
    ], [
        'p = Constant <value_ints = [0,0,1,1,0,0,1,0]> ()  y = Pad <mode = "wrap"> (x, p)',
        'p = Constant <value_ints = [1,1,0,1]> ()  a = Constant <value_ints = [3,2]> ()  y = Pad <mode = "wrap"> (x, p, "", a)',
        "a = Constant <value_ints = [2]> ()  b = Constant <value_ints = [3]> ()  o = Constant <value_ints = [-1]> ()  "
        "z = Constant <value_ints = [0]> ()  i = Constant <value_ints = [1]> ()  e = Constant <value_ints = [99]> ()  "
        "c = Slice (x, o, e, a)  d = Slice (x, z, i, a)  f = Concat <axis = 2> (c, x, d)  h = Slice (f, o, e, b)  "
        "y = Concat <axis = 3> (h, f)",
    ]),
    "transpose of the last axes": ("(float[2,3,4,6] x) => (float[2,3,6,4] y)", [
        "v1 = Transpose <perm: ints = [0, 1, 3, 2]> (v0)"
    ], [
        "y = Transpose <perm = [0,1,3,2]> (x)",
        "a = Constant <value_ints = [-1,4,6]> ()  b = Constant <value_ints = [2,3,6,4]> ()  r = Reshape (x, a)  "
        "t = Transpose <perm = [0,2,1]> (r)  y = Reshape (t, b)",
        "a = Constant <value_ints = [6,4,6]> ()  b = Constant <value_ints = [2,3,6,4]> ()  u = Transpose <perm = [0,1,3,2]> (x) "
        " v = Transpose <perm = [0,1,3,2]> (u)  r = Reshape (v, a)  t = Transpose <perm = [0,2,1]> (r)  y = Reshape (t, b)",
    ]),
    "transpose of rows put together otherwise": ("(float[2,3,4,6] x) => (float[3,2,6,4] y)", [
        "v1 = nn.Reshape <shape: ints = [3, 2, 4, 6]> (v0)", "v2 = Transpose <perm: ints = [0, 1, 3, 2]> (v1)",
    ], [
        "a = Constant <value_ints = [3,2,4,6]> ()  r = Reshape (x, a)  y = Transpose <perm = [0,1,3,2]> (r)",
        "a = Constant <value_ints = [6,4,6]> ()  b = Constant <value_ints = [3,2,6,4]> ()  r = Reshape (x, a)  "
        "t = Transpose <perm = [0,2,1]> (r)  y = Reshape (t, b)",
    ]),
    "repeated axes of size 1": ("(float[1,4,6] x) => (float[3,4,6] y)", [
        "v1 = Constant <value_ints: ints = [3, 4, 6]> ()", "v2 = Expand (v0, v1)"
    ], [
        "n = Constant <value_ints = [3,4,6]> ()  y = Expand (x, n)",
        "n = Constant <value_ints = [3,1,1]> ()  y = Expand (x, n)",
        "n = Constant <value_ints = [3,1,1]> ()  y = Tile (x, n)",
    ]),
    "repeated rows": ("(float[1,4,6] x) => (float[1,8,6] y)", [
        "v1 = Constant <value_ints: ints = [1, 2, 1]> ()", "v2 = Tile (v0, v1)"
    ], ["n = Constant <value_ints = [1,2,1]> ()  y = Tile (x, n)"]),
    "concatenations": ("(float[1,4,6] x) => (float[1,4,18] y)", [
        "v1 = Relu (v0)", "v2 = Concat <axis: int = 2> (v0, v1, v0)"
    ], [
        "r = Relu (x)  y = Concat <axis = 2> (x, r, x)",
        "r = Relu (x)  c = Concat <axis = -1> (r, x)  y = Concat <axis = 2> (x, c)",
        "r = Relu (x)  c = Concat <axis = 2> (x, r)  y = Concat <axis = -1> (c, x)",
    ]),
    "concatenations along other axes": ("(float[1,4,6] x) => (float[1,8,12] y)", [
        "v1 = Concat <axis: int = 2> (v0, v0)", "v2 = Concat <axis: int = 1> (v1, v1)"
    ], ["c = Concat <axis = 2> (x, x)  y = Concat <axis = 1> (c, c)", "c = Concat <axis = 2> (x, x)  d = Concat "
        "<axis = 2> (x, x)  y = Concat <axis = 1> (c, d)"]),
    "a concatenation that is read again": ("(float[1,4,6] x) => (float[1,4,30] y)", [
        "v1 = Concat <axis: int = 2> (v0, v0)", "v2 = Relu (v1)", "v3 = Concat <axis: int = 2> (v1, v2, v0)",
    ], ["c = Concat <axis = 2> (x, x)  r = Relu (c)  y = Concat <axis = 2> (c, r, x)"]),
    "scaled attention": ("(float[2,5,8] x, float[2,8,5] k) => (float[2,5,5] y)", [
        "v2 = MatMul (v0, v1)", "v3 = nn.Scale <factor: float = 0.353553> (v2)"
    ], [
        "r = Constant <value_float = 2.828427> ()  m = MatMul (x, k)  y = Div (m, r)",
        "r = Constant <value_float = 0.35355339> ()  q = Mul (x, r)  y = MatMul (q, k)",
        "r = Constant <value_floats = [0.59460354]> ()  q = Mul (x, r)  p = Mul (r, k)  y = MatMul (q, p)",
    ]),
}  # fmt: skip
WEIGHTS = {
    "w38": (3, 8), "w83": (8, 3), "b3": (3,), "b13": (1, 3), "w18": (1, 8), "w81": (8, 1), "b1": (1,),
    "w84": (8, 4), "b41": (4, 1), "b0": (), "b11": (1, 1), "b111": (1, 1, 1), "w14": (1, 4, 1, 1),
    "w44": (4, 4, 3, 3), "w443": (4, 4, 3), "b4": (4,), "b411": (4, 1, 1), "w8": (8,), "b8": (8,),
}  # fmt: skip


def spelled(ends: str, nodes: str):
    words = set(nodes.replace(",", " ").replace(")", " ").replace("(", " ").split())
    weights = [tensor(name, *shape) for name, shape in WEIGHTS.items() if name in words]
    return model(f"{ends} {{ {nodes} }}", *weights, opset=24)


@pytest.mark.parametrize(
    ("ends", "expected", "nodes"),
    [
        pytest.param(ends, expected, nodes, id=f"{name} {index}")
        for name, (ends, expected, spellings) in SPELLINGS.items()
        for index, nodes in enumerate(spellings)
    ],
)
def test_every_spelling_comes_out_as_one(ends, expected, nodes):
    assert body(spelled(ends, nodes)) == expected


def test_the_largest_of_integers_stays_a_pool():
    proto = model("(uint8[1,4,6,6] x) => (uint8[1,4,1,1] y) { y = MaxPool <kernel_shape = [6,6]> (x) }")
    assert body(proto) == ["v1 = MaxPool <kernel_shape: ints = [6, 6]> (v0)"]
