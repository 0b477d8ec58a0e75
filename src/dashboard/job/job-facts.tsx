import type { ComponentChildren } from "preact";
import { Age, Duration } from "../shared/time.tsx";
import type { JobDetail } from "./shown-job.ts";

interface Fact {
  readonly name: string;
  readonly text: ComponentChildren;
}

/** What a job does and where it ran; what is not known yet is left out. */
export function JobFacts({ job }: { readonly job: JobDetail }) {
  const id = { name: "Id", text: <span class="mono">{job.id}</span> };
  const facts = [...listRequestFacts(job), ...listRunFacts(job), id];
  return (
    <dl class="facts">
      {facts.map(({ name, text }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function listRequestFacts({ recipe, baseline, createdBy, createdAt }: JobDetail): Fact[] {
  const { scheme, granularity, blockSize } = recipe;
  const detail = granularity === "block" ? `blocks of ${blockSize}` : `per ${granularity}`;
  const facts: Fact[] = [{ name: "Recipe", text: `${scheme}, ${detail}` }];
  if (baseline) {
    facts.push({ name: "Baseline", text: `${baseline.branch} at ${baseline.sha.slice(0, 7)}` });
  }
  if (createdBy) facts.push({ name: "Started by", text: createdBy.name });
  return [...facts, { name: "Created", text: <Age at={createdAt} /> }];
}

function listRunFacts({ telemetry, startedAt, finishedAt, queuePosition }: JobDetail): Fact[] {
  const { device } = telemetry;
  const facts: Fact[] = [];
  if (queuePosition !== null) facts.push({ name: "Place in the queue", text: queuePosition });
  if (startedAt !== null) {
    facts.push({ name: "Ran for", text: <Duration from={startedAt} to={finishedAt} /> });
  }
  if (!device) return facts;
  return [
    ...facts,
    { name: "Measured on", text: `${device.name}, ${device.threads} threads` },
    { name: "Runtime", text: `${device.runtime}, ${device.executionProvider}` },
  ];
}
