"""Writes a GGUF file as a folder that the builder reads, in float32, as transformers reads it.

Usage: write_checkpoint.py FILE.gguf FOLDER
"""

import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

source, target = sys.argv[1:]
folder, gguf_file = os.path.split(source)
read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=gguf_file, dtype=torch.float32)
# What was read says that it is quantized, as its files are not any more.
config = read.config
for name in ("quantization_config", "_pre_quantization_dtype"):
    if hasattr(config, name):
        delattr(config, name)
config.architectures = [type(read).__name__]
model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
model.load_state_dict(read.state_dict(), strict=False)
model.tie_weights()
model.generation_config = read.generation_config
model.save_pretrained(target)
AutoTokenizer.from_pretrained(folder, gguf_file=gguf_file).save_pretrained(target)
