import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withLock } from "./with-lock.ts";

test("withLock() waits for another process' work, and no longer than that process lives", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "mos-lock-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "lock");
  const program = `
    const { withLock } = await import(${JSON.stringify(new URL("with-lock.ts", import.meta.url).href)});
    await withLock(${JSON.stringify(path)}, async () => {
      process.send("locked");
      await new Promise(() => setInterval(() => {}, 60_000));
    });
  `;
  const other = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(other, "message");

  let isKilled = false;
  const ours = withLock(path, async () => assert.ok(isKilled));
  isKilled = other.kill("SIGKILL");
  await ours;
});
