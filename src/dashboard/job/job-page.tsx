import { type ComponentChildren, Fragment } from "preact";
import { useRoute } from "preact-iso";
import { BaselineCard } from "./baseline-card.tsx";
import { FigureCards } from "./figure-cards.tsx";
import { JobHead } from "./job-head.tsx";
import { JobLogCard } from "./job-log-card.tsx";
import { JobNotices } from "./job-notices.tsx";
import { type JobSpan, listSpans } from "./list-spans.ts";
import { WeightTable } from "./weight-table.tsx";
import { describeGate } from "../../contract/jobs/describe-gate.ts";
import type { Job, JobDetail } from "../../contract/jobs/job.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { GraphCard } from "../graph/graph-card.tsx";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Icon } from "../shared/button.tsx";
import { serviceNow } from "../shared/clock.ts";
import { flattenFields, formatDuration, formatExactTime } from "../shared/format.ts";
import { MaybeError } from "../shared/notice.tsx";
import { Age, Duration } from "../shared/page-head.tsx";

/** Everything about one job, live. */
export function JobPage() {
  const id = useRoute().params["id"] ?? "";
  return (
    <main id="main">
      <LiveJob key={id} id={id} />
    </main>
  );
}

function LiveJob({ id }: { id: string }) {
  const { value, error, reload } = useLive(() => service.call("getJob", { params: { id } }), {
    concerns: ({ job, deletedJob }) => job?.id === id || deletedJob === id,
  });
  return (
    <>
      <MaybeError error={error} retry={reload} />
      {value && <JobSheet job={value} />}
    </>
  );
}

function JobSheet({ job }: { readonly job: JobDetail }) {
  return (
    <>
      <JobHead job={job} />
      <JobFacts job={job} />
      <JobNotices job={job} />
      <div class="sheet">
        <FigureCards job={job} />
        {job.baseline && (
          <BaselineCard key={job.baseline.jobId} job={job} baseline={job.baseline} />
        )}
        <JobTimeline job={job} />
        <JobLogCard key={job.id} jobId={job.id} />
        <GraphCard job={job} />
        <WeightTable job={job} />
        <div class="c5 stack">
          <GateList job={job} />
          <WarningList warnings={job.telemetry.warnings} />
          <ArtifactList job={job} />
          <RecipeCard recipe={job.recipe} />
        </div>
      </div>
    </>
  );
}

function RecipeCard({ recipe }: { readonly recipe: Recipe }) {
  return (
    <section class="card">
      <header>
        <h2>Recipe</h2>
      </header>
      <dl class="pairs">
        {flattenFields(recipe).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd class="mono">{value}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

/** How long a job was in each status or step; wider is longer. */
function JobTimeline({ job }: { readonly job: JobDetail }) {
  const spans = listSpans(job, serviceNow.value);
  return (
    <section class="card c12" aria-label="Time in each status">
      <ol class="track" tabIndex={0}>
        {spans.map((span) => (
          <Span key={`${span.title} ${span.at}`} span={span} />
        ))}
      </ol>
    </section>
  );
}

function Span({ span: { title, tone, ms, at } }: { readonly span: JobSpan }) {
  const exact = formatExactTime(at);
  return (
    <li class={tone} style={{ flexGrow: Math.sqrt(ms ?? 0) }} title={`From ${exact}`}>
      <span class="span" />
      <b>{title}</b>
      <small>{ms === undefined ? exact.slice(11, 19) : formatDuration(ms)}</small>
    </li>
  );
}

function WarningList({ warnings }: Pick<Job["telemetry"], "warnings">) {
  if (warnings.length === 0) return undefined;
  return (
    <section class="card">
      <header>
        <h2>Warnings</h2>
        <span class="dim">{warnings.length}</span>
      </header>
      <ul class="list">
        {warnings.map((warning) => (
          <WarningLine key={warning.code} {...warning} />
        ))}
      </ul>
    </section>
  );
}

function WarningLine({ code, message }: Job["telemetry"]["warnings"][number]) {
  return (
    <li>
      <span class="warn">
        <Icon name="warn" />
      </span>
      <div class="cut-anywhere">
        {message} <code class="dim">{code}</code>
      </div>
    </li>
  );
}

function ArtifactList({ job: { id, artifacts } }: { readonly job: JobDetail }) {
  if (artifacts.length === 0) return undefined;
  return (
    <section class="card">
      <header>
        <h2>Artifacts</h2>
        <span class="dim">{artifacts.length} files</span>
      </header>
      <ul class="list">
        {artifacts.map((artifact) => (
          <ArtifactLine key={artifact.name} jobId={id} artifact={artifact} />
        ))}
      </ul>
    </section>
  );
}

interface ArtifactLineProps {
  readonly jobId: string;
  readonly artifact: JobDetail["artifacts"][number];
}

function ArtifactLine({ jobId, artifact: { name, bytes, sha256 } }: ArtifactLineProps) {
  return (
    <li>
      <a class="mono grow" href={artifactAddress(jobId, name)} download title={sha256}>
        {name}
      </a>
      <span class="soft">{formatBytes(bytes)}</span>
      <Icon name="down" />
    </li>
  );
}

type GateResult = Job["gates"][number];

function GateList({ job: { gates, baseline } }: { readonly job: JobDetail }) {
  if (gates.length === 0) return undefined;
  const passed = gates.filter((gate) => gate.passed).length;
  return (
    <section class="card">
      <header>
        <h2>Gates</h2>
        <span class="dim">
          {passed} of {gates.length} passed
        </span>
      </header>
      <ul class="list">
        {gates.map((gate) => (
          <GateRow key={gate.gate} gate={gate} against={baseline?.branch} />
        ))}
      </ul>
    </section>
  );
}

const looks = {
  passed: { tone: "calm", icon: "check" },
  warn: { tone: "warn", icon: "warn" },
  fail: { tone: "bad", icon: "bad" },
} as const;

interface GateRowProps {
  readonly gate: GateResult;
  /** What it is compared with. */
  readonly against: string | undefined;
}

function GateRow({ gate, against }: GateRowProps) {
  const { tone, icon } = looks[gate.passed ? "passed" : gate.level];
  return (
    <li>
      <span class={`status ${tone}`}>
        <Icon name={icon} />
        <span class="sr">{gate.passed ? "passed" : `did not pass: ${gate.level}`}</span>
      </span>
      <span>{describeGate(gate, { against })}</span>
    </li>
  );
}

interface Fact {
  readonly name: string;
  readonly text: ComponentChildren;
}

/** What a job does and where it ran; what is not known yet is left out. */
function JobFacts({ job }: { readonly job: JobDetail }) {
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
  if (queuePosition !== null) facts.push({ name: "Queue position", text: queuePosition });
  if (startedAt !== null) {
    facts.push({ name: "Run time", text: <Duration from={startedAt} to={finishedAt} /> });
  }
  if (!device) return facts;
  return [
    ...facts,
    { name: "Measured on", text: `${device.name}, ${device.threads} threads` },
    { name: "Runtime", text: `${device.runtime}, ${device.executionProvider}` },
  ];
}
