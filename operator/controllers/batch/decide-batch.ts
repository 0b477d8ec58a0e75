import { type BatchResourceStatus, conditionTypes, jobMarks } from "../../../src/contract/custom-resources.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/kubernetes/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { BatchWorld } from "./batch-world.ts";
import { markJobs, type MarkedJobs } from "./mark-jobs.ts";
import { nextBatchStatus } from "./next-batch-status.ts";

export interface BatchDecision {
  /** Numbers of the jobs to make. */
  readonly create: readonly number[];
  /** What to change in CompressionJobs that are there. */
  readonly steer: readonly Steering[];
  readonly status: BatchResourceStatus;
}

export interface Steering {
  readonly child: Stored<CompressionJobObject>;
  readonly spec: { readonly cancel: true } | { readonly suspend: boolean };
}

/** What is to be done about a batch, from what there is alone: whoever decides next goes on where this one stopped. */
export function decideBatch(world: BatchWorld): BatchDecision {
  const marked = markJobs(world);
  const steer = marked.stopping ? cancelling(world) : suspending(world);
  const suspended = world.batch.spec.suspend || (wasSuspended(world.batch) && steer.length > 0);
  return { create: toMake(world, marked), steer, status: nextBatchStatus(world, marked, suspended) };
}

/** As many of the next jobs as may be unfinished beside those that are. */
function toMake({ batch, taken }: BatchWorld, { marks, stopping }: MarkedJobs): number[] {
  const { spec, status } = batch;
  if (stopping || spec.suspend || (status !== undefined && isTerminal(status.status))) return [];
  const room = spec.parallelism - marks.filter((mark) => mark === jobMarks.made).length;
  if (room <= 0) return [];
  return marks.flatMap((mark, index) => (mark === jobMarks.notMade && !taken.has(index) ? index : [])).slice(0, room);
}

function cancelling(world: BatchWorld): Steering[] {
  return unfinished(world)
    .filter(({ spec }) => !spec.cancel)
    .map((child) => ({ child, spec: { cancel: true } }));
}

/** A job that somebody suspended on its own stays so unless the batch was suspended, and then resumed. */
function suspending(world: BatchWorld): Steering[] {
  const { suspend } = world.batch.spec;
  if (!suspend && !wasSuspended(world.batch)) return [];
  return unfinished(world)
    .filter(({ spec }) => spec.suspend !== suspend)
    .map((child) => ({ child, spec: { suspend } }));
}

function wasSuspended({ status }: BatchObject): boolean {
  return (
    status?.conditions?.some(({ type, status: is }) => type === conditionTypes.suspended && is === "True") ?? false
  );
}

function unfinished({ children }: BatchWorld): Stored<CompressionJobObject>[] {
  return [...children.values()].filter(({ status }) => status === undefined || !isTerminal(status.status));
}
