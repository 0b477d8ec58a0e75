import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";

const at = "2026-03-01T00:00:00.000Z";

/** Records of one job with its first local attempt. */
export async function recordsWithWorker() {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash-1");
  return { records, id };
}

export function logEvent(seq: number, text: string): WorkerEvent {
  return { seq, at, type: "log", stream: "stdout", text };
}
