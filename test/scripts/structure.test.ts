import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";

const script = join(import.meta.dirname, "../../scripts/structure.ts");

/** What the script prints about a tree on standard error, and whether it refuses the tree. */
async function checkStructure(t: TestContext, tree: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), "structure-"));
  t.after(() => rm(root, { recursive: true }));
  for (const [file, text] of Object.entries(tree)) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
  }
  const run = promisify(execFile)(process.execPath, [script, root]);
  return run.then(
    ({ stdout, stderr }) => ({ refused: false, defects: stderr.trim().split("\n"), stdout }),
    (error: { stderr: string; stdout: string }) => ({
      refused: true,
      defects: error.stderr.trim().split("\n").toSorted(),
      stdout: error.stdout,
    }),
  );
}

test("upward imports are the fewest arrows that close circles of parts", async (t) => {
  const { refused, defects } = await checkStructure(t, {
    "src/server/main.ts": 'import "../local/a.ts";\nimport "../cluster/a.ts";\n',
    "src/server/routes.ts": 'import "../local/b.ts";\nimport "../cluster/b.ts";\n',
    "src/local/a.ts": 'import type { Seam } from "../server/routes.ts";\nexport type A = Seam;\n',
    "src/local/b.ts": 'import "../records/a.ts";\n',
    "src/cluster/a.ts": 'export const load = () => import("../server/routes.ts");\n',
    "src/cluster/b.ts": "",
    "src/records/a.ts": "",
  });
  assert.ok(refused);
  assert.deepEqual(defects, [
    "src/cluster/a.ts:1 upward imports: imports src/server/routes.ts (src/cluster → src/server)",
    "src/local/a.ts:1 upward imports: imports src/server/routes.ts (src/local → src/server)",
  ]);
});

test("the operator's folders are parts", async (t) => {
  const { defects } = await checkStructure(t, {
    "operator/main.ts": 'import "./runtime/queue.ts";\nimport "./settings.ts";\n',
    "operator/settings.ts": 'import "./runtime/queue.ts";\n',
    "operator/runtime/queue.ts": 'import "../tools.ts";\n',
    "operator/tools.ts": "",
  });
  assert.deepEqual(defects, [
    "operator/runtime/queue.ts:1 upward imports: imports operator/tools.ts (operator/runtime → operator)",
  ]);
});

test("the folders of a part do not import each other in a circle", async (t) => {
  const { defects } = await checkStructure(t, {
    "src/engine/run.ts": 'import "./onnx/read.ts";\nimport "./onnx/write.ts";\n',
    "src/engine/onnx/read.ts": 'import "../plan.ts";\n',
    "src/engine/onnx/write.ts": "",
    "src/engine/plan.ts": "",
  });
  assert.deepEqual(defects, [
    "src/engine/onnx/read.ts:1 upward imports inside a part: imports src/engine/plan.ts (src/engine/onnx → src/engine)",
  ]);
});

test("circles are made of types, imports of types in place and started files too", async (t) => {
  const { defects } = await checkStructure(t, {
    "src/a/context.ts": 'import type { Key } from "./key.ts";\nexport type Context = Key;\n',
    "src/a/key.ts": 'export type Key = import("./context.ts").Context | undefined;\n',
    "src/b/start.ts": 'export const url = new URL("./run-process.ts", import.meta.url);\n',
    "src/b/run-process.ts": 'import "./start.ts";\n',
  });
  assert.deepEqual(defects, [
    "src/a/context.ts:1 import circles: in a circle with src/a/key.ts",
    "src/b/run-process.ts:1 import circles: in a circle with src/b/start.ts",
  ]);
});

test("any is a type, not a word", async (t) => {
  const { defects } = await checkStructure(t, {
    "src/a/a.ts": "// any\nexport const any = 1 as any;\n",
  });
  assert.deepEqual(defects, ["src/a/a.ts:2 any: any"]);
});

test("sizes are printed and refuse nothing", async (t) => {
  const { refused, stdout } = await checkStructure(t, {
    "src/a/a.ts": `export function long() {\n${"\n".repeat(5_000)}}\n`,
  });
  assert.equal(refused, false);
  assert.match(stdout, /^lines of a function, median \/ P95 +5002 \/ 5002 /m);
});
