"""Renders real data for a model: pages and lines of text in an outline font, or windows of recorded speech with the model's own states.

Usage: real_samples.py KIND MODEL SPEECH.wav SAMPLES OUTPUT.npz..., each with other samples.
"""

import sys
import wave

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

TEXT = (
    "The engine reads a model, stores its weights in fewer bits and measures what that cost. "
    "Invoice No. 2024-117, due on 14 March: 3 hours of work at 85.50, travel 42.10, total 298.60. "
    "Quarterly results exceeded expectations in all regions except the north, where rain delayed "
    "deliveries by two weeks. Please return the signed copy to the address below before Friday."
).split()
IMAGENET = (np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))
CENTERED = (np.full(3, 0.5), np.full(3, 0.5))

random = np.random.default_rng(11)


def words(count):
    start = random.integers(0, len(TEXT))
    return " ".join(TEXT[(start + i) % len(TEXT)] for i in range(count))


def page(width, height):
    light, dark = int(random.integers(215, 256)), int(random.integers(0, 70))
    image = Image.new("RGB", (width, height), (light, light, int(light * 0.98)))
    draw = ImageDraw.Draw(image)
    y = 8
    while y < height - 30:
        size = int(random.integers(13, 27))
        font = ImageFont.load_default(size=size)
        draw.text((12, y), words(int(width / size / 2.6)), fill=(dark, dark, dark), font=font)
        y += int(size * random.uniform(1.3, 2.2))
    return image


def line():
    return render(words(int(random.integers(2, 5)))[:22], 320)


def render(text, width):
    light, dark = int(random.integers(180, 256)), int(random.integers(0, 90))
    image = Image.new("RGB", (width, 48), (light, light, light))
    ImageDraw.Draw(image).text((6, 4), text, fill=(dark, dark, dark), font=ImageFont.load_default(size=30))
    return image


def normalise(image, normalization):
    pixels = np.asarray(image, np.float32) / 255 + random.normal(0, 0.01, (image.height, image.width, 3))
    mean, deviation = normalization
    return ((pixels - mean) / deviation).transpose(2, 0, 1).astype(np.float32)[None]


def turned(image, quarters):
    return image.rotate(90 * quarters, expand=True)


IMAGES = {
    "detection": lambda i: normalise(page(640, 480), IMAGENET),
    "recognition": lambda i: normalise(line(), CENTERED),
    "line-orientation": lambda i: normalise(turned(line(), 2 * (i % 2)).resize((192, 48)), CENTERED),
    "page-orientation": lambda i: normalise(turned(page(640, 640), i % 4).resize((224, 224)), IMAGENET),
}


def open_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options)


def voice(session, speech, window, count, position):
    """Windows from all over the recording, with the states that the windows before it leave."""
    with wave.open(speech) as recording:
        sound = np.frombuffer(recording.readframes(recording.getnframes()), np.int16).astype(np.float32) / 32768
    inputs = {each.name: each for each in session.get_inputs()}
    audio = next(iter(inputs))
    outputs = [each.name for each in session.get_outputs()]
    states = [name for name in inputs if name not in (audio, "sr")]
    shape = lambda each: [size if isinstance(size, int) else 1 for size in each.shape]
    values = {name: np.zeros(shape(inputs[name]), np.float32) for name in states}
    samples = []
    for step in range(len(sound) // 512 - 2):
        start = step * 512
        feeds = {audio: sound[start : start + window][None], **values}
        if "sr" in inputs:
            feeds["sr"] = np.array(16000, np.int64)
        samples.append(feeds)
        results = session.run(None, feeds)
        values = dict(zip(states, results[1:]))
    stride = max(1, len(samples) // count)
    samples = samples[(stride // 2 + position) % stride :: stride][:count]
    return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}


def main(kind, model, speech, count, *outputs):
    count = int(count)
    session = open_session(model)
    for position, output in enumerate(outputs):
        if kind in IMAGES:
            samples = {session.get_inputs()[0].name: np.stack([IMAGES[kind](i) for i in range(count)])}
        else:
            samples = voice(session, speech, int(kind.removeprefix("voice-")), count, position)
        np.savez(output, **samples)


if __name__ == "__main__":
    main(*sys.argv[1:])
