import type { Batch } from "../../contract/batches/batch.ts";
import { describeGate } from "../../contract/jobs/describe-gate.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal, type JobStatus } from "../../contract/jobs/status.ts";
import { formatDecibels, formatTimes } from "../../contract/text/format-figure.ts";
import { type ComparedFigure, compareFigures, type FigureChange } from "../shared/figures.ts";
import { formatMs } from "../shared/format.ts";
import { lacksBaseline, listMissed } from "../shared/gate-words.ts";

export type BatchJob = Batch["jobs"][number];

/** What the matrix shows of each job, by its word in the address. */
export const matrixViews = {
  summary: "Summary",
  size: "Size",
  accuracy: "Accuracy",
  latency: "Latency",
  gates: "Gates",
} as const;
export type MatrixView = keyof typeof matrixViews;

/** Good news is quiet; what needs a person has a colour, a shape and, where it fails, an edge. */
export const cellStyles = {
  bad: { icon: "bad", words: "Failed, or fails a gate" },
  warn: { icon: "warn", words: "A gate warns" },
  worse: { icon: "worse", words: "Worse than the baseline" },
  better: { icon: "better", words: "Better than the baseline" },
  same: { icon: "same", words: "Same as the baseline, within noise" },
  passed: { icon: "check", words: "Completed, not compared" },
  work: { icon: "work", words: "Running" },
  wait: { icon: "wait", words: "Waiting" },
  off: { icon: "stop", words: "Cancelled" },
} as const;
export type CellStyle = keyof typeof cellStyles;

interface CellDescription {
  readonly look: CellStyle;
  readonly title: string;
  readonly detail: string;
}

const statusStyles: Readonly<Record<Exclude<JobStatus, "Completed">, CellStyle>> = {
  Pending: "wait",
  Sharding: "work",
  Optimizing: "work",
  Failed: "bad",
  Cancelling: "off",
  Cancelled: "off",
};

export function describeCell(
  { status, gatesFailed }: BatchJob,
  summary: JobSummary | undefined,
  view: MatrixView,
): CellDescription {
  if (status !== "Completed") {
    return { look: statusStyles[status], title: status, detail: describeProgress(status, summary) };
  }
  if (summary === undefined) {
    return { look: gatesFailed ? "bad" : "passed", title: status, detail: "" };
  }
  if (view === "summary") return lookAtChanges(summary);
  return view === "gates" ? lookAtGates(summary) : lookAtFigure(summary, view);
}

function describeProgress(status: JobStatus, summary: JobSummary | undefined): string {
  if (isTerminal(status)) return summary?.statusMessage ?? "";
  if (status === "Pending") return summary?.statusReason ?? "";
  const { fraction = 0, message = "" } = summary?.progress ?? {};
  return `${Math.floor(100 * fraction)} % ${message}`;
}

function lookAtChanges(summary: JobSummary): CellDescription {
  const { resultBytes } = summary.figures;
  const title = resultBytes === null ? "Completed" : formatBytes(resultBytes);
  const gate = judgeGates(summary);
  const missed = listMissedGates(summary);
  if (gate !== "passed") return { look: gate, title, detail: missed.join(" · ") };
  const changes = compareFigures(summary);
  if (changes.length === 0) return { look: "passed", title, detail: describeFigures(summary) };
  const look = judgeChanges(changes);
  const shown = changes.filter(({ judgement }) => judgement !== "same");
  const named = look === "same" ? changes : shown;
  return { look, title, detail: named.map(describeChange).join(" · ") };
}

function judgeChanges(changes: readonly FigureChange[]): CellStyle {
  const judgements = changes.map(({ judgement }) => judgement);
  return (["worse", "better"] as const).find((each) => judgements.includes(each)) ?? "same";
}

function judgeGates(summary: JobSummary): "bad" | "warn" | "passed" {
  if (summary.gatesFailed) return "bad";
  return listMissed(summary).length === 0 ? "passed" : "warn";
}

/** Gates that failed; those that warn where none did. */
export function listMissedGates(summary: JobSummary): string[] {
  const missed = listMissed(summary);
  const failed = missed.filter(({ level }) => level === "fail");
  return (failed.length === 0 ? missed : failed).map((gate) =>
    describeGate(gate, { against: summary.baseline?.branch }),
  );
}

/** A change in a few words, such as `latency ▼ 18.0 %`. */
export function describeChange({ figure, change }: FigureChange): string {
  return `${figure} ${change}`;
}

function lookAtGates(summary: JobSummary): CellDescription {
  const { gates } = summary;
  if (gates.length === 0) return { look: "passed", title: "No gates", detail: "" };
  const passed = gates.filter((gate) => gate.passed).length;
  const open = gates.filter((gate) => lacksBaseline(gate, summary.baseline !== null)).length;
  const title = `${passed} of ${gates.length - open} passed`;
  return { look: judgeGates(summary), title, detail: listMissedGates(summary).join(" · ") };
}

const formats: Readonly<Record<ComparedFigure, (job: JobSummary) => string | null>> = {
  size: ({ figures: { resultBytes } }) => (resultBytes === null ? null : formatBytes(resultBytes)),
  accuracy: ({ figures: { sqnrDb } }) => (sqnrDb === null ? null : formatDecibels(sqnrDb)),
  latency: ({ figures: { latencyMs } }) => (latencyMs === null ? null : formatMs(latencyMs)),
};

function lookAtFigure(summary: JobSummary, figure: ComparedFigure): CellDescription {
  const title = formats[figure](summary) ?? "Not measured";
  const found = compareFigures(summary).find((each) => each.figure === figure);
  if (found === undefined) return { look: "passed", title, detail: describeFigures(summary) };
  return { look: found.judgement, title, detail: `${found.change} from ${found.before}` };
}

/** Figures in relation to the original's, such as `27 % · 15.6 dB · ×1.20`. */
function describeFigures({ figures: { sizeRatio, sqnrDb, latencyRatio } }: JobSummary): string {
  const parts = [
    sizeRatio && `${Math.round(100 * sizeRatio)} %`,
    sqnrDb && formatDecibels(sqnrDb),
    latencyRatio && formatTimes(latencyRatio),
  ];
  return parts.filter(Boolean).join(" · ");
}
