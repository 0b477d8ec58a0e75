import { Fragment } from "preact";
import { useRoute } from "preact-iso";
import { useRef } from "preact/hooks";
import { BaselineCard } from "./baseline-card.tsx";
import { FigureCards } from "./figure-cards.tsx";
import { GateList } from "./gate-list.tsx";
import { JobFacts } from "./job-facts.tsx";
import { JobHead } from "./job-head.tsx";
import { JobLogCard } from "./job-log-card.tsx";
import { JobNotices } from "./job-notices.tsx";
import { JobTimeline } from "./job-timeline.tsx";
import { LookFirst } from "./look-first.tsx";
import { SearchCard } from "./search-card.tsx";
import { loadWeights, type ReportedWeight, WeightTable } from "./weight-table.tsx";
import type { Job, JobDetail } from "../../contract/jobs/job.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { describeRecipe } from "../shared/describe-recipe.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { type TermName, termTable } from "../../contract/jobs/terms.ts";
import { findWeightFiles, sayWeightFiles } from "../../contract/jobs/weight-files.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { GraphCard } from "../graph/graph-card.tsx";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Icon } from "../shared/button.tsx";
import { flattenFields } from "../shared/format.ts";
import { isGone, MissingPage } from "../shared/missing-page.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { Term } from "../shared/term.tsx";

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
      <MissingPage error={error} noun="job" list="/jobs" retry={reload} />
      {value && !isGone(error) && <JobSheet job={value} />}
    </>
  );
}

/** The parts of the page in the order of interest. */
function JobSheet({ job }: { readonly job: JobDetail }) {
  const { value, error, reload } = useLive(() => loadWeights(job), { of: [job.artifacts.length] });
  const weights = value ?? noWeights;
  // Who watches a job reads its log: what is above it has a fixed height, and all else is below.
  const wasLive = useRef(!isTerminal(job.status)).current;
  const log = <JobLogCard key={job.id} job={job} />;
  // The weights decide what stands where below, which would move once they are loaded.
  const areWeightsKnown = value !== undefined || error !== undefined;
  return (
    <div class={wasLive ? "is-watched" : ""}>
      <JobHead job={job} />
      <JobFacts job={job} wasLive={wasLive} />
      <JobNotices job={job} wasLive={wasLive} />
      <div class="sheet">
        <FigureCards job={job} wasLive={wasLive} />
        {wasLive && log}
        {wasLive && <JobTimeline job={job} />}
        {areWeightsKnown && (
          <>
            {error !== undefined && (
              <div class="c12">
                <MaybeError error={error} retry={reload} />
              </div>
            )}
            <JobFindings job={job} weights={weights} />
            {!wasLive && <JobTimeline job={job} />}
            {!wasLive && log}
          </>
        )}
      </div>
    </div>
  );
}

function JobFindings({ job, weights }: JobDetailsProps) {
  return (
    <>
      <LookFirst job={job} weights={weights} />
      {job.baseline && <BaselineCard key={job.baseline.jobId} job={job} baseline={job.baseline} />}
      {job.telemetry.search && <SearchCard search={job.telemetry.search} auto={job.recipe.auto} />}
      <JobDetails job={job} weights={weights} />
      <GraphCard job={job} />
    </>
  );
}

const noWeights: readonly ReportedWeight[] = [];

interface JobDetailsProps {
  readonly job: JobDetail;
  readonly weights: readonly ReportedWeight[];
}

function JobDetails({ job, weights }: JobDetailsProps) {
  const others = (
    <>
      <GateList job={job} />
      <WarningList warnings={job.telemetry.warnings} />
      <ArtifactList job={job} />
      <RecipeCard recipe={job.recipe} />
    </>
  );
  if (weights.length === 0) return <div class="c12 side-by-side">{others}</div>;
  return (
    <>
      <WeightTable weights={weights} />
      <div class="c5 stack">{others}</div>
    </>
  );
}

function RecipeCard({ recipe }: { readonly recipe: Recipe }) {
  return (
    <details class="card recipe">
      <summary>
        <h2>Recipe</h2>
        <span class="dim">{describeRecipe(recipe)}</span>
      </summary>
      <dl class="pairs">
        {flattenFields(recipe).map(([name, value]) => (
          <Fragment key={name}>
            <dt>
              <Term name={isTerm(name) ? name : undefined}>{name}</Term>
            </dt>
            <dd class="mono">{value}</dd>
          </Fragment>
        ))}
      </dl>
    </details>
  );
}

function isTerm(name: string): name is TermName {
  return Object.hasOwn(termTable, name);
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

function ArtifactList({ job: { id, artifacts, batchId } }: { readonly job: JobDetail }) {
  if (artifacts.length === 0) return undefined;
  return (
    <section class="card">
      <header>
        <h2>Artifacts</h2>
        <span class="dim">{formatCount(artifacts.length, "file")}</span>
      </header>
      <WeightFilesNote artifacts={artifacts} batchId={batchId} />
      <ul class="list">
        {artifacts.map((artifact) => (
          <ArtifactLine key={artifact.name} jobId={id} artifact={artifact} />
        ))}
      </ul>
    </section>
  );
}

/** What a model's file is nothing without, and how to take all of it away. */
function WeightFilesNote({ artifacts, batchId }: Pick<JobDetail, "artifacts" | "batchId">) {
  const model = artifacts.find(({ kind }) => kind === "model");
  const needed = model && findWeightFiles(artifacts, model.name);
  if (!model || !needed) return undefined;
  return (
    <p class="card-note">
      {sayWeightFiles(model.name, needed)}.
      {needed.archive !== null && (
        <>
          {" "}
          <code>{needed.archive}</code> has the model with all of them.
        </>
      )}
      {needed.archive === null && batchId !== null && (
        <>
          {" "}
          The archive of <a href={`/batches/${batchId}`}>its batch</a> has them too.
        </>
      )}
    </p>
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
