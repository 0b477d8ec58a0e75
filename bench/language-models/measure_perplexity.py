"""Prints the perplexity of a folder's model on a text file as JSON: windows of 512 tokens, each after nothing.

Usage: measure_perplexity.py FOLDER TOKENIZER.json TEXT WINDOWS
"""

import json
import os
import sys

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

WINDOW = 512

folder, tokenizer, text, windows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with open(text) as file:
    ids = Tokenizer.from_file(tokenizer).encode(file.read()).ids
ids = np.array(ids[: windows * WINDOW]).reshape(windows, 1, WINDOW)
with open(os.path.join(folder, "genai_config.json")) as file:
    decoder = json.load(file)["model"]["decoder"]
session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))
past = np.zeros((1, decoder["num_key_value_heads"], 0, decoder["head_size"]), np.float32)
feeds = {each.name: past for each in session.get_inputs() if each.name.startswith("past_key_values.")}
loss = 0.0
for window in ids:
    inputs = {"input_ids": window, "attention_mask": np.ones_like(window), **feeds}
    [[logits]] = session.run(["logits"], inputs)
    logits = logits[:-1].astype(np.float64)
    highest = logits.max(axis=1)
    total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    loss += (total - logits[np.arange(WINDOW - 1), window[0, 1:]]).sum()
print(json.dumps({"perplexity": float(np.exp(loss / (windows * (WINDOW - 1))))}))
