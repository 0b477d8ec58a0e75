"""Writes a small random checkpoint of each family, and what transformers computes with it.

    python record_checkpoints.py      # needs torch and transformers 5; tests need neither

`logits.json` has the tokens of a prompt and the logits of every position in float32.
"""

import json
import os
import shutil

import torch
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=128,
    vocab_size=64,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=32,
)
CONFIGS = {
    "llama": ("llama", dict(tie_word_embeddings=False)),
    "llama3": ("llama", dict(tie_word_embeddings=True, rope_parameters=LLAMA3)),
    "mistral": ("mistral", dict(tie_word_embeddings=False, sliding_window=8)),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True, num_attention_heads=2, num_key_value_heads=1)),
    "qwen3": ("qwen3", dict(tie_word_embeddings=True)),
    "phi3": (
        "phi3",
        dict(
            num_attention_heads=2,
            num_key_value_heads=1,
            sliding_window=8,
            original_max_position_embeddings=128,
        ),
    ),
    "gemma2": ("gemma2", dict(query_pre_attn_scalar=24, sliding_window=8)),
    "gemma3": (
        "gemma3_text",
        dict(
            query_pre_attn_scalar=24,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"],
        ),
    ),
}
HEAD_DIM_FOLLOWS = {"qwen2", "phi3"}


def randomize(model):
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            if values.ndim == 2:
                values.copy_(noise * (0.5 if "embed" in name else 1.5 / values.shape[1] ** 0.5))
            else:
                values.copy_(noise * 0.3 + (1 if "norm" in name else 0))


for name, (kind, fields) in CONFIGS.items():
    base = {k: v for k, v in BASE.items() if k != "head_dim" or name not in HEAD_DIM_FOLLOWS}
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(kind, **{**base, **fields}), attn_implementation="eager"
    )
    randomize(model)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints", name)
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    tokens = [(7 * index * index + 3 * index + 1) % 64 for index in range(24)]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    with open(os.path.join(folder, "logits.json"), "w") as file:
        values = [[float(f"{value:.7g}") for value in row] for row in logits.tolist()]
        json.dump({"tokens": tokens, "logits": values}, file)
    print(name, sorted(os.listdir(folder)), float(logits.abs().max()))
