import assert from "node:assert/strict";
import { test } from "node:test";
import { ModelSession } from "../../../src/engine/runtime/model-session.ts";
import { openSamples } from "../../../src/engine/samples/open-samples.ts";
import { type Sample, tensorNumbers } from "../../../src/engine/runtime/tensor-data.ts";
import { realModel, realModelMissing, type RealModelName } from "../../support/real-models.ts";

const { signal } = new AbortController();

/** The samples that are generated for a real model, its first output on each, and their description. */
async function runOnGenerated(name: RealModelName, samples: number) {
  const modelPath = realModel(name);
  const options = { executionProvider: "cpu", threads: 1, signal } as const;
  await using session = await ModelSession.open(modelPath, options);
  const [output] = session.signature.outputs;
  assert(output);
  const opening = { modelPath, outputs: [output.name], signal, evaluation: { samples } };
  await using source = await openSamples(session, opening);
  const given: Sample[] = [];
  const outputs: number[][] = [];
  for await (const sample of source.samples) {
    given.push(sample);
    const [tensor] = await session.run(sample, [output.name]);
    assert(tensor);
    outputs.push([...tensorNumbers(tensor)]);
  }
  return { given, outputs, generated: source.generated ?? [] };
}

function largestIndex(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

test(
  "a classifier of page orientations sees the way that generated pages are turned",
  { skip: await realModelMissing("page-orientation") },
  async () => {
    const { outputs, generated } = await runOnGenerated("page-orientation", 8);
    assert.deepEqual(outputs.map(largestIndex), [0, 0, 2, 0, 1, 0, 0, 3]);
    assert.deepEqual(generated, [
      {
        name: "x",
        content: "pages of text, ImageNet's mean and deviation",
        shapes: ["1 × 3 × 224 × 224"],
      },
    ]);
  },
);

test("a text detector finds generated text, at several sizes, and none where there is none", async () => {
  const { given, outputs, generated } = await runOnGenerated("ocr-detection", 4);
  const highest = outputs.map((map) => map.reduce((a, b) => Math.max(a, b)));
  assert.deepEqual(
    highest.map((probability) => probability > 0.9),
    [true, true, true, false],
  );
  const shapes = given.map(([image]) => image?.shape.join(" × ") ?? "");
  assert.deepEqual(new Set(shapes), new Set(["1 × 3 × 256 × 256", "1 × 3 × 256 × 384"]));
  const [described] = generated;
  assert.match(described?.content ?? "", /text on pages and photographs, ImageNet's/);
  assert.deepEqual(described?.shapes, [...new Set(shapes)]);
});

test("a classifier of lines gets lines, and sees which of them are upside down", async () => {
  const { outputs, generated } = await runOnGenerated("ocr-orientation", 8);
  assert.deepEqual(outputs.map(largestIndex), [0, 0, 1, 0, 1, 0, 0, 1]);
  assert.deepEqual(generated[0]?.shapes, [
    "1 × 3 × 48 × 320",
    "1 × 3 × 48 × 480",
    "1 × 3 × 48 × 256",
  ]);
});

test("the normalization of a text recognizer is found in its BatchNormalization", async () => {
  const { outputs, generated } = await runOnGenerated("ocr-recognition", 2);
  assert.match(generated[0]?.content ?? "", /, -1 to 1$/);
  for (const probabilities of outputs) {
    const classes = 6625;
    const read = new Set<number>();
    for (let start = 0; start < probabilities.length; start += classes) {
      read.add(largestIndex(probabilities.slice(start, start + classes)));
    }
    assert(read.size > 4, `It reads ${read.size} different characters`);
  }
});

for (const name of ["voice-legacy", "voice-v5", "voice-without-if"] as const) {
  test(
    `${name} hears speech and pauses, with the states that earlier steps left`,
    { skip: await realModelMissing(name) },
    async () => {
      const { given, outputs, generated } = await runOnGenerated(name, 8);
      const speech = outputs.map(([probability = NaN]) => probability);
      const [least, most] = [Math.min(...speech), Math.max(...speech)];
      assert(most > 0.9 && least < most - 0.25, speech.join());
      const states = generated.filter(({ content }) => content === "states after earlier steps");
      assert(states.length > 0);
      for (const state of states) {
        const tensors = given.map((sample) => sample.find((each) => each.name === state.name));
        assert(
          tensors.every((tensor) => tensor && tensorNumbers(tensor).some((each) => each !== 0)),
        );
      }
    },
  );
}

test(
  "an embedding model gets sentences of its vocabulary, of several lengths",
  { skip: await realModelMissing("minilm") },
  async () => {
    const { given, generated } = await runOnGenerated("minilm", 6);
    assert.equal(generated[0]?.content, "sentences from 30522 tokens");
    assert.deepEqual(generated[0].shapes, ["1 × 32", "1 × 64", "1 × 16"]);
    for (const [ids] of given) {
      assert(ids);
      const tokens = [...tensorNumbers(ids)];
      assert.deepEqual([tokens.at(0), tokens.at(-1)], [101, 102]);
      assert(tokens.slice(1, -1).every((token) => token >= 1012 && token < 30_522));
    }
  },
);

test("the same samples are generated again", async () => {
  const [first, second] = [
    await runOnGenerated("voice-v5", 3),
    await runOnGenerated("voice-v5", 3),
  ];
  assert.deepEqual(first.given, second.given);
});
