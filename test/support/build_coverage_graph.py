"""A graph under construction, and the parts that several models share. Weights are Gaussian and keep activations near 1."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT_TYPES = {TensorProto.FLOAT: 4, TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2}
MIN_ELEMENTS = 256


class Graph:
    def __init__(self):
        self.random = np.random.default_rng(11)
        self.nodes, self.initializers, self.sparse, self.functions = [], {}, [], []
        self.inputs, self.outputs = [], []

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value, shape):
        self.node("Identity", [value], name="y")
        self.outputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))

    def constant(self, name, array):
        self.initializers.setdefault(name, numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def integers(self, *values):
        return self.constant("_".join(["int64", *map(str, values)]), np.array(values, np.int64))

    def values(self, *shape, fan_in):
        return self.random.standard_normal(shape, dtype=np.float32) / np.float32(fan_in**0.5)

    def weight(self, name, *shape, fan_in, kind=np.float32):
        return self.constant(name, self.values(*shape, fan_in=fan_in).astype(kind))

    def bfloat16(self, name, *shape, fan_in):
        """Truncates float32 to its upper half."""
        bits = self.values(*shape, fan_in=fan_in).view(np.uint32) >> 16
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.BFLOAT16)
        tensor.raw_data = bits.astype(np.uint16).tobytes()
        self.initializers[name] = tensor
        return name

    def node(self, op, inputs, name=None, domain="", **attributes):
        """Adds a node of one output; gives the output's name."""
        name = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, domain=domain, **attributes))
        return name

    def split(self, value, count, axis):
        names = [f"split_{len(self.nodes)}_{part}" for part in range(count)]
        self.nodes.append(helper.make_node("Split", [value], names, axis=axis, num_outputs=count))
        return names

    def slice(self, value, start, end, axis):
        return self.node("Slice", [value, self.integers(start), self.integers(end), self.integers(axis)])

    def transposed(self, value, perm=(1, 0)):
        return self.node("Transpose", [value], perm=list(perm))

    def cast(self, value, kind):
        return self.node("Cast", [value], to=kind)

    def norm(self, value, name, size):
        scale = self.constant(f"{name}.scale", np.ones(size, np.float32))
        return self.node("LayerNormalization", [value, scale], axis=-1)

    def model(self):
        body = helper.make_graph(self.nodes, "coverage", self.inputs, self.outputs, list(self.initializers.values()))
        body.sparse_initializer.extend(self.sparse)
        domains = {"": 18, "com.microsoft": 1, **{function.domain: 1 for function in self.functions}}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        return helper.make_model(body, opset_imports=opsets, functions=self.functions, ir_version=8)

    def weight_bytes(self):
        """Bytes of the tensors of floating-point numbers that are large enough to be quantized."""
        tensors = [*self.initializers.values(), *(sparse.values for sparse in self.sparse)]
        return sum(
            int(np.prod(tensor.dims)) * FLOAT_TYPES[tensor.data_type]
            for tensor in tensors
            if tensor.data_type in FLOAT_TYPES and np.prod(tensor.dims) >= MIN_ELEMENTS
        )
