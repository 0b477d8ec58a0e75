import type { ComponentChildren } from "preact";
import type { ReportedWeight } from "./weight-table.tsx";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { mayDo } from "../session/session.ts";
import { Icon } from "../shared/button.tsx";
import { graphHash } from "../shared/addresses.ts";
import { compareFigures, sqnrThresholdsDb } from "../shared/figures.ts";
import { describeCommit } from "../shared/format.ts";
import { type GateResult, gateWords, listMissed, sayGate } from "../shared/gate-words.ts";

interface LookFirstProps {
  readonly job: JobDetail;
  /** The worst first. */
  readonly weights: readonly ReportedWeight[];
}

/** What somebody has to know of a result before anything else, the worst first. */
export function LookFirst({ job, weights }: LookFirstProps) {
  const findings = listFindings(job, weights);
  if (findings.length === 0) return undefined;
  return (
    <section class="card c12">
      <header>
        <h2>What to look at first</h2>
      </header>
      <ul class="list">
        {findings.map((finding) => (
          <FindingRow key={finding.title} {...finding} />
        ))}
      </ul>
    </section>
  );
}

interface Finding {
  readonly tone: "bad" | "warn";
  readonly title: string;
  readonly detail: string;
  /** Where to go on. */
  readonly links: readonly { readonly text: string; readonly href: string }[];
}

function FindingRow({ tone, title, detail, links }: Finding): ComponentChildren {
  return (
    <li class={`finding is-${tone}`}>
      <span class={tone}>
        <Icon name={tone} />
        <span class="sr">{tone === "bad" ? "fails" : "warns"}</span>
      </span>
      <span class="two grow">
        <b>{title}</b>
        <small>{detail}</small>
      </span>
      {links.map(({ text, href }) => (
        <a key={href} class="more" href={href}>
          {text}
        </a>
      ))}
    </li>
  );
}

const accuracyGates: readonly GateResult["gate"][] = [
  "minSqnrDb",
  "minCosine",
  "minTop1",
  "maxPerplexityRatio",
  "maxKlDivergence",
  "maxSqnrDropDb",
];

function listFindings(job: JobDetail, weights: readonly ReportedWeight[]): Finding[] {
  const missed = listMissed(job).toSorted((a, b) => a.level.localeCompare(b.level));
  const [worst] = weights.filter(({ error }) => error !== null);
  const changes = describeChanges(job);
  const gates = missed.map((gate): Finding => {
    const isAccuracy = accuracyGates.includes(gate.gate);
    const baseline = describeBaseline(job, gate);
    const note = gate.note === undefined ? [] : [gate.note];
    // One weight is to blame for all figures of the accuracy, and is named once.
    const isFirst = missed.find(({ gate: each }) => accuracyGates.includes(each)) === gate;
    const blamed = isAccuracy && isFirst && worst ? [describeWorst(worst)] : [];
    return {
      tone: gate.level === "fail" ? "bad" : "warn",
      title: sayGate(gate, job.baseline?.branch),
      detail: [...baseline, ...note, ...blamed].join(" "),
      links: isAccuracy && isFirst && worst ? listWeightLinks(job, worst) : [],
    };
  });
  if (gates.length > 0) return gates;
  const worse = changes.filter(({ judgement }) => judgement === "worse");
  const changed = worse.map(({ figure, change, before, now }): Finding => ({
    tone: "warn",
    title: `Worse than the baseline: ${figure} ${change}`,
    detail: `${before} before, ${now} now.`,
    links: [{ text: "Compare", href: "#baseline" }],
  }));
  const isWeak = worst?.error && worst.error.sqnrDb < sqnrThresholdsDb.bad;
  if (worst === undefined || !isWeak || job.status !== "Completed") return changed;
  const weak: Finding = {
    tone: "warn",
    title: "A weight differs much from its original",
    detail: describeWorst(worst),
    links: listWeightLinks(job, worst),
  };
  return [...changed, weak];
}

function describeChanges(job: JobDetail) {
  return compareFigures(summarizeJob(job));
}

function describeBaseline({ baseline }: JobDetail, gate: GateResult): string[] {
  const format = gateWords[gate.gate].formatBaseline;
  if (!baseline || gate.baseline === null || format === undefined) return [];
  return [`${format(gate.baseline)} at ${describeCommit(baseline)}.`];
}

function describeWorst({ name, error, form }: ReportedWeight): string {
  return `The worst weight is ${name}: ${error?.sqnrDb.toFixed(1)} dB as ${form}.`;
}

function listWeightLinks({ id }: JobDetail, { name }: ReportedWeight): Finding["links"] {
  const shown = { text: "Show it in the graph", href: graphHash(name) };
  if (!mayDo("startWork")) return [shown];
  const without = `/new?${new URLSearchParams({ from: id, exclude: name })}`;
  return [shown, { text: "Run again without it", href: without }];
}
