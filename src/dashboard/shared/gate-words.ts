import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { describeGate, formatLimited } from "../../contract/jobs/describe-gate.ts";
import { type GateName, gateTable } from "../../contract/jobs/gate-table.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels } from "../../contract/text/format-figure.ts";
import { formatMs } from "./format.ts";

export type GateResult = JobSummary["gates"][number];

interface GateWords {
  /** The label of its field in a form. */
  readonly label: string;
  /** What a number in the field means. */
  readonly hint: string;
  /** The baseline's figure, where the gate compares with it. */
  readonly formatBaseline?: (value: number) => string;
}

/** The gates in words. */
export const gateWords: Readonly<Record<GateName, GateWords>> = {
  maxSizeRatio: {
    label: "Maximum size, relative to the original",
    hint: "0.5 allows half of the original's bytes.",
  },
  minSqnrDb: {
    label: "Minimum SQNR, dB",
    hint: "How far the outputs are above their error; 20 dB is an error of 10 %.",
  },
  minCosine: {
    label: "Minimum cosine",
    hint: "From -1 to 1; at 1 the outputs point the same way.",
  },
  minTop1: {
    label: "Minimum top-1 agreement",
    hint: "From 0 to 1: the share of samples with the original's top class, or next token.",
  },
  maxPerplexityRatio: {
    label: "Maximum perplexity, relative to the original",
    hint: "For language models; 1.1 allows 10 % more.",
  },
  maxKlDivergence: {
    label: "Maximum KL divergence, nats",
    hint: "For language models; 0 allows no other prediction of the next token.",
  },
  maxLatencyRatio: {
    label: "Maximum latency, relative to the original",
    hint: "1.1 allows 10 % more time.",
  },
  maxSizeRegression: {
    label: "Maximum growth of the size",
    hint: "0.05 allows 5 % more bytes than the baseline's result.",
    formatBaseline: formatBytes,
  },
  maxSqnrDropDb: {
    label: "Maximum loss of SQNR, dB",
    hint: "Against the baseline's result.",
    formatBaseline: formatDecibels,
  },
  maxLatencyRegression: {
    label: "Maximum growth of the latency",
    hint: "0.05 allows 5 % more time than the baseline's result.",
    formatBaseline: formatMs,
  },
};

/** What a gate found, as a sentence: `Lost 15.7 dB against main; 3 dB are allowed`. */
export function sayGate(result: GateResult, against: string | undefined): string {
  const words = describeGate(result, { against });
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function describeActual(result: GateResult): string {
  const { actual, note } = result;
  if (actual !== null) return formatLimited(result, actual);
  return note === undefined ? "not measured" : "not comparable";
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
