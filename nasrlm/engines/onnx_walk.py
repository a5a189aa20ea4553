"""The walk to exact quantiles as one ONNX model: every decoder step and every choice of a token.

It computes the same as ``decoding.quantiles``, but rows with the same objective and tokens so far are decoded once.
Levels ascend, so such rows are neighbours.

N texts, L text tokens, M objectives, Q levels, R = M * Q rows, U the largest number of different rows of a text,
T number tokens, V vocabulary, D width, H heads.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from nasrlm.engines.onnx_builder import DOUBLE, FLOAT, INT32, INT64, OnnxBuilder, Signature
from nasrlm.model.decoder import FORBIDDEN, Decoder
from nasrlm.model.decoding import NEAR, UNLIKELY
from nasrlm.model.layers import DecoderLayer, decoder_layers
from nasrlm.model.number import FIRST_DIGIT, NEGATIVE


def walk_model(decoder: Decoder, *, int8: bool) -> bytes:
    """Build the model.

    Inputs: ``states`` (N, L, D) float32, ``mask`` (N, L) int32, ``objectives`` (M,) int64, and ascending ``levels``
    (N, M, Q) float64. Outputs: ``tokens`` (N, R, T) int64, and ``rest`` (N, R) float64, the levels within the last
    digit.
    """
    walk = _Walk(decoder, OnnxBuilder(int8=int8))
    inputs: Signature = {
        "states": (FLOAT, ["N", "L", decoder.config.width]),
        "mask": (INT32, ["N", "L"]),
        "objectives": (INT64, ["M"]),
        "levels": (DOUBLE, ["N", "M", "Q"]),
    }
    tokens, rest = walk.write()
    return walk.graph.build(inputs, {"tokens": (tokens, INT64), "rest": (rest, DOUBLE)})


class _Walk:
    """The state of writing the model; attributes are names of values."""

    def __init__(self, decoder: Decoder, graph: OnnxBuilder) -> None:
        self.decoder, self.graph = decoder, graph
        self.layers = decoder_layers(decoder.layers)
        self.num_heads = decoder.config.num_heads
        self.head_width = decoder.config.width // self.num_heads
        self.memory = [self._remember(layer) for layer in self.layers]
        self.level = self._reshape("levels", 0, -1)
        of_levels = graph.node("Expand", self._unsqueeze("objectives", -1), graph.node("Shape", "levels"))
        self.objective = self._reshape(of_levels, 0, -1)
        ones = graph.node("Expand", graph.ints(1), graph.node("Shape", self.objective))
        self.numbers = graph.node("CumSum", ones, graph.constant(np.array(1)), exclusive=1)  # 0 to R - 1
        self.past: list[list[str]] = []  # keys and values of every layer, (N, U, t, H, D / H)
        self.group = ""  # (N, R) number of the group of equal rows that a row belongs to
        self.row = ""  # (N, U) one row of each group

    def write(self) -> tuple[str, str]:
        """Write all positions; return the (N, R, T) tokens and the (N, R) remaining levels."""
        graph = self.graph
        bias = np.where(self.decoder.grammar.cpu().numpy(), 0.0, FORBIDDEN).astype(np.float32)
        self._regroup(self.objective)
        sign = self._choose(graph.node("Add", self._step(0, None), graph.constant(bias[0, 0])), 0)
        negative = graph.node("Equal", sign, graph.ints(NEGATIVE))
        self.level = graph.node("Where", negative, graph.node("Sub", self._double(1), self.level), self.level)
        tokens = [sign]
        for position in range(1, self.decoder.code.length):
            self._regroup(tokens[-1])
            logits = self._step(position, tokens[-1])
            allowed = graph.node("Gather", graph.constant(bias[:, position]), sign)
            tokens.append(self._choose(graph.node("Add", logits, allowed), position))
        return graph.node("Concat", *[self._unsqueeze(token, -1) for token in tokens], axis=-1), self.level

    def _choose(self, logits: str, position: int) -> str:
        """Choose tokens where the cumulative probability passes the levels; keep the levels within these tokens."""
        graph, last = self.graph, self.graph.ints(-1)
        if position < FIRST_DIGIT:
            logits = self._likely(logits, position)
        probabilities = graph.node("Softmax", graph.node("Cast", logits, to=DOUBLE), axis=-1)
        cumulative = graph.node("CumSum", probabilities, graph.constant(np.array(-1)))
        end = graph.node("ReduceSum", probabilities, last, keepdims=1)
        below_end = graph.node("Mul", self._unsqueeze(graph.node("Min", self.level, self._double(1 - 1e-9)), -1), end)
        passed = graph.node("Cast", graph.node("LessOrEqual", cumulative, below_end), to=INT64)
        token = graph.node("ReduceSum", passed, last, keepdims=1)
        taken, up_to = (graph.node("GatherElements", part, token, axis=-1) for part in (probabilities, cumulative))
        rest = graph.node("Sub", below_end, graph.node("Sub", up_to, taken))
        share = graph.node("Div", rest, graph.node("Max", taken, self._double(1e-300)))
        self.level = graph.node("Squeeze", graph.node("Clip", share, self._double(0), self._double(1)), last)
        return graph.node("Squeeze", token, last)

    def _likely(self, logits: str, position: int) -> str:
        """Forbid signs or exponents that are not written, as ``decoding.without_unlikely``."""
        graph = self.graph
        likeliest = graph.node("ArgMax", logits, axis=-1, keepdims=1)
        ids = graph.constant(np.arange(self.decoder.code.vocabulary_size))
        is_far = graph.node("Greater", graph.node("Abs", graph.node("Sub", ids, likeliest)), graph.ints(NEAR[position]))
        least = graph.node("Add", graph.node("GatherElements", logits, likeliest, axis=-1), self._float(UNLIKELY))
        unlikely = graph.node("And", is_far, graph.node("Less", logits, least))
        return graph.node("Where", unlikely, self._float(FORBIDDEN), logits)

    def _step(self, position: int, token: str | None) -> str:
        """Return (N, R, V) logits of the token at a position, given the one before; each group is decoded once."""
        graph, decoder = self.graph, self.decoder
        x = self._embed(decoder.objectives, self.objective)
        x = graph.node("Add", x, graph.weight(decoder.positions.weight[position]))
        if token is not None:
            x = graph.node("Add", x, self._embed(decoder.tokens, token))
        normed = graph.rms_norm(x, self.layers[0].self_norm)
        next_norms = [*[layer.self_norm for layer in self.layers[1:]], decoder.norm]
        for index, (layer, next_norm) in enumerate(zip(self.layers, next_norms, strict=True)):
            normed, x = graph.add_and_norm(x, self._own_past(index, normed), layer.cross_norm)
            query = graph.linear(normed, layer.query)
            keys, values = self.memory[index]
            read = graph.attention(query, keys, values, layer.num_heads, "mask")
            normed, x = graph.add_and_norm(x, graph.linear(read, layer.cross_out), layer.mlp.norm)
            normed, x = graph.add_and_norm(x, graph.gated_mlp(normed, layer.mlp), next_norm)
        return self._pick(graph.linear(normed, decoder.head), self.group)

    def _own_past(self, index: int, normed: str) -> str:
        """Compute self-attention over a row's tokens so far.

        The fused operator would take twice as long for so few tokens.
        """
        graph, layer = self.graph, self.layers[index]
        qkv = graph.split(graph.linear(normed, layer.qkv), 3)
        q, *present = (self._reshape(part, 0, 0, 1, self.num_heads, self.head_width) for part in qkv)
        if index < len(self.past):
            pairs = zip(self.past[index], present, strict=True)
            present = [graph.node("Concat", past, part, axis=2) for past, part in pairs]
        self.past[index : index + 1] = [present]
        keys, values = present
        scaled = graph.node("Mul", q, self._float(self.head_width**-0.5))
        scores = graph.node("ReduceSum", graph.node("Mul", scaled, keys), graph.ints(-1))
        weighted = graph.node("Mul", graph.node("Softmax", scores, axis=2), values)
        attended = graph.node("ReduceSum", weighted, graph.ints(2), keepdims=0)
        return graph.linear(self._reshape(attended, 0, 0, -1), layer.self_out)

    def _remember(self, layer: DecoderLayer) -> list[str]:
        """Return keys and values of the text, (N, H, L, D / H)."""
        heads = self._reshape(self.graph.linear("states", layer.memory), 0, 0, 2 * self.num_heads, self.head_width)
        return self.graph.split(self.graph.node("Transpose", heads, perm=[0, 2, 1, 3]), 2, axis=1)

    def _regroup(self, token: str) -> None:
        """Split groups of rows whose last tokens differ, and reorder the past to match."""
        graph, before = self.graph, self.group
        differs = self._differs(token)
        if before:
            differs = graph.node("Or", differs, self._differs(before))
        count = graph.node("CumSum", graph.node("Cast", differs, to=INT64), graph.constant(np.array(1)))
        self.group = graph.node("Pad", count, graph.ints(1, 0), "", graph.ints(1))
        number = graph.node("ReduceMax", graph.node("Add", self.group, graph.ints(1)), graph.ints(0, 1), keepdims=0)
        shape = graph.node("Concat", self._size(token, 0), self._unsqueeze(number, 0), axis=0)
        zeros = graph.node("Expand", graph.ints(0), shape)
        self.row = graph.node("ScatterElements", zeros, self.group, self.numbers, axis=1, reduction="max")
        if before:
            parent = graph.node("GatherElements", before, self.row, axis=1)
            self.past = [[self._pick(part, parent) for part in parts] for parts in self.past]

    def _differs(self, token: str) -> str:
        """Return (N, R - 1) flags of rows whose value differs from that of the row before."""
        one, end = self.graph.ints(1), self.graph.ints(np.iinfo(np.int64).max)
        after = self.graph.node("Slice", token, one, end, one)
        before = self.graph.node("Slice", token, self.graph.ints(0), self.graph.ints(-1), one)
        return self.graph.node("Not", self.graph.node("Equal", after, before))

    def _embed(self, embedding: nn.Embedding, ids: str) -> str:
        """Return (N, U, D) embeddings of the ids of one row per group."""
        ids = self.graph.node("GatherElements", ids, self.row, axis=1)
        return self.graph.node("Gather", self.graph.weight(embedding.weight), ids)

    def _pick(self, x: str, index: str) -> str:
        """Select from axis 1 of (N, ...) at the (N, K) indices of each text."""
        return self.graph.node("GatherND", x, self._unsqueeze(index, -1), batch_dims=1)

    def _reshape(self, x: str, *shape: int) -> str:
        return self.graph.node("Reshape", x, self.graph.ints(*shape))

    def _unsqueeze(self, x: str, axis: int) -> str:
        return self.graph.node("Unsqueeze", x, self.graph.ints(axis))

    def _size(self, x: str, axis: int) -> str:
        return self.graph.node("Shape", x, start=axis, end=axis + 1)

    def _float(self, value: float) -> str:
        return self.graph.constant(np.array(value, dtype=np.float32))

    def _double(self, value: float) -> str:
        return self.graph.constant(np.array(value, dtype=np.float64))
