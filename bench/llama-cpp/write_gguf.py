"""Writes the weight matrices of generate.py's model as a GGUF file, in llama.cpp's order: a row for each output.

Usage: write_gguf.py OUTPUT.gguf LAYERS
"""

import sys

import gguf
import numpy as np

HIDDEN, WIDE = 2048, 8192
SHAPES = {"attn_q": (HIDDEN, HIDDEN), "attn_output": (HIDDEN, HIDDEN), "ffn_up": (WIDE, HIDDEN), "ffn_down": (HIDDEN, WIDE)}


def weights(layers):
    random = np.random.default_rng(7)
    for layer in range(layers):
        for name, (outputs, inputs) in SHAPES.items():
            array = random.standard_normal((outputs, inputs), dtype=np.float32) / np.float32(inputs**0.5)
            array[:, :: inputs // 16] *= 6
            yield f"blk.{layer}.{name}.weight", array


output, layers = sys.argv[1], int(sys.argv[2])
writer = gguf.GGUFWriter(output, "llama")
writer.add_block_count(layers)
writer.add_context_length(512)
writer.add_embedding_length(HIDDEN)
writer.add_feed_forward_length(WIDE)
writer.add_head_count(16)
writer.add_layer_norm_rms_eps(1e-5)
for name, array in weights(layers):
    writer.add_tensor(name, array)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
