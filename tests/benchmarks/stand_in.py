"""A stand-in for regress-lm with its public interface: a linear layer that reads nothing."""

from pathlib import Path

import pytest

STAND_IN = {
    "__init__": "",
    "core": """
from dataclasses import dataclass
@dataclass
class ExampleInput:
    x: str
@dataclass
class Example(ExampleInput):
    y: object
""",
    "vocabs": """
class SentencePieceVocab:
    @classmethod
    def from_corpus(cls, corpus_path, vocab_size=8192, model_prefix=None):
        assert corpus_path.read_text()
        return cls()
    def to_token_ids(self, text):
        return [1] * len(text)
""",
    "rlm": """
import numpy as np, torch
class Model(torch.nn.Linear):
    encoder_decoder = property(lambda self: self)
    def convert_examples(self, examples):
        return {"encoder_input": torch.ones(len(examples), self.in_features)}
    def compute_losses_and_metrics(self, batch):
        return self(batch["encoder_input"]).mean(dim=1), {}
    def encode(self, tokens):
        return self(tokens), None
class RegressLM:
    def __init__(self, width, objectives):
        self.model, self.objectives = Model(width, 100), objectives
    @classmethod
    def from_scratch(cls, device=None, **kwargs):
        assert kwargs["max_input_len"] > 10, f"{kwargs['max_input_len']} tokens"
        assert not kwargs["compile_model"]
        return cls(kwargs["d_model"], kwargs["max_num_objs"])
    def sample(self, xs, num_samples):
        return [np.full((num_samples, self.objectives), float(len(x.x)), dtype=object) for x in xs]
""",
}


def write_stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, modules: dict[str, str]) -> None:
    """For interpreters that are started from here on."""
    (folder / "regress_lm").mkdir()
    for name, source in modules.items():
        (folder / "regress_lm" / f"{name}.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))
