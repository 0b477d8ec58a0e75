import type { ComponentChildren } from "preact";
import type { JobDetail } from "../../contract/jobs/job.ts";
import type { TermName } from "../../contract/jobs/terms.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { modelAddress } from "../shared/addresses.ts";
import { describeCommit } from "../shared/format.ts";
import { Age, Duration } from "../shared/page-head.tsx";
import { Term } from "../shared/term.tsx";

interface Fact {
  readonly name: string;
  readonly term?: TermName;
  readonly text: ComponentChildren;
}

/**
 * What a job does and where it ran. What is not known yet has its place, so that nothing moves once
 * it is.
 */
export function JobFacts({ job }: { readonly job: JobDetail }) {
  const id: Fact = { name: "Id", text: <span class="mono">{job.id}</span> };
  const facts = [...listRequestFacts(job), ...listRunFacts(job), id];
  return (
    <dl class="facts in-columns">
      {facts.map(({ name, term, text }) => (
        <div key={name}>
          <dt>
            <Term name={term}>{name}</Term>
          </dt>
          <dd class="cut" title={typeof text === "string" ? text : undefined}>
            {text}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function listRequestFacts({ recipe, baseline, createdBy, createdAt, model }: JobDetail): Fact[] {
  const { scheme, granularity, blockSize } = recipe;
  const detail = granularity === "block" ? `blocks of ${blockSize}` : `per ${granularity}`;
  const bytes = model.bytes === null ? "" : `, ${formatBytes(model.bytes)}`;
  const facts: Fact[] = [
    { name: "Model", text: <ModelLink model={model} rest={bytes} /> },
    { name: "Recipe", term: "recipe", text: `${scheme}, ${detail}` },
  ];
  if (baseline) facts.push({ name: "Baseline", term: "baseline", text: describeCommit(baseline) });
  if (createdBy) facts.push({ name: "Started by", text: createdBy.name });
  return [...facts, { name: "Created", text: <Age at={createdAt} /> }];
}

function ModelLink({ model, rest }: { readonly model: JobDetail["model"]; readonly rest: string }) {
  return (
    <>
      <a class="linked" href={modelAddress(model.name)}>
        {model.name}
      </a>
      {rest}
    </>
  );
}

function listRunFacts({ telemetry, startedAt, finishedAt }: JobDetail): Fact[] {
  const { device } = telemetry;
  const isOver = finishedAt !== null;
  const unknown = isOver ? undefined : <span class="dim">not yet</span>;
  const ran = startedAt !== null && <Duration from={startedAt} to={finishedAt} />;
  const facts: Fact[] = [
    { name: "Run time", text: ran || unknown },
    { name: "Measured on", text: device ? `${device.name}, ${device.threads} threads` : unknown },
    { name: "Runtime", text: device ? `${device.runtime}, ${device.executionProvider}` : unknown },
  ];
  return facts.filter(({ text }) => text !== undefined);
}
