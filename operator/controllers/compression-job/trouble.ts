import type { ChildJob } from "./child-job.ts";
import type { Warning } from "./warning.ts";
import { begunAt, isBeingPrepared, type WorkerPod } from "./worker-pod.ts";

/** A pod that is prepared for so long meets with difficulties. */
const preparedMs = 30_000;
/** The cluster repeats a warning about what lasts at least every five minutes. */
const repeatedMs = 360_000;

/** Why a step makes no headway, in the cluster's words, and when that is worth telling. Times are milliseconds since 1970. */
export interface Trouble {
  readonly message: string;
  readonly from: number;
  readonly until: number;
}

/** What the cluster warns of about a Job that has no pods, or a pod that is prepared for long. */
export function findTrouble(
  job: ChildJob,
  pods: readonly WorkerPod[],
  warningsOf: (uid: string) => readonly Warning[],
): Trouble | undefined {
  if (job.end !== undefined || job.deleting || job.suspended) return undefined;
  if (pods.length === 0) return troubleOf(warningsOf(job.uid), job.createdAt);
  const pod = pods.find(isBeingPrepared);
  return pod && troubleOf(warningsOf(pod.uid), begunAt(pod) + preparedMs);
}

function troubleOf(warnings: readonly Warning[], from: number): Trouble | undefined {
  const [latest] = warnings.toSorted((one, other) => other.at - one.at);
  if (latest === undefined) return undefined;
  return { message: latest.message.replace(/^Error creating: /, ""), from, until: latest.at + repeatedMs };
}

/** Empty where there is nothing to tell now. */
export function currentTrouble({
  trouble,
  now,
}: {
  readonly trouble: Trouble | undefined;
  readonly now: number;
}): string {
  return trouble !== undefined && trouble.from <= now && now < trouble.until ? trouble.message : "";
}
