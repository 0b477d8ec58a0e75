"""Draws text-like images for an image model's input: dark glyph strokes on a light, noisy page, normalised to -1..1.

Usage: image_samples.py MODEL OUTPUT.npz
"""

import sys

import numpy as np
import onnxruntime

SAMPLES, HEIGHT, WIDTH = 16, 48, 320

model, output = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
(source,) = onnxruntime.InferenceSession(model, options).get_inputs()
fixed = [size if isinstance(size, int) and size > 0 else None for size in source.shape]
height, width = fixed[2] or HEIGHT, fixed[3] or WIDTH
random = np.random.default_rng(3)
images = []
for _ in range(SAMPLES):
    page = np.full((height, width), 0.9, np.float32) + random.normal(0, 0.03, (height, width)).astype(np.float32)
    for x in range(4, width - 12, 12):
        for _ in range(3):
            if random.random() < 0.5:
                top = random.integers(height // 6, height // 2)
                page[top : top + height // 3, x + random.integers(0, 8)][:] = 0.1
            else:
                page[random.integers(height // 6, height * 5 // 6), x : x + 9] = 0.1
    images.append(np.broadcast_to((page - 0.5) / 0.5, (1, fixed[1] or 3, height, width)))
np.savez(output, **{source.name: np.stack(images).astype(np.float32)})
