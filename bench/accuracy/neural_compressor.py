"""Quantizes with Intel's Neural Compressor; prints the call's seconds and the process's peak memory as JSON.

Usage: neural_compressor.py MODEL OUTPUT WORK CALIBRATION.npz with WORK one of the names in `works`.
"""

import json
import logging
import resource
import sys
import time

import numpy as np
import onnx
from onnx_neural_compressor import data_reader
from onnx_neural_compressor.quantization import QuantType, config, matmul_nbits_quantizer, quantize

logging.disable(logging.CRITICAL)

MOST_SAMPLES = 128


class Samples(data_reader.CalibrationDataReader):
    def __init__(self, path):
        arrays = dict(np.load(path))
        count = min(MOST_SAMPLES, len(next(iter(arrays.values()))))
        self.feeds = [{name: np.asarray(array[i]) for name, array in arrays.items()} for i in range(count)]
        self.rewind()

    def get_next(self):
        return next(self.rest, None)

    def rewind(self):
        self.rest = iter(self.feeds)


def blocks(algorithm):
    def run(model, output, samples):
        quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
            model, n_bits=4, block_size=32, accuracy_level=4, algo_config=algorithm(samples)
        )
        quantizer.process()
        onnx.save(quantizer.model, output)

    return run


def dynamic(model, output, _):
    # It knows no Gemm.
    operators = {"op_types_to_quantize": ["MatMul"]}
    quantize(model, output, config.DynamicQuantConfig(per_channel=True, weight_type=QuantType.QInt8, **operators))


def static(**extra):
    def run(model, output, samples):
        settings = config.StaticQuantConfig(
            samples, per_channel=True, weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8, extra_options=extra
        )
        quantize(model, output, settings)

    return run


works = {
    "gptq": blocks(matmul_nbits_quantizer.GPTQWeightOnlyQuantConfig),
    "awq": blocks(matmul_nbits_quantizer.AWQWeightOnlyQuantConfig),
    "dynamic": dynamic,
    "static": static(),
    "smooth": static(SmoothQuant=True),
}

source, target, work, calibration = sys.argv[1:]
samples = Samples(calibration)
start = time.perf_counter()
works[work](source, target, samples)
seconds = time.perf_counter() - start
# Quantizers leave their progress on the line.
print("\n" + json.dumps({"seconds": seconds, "peakBytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
