"""Quantizes products to 4-bit blocks of 32 with a method of onnxruntime.quantization; prints seconds as JSON.

Usage: peers.py METHOD MODEL OUTPUT with METHOD one of the names in `methods`.
"""

import json
import logging
import sys
import time

import onnx
from onnxruntime.quantization import matmul_nbits_quantizer as nbits

logging.disable(logging.CRITICAL)


methods = {"nearest": None, "k-quant": nbits.KQuantWeightOnlyQuantConfig()}

method, source, output = sys.argv[1:]
model = onnx.load(source)
start = time.perf_counter()
quantizer = nbits.MatMulNBitsQuantizer(
    model, bits=4, block_size=32, is_symmetric=False, accuracy_level=4, algo_config=methods[method]
)
quantizer.process()
seconds = time.perf_counter() - start
quantizer.model.save_model_to_file(output, use_external_data_format=False)
# The quantizer leaves its progress on the line.
print("\n" + json.dumps({"seconds": seconds}))
