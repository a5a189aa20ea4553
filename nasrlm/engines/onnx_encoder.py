"""Build an ONNX model of the compact encoder. N texts, L text tokens, S states, D width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from nasrlm.engines.onnx_builder import FLOAT, FUSED, INT32, INT64, OnnxBuilder
from nasrlm.model.encoder import UNJOINED, Encoder, Join
from nasrlm.model.layers import EncoderLayer


def encoder_model(encoder: Encoder, *, int8: bool) -> bytes:
    """Return the serialised ONNX model of an encoder.

    Its input is ``text_ids``, (N, L) int64 with 0 for padding; its output is ``states``, (N, S, D) float32.

    Args:
        encoder: the encoder, whose weights are copied.
        int8: whether to store and multiply weights of linear layers in 8 bits.
    """
    graph = OnnxBuilder(int8=int8)
    layers = list(cast(Iterator[EncoderLayer], iter(encoder.layers)))
    is_text = graph.node("Cast", "text_ids", to=INT32)  # the attention mask: nonzero except for padding
    x = graph.node("Gather", graph.weight(encoder.embedding.weight), "text_ids")
    normed = graph.rms_norm(x, layers[0].attention_norm)
    next_norms = [*[layer.attention_norm for layer in layers[1:]], encoder.norm]
    for index, (layer, next_norm) in enumerate(zip(layers, next_norms, strict=True)):
        if encoder.join is not None and index == UNJOINED:
            x, is_text = _joined(graph, x, is_text, encoder.join)
            normed = graph.rms_norm(x, layer.attention_norm)
        attended = _self_attention(graph, normed, layer, encoder, is_text)
        normed, x = graph.add_and_norm(x, attended, layer.mlp.norm)
        normed, x = graph.add_and_norm(x, graph.gated_mlp(normed, layer.mlp), next_norm)
    return graph.build({"text_ids": (INT64, ["N", "L"])}, {"states": (normed, FLOAT)})


def _joined(graph: OnnxBuilder, x: str, is_text: str, join: Join) -> tuple[str, str]:
    """Join neighbouring tokens, as ``Join`` does: (N, L, D) to (N, S, D), and their mask (N, L) to (N, S)."""
    text = graph.node("Sign", graph.node("Cast", graph.node("Unsqueeze", is_text, graph.ints(2)), to=FLOAT))
    length = graph.node("Shape", is_text, start=1)
    tokens = graph.ints(join.tokens)
    missing = graph.node("Mod", graph.node("Neg", length), tokens)
    x, text = (
        graph.node("Pad", part, graph.node("Concat", graph.ints(0), missing, axis=0), "", graph.ints(1))
        for part in (graph.node("Mul", x, text), text)
    )
    x = graph.linear(graph.node("Reshape", x, graph.ints(0, -1, join.linear.in_features)), join.linear)
    windows = graph.node("Reshape", text, graph.ints(0, -1, join.tokens))
    return x, graph.node("Cast", graph.node("ReduceMax", windows, graph.ints(2), keepdims=0), to=INT32)


def _self_attention(graph: OnnxBuilder, normed: str, layer: EncoderLayer, encoder: Encoder, is_text: str) -> str:
    q, k, v = graph.split(graph.linear(normed, layer.qkv), 3)
    cos, sin = (graph.weight(part) for part in encoder.rotation)
    first = graph.ints(0)
    q, k = (
        graph.node("RotaryEmbedding", part, first, cos, sin, domain=FUSED, num_heads=layer.num_heads) for part in (q, k)
    )
    return graph.linear(graph.attention(q, k, v, layer.num_heads, is_text), layer.out)
