"""Makes a small random decoder as onnxruntime-genai's model builder exports one in float32 for CPUs.

Usage: build_language_model.py FILE [tied] [normalized]
tied: one matrix is the embedding, past a Transpose, and the head. normalized: queries and keys have norms of their own.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, INNER, VOCABULARY, LAYERS, HEADS, KV_HEADS, HEAD, LENGTH = 64, 96, 160, 2, 4, 2, 32, 64

path, *options = sys.argv[1:]
random = np.random.default_rng(0)
nodes, initializers = [], []


def add(op, inputs, name, outputs=None, domain="", **attributes):
    outputs = outputs or [name + "/output_0"]
    nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes))
    return outputs[0]


def constant(name, values):
    initializers.append(numpy_helper.from_array(np.asarray(values), name))
    return name


def weight(name, *shape, scale=None):
    values = random.standard_normal(shape) * (scale or shape[0] ** -0.5)
    return constant(name, values.astype(np.float32))


def norm(name, size):
    return constant(name, (1 + 0.1 * random.standard_normal(size)).astype(np.float32))


def integers(*values):
    return constant("/model/constants/INT64/" + str(list(values)), np.array(values, np.int64))


def project(value, name, inputs, outputs):
    return add("MatMul", [value, weight(f"model.{name}.weight".replace("/", "."), inputs, outputs)], f"/model/{name}/MatMul")


def normalize_heads(value, heads, layer, which):
    name = f"/model/layers.{layer}/attn/{which}_norm"
    split = add("Reshape", [value, f"/model/constants/INT64/[0, -1, {heads}, {HEAD}]"], f"{name}/Reshape_1")
    scaled = add("SimplifiedLayerNormalization", [split, norm(f"model.layers.{layer}.attn.{which}_norm.weight", HEAD)],
                 f"{name}/SimplifiedLayerNormalization", axis=-1, epsilon=1e-6, stash_type=1)
    return add("Reshape", [scaled, f"/model/constants/INT64/[0, -1, {heads * HEAD}]"], f"{name}/Reshape_2")


for heads in (HEADS, KV_HEADS) if "normalized" in options else ():
    integers(0, -1, heads, HEAD)
    integers(0, -1, heads * HEAD)
one, index = integers(1), constant("index", np.int64(1))
sums = add("ReduceSum", ["attention_mask", one], "/model/attn_mask_reformat/ReduceSum")
lengths = add("Cast", [add("Sub", [sums, one], "/model/attn_mask_reformat/Sub")], "/model/attn_mask_reformat/Cast", to=TensorProto.INT32)
shape = add("Shape", ["attention_mask"], "/model/attn_mask_reformat/Shape")
total = add("Cast", [add("Gather", [shape, index], "/model/attn_mask_reformat/Gather")], "/model/attn_mask_reformat/total/Cast", to=TensorProto.INT32)
angles = np.outer(np.arange(LENGTH), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
constant("cos_cache", np.cos(angles).astype(np.float32))
constant("sin_cache", np.sin(angles).astype(np.float32))

if "tied" in options:
    weight("lm_head.MatMul.weight", HIDDEN, VOCABULARY)
    rows = add("Transpose", ["lm_head.MatMul.weight"], "/model/embed_tokens/Transpose", perm=[1, 0])
else:
    rows = weight("model.embed_tokens.weight", VOCABULARY, HIDDEN, scale=0.1)
residual = add("Gather", [rows, "input_ids"], "/model/embed_tokens/Gather")
value = add("SimplifiedLayerNormalization", [residual, norm("model.layers.0.input_layernorm.weight", HIDDEN)],
            "/model/layers.0/input_layernorm/LayerNorm", axis=-1, epsilon=1e-6, stash_type=1)


def skip_norm(skip, name):
    outputs = [f"/{name}/output_0", "", "", f"/{name}/output_3"]
    add("SkipSimplifiedLayerNormalization", [residual, skip, norm(f"{name.replace('/', '.')}.weight", HIDDEN)],
        f"/{name}/SkipLayerNorm", outputs, "com.microsoft", epsilon=1e-6)
    return outputs[0], outputs[3]


inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
          helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])]
outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCABULARY])]
for layer in range(LAYERS):
    pasts = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
    presents = [f"present.{layer}.{part}" for part in ("key", "value")]
    for names, found, length in ((pasts, inputs, "past_sequence_length"), (presents, outputs, "total_sequence_length")):
        for name in names:
            found.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch_size", KV_HEADS, length, "kv_cache_dim"]))
    base = f"layers.{layer}"
    if "normalized" in options:
        query = normalize_heads(project(value, f"{base}/attn/q_proj", HIDDEN, HEADS * HEAD), HEADS, layer, "q")
        key = normalize_heads(project(value, f"{base}/attn/k_proj", HIDDEN, KV_HEADS * HEAD), KV_HEADS, layer, "k")
        attended = [query, key, project(value, f"{base}/attn/v_proj", HIDDEN, KV_HEADS * HEAD)]
    else:
        size = (HEADS + 2 * KV_HEADS) * HEAD
        packed = project(value, f"{base}/attn/qkv_proj", HIDDEN, size)
        attended = [add("Add", [packed, weight(f"model.layers.{layer}.attn.qkv_proj.bias", size, scale=0.1)], f"/model/{base}/attn/qkv_proj/Add"), "", ""]
    attention = f"/model/{base}/attn/GroupQueryAttention"
    attention = add("GroupQueryAttention", [*attended, *pasts, lengths, total, "cos_cache", "sin_cache"], attention,
                    [attention + "/output_0", *presents], "com.microsoft", num_heads=HEADS, kv_num_heads=KV_HEADS, scale=HEAD**-0.5,
                    local_window_size=-1, do_rotary=1, rotary_interleaved=0)
    out = project(attention, f"{base}/attn/o_proj", HEADS * HEAD, HIDDEN)
    value, residual = skip_norm(out, f"model/{base}/post_attention_layernorm")
    gate = project(value, f"{base}/mlp/gate_proj", HIDDEN, INNER)
    up = project(value, f"{base}/mlp/up_proj", HIDDEN, INNER)
    activation = add("Mul", [gate, add("Sigmoid", [gate], f"/model/{base}/mlp/act_fn/Sigmoid")], f"/model/{base}/mlp/act_fn/Mul")
    down = project(add("Mul", [activation, up], f"/model/{base}/mlp/Mul"), f"{base}/mlp/down_proj", INNER, HIDDEN)
    last = "final_norm_layernorm" if layer == LAYERS - 1 else f"layers.{layer + 1}/input_layernorm"
    value, residual = skip_norm(down, f"model/{last}")
if "tied" not in options:
    weight("lm_head.MatMul.weight", HIDDEN, VOCABULARY)
add("MatMul", [value, "lm_head.MatMul.weight"], "/lm_head/MatMul", ["logits"])

unique = {tensor.name: tensor for tensor in initializers}
graph = helper.make_graph(nodes, "main_graph", inputs, outputs, list(unique.values()))
imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10, producer_name="onnxruntime-genai"), path)
