import { z } from "zod";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { type ModelDiff, modelDiff } from "../../contract/jobs/model-diff.ts";
import { loadArtifact } from "../session/load-artifact.ts";

/** What the page reads of a job's report. */
const report = z.object({ changes: modelDiff.optional() });

/** How the job's model differs from its baseline's; undefined where they were not compared. */
export async function loadModelChanges(job: JobDetail): Promise<ModelDiff | undefined> {
  const content = await loadArtifact(job, "diff");
  return content === undefined ? undefined : modelDiff.parse(content);
}

/** How the result differs from the job's model; undefined where there is none. */
export async function loadResultChanges(job: JobDetail): Promise<ModelDiff | undefined> {
  return report.optional().parse(await loadArtifact(job, "report"))?.changes;
}
