"""Quantizes a matrix with the quantizer of llama.cpp, in one thread.

Usage: ggml_peer.py MATRIX N K ROUNDS with MATRIX a file of N rows of K float32 values.
Prints as JSON, for each type: seconds of processor time for ROUNDS rounds, bits of an element, and SQNR (dB).
"""

import ctypes
import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

# Values of `enum ggml_type`.
TYPES = {"q4_0": 2, "q4_1": 3, "q4_K": 12, "q8_0": 8}

(package,) = find_spec("llama_cpp").submodule_search_locations
ggml = ctypes.CDLL(str(Path(package) / "lib" / "libggml-base.so"))
ggml.ggml_quantize_chunk.restype = ctypes.c_size_t


def measure(name, values, rounds):
    n, k = values.shape
    packed = np.zeros(values.nbytes, np.uint8)

    def quantize():
        shape = (ctypes.c_int64(size) for size in (0, n, k))
        source, target = (ctypes.c_void_p(array.ctypes.data) for array in (values, packed))
        return ggml.ggml_quantize_chunk(TYPES[name], source, target, *shape, None)

    size = quantize()
    started = time.process_time()
    for _ in range(rounds):
        quantize()
    seconds = time.process_time() - started
    restored = np.empty_like(values)
    dequantize = getattr(ggml, f"dequantize_row_{name}")
    dequantize(ctypes.c_void_p(packed.ctypes.data), ctypes.c_void_p(restored.ctypes.data), ctypes.c_int64(values.size))
    signal, noise = ((array.astype(np.float64) ** 2).sum() for array in (values, restored - values))
    return {"seconds": seconds, "bits": size * 8 / values.size, "sqnrDb": float(10 * np.log10(signal / noise))}


matrix, *numbers = sys.argv[1:]
n, k, rounds = map(int, numbers)
values = np.fromfile(matrix, np.float32).reshape(n, k)
print(json.dumps({name: measure(name, values, rounds) for name in TYPES}))
