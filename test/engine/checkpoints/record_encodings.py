"""Records what the gguf package makes of random blocks of each encoding: needs gguf and numpy."""

import base64
import json
import os

import numpy as np
from gguf import GGMLQuantizationType, dequantize

TYPES = {"F16": (1, 2), "BF16": (1, 2), "Q8_0": (32, 34), "Q4_0": (32, 18)}
TYPES |= {"Q4_1": (32, 20), "Q4_K": (256, 144), "Q6_K": (256, 210)}
TYPES |= {"Q5_0": (32, 22), "Q5_1": (32, 24), "Q2_K": (256, 84), "Q3_K": (256, 110)}
TYPES |= {"Q5_K": (256, 176), "IQ4_NL": (32, 18), "IQ4_XS": (256, 136)}
# Where a block has numbers of half precision, which must be finite.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2], "Q6_K": [208]}
HALVES |= {"Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q5_K": [0, 2]}
HALVES |= {"IQ4_NL": [0], "IQ4_XS": [0]}

random = np.random.default_rng(5)
recorded = {}
for name, (values, size) in TYPES.items():
    count = 512 // values
    if values == 1:
        numbers = random.standard_normal(count).astype(np.float32)
        half = numbers.astype(np.float16).view(np.uint16)
        blocks = half if name == "F16" else (numbers.view(np.uint32) >> 16).astype(np.uint16)
        data = blocks.view(np.uint8).reshape(1, -1)
    else:
        data = random.integers(0, 256, (count, size), dtype=np.uint8)
        for at in HALVES[name]:
            scales = random.standard_normal(count).astype(np.float16)
            data[:, at : at + 2] = scales.view(np.uint8).reshape(count, 2)
        data = data.reshape(1, -1)
    floats = dequantize(data, GGMLQuantizationType[name]).astype(np.float32)
    parts = {"bytes": data, "values": floats}
    recorded[name] = {key: base64.b64encode(each.tobytes()).decode() for key, each in parts.items()}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encodings.json"), "w") as file:
    json.dump(recorded, file)
