"""Prints how many nodes of each operator models have once ONNX Runtime has optimized them.

Usage: count_operators.py MODEL...
"""

import collections
import json
import os
import sys
import tempfile

import onnx
import onnxruntime


def count(path):
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        graph = onnx.load(options.optimized_model_filepath).graph
        return dict(collections.Counter(node.op_type for node in graph.node).most_common(12))


print(json.dumps([count(path) for path in sys.argv[1:]]))
