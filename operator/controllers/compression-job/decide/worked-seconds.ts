import type { WorkerPod } from "../observe/worker-pod.ts";

/** How long at least one of the pods ran, in seconds; the time in between does not count. */
export function workedSeconds(pods: readonly WorkerPod[], now: number): number {
  let ms = 0;
  let countedUntil = -Infinity;
  for (const [start, end] of pods.flatMap((pod) => runningTime(pod, now)).toSorted(byStart)) {
    ms += Math.max(0, end - Math.max(start, countedUntil));
    countedUntil = Math.max(countedUntil, end);
  }
  return Math.floor(ms / 1000);
}

type Interval = readonly [start: number, end: number];

function byStart([one]: Interval, [other]: Interval): number {
  return one - other;
}

function runningTime({ startedAt, phase, termination }: WorkerPod, now: number): Interval[] {
  if (startedAt === undefined) return [];
  if (termination !== undefined) return [[startedAt, termination.at]];
  return phase === "Running" ? [[startedAt, now]] : [];
}
