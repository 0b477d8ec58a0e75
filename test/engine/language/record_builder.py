"""Records what GenAI's own builder makes in int4 of SmolLM2: python record_builder.py FOLDER > FILE

FOLDER is the builder's result (`-p int4 -e cpu`) of the checkpoint as a folder of safetensors, which
transformers writes from the GGUF file. Contents of weights are recorded as SHA-256.
"""

import hashlib
import json
import os
import sys

import onnx
from onnx import numpy_helper

folder = sys.argv[1]
graph = onnx.load(os.path.join(folder, "model.onnx")).graph
hashes = {
    tensor.name: hashlib.sha256(numpy_helper.to_array(tensor).tobytes()).hexdigest()
    for tensor in graph.initializer
    if tensor.data_type != onnx.TensorProto.INT64
}
READERS = {1: lambda a: f"{round(a.f * 1e9)}e-9", 2: lambda a: a.i, 7: lambda a: list(a.ints)}


def describe(node):
    """A line: the operator, its attributes, and the weights that it takes."""
    known = sorted((a for a in node.attribute if a.type in READERS), key=lambda a: a.name)
    attributes = [f"{a.name}={READERS[a.type](a)}" for a in known]
    weights = [hashes[name] for name in node.input if name in hashes]
    return " ".join([node.op_type, *attributes, *weights])


nodes = {n.name.replace("_Q4", ""): describe(n) for n in graph.node if n.op_type != "Constant"}
with open(os.path.join(folder, "genai_config.json")) as file:
    json.dump({"nodes": nodes, "config": json.load(file)}, sys.stdout, indent=2)
