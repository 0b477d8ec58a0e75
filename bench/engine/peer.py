"""Quantizes with ONNX Runtime's Python package; prints the call's seconds and the process's peak memory as JSON.

Usage: peer.py MODEL OUTPUT WORK with WORK one of the names in `works`.
"""

import json
import logging
import resource
import sys
import time

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

logging.disable(logging.CRITICAL)


def blocks(bits):
    def quantize(model, output):
        settings = {"block_size": 32, "is_symmetric": False, "accuracy_level": 4}
        quantizer = MatMulNBitsQuantizer(onnx.load(model), bits=bits, **settings)
        quantizer.process()
        quantizer.model.save_model_to_file(output, use_external_data_format=True)

    return quantize


def dynamic(reduce_range):
    def quantize(model, output):
        quantize_dynamic(
            model,
            output,
            op_types_to_quantize=["MatMul", "Gemm"],
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )

    return quantize


works = {"int4": blocks(4), "int8": blocks(8), "dynamic": dynamic(False), "dynamic-reduced": dynamic(True)}

source, target, work = sys.argv[1:]
start = time.perf_counter()
works[work](source, target)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peakBytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
