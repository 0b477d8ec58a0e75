"""Makes models that hold their weights in ways that a quantizer may miss.

Usage: build_coverage_models.py FOLDER NAME...
Writes FOLDER/NAME.onnx for each name, such as `tied-gemm`, or `tied-gemm-large` with more than 64 MB of weights, and prints
{NAME: bytes of its floating-point weights of at least 256 elements}.
"""

import json
import sys
from pathlib import Path

import build_coverage_operators
import build_coverage_views
import onnx


def build(folder, name):
    function = name.removesuffix("-large").replace("-", "_")
    module = build_coverage_views if hasattr(build_coverage_views, function) else build_coverage_operators
    graph = getattr(module, function)(name.endswith("-large"))
    onnx.save(graph.model(), str(Path(folder) / f"{name}.onnx"))
    return graph.weight_bytes()


folder, *names = sys.argv[1:]
print(json.dumps({name: build(folder, name) for name in names}))
