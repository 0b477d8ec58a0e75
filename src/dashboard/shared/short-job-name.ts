import type { Job } from "../../contract/job.ts";
import { jobTitle } from "../../report/job-title.ts";

/** A job's name beside its target: the model's where nobody gave the job another one. */
export function shortJobName({ name, model, target }: Pick<Job, "name" | "model" | "target">) {
  return name === jobTitle({ model: model.name, target }) ? model.name : name;
}
