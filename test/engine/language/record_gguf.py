"""Records how GGUF files of some checkpoints begin: needs gguf.

    python record_gguf.py

Names of tensors and metadata are those that llama.cpp's convert_hf_to_gguf.py writes with
`--outtype f32`. `gguf.json` has for each file what precedes the values of the checkpoint, and the
checkpoint's tensors in the order in which the values follow.
"""

import base64
import json
import math
import os
import struct
import tempfile

import numpy as np
from gguf import (
    GGML_QUANT_SIZES,
    MODEL_ARCH,
    GGMLQuantizationType,
    GGUFWriter,
    RopeScalingType,
    TokenType,
    get_tensor_name_map,
)

HERE = os.path.dirname(os.path.abspath(__file__))
ARCHITECTURES = {"llama3": MODEL_ARCH.LLAMA, "qwen2": MODEL_ARCH.QWEN2, "qwen3": MODEL_ARCH.QWEN3}
NAMES = {"llama3": "llama"}
PRE = {"llama3": "llama-bpe"}


def read_shapes(folder):
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return {name: each["shape"] for name, each in header.items() if name != "__metadata__"}


def divisors(rope, head_size):
    """As LlamaModel.generate_extra_tensors of the converter."""
    context, low, high = (
        rope["original_max_position_embeddings"],
        rope["low_freq_factor"],
        rope["high_freq_factor"],
    )
    values = []
    for at in range(0, head_size, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (at / head_size)
        smooth = min(max((context / length - low) / (high - low), 0), 1)
        values.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(values, np.float32)


def add_metadata(writer, name, config):
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    writer.add_file_type(0)
    if name == "llama3":
        writer.add_vocab_size(config["vocab_size"])
        writer.add_rope_dimension_count(config["head_dim"])
    writer.add_quantization_version(2)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE.get(name, "qwen2"))
    count = config["vocab_size"]
    writer.add_token_list([f"t{index}" for index in range(count)])
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.NORMAL] * (count - 3))
    writer.add_token_merges(["t 3"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template("{{ messages[0].content }}")


def record(name, change=lambda writer: None, choose_type=lambda tensor: "F32"):
    folder = os.path.join(HERE, "checkpoints", name)
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    names = get_tensor_name_map(ARCHITECTURES[name], config["num_hidden_layers"])
    shapes = read_shapes(folder)
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "model.gguf")
        writer = GGUFWriter(path, NAMES.get(name, name))
        add_metadata(writer, name, config)
        change(writer)
        first = b""
        if config["rope_parameters"]["rope_type"] == "llama3":
            values = divisors(config["rope_parameters"], config["head_dim"])
            writer.add_tensor_info("rope_freqs.weight", values.shape, values.dtype, values.nbytes)
            first = values.tobytes()
        for tensor, shape in shapes.items():
            gguf_name = names.get_name(tensor, try_suffixes=(".weight", ".bias"))
            kind = GGMLQuantizationType["F32" if len(shape) == 1 else choose_type(tensor)]
            values, size = GGML_QUANT_SIZES[kind]
            count = math.prod(shape) // values * size
            writer.add_tensor_info(gguf_name, shape, np.dtype(np.float32), count, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        with open(path, "rb") as file:
            header = file.read()
    start = header + bytes(-len(header) % 32) + first
    return {"start": base64.b64encode(start).decode(), "tensors": list(shapes)}


recorded = {name: record(name) for name in ARCHITECTURES}
recorded["qwen2 with YaRN"] = record(
    "qwen2", lambda writer: writer.add_rope_scaling_type(RopeScalingType.YARN)
)
recorded["qwen3 in two files"] = record(
    "qwen3", lambda writer: writer.add_uint16("split.count", 2)
)
recorded["llama3 in 4 bits and 8"] = record(
    "llama3", choose_type=lambda tensor: "Q8_0" if "layers.0.self_attn.v_proj" in tensor else "Q4_1"
)
with open(os.path.join(HERE, "gguf.json"), "w") as file:
    json.dump(recorded, file)
