import type { ComponentChildren } from "preact";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { describeRecipe } from "../shared/describe-recipe.ts";
import type { TermName } from "../../contract/jobs/terms.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { modelAddress } from "../shared/addresses.ts";
import { describeCommit, formatDuration } from "../shared/format.ts";
import { Age, Duration } from "../shared/page-head.tsx";
import { Term } from "../shared/term.tsx";

interface Fact {
  readonly name: string;
  readonly term?: TermName;
  readonly text: ComponentChildren;
}

interface JobFactsProps {
  readonly job: JobDetail;
  /** Whether somebody watches it: what is not known has its place then, and nothing moves. */
  readonly wasLive: boolean;
}

/** What a job does and where it ran. */
export function JobFacts({ job, wasLive }: JobFactsProps) {
  const id: Fact = { name: "Id", text: <span class="mono">{job.id}</span> };
  const facts = [...listRequestFacts(job), ...listRunFacts(job, wasLive), id];
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
  const bytes = model.bytes === null ? "" : `, ${formatBytes(model.bytes)}`;
  const facts: Fact[] = [
    { name: "Model", text: <ModelLink model={model} rest={bytes} /> },
    { name: "Recipe", term: "recipe", text: describeRecipe(recipe) },
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

function listRunFacts(job: JobDetail, wasLive: boolean): Fact[] {
  const { telemetry, startedAt, finishedAt } = job;
  const { device } = telemetry;
  const none = <span class="dim">{finishedAt === null ? "not yet" : "none"}</span>;
  const unknown = wasLive ? none : undefined;
  const { seconds } = telemetry.forecast ?? {};
  const ran = startedAt !== null && (
    <>
      <Duration from={startedAt} to={finishedAt} />
      {seconds !== undefined && `, ${formatDuration(seconds * 1000)} forecast`}
    </>
  );
  const facts: Fact[] = [
    { name: "Run time", text: ran || unknown },
    { name: "Memory", text: describeCost(telemetry, "peakMemoryBytes") ?? unknown },
    { name: "GPU memory", text: describeGpuMemory(telemetry) },
    { name: "Disk", text: describeCost(telemetry, "diskBytes") ?? unknown },
    { name: "Cancelled by", text: wasLive ? undefined : job.cancelledBy?.name },
    { name: "Measured on", text: device ? `${device.name}, ${device.threads} threads` : unknown },
    { name: "Runtime", text: device ? `${device.runtime}, ${device.executionProvider}` : unknown },
  ];
  return facts.filter(({ text }) => text !== undefined);
}

function describeGpuMemory({ memory }: JobDetail["telemetry"]): string | undefined {
  const { originalGpuBytes: original, resultGpuBytes: result } = memory ?? {};
  if (original === undefined || result === undefined) return undefined;
  return `${formatBytes(result)}, ${formatBytes(original)} of the original`;
}

/** What was measured, beside what was forecast. */
function describeCost(
  { forecast, usage }: JobDetail["telemetry"],
  cost: "peakMemoryBytes" | "diskBytes",
): string | undefined {
  const planned = forecast && `${formatBytes(forecast[cost])} forecast`;
  return [usage && formatBytes(usage[cost]), planned].filter(Boolean).join(", ") || undefined;
}
