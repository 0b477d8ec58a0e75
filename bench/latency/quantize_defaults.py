"""Quantizes a model by onnxruntime.quantization.quantize_dynamic at its defaults.

Usage: quantize_defaults.py MODEL OUTPUT
"""

import logging
import sys

from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.CRITICAL)
quantize_dynamic(sys.argv[1], sys.argv[2])
