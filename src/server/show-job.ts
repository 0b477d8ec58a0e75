import type { Job } from "../contract/jobs/job.ts";
import { redactSource } from "../contract/text/redact-source.ts";

/** A job as answers contain it: a reader need not be able to fetch its sources. */
export function showJob(job: Job): Job {
  const { model, recipe } = job;
  const { data } = recipe.evaluation;
  const evaluation =
    data === undefined ? recipe.evaluation : { ...recipe.evaluation, data: redactSource(data) };
  return {
    ...job,
    model: { ...model, source: redactSource(model.source) },
    recipe: { ...recipe, evaluation },
  };
}
