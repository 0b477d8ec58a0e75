"""Models whose operators take a weight through Transpose, Slice, Split, Reshape, Cast, Identity or a function, or share it with others."""

import numpy as np
from build_coverage_graph import Graph
from onnx import TensorProto, helper


def tied(large, project):
    """An embedding table that also projects to the vocabulary."""
    rows, width = (24576, 768) if large else (1024, 128)
    graph = Graph()
    ids = graph.input("ids", ["tokens"], TensorProto.INT64)
    table = graph.weight("table", rows, width, fan_in=width)
    inner = graph.weight("inner", width, width, fan_in=width)
    hidden = graph.norm(graph.node("Gather", [table, ids]), "norm", width)
    graph.output(project(graph, graph.node("MatMul", [hidden, inner]), table), ["tokens", rows])
    return graph


def tied_transpose(large):
    return tied(large, lambda graph, hidden, table: graph.node("MatMul", [hidden, graph.transposed(table)]))


def tied_gemm(large):
    return tied(large, lambda graph, hidden, table: graph.node("Gemm", [hidden, table], transB=1))


def tied_identity_cast(large):
    """A float16 table behind an Identity, cast to float32 by each user."""
    graph = Graph()
    ids = graph.input("ids", ["tokens"], TensorProto.INT64)
    table = graph.node("Identity", [graph.weight("table", 1024, 128, fan_in=128, kind=np.float16)])
    rows = graph.norm(graph.cast(graph.node("Gather", [table, ids]), TensorProto.FLOAT), "norm", 128)
    wide = graph.node("Identity", [graph.cast(table, TensorProto.FLOAT)])
    graph.output(graph.node("MatMul", [rows, graph.transposed(wide)]), ["tokens", 1024])
    return graph


def transposed(large):
    narrow, wide = (2048, 4096) if large else (128, 256)
    graph = Graph()
    value = graph.input("x", ["tokens", narrow])
    for layer in range(6):
        rows, columns = (wide, narrow) if layer % 2 == 0 else (narrow, wide)
        weight = graph.weight(f"layer{layer}.weight", rows, columns, fan_in=columns)
        value = graph.node("MatMul", [value, graph.transposed(weight)])
    graph.output(value, ["tokens", narrow])
    return graph


def linear(graph, value, name, rows, columns):
    weight = graph.weight(f"{name}.weight", rows, columns, fan_in=columns)
    bias = graph.weight(f"{name}.bias", rows, fan_in=columns)
    return graph.node("Add", [graph.node("MatMul", [value, graph.transposed(weight)]), bias])


def split_projection(graph, weight, width):
    return [graph.transposed(part) for part in graph.split(weight, 3, axis=0)]


def sliced_projection(graph, weight, width):
    return [graph.transposed(graph.slice(weight, part * width, (part + 1) * width, 0)) for part in range(3)]


def reshaped_projection(graph, weight, width):
    stacked = graph.node("Reshape", [weight, graph.integers(3, width, width)])
    parts = [graph.node("Squeeze", [graph.slice(stacked, part, part + 1, 0), graph.integers(0)]) for part in range(3)]
    return [graph.transposed(part) for part in parts]


def batched_projection(graph, weight, width):
    """Transposes the fused weight as a whole, and cuts columns of a batch of one."""
    whole = graph.node("Unsqueeze", [graph.transposed(weight), graph.integers(0)])
    return [graph.slice(whole, part * width, (part + 1) * width, 2) for part in range(3)]


def attend(graph, value, name, width, project):
    fused = graph.weight(f"{name}.in_proj_weight", 3 * width, width, fan_in=width)
    query, key, values = (graph.node("MatMul", [value, part]) for part in project(graph, fused, width))
    scores = graph.node("MatMul", [query, graph.transposed(key, (0, 2, 1))])
    scaled = graph.node("Mul", [scores, graph.constant("attention_scale", np.float32(width**-0.5))])
    mixed = graph.node("MatMul", [graph.node("Softmax", [scaled], axis=-1), values])
    return linear(graph, mixed, f"{name}.out_proj", width, width)


def torch_export(large):
    """Transformer blocks as torch.export writes them, each with another way to take apart the fused projection."""
    width = 768 if large else 128
    graph = Graph()
    value = graph.input("x", [1, "tokens", width])
    for layer, project in enumerate([split_projection, sliced_projection, reshaped_projection, batched_projection]):
        name = f"layers.{layer}"
        attended = attend(graph, graph.norm(value, f"{name}.norm1", width), name, width, project)
        gamma = graph.constant(f"{name}.gamma", np.full(width, 0.5, np.float32))
        value = graph.node("Add", [value, graph.node("Mul", [attended, gamma])])
        wide = linear(graph, graph.norm(value, f"{name}.norm2", width), f"{name}.linear1", 4 * width, width)
        value = graph.node("Add", [value, linear(graph, graph.node("Relu", [wide]), f"{name}.linear2", width, 4 * width)])
    graph.output(value, [1, "tokens", width])
    return graph


def torch_export_functions(large):
    """Modules as local functions, which call a function of one operator each."""
    layers, width = (4, 768) if large else (3, 128)
    graph = Graph()
    torch, modules = "pkg.torch", "pkg.modules"
    standard = helper.make_opsetid("", 18)
    aten_linear = helper.make_function(
        torch,
        "aten_linear",
        ["input", "weight", "bias"],
        ["result"],
        [
            helper.make_node("Transpose", ["weight"], ["turned"], perm=[1, 0]),
            helper.make_node("MatMul", ["input", "turned"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["result"]),
        ],
        [standard],
    )
    names = ["weight1", "bias1", "weight2", "bias2"]
    feed_forward = helper.make_function(
        modules,
        "FeedForward",
        ["input", *names],
        ["result"],
        [
            helper.make_node("aten_linear", ["input", *names[:2]], ["wide"], domain=torch),
            helper.make_node("Relu", ["wide"], ["active"]),
            helper.make_node("aten_linear", ["active", *names[2:]], ["result"], domain=torch),
        ],
        [standard, helper.make_opsetid(torch, 1)],
    )
    graph.functions = [aten_linear, feed_forward]
    value = graph.input("x", ["tokens", width])
    for layer in range(layers):
        shapes = {"weight1": (4 * width, width), "bias1": (4 * width,), "weight2": (width, 4 * width), "bias2": (width,)}
        weights = [graph.weight(f"layers.{layer}.{name}", *shape, fan_in=shape[-1]) for name, shape in shapes.items()]
        value = graph.node("FeedForward", [graph.norm(value, f"norm{layer}", width), *weights], domain=modules)
    graph.output(value, ["tokens", width])
    return graph


def sliced(large):
    graph = Graph()
    value = graph.input("x", ["tokens", 128])
    weight = graph.weight("weight", 128, 512, fan_in=128)
    gate, up = (graph.node("MatMul", [value, graph.slice(weight, start, start + 256, 1)]) for start in (0, 256))
    graph.output(graph.node("Mul", [graph.node("Sigmoid", [gate]), up]), ["tokens", 256])
    return graph


def split(large):
    graph = Graph()
    value = graph.input("x", ["tokens", 128])
    weight = graph.weight("weight", 512, 128, fan_in=128)
    gate, up = (graph.node("Gemm", [value, part], transB=1) for part in graph.split(weight, 2, axis=0))
    graph.output(graph.node("Mul", [graph.node("Sigmoid", [gate]), up]), ["tokens", 256])
    return graph


def lstm_gates(large):
    """torch.nn.LSTM has the gates in the order i, f, g, o; ONNX has i, o, f, c."""
    size = 128
    graph = Graph()
    value = graph.input("x", ["sequence", 1, size])

    def reordered(name, *shape):
        weight = graph.weight(name, 4 * size, *shape, fan_in=size)
        gates = [graph.slice(weight, gate * size, (gate + 1) * size, 0) for gate in (0, 3, 1, 2)]
        return graph.node("Concat", gates, axis=0)

    weights = [graph.node("Unsqueeze", [reordered(name, size), graph.integers(0)]) for name in ("weight_ih", "weight_hh")]
    biases = graph.node("Concat", [reordered("bias_ih"), reordered("bias_hh")], axis=0)
    bias = graph.node("Unsqueeze", [biases, graph.integers(0)])
    hidden = graph.node("LSTM", [value, *weights, bias], hidden_size=size)
    graph.output(graph.node("Squeeze", [hidden, graph.integers(1)]), ["sequence", 1, size])
    return graph
