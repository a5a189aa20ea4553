"""Activations and constant bounds, each with its one spelling and those that exporters write."""

X = "(float[1,4,6,6] x) => (float[1,4,6,6] y)"
ROW = "(float[1,5,8] x) => (float[1,5,8] y)"
NUMBERS = "one = Constant <value_float = 1.0> ()  three = Constant <value_float = 3.0> () "
NUMBERS += "six = Constant <value_float = 6.0> ()  zero = Constant <value_float = 0.0> () "
NUMBERS += "half = Constant <value_float = 0.5> ()  sixth = Constant <value_float = 0.16666667> () "
RELU6 = f"{NUMBERS} a = Add (x, three)  r = Clip (a, zero, six) "
GATE = f"{RELU6} h = Div (r, six) "
HARD_SIGMOID = "v1 = HardSigmoid <alpha: float = 0.16666667> (v0)"
GELU = "r2 = Constant <value_float = 1.4142135> ()  q = Div (x, r2)  e = Erf (q)  o = Add (e, one) "

ACTIVATIONS = {
    "HardSigmoid": (X, [HARD_SIGMOID], [
        f"{RELU6} y = Div (r, six)",
        f"{RELU6} y = Mul (sixth, r)",
        f"{NUMBERS} a = Add (three, x)  b = Max (a, zero)  r = Min (b, six)  y = Div (r, six)",
        f"{NUMBERS} s = Mul (x, sixth)  a = Add (s, half)  y = Clip (a, zero, one)",
        "y = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x)",
    ]),
    "HardSwish": (X, ["v1 = HardSwish (v0)"], [
        "y = HardSwish (x)",
        f"{GATE} y = Mul (x, h)",
        f"{RELU6} m = Mul (x, r)  y = Div (m, six)",
        f"{RELU6} s = Div (x, six)  y = Mul (r, s)",
        "h = HardSigmoid <alpha = 0.16666667> (x)  y = Mul (h, x)",
    ]),
    "Gelu": (ROW, ["v1 = Gelu (v0)"], [
        'y = Gelu <approximate = "none"> (x)',
        f"{NUMBERS} {GELU} m = Mul (x, o)  y = Mul (m, half)",
        f"{NUMBERS} {GELU} h = Mul (half, x)  y = Mul (h, o)",
        f"{NUMBERS} {GELU} h = Mul (half, o)  y = Mul (x, h)",
    ]),
    "Gelu by tanh": (ROW, ['v1 = Gelu <approximate: string = "tanh"> (v0)'], [
        'y = Gelu <approximate = "tanh"> (x)',
        f"{NUMBERS} k = Constant <value_float = 0.044715> ()  f = Constant <value_float = 0.7978846> () "
        "p = Pow (x, three)  c = Mul (p, k)  s = Add (x, c)  t = Mul (s, f)  h = Tanh (t)  o = Add (h, one) "
        "m = Mul (x, o)  y = Mul (m, half)",
        f"{NUMBERS} k = Constant <value_float = 0.044715> ()  f = Constant <value_float = 0.7978846> () "
        "q = Mul (x, x)  p = Mul (q, x)  c = Mul (k, p)  s = Add (c, x)  t = Mul (f, s)  h = Tanh (t) "
        "o = Add (one, h)  b = Mul (half, x)  y = Mul (b, o)",
    ]),
    "SiLU": (X, ["v1 = nn.Silu (v0)"], ["s = Sigmoid (x)  y = Mul (s, x)", "y = Swish (x)"]),
    "Mish": (X, ["v1 = Softplus (v0)", "v2 = Tanh (v1)", "v3 = Mul (v0, v2)"], [
        "y = Mish (x)", "s = Softplus (x)  t = Tanh (s)  y = Mul (x, t)"
    ]),
    "Swish": (X, ["v1 = nn.Scale <factor: float = 1.7> (v0)", "v2 = Sigmoid (v1)", "v3 = Mul (v0, v2)"], [
        "y = Swish <alpha = 1.7> (x)",
        "a = Constant <value_float = 1.7> ()  s = Mul (x, a)  g = Sigmoid (s)  y = Mul (x, g)",
    ]),
    "Relu": (X, ["v1 = Relu (v0)"], [
        "y = Relu (x)", f"{NUMBERS} y = Max (x, zero)", f"{NUMBERS} y = Clip (x, zero)",
    ]),
    "Relu6": (X, ["v1 = nn.Clip <max: float = 6, min: float = 0> (v0)"], [
        f"{NUMBERS} y = Clip (x, zero, six)", f"{NUMBERS} r = Relu (x)  y = Min (six, r)",
        f"{NUMBERS} m = Min (x, six)  y = Relu (m)", f'{NUMBERS} m = Clip (x, "", six)  y = Clip (m, zero)',
    ]),
    "two bounds": (X, ["v1 = nn.Clip <max: float = 6, min: float = 3> (v0)"], [
        f"{NUMBERS} y = Clip (x, three, six)",
        f"{NUMBERS} m = Max (three, x)  y = Min (m, six)", f"{NUMBERS} m = Min (x, six)  y = Max (m, three)",
    ]),
    "bound above": (X, ["v1 = Constant <value_float: float = 6> ()", "v2 = Min (v0, v1)"], [
        f"{NUMBERS} y = Min (six, x)", f'{NUMBERS} y = Clip (x, "", six)',
        f"{NUMBERS} m = Constant <value_float = -3.4028235e38> ()  y = Clip (x, m, six)",
        f"{NUMBERS} i = Neg (zero)  z = Div (one, i)  y = Clip (x, z, six)",
    ]),
    "bound below": (X, ["v1 = Constant <value_float: float = 3> ()", "v2 = Max (v0, v1)"], [
        f"{NUMBERS} y = Max (x, three)", f"{NUMBERS} y = Clip (x, three)",
    ]),
    "bounds that contradict each other": (X, [
        *("v1 = Constant <value_float: float = 6> ()", "v2 = Max (v0, v1)"),
        *("v3 = Constant <value_float: float = 3> ()", "v4 = Min (v2, v3)"),
    ], [f"{NUMBERS} m = Max (six, x)  y = Min (m, three)", f'{NUMBERS} m = Clip (x, six)  y = Clip (m, "", three)']),
    "guard against infinity": (X, ["v1 = nn.Clip <max: float = 3.4028235e+38, min: float = -3.4028235e+38> (v0)"], [
        "h = Constant <value_float = 3.4028235e38> ()  l = Neg (h)  y = Clip (x, l, h)",
    ]),
    "no bounds": (X, ["v1 = Relu (v0)"], [
        "y = Relu (x)", "c = Clip (x)  y = Relu (c)",
    ]),
    "inverse": (X, ["v1 = Abs (v0)", "v2 = Reciprocal (v1)"], [
        "a = Abs (x)  y = Reciprocal (a)", f"{NUMBERS} a = Abs (x)  y = Div (one, a)",
    ]),
}  # fmt: skip
