import { type GateResult, listMissed } from "./gate-words.ts";
import type { BatchSummary } from "../../contract/batches/batch.ts";
import type { JobStatus } from "../../contract/jobs/status.ts";
import { formatCount } from "../../contract/text/format-count.ts";

/** How a job ended, its gates included: a result that fails one is no good news. */
export interface Verdict {
  readonly words: string;
  readonly icon: "wait" | "work" | "good" | "warn" | "bad" | "stop";
  readonly tone: "wait" | "work" | "calm" | "warn" | "bad" | "off";
}

interface JudgedJob {
  readonly status: JobStatus;
  readonly gates: GateResult[];
  readonly baseline: unknown;
  readonly dryRun: boolean;
}

const unfinished: Readonly<Record<Exclude<JobStatus, "Completed">, Omit<Verdict, "words">>> = {
  Pending: { icon: "wait", tone: "wait" },
  Sharding: { icon: "work", tone: "work" },
  Optimizing: { icon: "work", tone: "work" },
  Failed: { icon: "bad", tone: "bad" },
  Cancelling: { icon: "work", tone: "off" },
  Cancelled: { icon: "stop", tone: "off" },
};

/** A job's status in words: `Completed, fails 1 gate`. */
export function judgeJob(job: JudgedJob): Verdict {
  if (job.status !== "Completed") return { ...unfinished[job.status], words: job.status };
  const missed = listMissed(job);
  const failed = missed.filter(({ level }) => level === "fail").length;
  if (failed > 0) {
    return { tone: "bad", icon: "bad", words: `Completed, fails ${countGates(failed)}` };
  }
  if (missed.length > 0) {
    const warns = missed.length === 1 ? "warns" : "warn";
    return {
      tone: "warn",
      icon: "warn",
      words: `Completed, ${countGates(missed.length)} ${warns}`,
    };
  }
  const passed = job.gates.filter((gate) => gate.passed).length;
  if (job.dryRun) return { tone: "calm", icon: "good", words: "Completed, a dry run" };
  const words = passed === 0 ? "Completed" : `Completed, passes ${countGates(passed)}`;
  return { tone: "calm", icon: "good", words };
}

/** How a batch ended, in words: `Completed: 2 jobs fail a gate`. */
export function sayBatchEnd({
  status,
  counts,
  gatesFailed,
}: Pick<BatchSummary, "status" | "counts" | "gatesFailed">): string {
  const failed = counts.Failed > 0 ? [`${formatCount(counts.Failed, "job")} failed`] : [];
  const missed =
    gatesFailed > 0 ? [`${formatCount(gatesFailed, "job fails", "jobs fail")} a gate`] : [];
  const found = [...failed, ...missed].join(", ");
  return found === "" ? status : `${status}: ${found}`;
}

/** Whether a job has a result that somebody may use: no gate of the level `fail` is missed. */
export function isShippable({ status, dryRun, gates }: JudgedJob): boolean {
  const isPassed = gates.every((gate) => gate.passed || gate.level === "warn");
  return status === "Completed" && !dryRun && isPassed;
}

function countGates(count: number): string {
  return formatCount(count, "gate");
}
