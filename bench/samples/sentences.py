"""Writes token ids of sentences from the documentation of Python's own modules, for `minilm`.

Usage: sentences.py PACKAGE OUTPUT.npz SAMPLES MODULE...
"""

import importlib
import pydoc
import re
import sys
from pathlib import Path

import numpy as np

LENGTH = 64


def paragraphs(name):
    module = importlib.import_module(name)
    members = [getattr(module, member) for member in dir(module)]
    texts = [pydoc.getdoc(module), *(pydoc.getdoc(member) for member in members if callable(member))]
    return [part for text in texts for part in re.split(r"\n\s*\n", text) if len(part) > 80]


def tokenize(text, vocabulary):
    """Greedy longest-match WordPiece over lower-cased words."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", text.lower()):
        start = 0
        while start < len(word):
            pieces = (("##" if start else "") + word[start:end] for end in range(len(word), start, -1))
            piece = next((piece for piece in pieces if piece in vocabulary), None)
            if piece is None:
                ids.append(vocabulary["[UNK]"])
                break
            ids.append(vocabulary[piece])
            start += len(piece) - (2 if start else 0)
    return ids[: LENGTH - 1] + [vocabulary["[SEP]"]]


def main(package, output, count, *modules):
    lines = (Path(package) / "model" / "vocab.txt").read_text().splitlines()
    vocabulary = {line: index for index, line in enumerate(lines)}
    texts = list(dict.fromkeys(text for name in modules for text in paragraphs(name)))
    chosen = np.random.default_rng(0).permutation(len(texts))[: int(count)]
    ids = np.zeros((len(chosen), 1, LENGTH), np.int64)
    mask = np.zeros_like(ids)
    for row, index in enumerate(chosen):
        tokens = tokenize(texts[index], vocabulary)
        ids[row, 0, : len(tokens)] = tokens
        mask[row, 0, : len(tokens)] = 1
    np.savez(output, input_ids=ids, attention_mask=mask, token_type_ids=np.zeros_like(ids))


main(*sys.argv[1:])
