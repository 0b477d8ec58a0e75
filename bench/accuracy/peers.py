"""Quantizes products to 4-bit blocks of 32 with a method of onnxruntime.quantization; prints seconds as JSON.

Usage: peers.py METHOD MODEL OUTPUT CALIBRATION.npz
"""

import json
import logging
import sys
import time

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader
from onnxruntime.quantization import matmul_nbits_quantizer as nbits

logging.disable(logging.CRITICAL)


class Samples(CalibrationDataReader):
    def __init__(self, path):
        arrays = np.load(path)
        count = len(next(iter(arrays.values())))
        self.samples = iter([{name: arrays[name][index] for name in arrays} for index in range(count)])

    def get_next(self):
        return next(self.samples, None)


def settings(method, calibration):
    if method == "nearest":
        return None
    if method == "k-quant":
        return nbits.KQuantWeightOnlyQuantConfig()
    return nbits.GPTQWeightOnlyQuantConfig(calibration_data_reader=Samples(calibration), block_size=32)


method, source, output, calibration = sys.argv[1:]
model = onnx.load(source)
start = time.perf_counter()
quantizer = nbits.MatMulNBitsQuantizer(
    model, bits=4, block_size=32, is_symmetric=False, accuracy_level=4, algo_config=settings(method, calibration)
)
quantizer.process()
seconds = time.perf_counter() - start
quantizer.model.save_model_to_file(output, use_external_data_format=False)
print(json.dumps({"seconds": seconds}))
