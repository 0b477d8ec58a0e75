import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { z } from "zod";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");

async function runCheck(tool: string, args: readonly string[], cwd = root): Promise<string> {
  try {
    const { stdout } = await exec(join(bin, tool), args, { cwd, maxBuffer: 16 * 1024 * 1024 });
    return stdout;
  } catch (error) {
    assert.ok(error instanceof Error && "stdout" in error);
    return `${tool} failed:\n${String(error.stdout)}`;
  }
}

/** What `npm run types` keeps, too: only what depends on changed files is checked again. */
const incremental = ["--incremental", "--tsBuildInfoFile", "build/types.tsbuildinfo"];
const checks: readonly (readonly [string, string, readonly string[]])[] = [
  ["types are sound", "tsc", incremental],
  ["lint finds nothing", "oxlint", ["--type-aware", "--deny-warnings"]],
  ["every file is formatted", "oxfmt", ["--check"]],
  ["no export, file or dependency is unused", "knip", []],
  ["imports lead down, and nothing is any", "node", ["scripts/structure.ts"]],
  ["generated files are what the contract says", "node", ["scripts/generate.ts", "--check"]],
];

for (const [name, tool, args] of checks) {
  test(`repository: ${name}`, async () => {
    assert.doesNotMatch(await runCheck(tool, args), /^\w+ failed:/);
  });
}

const violations: readonly (readonly [folder: string, source: string])[] = [
  ["src/contract", 'import "hono";'],
  ["src/engine", 'import { get } from "node:http";\nexport const planted = get;'],
  [
    "src/engine",
    'import type { Records } from "../records/records.ts";\nexport type Planted = Records;',
  ],
  ["src/records", 'import { planted } from "../server/planted.ts";\nexport const p = planted;'],
  ["src/server", 'import { planted } from "../engine/planted.ts";\nexport const p = planted;'],
  ["src/server", 'import { planted } from "../worker/planted.ts";\nexport const p = planted;'],
  [
    "src/server",
    'import { KubeConfig } from "@kubernetes/client-node";\nexport const p = KubeConfig;',
  ],
  ["src/client", 'import { planted } from "../records/planted.ts";\nexport const p = planted;'],
  ["src/github-app", 'import { planted } from "../server/planted.ts";\nexport const p = planted;'],
  [
    "src/worker",
    'import { InferenceSession } from "onnxruntime-node";\nexport const p = InferenceSession;',
  ],
  ["src/storage", "export const p = process.env;"],
  [
    "operator/controllers",
    'import { planted } from "../../src/records/planted.ts";\nexport const p = planted;',
  ],
  [
    "operator/controllers",
    'import { KubeConfig } from "@kubernetes/client-node";\nexport const p = KubeConfig;',
  ],
  [
    "src/controller-runtime",
    'import { planted } from "../contract/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/controller-runtime",
    'import { planted } from "../../operator/controllers/planted.ts";\nexport const p = planted;',
  ],
  ["src/controller-runtime", "export const p = process.env;"],
  [
    "src/executors",
    'import type { Local } from "./local/planted.ts";\nexport type Planted = Local;',
  ],
  [
    "src/executors/local",
    'import { planted } from "../../kubernetes/planted.ts";\nexport const p = planted;',
  ],
  ["src/records", 'import type { Seam } from "./seam.ts";\nexport type Planted = Seam;'],
];

const lintReport = z.object({
  diagnostics: z.array(z.object({ filename: z.string(), code: z.string() })),
});
const copied = ["oxlint.config.ts", "scripts/parts.ts", "package.json", "tsconfig.json"];

/** Lints all violations at once, each in a file of its own; gives the rules that each breaks. */
async function lintViolations(t: TestContext): Promise<Map<string, Set<string>>> {
  const tree = await mkdtemp(join(tmpdir(), "planted-"));
  t.after(() => rm(tree, { recursive: true }));
  for (const file of copied) await cp(join(root, file), join(tree, file));
  await symlink(join(root, "node_modules"), join(tree, "node_modules"));
  for (const [index, [folder, source]] of violations.entries()) {
    await mkdir(join(tree, folder), { recursive: true });
    await writeFile(join(tree, plantedFile(folder, index)), `${source}\n`);
  }
  const circle = violations.findIndex(([, source]) => source.includes("./seam.ts"));
  // Closes a circle of types with the planted file beside it.
  const seam = `import type { Planted } from "./planted-${circle}.ts";\nexport type Seam = Planted | undefined;\n`;
  await writeFile(join(tree, "src/records/seam.ts"), seam);
  const files = violations.map(([folder], index) => plantedFile(folder, index));
  const output = await runCheck("oxlint", ["--deny-warnings", "--format=json", ...files], tree);
  const { diagnostics } = lintReport.parse(JSON.parse(output.replace("oxlint failed:\n", "")));
  const rules = new Map<string, Set<string>>();
  for (const { filename, code } of diagnostics) {
    rules.set(filename, (rules.get(filename) ?? new Set()).add(code));
  }
  return rules;
}

function plantedFile(folder: string, index: number): string {
  return `${folder}/planted-${index}.ts`;
}

test("lint refuses each violation", async (t) => {
  const rules = await lintViolations(t);
  for (const [index, [folder, source]] of violations.entries()) {
    await t.test(`${JSON.stringify(source.split("\n")[0])} in ${folder}`, () => {
      assert.match(
        [...(rules.get(plantedFile(folder, index)) ?? [])].join(),
        /eslint\(no-restricted-imports\)|node\(no-process-env\)|import\(no-cycle\)/,
      );
    });
  }
});
