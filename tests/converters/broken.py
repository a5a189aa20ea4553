"""Contents to break, and ways in which files get broken: cut off, bytes flipped, pieces lost, doubled or put in."""

from functools import cache

import numpy as np
from hypothesis import strategies as st
from onnx import numpy_helper
from torch import nn

from converters import to_model, to_onnx_text
from converters.models.torch_module import export_module
from converters.text import prelude
from spaces import get_space
from tests.converters.networks import RecurrentClassifier, VisionTransformer
from tests.converters.onnx_models import model, tensor
from tests.spaces.contract import rng

MODELS = ("recurrent", "transformer", "own", "older")
WORDS = ("99999999999999999999", "1e999", "-1", "nan", "é", "\0", "seq(", "(" * 999, "[", "}", "@", '"', "v0", "\n")


@cache
def whole_model(name: str) -> bytes:
    """One of MODELS: exported by torch, our own with its functions, and of an older opset with open sizes."""
    match name:
        case "recurrent":
            proto = export_module(RecurrentClassifier(nn.LSTM, 20, 4, layers=1, classes=3), (1, 5))
        case "transformer":
            proto = export_module(VisionTransformer(8, 4, 8, 1, 2, 3), (1, 3, 8, 8))
        case "own":
            proto = to_model(whole_text())
        case _:
            proto = _older()
    return proto.SerializeToString()


@cache
def whole_text() -> str:
    """A canonical text with functions, its prelude behind it."""
    space = get_space("hiaml")
    return f"{to_onnx_text(space, space.sample(rng(0)))}\n{prelude()}"


def _older():
    text = """(float[N,3,8,8] x) => (float[N,4] y) {
        c = Conv <pads = [1,1,1,1]> (x, w, b)  n = BatchNormalization (c, b, b, b, b)  r = Relu (n)
        s = Shape (r)  i = Constant <value_int = 0> ()  d = Gather (s, i)  u = Unsqueeze (d, a)
        m = Constant <value_ints = [-1]> ()  t = Concat <axis = 0> (u, m)  f = Reshape (r, t)
        g = Gemm <transB = 1> (f, k)  h = Softmax <axis = 1> (g)  y = Add (h, h) }"""
    integers = numpy_helper.from_array(np.array([0]), "a")
    return model(text, tensor("w", 4, 3, 3, 3), tensor("b", 4), tensor("k", 4, 256), integers, opset=13)


@st.composite
def broken_models(draw) -> bytes:
    """The bytes of a model, broken in one to three places."""
    content = bytearray(whole_model(draw(st.sampled_from(MODELS))))
    for _ in range(draw(st.integers(1, 3))):
        place, length = draw(st.integers(0, len(content))), draw(st.integers(1, 8))
        match draw(st.sampled_from(("flip", "flip", "bit", "lose", "put in", "double", "cut"))):
            case "flip":
                content[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case "bit" if place < len(content):
                content[place] ^= 1 << draw(st.integers(0, 7))
            case "lose":
                del content[place : place + length]
            case "put in":
                content[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "double":
                content[place:place] = content[place : place + 8 * length]
            case "cut":
                del content[place:]
    return bytes(content)


@st.composite
def broken_texts(draw) -> str:
    """The characters of a text, broken in one to three places."""
    text = whole_text()[: draw(st.sampled_from((len(whole_text()), 1000)))]
    for _ in range(draw(st.integers(1, 3))):
        place, length = draw(st.integers(0, len(text))), draw(st.integers(0, 30))
        put_in = draw(st.sampled_from(WORDS) | st.characters() | st.just(""))
        text = text[:place] + put_in + text[place + length :]
    return text[: draw(st.integers(0, len(text)) | st.just(len(text)))]
