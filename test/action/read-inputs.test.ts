import assert from "node:assert/strict";
import test from "node:test";
import { InputError } from "../../src/action/explain-error.ts";
import { readInputs } from "../../src/action/read-inputs.ts";

function read(inputs: Readonly<Record<string, string>>) {
  return readInputs(
    Object.fromEntries(
      Object.entries(inputs).map(([name, text]) => [`INPUT_${name.toUpperCase()}`, text]),
    ),
  );
}

const right = { "service-url": "https://mos.example.com", models: "a.onnx", targets: "cpu" };

test("readInputs() reports everything that is wrong at once, with what is allowed", () => {
  const wrong = {
    "service-url": "mos.example",
    targets: "cpu",
    kind: "shard",
    recipe: "scheme: int9\nevaluation:\n  samples: 5\n  rounds: 3",
    gates: "maxSizeRatio: {",
    "fail-on": "errors",
    timeout: "1 hour",
    "dry-run": "maybe",
  };
  assert.throws(
    () => read(wrong),
    (error) => {
      assert.ok(error instanceof InputError);
      assert.deepEqual(
        error.problems.map(({ message }) => message.replace(/ is ".*?"(?=:)/s, "")),
        [
          'Input "service-url": must be an address such as https://mos.example.com',
          'Input "kind": must be compress or quantize',
          'Input "recipe": line 1: scheme is "int9" and must be "int8-dynamic", "int8-weight", "int4-weight", "int8-static" or "fp16"',
          'Input "recipe": line 4: evaluation.rounds is not known; the known ones are level, data, samples, latencyBudgetSeconds, minCosine',
          'Input "gates": line 1: Flow map in block collection must be sufficiently indented and end with a }',
          'Input "fail-on": must be gates, warnings, jobs or nothing',
          'Input "timeout": must be a number of minutes, or a time such as 90s, 45m or 2h',
          'Input "dry-run": must be true or false',
          'Input "models" is missing, and there is no "batch-file"',
        ],
      );
      return true;
    },
  );
});

for (const url of [
  "https://mos.example.com",
  "https://mos.example.com/",
  "https://mos.example.com/v1",
]) {
  test(`readInputs() takes ${url} as the address of the service`, () => {
    assert.equal(read({ ...right, "service-url": url })["service-url"], "https://mos.example.com");
  });
}

test("readInputs() takes lists over lines and behind commas, and YAML's spellings of true", () => {
  const inputs = read({
    ...right,
    models: "a.onnx\n\n  b/*.onnx  ",
    targets: "cpu, cpu-int8\nphone",
    "dry-run": "True",
  });
  assert.deepEqual(inputs.models, ["a.onnx", "b/*.onnx"]);
  assert.deepEqual(inputs.targets, ["cpu", "cpu-int8", "phone"]);
  assert.equal(inputs["dry-run"], true);
});

test("readInputs() takes a branch by its name and by its ref", () => {
  for (const baseline of ["release/1.x", "refs/heads/release/1.x"]) {
    assert.equal(read({ ...right, baseline }).baseline, "release/1.x");
  }
});

test("readInputs() finds what differs between the legs of a matrix", () => {
  assert.deepEqual(
    read({ ...right, matrix: '{"target": "cpu", "model": {"name": "a", "bits": 8}}' }).matrix,
    ["cpu", "a", "8"],
  );
  assert.deepEqual(read({ ...right, matrix: "null" }).matrix, []);
});

for (const [text, seconds] of [
  ["45", 2700],
  ["90s", 90],
  ["2h", 7200],
] as const) {
  test(`readInputs() takes ${text} for ${seconds} s`, () => {
    assert.equal(read({ ...right, timeout: text }).timeout, seconds);
  });
}
