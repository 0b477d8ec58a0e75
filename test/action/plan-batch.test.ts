import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { InputError } from "../../src/action/explain-error.ts";
import { isDryRun, planBatch, readBatchFile } from "../../src/action/plan-batch.ts";
import { readInputs } from "../../src/action/read-inputs.ts";

interface Repository {
  readonly files?: Readonly<Record<string, string>>;
  readonly inputs?: Readonly<Record<string, string>>;
}

async function plan(t: TestContext, { files = {}, inputs = {} }: Repository) {
  const workspace = await mkdtemp(path.join(tmpdir(), "workspace-"));
  t.after(() => rm(workspace, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(workspace, file)), { recursive: true });
    await writeFile(path.join(workspace, file), text);
  }
  await symlink("/etc/hostname", path.join(workspace, "link.onnx"));
  await symlink("not-fetched", path.join(workspace, "annexed.onnx"));
  const all = { "service-url": "https://mos.example.com", ...inputs };
  const variables = Object.entries(all).map(([name, text]) => [
    `INPUT_${name.toUpperCase()}`,
    text,
  ]);
  const read = readInputs(Object.fromEntries(variables));
  const batchFile = readBatchFile(read, workspace);
  return planBatch(read, { workspace, defaultSuite: "acme/models", batchFile });
}

async function planProblems(t: TestContext, repository: Repository): Promise<string[]> {
  try {
    await plan(t, repository);
  } catch (error) {
    assert.ok(error instanceof InputError, String(error));
    return error.problems.map(({ message }) =>
      message.replaceAll(/\/\S*workspace-\w+/g, "WORKSPACE"),
    );
  }
  return [];
}

const files = {
  "models/ocr/rec.onnx": "",
  "models/ocr/det.onnx": "",
  "models/asr/rec.onnx": "",
  "models/README.md": "",
};
const targets = "cpu";

test("planBatch() names files after their paths, finds each once and leaves out what is taken out", async (t) => {
  const models =
    "models/**/*.onnx\nmodels/ocr/rec.onnx\n!models/asr/**\nspeech=https://models.test/speech.onnx";
  const planned = await plan(t, { files, inputs: { models, targets } });
  const bare = { sha256: undefined, place: undefined };
  assert.deepEqual(planned.models, [
    { name: "models-ocr-det", file: "models/ocr/det.onnx", ...bare },
    { name: "models-ocr-rec", file: "models/ocr/rec.onnx", ...bare },
    { name: "speech", source: "https://models.test/speech.onnx", ...bare },
  ]);
});

test("planBatch() keeps what an entry says of a model that a glob before it matches, too", async (t) => {
  const speech = "{ name: speech, file: models/asr/rec.onnx }";
  const batch = (more = "") => `models: [models/**/*.onnx, ${speech}${more}]\ntargets: [cpu]\n`;
  const inputs = { "batch-file": "batch.yaml" };
  const planned = await plan(t, { files: { ...files, "batch.yaml": batch() }, inputs });
  assert.deepEqual(
    planned.models.map(({ name }) => name),
    ["speech", "models-ocr-det", "models-ocr-rec"],
  );
  const twice = batch(", voice=models/asr/rec.onnx");
  assert.deepEqual(await planProblems(t, { files: { ...files, "batch.yaml": twice }, inputs }), [
    "batch.yaml, line 1: models/asr/rec.onnx: another entry says what this model is, too",
  ]);
});

test("planBatch() takes a file and a batch file of the workspace whose names begin with dots", async (t) => {
  const batch = "models: [..old.onnx]\ntargets: [cpu]\n";
  const inputs = { "batch-file": "..batch.yaml" };
  const planned = await plan(t, { files: { "..old.onnx": "", "..batch.yaml": batch }, inputs });
  assert.deepEqual(
    planned.models.map(({ name }) => name),
    ["old"],
  );
});

test("planBatch() names a file by its path below a workspace that is a symbolic link", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "runner-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(path.join(folder, "work"));
  await writeFile(path.join(folder, "work", "rec.onnx"), "");
  const workspace = path.join(folder, "link");
  await symlink("work", workspace);
  const inputs = readInputs({
    "INPUT_SERVICE-URL": "https://mos.example.com",
    // As `${{ github.workspace }}/*.onnx` gives it.
    INPUT_MODELS: `${workspace}/*.onnx`,
    INPUT_TARGETS: "cpu",
  });
  const batchFile = readBatchFile(inputs, workspace);
  const { places } = await planBatch(inputs, { workspace, defaultSuite: "a", batchFile });
  assert.deepEqual(places.models, [{ model: "rec", file: "rec.onnx", line: 1 }]);
});

test("planBatch() shows no signature and no password of a source", async (t) => {
  const signed = (host: string) => `https://${host}/a.onnx?expires=9&signature=secret`;
  const [a, b, c] = ["a.test", "b.test", "c.test"].map(signed);
  const models = [a, b, `x=${c}`, `y=${c}`, "https://me:se/cret@c.test/a.onnx"].join("\n");
  assert.deepEqual(await planProblems(t, { inputs: { models, targets } }), [
    'Input "models": https://c.test/a.onnx?expires=***&signature=***: another entry says what this model is, too',
    'Input "models": https://***: source is "https://***" and must be a URL with a valid host and port',
    "Models https://a.test/a.onnx?expires=***&signature=*** and https://b.test/a.onnx?expires=***&signature=*** are all named a; give each a name of its own, as NAME=PATH",
  ]);
});

test("planBatch() leaves sources of buckets and of the Hugging Face Hub to the service", async (t) => {
  const sources = [
    "s3://nets/a/det.onnx",
    "gs://nets/rec.onnx",
    "hf://acme/asr@main/onnx/asr.onnx",
  ];
  const { models } = await plan(t, { files, inputs: { models: sources.join("\n"), targets } });
  assert.deepEqual(
    models.map((model) => [model.name, "source" in model && model.source]),
    [
      ["a-det", sources[0]],
      ["rec", sources[1]],
      ["asr-main-onnx-asr", sources[2]],
    ],
  );
});

test("planBatch() refuses files and names that it cannot use, all at once", async (t) => {
  const models =
    "model/*.onnx\na.onnx, b.onnx\nlink.onnx\nann*.onnx\nrec=models/ocr/*.onnx\nftp=file://server/a.onnx\na=models/ocr/rec.onnx\na=models/asr/rec.onnx";
  assert.deepEqual(await planProblems(t, { files, inputs: { models, targets } }), [
    'Input "models": model/*.onnx: no file of the workspace WORKSPACE matches; is the repository checked out, with large files?',
    'Input "models": a.onnx, b.onnx: no file of the workspace WORKSPACE matches; name one glob in each line or entry',
    'Input "models": link.onnx: link.onnx lies outside of the workspace',
    `Input "models": ann*.onnx: annexed.onnx cannot be read: ENOENT: no such file or directory, realpath 'WORKSPACE/annexed.onnx'; is what it links to fetched?`,
    'Input "models": models/ocr/*.onnx: 2 files match, which cannot all have one name or SHA-256',
    'Input "models": file://server/a.onnx: source is "file://server/a.onnx" and must be https://…, http://…, s3://BUCKET/KEY, gs://BUCKET/KEY, hf://OWNER/REPOSITORY@REVISION, the same with /PATH, file:///… or upload:sha256:<64 hex digits>',
    "Models models/ocr/rec.onnx and models/asr/rec.onnx are all named a; give each a name of its own, as NAME=PATH",
  ]);
});

test("planBatch() reads a batch file, over which inputs are laid", async (t) => {
  const batch = `
suite: nightly
kind: quantize
models:
  - models/ocr/*.onnx
  - name: speech
    file: models/asr/rec.onnx
targets: [cpu, cpu-int8]
gates:
  maxSizeRatio: 0.5
`;
  const inputs = { "batch-file": "./batch.yaml", targets: "cpu-int8" };
  const planned = await plan(t, { files: { ...files, "batch.yaml": batch }, inputs });
  assert.deepEqual(planned.targets, ["cpu-int8"]);
  const { suite, kind, gates } = planned.fields;
  assert.deepEqual(
    { suite, kind, gates },
    { suite: "nightly", kind: "quantize", gates: { maxSizeRatio: 0.5 } },
  );
  assert.deepEqual(
    planned.models.map(({ name }) => name),
    ["models-ocr-det", "models-ocr-rec", "speech"],
  );
  const file = "batch.yaml";
  assert.deepEqual(planned.places, {
    models: [
      { model: "models-ocr-det", file, line: 5 },
      { model: "models-ocr-rec", file, line: 5 },
      { model: "speech", file, line: 6 },
    ],
    gates: [{ gate: "maxSizeRatio", file, line: 10 }],
  });
});

test("a batch file is read once, for the check's name and for the plan", async (t) => {
  const workspace = await mkdtemp(path.join(tmpdir(), "workspace-"));
  t.after(() => rm(workspace, { recursive: true }));
  const file = path.join(workspace, "batch.yaml");
  const models = "[https://models.test/a.onnx]";
  await writeFile(file, `{ dryRun: true, targets: [cpu], models: ${models} }`);
  const inputs = readInputs({
    "INPUT_SERVICE-URL": "https://mos.example.com",
    "INPUT_BATCH-FILE": "batch.yaml",
  });
  const batchFile = readBatchFile(inputs, workspace);
  assert.equal(await isDryRun(inputs, batchFile), true);
  await writeFile(file, `{ targets: [cpu], models: ${models} }`);
  const { fields } = await planBatch(inputs, { workspace, defaultSuite: "a", batchFile });
  assert.equal(fields.dryRun, true);
});

for (const [inKind, inFile, kind] of [
  [undefined, undefined, "compress"],
  [undefined, "quantize", "quantize"],
  ["quantize", undefined, "quantize"],
  ["compress", "quantize", "compress"],
] as const) {
  test(`planBatch() plans ${kind} with the input ${inKind} and ${inFile} in the file`, async (t) => {
    const batch = `models: [models/ocr/rec.onnx]\n${inFile ? `kind: ${inFile}` : ""}`;
    const inputs = { "batch-file": "batch.yaml", targets, ...(inKind && { kind: inKind }) };
    const { fields } = await plan(t, { files: { ...files, "batch.yaml": batch }, inputs });
    assert.equal(fields.kind, kind);
  });
}

test("planBatch() reports what is wrong in a batch file by its lines", async (t) => {
  const batch = `{
  "models": [
    "models/ocr/rec.onnx",
    {"file": "models/asr/rec.onnx", "nmae": "speech"},
    {"name": "none"}
  ],
  "targets": ["CPU"],
  "gates": {"maxSize": 0.5}
}`;
  assert.deepEqual(
    await planProblems(t, {
      files: { ...files, "batch.json": batch },
      inputs: { "batch-file": "batch.json" },
    }),
    [
      "batch.json, line 4: models[1].nmae is not known; the known ones are source, sha256, name, file",
      "batch.json, line 5: models[2] must have either `file`, a glob of files in the workspace, or `source`",
      'batch.json, line 7: targets[0] is "CPU" and must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end',
      "batch.json, line 8: gates.maxSize is not known; the known ones are maxSizeRatio, minSqnrDb, minCosine, minTop1, maxPerplexityRatio, maxKlDivergence, maxLatencyRatio, maxSizeRegression, maxSqnrDropDb, maxLatencyRegression, warnGates",
    ],
  );
});

const ones = (alias: string) => `[${Array.from({ length: 12 }, () => alias).join()}]`;
for (const [what, batch, problem] of [
  ["is no YAML", "models:\n  - a\n targets: b\n", /^batch\.yaml, line 3: /],
  ["has an alias without an anchor", "targets: [cpu]\nmodels: *all\n", /line 2: .*alias.*: all$/],
  [
    "grows without bound",
    `name: a\na: &a ${ones("1")}\nb: &b ${ones("*a")}\nc: ${ones("*b")}\n`,
    /line 3: Excessive alias count/,
  ],
  ["has a second document", "models: [a]\n---\nmodels: [b]\n", /line 2: A second document/],
] as const) {
  test(`planBatch() reports the line at which a batch file ${what}`, async (t) => {
    const files = { "batch.yaml": batch };
    const [first = ""] = await planProblems(t, { files, inputs: { "batch-file": "batch.yaml" } });
    assert.match(first, problem);
  });
}

for (const [file, sentence] of [
  ["none.yaml", /there is no file none\.yaml in the workspace/],
  ["../../etc/hostname", /there is no file|lies outside of the workspace/],
  ["link.onnx", /lies outside of the workspace/],
] as const) {
  test(`planBatch() refuses the batch file ${file}`, async (t) => {
    assert.match((await planProblems(t, { inputs: { "batch-file": file } })).join(), sentence);
  });
}

test("planBatch() refuses more jobs than a batch can have, before anything is uploaded", async (t) => {
  const many = Array.from({ length: 1001 }, (_, i) => `m${i}=https://models.test/${i}.onnx`).join(
    "\n",
  );
  const problems = await planProblems(t, { inputs: { models: many, targets: "cpu,cpu" } });
  assert.match(problems.join("\n"), /models.*1000/);
});
