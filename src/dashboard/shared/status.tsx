import { Icon, type IconName } from "./button.tsx";
import { judgeRatio } from "./figures.ts";
import type { Verdict } from "./verdict.ts";
import { formatRatio, type LatencyRatio } from "../../contract/jobs/latency.ts";
import { formatTimes } from "../../contract/text/format-figure.ts";
import { type BatchStatus, isTerminal, type JobStatus } from "../../contract/jobs/status.ts";
import type { Suite } from "../../contract/batches/suite.ts";

interface StatusLook {
  readonly icon: IconName;
  /** `calm`: nobody has to do anything. */
  readonly tone: "wait" | "work" | "calm" | "bad" | "off";
}

const looks: Readonly<Record<JobStatus | BatchStatus, StatusLook>> = {
  Pending: { icon: "wait", tone: "wait" },
  Sharding: { icon: "work", tone: "work" },
  Optimizing: { icon: "work", tone: "work" },
  Running: { icon: "work", tone: "work" },
  Completed: { icon: "good", tone: "calm" },
  Failed: { icon: "bad", tone: "bad" },
  Cancelling: { icon: "work", tone: "off" },
  Cancelled: { icon: "stop", tone: "off" },
};

/** A status: a shape and a word, the colour comes last. */
export function Status({ status }: { readonly status: JobStatus | BatchStatus }) {
  const { icon, tone } = looks[status];
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      <span>{status}</span>
    </span>
  );
}

interface ToneSignProps {
  readonly tone: Verdict["tone"];
  readonly icon: IconName;
  readonly words: string;
}

export function ToneSign({ tone, icon, words }: ToneSignProps) {
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      <span>{words}</span>
    </span>
  );
}

export function ProgressBar({ fraction, label }: { readonly fraction: number; label: string }) {
  const percent = Math.floor(100 * fraction);
  return (
    <span
      class="bar work"
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}

/** In a table of batches: whether jobs fail gates. */
export function GatesCell({
  gatesFailed,
  status,
}: Pick<Suite["newest"], "gatesFailed" | "status">) {
  if (gatesFailed === 0) {
    return <td class="soft">{isTerminal(status) ? "none failed" : "none failed yet"}</td>;
  }
  return <td class="bad">{gatesFailed} failed</td>;
}

/** Ratios at the ends of the small scale; the original, 1, is in its middle. */
const [least, most] = [0.4, 1.6];

/** A ratio with its interval on a small scale, whose mark is the original. */
export function LatencyMark({ latency }: { readonly latency: LatencyRatio }) {
  const { ratio, ratioLow = ratio, ratioHigh = ratio } = latency;
  const judgement = judgeRatio(latency);
  const [low, high] = [toPercent(ratioLow), toPercent(ratioHigh)];
  return (
    <span class={`latency ${judgement}`} title={`${formatRatio(latency)}, ${judgement}`}>
      <span class="latency-scale" aria-hidden="true">
        <span class="latency-original" />
        <span class="latency-range" style={{ left: `${low}%`, width: `${high - low}%` }} />
        <span class="latency-dot" style={{ left: `${toPercent(ratio)}%` }} />
      </span>
      {formatTimes(ratio)}
    </span>
  );
}

function toPercent(ratio: number): number {
  return (100 * (Math.min(most, Math.max(least, ratio)) - least)) / (most - least);
}
