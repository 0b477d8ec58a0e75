"""Runs the model builder of ONNX Runtime GenAI, in int4 for CPUs; prints what that cost as JSON.

Usage: build_folder.py CHECKPOINT OUTPUT CACHE
"""

import importlib.util
import json
import os
import resource
import runpy
import sys

checkpoint, output, cache = sys.argv[1:]
[package] = importlib.util.find_spec("onnxruntime_genai").submodule_search_locations
models = os.path.join(package, "models")
# It imports what lies beside it.
sys.path.insert(0, models)
sys.argv = ["builder", "-i", checkpoint, "-o", output, "-c", cache, "-p", "int4", "-e", "cpu"]
sys.argv += ["--extra_options", "hf_token=false"]
runpy.run_path(os.path.join(models, "builder.py"), run_name="__main__")
usage = resource.getrusage(resource.RUSAGE_SELF)
cost = {"cpuSeconds": usage.ru_utime + usage.ru_stime, "peakBytes": usage.ru_maxrss * 1024}
print(f"\n{json.dumps(cost)}")
