import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { encodeHostile } from "../engine/fuzz/hostile-models.ts";
import { until } from "../support/until.ts";
import { parsePodMessage, startPodService } from "./pod-service.ts";
import { waitForPodEnd } from "./pod-steps.ts";

test("a pod ends on SIGTERM while its job's thread plans a large model", async (t) => {
  const service = await startPodService(t);
  const file = path.join(service.folder, "large.onnx");
  await writeFile(file, encodeHostile("many small graphs", 90_000));
  const sha256 = await service.upload(file);
  const id = await service.createJob({ source: `upload:sha256:${sha256}`, name: "net" });
  const pod = await service.startPod(id);
  let printed = "";
  pod.process.stdout?.on("data", (chunk) => (printed += String(chunk)));
  await until("the pod has the model", () => printed.includes("SHA-256"));
  pod.process.kill("SIGTERM");
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.cancelled);
  const { outcome, lastSeq } = await parsePodMessage(pod);
  assert.deepEqual({ outcome, lastSeq }, { outcome: "Cancelled", lastSeq: events.length });
  const outcomes = events.flatMap((event) => (event.type === "result" ? [event.outcome] : []));
  assert(!outcomes.includes("Completed"));
});
