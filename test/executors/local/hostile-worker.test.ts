import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { project, startService } from "./local-service.ts";

const workerPath = fileURLToPath(new URL("hostile-worker/main.ts", import.meta.url));
const options = { skip: canContain() ? false : "the system allows no namespaces" };

function canContain(): boolean {
  try {
    execFileSync("unshare", ["--user", "--map-root-user", "--mount", "--pid", "--fork", "true"]);
    return true;
  } catch {
    return false;
  }
}

test(
  "a hostile worker reads no foreign byte, and leaves service and store as they were",
  options,
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "hostile-"));
    const secret = `${folder}.key`;
    await writeFile(secret, "the service's key");
    t.after(() => rm(secret));
    const service = await startService(t, {
      workerPath,
      folder,
      contained: true,
      secretFiles: [secret, `${folder}.missing`],
    });
    const { blobs, records } = service;
    const { sha256: foreign } = await blobs.write(Readable.from([Buffer.from("a foreign model")]));
    const upload = await blobs.write(Readable.from([Buffer.from("its own model")]));
    await records.projectBlobs.add({ project, origin: null }, upload);
    const { sha256: own } = upload;
    await mkdir(join(folder, "models"));
    await writeFile(join(folder, "models/allowed.onnx"), "an allowed model");
    const executor = await service.start();
    const [other = ""] = await service.create("waits");
    const model = { source: `upload:sha256:${own}`, name: `${process.pid}.${foreign}.${other}` };
    const id = await service.createJob({ model });
    executor.submit(project, [id]);
    const { job, lines } = await service.ended(id);
    assert.equal(job.status, "Failed");
    assert.deepEqual(
      lines.filter((line) => line.startsWith("did ")),
      ["did read its own model", "did read an allowed model", "did read 0 of /dev/null"],
    );
    assert.ok(lines.filter((line) => line.startsWith("could not ")).length >= 11, lines.join("\n"));
    const kept = (await Array.fromAsync(blobs.read(own))).join("");
    assert.equal(kept, "its own model");
    assert.equal((await records.jobs.find(project, other))?.status, "Pending");
    const [next = ""] = await service.create("completes");
    assert.equal((await records.jobs.find(project, next))?.status, "Pending");
  },
);

test("the real worker does its job in containment, with an uploaded model", options, async (t) => {
  const { client } = await startRunningService(t);
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const recipe = { evaluation: { latencyBudgetSeconds: 1, samples: 2 } };
  const { id } = await client.call("startCompression", {
    body: { model: { source }, target: "cpu", recipe },
  });
  for await (const _ of client.followLogs(id));
  const job = await client.call("getJob", { params: { id } });
  assert.deepEqual([job.status, job.error], ["Completed", null]);
  assert.ok(job.artifacts.some(({ name }) => name === "model.onnx"));
});
