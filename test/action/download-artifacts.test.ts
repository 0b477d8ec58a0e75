import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { downloadArtifacts } from "../../src/action/download-artifacts.ts";
import { makeRow } from "../report/make-report.ts";
import { makeCompletedJob } from "../support/make-job.ts";

test("jobs whose models and targets make one name have folders of their own", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "downloads-"));
  t.after(() => rm(folder, { recursive: true }));
  const { model } = makeCompletedJob();
  const artifact = { name: "model.onnx", kind: "model", bytes: 1, sha256: "0".repeat(64) } as const;
  const rows = [
    ["net", "cpu-vnni"],
    ["net-cpu", "vnni"],
    ["NET", "cpu-vnni"],
    ["net", "cpu"],
  ].map(([name = "", target = ""], i) =>
    makeRow({ id: `job-${i}`, model: { ...model, name }, target, artifacts: [artifact] }),
  );
  const client = {
    downloadArtifact: (id: string, _name: string, { file }: { file: string }) =>
      writeFile(file, id),
  };
  await downloadArtifacts(client, rows, { folder, signal: t.signal });
  const found = await Promise.all(
    (await readdir(folder)).map(async (name) => [
      name,
      await readFile(path.join(folder, name, "model.onnx"), "utf8"),
    ]),
  );
  assert.deepEqual(Object.fromEntries(found), {
    "net-cpu-vnni": "job-0",
    "net-cpu-vnni-2": "job-1",
    "NET-cpu-vnni-3": "job-2",
    "net-cpu": "job-3",
  });
});
