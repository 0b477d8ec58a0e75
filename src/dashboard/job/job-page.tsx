import { useRoute } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import { GraphCard } from "../graph/graph-card.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { ArtifactList } from "./artifact-list.tsx";
import { BaselineCard } from "./baseline-card.tsx";
import { FigureCards } from "./figure-cards.tsx";
import { GateList } from "./gate-list.tsx";
import { JobFacts } from "./job-facts.tsx";
import { JobHead } from "./job-head.tsx";
import { JobLogCard } from "./job-log-card.tsx";
import { JobNotices } from "./job-notices.tsx";
import { JobTimeline } from "./job-timeline.tsx";
import { type JobDetail, ShownJob } from "./shown-job.ts";
import { RecipeCard } from "./recipe-card.tsx";
import { WarningList } from "./warning-list.tsx";
import { WeightTable } from "./weight-table.tsx";

/** Everything about one job, live. */
export function JobPage() {
  const id = useRoute().params["id"] ?? "";
  const shown = useMemo(() => new ShownJob(id), [id]);
  useEffect(() => shown.follow(), [shown]);
  return (
    <main id="main">
      <MaybeError error={shown.error.value} retry={() => shown.reload()} />
      {shown.job.value && <JobSheet job={shown.job.value} />}
    </main>
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
          <GateList gates={job.gates} />
          <WarningList warnings={job.telemetry.warnings} />
          <ArtifactList job={job} />
          <RecipeCard recipe={job.recipe} />
        </div>
      </div>
    </>
  );
}
