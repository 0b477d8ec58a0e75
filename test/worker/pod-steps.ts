import assert from "node:assert/strict";
import type { WorkerStep } from "../../src/contract/worker-protocol/messages.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { eventsIn, type Pod, type PodService } from "./pod-service.ts";

/** @param expectedErrors of the pod, besides its events */
export async function waitForPodEnd(pod: Pod, expectedErrors = /^$/) {
  const { code, output, errors } = await pod.ended;
  assert.match(errors, expectedErrors);
  const events = eventsIn(output);
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, i) => i + 1),
  );
  return { code, events };
}

export async function listJobArtifacts(
  service: PodService,
  jobId: string,
): Promise<[name: string, sha256: string][]> {
  return (await service.find(jobId)).artifacts.map(({ name, sha256 }) => [name, sha256]);
}

/** Runs every step of a job that pods share. */
export async function runSteps(service: PodService, id: string, count: number): Promise<void> {
  const run = async (step: WorkerStep, index: number) =>
    waitForPodEnd(await service.startPod(id, { step, index }));
  assert.equal((await run("shard", 0)).code, workerExit.completed);
  const shares = await Promise.all(
    Array.from({ length: count }, async (_, index) => run("optimize", index)),
  );
  assert.deepEqual(new Set(shares.map(({ code }) => code)), new Set([workerExit.completed]));
  assert.equal((await run("assemble", 0)).code, workerExit.completed);
}
