"""Quantizes a GGUF file with llama.cpp's own function; prints the call's seconds and the process's peak memory as JSON.

Usage: quantize_file.py SOURCE.gguf TARGET.gguf TYPE THREADS with TYPE one of the names in `TYPES`.
"""

import ctypes
import json
import resource
import sys
import time

import llama_cpp

TYPES = {"q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0, "q4_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_1, "q4_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_S}

source, target, kind, threads = sys.argv[1:]
parameters = llama_cpp.llama_model_quantize_default_params()
parameters.ftype, parameters.nthread, parameters.pure = TYPES[kind], int(threads), True
start = time.perf_counter()
failure = llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(parameters))
seconds = time.perf_counter() - start
if failure != 0:
    raise SystemExit(f"llama_model_quantize returned {failure}")
print(json.dumps({"seconds": seconds, "peakBytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
