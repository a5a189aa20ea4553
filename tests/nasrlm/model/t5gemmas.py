"""A tiny random T5Gemma as the hub would give it, with a tokenizer of its own."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, T5GemmaConfig, T5GemmaForConditionalGeneration

SPECIAL = ["<pad>", "<eos>", "<bos>"]


def save_tiny_t5gemma(folder: Path, *, vocabulary_size: int = 300, padding: str = "<pad>") -> None:
    """Weights, config and tokenizer, in the files that Hugging Face writes."""
    sizes = {
        "vocab_size": vocabulary_size,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "max_position_embeddings": 256,
        "sliding_window": 64,
        "query_pre_attn_scalar": 8,
    }
    torch.manual_seed(0)
    config = T5GemmaConfig(encoder=dict(sizes), decoder=dict(sizes), vocab_size=vocabulary_size)
    T5GemmaForConditionalGeneration(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        ["Conv3\nConv1\nPool\nSkip\n"] * 9,
        trainers.BpeTrainer(vocab_size=290, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $0", special_tokens=[("<bos>", 2)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=padding, eos_token="<eos>", bos_token="<bos>")
    fast.save_pretrained(folder)
