import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Figure } from "../../scripts/structure/figure.ts";
import { describeExceeded, lowerLimits } from "../../scripts/structure/limits.ts";
import { measure } from "../../scripts/structure/measure.ts";

type Tree = Readonly<Record<string, string>>;

async function measureTree(t: TestContext, tree: Tree): Promise<readonly Figure[]> {
  const root = await mkdtemp(join(tmpdir(), "structure-"));
  t.after(() => rm(root, { recursive: true }));
  for (const [file, text] of Object.entries(tree)) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
  }
  return measure(root);
}

/** The value of a figure and where it finds what it counts. */
async function count(t: TestContext, figureName: string, tree: Tree) {
  const figures = await measureTree(t, tree);
  const figure = figures.find(({ name }) => name === figureName);
  assert.ok(figure);
  const places = figure.places.map(({ file, line, name }) => `${file}:${line} ${name}`);
  return { value: figure.value, places };
}

test("upward imports are the fewest arrows that close circles of parts", async (t) => {
  const counted = await count(t, "upward-imports", {
    "src/server/main.ts": 'import "../local/a.ts";\nimport "../cluster/a.ts";\n',
    "src/server/routes.ts": 'import "../local/b.ts";\nimport "../cluster/b.ts";\n',
    "src/local/a.ts": 'import type { Seam } from "../server/routes.ts";\nexport type A = Seam;\n',
    "src/local/b.ts": 'import "../records/a.ts";\n',
    "src/cluster/a.ts": 'export const load = () => import("../server/routes.ts");\n',
    "src/cluster/b.ts": "",
    "src/records/a.ts": 'import "./sql/b.ts";\n',
    "src/records/sql/b.ts": 'import "../a.ts";\n',
  });
  assert.equal(counted.value, 2);
  assert.deepEqual(counted.places.toSorted(), [
    "src/cluster/a.ts:1 imports src/server/routes.ts (src/cluster → src/server)",
    "src/local/a.ts:1 imports src/server/routes.ts (src/local → src/server)",
  ]);
});

test("one arrow can close several circles of parts", async (t) => {
  const counted = await count(t, "upward-imports", {
    "src/a/a.ts": 'import "../b/b.ts";\nimport "../c/c.ts";\n',
    "src/b/b.ts": 'import "../d/d.ts";\n',
    "src/c/c.ts": 'import "../d/d.ts";\n',
    "src/d/d.ts": 'import "../a/a.ts";\n',
  });
  assert.equal(counted.value, 1);
  assert.deepEqual(counted.places, ["src/d/d.ts:1 imports src/a/a.ts (src/d → src/a)"]);
});

test("the operator's folders are parts", async (t) => {
  const counted = await count(t, "upward-imports", {
    "operator/main.ts": 'import "./runtime/queue.ts";\nimport "./settings.ts";\n',
    "operator/settings.ts": 'import "./runtime/queue.ts";\n',
    "operator/runtime/queue.ts": 'import "../settings.ts";\n',
  });
  assert.deepEqual(counted.places, [
    "operator/runtime/queue.ts:1 imports operator/settings.ts (operator/runtime → operator)",
  ]);
});

test("upward imports inside a part are those between its subfolders", async (t) => {
  const counted = await count(t, "upward-subfolder-imports", {
    "src/engine/run.ts": 'import "./onnx/read.ts";\nimport "./onnx/write.ts";\n',
    "src/engine/onnx/read.ts": 'import "../run.ts";\nimport "../../server/a.ts";\n',
    "src/engine/onnx/write.ts": "",
    "src/server/a.ts": 'import "../engine/run.ts";\n',
  });
  assert.equal(counted.value, 1);
  assert.deepEqual(counted.places, [
    "src/engine/onnx/read.ts:1 imports src/engine/run.ts (src/engine/onnx → src/engine)",
  ]);
});

test("circles are made of types, imports of types in place and started files too", async (t) => {
  const counted = await count(t, "import-circles", {
    "src/a/context.ts": 'import type { Key } from "./key.ts";\nexport type Context = Key;\n',
    "src/a/key.ts": 'export type Key = import("./context.ts").Context | undefined;\n',
    "src/b/start.ts": 'export const url = new URL("./run-process.ts", import.meta.url);\n',
    "src/b/run-process.ts": 'import "./start.ts";\nimport "../a/key.ts";\n',
  });
  assert.equal(counted.value, 2);
  assert.deepEqual(counted.places, [
    "src/a/context.ts:1 in a circle with src/a/key.ts",
    "src/b/run-process.ts:1 in a circle with src/b/start.ts",
  ]);
});

test("an export is unused when only tests and its own file take it", async (t) => {
  const counted = await count(t, "exports-unused-outside-tests", {
    "src/a/main.ts": "export const entry = 1;\n",
    "src/a/values.ts": [
      "export const taken = 1;",
      "export const benched = 2;",
      "export const scripted = 3;",
      "export const tested = 4;",
      "export interface Own {}",
      "export const own: Own = {};",
      "",
    ].join("\n"),
    "src/a/user.ts": 'import { taken, own } from "./values.ts";\nvoid [taken, own];\n',
    "src/a/loaded.ts": "export const loaded = 1;\n",
    "src/a/loader.ts": 'await import("./loaded.ts");\n',
    "src/a/all.ts": 'export * from "./loaded.ts";\n',
    "bench/main.ts": 'import { benched } from "../src/a/values.ts";\nvoid benched;\n',
    "scripts/main.ts": 'import { scripted } from "../src/a/values.ts";\nvoid scripted;\n',
    "test/a/values.test.ts": 'import { tested } from "../../src/a/values.ts";\nvoid tested;\n',
  });
  assert.equal(counted.value, 2);
  assert.deepEqual(counted.places, ["src/a/values.ts:4 tested", "src/a/values.ts:5 Own"]);
});

test("declared functions named …Of are a percentage of declared functions", async (t) => {
  const counted = await count(t, "of-functions-percent", {
    "src/a/a.ts": "function nameOf() {\n  function read() {}\n}\nfunction Of() {}\n",
    "src/b/b.ts": "function write() {}\nconst closures = [() => 1];\n",
    "bench/b.ts": "function speedOf() {}\n",
  });
  assert.deepEqual(counted, { value: 25, places: ["src/a/a.ts:1 nameOf"] });
});

test("a function name is repeated when two files declare it", async (t) => {
  const counted = await count(t, "repeated-function-names", {
    "src/a/a.ts": "export function read() {}\n",
    "operator/b.ts": "\nfunction read() {}\n",
    "src/c/c.ts": "function once() {\n  function twice() {}\n}\nfunction twice() {}\n",
  });
  assert.equal(counted.value, 1);
  assert.deepEqual(counted.places, ["operator/b.ts:2 read", "src/a/a.ts:1 read"]);
});

test("a line is long with more than 100 characters", async (t) => {
  const counted = await count(t, "long-lines-per-1000", {
    "src/a/a.ts": `\n// ${"x".repeat(98)}\n// ${"x".repeat(97)}\n\n`,
    "src/engine/onnx/onnx_pb.d.ts": `// ${"x".repeat(200)}\n`,
  });
  assert.deepEqual(counted, { value: 250, places: ["src/a/a.ts:2 101 characters"] });
});

test("conditional spreads are counted in objects, in parentheses or not", async (t) => {
  const counted = await count(t, "conditional-spreads-per-1000", {
    "src/a/a.ts": [
      "const a = { ...(b ? { b } : {}) };",
      "const c = { ...(b && { b }) };",
      "const d = { ...(b ?? {}), ...a };",
      "const e = [...(b ? [b] : [])];",
      "",
    ].join("\n"),
  });
  assert.deepEqual(counted, {
    value: 500,
    places: ["src/a/a.ts:1 conditional spread", "src/a/a.ts:2 conditional spread"],
  });
});

test("any is a type, not a word", async (t) => {
  const counted = await count(t, "any-per-1000", {
    "src/a/a.ts": "// any\nconst any = 1 as any;\n",
  });
  assert.deepEqual(counted, { value: 500, places: ["src/a/a.ts:2 any"] });
});

test("sizes are those of files and of every function", async (t) => {
  const figures = await measureTree(t, {
    "src/a/a.ts": `class A {\n  read() {\n    return () => 1;\n  }\n}\n`,
    "src/b/b.ts": `function long() {\n${"\n".repeat(60)}}\n`,
  });
  const values = new Map(figures.map(({ name, value }) => [name, value]));
  assert.equal(values.get("file-lines-median"), 62);
  assert.equal(values.get("file-lines-p95"), 62);
  assert.equal(values.get("function-lines-median"), 3);
  assert.equal(values.get("function-lines-p95"), 62);
  assert.equal(values.get("functions-over-60-lines-percent"), 33.33);
});

test("a file that cannot be read as TypeScript is named", async (t) => {
  await assert.rejects(measureTree(t, { "src/a/a.ts": "function {" }), /^Error: src\/a\/a\.ts is/);
});

test("limits are lowered and never raised", () => {
  const worse = { name: "worse", value: 3, places: [] };
  const better = { name: "better", value: 1, places: [] };
  const limits = { worse: 2, better: 2 };
  assert.deepEqual(lowerLimits(limits, [worse, better]), { worse: 2, better: 1 });
  assert.deepEqual(describeExceeded(limits, [worse, better]), [
    "worse is 3, at most 2 is allowed: see npm run structure -- --list worse",
  ]);
  assert.throws(() => describeExceeded({}, [worse]), /worse has no limit/);
});
