import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { ControlPlane } from "../../support/cluster/control-plane.ts";
import { isMarkedLog } from "../../support/is-marked-log.ts";
import { startInstallation } from "./installation.ts";
import { printedLines } from "./printed-lines.ts";
import { startPrintingWorker } from "./printing-worker.ts";

const count = 40;
const linesBeforeStop = 20;
/** Too short for some workers to deliver their last lines before the service is back. */
const graceSeconds = 3;

/** Evicts the pods of many jobs while the service is replaced. */
export async function testDrain(t: TestContext, controlPlane: ControlPlane): Promise<void> {
  // Pods that wait since earlier tests would be scheduled to this node, which runs only its namespace's.
  await controlPlane.kubectl(["delete", "jobs", "--all", "--all-namespaces"]);
  const { service, node } = await startInstallation(t, controlPlane, {
    startProgram: startPrintingWorker,
  });
  const body = { model: { source: "https://models.example/model.onnx" }, target: "cpu" };
  const submitted = Array.from({ length: count }, () =>
    service.client.call("startCompression", { body }),
  );
  const ids = (await Promise.all(submitted)).map(({ id }) => id);
  for (const id of ids) {
    let lines = 0;
    for await (const _ of service.client.followLogs(id)) if (++lines === linesBeforeStop) break;
  }

  const flags = ["--delete-emptydir-data", `--grace-period=${graceSeconds}`];
  const [{ client }] = await Promise.all([
    service.stop("SIGTERM").then(() => service.again()),
    controlPlane.kubectl(["drain", node.name, ...flags, "--timeout=240s"]),
  ]);
  await controlPlane.kubectl(["uncordon", node.name]);

  const all: string[] = [];
  const missing: string[] = [];
  for (const id of ids) {
    const texts = await Array.fromAsync(client.followLogs(id), ({ text }) => text);
    const printed = node.jobOutputs(id).map(printedLines);
    assert.deepEqual(texts.slice(0, linesBeforeStop), printed[0]?.slice(0, linesBeforeStop), id);
    assert.ok(isMarkedLog(texts, printed), `${id}:\n${texts.join("\n")}`);
    all.push(...printed.flat());
    missing.push(...printed.flat().filter((text) => !texts.includes(text)));
  }
  const { jobs } = await client.call("listJobs", { query: { limit: String(count) } });
  assert.deepEqual(
    jobs.map(({ status }) => status),
    ids.map(() => "Completed"),
  );
  t.diagnostic(`of ${all.length} lines ${missing.length} are marked as missing`);
  await controlPlane.kubectl(["delete", "cpj", "--all", "-n", service.namespace, "--timeout=240s"]);
}
