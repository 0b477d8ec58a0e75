import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { readUsedGpuMemory } from "../../../src/engine/runtime/read-gpu-memory.ts";

/** Stands in for NVIDIA's tool, which is only where there is a GPU. */
async function pretendTool(t: TestContext, script: string): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "nvidia-smi-"));
  const { PATH } = process.env;
  t.after(async () => {
    process.env["PATH"] = PATH;
    await rm(folder, { recursive: true });
  });
  await writeFile(path.join(folder, "nvidia-smi"), `#!/bin/sh\n${script}\n`);
  await chmod(path.join(folder, "nvidia-smi"), 0o755);
  process.env["PATH"] = folder;
}

const gpus = 'case "$*" in *--query-gpu=memory.used*) echo 603; echo 72;; esac';

test("memory of all GPUs counts", async (t) => {
  await pretendTool(t, gpus);
  assert.equal(await readUsedGpuMemory(), 675 * 2 ** 20);
});

for (const [what, script] of [
  ["that says nothing of a virtual GPU", 'echo "[N/A]"'],
  ["that finds no driver", 'echo "NVIDIA-SMI has failed"; exit 9'],
] as const) {
  test(`nothing is known of a tool ${what}`, async (t) => {
    await pretendTool(t, script);
    assert.equal(await readUsedGpuMemory(), undefined);
  });
}

test("nothing is known where there is no tool", async (t) => {
  await pretendTool(t, gpus);
  process.env["PATH"] = "/nowhere";
  assert.equal(await readUsedGpuMemory(), undefined);
});
