import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { inheritedEnvironment } from "../support/inherited-environment.ts";

const demoMain = fileURLToPath(new URL("../../src/demo/main.ts", import.meta.url));

async function startDemo(t: TestContext, environment: Record<string, string> = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), "demo-"));
  const places = { HOME: folder };
  const env = { ...inheritedEnvironment(), ...places, ...environment };
  const child = spawn(process.execPath, [demoMain, folder], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGTERM");
    await exited;
    await rm(folder, { recursive: true });
  });
  return { child, exited, folder, lines: createInterface({ input: child.stdout }) };
}

/** Processes that have a folder in their environment. */
async function listProcesses(folder: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(
    pids.map(async (pid) => readFile(`/proc/${pid}/environ`, "utf8").catch(() => "")),
  );
  return pids.filter((_, i) => environments[i]?.includes(folder));
}

test(
  "the demo cancels its batch on Ctrl-C, and leaves no process",
  { timeout: 120_000 },
  async (t) => {
    const { child, exited, folder, lines } = await startDemo(t);
    const seen: string[] = [];
    for await (const line of lines) {
      seen.push(line);
      if (line.includes("[evaluate]")) child.kill("SIGINT");
    }
    assert.deepEqual(await exited, [130, null], seen.join("\n"));
    assert.equal(seen.at(-1), "The batch was cancelled");
    if (process.platform === "linux") assert.deepEqual(await listProcesses(folder), []);
  },
);

test(
  "the demo shows which jobs failed, and exits with an error",
  { timeout: 120_000 },
  async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "targets-"));
    t.after(async () => rm(folder, { recursive: true }));
    const file = path.join(folder, "targets.yaml");
    const target = {
      description: "",
      executionProvider: "cpu",
      operators: "standard",
      recipe: { exclude: ["*"] },
    };
    const targets = ["cpu", "cpu-int8"].map((name) => ({ name, ...target }));
    await writeFile(file, JSON.stringify({ targets }));
    const { exited, lines } = await startDemo(t, { MOS_TARGETS_FILE: file });
    const seen = (await Array.fromAsync(lines)).join("\n");
    assert.deepEqual(await exited, [1, null], seen);
    assert.match(seen, /^voice-activity +cpu-int8 .* Failed: nothing_to_quantize$/m);
  },
);
