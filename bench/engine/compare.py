"""Runs an original and a compressed model on the same samples; prints SQNR (dB) and cosine of the worst output, and bytes, as JSON.

Usage: compare.py ORIGINAL DATA.npz MODEL
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime


def run(path, samples):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options)
    return [session.run(None, sample) for sample in samples]


def sqnr(wanted, got):
    signal = sum(float((w.astype(np.float64) ** 2).sum()) for w in wanted)
    noise = sum(float(((w.astype(np.float64) - g) ** 2).sum()) for w, g in zip(wanted, got))
    return 150.0 if noise == 0 else 10 * np.log10(signal / noise)


def cosine(wanted, got):
    a, b = (np.concatenate([each.astype(np.float64).ravel() for each in outputs]) for outputs in (wanted, got))
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


def size(path):
    folder = Path(path).parent
    return sum(file.stat().st_size for file in folder.iterdir() if file.suffix not in (".json", ".npz"))


original, data, model = sys.argv[1:]
arrays = dict(np.load(data))
samples = [{name: np.asarray(arrays[name][i]) for name in arrays} for i in range(len(next(iter(arrays.values()))))]
wanted, got = run(original, samples), run(model, samples)
floats = [i for i, output in enumerate(wanted[0]) if np.issubdtype(output.dtype, np.floating)]
pairs = [([w[i] for w in wanted], [g[i] for g in got]) for i in floats]
figures = {"sqnrDb": min(sqnr(*pair) for pair in pairs), "cosine": min(cosine(*pair) for pair in pairs)}
print(json.dumps({**figures, "bytes": size(model)}))
