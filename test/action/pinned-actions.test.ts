import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { glob, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { actionlintMissing } from "../support/cluster/cluster-missing.ts";
import { programPath } from "../support/cluster/programs.ts";
import { pythonInterpreter, pythonMissing } from "../support/python.ts";

const root = path.join(import.meta.dirname, "../..");
const files = await Array.fromAsync(
  glob(
    [
      "action.yml",
      "README.md",
      "docs/github-action.md",
      "docs/workflows/*.yml",
      ".github/workflows/*",
    ],
    { cwd: root },
  ),
);

const own = /^modeloptimization\/compress@v\d+$/;
const pinned = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;

for (const file of files) {
  test(`${file} names foreign actions by commit, and leaves no credentials in a checkout`, async () => {
    const text = await readFile(path.join(root, file), "utf8");
    const lines = text.split("\n");
    for (const [i, line] of lines.entries()) {
      const [, uses] = /^\s*(?:- )?uses: (.*)$/.exec(line) ?? [];
      if (uses === undefined || own.test(uses)) continue;
      assert.match(uses, pinned);
      if (!uses.startsWith("actions/checkout@")) continue;
      assert.equal(lines[i + 2]?.trim(), "persist-credentials: false", `${file}:${i + 1}`);
    }
  });
}

/** Workflows as files; the README's among them. */
async function listWorkflows(t: TestContext): Promise<string[]> {
  const folder = await mkdtemp(path.join(tmpdir(), "workflows-"));
  t.after(() => rm(folder, { recursive: true }));
  const readme = await readFile(path.join(root, "README.md"), "utf8");
  const [, example = ""] = /```yaml\n(name: Compression\n[^`]*)```/.exec(readme) ?? [];
  assert.notEqual(example, "");
  await writeFile(path.join(folder, "readme.yml"), example);
  const workflows = files.filter((file) => /workflows\//.test(file));
  return [...workflows.map((file) => path.join(root, file)), path.join(folder, "readme.yml")];
}

function checkBy(tool: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(tool, args, { cwd: root, encoding: "utf8" });
  assert.equal(status, 0, `${stdout}${stderr}`);
}

test("zizmor finds nothing in the action and the workflows", { skip: pythonMissing }, async (t) => {
  const zizmor = path.join(path.dirname(pythonInterpreter), "zizmor");
  const config = ["--offline", "--no-progress", "--config", ".github/zizmor.yml"];
  checkBy(zizmor, [...config, path.join(root, "action.yml"), ...(await listWorkflows(t))]);
});

test("actionlint finds nothing in the workflows", { skip: actionlintMissing }, async (t) => {
  checkBy(await programPath("actionlint"), await listWorkflows(t));
});
