import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { UnnumberedEvent, WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
export const resource = { namespace: "models", name: "detector", uid: null };

export function numbered(first: number, ...events: readonly UnnumberedEvent[]): WorkerEvent[] {
  return events.map((event, i) => ({ ...event, seq: first + i, at }));
}

export function line(text: string): UnnumberedEvent {
  return { type: "log", stream: "stdout", text };
}

export const completed: UnnumberedEvent = { type: "result", outcome: "Completed" };

/** Records of one job that has a resource and that pods share. */
export async function sharedJob({ parallelism = 2 } = {}) {
  const records = await openTestRecords();
  const recipe = { ...defaultRecipe, parallelism };
  const { id } = await records.jobs.create(project, makeNewJob({ recipe, resource }));
  return { records, id };
}
