"""Makes a feed-forward network of a given size: MatMul weights, Gaussian with outlier rows, 2048 wide.

Usage: generate.py OUTPUT.onnx LAYERS EXTERNAL(0|1). A layer has 160 MiB of float32 weights.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

HIDDEN, WIDE = 2048, 8192


def main(output, layers, external):
    path, random = Path(output), np.random.default_rng(7)
    data = (path.parent / f"{path.name}.data").open("wb") if external == "1" else None
    initializers, nodes, value = [], [], "input"

    def weight(name, rows, columns):
        array = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(rows**0.5)
        array[:: rows // 16] *= 6
        tensor = TensorProto(name=name, dims=[rows, columns], data_type=TensorProto.FLOAT)
        if data is None:
            tensor.raw_data = array.tobytes()
        else:
            tensor.data_location = TensorProto.EXTERNAL
            entries = {"location": f"{path.name}.data", "offset": data.tell(), "length": array.nbytes}
            for key, entry in entries.items():
                tensor.external_data.add(key=key, value=str(entry))
            data.write(array.data)
        initializers.append(tensor)
        return name

    def node(op, inputs, name):
        nodes.append(helper.make_node(op, inputs, [name], name))
        return name

    for layer in range(int(layers)):
        gate = node("MatMul", [value, weight(f"gate{layer}", HIDDEN, HIDDEN)], f"gate_out{layer}")
        mixed = node("MatMul", [value, weight(f"mix{layer}", HIDDEN, HIDDEN)], f"mix_out{layer}")
        gated = node("Mul", [mixed, node("Sigmoid", [gate], f"gate_open{layer}")], f"gated{layer}")
        wide = node("MatMul", [gated, weight(f"wide{layer}", HIDDEN, WIDE)], f"wide_out{layer}")
        narrow = node("MatMul", [node("Relu", [wide], f"relu{layer}"), weight(f"narrow{layer}", WIDE, HIDDEN)], f"narrow_out{layer}")
        value = node("Add", [value, narrow], f"sum{layer}")
    node("Identity", [value], "output")

    shape = ["tokens", HIDDEN]
    graph = helper.make_graph(
        nodes,
        "feed_forward",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


main(*sys.argv[1:])
