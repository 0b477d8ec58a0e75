import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { type GateName, gateTable } from "../../contract/jobs/gate-table.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels, formatPercent } from "../../report/format-figure.ts";
import { formatMs } from "./format.ts";

export type GateResult = JobSummary["gates"][number];

interface GateWords {
  /** What it limits. */
  readonly title: string;
  /** The label of its field in a form. */
  readonly label: string;
  /** What a number in the field means. */
  readonly hint: string;
  /** The figure, and the limit, for people. */
  readonly format: (value: number) => string;
  /** The baseline's figure, where the gate compares with it. */
  readonly formatBaseline?: (value: number) => string;
}

/** The gates in words. */
export const gateWords: Readonly<Record<GateName, GateWords>> = {
  maxSizeRatio: {
    title: "Size of the original",
    label: "Maximum size, relative to the original",
    hint: "0.5 allows half of the original's bytes.",
    format: (value) => `${Number((100 * value).toFixed(1))} %`,
  },
  minSqnrDb: {
    title: "Accuracy (SQNR)",
    label: "Minimum SQNR, dB",
    hint: "How far the outputs are above their error; 20 dB is an error of 10 %.",
    format: formatDecibels,
  },
  minCosine: {
    title: "Cosine similarity",
    label: "Minimum cosine",
    hint: "From -1 to 1; at 1 the outputs point the same way.",
    format: (value) => String(Number(value.toPrecision(4))),
  },
  minTop1: {
    title: "Same top class",
    label: "Minimum top-1 agreement",
    hint: "From 0 to 1: the share of samples with the original's top class.",
    format: formatPercent,
  },
  maxLatencyRatio: {
    title: "Latency of the original",
    label: "Maximum latency, relative to the original",
    hint: "1.1 allows 10 % more time.",
    format: (value) => `×${Number(value.toFixed(2))}`,
  },
  maxSizeRegression: {
    title: "Growth of the size",
    label: "Maximum growth of the size",
    hint: "0.05 allows 5 % more bytes than the baseline's result.",
    format: formatPercent,
    formatBaseline: formatBytes,
  },
  maxSqnrDropDb: {
    title: "Loss of accuracy",
    label: "Maximum loss of SQNR, dB",
    hint: "Against the baseline's result.",
    format: formatDecibels,
    formatBaseline: formatDecibels,
  },
  maxLatencyRegression: {
    title: "Growth of the latency",
    label: "Maximum growth of the latency",
    hint: "0.05 allows 5 % more time than the baseline's result.",
    format: formatPercent,
    formatBaseline: formatMs,
  },
};

/** A gate in words: `Accuracy (SQNR) 7.4 dB, at least 16.0 dB wanted`. */
export function describeGateWords(result: GateResult): string {
  const { title } = gateWords[result.gate];
  return `${title} ${describeActual(result)}, ${describeLimit(result)} wanted`;
}

export function describeActual({ gate, actual, note }: GateResult): string {
  if (actual !== null) return gateWords[gate].format(actual);
  return note === undefined ? "not measured" : "not comparable";
}

export function describeLimit({ gate, limit }: Pick<GateResult, "gate" | "limit">): string {
  const least = gateTable[gate].bound === "max" ? "at most" : "at least";
  return `${least} ${gateWords[gate].format(limit)}`;
}

/** Whether a gate only says that there is nothing to compare with yet, as in a suite's first run. */
export function lacksBaseline({ gate, passed, actual, level }: GateResult, hasBaseline: boolean) {
  const isCompared = "change" in gateTable[gate];
  return isCompared && !hasBaseline && !passed && actual === null && level === "warn";
}

/** Gates that somebody should know of: those that miss their limit, not those without a baseline. */
export function listMissed({
  gates,
  baseline,
}: {
  readonly gates: readonly GateResult[];
  readonly baseline: unknown;
}): GateResult[] {
  return gates.filter((gate) => !gate.passed && !lacksBaseline(gate, baseline !== null));
}
