"""Models that hold weights in other types and kinds of initializers, or hand them to operators other than MatMul."""

import numpy as np
from build_coverage_graph import Graph
from onnx import TensorProto, helper

CONTRIB = "com.microsoft"


def batched_matmul(large):
    """A weight for each of four heads."""
    graph = Graph()
    value = graph.input("x", [4, "tokens", 128])
    wide = graph.node("MatMul", [value, graph.weight("up", 4, 128, 256, fan_in=128)])
    graph.output(graph.node("MatMul", [wide, graph.weight("down", 4, 256, 128, fan_in=256)]), [4, "tokens", 128])
    return graph


def experts_gathered(large):
    """Every token gathers the weights of its best expert. The router's logits are an input, so that rounding moves no token."""
    count, narrow, wide = (8, 768, 1536) if large else (4, 128, 256)
    graph = Graph()
    value = graph.input("x", ["tokens", narrow])
    logits = graph.input("router_logits", ["tokens", count])
    expert = graph.node("ArgMax", [logits], axis=-1, keepdims=0)
    value = graph.node("Unsqueeze", [value, graph.integers(1)])
    for name, shape in {"up": (narrow, wide), "down": (wide, narrow)}.items():
        weights = graph.weight(f"experts.{name}", count, *shape, fan_in=shape[0])
        value = graph.node("MatMul", [value, graph.node("Gather", [weights, expert], axis=0)])
    graph.output(graph.node("Squeeze", [value, graph.integers(1)]), ["tokens", narrow])
    return graph


def experts_unrolled(large):
    """Every expert takes its weight from the stack by a constant index, in PyTorch's transposed order, and weighs its result."""
    count, narrow, wide = (8, 1024, 2304) if large else (4, 128, 256)
    graph = Graph()
    value = graph.input("x", ["tokens", narrow])
    shares = graph.node("Softmax", [graph.input("router_logits", ["tokens", count])], axis=-1)
    weights = graph.weight("experts.weight", count, wide, narrow, fan_in=narrow)
    results = []
    for expert in range(count):
        index = graph.constant(f"expert{expert}", np.int64(expert))
        weight = graph.node("Gather", [weights, index], axis=0)
        share = graph.slice(shares, expert, expert + 1, 1)
        product = graph.node("MatMul", [value, graph.transposed(weight)])
        results.append(graph.node("Mul", [product, share]))
    graph.output(graph.node("Sum", results), ["tokens", wide])
    return graph


def moe(large):
    count, narrow, wide = (8, 768, 1536) if large else (4, 128, 256)
    graph = Graph()
    value = graph.input("x", ["tokens", narrow])
    logits = graph.input("router_logits", ["tokens", count])
    up = graph.weight("fc1", count, wide, narrow, fan_in=narrow)
    down = graph.weight("fc2", count, narrow, wide, fan_in=wide)
    result = graph.node("MoE", [value, logits, up, "", down], domain=CONTRIB, k=2, activation_type="relu", normalize_routing_weights=1)
    graph.output(result, ["tokens", narrow])
    return graph


def attention(large):
    graph = Graph()
    value = graph.input("x", ["batch", "sequence", 128])
    weights = graph.weight("qkv", 128, 384, fan_in=128)
    bias = graph.weight("qkv_bias", 384, fan_in=128)
    mixed = graph.node("Attention", [value, weights, bias], domain=CONTRIB, num_heads=4)
    graph.output(graph.node("MatMul", [mixed, graph.weight("out", 128, 128, fan_in=128)]), ["batch", "sequence", 128])
    return graph


def embed_layer_normalization(large):
    graph = Graph()
    names = ("input_ids", "segment_ids")
    ids = [graph.input(name, ["batch", "sequence"], TensorProto.INT32) for name in names]
    tables = {"word": 1024, "position": 512, "segment": 2}
    embeddings = [graph.weight(name, rows, 128, fan_in=128) for name, rows in tables.items()]
    affine = [graph.constant("gamma", np.ones(128, np.float32)), graph.constant("beta", np.zeros(128, np.float32))]
    outputs = ["embedded", "mask_index"]
    graph.nodes.append(helper.make_node("EmbedLayerNormalization", [*ids, *embeddings, *affine], outputs, domain=CONTRIB, epsilon=1e-12))
    graph.output(graph.node("MatMul", ["embedded", graph.weight("out", 128, 128, fan_in=128)]), ["batch", "sequence", 128])
    return graph


def fused_gemm(large):
    graph = Graph()
    value = graph.input("x", ["tokens", 128])
    for layer, (columns, rows) in enumerate([(128, 256), (256, 128)]):
        weight = graph.weight(f"weight{layer}", rows, columns, fan_in=columns)
        bias = graph.weight(f"bias{layer}", rows, fan_in=columns)
        value = graph.node("FusedGemm", [value, weight, bias], domain=CONTRIB, transB=1, activation="Relu")
    graph.output(value, ["tokens", 128])
    return graph


def fused_matmul(large):
    graph = Graph()
    value = graph.input("x", [1, "tokens", 128])
    wide = graph.node("FusedMatMul", [value, graph.weight("up", 128, 256, fan_in=128)], domain=CONTRIB, alpha=0.5)
    down = graph.weight("down", 128, 256, fan_in=256)
    graph.output(graph.node("FusedMatMul", [wide, down], domain=CONTRIB, transB=1), [1, "tokens", 128])
    return graph


def fused_conv(large):
    graph = Graph()
    value = graph.input("x", [1, 32, 16, 16])
    for layer, (inputs, outputs) in enumerate([(32, 64), (64, 32)]):
        weight = graph.weight(f"weight{layer}", outputs, inputs, 3, 3, fan_in=9 * inputs)
        bias = graph.weight(f"bias{layer}", outputs, fan_in=inputs)
        value = graph.node("FusedConv", [value, weight, bias], domain=CONTRIB, pads=[1, 1, 1, 1], activation="Relu")
    graph.output(value, [1, 32, 16, 16])
    return graph


def fp16(large):
    """Float16 throughout, with float32 inputs and outputs."""
    graph = Graph()
    ids = graph.input("ids", ["tokens"], TensorProto.INT64)
    half = {"kind": np.float16}
    value = graph.node("Gather", [graph.weight("table", 1024, 128, fan_in=1, **half), ids])
    for layer, (columns, rows) in enumerate([(128, 256), (256, 128)]):
        weight = graph.weight(f"weight{layer}", rows, columns, fan_in=columns, **half)
        bias = graph.weight(f"bias{layer}", rows, fan_in=columns, **half)
        value = graph.node("Add", [graph.node("MatMul", [value, graph.transposed(weight)]), bias])
    value = graph.node("MatMul", [value, graph.weight("out", 128, 128, fan_in=128, **half)])
    graph.output(graph.cast(value, TensorProto.FLOAT), ["tokens", 128])
    return graph


def bf16(large):
    """Weights in bfloat16. ONNX Runtime's CPU provider gathers and rearranges them, and multiplies in float32 only."""
    graph = Graph()
    ids = graph.input("ids", ["tokens"], TensorProto.INT64)
    table = graph.bfloat16("table", 1024, 128, fan_in=1)
    value = graph.cast(graph.node("Gather", [table, ids]), TensorProto.FLOAT)
    up = graph.cast(graph.transposed(graph.bfloat16("up", 256, 128, fan_in=128)), TensorProto.FLOAT)
    down = graph.cast(graph.bfloat16("down", 256, 128, fan_in=256), TensorProto.FLOAT)
    wide = graph.node("MatMul", [value, up])
    graph.output(graph.node("MatMul", [wide, down]), ["tokens", 128])
    return graph


def sparse_initializer(large):
    """Half of the second weight's elements are zero and not stored."""
    graph = Graph()
    value = graph.input("x", ["tokens", 256])
    hidden = graph.node("MatMul", [value, graph.weight("dense", 256, 256, fan_in=256)])
    places = np.flatnonzero(graph.random.random(256 * 256) < 0.5).astype(np.int64)
    values = helper.make_tensor("sparse", TensorProto.FLOAT, [len(places)], graph.values(len(places), fan_in=128).tobytes(), raw=True)
    indices = helper.make_tensor("sparse_indices", TensorProto.INT64, [len(places)], places.tobytes(), raw=True)
    graph.sparse.append(helper.make_sparse_tensor(values, indices, [256, 256]))
    graph.output(graph.node("MatMul", [hidden, "sparse"]), ["tokens", 256])
    return graph


def initializer_input(large):
    """Initializers that are inputs too, which a caller may override."""
    graph = Graph()
    value = graph.input("x", ["tokens", 128])
    up = graph.input(graph.weight("up", 128, 256, fan_in=128), [128, 256])
    down = graph.input(graph.weight("down", 256, 128, fan_in=256), [256, 128])
    graph.output(graph.node("MatMul", [graph.node("MatMul", [value, up]), down]), ["tokens", 128])
    return graph
