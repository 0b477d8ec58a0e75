import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { realModel } from "../support/real-models.ts";
import { blockedJobThread } from "../support/preloaded-modules.ts";
import { until } from "../support/until.ts";
import { parsePodMessage, startPodService } from "./pod-service.ts";
import { waitForPodEnd } from "./pod-steps.ts";

test("a pod ends on SIGTERM while its job's thread is busy, and says why", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "busy-"));
  t.after(() => rm(folder, { recursive: true }));
  const begin = path.join(folder, "begin");
  const busy = path.join(folder, "busy");
  const service = await startPodService(t, { nodeOptions: blockedJobThread({ begin, busy }) });
  const sha256 = await service.upload(realModel("ocr-orientation"));
  const recipe = { dequantize: "run", evaluation: { latencyBudgetSeconds: 3600 } } as const;
  const id = await service.createJob({ source: `upload:sha256:${sha256}`, name: "net" }, recipe);
  const pod = await service.startPod(id);
  await service.until(id, (_, lines) => lines.some((line) => line.includes("Timing")));
  await writeFile(begin, "");
  await until("the thread is busy", () => existsSync(busy));
  pod.process.kill("SIGTERM");
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.cancelled);
  const { outcome, lastSeq } = await parsePodMessage(pod);
  assert.deepEqual({ outcome, lastSeq }, { outcome: "Cancelled", lastSeq: events.length });
  assert.partialDeepStrictEqual(events.slice(-2), [
    { type: "log", stream: "stderr", text: "Stopped: the worker received SIGTERM" },
    { type: "result", outcome: "Cancelled" },
  ]);
});
