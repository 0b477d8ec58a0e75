import "./changes.css";
import { useLocation, useRoute } from "preact-iso";
import { ChangeDrawing } from "./change-drawing.tsx";
import { CountTable, InterfaceTable } from "./count-tables.tsx";
import { loadModelChanges, loadResultChanges } from "./load-changes.ts";
import { NodeTable } from "./node-table.tsx";
import { WeightChangeTable } from "./weight-change-table.tsx";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { isSameModel, type ModelDiff } from "../../contract/jobs/model-diff.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { changesAddress, jobAddress } from "../../contract/page-addresses.ts";
import {
  describeSameModel,
  isMostlyAnother,
  summarizeChanges,
} from "../../contract/jobs/describe-model-diff.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { describeCommit, shortJobName } from "../shared/format.ts";
import { MissingPage } from "../shared/missing-page.tsx";
import { EmptyState, Loading, MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";

type Compared = "model" | "result";

/** What changed in a model: against the baseline's, or by the compression. */
export function ChangesPage() {
  const id = useRoute().params["id"] ?? "";
  const { query } = useLocation();
  const { value, error, reload } = useLive(() => service.call("getJob", { params: { id } }), {
    of: [id],
    concerns: ({ job, deletedJob }) => job?.id === id || deletedJob === id,
  });
  return (
    <main id="main">
      <MissingPage error={error} noun="job" list="/jobs" retry={reload} />
      {value && <Changes job={value} of={chooseCompared(query["of"], value)} />}
    </main>
  );
}

/** Of a job without a baseline there is only what the compression changed. */
function chooseCompared(asked: string | undefined, { baseline }: JobDetail): Compared {
  if (asked === "model" || asked === "result") return asked;
  return baseline === null ? "result" : "model";
}

function Changes({ job, of }: { readonly job: JobDetail; readonly of: Compared }) {
  const load = () => (of === "model" ? loadModelChanges(job) : loadResultChanges(job));
  // What was loaded of the other one is not shown while this one is on its way.
  const { value, error, reload } = useLive(async () => ({ of, diff: await load() }), {
    of: [job.id, job.artifacts.length, of],
  });
  const loaded = value?.of === of ? value : undefined;
  return (
    <>
      <ChangesHead job={job} />
      <ComparedTabs job={job} of={of} />
      <MaybeError error={error} retry={reload} />
      {loaded === undefined && error === undefined && <Loading />}
      {loaded?.diff && <DiffSheet job={job} of={of} diff={loaded.diff} />}
      {loaded && !loaded.diff && <NotCompared job={job} of={of} />}
    </>
  );
}

function ChangesHead({ job }: { readonly job: JobDetail }) {
  const name = shortJobName({ ...job, model: job.model.name });
  useTitle(`What changed in ${name}`);
  return (
    <div class="top">
      <div>
        <nav class="crumb" aria-label="Breadcrumb">
          <a href="/jobs">Jobs</a>
          {" / "}
          <a href={jobAddress(job.id)}>{job.name}</a>
        </nav>
        <h1>What changed in {name}</h1>
      </div>
    </div>
  );
}

function ComparedTabs({ job, of }: { readonly job: JobDetail; readonly of: Compared }) {
  const { id, baseline } = job;
  const before = baseline === null ? "the baseline" : describeCommit(baseline);
  const tabs = { model: `Since ${before}`, result: "By the compression" } as const;
  return (
    <nav class="filters" aria-label="Compared models">
      <div class="tabs">
        {(["model", "result"] as const).map((each) => (
          <a
            key={each}
            href={changesAddress(id, each)}
            aria-current={each === of ? "page" : undefined}
          >
            {tabs[each]}
          </a>
        ))}
      </div>
    </nav>
  );
}

/** Why there is nothing to show, and where there is. */
function NotCompared({ job, of }: { readonly job: JobDetail; readonly of: Compared }) {
  const { title, text } = explainAbsence(job, of);
  return (
    <EmptyState title={title}>
      <p class="soft">{text}</p>
      <a class="button" href={jobAddress(job.id)}>
        Open the job
      </a>
    </EmptyState>
  );
}

function explainAbsence({ status, baseline }: JobDetail, of: Compared) {
  if (!isTerminal(status)) {
    return { title: "Not compared yet", text: "The job has not ended. The page waits for it." };
  }
  if (of === "result") {
    return {
      title: "There is no result to compare",
      text: "The job wrote no model, or an earlier version of the service ran it.",
    };
  }
  if (status !== "Completed") {
    return {
      title: "The models were not compared",
      text: "That is the last thing a job does, and this one ended before it.",
    };
  }
  return baseline === null
    ? {
        title: "There is no baseline",
        text: "Once a job of the base branch has recorded one, later commits are compared with it.",
      }
    : {
        title: "The models were not compared",
        text: "The baseline's job left no description of its model, or the job's log says why.",
      };
}

interface DiffSheetProps {
  readonly job: JobDetail;
  readonly of: Compared;
  readonly diff: ModelDiff;
}

function DiffSheet({ job, of, diff }: DiffSheetProps) {
  return (
    <>
      <p class="changes-summary">{sayChanges(job, of, diff)}</p>
      <div class="sheet changes">
        <CountTable diff={diff} of={of} />
        <InterfaceTable values={diff.values} />
        {!isMostlyAnother(diff.nodes) && <ChangeDrawing changes={diff.nodeChanges} />}
        <WeightChangeTable job={job} diff={diff} of={of} />
        <NodeTable job={job} diff={diff} of={of} />
      </div>
    </>
  );
}

function sayChanges({ baseline }: JobDetail, of: Compared, diff: ModelDiff): string {
  const other =
    of === "result" ? "the original" : `the model of ${baseline?.branch ?? "the baseline"}`;
  if (isSameModel(diff)) return describeSameModel(other, diff);
  return `Against ${other}: ${summarizeChanges(diff)}.`;
}
