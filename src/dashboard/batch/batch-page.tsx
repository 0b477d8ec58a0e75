import "./batch.css";
import { useLocation, useRoute } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import type { Batch } from "../../contract/jobs/batch.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { MaybeError } from "../shared/notice.tsx";
import { BatchFacts } from "./batch-facts.tsx";
import { BatchHead } from "./batch-head.tsx";
import { BatchMatrix } from "./batch-matrix.tsx";
import { ChangeList } from "./change-list.tsx";
import { GateSummary } from "./gate-summary.tsx";
import { lookAtJob, type MatrixView, matrixViews } from "./look-at-job.ts";
import { MatrixBar } from "./matrix-bar.tsx";
import { ShownBatch } from "./shown-batch.ts";

/** A batch as a matrix of models and targets, live. */
export function BatchPage() {
  const id = useRoute().params["id"] ?? "";
  const shown = useMemo(() => new ShownBatch(id), [id]);
  useEffect(() => shown.follow(), [shown]);
  const batch = shown.batch.value;
  return (
    <main id="main">
      <MaybeError error={shown.error.value} retry={() => shown.reload()} />
      {batch && (
        <>
          <BatchHead batch={batch} />
          <BatchFacts batch={batch} summaries={shown.jobs.value} />
          <BatchSheet batch={batch} summaries={shown.jobs.value} />
        </>
      )}
    </main>
  );
}

interface BatchSheetProps {
  readonly batch: Batch;
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

function BatchSheet({ batch: { id, jobs }, summaries }: BatchSheetProps) {
  const view = parseMatrixView(useLocation().query["show"]);
  const shown = new Set(jobs.map((job) => lookAtJob(job, summaries.get(job.id), view).look));
  return (
    <>
      <MatrixBar batchId={id} view={view} shown={shown} />
      <BatchMatrix jobs={jobs} summaries={summaries} view={view} />
      <div class="sheet">
        <ChangeList jobs={jobs} summaries={summaries} />
        <GateSummary summaries={summaries.values()} />
      </div>
    </>
  );
}

function parseMatrixView(text: string | undefined): MatrixView {
  const names = Object.keys(matrixViews) as MatrixView[];
  return names.find((name) => name === text) ?? "summary";
}
