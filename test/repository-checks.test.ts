import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";

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

const checks: readonly (readonly [string, string, readonly string[]])[] = [
  ["types are sound", "tsc", []],
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

const violations: readonly (readonly [string, string])[] = [
  ["src/contract/planted.ts", 'import "hono";'],
  ["src/engine/planted.ts", 'import { get } from "node:http";\nexport const planted = get;'],
  [
    "src/engine/planted.ts",
    'import type { Records } from "../records/records.ts";\nexport type Planted = Records;',
  ],
  [
    "src/records/planted.ts",
    'import { planted } from "../server/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/server/planted.ts",
    'import { planted } from "../engine/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/server/planted.ts",
    'import { planted } from "../worker/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/server/planted.ts",
    'import { KubeConfig } from "@kubernetes/client-node";\nexport const p = KubeConfig;',
  ],
  [
    "src/client/planted.ts",
    'import { planted } from "../records/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/github-app/planted.ts",
    'import { planted } from "../server/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/worker/planted.ts",
    'import { InferenceSession } from "onnxruntime-node";\nexport const p = InferenceSession;',
  ],
  ["src/storage/planted.ts", "export const p = process.env;"],
  [
    "operator/controllers/planted.ts",
    'import { planted } from "../../src/records/planted.ts";\nexport const p = planted;',
  ],
  [
    "operator/controllers/planted.ts",
    'import { KubeConfig } from "@kubernetes/client-node";\nexport const p = KubeConfig;',
  ],
  [
    "src/controller-runtime/planted.ts",
    'import { planted } from "../contract/planted.ts";\nexport const p = planted;',
  ],
  [
    "src/controller-runtime/planted.ts",
    'import { planted } from "../../operator/controllers/planted.ts";\nexport const p = planted;',
  ],
  ["src/controller-runtime/planted.ts", "export const p = process.env;"],
  [
    "src/executors/planted.ts",
    'import type { Local } from "./local/planted.ts";\nexport type Planted = Local;',
  ],
  [
    "src/executors/local/planted.ts",
    'import { planted } from "../../kubernetes/planted.ts";\nexport const p = planted;',
  ],
  ["src/records/planted.ts", 'import type { Seam } from "./seam.ts";\nexport type Planted = Seam;'],
];

/** Closes a circle of types with the planted file beside it. */
const seam =
  'import type { Planted } from "./planted.ts";\nexport type Seam = Planted | undefined;\n';

for (const [file, source] of violations) {
  test(`lint refuses ${JSON.stringify(source.split("\n")[0])} in ${dirname(file)}`, async (t) => {
    const tree = await mkdtemp(join(tmpdir(), "planted-"));
    t.after(() => rm(tree, { recursive: true }));
    for (const copied of [
      "oxlint.config.ts",
      "scripts/parts.ts",
      "package.json",
      "tsconfig.json",
    ]) {
      await cp(join(root, copied), join(tree, copied));
    }
    await symlink(join(root, "node_modules"), join(tree, "node_modules"));
    await mkdir(dirname(join(tree, file)), { recursive: true });
    await mkdir(join(tree, "src/records"), { recursive: true });
    await writeFile(join(tree, "src/records/seam.ts"), seam);
    await writeFile(join(tree, file), `${source}\n`);
    assert.match(
      await runCheck("oxlint", ["--deny-warnings", file], tree),
      /eslint\(no-restricted-imports\)|node\(no-process-env\)|import\(no-cycle\)/,
    );
  });
}
