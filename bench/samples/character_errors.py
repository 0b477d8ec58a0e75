"""Recognizes 200 rendered lines of text with models; prints the character error rate of each as JSON.

Usage: character_errors.py ORIGINAL RESULT..., the characters in the original's metadata or in a file beside it
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import ImageFont
from real_samples import CENTERED, TEXT, normalise, open_session, random, render

LINES = 200


def characters(model):
    listed = open_session(model).get_modelmeta().custom_metadata_map.get("character")
    text = listed or next(Path(model).parent.glob("*keys*.txt")).read_text()
    # The first class is the blank, the last one the space.
    return ["", *text.strip("\n").split("\n"), " "]


def read(session, image, classes):
    (scores,) = session.run(None, {session.get_inputs()[0].name: image})
    best = scores[0].argmax(1)
    return "".join(classes[each] for each, before in zip(best, [0, *best]) if each != before)


def distance(wanted, got):
    row = list(range(len(got) + 1))
    for i, a in enumerate(wanted, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(got, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


models = sys.argv[1:]
classes = characters(models[0])
texts = [" ".join(random.choice(TEXT, int(random.integers(2, 7)))) for _ in range(LINES)]
width = lambda text: int(ImageFont.load_default(size=30).getlength(text)) + 12
images = [normalise(render(text, width(text)), CENTERED) for text in texts]
rates = []
for model in models:
    session = open_session(model)
    errors = sum(distance(text, read(session, image, classes)) for text, image in zip(texts, images))
    rates.append(errors / sum(map(len, texts)))
print(json.dumps(rates))
