import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { openContainment } from "../../../src/executors/local/containment.ts";
import { namespacesMissing } from "./namespaces-missing.ts";

const run = promisify(execFile);
const options = { skip: namespacesMissing };

/** Runs a shell's script in containment. @returns its lines */
async function runContained(t: TestContext, script: string, devices: string[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "contained-"));
  t.after(async () => rm(folder, { recursive: true }));
  const directory = join(folder, "work/job");
  await mkdir(directory, { recursive: true });
  const contain = await openContainment(
    { dataDirectory: folder, allowedRoots: [], secretFiles: [] },
    { workDirectory: join(folder, "work"), log: (message) => assert.fail(message) },
  );
  assert.ok(contain);
  const shell = { command: "/bin/sh", args: ["-c", script], directory, inputs: [], devices };
  const { command, args } = contain(shell);
  const { stdout } = await run(command, args);
  return stdout.trim().split("\n");
}

/** Names what of `/proc` can be written that is no process's own, then the shell itself. */
const writeToProc = `
for file in /proc/[!0-9]* /proc/sys/kernel/*; do
  if [ ! -L "$file" ] && [ -w "$file" ]; then echo "$file"; fi
done
{ echo named > /proc/$$/comm; } 2>/dev/null
read -r name < /proc/$$/comm
echo "$name"`;

test("a device is there only for a command that it is given to", options, async (t) => {
  const seesTerminal = "[ -c /dev/tty ] && echo yes || echo no";
  assert.deepEqual(await runContained(t, seesTerminal, []), ["no"]);
  assert.deepEqual(await runContained(t, seesTerminal, ["/dev/tty"]), ["yes"]);
});

test(
  "a command with devices may name its threads, and writes nothing else to /proc",
  options,
  async (t) => {
    assert.deepEqual(await runContained(t, writeToProc, []), ["sh"]);
    assert.deepEqual(await runContained(t, writeToProc, ["/dev/tty"]), ["named"]);
  },
);
