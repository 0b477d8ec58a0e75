"""Quantizes with ONNX Runtime's Python package; prints the call's seconds and the process's peak memory as JSON.

Usage: peer.py MODEL OUTPUT WORK [CALIBRATION.npz] with WORK one of the names in `works`.
"""

import json
import logging
import os
import resource
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.version_converter
from onnxruntime.quantization import CalibrationMethod, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader
from onnxruntime.quantization.matmul_nbits_quantizer import KQuantWeightOnlyQuantConfig, MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process

logging.disable(logging.CRITICAL)

# Percentiles hold all activations of all samples.
MOST_STATIC_SAMPLES = 32


def blocks(bits, algorithm=None):
    def quantize(model, output):
        settings = {"block_size": 32, "is_symmetric": False, "accuracy_level": 4, "algo_config": algorithm}
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


class Samples(CalibrationDataReader):
    def __init__(self, path):
        arrays = dict(np.load(path))
        count = min(MOST_STATIC_SAMPLES, len(next(iter(arrays.values()))))
        self.feeds = iter([{name: np.asarray(array[i]) for name, array in arrays.items()} for i in range(count)])

    def get_next(self):
        return next(self.feeds, None)


def prepare(source, folder):
    """As the documentation asks, and in an opset that has scales of channels, where the model allows it."""
    for name, step in {"raised": raise_opset, "prepared": quant_pre_process}.items():
        prepared = f"{folder}/{name}.onnx"
        try:
            step(source, prepared)
        except Exception:
            continue
        source = prepared
    return source


def raise_opset(source, output):
    model = onnx.load(source)
    if max(each.version for each in model.opset_import if each.domain == "") < 13:
        model = onnx.version_converter.convert_version(model, 17)
    onnx.save(model, output)


def static(**settings):
    def quantize(model, output, calibration):
        with tempfile.TemporaryDirectory() as folder:
            # The preparation leaves files where it runs.
            os.chdir(folder)
            quantize_static(prepare(model, folder), output, Samples(calibration), **settings)

    return quantize


works = {
    "int4": blocks(4),
    "int4-k-quant": blocks(4, KQuantWeightOnlyQuantConfig()),
    "int8": blocks(8),
    "dynamic": dynamic(False),
    "dynamic-reduced": dynamic(True),
    "static": static(),
    "static-channel": static(per_channel=True, activation_type=QuantType.QUInt8),
    "static-percentile": static(
        per_channel=True, activation_type=QuantType.QUInt8, calibrate_method=CalibrationMethod.Percentile
    ),
}

source, target, work, *data = sys.argv[1:]
start = time.perf_counter()
works[work](source, target, *data)
seconds = time.perf_counter() - start
# Quantizers leave their progress on the line.
print("\n" + json.dumps({"seconds": seconds, "peakBytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
