import { useRoute } from "preact-iso";
import "./models.css";
import { BestByTarget } from "./best-by-target.tsx";
import type { ModelVersion } from "./group-models.ts";
import { UseResult } from "./use-result.tsx";
import { VersionCard } from "./version-card.tsx";
import { findUploadHash } from "../../contract/models/model-source.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { describeResult } from "../compare/describe-result.ts";
import { ParetoCard } from "../compare/pareto-chart.tsx";
import { letterOf } from "../compare/name-jobs.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { compareAddress } from "../shared/addresses.ts";
import { EmptyState, Loading, MaybeError } from "../shared/notice.tsx";
import { Age, useTitle } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";
import { TableHead } from "../shared/table-head.tsx";
import { judgeJob } from "../shared/verdict.ts";

/** The newest jobs of a model that its page looks at. */
const mostJobs = "200";

/** A model: its versions, its jobs, and the best result for each target. */
export function ModelPage() {
  const asked = useRoute().params["name"] ?? "";
  const { value, error, reload } = useLive(() => loadModel(asked), {
    of: [asked],
    concerns: ({ job, deletedJob }) => job?.model === asked || deletedJob !== undefined,
    pauseMs: 1000,
  });
  const [newest] = value?.versions ?? [];
  const name = newest?.name ?? asked;
  useTitle(name);
  return (
    <main id="main">
      <div class="top">
        <div>
          <nav class="crumb" aria-label="Breadcrumb">
            <a href="/models">Models</a>
          </nav>
          <h1>{name}</h1>
        </div>
        <span class="grow" />
        {newest !== undefined && mayDo("startWork") && <StartLinks {...newest} />}
      </div>
      <MaybeError error={error} retry={reload} />
      {value === undefined && error === undefined && <Loading />}
      {value?.versions.length === 0 && <NoSuchModel />}
      {value !== undefined && value.versions.length > 0 && <ModelSheet {...value} />}
    </main>
  );
}

function StartLinks({ source, name }: ModelVersion) {
  const query = new URLSearchParams({ model: source, name });
  return (
    <>
      <a class="button" href={`/new-batch?${query}`}>
        Try several recipes
      </a>
      <a class="button main" href={`/new?${query}`}>
        New job
      </a>
    </>
  );
}

function NoSuchModel() {
  return (
    <EmptyState title="No job names this model">
      <a class="button" href="/models">
        Open the models
      </a>
    </EmptyState>
  );
}

/** By its name, or by the hash of an upload, as entries of the audit have it. */
async function loadModel(name: string) {
  const { versions: all } = await service.call("listModelVersions", {});
  const versions = all.filter(
    (version) => version.name === name || findUploadHash(version.source) === name,
  );
  const model = versions[0]?.name ?? name;
  const jobs = await listJobs({ model });
  return { versions, jobs, newest: await findNewest(versions, jobs) };
}

/** Versions that are looked through for one with a result. */
const mostTried = 5;

/** Jobs of the newest version with a result: results of earlier ones are of other models. */
async function findNewest(versions: readonly ModelVersion[], jobs: JobSummary[]) {
  if (versions.length < 2) return { jobs, of: "" };
  for (const { source, name } of versions.slice(0, mostTried)) {
    // What the service hides of an address cannot be asked for.
    if (source.includes("=***")) break;
    const ofSource = (await listJobs({ model: source })).filter(({ model }) => model === name);
    const hasResult = ofSource.some(({ status }) => status === "Completed");
    if (hasResult) return { jobs: ofSource, of: "of the newest version with results" };
  }
  return { jobs, of: "of all versions" };
}

async function listJobs(query: { readonly model: string }): Promise<JobSummary[]> {
  const { jobs } = await service.call("listJobSummaries", { query: { ...query, limit: mostJobs } });
  return jobs.filter(({ dryRun }) => !dryRun);
}

type LoadedModel = Awaited<ReturnType<typeof loadModel>>;

function ModelSheet({ versions, jobs, newest }: LoadedModel) {
  const measured = newest.jobs.filter(({ figures }) => figures.resultBytes !== null).slice(0, 24);
  const names = new Map(
    measured.map((job, index) => [job.id, `${letterOf(index)}, ${job.scheme} for ${job.target}`]),
  );
  return (
    <div class="sheet">
      <BestByTarget jobs={newest.jobs} of={newest.of} />
      {measured.length > 1 && <ParetoCard jobs={measured} names={names} />}
      <VersionCard versions={versions} />
      <UseResult jobs={newest.jobs} />
      <JobsOfModel jobs={jobs} names={names} />
    </div>
  );
}

const columns = { Sign: "", Result: "", "Recipe, target": "", Figures: "", Created: "num" };
const shownJobs = 24;

interface JobsOfModelProps {
  readonly jobs: readonly JobSummary[];
  readonly names: ReadonlyMap<string, string>;
}

function JobsOfModel({ jobs, names }: JobsOfModelProps) {
  const shown = jobs.slice(0, shownJobs);
  const [first] = shown;
  return (
    <section class="card c12">
      <header>
        <h2>Jobs</h2>
        <span class="dim">the newest {shown.length}</span>
        <span class="grow" />
        {shown.length > 1 && <a href={compareAddress(shown.map(({ id }) => id))}>Compare them</a>}
        {first && <a href={`/jobs?model=${encodeURIComponent(first.model)}`}>All jobs</a>}
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Jobs of the model">
        <table>
          <TableHead columns={columns} />
          <tbody>
            {shown.map((job) => (
              <tr key={job.id}>
                <td>
                  <b class="letter">{names.get(job.id)?.slice(0, 1) ?? "–"}</b>
                </td>
                <td>
                  <ToneSign {...judgeJob(job)} />
                </td>
                <td>
                  <a class="row-link" href={jobAddress(job.id)}>
                    {job.scheme} for {job.target}
                  </a>
                </td>
                <td class="soft">{describeResult(job).split("; ")[0]}</td>
                <td class="num dim">
                  <Age at={job.createdAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
